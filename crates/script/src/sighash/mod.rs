//! Signature hashes: what the signatures of an input commit to. Legacy (Core's `SignatureHash` with
//! `SigVersion::BASE`), segwit v0 (BIP-0143), taproot and tapscript (BIP-0341, BIP-0342).
//!
//! Input: a transaction, the outputs it spends, the input's index, a script code and a hash type. Output: 32 bytes.
//! Invariants: [`TxContext`] hashes the parts shared by all inputs once, on first use; a [`LegacyCache`] never changes
//! a result, whatever the previous calls (it is bound to the txid, and the legacy hash depends on nothing else). Cost:
//! BIP143 and BIP341 hash about 200 bytes per signature, legacy the whole transaction minus the prefix that is already
//! hashed (`docs/benchmarks/sighash.md`); the hashed bytes can be counted. Must never decide whether a hash type is
//! allowed, except where BIP-0341 defines no hash.

mod legacy;
pub mod plain;
mod segwit_v0;
mod taproot;
mod writer;

#[cfg(test)]
mod tests;

pub use legacy::LegacyCache;
pub use taproot::{
    TaprootExt, compute_annex_hash, compute_tapbranch_hash, compute_tapleaf_hash, compute_taproot_merkle_root,
};

use lydian_primitives::{Output, Tx};
use segwit_v0::SegwitV0Parts;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use taproot::TaprootParts;
use writer::Writer;

/// BIP-0341's default: signs everything, with no hash type byte after the signature.
pub const SIGHASH_DEFAULT: u8 = 0;
pub const SIGHASH_ALL: u32 = 1;
pub const SIGHASH_NONE: u32 = 2;
pub const SIGHASH_SINGLE: u32 = 3;
pub const SIGHASH_ANYONECANPAY: u32 = 0x80;

/// The bits of a hash type that select the outputs, before taproot. Every value except NONE and SINGLE means ALL.
const OUTPUTS_MASK: u32 = 0x1f;

/// A transaction, the outputs it spends, and the hashes that its inputs share: Core's `PrecomputedTransactionData`.
///
/// Can be shared between threads.
#[derive(Debug)]
pub struct TxContext<'a> {
    tx: Tx<'a>,
    spent: &'a [Output<'a>],
    single: OnceLock<SingleHashes>,
    segwit_v0: OnceLock<SegwitV0Parts>,
    taproot: OnceLock<TaprootParts>,
    /// The hash of each single output, for SINGLE.
    single_outputs: OnceLock<Vec<OnceLock<[u8; 32]>>>,
    bytes_hashed: Option<&'a AtomicU64>,
}

/// The single SHA-256 of all prevouts, sequences and outputs. BIP-0341 uses the hashes directly, BIP-0143 hashes them
/// again.
#[derive(Debug)]
struct SingleHashes {
    prevouts: [u8; 32],
    sequences: [u8; 32],
    outputs: [u8; 32],
}

impl<'a> TxContext<'a> {
    /// `spent` holds the output spent by each input, in the order of inputs. `None` if their numbers differ.
    pub fn new(tx: Tx<'a>, spent: &'a [Output<'a>]) -> Option<TxContext<'a>> {
        (spent.len() == tx.input_count()).then(|| TxContext {
            tx,
            spent,
            single: OnceLock::new(),
            segwit_v0: OnceLock::new(),
            taproot: OnceLock::new(),
            single_outputs: OnceLock::new(),
            bytes_hashed: None,
        })
    }

    /// Adds to `counter` every byte that a signature hash of this transaction feeds to SHA-256 from now on. Used to
    /// measure worst-case blocks in bytes instead of seconds.
    pub fn with_counter(self, counter: &'a AtomicU64) -> TxContext<'a> {
        TxContext { bytes_hashed: Some(counter), ..self }
    }

    pub fn tx(&self) -> Tx<'a> {
        self.tx
    }

    /// The output that input `index` spends. Panics if there is no such input.
    pub fn spent(&self, index: usize) -> Output<'a> {
        self.spent[index]
    }

    fn single(&self) -> &SingleHashes {
        self.single.get_or_init(|| {
            let (mut prevouts, mut sequences, mut outputs) = (Writer::new(), Writer::new(), Writer::new());
            for index in 0..self.tx.input_count() {
                prevouts.bytes(self.tx.prevout_bytes(index));
                sequences.bytes(self.tx.sequence_bytes(index));
            }
            outputs.bytes(self.tx.outputs_bytes());
            SingleHashes {
                prevouts: self.finish(&prevouts),
                sequences: self.finish(&sequences),
                outputs: self.finish(&outputs),
            }
        })
    }

    /// Single SHA-256 of one output, computed once regardless of how many signatures commit to it: a tapscript may
    /// check 80,000 signatures, and an output may have a megabyte (Core's `m_output_hash`). Panics if there is no such
    /// output.
    fn single_output(&self, index: usize) -> [u8; 32] {
        let hashes = self.single_outputs.get_or_init(|| vec![OnceLock::new(); self.tx.output_count()]);
        *hashes[index].get_or_init(|| self.finish(Writer::new().bytes(self.tx.output_bytes(index))))
    }

    /// Returns the single SHA-256 of the written bytes and counts them.
    fn finish(&self, writer: &Writer) -> [u8; 32] {
        self.count(writer);
        writer.sha.finalize()
    }

    /// Returns the double SHA-256 of the written bytes and counts them.
    fn finish_double(&self, writer: &Writer) -> [u8; 32] {
        self.count(writer);
        writer.sha.finalize_double()
    }

    fn count(&self, writer: &Writer) {
        if let Some(counter) = self.bytes_hashed {
            counter.fetch_add(writer.fed, Ordering::Relaxed);
        }
    }
}
