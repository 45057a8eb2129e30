//! Eight elements side by side with AVX2 and its 32-bit multiplier.
//!
//! A number is 112 limbs of 28 bits: the multiplier reads 32 bits, so four levels of Karatsuba's method need no
//! carries. Input: digests of elements, key streams. Output: the running products of the eight lanes. Invariant:
//! element i of a vector of 32-bit words belongs to lane i; of a vector of limbs, to lane 2i (`even`) or 2i + 1
//! (`odd`). Cost: about 11,000 vector operations to multiply four lanes, 8,000 for the key streams of eight. Must
//! never: run without an `Avx2` value.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm256_add_epi32, _mm256_add_epi64, _mm256_and_si256, _mm256_blend_epi32,
    _mm256_loadu_si256, _mm256_mul_epu32, _mm256_or_si256, _mm256_set_epi64x, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_sll_epi32, _mm256_slli_epi64, _mm256_srl_epi32, _mm256_srl_epi64,
    _mm256_srli_epi64, _mm256_storeu_si256, _mm256_sub_epi64, _mm256_xor_si256,
};

use super::chacha::{CONSTANTS, chacha_block, key_words, quarter_rounds};
use super::karatsuba::karatsuba;
use super::lanes::{Columns, Lanes, WORDS};
use super::num3072::{Num3072, PRIME_DIFF};
use crate::sha256::Avx2;

/// Number of limbs of a number.
const LIMBS: usize = 112;
/// Bits of a limb.
const LIMB_BITS: u32 = 28;

/// The running products of the even and of the odd lanes; a limb is below 2^28, but limb 8 may be 2^28.
#[derive(Clone, Debug)]
pub(super) struct Products {
    even: [__m256i; LIMBS],
    odd: [__m256i; LIMBS],
}

impl Lanes<8> for Avx2 {
    type Products = Products;
    /// A whole group takes as long as three elements one at a time.
    const FEW: usize = 3;

    fn ones(self) -> Products {
        // SAFETY: an `Avx2` exists only where the CPU has avx2 (`sha256/detect.rs`).
        unsafe { ones() }
    }

    fn key_streams(self, keys: &[[u8; 32]; 8], out: &mut Columns<8>) {
        // SAFETY: as in `ones`.
        unsafe { key_streams(keys, out) }
    }

    fn multiply(self, products: &mut Products, factors: &Columns<8>) {
        // SAFETY: as in `ones`.
        unsafe { multiply(products, factors) }
    }

    fn numbers(self, products: &Products) -> [Num3072; 8] {
        // SAFETY: as in `ones`.
        unsafe { numbers(products) }
    }
}

#[target_feature(enable = "avx2")]
fn ones() -> Products {
    let mut one = [_mm256_setzero_si256(); LIMBS];
    one[0] = _mm256_set1_epi64x(1);
    Products { even: one, odd: one }
}

chacha_block!("avx2", __m256i);

#[target_feature(enable = "avx2")]
fn key_streams(keys: &[[u8; 32]; 8], out: &mut Columns<8>) {
    let key = key_words(keys).map(|row| load(&row));
    for (counter, rows) in (0..).zip(out.0.as_chunks_mut::<16>().0) {
        for (row, words) in rows.iter_mut().zip(chacha_block(&key, counter)) {
            // SAFETY: the row is 32 writable bytes; the store needs no alignment.
            unsafe { _mm256_storeu_si256((&raw mut *row).cast(), words) }
        }
    }
}

#[target_feature(enable = "avx2")]
fn multiply(products: &mut Products, factors: &Columns<8>) {
    let (even, odd) = limbs_of(factors);
    let mut wide = [_mm256_setzero_si256(); 2 * LIMBS];
    product_112(&products.even, &even, &mut wide);
    reduce(&wide, &mut products.even);
    product_112(&products.odd, &odd, &mut wide);
    reduce(&wide, &mut products.odd);
}

#[target_feature(enable = "avx2")]
fn numbers(products: &Products) -> [Num3072; 8] {
    let mut limbs = [[0; LIMBS]; 8];
    for (half, lanes) in [&products.even, &products.odd].into_iter().enumerate() {
        for (k, vector) in lanes.iter().enumerate() {
            let mut row = [0_u64; 4];
            // SAFETY: the row is 32 writable bytes; the store needs no alignment.
            unsafe { _mm256_storeu_si256((&raw mut row).cast(), *vector) }
            for (i, limb) in row.into_iter().enumerate() {
                limbs[2 * i + half][k] = limb;
            }
        }
    }
    limbs.map(|limbs| Num3072::from_limbs(&limbs, LIMB_BITS))
}

/// The limbs of the even and of the odd lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn limbs_of(factors: &Columns<8>) -> ([__m256i; LIMBS], [__m256i; LIMBS]) {
    /// The odd 32-bit words of a vector, which are the upper halves of its 64-bit words.
    const UPPER: i32 = 0xaa;
    let zero = _mm256_setzero_si256();
    let (mut even, mut odd) = ([zero; LIMBS], [zero; LIMBS]);
    let mut bit = 0_u32;
    for (even, odd) in even.iter_mut().zip(&mut odd) {
        let word = (bit / 32) as usize;
        if word < WORDS {
            let first = load(&factors.0[word]);
            let second = factors.0.get(word + 1).map_or(zero, |row| load(row));
            let shift = _mm_cvtsi32_si128((bit % 32).cast_signed());
            let even_pair = _mm256_blend_epi32::<UPPER>(first, _mm256_slli_epi64::<32>(second));
            let odd_pair = _mm256_blend_epi32::<UPPER>(_mm256_srli_epi64::<32>(first), second);
            *even = low_limb(_mm256_srl_epi64(even_pair, shift));
            *odd = low_limb(_mm256_srl_epi64(odd_pair, shift));
        }
        bit += LIMB_BITS;
    }
    (even, odd)
}

// A sum of sixteen limbs is at most 16 (2^28 - 1) + 1, below 2^32. A column of `product_112` is a sum of at most 112
// products below 2^56 + 2^30, thus below 2^63; the sums on the way to it may be taken modulo 2^64.
karatsuba!("avx2", __m256i, product_112 = product_56(56));
karatsuba!("avx2", __m256i, product_56 = product_28(28));
karatsuba!("avx2", __m256i, product_28 = product_14(14));
karatsuba!("avx2", __m256i, product_14 = product_7(7));

/// The columns of a product of numbers of seven limbs below 2^32, modulo 2^64.
#[inline]
#[target_feature(enable = "avx2")]
fn product_7(a: &[__m256i; 7], b: &[__m256i; 7], out: &mut [__m256i; 14]) {
    let (a, b) = (*a, *b);
    macro_rules! columns {
        ($($k:literal)*) => {$(
            let mut sum = _mm256_setzero_si256();
            for i in 0..7_usize {
                if i <= $k && $k - i < 7 {
                    sum = add(sum, _mm256_mul_epu32(a[i], b[$k - i]));
                }
            }
            out[$k] = sum;
        )*};
    }
    columns!(0 1 2 3 4 5 6 7 8 9 10 11 12);
    out[13] = _mm256_setzero_si256();
}

/// Reduces the columns of `product_112` modulo 2^3072 - c, to the limbs described at [`Products`].
///
/// 2^3136, the weight of limb 112, is c times 2^64, thus 2^8 c in limb 2.
#[inline]
#[target_feature(enable = "avx2")]
fn reduce(wide: &[__m256i; 2 * LIMBS], out: &mut [__m256i; LIMBS]) {
    let zero = _mm256_setzero_si256();
    let c_256 = _mm256_set1_epi64x(PRIME_DIFF.cast_signed() << 8);
    // The two carry chains do not wait for each other. `folded` holds the products of the last two high limbs, each
    // below 2^57.
    let (mut low_carry, mut high_carry) = (zero, zero);
    let mut folded = [zero; 2];
    for k in 0..LIMBS {
        let high = add(wide[LIMBS + k], high_carry);
        high_carry = carry_of(high);
        // Below 2^63 + 2^57 + 2^36.
        let low = add(add(wide[k], low_carry), folded[k % 2]);
        folded[k % 2] = _mm256_mul_epu32(low_limb(high), c_256);
        low_carry = carry_of(low);
        out[k] = low_limb(low);
    }
    // Columns 112 to 117: the carry of the low half, the last two products, and c times the carry of the high half,
    // which is below 2^36.
    let beyond = [
        add(low_carry, folded[LIMBS % 2]),
        folded[(LIMBS + 1) % 2],
        _mm256_mul_epu32(low_limb(high_carry), c_256),
        _mm256_mul_epu32(carry_of(high_carry), c_256),
        zero,
        zero,
    ];
    let (mut carry, mut beyond_carry) = (zero, zero);
    for (column, out) in beyond.into_iter().zip(&mut out[2..8]) {
        let limb = add(column, beyond_carry);
        beyond_carry = carry_of(limb);
        let sum = add(add(*out, carry), _mm256_mul_epu32(low_limb(limb), c_256));
        carry = carry_of(sum);
        *out = low_limb(sum);
    }
    // Column 116 was below 2^9, so the carry into limb 7 was below 2^10, and the one into limb 8 is at most 1.
    out[8] = add(out[8], carry);
}

#[inline]
#[target_feature(enable = "avx2")]
fn low_limb(x: __m256i) -> __m256i {
    _mm256_and_si256(x, _mm256_set1_epi64x((1 << LIMB_BITS) - 1))
}

#[inline]
#[target_feature(enable = "avx2")]
fn carry_of(x: __m256i) -> __m256i {
    _mm256_srli_epi64::<{ LIMB_BITS.cast_signed() }>(x)
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(row: &[u32; 8]) -> __m256i {
    // SAFETY: a row is 32 readable bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256((&raw const *row).cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(x: __m256i, y: __m256i) -> __m256i {
    _mm256_add_epi64(x, y)
}

#[inline]
#[target_feature(enable = "avx2")]
fn sub(x: __m256i, y: __m256i) -> __m256i {
    _mm256_sub_epi64(x, y)
}

#[inline]
#[target_feature(enable = "avx2")]
fn add32(x: __m256i, y: __m256i) -> __m256i {
    _mm256_add_epi32(x, y)
}

#[inline]
#[target_feature(enable = "avx2")]
fn xor(x: __m256i, y: __m256i) -> __m256i {
    _mm256_xor_si256(x, y)
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotl<const COUNT: i32>(x: __m256i) -> __m256i {
    // The byte shuffles are one operation instead of three.
    match COUNT {
        16 => _mm256_shuffle_epi8(x, bytes(0x0d0c_0f0e_0908_0b0a, 0x0504_0706_0100_0302)),
        8 => _mm256_shuffle_epi8(x, bytes(0x0e0d_0c0f_0a09_080b, 0x0605_0407_0201_0003)),
        _ => {
            // With constant counts the compiler emits the immediate forms.
            let left = _mm256_sll_epi32(x, _mm_cvtsi32_si128(COUNT));
            _mm256_or_si256(left, _mm256_srl_epi32(x, _mm_cvtsi32_si128(32 - COUNT)))
        }
    }
}

/// The byte order of a shuffle, the same in both halves.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes(high: i64, low: i64) -> __m256i {
    _mm256_set_epi64x(high, low, high, low)
}

#[inline]
#[target_feature(enable = "avx2")]
fn splat32(word: u32) -> __m256i {
    _mm256_set1_epi32(word.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sha256::{MuHashKernel, kernels};

    /// Limbs at their bound, times the largest number: the sums of the product must not overflow.
    #[test]
    fn limbs_at_their_bound() {
        for kernel in &kernels().muhash_available {
            if let MuHashKernel::Avx2(avx2) = kernel {
                // SAFETY: a value of `Avx2` exists.
                unsafe { check(*avx2) }
            }
        }
    }

    #[target_feature(enable = "avx2")]
    fn check(kernel: Avx2) {
        const LIMB_MAX: i64 = (1 << LIMB_BITS) - 1;
        let limbs: [i64; LIMBS] = std::array::from_fn(|k| if k == 8 { LIMB_MAX + 1 } else { LIMB_MAX });
        let even = limbs.map(|limb| _mm256_set1_epi64x(limb));
        let mut products = Products { even, odd: even };
        let mut expected = Num3072::from_limbs(&limbs.map(i64::cast_unsigned), LIMB_BITS);
        for _ in 0..3 {
            kernel.multiply(&mut products, &Columns([[u32::MAX; 8]; 96]));
            expected.multiply(&Num3072::from_bytes(&[0xff; 384]));
            for number in kernel.numbers(&products) {
                assert_eq!(number, expected);
            }
            for (k, limb) in products.even.iter().enumerate().chain(products.odd.iter().enumerate()) {
                let mut words = [0_i64; 4];
                // SAFETY: the array is 32 writable bytes; the store needs no alignment.
                unsafe { _mm256_storeu_si256((&raw mut words).cast(), *limb) }
                let max = if k == 8 { LIMB_MAX + 1 } else { LIMB_MAX };
                assert!(words.iter().all(|word| (0..=max).contains(word)), "limb {k} is out of bounds");
            }
        }
    }
}
