//! SHA-256 of sixteen messages at once with AVX-512.
//!
//! Its rotations and three-input logic reduce a round to 17 operations. Input: sixteen blocks. Output: the sixteen
//! states. Invariant: element i of every vector belongs to message i. Cost: about 1,700 vector operations for sixteen
//! blocks and a 16 x 16 transposition. Must never: run without an `Avx512` value.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm256_loadu_si256, _mm256_storeu_si256, _mm512_add_epi32, _mm512_castsi512_si256,
    _mm512_extracti64x4_epi64, _mm512_loadu_si512, _mm512_permutexvar_epi64, _mm512_ror_epi32, _mm512_set_epi64,
    _mm512_set1_epi32, _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_shuffle_i32x4, _mm512_srli_epi32,
    _mm512_storeu_si512, _mm512_ternarylogic_epi32, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi32, _mm512_unpacklo_epi64, _mm512_zextsi256_si512,
};

use super::detect::Avx512;
use super::lanes::Lanes;
use super::rounds::{final_rounds, lane_rounds, scheduling_rounds};
use super::{IV, K, PAIR_PADDING_KW, State};

/// The chaining words: row w holds word w of every lane.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Columns([[u32; 16]; 8]);

impl Lanes<16> for Avx512 {
    type States = Columns;
    /// Measured against the SHA instructions, where four pairs or six single blocks take as long as sixteen lanes here.
    const FEW: usize = 5;

    fn fresh() -> Columns {
        Columns(IV.map(|word| [word; 16]))
    }

    fn state(states: &Columns, lane: usize) -> State {
        states.0.map(|row| row[lane])
    }

    fn set_state(states: &mut Columns, lane: usize, state: &State) {
        for (row, word) in states.0.iter_mut().zip(state) {
            row[lane] = *word;
        }
    }

    fn absorb(self, states: &mut Columns, blocks: [&[u8; 64]; 16]) {
        // SAFETY: an `Avx512` exists only where the CPU has avx512f and avx512bw (`detect.rs`).
        unsafe { absorb(states, blocks) }
    }

    fn pairs(self, pairs: &[[u8; 64]; 16], out: &mut [[u8; 32]; 16]) {
        // SAFETY: an `Avx512` exists only where the CPU has avx512f and avx512bw (`detect.rs`).
        unsafe { pairs_to_digests(pairs, out) }
    }

    fn again(self, digests: &mut [[u8; 32]; 16]) {
        // SAFETY: an `Avx512` exists only where the CPU has avx512f and avx512bw (`detect.rs`).
        unsafe { again(digests) }
    }
}

lane_rounds!("avx512f,avx512bw", __m512i);

#[target_feature(enable = "avx512f,avx512bw")]
fn absorb(states: &mut Columns, blocks: [&[u8; 64]; 16]) {
    let before: [__m512i; 8] = std::array::from_fn(|i| load_row(&states.0[i]));
    let w = transpose(std::array::from_fn(|i| load(blocks[i])));
    let after = add_states(rounds(before, w), before);
    for (row, vector) in states.0.iter_mut().zip(after) {
        // SAFETY: the row is 64 writable bytes; the store needs no alignment.
        unsafe { _mm512_storeu_si512((&raw mut *row).cast(), vector) }
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn pairs_to_digests(pairs: &[[u8; 64]; 16], out: &mut [[u8; 32]; 16]) {
    let w = transpose(std::array::from_fn(|i| load(&pairs[i])));
    store_digests(double_of_pairs(w), out);
}

#[target_feature(enable = "avx512f,avx512bw")]
fn again(digests: &mut [[u8; 32]; 16]) {
    let rows = std::array::from_fn(|i| {
        // SAFETY: a digest is 32 readable bytes; the load needs no alignment.
        let half = unsafe { _mm256_loadu_si256((&raw const digests[i]).cast()) };
        swap_bytes(_mm512_zextsi256_si512(half))
    });
    let [w0, w1, w2, w3, w4, w5, w6, w7, ..] = transpose(rows);
    store_digests(hash_of_digest([w0, w1, w2, w3, w4, w5, w6, w7]), digests);
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(block: &[u8; 64]) -> __m512i {
    // SAFETY: a block is 64 readable bytes; the load needs no alignment.
    swap_bytes(unsafe { _mm512_loadu_si512((&raw const *block).cast()) })
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_row(row: &[u32; 16]) -> __m512i {
    // SAFETY: a row is 64 readable bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512((&raw const *row).cast()) }
}

/// Moves row r, column c to row c, column r.
///
/// Transposes first 4 x 4 words within each quarter of the registers, then the quarters themselves.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn transpose(rows: [__m512i; 16]) -> [__m512i; 16] {
    let quads = four_by_four(rows);
    // quads[4 * j + c], quarter q: column 4 * q + c of the rows 4 * j to 4 * j + 3.
    let mut out = [_mm512_setzero_si512(); 16];
    for c in 0..4 {
        let even_low = _mm512_shuffle_i32x4::<0x88>(quads[c], quads[4 + c]);
        let even_high = _mm512_shuffle_i32x4::<0x88>(quads[8 + c], quads[12 + c]);
        let odd_low = _mm512_shuffle_i32x4::<0xdd>(quads[c], quads[4 + c]);
        let odd_high = _mm512_shuffle_i32x4::<0xdd>(quads[8 + c], quads[12 + c]);
        out[c] = _mm512_shuffle_i32x4::<0x88>(even_low, even_high);
        out[4 + c] = _mm512_shuffle_i32x4::<0x88>(odd_low, odd_high);
        out[8 + c] = _mm512_shuffle_i32x4::<0xdd>(even_low, even_high);
        out[12 + c] = _mm512_shuffle_i32x4::<0xdd>(odd_low, odd_high);
    }
    out
}

/// Transposes the 4 x 4 words in each quarter of each group of four rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn four_by_four<const ROWS: usize>(rows: [__m512i; ROWS]) -> [__m512i; ROWS] {
    let mut out = rows;
    for (out, rows) in out.as_chunks_mut::<4>().0.iter_mut().zip(rows.as_chunks::<4>().0) {
        let low01 = _mm512_unpacklo_epi32(rows[0], rows[1]);
        let high01 = _mm512_unpackhi_epi32(rows[0], rows[1]);
        let low23 = _mm512_unpacklo_epi32(rows[2], rows[3]);
        let high23 = _mm512_unpackhi_epi32(rows[2], rows[3]);
        out[0] = _mm512_unpacklo_epi64(low01, low23);
        out[1] = _mm512_unpackhi_epi64(low01, low23);
        out[2] = _mm512_unpacklo_epi64(high01, high23);
        out[3] = _mm512_unpackhi_epi64(high01, high23);
    }
    out
}

/// Writes the eight words of every lane as the lane's digest.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_digests(state: [__m512i; 8], out: &mut [[u8; 32]; 16]) {
    let quads = four_by_four(state);
    // quads[c] and quads[4 + c], quarter q: the halves of the digest of lane 4 * q + c.
    for c in 0..4 {
        let low = swap_bytes(_mm512_shuffle_i32x4::<0x44>(quads[c], quads[4 + c]));
        let high = swap_bytes(_mm512_shuffle_i32x4::<0xee>(quads[c], quads[4 + c]));
        store_two(low, c, out);
        store_two(high, 8 + c, out);
    }
}

/// Stores x to `lane` and y to `lane` + 4. The quarters of `mixed` are the first halves of x and y, then the second
/// halves.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_two(mixed: __m512i, lane: usize, out: &mut [[u8; 32]; 16]) {
    let both = _mm512_permutexvar_epi64(_mm512_set_epi64(7, 6, 3, 2, 5, 4, 1, 0), mixed);
    // SAFETY: both digests are 32 writable bytes; the stores need no alignment.
    unsafe {
        _mm256_storeu_si256((&raw mut out[lane]).cast(), _mm512_castsi512_si256(both));
        _mm256_storeu_si256((&raw mut out[lane + 4]).cast(), _mm512_extracti64x4_epi64::<1>(both));
    }
}

/// Reverses the bytes of every word: SHA-256 is big-endian.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn swap_bytes(x: __m512i) -> __m512i {
    const HIGH: i64 = 0x0c0d_0e0f_0809_0a0b;
    const LOW: i64 = 0x0405_0607_0001_0203;
    _mm512_shuffle_epi8(x, _mm512_set_epi64(HIGH, LOW, HIGH, LOW, HIGH, LOW, HIGH, LOW))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn add(x: __m512i, y: __m512i) -> __m512i {
    _mm512_add_epi32(x, y)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn rotr<const COUNT: i32>(x: __m512i) -> __m512i {
    _mm512_ror_epi32::<COUNT>(x)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn shr<const COUNT: u32>(x: __m512i) -> __m512i {
    _mm512_srli_epi32::<COUNT>(x)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn xor3(x: __m512i, y: __m512i, z: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0x96>(x, y, z)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn ch(x: __m512i, y: __m512i, z: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xca>(x, y, z)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn maj(x: __m512i, y: __m512i, z: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xe8>(x, y, z)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn splat(word: u32) -> __m512i {
    _mm512_set1_epi32(word.cast_signed())
}
