//! SHA-256 of four messages at once with NEON, for CPUs without the SHA-2 instructions, such as that of a Raspberry Pi
//! 4.
//!
//! Input: four blocks. Output: the four states. Invariant: element i of every vector belongs to message i. Cost: about
//! 3,000 vector operations for four blocks (a rotation takes two), four 4 x 4 transpositions. Must never: run without a
//! `Neon` value.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    uint32x4_t, vaddq_u32, vbslq_u32, vdupq_n_s32, vdupq_n_u32, veorq_u32, vld1q_u8, vld1q_u32, vreinterpretq_u8_u32,
    vreinterpretq_u32_u8, vreinterpretq_u32_u64, vreinterpretq_u64_u32, vrev32q_u8, vshlq_u32, vshrq_n_u32,
    vsriq_n_u32, vst1q_u8, vst1q_u32, vtrn1q_u32, vtrn1q_u64, vtrn2q_u32, vtrn2q_u64,
};

use super::detect::Neon;
use super::lanes::Lanes;
use super::rounds::{final_rounds, lane_rounds, scheduling_rounds};
use super::{IV, K, PAIR_PADDING_KW, State};

/// The chaining words: row w holds word w of every lane.
#[derive(Clone, Debug)]
#[repr(align(16))]
pub(crate) struct Columns([[u32; 4]; 8]);

impl Lanes<4> for Neon {
    type States = Columns;
    /// Four lanes take longer than one message of the plain kernel.
    const FEW: usize = 1;

    fn fresh() -> Columns {
        Columns(IV.map(|word| [word; 4]))
    }

    fn state(states: &Columns, lane: usize) -> State {
        states.0.map(|row| row[lane])
    }

    fn set_state(states: &mut Columns, lane: usize, state: &State) {
        for (row, word) in states.0.iter_mut().zip(state) {
            row[lane] = *word;
        }
    }

    fn absorb(self, states: &mut Columns, blocks: [&[u8; 64]; 4]) {
        // SAFETY: a `Neon` exists only where the CPU has neon (`detect.rs`).
        unsafe { absorb(states, blocks) }
    }

    fn pairs(self, pairs: &[[u8; 64]; 4], out: &mut [[u8; 32]; 4]) {
        // SAFETY: a `Neon` exists only where the CPU has neon (`detect.rs`).
        unsafe { pairs_to_digests(pairs, out) }
    }

    fn again(self, digests: &mut [[u8; 32]; 4]) {
        // SAFETY: a `Neon` exists only where the CPU has neon (`detect.rs`).
        unsafe { again(digests) }
    }
}

lane_rounds!("neon", uint32x4_t);

#[target_feature(enable = "neon")]
fn absorb(states: &mut Columns, blocks: [&[u8; 64]; 4]) {
    let before: [uint32x4_t; 8] = std::array::from_fn(|i| {
        // SAFETY: a row is 16 readable bytes, aligned as words.
        unsafe { vld1q_u32((&raw const states.0[i]).cast()) }
    });
    let after = add_states(rounds(before, load_words(blocks)), before);
    for (row, vector) in states.0.iter_mut().zip(after) {
        // SAFETY: the row is 16 writable bytes, aligned as words.
        unsafe { vst1q_u32((&raw mut *row).cast(), vector) }
    }
}

#[target_feature(enable = "neon")]
fn pairs_to_digests(pairs: &[[u8; 64]; 4], out: &mut [[u8; 32]; 4]) {
    store_digests(double_of_pairs(load_words(pairs.each_ref())), out);
}

#[target_feature(enable = "neon")]
fn again(digests: &mut [[u8; 32]; 4]) {
    let words = words_of_digests(digests).map(|word| swap_bytes(word));
    store_digests(hash_of_digest(words), digests);
}

/// The words of four digests, their bytes in memory order.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn words_of_digests(digests: &[[u8; 32]; 4]) -> [uint32x4_t; 8] {
    let low = transpose(std::array::from_fn(|i| load(&digests[i].as_chunks::<16>().0[0])));
    let high = transpose(std::array::from_fn(|i| load(&digests[i].as_chunks::<16>().0[1])));
    std::array::from_fn(|i| if i < 4 { low[i] } else { high[i - 4] })
}

/// The sixteen words of the four blocks.
#[inline]
#[target_feature(enable = "neon")]
fn load_words(blocks: [&[u8; 64]; 4]) -> [uint32x4_t; 16] {
    let mut words = [splat(0); 16];
    for (quarter, words) in words.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let rows = std::array::from_fn(|i| swap_bytes(load(&blocks[i].as_chunks::<16>().0[quarter])));
        *words = transpose(rows);
    }
    words
}

#[inline]
#[target_feature(enable = "neon")]
fn load(quarter: &[u8; 16]) -> uint32x4_t {
    // SAFETY: a quarter of a block is 16 readable bytes; the load needs no alignment.
    vreinterpretq_u32_u8(unsafe { vld1q_u8((&raw const *quarter).cast()) })
}

/// Writes the eight words of every lane as the lane's digest.
#[inline]
#[target_feature(enable = "neon")]
fn store_digests(state: [uint32x4_t; 8], out: &mut [[u8; 32]; 4]) {
    let [a, b, c, d, e, f, g, h] = state;
    let (low, high) = (transpose([a, b, c, d]), transpose([e, f, g, h]));
    for (i, digest) in out.iter_mut().enumerate() {
        let halves = digest.as_chunks_mut::<16>().0;
        for (half, words) in halves.iter_mut().zip([low[i], high[i]]) {
            // SAFETY: half a digest is 16 writable bytes; the store needs no alignment.
            unsafe { vst1q_u8((&raw mut *half).cast(), vreinterpretq_u8_u32(swap_bytes(words))) }
        }
    }
}

/// Moves row r, column c to row c, column r.
#[inline]
#[target_feature(enable = "neon")]
fn transpose([r0, r1, r2, r3]: [uint32x4_t; 4]) -> [uint32x4_t; 4] {
    let (even01, odd01) = (vtrn1q_u32(r0, r1), vtrn2q_u32(r0, r1));
    let (even23, odd23) = (vtrn1q_u32(r2, r3), vtrn2q_u32(r2, r3));
    let [a, b, c, d] = [even01, odd01, even23, odd23].map(|rows| vreinterpretq_u64_u32(rows));
    [vtrn1q_u64(a, c), vtrn1q_u64(b, d), vtrn2q_u64(a, c), vtrn2q_u64(b, d)].map(|row| vreinterpretq_u32_u64(row))
}

/// Reverses the bytes of every word: SHA-256 is big-endian.
#[inline]
#[target_feature(enable = "neon")]
fn swap_bytes(x: uint32x4_t) -> uint32x4_t {
    vreinterpretq_u32_u8(vrev32q_u8(vreinterpretq_u8_u32(x)))
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn add(x: uint32x4_t, y: uint32x4_t) -> uint32x4_t {
    vaddq_u32(x, y)
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn rotr<const COUNT: i32>(x: uint32x4_t) -> uint32x4_t {
    // With a constant count the compiler emits the immediate form of the shift to the left.
    vsriq_n_u32::<COUNT>(vshlq_u32(x, vdupq_n_s32(32 - COUNT)), x)
}

#[inline]
#[target_feature(enable = "neon")]
fn shr<const COUNT: i32>(x: uint32x4_t) -> uint32x4_t {
    vshrq_n_u32::<COUNT>(x)
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn xor3(x: uint32x4_t, y: uint32x4_t, z: uint32x4_t) -> uint32x4_t {
    veorq_u32(x, veorq_u32(y, z))
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn ch(x: uint32x4_t, y: uint32x4_t, z: uint32x4_t) -> uint32x4_t {
    vbslq_u32(x, y, z)
}

/// Where x and y differ, z decides.
#[inline]
#[target_feature(enable = "neon")]
fn maj(x: uint32x4_t, y: uint32x4_t, z: uint32x4_t) -> uint32x4_t {
    vbslq_u32(veorq_u32(x, y), z, y)
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn splat(word: u32) -> uint32x4_t {
    vdupq_n_u32(word)
}
