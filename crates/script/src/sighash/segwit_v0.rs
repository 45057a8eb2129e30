//! The signature hash of segwit v0 (BIP-0143).
//!
//! Input: index, script code, hash type (all its bits are kept). Output: 32 bytes. Cost: the script code and 156 bytes;
//! three hashes over all inputs and outputs once per transaction.

use super::{OUTPUTS_MASK, SIGHASH_ANYONECANPAY, SIGHASH_NONE, SIGHASH_SINGLE, TxContext, Writer};
use lydian_hash::sha256;

/// The hashes that all inputs of a transaction commit to.
#[derive(Debug)]
pub(super) struct SegwitV0Parts {
    prevouts: [u8; 32],
    sequences: [u8; 32],
    outputs: [u8; 32],
}

impl TxContext<'_> {
    /// BIP-0143. `script_code` is the part of the witness script after the last executed OP_CODESEPARATOR, or the P2PKH
    /// script of a key hash. SINGLE without a matching output commits to zero. Panics if there is no such input.
    pub fn segwit_v0(&self, input: usize, script_code: &[u8], hash_type: u32) -> [u8; 32] {
        const ZERO: [u8; 32] = [0; 32];
        let parts = self.segwit_v0_parts();
        let is_anyone = hash_type & SIGHASH_ANYONECANPAY != 0;
        let is_all = !matches!(hash_type & OUTPUTS_MASK, SIGHASH_NONE | SIGHASH_SINGLE);
        let outputs = match hash_type & OUTPUTS_MASK {
            SIGHASH_NONE => ZERO,
            SIGHASH_SINGLE if input >= self.tx.output_count() => ZERO,
            SIGHASH_SINGLE => sha256(&self.single_output(input)),
            _ => parts.outputs,
        };
        let mut writer = Writer::new();
        writer
            .u32(self.tx.version())
            .bytes(if is_anyone { &ZERO } else { &parts.prevouts })
            .bytes(if is_all && !is_anyone { &parts.sequences } else { &ZERO })
            .bytes(self.tx.prevout_bytes(input))
            .var_bytes(script_code)
            .bytes(&self.spent[input].value.0.to_le_bytes())
            .bytes(self.tx.sequence_bytes(input))
            .bytes(&outputs)
            .u32(self.tx.lock_time())
            .u32(hash_type);
        self.finish_double(&writer)
    }

    fn segwit_v0_parts(&self) -> &SegwitV0Parts {
        self.segwit_v0.get_or_init(|| {
            let single = self.single();
            SegwitV0Parts {
                prevouts: sha256(&single.prevouts),
                sequences: sha256(&single.sequences),
                outputs: sha256(&single.outputs),
            }
        })
    }
}
