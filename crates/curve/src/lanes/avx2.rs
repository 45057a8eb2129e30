//! Eight lanes with AVX2 and FMA, for CPUs without 52-bit multiply-adds.
//!
//! Input and output as in [`Lanes`]. Products are computed with doubles, in two vectors in parallel. A fused
//! multiply-add rounds once, so two of them give the high and the low part of a product of two 52-bit numbers exactly.
//! The rounding is to nearest, the default of every thread, so the low part is signed. Lanes 0 to 3 are the first
//! vector, 4 to 7 the second: two independent dependency chains. Invariant: the code assumes the default floating-point
//! mode and never changes it. Cost: about twice that of `ymm`. Must never: multiply values that are not limbs.
//! Derivation: `docs/derivations/doubles.md`.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256d, __m256i, _mm_cvtsi32_si128, _mm256_add_epi64, _mm256_and_si256, _mm256_blendv_epi8, _mm256_castpd_si256,
    _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_fmadd_pd, _mm256_fnmadd_pd, _mm256_i64gather_epi64,
    _mm256_loadu_si256, _mm256_movemask_pd, _mm256_or_si256, _mm256_set_epi64x, _mm256_set1_epi64x, _mm256_set1_pd,
    _mm256_sll_epi64, _mm256_slli_epi64, _mm256_srl_epi64, _mm256_storeu_si256, _mm256_sub_epi64, _mm256_sub_pd,
    _mm256_xor_si256,
};

use super::ymm::load_lines;
use super::{Entries, LIMB, Lanes, Line, WIDTH_MAX};

/// Proof that the CPU has AVX2 and FMA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Avx2> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Avx2(()))
    }
}

/// 2^52; then 2^104, 3 * 2^51 and 2^104 - 3 * 2^51, which is exactly representable as a double.
const TWO_52: f64 = 4_503_599_627_370_496.0;
const TWO_104: f64 = TWO_52 * TWO_52;
const MIDDLE: f64 = 1.5 * TWO_52;
const LESS: f64 = TWO_104 - MIDDLE;
const _: () = assert!(LESS.to_bits() == TWO_104.to_bits() - 3);

#[target_feature(enable = "avx2,fma")]
fn run<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Converts a limb to a double: the bits of the limb in the mantissa of 2^52 give 2^52 + limb.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn to_double(a: __m256i) -> __m256d {
    let limb = _mm256_and_si256(a, _mm256_set1_epi64x(LIMB.cast_signed()));
    let shifted = _mm256_or_si256(limb, _mm256_set1_epi64x(TWO_52.to_bits().cast_signed()));
    _mm256_sub_pd(_mm256_castsi256_pd(shifted), _mm256_set1_pd(TWO_52))
}

/// The bits of 2^104 + 2^52 h and of 3 * 2^51 - l, where a b = 2^52 h + l and l is between -2^51 and 2^51.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn halves(a: __m256d, b: __m256d) -> (__m256i, __m256i) {
    // Doubles from 2^104 to 2^105 are spaced by 2^52: the sum contains a b rounded to a multiple of 2^52.
    let high = _mm256_fmadd_pd(a, b, _mm256_set1_pd(TWO_104));
    // 3 * 2^51 + 2^52 h is an odd multiple of 2^51, the factor below 2^53, so exact. Minus a b it is from 2^52 to 2^53,
    // so exact too.
    let rest = _mm256_sub_pd(high, _mm256_set1_pd(LESS));
    (_mm256_castpd_si256(high), _mm256_castpd_si256(_mm256_fnmadd_pd(a, b, rest)))
}

/// Returns the same vector, opaque to the compiler.
///
/// Otherwise the compiler moves all additions of a column to its end and spills the fifty halves of a product that wait
/// for them: sixteen registers hold the sums of a column, but not its terms.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn pinned(mut vector: __m256i) -> __m256i {
    // SAFETY: no instruction at all; AVX registers exist, since AVX2 does.
    unsafe { std::arch::asm!("/* {0} */", inout(ymm_reg) vector, options(nomem, nostack, preserves_flags)) };
    vector
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn multiply_loose(low: __m256i, high: __m256i, a: __m256d, b: __m256d) -> (__m256i, __m256i) {
    let (above, below) = halves(a, b);
    (pinned(_mm256_sub_epi64(low, below)), pinned(_mm256_add_epi64(high, above)))
}

/// Gathers the limbs of the entries for four lanes, from lane `4 * HALF` on.
#[inline]
#[target_feature(enable = "avx2")]
fn gather<const HALF: usize>(entries: &Entries<Avx2>, index: __m256i) -> [__m256i; 5] {
    // The mask keeps every lane's index inside the table regardless of what the formulas computed: a gather checks no
    // bounds.
    let entry = _mm256_and_si256(index, _mm256_set1_epi64x(15));
    // Word (entry * 5 + limb) * 8 + 4 * HALF + lane.
    let forty = _mm256_add_epi64(_mm256_slli_epi64::<5>(entry), _mm256_slli_epi64::<3>(entry));
    let word = _mm256_add_epi64(forty, _mm256_set_epi64x(3, 2, 1, 0));
    let mut limbs = [word; 5];
    for (i, limb) in limbs.iter_mut().enumerate() {
        let base = (&raw const *entries).cast::<i64>().wrapping_add(8 * i + 4 * HALF);
        // SAFETY: entry is at most 15, so word is at most 15 * 40 + 3, and 15 * 40 + 3 + 8 * i + 4 is below the 16 * 40
        // words of the table for every i below 5 and both halves.
        *limb = unsafe { _mm256_i64gather_epi64::<8>(base, word) };
    }
    limbs
}

/// Applies one instruction to both vectors.
macro_rules! both {
    ($instruction:ident, $a:expr) => {
        // SAFETY: as in `run`.
        unsafe { [$instruction($a[0]), $instruction($a[1])] }
    };
    ($instruction:ident, $a:expr, $b:expr) => {
        // SAFETY: as in `run`.
        unsafe { [$instruction($a[0], $b[0]), $instruction($a[1], $b[1])] }
    };
}

impl Lanes for Avx2 {
    const NAME: &'static str = "avx2";
    const IS_SIGNED: bool = true;
    const IS_AFFINE: bool = true;
    const BATCH_CHECKS_MIN: usize = 96;
    const LOW_EXCESS: u64 = MIDDLE.to_bits().wrapping_neg();
    const HIGH_EXCESS: u64 = TWO_104.to_bits();
    const WIDTH: usize = 8;
    type Vector = [__m256i; 2];
    type Factor = [__m256d; 2];
    type Mask = [__m256i; 2];

    #[inline(always)]
    fn run<R>(self, work: impl FnOnce() -> R) -> R {
        // SAFETY: a value of this type exists only if the CPU has the features (`detect`). The same holds for every
        // block below.
        unsafe { run(work) }
    }

    #[inline(always)]
    fn splat(self, word: u64) -> [__m256i; 2] {
        // SAFETY: as in `run`.
        [unsafe { _mm256_set1_epi64x(word.cast_signed()) }; 2]
    }

    #[inline(always)]
    fn load(self, words: &[u64; WIDTH_MAX]) -> [__m256i; 2] {
        let words = (&raw const *words).cast::<__m256i>();
        // SAFETY: as in `run`; the array is 64 readable bytes, and the loads need no alignment.
        unsafe { [_mm256_loadu_si256(words), _mm256_loadu_si256(words.add(1))] }
    }

    #[inline(always)]
    fn store(self, vector: [__m256i; 2]) -> [u64; WIDTH_MAX] {
        let mut words = [0; WIDTH_MAX];
        let to = (&raw mut words).cast::<__m256i>();
        // SAFETY: as in `run`; the array is 64 writable bytes, and the stores need no alignment.
        unsafe {
            _mm256_storeu_si256(to, vector[0]);
            _mm256_storeu_si256(to.add(1), vector[1]);
        }
        words
    }

    #[inline(always)]
    fn mask(self, bits: u8) -> [__m256i; 2] {
        self.load(&std::array::from_fn(|lane| if bits >> lane & 1 == 1 { u64::MAX } else { 0 }))
    }

    #[inline(always)]
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "four bits each")]
    fn bits(self, mask: [__m256i; 2]) -> u8 {
        // SAFETY: as in `run`.
        let [low, high] = mask.map(|mask| unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(mask)) });
        (low | high << 4) as u8
    }

    #[inline(always)]
    fn add(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        both!(_mm256_add_epi64, a, b)
    }

    #[inline(always)]
    fn sub(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        both!(_mm256_sub_epi64, a, b)
    }

    #[inline(always)]
    fn and(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        both!(_mm256_and_si256, a, b)
    }

    #[inline(always)]
    fn or(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        both!(_mm256_or_si256, a, b)
    }

    #[inline(always)]
    fn xor(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        both!(_mm256_xor_si256, a, b)
    }

    #[inline(always)]
    fn shl(self, a: [__m256i; 2], count: u32) -> [__m256i; 2] {
        // With constant counts the compiler emits the immediate form here and in `shr`.
        // SAFETY: as in `run`.
        let count = [unsafe { _mm_cvtsi32_si128(count.cast_signed()) }; 2];
        both!(_mm256_sll_epi64, a, count)
    }

    #[inline(always)]
    fn shr(self, a: [__m256i; 2], count: u32) -> [__m256i; 2] {
        // SAFETY: as in `run`.
        let count = [unsafe { _mm_cvtsi32_si128(count.cast_signed()) }; 2];
        both!(_mm256_srl_epi64, a, count)
    }

    #[inline(always)]
    fn equal(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        both!(_mm256_cmpeq_epi64, a, b)
    }

    #[inline(always)]
    fn select(self, mask: [__m256i; 2], a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: as in `run`.
        unsafe { [_mm256_blendv_epi8(b[0], a[0], mask[0]), _mm256_blendv_epi8(b[1], a[1], mask[1])] }
    }

    #[inline(always)]
    fn differ(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        self.xor(a, b)
    }

    #[inline(always)]
    fn factor(self, a: [__m256i; 2]) -> [__m256d; 2] {
        both!(to_double, a)
    }

    #[inline(always)]
    fn multiply(
        self,
        low: [__m256i; 2],
        high: [__m256i; 2],
        a: [__m256d; 2],
        b: [__m256d; 2],
    ) -> ([__m256i; 2], [__m256i; 2]) {
        let (low, high) = self.multiply_loose(low, high, a, b);
        (self.sub(low, self.splat(Self::LOW_EXCESS)), self.sub(high, self.splat(Self::HIGH_EXCESS)))
    }

    #[inline(always)]
    fn multiply_loose(
        self,
        low: [__m256i; 2],
        high: [__m256i; 2],
        a: [__m256d; 2],
        b: [__m256d; 2],
    ) -> ([__m256i; 2], [__m256i; 2]) {
        // SAFETY: as in `run`.
        let (low_0, high_0) = unsafe { multiply_loose(low[0], high[0], a[0], b[0]) };
        // SAFETY: as in `run`.
        let (low_1, high_1) = unsafe { multiply_loose(low[1], high[1], a[1], b[1]) };
        ([low_0, low_1], [high_0, high_1])
    }

    #[inline(always)]
    fn pick(self, entries: &Entries<Self>, index: [__m256i; 2]) -> [[__m256i; 2]; 5] {
        // SAFETY: as in `run`.
        let (first, second) = unsafe { (gather::<0>(entries, index[0]), gather::<1>(entries, index[1])) };
        std::array::from_fn(|i| [first[i], second[i]])
    }

    #[inline(always)]
    fn lines(self, table: &[Line; 4096], index: [__m256i; 2]) -> [[__m256i; 2]; 8] {
        // SAFETY: as in `run`.
        let (first, second) = unsafe { (load_lines(table, index[0]), load_lines(table, index[1])) };
        std::array::from_fn(|i| [first[i], second[i]])
    }

    #[inline(always)]
    fn is_below(self, a: [__m256i; 2], bits: u32) -> bool {
        self.bits(self.equal(self.shr(a, bits), self.splat(0))) == u8::MAX
    }
}
