//! Code that the targets share.
//!
//! A spend built from the fuzzer's bytes for scripts, a frame for address files, and a node for RPC. Input: any bytes.
//! Output, for scripts: a case whose transaction parses and whose flags are legal. Half of the inputs are choices for
//! the generator of the judge's tests, which makes keys and signatures; the others are used directly as scripts and
//! witness.

#![forbid(unsafe_code)]

pub mod rpc;

use lydian_hash::sha256d;
use lydian_oracle::generate::{Case, Random, random_case, random_flags};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

/// Regtest's message start.
pub const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

/// Returns a random number generator with a fixed seed.
pub fn random() -> ChaCha20Rng {
    ChaCha20Rng::from_seed([7; 32])
}

/// Returns an address file: magic, content, checksum. If the first byte is odd, the rest is returned unchanged.
pub fn framed(bytes: &[u8]) -> Vec<u8> {
    match bytes.split_first() {
        Some((mode, content)) if mode % 2 == 0 => {
            let mut file = [&MAGIC[..], content].concat();
            let checksum = sha256d(&file);
            file.extend_from_slice(&checksum);
            file
        }
        Some((_, file)) => file.to_vec(),
        None => Vec::new(),
    }
}

/// Returns the spend that these bytes encode.
pub fn case(bytes: &[u8]) -> Case {
    match bytes.split_first() {
        Some((mode, bytes)) if mode % 2 == 1 => raw(bytes),
        _ => random_case(&mut Random::from_bytes(bytes.get(1..).unwrap_or_default()), &[]),
    }
}

/// Reads choices for the flags, then scriptSig, scriptPubKey and witness elements, each after a length byte.
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
