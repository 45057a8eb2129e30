//! Hash functions of Bitcoin: SHA-256 (single, double, tagged, midstates), HASH160, RIPEMD-160, SHA-1, SipHash, merkle root,
//! MuHash3072.
//!
//! Input: byte slices. Output: fixed arrays in the order the hash function writes them (txids are shown reversed; that is
//! the caller's business). Invariants: every kernel gives the same answer as the plain twin beside it; which one runs is
//! decided once, from the CPU, in `sha256/detect.rs`. Cost: one compression per 64 bytes (`docs/benchmarks/hash.md`), no
//! allocation on the hashing paths. Must never: fail, or answer differently on two machines; no I/O, no clock.

#![deny(unsafe_code)]

mod legacy;
mod merkle;
mod muhash;
mod sha256;
mod siphash;
mod tagged;

pub use legacy::{hash160, ripemd160, sha1};
pub use merkle::{merkle_root, merkle_root_with};
pub use muhash::MuHash3072;
pub use sha256::{
    BatchKernel, Kernels, Message, Midstate, Sha256, StreamKernel, kernels, sha256, sha256d, sha256d_64,
    sha256d_64_with, sha256d_many, sha256d_many_with,
};
pub use siphash::SipHasher;
pub use tagged::{BIP0340_CHALLENGE, TAP_BRANCH, TAP_LEAF, TAP_SIGHASH, TAP_TWEAK, Tag, tagged};
