//! Hash functions of Bitcoin: SHA-256 (single, double, tagged, midstates), HASH160, RIPEMD-160, SHA-1, MuHash3072.
//!
//! Input: byte slices. Output: fixed arrays. No I/O, no clock, no allocation on the hashing paths.
//! Must never: fail, or answer differently on two machines.

#![deny(unsafe_code)]

/// SHA-256 in progress; `Clone` is how a midstate is kept.
#[derive(Clone, Debug)]
pub struct Sha256 {
    bytes: Vec<u8>,
}
