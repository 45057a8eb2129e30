//! SHA-256 of eight messages at once with AVX2, for CPUs that have neither the SHA instructions nor AVX-512.
//!
//! Input: eight blocks. Output: the eight states. Invariant: element i of every vector belongs to message i. Cost:
//! about 3,000 vector operations for eight blocks (a rotation takes three), two 8 x 8 transpositions. Must never: run
//! without an `Avx2` value.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm256_add_epi32, _mm256_and_si256, _mm256_loadu_si256, _mm256_or_si256,
    _mm256_permute2x128_si256, _mm256_set_epi64x, _mm256_set1_epi32, _mm256_shuffle_epi8, _mm256_sll_epi32,
    _mm256_srl_epi32, _mm256_srli_epi32, _mm256_storeu_si256, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_xor_si256,
};

use super::detect::Avx2;
use super::lanes::Lanes;
use super::rounds::{final_rounds, lane_rounds, scheduling_rounds};
use super::{IV, K, PAIR_PADDING_KW, State};

/// The chaining words: row w holds word w of every lane.
#[derive(Clone, Debug)]
#[repr(align(32))]
pub(crate) struct Columns([[u32; 8]; 8]);

impl Lanes<8> for Avx2 {
    type States = Columns;
    /// Eight lanes take as long as two messages of the plain kernel.
    const FEW: usize = 2;

    fn fresh() -> Columns {
        Columns(IV.map(|word| [word; 8]))
    }

    fn state(states: &Columns, lane: usize) -> State {
        states.0.map(|row| row[lane])
    }

    fn set_state(states: &mut Columns, lane: usize, state: &State) {
        for (row, word) in states.0.iter_mut().zip(state) {
            row[lane] = *word;
        }
    }

    fn absorb(self, states: &mut Columns, blocks: [&[u8; 64]; 8]) {
        // SAFETY: an `Avx2` exists only where the CPU has avx2 (`detect.rs`).
        unsafe { absorb(states, blocks) }
    }

    fn pairs(self, pairs: &[[u8; 64]; 8], out: &mut [[u8; 32]; 8]) {
        // SAFETY: an `Avx2` exists only where the CPU has avx2 (`detect.rs`).
        unsafe { pairs_to_digests(pairs, out) }
    }

    fn again(self, digests: &mut [[u8; 32]; 8]) {
        // SAFETY: an `Avx2` exists only where the CPU has avx2 (`detect.rs`).
        unsafe { again(digests) }
    }
}

lane_rounds!("avx2", __m256i);

#[target_feature(enable = "avx2")]
fn absorb(states: &mut Columns, blocks: [&[u8; 64]; 8]) {
    let before: [__m256i; 8] = std::array::from_fn(|i| {
        // SAFETY: a row is 32 readable bytes; the load needs no alignment.
        unsafe { _mm256_loadu_si256((&raw const states.0[i]).cast()) }
    });
    let after = add_states(rounds(before, load_words(blocks)), before);
    for (row, vector) in states.0.iter_mut().zip(after) {
        // SAFETY: the row is 32 writable bytes; the store needs no alignment.
        unsafe { _mm256_storeu_si256((&raw mut *row).cast(), vector) }
    }
}

#[target_feature(enable = "avx2")]
fn pairs_to_digests(pairs: &[[u8; 64]; 8], out: &mut [[u8; 32]; 8]) {
    store_digests(double_of_pairs(load_words(pairs.each_ref())), out);
}

#[target_feature(enable = "avx2")]
fn again(digests: &mut [[u8; 32]; 8]) {
    let words = transpose(std::array::from_fn(|i| load(&digests[i])));
    store_digests(hash_of_digest(words), digests);
}

/// The sixteen words of the eight blocks.
#[inline]
#[target_feature(enable = "avx2")]
fn load_words(blocks: [&[u8; 64]; 8]) -> [__m256i; 16] {
    let low = transpose(std::array::from_fn(|i| load(&blocks[i].as_chunks::<32>().0[0])));
    let high = transpose(std::array::from_fn(|i| load(&blocks[i].as_chunks::<32>().0[1])));
    std::array::from_fn(|i| if i < 8 { low[i] } else { high[i - 8] })
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(half: &[u8; 32]) -> __m256i {
    // SAFETY: half a block is 32 readable bytes; the load needs no alignment.
    swap_bytes(unsafe { _mm256_loadu_si256((&raw const *half).cast()) })
}

/// Writes the eight words of every lane as the lane's digest.
#[inline]
#[target_feature(enable = "avx2")]
fn store_digests(state: [__m256i; 8], out: &mut [[u8; 32]; 8]) {
    for (digest, row) in out.iter_mut().zip(transpose(state)) {
        // SAFETY: a digest is 32 writable bytes; the store needs no alignment.
        unsafe { _mm256_storeu_si256((&raw mut *digest).cast(), swap_bytes(row)) }
    }
}

/// Moves row r, column c to row c, column r.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn transpose(rows: [__m256i; 8]) -> [__m256i; 8] {
    let mut quads = rows;
    for (out, rows) in quads.as_chunks_mut::<4>().0.iter_mut().zip(rows.as_chunks::<4>().0) {
        let low01 = _mm256_unpacklo_epi32(rows[0], rows[1]);
        let high01 = _mm256_unpackhi_epi32(rows[0], rows[1]);
        let low23 = _mm256_unpacklo_epi32(rows[2], rows[3]);
        let high23 = _mm256_unpackhi_epi32(rows[2], rows[3]);
        out[0] = _mm256_unpacklo_epi64(low01, low23);
        out[1] = _mm256_unpackhi_epi64(low01, low23);
        out[2] = _mm256_unpacklo_epi64(high01, high23);
        out[3] = _mm256_unpackhi_epi64(high01, high23);
    }
    // quads[4 * j + c], half h: column 4 * h + c of the rows 4 * j to 4 * j + 3.
    let mut out = rows;
    for c in 0..4 {
        out[c] = _mm256_permute2x128_si256::<0x20>(quads[c], quads[4 + c]);
        out[4 + c] = _mm256_permute2x128_si256::<0x31>(quads[c], quads[4 + c]);
    }
    out
}

/// Reverses the bytes of every word: SHA-256 is big-endian.
#[inline]
#[target_feature(enable = "avx2")]
fn swap_bytes(x: __m256i) -> __m256i {
    const HIGH: i64 = 0x0c0d_0e0f_0809_0a0b;
    const LOW: i64 = 0x0405_0607_0001_0203;
    _mm256_shuffle_epi8(x, _mm256_set_epi64x(HIGH, LOW, HIGH, LOW))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn add(x: __m256i, y: __m256i) -> __m256i {
    _mm256_add_epi32(x, y)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn rotr<const COUNT: i32>(x: __m256i) -> __m256i {
    // With constant counts the compiler emits the immediate forms.
    let right = _mm256_srl_epi32(x, _mm_cvtsi32_si128(COUNT));
    _mm256_or_si256(right, _mm256_sll_epi32(x, _mm_cvtsi32_si128(32 - COUNT)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn shr<const COUNT: i32>(x: __m256i) -> __m256i {
    _mm256_srli_epi32::<COUNT>(x)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn xor3(x: __m256i, y: __m256i, z: __m256i) -> __m256i {
    _mm256_xor_si256(x, _mm256_xor_si256(y, z))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn ch(x: __m256i, y: __m256i, z: __m256i) -> __m256i {
    _mm256_xor_si256(z, _mm256_and_si256(x, _mm256_xor_si256(y, z)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn maj(x: __m256i, y: __m256i, z: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_and_si256(x, y), _mm256_and_si256(z, _mm256_or_si256(x, y)))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn splat(word: u32) -> __m256i {
    _mm256_set1_epi32(word.cast_signed())
}
