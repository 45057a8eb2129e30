//! SHA-256 with the SHA-2 instructions of ARMv8: one stream, or two interleaved.
//!
//! Input: states in FIPS order, blocks. Output: the states after the blocks. Why two streams: as in `shani`, one
//! dependency chain leaves the unit idle while it waits for the latency of `sha256h`. Cost: 64 instructions of the unit
//! for a block. Must never: run without an `ArmSha2` value.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    uint32x4_t, vaddq_u32, vld1q_u8, vld1q_u32, vreinterpretq_u32_u8, vrev32q_u8, vsha256h2q_u32, vsha256hq_u32,
    vsha256su0q_u32, vsha256su1q_u32, vst1q_u32,
};

use super::detect::ArmSha2;
use super::lanes::TwoStreams;
use super::{K, State};

impl ArmSha2 {
    /// Compresses the blocks of one message in order.
    #[inline]
    pub(crate) fn compress(self, state: &mut State, blocks: &[[u8; 64]]) {
        // SAFETY: an `ArmSha2` exists only where the CPU has sha2 (`detect.rs`).
        unsafe { compress_stream(state, blocks) }
    }
}

impl TwoStreams for ArmSha2 {
    #[inline]
    fn compress_two(self, states: &mut [State; 2], blocks: [&[u8; 64]; 2]) {
        // SAFETY: an `ArmSha2` exists only where the CPU has sha2 (`detect.rs`).
        unsafe { compress_each(states, blocks) }
    }
}

/// The two registers of one stream: words a to d and e to h, lowest first.
#[derive(Clone, Copy)]
struct Registers {
    abcd: uint32x4_t,
    efgh: uint32x4_t,
}

#[target_feature(enable = "neon,sha2")]
fn compress_stream(state: &mut State, blocks: &[[u8; 64]]) {
    let mut streams = [unpack(state)];
    for block in blocks {
        rounds(&mut streams, [block]);
    }
    pack(streams[0], state);
}

#[target_feature(enable = "neon,sha2")]
fn compress_each<const N: usize>(states: &mut [State; N], blocks: [&[u8; 64]; N]) {
    let mut streams = std::array::from_fn(|i| unpack(&states[i]));
    rounds(&mut streams, blocks);
    for (stream, state) in streams.into_iter().zip(states) {
        pack(stream, state);
    }
}

/// Processes one block of each stream; the compiler interleaves them.
#[inline]
#[target_feature(enable = "neon,sha2")]
fn rounds<const N: usize>(streams: &mut [Registers; N], blocks: [&[u8; 64]; N]) {
    let before = *streams;
    let mut words: [[uint32x4_t; 4]; N] = std::array::from_fn(|i| load_words(blocks[i]));
    macro_rules! four_rounds {
        ($($group:literal)*) => {$(
            let k = load(&K, $group);
            for i in 0..N {
                let w = &mut words[i];
                if $group >= 4 {
                    // Schedule words t+16 to t+19 from the vectors starting at t, t+4, t+8 and t+12.
                    let partial = vsha256su0q_u32(w[$group & 3], w[($group + 1) & 3]);
                    w[$group & 3] = vsha256su1q_u32(partial, w[($group + 2) & 3], w[($group + 3) & 3]);
                }
                let kw = vaddq_u32(w[$group & 3], k);
                let s = &mut streams[i];
                let abcd = s.abcd;
                s.abcd = vsha256hq_u32(abcd, s.efgh, kw);
                s.efgh = vsha256h2q_u32(s.efgh, abcd, kw);
            }
        )*};
    }
    four_rounds!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    for (stream, before) in streams.iter_mut().zip(before) {
        stream.abcd = vaddq_u32(stream.abcd, before.abcd);
        stream.efgh = vaddq_u32(stream.efgh, before.efgh);
    }
}

#[inline]
#[target_feature(enable = "neon,sha2")]
fn load_words(block: &[u8; 64]) -> [uint32x4_t; 4] {
    let quarters = block.as_chunks::<16>().0;
    std::array::from_fn(|i| {
        // SAFETY: `quarters[i]` is 16 readable bytes; the load needs no alignment.
        let raw = unsafe { vld1q_u8((&raw const quarters[i]).cast()) };
        vreinterpretq_u32_u8(vrev32q_u8(raw))
    })
}

/// Words 4 * `group` to 4 * `group` + 3.
#[inline]
#[target_feature(enable = "neon,sha2")]
fn load(words: &[u32], group: usize) -> uint32x4_t {
    let four = &words.as_chunks::<4>().0[group];
    // SAFETY: `four` is 16 readable bytes, aligned as words.
    unsafe { vld1q_u32((&raw const *four).cast()) }
}

#[inline]
#[target_feature(enable = "neon,sha2")]
fn unpack(state: &State) -> Registers {
    Registers { abcd: load(state, 0), efgh: load(state, 1) }
}

#[inline]
#[target_feature(enable = "neon,sha2")]
fn pack(from: Registers, state: &mut State) {
    let (halves, _) = state.as_chunks_mut::<4>();
    // SAFETY: each half is 16 writable bytes, aligned as words.
    unsafe {
        vst1q_u32((&raw mut halves[0]).cast(), from.abcd);
        vst1q_u32((&raw mut halves[1]).cast(), from.efgh);
    }
}
