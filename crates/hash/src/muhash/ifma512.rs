//! Sixteen elements side by side with AVX-512 and its 52-bit multiply-adds.
//!
//! A number is 64 limbs of 48 bits: the multiplier reads 52 bits, so three levels of Karatsuba's method need no
//! carries. Input: digests of elements, key streams. Output: the running products of the sixteen lanes. Invariant:
//! element i of a vector of 32-bit words belongs to lane i; of a vector of limbs, to lane 2i (`even`) or 2i + 1
//! (`odd`). Cost: about 5,600 vector operations to multiply eight lanes, 5,900 for the key streams of sixteen. Must
//! never: run without an `Ifma512` value.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_add_epi64, _mm512_and_si512, _mm512_loadu_si512, _mm512_madd52hi_epu64,
    _mm512_madd52lo_epu64, _mm512_mask_blend_epi32, _mm512_or_si512, _mm512_rol_epi32, _mm512_set1_epi32,
    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_slli_epi64, _mm512_srli_epi64, _mm512_storeu_si512,
    _mm512_sub_epi64, _mm512_xor_si512,
};

use super::chacha::{CONSTANTS, chacha_block, key_words, quarter_rounds};
use super::karatsuba::karatsuba;
use super::lanes::{Columns, Lanes};
use super::num3072::{Num3072, PRIME_DIFF};
use crate::sha256::Ifma512;

/// Number of limbs of a number.
const LIMBS: usize = 64;
/// Bits of a limb.
const LIMB_BITS: u32 = 48;

/// The running products of the even and of the odd lanes; a limb is below 2^48 + 2^16.
#[derive(Clone, Debug)]
pub(super) struct Products {
    even: [__m512i; LIMBS],
    odd: [__m512i; LIMBS],
}

impl Lanes<16> for Ifma512 {
    type Products = Products;
    /// A whole group takes as long as two or three elements one at a time.
    const FEW: usize = 2;

    fn ones(self) -> Products {
        // SAFETY: an `Ifma512` exists only where the CPU has avx512f and avx512ifma (`sha256/detect.rs`).
        unsafe { ones() }
    }

    fn key_streams(self, keys: &[[u8; 32]; 16], out: &mut Columns<16>) {
        // SAFETY: as in `ones`.
        unsafe { key_streams(keys, out) }
    }

    fn multiply(self, products: &mut Products, factors: &Columns<16>) {
        // SAFETY: as in `ones`.
        unsafe { multiply(products, factors) }
    }

    fn numbers(self, products: &Products) -> [Num3072; 16] {
        // SAFETY: as in `ones`.
        unsafe { numbers(products) }
    }
}

#[target_feature(enable = "avx512f")]
fn ones() -> Products {
    let mut one = [_mm512_setzero_si512(); LIMBS];
    one[0] = _mm512_set1_epi64(1);
    Products { even: one, odd: one }
}

chacha_block!("avx512f", __m512i);

#[target_feature(enable = "avx512f")]
fn key_streams(keys: &[[u8; 32]; 16], out: &mut Columns<16>) {
    let key = key_words(keys).map(|row| load(&row));
    for (counter, rows) in (0..).zip(out.0.as_chunks_mut::<16>().0) {
        for (row, words) in rows.iter_mut().zip(chacha_block(&key, counter)) {
            // SAFETY: the row is 64 writable bytes; the store needs no alignment.
            unsafe { _mm512_storeu_si512((&raw mut *row).cast(), words) }
        }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply(products: &mut Products, factors: &Columns<16>) {
    let (even, odd) = limbs_of(factors);
    let mut wide = [_mm512_setzero_si512(); 2 * LIMBS];
    product_64(&products.even, &even, &mut wide);
    reduce(&wide, &mut products.even);
    product_64(&products.odd, &odd, &mut wide);
    reduce(&wide, &mut products.odd);
}

#[target_feature(enable = "avx512f")]
fn numbers(products: &Products) -> [Num3072; 16] {
    let mut limbs = [[0; LIMBS]; 16];
    for (half, lanes) in [&products.even, &products.odd].into_iter().enumerate() {
        for (k, vector) in lanes.iter().enumerate() {
            let mut row = [0_u64; 8];
            // SAFETY: the row is 64 writable bytes; the store needs no alignment.
            unsafe { _mm512_storeu_si512((&raw mut row).cast(), *vector) }
            for (i, limb) in row.into_iter().enumerate() {
                limbs[2 * i + half][k] = limb;
            }
        }
    }
    limbs.map(|limbs| Num3072::from_limbs(&limbs, LIMB_BITS))
}

/// The limbs of the even and of the odd lanes: three words of 32 bits are two limbs.
#[inline]
#[target_feature(enable = "avx512f")]
fn limbs_of(factors: &Columns<16>) -> ([__m512i; LIMBS], [__m512i; LIMBS]) {
    // The odd 32-bit words of a vector, which are the upper halves of its 64-bit words.
    const UPPER: u16 = 0xaaaa;
    let low_half = _mm512_set1_epi64(0xffff_ffff);
    let (mut even, mut odd) = ([low_half; LIMBS], [low_half; LIMBS]);
    for (i, rows) in factors.0.as_chunks::<3>().0.iter().enumerate() {
        let (first, second, third) = (load(&rows[0]), load(&rows[1]), load(&rows[2]));
        let even_pair = _mm512_mask_blend_epi32(UPPER, first, _mm512_slli_epi64::<32>(second));
        let even_third = _mm512_and_si512(third, low_half);
        let odd_pair = _mm512_mask_blend_epi32(UPPER, _mm512_srli_epi64::<32>(first), second);
        let odd_third = _mm512_srli_epi64::<32>(third);
        [even[2 * i], even[2 * i + 1]] = two_limbs(even_pair, even_third);
        [odd[2 * i], odd[2 * i + 1]] = two_limbs(odd_pair, odd_third);
    }
    (even, odd)
}

/// Splits 96 bits, given as 64 and 32.
#[inline]
#[target_feature(enable = "avx512f")]
fn two_limbs(low: __m512i, high: __m512i) -> [__m512i; 2] {
    let first = _mm512_and_si512(low, limb_mask());
    let second = _mm512_or_si512(_mm512_srli_epi64::<LIMB_BITS>(low), _mm512_slli_epi64::<16>(high));
    [first, second]
}

// A column of `product_8` holds the low 52 bits of the products of its weight and 2^4 times the high bits of those of
// the weight before. It is not negative, but a difference of columns may be, as the products are split at 52 bits and
// not at the weight of a limb. With limbs below 2^48 + 2^16, thus 2^j times that after j levels, a column of
// `product_8` is below 2^55 + 2^(51 + 2j) (and a little for the 2^16), which gives L_0 to L_3 of 1.1, 1.25, 2 and 5
// times 2^55. A column of the next product is at most R_j = L_j + L_(j+1) in size, then S_j = 3 R_j + R_(j+1), then
// 3 S_0 + S_1, which is less than 48 times 2^55: every column of `product_64` is between -2^61 and 2^61, so the sums
// modulo 2^64 are exact.
karatsuba!("avx512f,avx512ifma", __m512i, product_64 = product_32(32));
karatsuba!("avx512f,avx512ifma", __m512i, product_32 = product_16(16));
karatsuba!("avx512f,avx512ifma", __m512i, product_16 = product_8(8));

/// The columns of a product of numbers of eight limbs below 2^52.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn product_8(a: &[__m512i; 8], b: &[__m512i; 8], out: &mut [__m512i; 16]) {
    let (a, b) = (*a, *b);
    let zero = _mm512_setzero_si512();
    let mut high = zero;
    macro_rules! columns {
        ($($k:literal)*) => {$(
            // 2^52 is 2^4 times the weight of the next limb.
            let mut low = _mm512_slli_epi64::<4>(high);
            high = zero;
            for i in 0..8_usize {
                if i <= $k && $k - i < 8 {
                    low = _mm512_madd52lo_epu64(low, a[i], b[$k - i]);
                    high = _mm512_madd52hi_epu64(high, a[i], b[$k - i]);
                }
            }
            out[$k] = low;
        )*};
    }
    columns!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14);
    out[15] = _mm512_slli_epi64::<4>(high);
}

/// Reduces the columns of `product_64` modulo 2^3072 - c, to limbs below 2^48 + 2^16.
///
/// A high column h has the weight of its low column times 2^3072, which is c, so c h is added to the low column. With
/// h = t + 2^52 (s - 2^9), where t is its low 52 bits, these are the low 52 bits of c t, and in the next column 2^4
/// times the sum of the high bits of c t and of c (s - 2^9). Carries move by one column only, as the limbs need not be
/// unique. A bias, which each column gets and passes on with its carry, keeps all sums positive.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn reduce(wide: &[__m512i; 2 * LIMBS], out: &mut [__m512i; LIMBS]) {
    const C: i64 = PRIME_DIFF.cast_signed();
    /// More than any column is in size with what is added to it.
    const BIAS: i64 = 1 << 62;
    const BIAS_CARRY: i64 = 1 << (62 - LIMB_BITS);
    /// Makes positive what passes beyond the last column; for it, c times as much, which is C_LOW + 2^48 C_HIGH, is
    /// subtracted from the first two columns.
    const TOP_BIAS: i64 = 1 << 36;
    const C_HIGH: i64 = C >> 12;
    const C_LOW: i64 = (C & 0xfff) << 36;
    let (zero, c, c_16) = (_mm512_setzero_si512(), _mm512_set1_epi64(C), _mm512_set1_epi64(16 * C));
    let sign = _mm512_set1_epi64(1 << 61);
    let passed_on = _mm512_set1_epi64(BIAS - BIAS_CARRY - ((16 * C) << 9));
    let (low, high) = wide.as_chunks::<LIMBS>().0.split_at(1);
    let mut from_before = _mm512_set1_epi64(BIAS - C_LOW);
    let mut carry = zero;
    for (k, ((low, high), out)) in low[0].iter().zip(&high[0]).zip(out.iter_mut()).enumerate() {
        // Between 2^60 and 2^63: |low| is below 2^61, the products below 2^52, what comes from before 2^62 + 2^34.
        let sum = _mm512_madd52lo_epu64(add(*low, from_before), *high, c);
        let bias = if k == 0 { sub(passed_on, _mm512_set1_epi64(C_HIGH)) } else { passed_on };
        let top_bits = _mm512_srli_epi64::<52>(add(*high, sign));
        let high_product = _mm512_slli_epi64::<4>(_mm512_madd52hi_epu64(zero, *high, c));
        from_before = _mm512_madd52lo_epu64(add(bias, high_product), top_bits, c_16);
        // Below 2^48 + 2^15.
        *out = add(_mm512_and_si512(sum, limb_mask()), carry);
        carry = _mm512_srli_epi64::<LIMB_BITS>(sum);
    }
    // Column 64, less the bias that it would pass on, is positive and below 2^37; it counts c times in columns 0 and 1.
    let top = add(add(from_before, carry), _mm512_set1_epi64(TOP_BIAS - BIAS));
    let first = _mm512_madd52lo_epu64(out[0], top, c);
    let to_second = _mm512_slli_epi64::<4>(_mm512_madd52hi_epu64(zero, top, c));
    out[0] = _mm512_and_si512(first, limb_mask());
    out[1] = add(out[1], add(to_second, _mm512_srli_epi64::<LIMB_BITS>(first)));
}

#[inline]
#[target_feature(enable = "avx512f")]
fn limb_mask() -> __m512i {
    _mm512_set1_epi64((1 << LIMB_BITS) - 1)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(row: &[u32; 16]) -> __m512i {
    // SAFETY: a row is 64 readable bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512((&raw const *row).cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add(x: __m512i, y: __m512i) -> __m512i {
    _mm512_add_epi64(x, y)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn sub(x: __m512i, y: __m512i) -> __m512i {
    _mm512_sub_epi64(x, y)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add32(x: __m512i, y: __m512i) -> __m512i {
    _mm512_add_epi32(x, y)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn xor(x: __m512i, y: __m512i) -> __m512i {
    _mm512_xor_si512(x, y)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn rotl<const COUNT: i32>(x: __m512i) -> __m512i {
    _mm512_rol_epi32::<COUNT>(x)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn splat32(word: u32) -> __m512i {
    _mm512_set1_epi32(word.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sha256::{MuHashKernel, kernels};

    /// Limbs at their bound, times the largest number: the sums of the product must not overflow.
    #[test]
    fn limbs_at_their_bound() {
        for kernel in &kernels().muhash_available {
            if let MuHashKernel::Ifma512(ifma512) = kernel {
                // SAFETY: a value of `Ifma512` exists.
                unsafe { check(*ifma512) }
            }
        }
    }

    #[target_feature(enable = "avx512f")]
    fn check(kernel: Ifma512) {
        const LIMB_MAX: i64 = (1 << LIMB_BITS) + (1 << 16) - 1;
        for (shape, last) in [(1, 0), (2, 0), (2, 1), (8, 7), (16, 3), (32, 31)] {
            // All limbs, every second, every eighth and so on: the sums of differences differ.
            let limbs: [i64; LIMBS] = std::array::from_fn(|k| if k % shape == last { LIMB_MAX } else { 0 });
            let even = limbs.map(|limb| _mm512_set1_epi64(limb));
            let mut products = Products { even, odd: even };
            let mut expected = Num3072::from_limbs(&limbs.map(i64::cast_unsigned), LIMB_BITS);
            for _ in 0..3 {
                kernel.multiply(&mut products, &Columns([[u32::MAX; 16]; 96]));
                expected.multiply(&Num3072::from_bytes(&[0xff; 384]));
                for number in kernel.numbers(&products) {
                    assert_eq!(number, expected);
                }
                for limb in products.even.iter().chain(&products.odd) {
                    let mut words = [0_i64; 8];
                    // SAFETY: the array is 64 writable bytes; the store needs no alignment.
                    unsafe { _mm512_storeu_si512((&raw mut words).cast(), *limb) }
                    assert!(words.iter().all(|word| (0..=LIMB_MAX).contains(word)), "a limb is out of bounds");
                }
            }
        }
    }
}
