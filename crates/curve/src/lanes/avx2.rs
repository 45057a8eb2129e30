//! Four lanes with AVX2 and FMA, for CPUs without 52-bit multiply-adds: doubles as the multiplier.
//!
//! Input and output as [`Lanes`]. A fused multiply-add rounds once, so two of them give the high and the low part of a product
//! of two 52-bit numbers exactly: rounded to the nearest, which every thread does by default, so the low part is signed.
//! Invariant: the floating-point mode is read by no instruction here but as the default, and changed by none. Cost: about three
//! times that of `ymm`. Must never: multiply what is not a limb. Derivation: `docs/derivations/doubles.md`.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256d, __m256i, _mm256_add_epi64, _mm256_add_pd, _mm256_and_si256, _mm256_castpd_si256, _mm256_castsi256_pd,
    _mm256_fmadd_pd, _mm256_or_si256, _mm256_set1_epi64x, _mm256_set1_pd, _mm256_sub_epi64, _mm256_sub_pd,
};

use super::ymm::avx2_methods;
use super::{LIMB, Lanes};

/// Proof that the CPU has AVX2 and FMA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Avx2> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Avx2(()))
    }
}

/// 2^52, 2^104 and 3 * 2^51.
const TWO_52: f64 = 4_503_599_627_370_496.0;
const TWO_104: f64 = TWO_52 * TWO_52;
const MIDDLE: f64 = 1.5 * TWO_52;

#[target_feature(enable = "avx2,fma")]
fn run<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// A limb as a double: its bits below those of 2^52 are 2^52 + limb.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn to_double(a: __m256i) -> __m256d {
    let limb = _mm256_and_si256(a, _mm256_set1_epi64x(LIMB.cast_signed()));
    let shifted = _mm256_or_si256(limb, _mm256_set1_epi64x(TWO_52.to_bits().cast_signed()));
    _mm256_sub_pd(_mm256_castsi256_pd(shifted), _mm256_set1_pd(TWO_52))
}

/// The bits of 2^104 + 2^52 h and of 3 * 2^51 + l, where a b = 2^52 h + l and l is between -2^51 and 2^51.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn halves(a: __m256d, b: __m256d) -> (__m256i, __m256i) {
    // One unit of a double from 2^104 to 2^105 is 2^52: the sum is a b rounded to a multiple of it.
    let high = _mm256_fmadd_pd(a, b, _mm256_set1_pd(TWO_104));
    // 3 * 2^51 - 2^52 h: an odd multiple of 2^51 below 2^53 of it, so exact; and a b plus it is exact from 2^52 to 2^53.
    let rest = _mm256_add_pd(_mm256_sub_pd(_mm256_set1_pd(TWO_104), high), _mm256_set1_pd(MIDDLE));
    (_mm256_castpd_si256(high), _mm256_castpd_si256(_mm256_fmadd_pd(a, b, rest)))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn multiply_exact(low: __m256i, high: __m256i, a: __m256d, b: __m256d) -> (__m256i, __m256i) {
    let (low, high) = multiply_loose(low, high, a, b);
    let excess = |bits: f64| _mm256_set1_epi64x(bits.to_bits().cast_signed());
    (_mm256_sub_epi64(low, excess(MIDDLE)), _mm256_sub_epi64(high, excess(TWO_104)))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn multiply_loose(low: __m256i, high: __m256i, a: __m256d, b: __m256d) -> (__m256i, __m256i) {
    let (above, below) = halves(a, b);
    (_mm256_add_epi64(low, below), _mm256_add_epi64(high, above))
}

impl Lanes for Avx2 {
    const NAME: &'static str = "avx2";
    const IS_SIGNED: bool = true;
    const LOW_EXCESS: u64 = MIDDLE.to_bits();
    const HIGH_EXCESS: u64 = TWO_104.to_bits();
    type Factor = __m256d;

    avx2_methods!();

    #[inline(always)]
    fn factor(self, a: __m256i) -> __m256d {
        // SAFETY: as in `run`.
        unsafe { to_double(a) }
    }

    #[inline(always)]
    fn multiply(self, low: __m256i, high: __m256i, a: __m256d, b: __m256d) -> (__m256i, __m256i) {
        // SAFETY: as in `run`.
        unsafe { multiply_exact(low, high, a, b) }
    }

    #[inline(always)]
    fn multiply_loose(self, low: __m256i, high: __m256i, a: __m256d, b: __m256d) -> (__m256i, __m256i) {
        // SAFETY: as in `run`.
        unsafe { multiply_loose(low, high, a, b) }
    }
}
