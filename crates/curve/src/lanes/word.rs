//! One lane in 64-bit words, for CPUs without a SIMD kernel.
//!
//! Input and output as in [`Lanes`]. A field value is four words of 64 bits and a small fifth, so a product takes 16
//! multiplications, and 5 to reduce it, where five limbs of 52 bits take 25 and 6. Invariant: the fifth word of a
//! product and of a factor is zero. Cost: `docs/benchmarks/lanes.md`. Must never: compute with secrets, because
//! it branches on values. Derivation: `docs/derivations/field.md`, section 5.

use super::field::{FOLD_256, Packed, PackedLanes, ProductLanes, Products};
use super::plain::one_lane;
use super::{LIMB, Lanes};

/// The kernel that needs no CPU features.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word;

/// Four words, least significant first, and multiples of 2^256.
type Words = [u64; 5];
/// A product before its reduction.
type Wide = [u64; 8];

/// The low 64 bits; the caller takes those above separately.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "the bits above are taken separately")]
fn low(value: u128) -> u64 {
    value as u64
}

/// sum + a b + carry, as its low word and the new carry: at most 2^128 - 1.
#[inline(always)]
fn add_product(sum: u64, a: u64, b: u64, carry: u64) -> (u64, u64) {
    let wide = u128::from(a).wrapping_mul(u128::from(b)).wrapping_add(u128::from(sum)).wrapping_add(u128::from(carry));
    (low(wide), low(wide >> 64))
}

/// a + b + carry.
#[inline(always)]
fn add_carry(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let (sum, first) = a.overflowing_add(b);
    let (sum, second) = sum.overflowing_add(u64::from(carry));
    (sum, first | second)
}

/// a - b - borrow.
#[inline(always)]
fn sub_borrow(a: u64, b: u64, borrow: bool) -> (u64, bool) {
    let (apart, first) = a.overflowing_sub(b);
    let (apart, second) = apart.overflowing_sub(u64::from(borrow));
    (apart, first | second)
}

#[inline(always)]
fn wide_product(a: &Words, b: &Words) -> Wide {
    let [a0, a1, a2, a3, _] = *a;
    let [b0, b1, b2, b3, _] = *b;
    let (t0, carry) = add_product(0, a0, b0, 0);
    let (t1, carry) = add_product(0, a0, b1, carry);
    let (t2, carry) = add_product(0, a0, b2, carry);
    let (t3, t4) = add_product(0, a0, b3, carry);
    let (t1, carry) = add_product(t1, a1, b0, 0);
    let (t2, carry) = add_product(t2, a1, b1, carry);
    let (t3, carry) = add_product(t3, a1, b2, carry);
    let (t4, t5) = add_product(t4, a1, b3, carry);
    let (t2, carry) = add_product(t2, a2, b0, 0);
    let (t3, carry) = add_product(t3, a2, b1, carry);
    let (t4, carry) = add_product(t4, a2, b2, carry);
    let (t5, t6) = add_product(t5, a2, b3, carry);
    let (t3, carry) = add_product(t3, a3, b0, 0);
    let (t4, carry) = add_product(t4, a3, b1, carry);
    let (t5, carry) = add_product(t5, a3, b2, carry);
    let (t6, t7) = add_product(t6, a3, b3, carry);
    [t0, t1, t2, t3, t4, t5, t6, t7]
}

/// Products of different words once, doubled, and the squares of words.
#[inline(always)]
fn wide_square(a: &Words) -> Wide {
    let [a0, a1, a2, a3, _] = *a;
    let (t1, carry) = add_product(0, a0, a1, 0);
    let (t2, carry) = add_product(0, a0, a2, carry);
    let (t3, t4) = add_product(0, a0, a3, carry);
    let (t3, carry) = add_product(t3, a1, a2, 0);
    let (t4, t5) = add_product(t4, a1, a3, carry);
    let (t5, t6) = add_product(t5, a2, a3, 0);
    let square = |a: u64| {
        let wide = u128::from(a).wrapping_mul(u128::from(a));
        (low(wide), low(wide >> 64))
    };
    let ((t0, s1), (s2, s3), (s4, s5), (s6, s7)) = (square(a0), square(a1), square(a2), square(a3));
    let (d1, d2, d3) = (t1 << 1, t2 << 1 | t1 >> 63, t3 << 1 | t2 >> 63);
    let (d4, d5, d6, d7) = (t4 << 1 | t3 >> 63, t5 << 1 | t4 >> 63, t6 << 1 | t5 >> 63, t6 >> 63);
    let (t1, carry) = add_carry(d1, s1, false);
    let (t2, carry) = add_carry(d2, s2, carry);
    let (t3, carry) = add_carry(d3, s3, carry);
    let (t4, carry) = add_carry(d4, s4, carry);
    let (t5, carry) = add_carry(d5, s5, carry);
    let (t6, carry) = add_carry(d6, s6, carry);
    let (t7, _) = add_carry(d7, s7, carry);
    [t0, t1, t2, t3, t4, t5, t6, t7]
}

/// wide + 2^512 `above` + start modulo p, below 2^256.
#[inline(always)]
pub(super) fn reduce(wide: &Wide, above: u64, start: &Words) -> [u64; 4] {
    let [t0, t1, t2, t3, t4, t5, t6, t7] = *wide;
    let (r0, carry) = add_product(t0, t4, FOLD_256, 0);
    let (r1, carry) = add_product(t1, t5, FOLD_256, carry);
    let (r2, carry) = add_product(t2, t6, FOLD_256, carry);
    let (r3, top) = add_product(t3, t7, FOLD_256, carry);
    let (r0, carry) = add_carry(r0, start[0], false);
    let (r1, carry) = add_carry(r1, start[1], carry);
    let (r2, carry) = add_carry(r2, start[2], carry);
    let (r3, carry) = add_carry(r3, start[3], carry);
    // Below 2^35: 2^512 is FOLD_256 in units of 2^256.
    let top = top.wrapping_add(start[4]).wrapping_add(u64::from(carry)).wrapping_add(above.wrapping_mul(FOLD_256));
    debug_assert!(top >> 35 == 0, "the second fold is below 2^68");
    let fold = u128::from(top).wrapping_mul(u128::from(FOLD_256));
    let (r0, carry) = add_carry(r0, low(fold), false);
    let (r1, carry) = add_carry(r1, low(fold >> 64), carry);
    let (r2, carry) = add_carry(r2, 0, carry);
    let (r3, carry) = add_carry(r3, 0, carry);
    // If that carries, what remains is below 2^68, so the last fold ends in the second word.
    let (r0, carry) = r0.overflowing_add(if carry { FOLD_256 } else { 0 });
    [r0, r1.wrapping_add(u64::from(carry)), r2, r3]
}

/// Called, not inlined: the formulas have hundreds of products, which would not fit into the instruction cache.
mod called {
    use super::{Words, add_carry, reduce, wide_product, wide_square};

    #[inline(never)]
    pub(super) fn product(a: &Words, b: &Words) -> [u64; 4] {
        reduce(&wide_product(a, b), 0, &[0; 5])
    }

    #[inline(never)]
    pub(super) fn product_plus(a: &Words, b: &Words, start: &Words) -> [u64; 4] {
        reduce(&wide_product(a, b), 0, start)
    }

    #[inline(never)]
    pub(super) fn two_products(a: &Words, b: &Words, c: &Words, d: &Words) -> [u64; 4] {
        let (mut sum, other) = (wide_product(a, b), wide_product(c, d));
        let mut carry = false;
        for i in 0..8 {
            (sum[i], carry) = add_carry(sum[i], other[i], carry);
        }
        reduce(&sum, u64::from(carry), &[0; 5])
    }

    #[inline(never)]
    pub(super) fn product_plus_square(a: &Words, b: &Words, c: &Words) -> [u64; 4] {
        let (mut sum, other) = (wide_product(a, b), wide_square(c));
        let mut carry = false;
        for i in 0..8 {
            (sum[i], carry) = add_carry(sum[i], other[i], carry);
        }
        reduce(&sum, u64::from(carry), &[0; 5])
    }

    #[inline(never)]
    pub(super) fn square(a: &Words) -> [u64; 4] {
        reduce(&wide_square(a), 0, &[0; 5])
    }

    #[inline(never)]
    pub(super) fn square_plus(a: &Words, start: &Words) -> [u64; 4] {
        reduce(&wide_square(a), 0, start)
    }
}

/// Appends the fifth word here, where the compiler sees that it is zero and leaves out the fold of it.
#[inline(always)]
fn words([a, b, c, d]: [u64; 4]) -> Words {
    [a, b, c, d, 0]
}

#[inline(always)]
fn product(a: &Words, b: &Words) -> Words {
    words(called::product(a, b))
}

#[inline(always)]
fn product_plus(a: &Words, b: &Words, start: &Words) -> Words {
    words(called::product_plus(a, b, start))
}

#[inline(always)]
fn two_products(a: &Words, b: &Words, c: &Words, d: &Words) -> Words {
    words(called::two_products(a, b, c, d))
}

#[inline(always)]
fn product_plus_square(a: &Words, b: &Words, c: &Words) -> Words {
    words(called::product_plus_square(a, b, c))
}

#[inline(always)]
fn square(a: &Words) -> Words {
    words(called::square(a))
}

#[inline(always)]
fn square_plus(a: &Words, start: &Words) -> Words {
    words(called::square_plus(a, start))
}

#[inline(always)]
fn add(a: &Words, b: &Words) -> Words {
    let (r0, carry) = add_carry(a[0], b[0], false);
    let (r1, carry) = add_carry(a[1], b[1], carry);
    let (r2, carry) = add_carry(a[2], b[2], carry);
    let (r3, carry) = add_carry(a[3], b[3], carry);
    [r0, r1, r2, r3, a[4].wrapping_add(b[4]).wrapping_add(u64::from(carry))]
}

/// a / 2, or (a + p) / 2 if a is odd.
#[inline(always)]
fn half(a: &Words) -> Words {
    let odd = (a[0] & 1).wrapping_neg();
    // p is 2^256 - FOLD_256.
    let (r0, borrow) = sub_borrow(a[0], odd & FOLD_256, false);
    let (r1, borrow) = sub_borrow(a[1], 0, borrow);
    let (r2, borrow) = sub_borrow(a[2], 0, borrow);
    let (r3, borrow) = sub_borrow(a[3], 0, borrow);
    let r4 = a[4].wrapping_sub(odd).wrapping_sub(u64::from(borrow));
    [r0 >> 1 | r1 << 63, r1 >> 1 | r2 << 63, r2 >> 1 | r3 << 63, r3 >> 1 | r4 << 63, r4 >> 1]
}

/// `multiple` * p - a.
#[inline(always)]
fn negate(a: &Words, multiple: u64) -> Words {
    debug_assert!(a[4].wrapping_add(1) < multiple, "the multiple of p is larger");
    let (r0, borrow) = sub_borrow(multiple.wrapping_mul(FOLD_256).wrapping_neg(), a[0], false);
    let (r1, borrow) = sub_borrow(u64::MAX, a[1], borrow);
    let (r2, borrow) = sub_borrow(u64::MAX, a[2], borrow);
    let (r3, borrow) = sub_borrow(u64::MAX, a[3], borrow);
    [r0, r1, r2, r3, multiple.wrapping_sub(1).wrapping_sub(a[4]).wrapping_sub(u64::from(borrow))]
}

/// The same modulo p, below 2^256.
#[inline(always)]
fn fold(a: &Words) -> Words {
    debug_assert!(a[4] >> 16 == 0, "a sum has few terms");
    let (r0, carry) = add_carry(a[0], a[4].wrapping_mul(FOLD_256), false);
    let (r1, carry) = add_carry(a[1], 0, carry);
    let (r2, carry) = add_carry(a[2], 0, carry);
    let (r3, carry) = add_carry(a[3], 0, carry);
    // If that carries, what remains is below 2^50.
    [r0.wrapping_add(if carry { FOLD_256 } else { 0 }), r1, r2, r3, 0]
}

/// The same modulo p, below p.
#[inline(always)]
fn canonical(a: &Words) -> Words {
    let value = fold(a);
    // value + 2^256 - p reaches 2^256 if and only if value reaches p.
    let less = add(&value, &[FOLD_256, 0, 0, 0, 0]);
    if less[4] == 0 { value } else { [less[0], less[1], less[2], less[3], 0] }
}

/// a b modulo p, below 2^256.
#[inline(always)]
pub(super) fn multiply(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    called::product(&words(*a), &words(*b))
}

/// The same modulo p, below p.
#[inline(always)]
pub(super) fn canonical_words(a: &[u64; 4]) -> [u64; 4] {
    let [a, b, c, d, _] = canonical(&words(*a));
    [a, b, c, d]
}

/// From limbs of 52 bits that may be larger.
#[inline(always)]
pub(super) fn from_limbs([a, b, c, d, e]: &[u64; 5]) -> Words {
    let wide = u128::from(*a).wrapping_add(u128::from(*b) << 52);
    let (r0, wide) = (low(wide), (wide >> 64).wrapping_add(u128::from(*c) << 40));
    let (r1, wide) = (low(wide), (wide >> 64).wrapping_add(u128::from(*d) << 28));
    let (r2, wide) = (low(wide), (wide >> 64).wrapping_add(u128::from(*e) << 16));
    [r0, r1, r2, low(wide), low(wide >> 64)]
}

#[inline(always)]
fn to_limbs([a, b, c, d, e]: &Words) -> [u64; 5] {
    [a & LIMB, (a >> 52 | b << 12) & LIMB, (b >> 40 | c << 24) & LIMB, (c >> 28 | d << 36) & LIMB, d >> 16 | e << 48]
}

impl Lanes for Word {
    const NAME: &'static str = "scalar";
    const IS_AFFINE: bool = true;
    const HAS_TWO_ABREAST: bool = true;
    const GROUPS_TOGETHER_MAX: usize = 32;
    // A check in lanes takes at most 0.8 of the reference.
    const USEFUL_PER_WASTED: usize = 4;
    const BATCH_CHECKS_MIN: usize = 64;
    const PACKED: Option<PackedLanes<Word>> =
        Some(Packed { from_limbs, to_limbs, add, half, negate, fold, canonical, product_plus_square });
    const PRODUCTS: Option<ProductLanes<Word>> =
        Some(Products { product, product_plus, two_products, square, square_plus });
    one_lane!();

    #[inline(always)]
    fn run<R>(self, work: impl FnOnce() -> R) -> R {
        work()
    }

    #[inline(always)]
    fn add(self, a: u64, b: u64) -> u64 {
        a.wrapping_add(b)
    }

    #[inline(always)]
    fn sub(self, a: u64, b: u64) -> u64 {
        a.wrapping_sub(b)
    }

    #[inline(always)]
    fn multiply(self, low: u64, high: u64, a: u64, b: u64) -> (u64, u64) {
        let product = u128::from(a).wrapping_mul(u128::from(b));
        (low.wrapping_add(self::low(product) & LIMB), high.wrapping_add(self::low(product >> 52)))
    }
}
