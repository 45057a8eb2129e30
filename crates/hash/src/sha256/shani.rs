//! SHA-256 with the x86 SHA instructions: one stream, or two interleaved.
//!
//! Input: states in FIPS order, blocks. Output: the states after the blocks. Why two streams: `sha256rnds2` has a
//! latency of four cycles but can issue every second cycle or faster, so a single dependency chain leaves the unit half
//! idle. Cost: measured in `docs/benchmarks/hash.md`. Must never: run without a `ShaNi` value.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_blend_epi16, _mm_loadu_si128, _mm_set_epi64x, _mm_sha256msg1_epu32,
    _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32, _mm_shuffle_epi8, _mm_shuffle_epi32, _mm_storeu_si128,
};

use super::detect::ShaNi;
use super::lanes::TwoStreams;
use super::{K, State};

impl ShaNi {
    /// Compresses the blocks of one message in order.
    #[inline]
    pub(crate) fn compress(self, state: &mut State, blocks: &[[u8; 64]]) {
        // SAFETY: a `ShaNi` exists only where the CPU has sha, ssse3 and sse4.1 (`detect.rs`).
        unsafe { compress_stream(state, blocks) }
    }
}

impl TwoStreams for ShaNi {
    #[inline]
    fn compress_two(self, states: &mut [State; 2], blocks: [&[u8; 64]; 2]) {
        // SAFETY: a `ShaNi` exists only where the CPU has sha, ssse3 and sse4.1 (`detect.rs`).
        unsafe { compress_each(states, blocks) }
    }
}

/// The two registers of one stream: words a, b, e, f and c, d, g, h, highest first, as `sha256rnds2` expects them.
#[derive(Clone, Copy)]
struct Registers {
    abef: __m128i,
    cdgh: __m128i,
}

#[target_feature(enable = "sha,ssse3,sse4.1")]
fn compress_stream(state: &mut State, blocks: &[[u8; 64]]) {
    let mut streams = [unpack(state)];
    for block in blocks {
        rounds(&mut streams, [block]);
    }
    pack(streams[0], state);
}

#[target_feature(enable = "sha,ssse3,sse4.1")]
fn compress_each<const N: usize>(states: &mut [State; N], blocks: [&[u8; 64]; N]) {
    let mut streams = std::array::from_fn(|i| unpack(&states[i]));
    rounds(&mut streams, blocks);
    for (stream, state) in streams.into_iter().zip(states) {
        pack(stream, state);
    }
}

/// Processes one block of each stream; the compiler interleaves them.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn rounds<const N: usize>(streams: &mut [Registers; N], blocks: [&[u8; 64]; N]) {
    let before = *streams;
    let mut words: [[__m128i; 4]; N] = std::array::from_fn(|i| load_words(blocks[i]));
    macro_rules! four_rounds {
        ($($group:literal)*) => {$(
            let k = load(&K, $group);
            for i in 0..N {
                let w = &mut words[i];
                if $group >= 4 {
                    w[$group & 3] = next_words(w[$group & 3], w[($group + 1) & 3], w[($group + 2) & 3], w[($group + 3) & 3]);
                }
                let kw = _mm_add_epi32(w[$group & 3], k);
                let s = &mut streams[i];
                s.cdgh = _mm_sha256rnds2_epu32(s.cdgh, s.abef, kw);
                s.abef = _mm_sha256rnds2_epu32(s.abef, s.cdgh, _mm_shuffle_epi32::<0x0e>(kw));
            }
        )*};
    }
    four_rounds!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    for (stream, before) in streams.iter_mut().zip(before) {
        stream.abef = _mm_add_epi32(stream.abef, before.abef);
        stream.cdgh = _mm_add_epi32(stream.cdgh, before.cdgh);
    }
}

/// Schedule words t+16..t+20 from the vectors starting at t, t+4, t+8 and t+12.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn next_words(w0: __m128i, w4: __m128i, w8: __m128i, w12: __m128i) -> __m128i {
    let partial = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w4), _mm_alignr_epi8::<4>(w12, w8));
    _mm_sha256msg2_epu32(partial, w12)
}

#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn load_words(block: &[u8; 64]) -> [__m128i; 4] {
    let big_endian = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    let quarters = block.as_chunks::<16>().0;
    std::array::from_fn(|i| {
        // SAFETY: `quarters[i]` is 16 readable bytes; the load needs no alignment.
        let raw = unsafe { _mm_loadu_si128((&raw const quarters[i]).cast()) };
        _mm_shuffle_epi8(raw, big_endian)
    })
}

/// Words 4 * `group` to 4 * `group` + 3.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn load(words: &[u32], group: usize) -> __m128i {
    let four = &words.as_chunks::<4>().0[group];
    // SAFETY: `four` is 16 readable bytes; the load needs no alignment.
    unsafe { _mm_loadu_si128((&raw const *four).cast()) }
}

#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn unpack(state: &State) -> Registers {
    let cdab = _mm_shuffle_epi32::<0xb1>(load(state, 0)); // from dcba, highest first
    let efgh = _mm_shuffle_epi32::<0x1b>(load(state, 1)); // from hgfe
    Registers { abef: _mm_alignr_epi8::<8>(cdab, efgh), cdgh: _mm_blend_epi16::<0xf0>(efgh, cdab) }
}

#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn pack(from: Registers, state: &mut State) {
    let feba = _mm_shuffle_epi32::<0x1b>(from.abef);
    let dchg = _mm_shuffle_epi32::<0xb1>(from.cdgh);
    let (halves, _) = state.as_chunks_mut::<4>();
    // SAFETY: each half is 16 writable bytes; the stores need no alignment.
    unsafe {
        _mm_storeu_si128((&raw mut halves[0]).cast(), _mm_blend_epi16::<0xf0>(feba, dchg)); // dcba
        _mm_storeu_si128((&raw mut halves[1]).cast(), _mm_alignr_epi8::<8>(dchg, feba)); // hgfe
    }
}
