//! Eight lanes with AVX-512 and its 52-bit multiply-adds.
//!
//! Input and output as in [`Lanes`]. Invariant: element i of every vector is lane i. Cost: a field multiplication takes
//! about 45 cycles for eight lanes. Must never: run without an `Ifma512` value, or read a table outside its bounds.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, __mmask8, _mm_cvtsi32_si128, _mm512_add_epi64, _mm512_and_si512, _mm512_cmpeq_epi64_mask,
    _mm512_i64gather_epi64, _mm512_loadu_si512, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64, _mm512_mask_blend_epi64,
    _mm512_or_si512, _mm512_set_epi64, _mm512_set1_epi64, _mm512_shuffle_i64x2, _mm512_sll_epi64, _mm512_slli_epi64,
    _mm512_srl_epi64, _mm512_storeu_si512, _mm512_sub_epi64, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
    _mm512_xor_si512,
};

use super::{Entries, Lanes, Line, WIDTH_MAX};

/// Proof that the CPU has AVX-512 F, VL, DQ, BW and IFMA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ifma512(());

impl Ifma512 {
    pub(crate) fn detect() -> Option<Ifma512> {
        let has_all = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512ifma");
        has_all.then_some(Ifma512(()))
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
fn run<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Transposes eight rows of eight words.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(rows: [__m512i; 8]) -> [__m512i; 8] {
    let [r0, r1, r2, r3, r4, r5, r6, r7] = rows;
    let even = columns(
        _mm512_unpacklo_epi64(r0, r1),
        _mm512_unpacklo_epi64(r2, r3),
        _mm512_unpacklo_epi64(r4, r5),
        _mm512_unpacklo_epi64(r6, r7),
    );
    let odd = columns(
        _mm512_unpackhi_epi64(r0, r1),
        _mm512_unpackhi_epi64(r2, r3),
        _mm512_unpackhi_epi64(r4, r5),
        _mm512_unpackhi_epi64(r6, r7),
    );
    [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
}

/// Transposes four rows of four pairs of words.
#[inline]
#[target_feature(enable = "avx512f")]
fn columns(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> [__m512i; 4] {
    let (ab_even, ab_odd) = (_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xdd>(a, b));
    let (cd_even, cd_odd) = (_mm512_shuffle_i64x2::<0x88>(c, d), _mm512_shuffle_i64x2::<0xdd>(c, d));
    [
        _mm512_shuffle_i64x2::<0x88>(ab_even, cd_even),
        _mm512_shuffle_i64x2::<0x88>(ab_odd, cd_odd),
        _mm512_shuffle_i64x2::<0xdd>(ab_even, cd_even),
        _mm512_shuffle_i64x2::<0xdd>(ab_odd, cd_odd),
    ]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn gather(entries: &Entries<Ifma512>, index: __m512i) -> [__m512i; 5] {
    // The mask keeps every lane's index inside the table regardless of what the formulas computed: a gather checks no
    // bounds.
    let entry = _mm512_and_si512(index, _mm512_set1_epi64(15));
    let lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    // Word (entry * 5 + limb) * 8 + lane.
    let word = _mm512_add_epi64(_mm512_add_epi64(_mm512_slli_epi64::<5>(entry), _mm512_slli_epi64::<3>(entry)), lane);
    let mut limbs = [word; 5];
    for (i, limb) in limbs.iter_mut().enumerate() {
        let base = (&raw const *entries).cast::<i64>().wrapping_add(8 * i);
        // SAFETY: entry is at most 15, so word is at most 15 * 40 + 7, and 15 * 40 + 7 + 8 * i is below the 16 * 40
        // words of the table for every i below 5.
        *limb = unsafe { _mm512_i64gather_epi64::<8>(word, base) };
    }
    limbs
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_lines(table: &[Line; 4096], index: __m512i) -> [__m512i; 8] {
    let mut indices = [0; WIDTH_MAX];
    // SAFETY: the array is 64 writable bytes; the store needs no alignment.
    unsafe { _mm512_storeu_si512((&raw mut indices).cast(), index) };
    let mut rows = [index; 8];
    for i in 0..8 {
        // SAFETY: a line is 64 readable bytes; the load needs no alignment. `line` masks the index to the table.
        rows[i] = unsafe { _mm512_loadu_si512((&raw const *super::line(table, indices[i])).cast()) };
    }
    transpose(rows)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_rows(lines: [&Line; WIDTH_MAX]) -> [__m512i; 8] {
    let mut rows = [_mm512_set1_epi64(0); 8];
    for i in 0..8 {
        // SAFETY: a line is 64 readable bytes; the load needs no alignment.
        rows[i] = unsafe { _mm512_loadu_si512((&raw const *lines[i]).cast()) };
    }
    transpose(rows)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_rows(words: [__m512i; 8], lines: &mut [Line]) {
    for (line, row) in lines.iter_mut().zip(transpose(words)) {
        // SAFETY: a line is 64 writable bytes; the store needs no alignment.
        unsafe { _mm512_storeu_si512((&raw mut *line).cast(), row) };
    }
}

impl Lanes for Ifma512 {
    const NAME: &'static str = "ifma512";
    const WIDTH: usize = 8;
    type Vector = __m512i;
    type Factor = __m512i;
    type Mask = __mmask8;

    #[inline(always)]
    fn run<R>(self, work: impl FnOnce() -> R) -> R {
        // SAFETY: an `Ifma512` exists only if the CPU has these features (`detect`). The same holds for every block
        // below.
        unsafe { run(work) }
    }

    #[inline(always)]
    fn splat(self, word: u64) -> __m512i {
        // SAFETY: as in `run`.
        unsafe { _mm512_set1_epi64(word.cast_signed()) }
    }

    #[inline(always)]
    fn load(self, words: &[u64; WIDTH_MAX]) -> __m512i {
        // SAFETY: as in `run`; the array is 64 readable bytes, and the load needs no alignment.
        unsafe { _mm512_loadu_si512((&raw const *words).cast()) }
    }

    #[inline(always)]
    fn store(self, vector: __m512i) -> [u64; WIDTH_MAX] {
        let mut words = [0; WIDTH_MAX];
        // SAFETY: as in `run`; the array is 64 writable bytes, and the store needs no alignment.
        unsafe { _mm512_storeu_si512((&raw mut words).cast(), vector) };
        words
    }

    #[inline(always)]
    fn mask(self, bits: u8) -> __mmask8 {
        bits
    }

    #[inline(always)]
    fn bits(self, mask: __mmask8) -> u8 {
        mask
    }

    #[inline(always)]
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as in `run`.
        unsafe { _mm512_add_epi64(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as in `run`.
        unsafe { _mm512_sub_epi64(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as in `run`.
        unsafe { _mm512_and_si512(a, b) }
    }

    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as in `run`.
        unsafe { _mm512_or_si512(a, b) }
    }

    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as in `run`.
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    fn shl(self, a: __m512i, count: u32) -> __m512i {
        // With constant counts the compiler emits the immediate form here and in `shr`.
        // SAFETY: as in `run`.
        unsafe { _mm512_sll_epi64(a, _mm_cvtsi32_si128(count.cast_signed())) }
    }

    #[inline(always)]
    fn shr(self, a: __m512i, count: u32) -> __m512i {
        // SAFETY: as in `run`.
        unsafe { _mm512_srl_epi64(a, _mm_cvtsi32_si128(count.cast_signed())) }
    }

    #[inline(always)]
    fn equal(self, a: __m512i, b: __m512i) -> __mmask8 {
        // SAFETY: as in `run`.
        unsafe { _mm512_cmpeq_epi64_mask(a, b) }
    }

    #[inline(always)]
    fn select(self, mask: __mmask8, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as in `run`.
        unsafe { _mm512_mask_blend_epi64(mask, b, a) }
    }

    #[inline(always)]
    fn differ(self, a: __mmask8, b: __mmask8) -> __mmask8 {
        a ^ b
    }

    /// The multiplier itself reads only 52 bits.
    #[inline(always)]
    fn factor(self, a: __m512i) -> __m512i {
        a
    }

    #[inline(always)]
    fn multiply(self, low: __m512i, high: __m512i, a: __m512i, b: __m512i) -> (__m512i, __m512i) {
        // SAFETY: as in `run`.
        unsafe { (_mm512_madd52lo_epu64(low, a, b), _mm512_madd52hi_epu64(high, a, b)) }
    }

    #[inline(always)]
    fn pick(self, entries: &Entries<Self>, index: __m512i) -> [__m512i; 5] {
        // SAFETY: as in `run`.
        unsafe { gather(entries, index) }
    }

    #[inline(always)]
    fn lines(self, table: &[Line; 4096], index: __m512i) -> [__m512i; 8] {
        // SAFETY: as in `run`.
        unsafe { load_lines(table, index) }
    }

    #[inline(always)]
    fn rows(self, rows: [&Line; WIDTH_MAX]) -> [__m512i; 8] {
        // SAFETY: as in `run`.
        unsafe { load_rows(rows) }
    }

    #[inline(always)]
    fn store_rows(self, words: [__m512i; 8], rows: &mut [Line]) {
        // SAFETY: as in `run`.
        unsafe { store_rows(words, rows) }
    }

    #[inline(always)]
    fn is_below(self, a: __m512i, bits: u32) -> bool {
        self.equal(self.shr(a, bits), self.splat(0)) == u8::MAX
    }
}
