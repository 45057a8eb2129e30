//! RIPEMD-160 of sixteen digests at once with AVX-512.
//!
//! Input: sixteen digests. Output: their hashes. Invariant: element i of every vector belongs to digest i. Cost: about
//! 1,300 vector operations for sixteen digests. Must never: run without an `Avx512` value.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm256_loadu_si256, _mm512_storeu_si512, _mm512_ternarylogic_epi32, _mm512_zextsi256_si512,
};

use super::rounds::{IV, digest_rounds, sixteen_rounds};
use super::{Lanes, store_words};
use crate::sha256::Avx512;
use crate::sha256::avx512::{add, ch, rotr, splat, transpose, xor3};

impl Lanes<16> for Avx512 {
    fn hash(self, digests: &[[u8; 32]; 16], out: &mut [[u8; 20]; 16]) {
        // SAFETY: an `Avx512` exists only where the CPU has avx512f and avx512bw (`detect.rs`).
        unsafe { hash(digests, out) }
    }
}

digest_rounds!("avx512f,avx512bw", __m512i);

#[target_feature(enable = "avx512f,avx512bw")]
fn hash(digests: &[[u8; 32]; 16], out: &mut [[u8; 20]; 16]) {
    let rows = std::array::from_fn(|i| {
        // SAFETY: a digest is 32 readable bytes; the load needs no alignment.
        _mm512_zextsi256_si512(unsafe { _mm256_loadu_si256((&raw const digests[i]).cast()) })
    });
    let [w0, w1, w2, w3, w4, w5, w6, w7, ..] = transpose(rows);
    let mut words = [[0; 16]; 5];
    for (row, vector) in words.iter_mut().zip(hash_words([w0, w1, w2, w3, w4, w5, w6, w7])) {
        // SAFETY: the row is 64 writable bytes; the store needs no alignment.
        unsafe { _mm512_storeu_si512((&raw mut *row).cast(), vector) }
    }
    store_words(&words, out);
}

/// (x | !y) ^ z
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn or_not_xor(x: __m512i, y: __m512i, z: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<OR_NOT_XOR>(x, y, z)
}

/// The table of (x | !y) ^ z: bit 4 x + 2 y + z is its value.
const OR_NOT_XOR: i32 = 0x59;

#[cfg(test)]
mod tests {
    use super::OR_NOT_XOR;

    /// Also on CPUs without AVX-512.
    #[test]
    fn the_table_is_that_of_the_function() {
        for index in 0..8 {
            let (x, y, z) = (index & 4 != 0, index & 2 != 0, index & 1 != 0);
            assert_eq!((OR_NOT_XOR >> index) & 1 == 1, (x | !y) ^ z, "{x} {y} {z}");
        }
    }
}
