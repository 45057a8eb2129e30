//! Transactions and blocks under construction: plain owned structures and their encoding.
//!
//! For generators, mutators and tests; validation never uses them, because it reads bytes in place. Core's
//! `CMutableTransaction`.

use crate::block::{Block, WITNESS_COMMITMENT_HEADER};
use crate::header::Header;
use crate::ids::{Amount, OutPoint, Txid};
use crate::reader::write_compact_size;
use crate::transaction::{Transaction, Tx};
use lydian_hash::{merkle_root, sha256d};

/// A transaction under construction.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MutTx {
    pub version: u32,
    pub inputs: Vec<MutInput>,
    pub outputs: Vec<MutOutput>,
    pub lock_time: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutInput {
    pub prevout: OutPoint,
    pub script_sig: Vec<u8>,
    pub sequence: u32,
    pub witness: Vec<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutOutput {
    pub value: Amount,
    pub script_pubkey: Vec<u8>,
}

impl MutTx {
    pub fn has_witness(&self) -> bool {
        self.inputs.iter().any(|input| !input.witness.is_empty())
    }

    /// Encodes the transaction, with witnesses if any input has one (BIP-0144).
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_to(&mut out, self.has_witness());
        out
    }

    /// Encodes the transaction without witnesses, which is what the txid commits to.
    pub fn encode_stripped(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_to(&mut out, false);
        out
    }

    pub fn txid(&self) -> Txid {
        Txid(sha256d(&self.encode_stripped()))
    }

    /// The same transaction as validation sees it. `None` if its encoding does not parse back (no inputs, but outputs).
    pub fn to_transaction(&self) -> Option<Transaction> {
        Transaction::parse(self.encode()).ok()
    }

    fn encode_to(&self, out: &mut Vec<u8>, with_witness: bool) {
        out.extend_from_slice(&self.version.to_le_bytes());
        if with_witness {
            out.extend_from_slice(&[0, 1]);
        }
        write_compact_size(out, self.inputs.len());
        for input in &self.inputs {
            out.extend_from_slice(&input.prevout.to_bytes());
            write_var_bytes(out, &input.script_sig);
            out.extend_from_slice(&input.sequence.to_le_bytes());
        }
        write_compact_size(out, self.outputs.len());
        for output in &self.outputs {
            out.extend_from_slice(&output.value.0.to_le_bytes());
            write_var_bytes(out, &output.script_pubkey);
        }
        if with_witness {
            for input in &self.inputs {
                write_compact_size(out, input.witness.len());
                input.witness.iter().for_each(|item| write_var_bytes(out, item));
            }
        }
        out.extend_from_slice(&self.lock_time.to_le_bytes());
    }
}

impl From<Tx<'_>> for MutTx {
    fn from(tx: Tx<'_>) -> MutTx {
        let input = |input: crate::transaction::Input<'_>| MutInput {
            prevout: input.prevout,
            script_sig: input.script_sig.to_vec(),
            sequence: input.sequence,
            witness: input.witness.iter().map(<[u8]>::to_vec).collect(),
        };
        let output = |output: crate::transaction::Output<'_>| MutOutput {
            value: output.value,
            script_pubkey: output.script_pubkey.to_vec(),
        };
        MutTx {
            version: tx.version(),
            inputs: tx.inputs().map(input).collect(),
            outputs: tx.outputs().map(output).collect(),
            lock_time: tx.lock_time(),
        }
    }
}

/// Appends a CompactSize length and the bytes.
pub fn write_var_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_compact_size(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// A block under construction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutBlock {
    pub header: Header,
    pub txs: Vec<MutTx>,
}

impl MutBlock {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.header.to_bytes().to_vec();
        write_compact_size(&mut out, self.txs.len());
        for tx in &self.txs {
            out.extend_from_slice(&tx.encode());
        }
        out
    }

    /// Writes the merkle root of the transactions into the header.
    pub fn seal_merkle_root(&mut self) {
        let mut txids: Vec<_> = self.txs.iter().map(|tx| tx.txid().0).collect();
        self.header.merkle_root = merkle_root(&mut txids).0;
    }

    /// Writes the witness commitment into the last coinbase output that carries one, if there is such an output. The
    /// coinbase's witness must already hold the reserved value (BIP-0141).
    pub fn seal_witness_commitment(&mut self) {
        let mut wtxids: Vec<_> = self.txs.iter().map(|tx| sha256d(&tx.encode())).collect();
        let Some(coinbase) = self.txs.first_mut() else { return };
        wtxids[0] = [0; 32];
        let reserved = coinbase.inputs.first().and_then(|input| input.witness.first()).cloned().unwrap_or_default();
        let mut preimage = merkle_root(&mut wtxids).0.to_vec();
        preimage.extend_from_slice(&reserved);
        let carrier = |output: &&mut MutOutput| {
            output.script_pubkey.len() >= 38 && output.script_pubkey.starts_with(&WITNESS_COMMITMENT_HEADER)
        };
        if let Some(output) = coinbase.outputs.iter_mut().rev().find(carrier) {
            output.script_pubkey[6..38].copy_from_slice(&sha256d(&preimage));
        }
    }

    /// Makes a block of regtest valid again after a change: witness commitment, merkle root and proof of work.
    pub fn seal_on_regtest(&mut self) {
        self.seal_witness_commitment();
        self.seal_merkle_root();
        self.seal_work_on_regtest();
    }

    /// Finds a nonce for the target of regtest, which half of all hashes meet.
    pub fn seal_work_on_regtest(&mut self) {
        let mut target = [0xff; 32];
        target[31] = 0x7f;
        let is_found = self.seal_proof_of_work(&target);
        assert!(is_found, "half of all nonces will do");
    }

    /// Tries nonces until the hash is at most `target` (little-endian bytes). Returns false if none of the 2^32 nonces
    /// works.
    pub fn seal_proof_of_work(&mut self, target: &[u8; 32]) -> bool {
        let is_at_most = |hash: &[u8; 32]| hash.iter().rev().le(target.iter().rev());
        (0..=u32::MAX).any(|nonce| {
            self.header.nonce = nonce;
            is_at_most(&self.header.hash().0)
        })
    }
}

impl From<&Block> for MutBlock {
    fn from(block: &Block) -> MutBlock {
        MutBlock { header: *block.header(), txs: block.txs().map(MutTx::from).collect() }
    }
}
