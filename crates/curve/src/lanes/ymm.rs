//! Four lanes in 256-bit vectors: two kernels with 52-bit multiply-adds, those of AVX-512 VL and those of AVX-IFMA.
//!
//! Both are generated from one source, with masks as vectors. Input and output as in [`Lanes`]. Invariant: element i of
//! every vector is lane i. Cost: a field multiplication takes about 45 cycles for four lanes. Must never: run without
//! the value that proves that the CPU has the instructions, or read a table outside its bounds.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_and_si256, _mm256_i64gather_epi64, _mm256_loadu_si256, _mm256_madd52hi_avx_epu64,
    _mm256_madd52hi_epu64, _mm256_madd52lo_avx_epu64, _mm256_madd52lo_epu64, _mm256_permute2x128_si256,
    _mm256_set_epi64x, _mm256_set1_epi64x, _mm256_slli_epi64, _mm256_storeu_si256, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi64,
};

use super::{Lanes, Line, WIDTH_MAX};

/// Proof that the CPU has AVX-512 VL and IFMA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ifma256Vl(());

/// Proof that the CPU has AVX-IFMA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ifma256Avx(());

impl Ifma256Vl {
    pub(crate) fn detect() -> Option<Ifma256Vl> {
        let has_all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512ifma");
        has_all.then_some(Ifma256Vl(()))
    }
}

impl Ifma256Avx {
    pub(crate) fn detect() -> Option<Ifma256Avx> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("avxifma")).then_some(Ifma256Avx(()))
    }
}

/// Transposes four rows of four words.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(rows: [__m256i; 4]) -> [__m256i; 4] {
    let [r0, r1, r2, r3] = rows;
    let (a, b) = (_mm256_unpacklo_epi64(r0, r1), _mm256_unpackhi_epi64(r0, r1));
    let (c, d) = (_mm256_unpacklo_epi64(r2, r3), _mm256_unpackhi_epi64(r2, r3));
    [
        _mm256_permute2x128_si256::<0x20>(a, c),
        _mm256_permute2x128_si256::<0x20>(b, d),
        _mm256_permute2x128_si256::<0x31>(a, c),
        _mm256_permute2x128_si256::<0x31>(b, d),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn gather(entries: &[[__m256i; 5]; 16], index: __m256i) -> [__m256i; 5] {
    // The mask keeps every lane's index inside the table regardless of what the formulas computed: a gather checks no
    // bounds.
    let entry = _mm256_and_si256(index, _mm256_set1_epi64x(15));
    // Word (entry * 5 + limb) * 4 + lane.
    let twenty = _mm256_add_epi64(_mm256_slli_epi64::<4>(entry), _mm256_slli_epi64::<2>(entry));
    let word = _mm256_add_epi64(twenty, _mm256_set_epi64x(3, 2, 1, 0));
    let mut limbs = [word; 5];
    for (i, limb) in limbs.iter_mut().enumerate() {
        let base = (&raw const *entries).cast::<i64>().wrapping_add(4 * i);
        // SAFETY: entry is at most 15, so word is at most 15 * 20 + 3, and 15 * 20 + 3 + 4 * i is below the 16 * 20
        // words of the table for every i below 5.
        *limb = unsafe { _mm256_i64gather_epi64::<8>(base, word) };
    }
    limbs
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_lines(table: &[Line; 4096], index: __m256i) -> [__m256i; 8] {
    let mut indices = [0; WIDTH_MAX];
    // SAFETY: the array is 64 writable bytes; the store needs no alignment.
    unsafe { _mm256_storeu_si256((&raw mut indices).cast(), index) };
    let (mut low, mut high) = ([index; 4], [index; 4]);
    for i in 0..4 {
        // `line` masks the index to the table.
        let halves = super::line(table, indices[i]).0.as_chunks::<4>().0;
        // SAFETY: a line is two halves of 32 readable bytes; the loads need no alignment.
        (low[i], high[i]) = unsafe {
            (_mm256_loadu_si256((&raw const halves[0]).cast()), _mm256_loadu_si256((&raw const halves[1]).cast()))
        };
    }
    let ([a, b, c, d], [e, f, g, h]) = (transpose(low), transpose(high));
    [a, b, c, d, e, f, g, h]
}

/// The methods of [`Lanes`] that need only AVX2, for a type that proves at least that.
macro_rules! avx2_methods {
    () => {
        const WIDTH: usize = 4;
        type Vector = std::arch::x86_64::__m256i;
        type Mask = std::arch::x86_64::__m256i;

        #[inline(always)]
        fn run<R>(self, work: impl FnOnce() -> R) -> R {
            // SAFETY: a value of this type exists only if the CPU has the features (`detect`). The same holds for every
            // block below.
            unsafe { run(work) }
        }

        #[inline(always)]
        fn splat(self, word: u64) -> Self::Vector {
            // SAFETY: as in `run`.
            unsafe { std::arch::x86_64::_mm256_set1_epi64x(word.cast_signed()) }
        }

        #[inline(always)]
        fn load(self, words: &[u64; $crate::lanes::WIDTH_MAX]) -> Self::Vector {
            // SAFETY: as in `run`; the array is more than 32 readable bytes, and the load needs no alignment.
            unsafe { std::arch::x86_64::_mm256_loadu_si256((&raw const *words).cast()) }
        }

        #[inline(always)]
        fn store(self, vector: Self::Vector) -> [u64; $crate::lanes::WIDTH_MAX] {
            let mut words = [0; $crate::lanes::WIDTH_MAX];
            // SAFETY: as in `run`; the array is more than 32 writable bytes, and the store needs no alignment.
            unsafe { std::arch::x86_64::_mm256_storeu_si256((&raw mut words).cast(), vector) };
            words
        }

        #[inline(always)]
        fn mask(self, bits: u8) -> Self::Mask {
            let mut words = [0; $crate::lanes::WIDTH_MAX];
            for lane in 0..4 {
                words[lane] = if bits >> lane & 1 == 1 { u64::MAX } else { 0 };
            }
            self.load(&words)
        }

        #[inline(always)]
        fn bits(self, mask: Self::Mask) -> u8 {
            let words = self.store(mask);
            let mut bits = 0;
            for lane in 0..4 {
                bits |= u8::from(words[lane] != 0) << lane;
            }
            bits
        }

        #[inline(always)]
        fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
            // SAFETY: as in `run`.
            unsafe { std::arch::x86_64::_mm256_add_epi64(a, b) }
        }

        #[inline(always)]
        fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
            // SAFETY: as in `run`.
            unsafe { std::arch::x86_64::_mm256_sub_epi64(a, b) }
        }

        #[inline(always)]
        fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
            // SAFETY: as in `run`.
            unsafe { std::arch::x86_64::_mm256_and_si256(a, b) }
        }

        #[inline(always)]
        fn or(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
            // SAFETY: as in `run`.
            unsafe { std::arch::x86_64::_mm256_or_si256(a, b) }
        }

        #[inline(always)]
        fn xor(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
            // SAFETY: as in `run`.
            unsafe { std::arch::x86_64::_mm256_xor_si256(a, b) }
        }

        #[inline(always)]
        fn shl(self, a: Self::Vector, count: u32) -> Self::Vector {
            // With constant counts the compiler emits the immediate form here and in `shr`.
            // SAFETY: as in `run`.
            unsafe { std::arch::x86_64::_mm256_sll_epi64(a, std::arch::x86_64::_mm_cvtsi32_si128(count.cast_signed())) }
        }

        #[inline(always)]
        fn shr(self, a: Self::Vector, count: u32) -> Self::Vector {
            // SAFETY: as in `run`.
            unsafe { std::arch::x86_64::_mm256_srl_epi64(a, std::arch::x86_64::_mm_cvtsi32_si128(count.cast_signed())) }
        }

        #[inline(always)]
        fn equal(self, a: Self::Vector, b: Self::Vector) -> Self::Mask {
            // SAFETY: as in `run`.
            unsafe { std::arch::x86_64::_mm256_cmpeq_epi64(a, b) }
        }

        #[inline(always)]
        fn select(self, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Vector {
            // SAFETY: as in `run`.
            unsafe { std::arch::x86_64::_mm256_blendv_epi8(b, a, mask) }
        }

        #[inline(always)]
        fn differ(self, a: Self::Mask, b: Self::Mask) -> Self::Mask {
            self.xor(a, b)
        }

        #[inline(always)]
        fn pick(self, entries: &$crate::lanes::Entries<Self>, index: Self::Vector) -> [Self::Vector; 5] {
            // SAFETY: as in `run`.
            unsafe { $crate::lanes::ymm::gather(entries, index) }
        }

        #[inline(always)]
        fn lines(self, table: &[$crate::lanes::Line; 4096], index: Self::Vector) -> [Self::Vector; 8] {
            // SAFETY: as in `run`.
            unsafe { $crate::lanes::ymm::load_lines(table, index) }
        }

        #[inline(always)]
        fn is_below(self, a: Self::Vector, bits: u32) -> bool {
            self.bits(self.equal(self.shr(a, bits), self.splat(0))) == 15
        }
    };
}

/// A kernel with 52-bit multiply-adds.
macro_rules! ifma256 {
    ($type:ident, $features:literal, $low:ident, $high:ident) => {
        const _: () = {
            #[target_feature(enable = $features)]
            fn run<R>(work: impl FnOnce() -> R) -> R {
                work()
            }

            impl Lanes for $type {
                const NAME: &'static str = "ifma256";
                type Factor = __m256i;

                avx2_methods!();

                /// The multiplier itself reads only 52 bits.
                #[inline(always)]
                fn factor(self, a: __m256i) -> __m256i {
                    a
                }

                #[inline(always)]
                fn multiply(self, low: __m256i, high: __m256i, a: __m256i, b: __m256i) -> (__m256i, __m256i) {
                    // SAFETY: as in `run`.
                    unsafe { ($low(low, a, b), $high(high, a, b)) }
                }
            }
        };
    };
}

ifma256!(Ifma256Vl, "avx2,avx512f,avx512vl,avx512ifma", _mm256_madd52lo_epu64, _mm256_madd52hi_epu64);
ifma256!(Ifma256Avx, "avx2,avxifma", _mm256_madd52lo_avx_epu64, _mm256_madd52hi_avx_epu64);
