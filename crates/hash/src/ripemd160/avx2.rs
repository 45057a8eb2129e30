//! RIPEMD-160 of eight digests at once with AVX2.
//!
//! Input: eight digests. Output: their hashes. Invariant: element i of every vector belongs to digest i. Cost: about
//! 2,100 vector operations for eight digests (a rotation takes three). Must never: run without an `Avx2` value.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm256_andnot_si256, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_storeu_si256, _mm256_xor_si256,
};

use super::rounds::{IV, digest_rounds, sixteen_rounds};
use super::{Lanes, store_words};
use crate::sha256::Avx2;
use crate::sha256::avx2::{add, ch, rotr, splat, transpose, xor3};

impl Lanes<8> for Avx2 {
    fn hash(self, digests: &[[u8; 32]; 8], out: &mut [[u8; 20]; 8]) {
        // SAFETY: an `Avx2` exists only where the CPU has avx2 (`detect.rs`).
        unsafe { hash(digests, out) }
    }
}

digest_rounds!("avx2", __m256i);

#[target_feature(enable = "avx2")]
fn hash(digests: &[[u8; 32]; 8], out: &mut [[u8; 20]; 8]) {
    let rows = std::array::from_fn(|i| {
        // SAFETY: a digest is 32 readable bytes; the load needs no alignment.
        unsafe { _mm256_loadu_si256((&raw const digests[i]).cast()) }
    });
    let mut words = [[0; 8]; 5];
    for (row, vector) in words.iter_mut().zip(hash_words(transpose(rows))) {
        // SAFETY: the row is 32 writable bytes; the store needs no alignment.
        unsafe { _mm256_storeu_si256((&raw mut *row).cast(), vector) }
    }
    store_words(&words, out);
}

/// (x | !y) ^ z
#[inline]
#[target_feature(enable = "avx2")]
fn or_not_xor(x: __m256i, y: __m256i, z: __m256i) -> __m256i {
    let neither = _mm256_andnot_si256(x, y); // the complement of x | !y
    _mm256_xor_si256(_mm256_xor_si256(neither, z), _mm256_set1_epi32(-1))
}
