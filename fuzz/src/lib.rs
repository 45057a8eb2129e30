//! What the script targets share: a spend made of a fuzzer's bytes.
//!
//! Input: any bytes. Output: a case whose transaction parses and whose flags are legal. Half of the inputs choose what the
//! generator of the judge's tests makes, with keys and signatures; the others are scripts and witness themselves.

#![forbid(unsafe_code)]

use lydian_oracle::generate::{Case, Random, random_case, random_flags};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint};

/// The spend that these bytes stand for.
pub fn case(bytes: &[u8]) -> Case {
    match bytes.split_first() {
        Some((mode, bytes)) if mode % 2 == 1 => raw(bytes),
        _ => random_case(&mut Random::from_bytes(bytes.get(1..).unwrap_or_default()), &[]),
    }
}

/// Flags by their choices, then scriptSig, scriptPubKey and witness elements, each behind a length byte.
fn raw(bytes: &[u8]) -> Case {
    let (choices, mut bytes) = bytes.split_at(bytes.len().min(24));
    let mut take = || {
        let (size, rest) = bytes.split_first()?;
        let (taken, rest) = rest.split_at(usize::from(*size).min(rest.len()));
        bytes = rest;
        Some(taken.to_vec())
    };
    let script_sig = take().unwrap_or_default();
    let script_pubkey = take().unwrap_or_default();
    let witness = std::iter::from_fn(take).collect();
    let flags = random_flags(&mut Random::from_bytes(choices));
    let input = MutInput { prevout: OutPoint::NULL, script_sig, sequence: 0, witness };
    let output = |script_pubkey| MutOutput { value: Amount(1), script_pubkey };
    let tx = MutTx { version: 2, inputs: vec![input], outputs: vec![output(Vec::new())], lock_time: 0 };
    Case { name: "raw", tx, spent: vec![output(script_pubkey)], index: 0, flags }
}
