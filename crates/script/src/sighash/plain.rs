//! The plain twin of the legacy signature hash, as in the first Bitcoin program: copy the transaction, blank the parts
//! that are not signed, serialise, hash. No midstate, no cache; for tests and benchmarks. Cost: several copies of the
//! transaction.

use super::{OUTPUTS_MASK, SIGHASH_ANYONECANPAY, SIGHASH_NONE, SIGHASH_SINGLE};
use crate::iter::ops;
use lydian_hash::sha256d;
use lydian_primitives::build::{MutOutput, MutTx};
use lydian_primitives::{Amount, Tx};

/// Equal to [`super::TxContext::legacy`] for a script code without a push that is cut off.
pub fn legacy(tx: Tx<'_>, input: usize, script_code: &[u8], hash_type: u32) -> [u8; 32] {
    let mut copy = MutTx::from(tx);
    if hash_type & OUTPUTS_MASK == SIGHASH_SINGLE && input >= copy.outputs.len() {
        let mut one = [0; 32];
        one[0] = 1;
        return one;
    }
    for (index, other) in copy.inputs.iter_mut().enumerate() {
        other.witness.clear();
        other.script_sig = if index == input { without_code_separators(script_code) } else { Vec::new() };
    }
    if matches!(hash_type & OUTPUTS_MASK, SIGHASH_NONE | SIGHASH_SINGLE) {
        let others = copy.inputs.iter_mut().enumerate().filter(|(index, _)| *index != input);
        others.for_each(|(_, other)| other.sequence = 0);
    }
    match hash_type & OUTPUTS_MASK {
        SIGHASH_NONE => copy.outputs.clear(),
        SIGHASH_SINGLE => {
            copy.outputs.truncate(input + 1);
            let blank = MutOutput { value: Amount(-1), script_pubkey: Vec::new() };
            copy.outputs[..input].fill(blank);
        }
        _ => {}
    }
    if hash_type & SIGHASH_ANYONECANPAY != 0 {
        copy.inputs = vec![copy.inputs.swap_remove(input)];
    }
    let mut bytes = copy.encode_stripped();
    bytes.extend_from_slice(&hash_type.to_le_bytes());
    sha256d(&bytes)
}

fn without_code_separators(script: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut from = 0;
    for op in ops(script).flatten() {
        if op.opcode != 0xab {
            kept.extend_from_slice(&script[from..op.end]);
        }
        from = op.end;
    }
    kept
}
