//! Hash functions of Bitcoin: SHA-256 (single, double, tagged, midstates), HASH160, RIPEMD-160, SHA-1, SipHash, merkle
//! root, MuHash3072.
//!
//! Input: byte slices. Output: fixed-size arrays in the byte order of the hash function (reversing a txid for display
//! is up to the caller). Invariants: every kernel returns the same result as the plain Rust implementation;
//! `sha256/detect.rs` chooses the kernel once, from the CPU features. Cost: one compression per 64 bytes
//! (`docs/benchmarks/hash.md`), no allocation on the hashing paths. Must never: fail, return different results on
//! different machines, do I/O, or read a clock.

#![deny(unsafe_code)]

mod legacy;
mod merkle;
mod muhash;
mod ripemd160;
mod sha256;
mod siphash;
mod tagged;

pub use legacy::{hash160, ripemd160, sha1};
pub use merkle::{merkle_root, merkle_root_with};
pub use muhash::{Elements, MuHash3072};
pub use ripemd160::{hash160_many, hash160_many_with, ripemd160_many_with};
pub use sha256::{
    BatchKernel, Kernels, Message, Midstate, MuHashKernel, Ripemd160Kernel, Sha256, StreamKernel, kernels, sha256,
    sha256_many, sha256_many_with, sha256d, sha256d_64, sha256d_64_with, sha256d_many, sha256d_many_with,
};
pub use siphash::SipHasher;
pub use tagged::{BIP0340_CHALLENGE, TAP_BRANCH, TAP_LEAF, TAP_SIGHASH, TAP_TWEAK, Tag, tagged};
