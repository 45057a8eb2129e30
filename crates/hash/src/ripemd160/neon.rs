//! RIPEMD-160 of four digests at once with NEON.
//!
//! Input: four digests. Output: their hashes. Invariant: element i of every vector belongs to digest i. Cost: about
//! 1,700 vector operations for four digests (a rotation takes two). Must never: run without a `Neon` value.
#![allow(unsafe_code)]

use std::arch::aarch64::{uint32x4_t, veorq_u32, vornq_u32, vst1q_u32};

use super::rounds::{IV, digest_rounds, sixteen_rounds};
use super::{Lanes, store_words};
use crate::sha256::Neon;
use crate::sha256::neon::{add, ch, rotr, splat, words_of_digests, xor3};

impl Lanes<4> for Neon {
    fn hash(self, digests: &[[u8; 32]; 4], out: &mut [[u8; 20]; 4]) {
        // SAFETY: a `Neon` exists only where the CPU has neon (`detect.rs`).
        unsafe { hash(digests, out) }
    }
}

digest_rounds!("neon", uint32x4_t);

#[target_feature(enable = "neon")]
fn hash(digests: &[[u8; 32]; 4], out: &mut [[u8; 20]; 4]) {
    let mut words = [[0; 4]; 5];
    for (row, vector) in words.iter_mut().zip(hash_words(words_of_digests(digests))) {
        // SAFETY: the row is 16 writable bytes, aligned as words.
        unsafe { vst1q_u32((&raw mut *row).cast(), vector) }
    }
    store_words(&words, out);
}

/// (x | !y) ^ z
#[inline]
#[target_feature(enable = "neon")]
fn or_not_xor(x: uint32x4_t, y: uint32x4_t, z: uint32x4_t) -> uint32x4_t {
    veorq_u32(vornq_u32(x, y), z)
}
