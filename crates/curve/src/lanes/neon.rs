//! Four lanes with NEON, whose widening multiplications take two pairs of 32-bit numbers.
//!
//! Input and output as in [`Lanes`]. A factor is a limb of 52 bits as two of 26, so a product in the field is 100
//! multiplications in 19 columns and 20 to fold the upper ones, for two lanes each. Lanes 0 and 1 are the first vector,
//! 2 and 3 the second: two independent dependency chains. Invariant: no operation branches on a value. Cost:
//! `docs/benchmarks/lanes.md`. Must never: multiply halves of a limb that are not below 2^27. Derivation:
//! `docs/derivations/field.md`, section 6.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    uint32x4_t, uint64x2_t, vaddq_u32, vaddq_u64, vandq_u32, vandq_u64, vbslq_u64, vceqq_u64, vcombine_u64,
    vcopyq_laneq_u64, vcreate_u64, vdupq_n_s64, vdupq_n_u32, vdupq_n_u64, veorq_u64, vextq_u32, vget_low_u32,
    vgetq_lane_u64, vld1q_u64, vmlal_high_u32, vmlal_u32, vmovn_high_u64, vmovn_u64, vorrq_u64, vshlq_u64,
    vshrn_high_n_u64, vshrn_n_u64, vshrq_n_u64, vsliq_n_u64, vsraq_n_u64, vsubq_u64, vtrn1q_u64, vtrn2q_u64,
};

use super::field::{FOLD_256, ProductLanes, Products};
use super::{Entries, Lanes, Line, WIDTH_MAX};

/// Proof that the CPU has NEON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neon(());

// Every 64-bit ARM target with an operating system has NEON, so its instructions need no detection.
const _: () = assert!(cfg!(target_feature = "neon"));

impl Neon {
    pub(crate) fn detect() -> Option<Neon> {
        cfg!(target_feature = "neon").then_some(Neon(()))
    }
}

/// The low 26 bits: half a limb.
const HALF: u64 = (1 << 26) - 1;
const HALF_32: u32 = (1 << 26) - 1;
/// The bits of column 9 below 2^256.
const TOP: u64 = (1 << 22) - 1;
/// 2^260 modulo p is `FOLD_LOW` + 2^26 `FOLD_HIGH`; 2^256 modulo p is `FOLD_TOP` + 2^26 2^6.
const FOLD_LOW: u32 = 0x3d10;
const FOLD_HIGH: u32 = 0x400;
const FOLD_TOP: u32 = 0x3d1;
const _: () = assert!(FOLD_LOW as u64 + ((FOLD_HIGH as u64) << 26) == FOLD_256 << 4);
const _: () = assert!(FOLD_TOP as u64 + (1 << 32) == FOLD_256);
// A column has at most 20 products of halves, or ten of them with one factor doubled, a limb below 2^62, a carry and
// three products of the folds.
const _: () = assert!(20 * HALF * HALF + (1 << 62) + (1 << 38) + 3 * (HALF << 14) < 1 << 63);

/// The words of two vectors.
type Vector = [uint64x2_t; 2];
/// For each vector the low halves of a limb in both lanes, then the high halves.
type Factor = [uint32x4_t; 2];
/// The limbs of a factor of two lanes.
type Halves = [uint32x4_t; 5];
/// The limbs of two lanes.
type Limbs = [uint64x2_t; 5];

/// Instructions, each for one vector.
mod one {
    use super::*;

    /// Gives an instruction a safe function.
    macro_rules! safe {
        ($($(#[$attribute:meta])* $name:ident($($argument:ident: $of:ty),*) -> $to:ty = $work:expr;)*) => {$(
            $(#[$attribute])*
            #[inline(always)]
            pub(super) fn $name($($argument: $of),*) -> $to {
                // SAFETY: the instructions belong to NEON, which this build assumes (see above); one reads memory,
                // through a reference.
                unsafe { $work }
            }
        )*};
    }

    safe! {
        splat(word: u64) -> uint64x2_t = vdupq_n_u64(word);
        load(words: &[u64; 2]) -> uint64x2_t = vld1q_u64(words.as_ptr());
        pair(first: u64, second: u64) -> uint64x2_t = vcombine_u64(vcreate_u64(first), vcreate_u64(second));
        first(a: uint64x2_t) -> u64 = vgetq_lane_u64::<0>(a);
        second(a: uint64x2_t) -> u64 = vgetq_lane_u64::<1>(a);
        firsts(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vtrn1q_u64(a, b);
        seconds(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vtrn2q_u64(a, b);
        first_and_second(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vcopyq_laneq_u64::<1, 1>(a, b);
        add(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vaddq_u64(a, b);
        sub(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vsubq_u64(a, b);
        and(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vandq_u64(a, b);
        or(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vorrq_u64(a, b);
        xor(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = veorq_u64(a, b);
        equal(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vceqq_u64(a, b);
        select(mask: uint64x2_t, a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vbslq_u64(mask, a, b);
        // With constant counts the compiler emits the immediate form. A negative count shifts to the right.
        shift(a: uint64x2_t, count: i64) -> uint64x2_t = vshlq_u64(a, vdupq_n_s64(count));
        shr_22(a: uint64x2_t) -> uint64x2_t = vshrq_n_u64::<22>(a);
        /// sum + a / 2^26.
        add_shr_26(sum: uint64x2_t, a: uint64x2_t) -> uint64x2_t = vsraq_n_u64::<26>(sum, a);
        /// The low 26 bits of a + 2^26 b.
        join_26(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vsliq_n_u64::<26>(a, b);
        /// The low 32 bits of the words, then bits 26 to 57.
        split_26(a: uint64x2_t) -> uint32x4_t = vshrn_high_n_u64::<26>(vmovn_u64(a), a);
        /// Bits 0 to 31 of the words of a, then of b.
        narrow(a: uint64x2_t, b: uint64x2_t) -> uint32x4_t = vmovn_high_u64(vmovn_u64(a), b);
        /// Bits 26 to 57 of the words, twice.
        narrow_shr_26(a: uint64x2_t) -> uint32x4_t = vshrn_high_n_u64::<26>(vshrn_n_u64::<26>(a), a);
        splat_32(word: u32) -> uint32x4_t = vdupq_n_u32(word);
        and_32(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vandq_u32(a, b);
        add_32(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vaddq_u32(a, b);
        /// The upper two numbers, then the lower two.
        swap(a: uint32x4_t) -> uint32x4_t = vextq_u32::<2>(a, a);
        /// Adds the products of the lower two numbers.
        add_low(sum: uint64x2_t, a: uint32x4_t, b: uint32x4_t) -> uint64x2_t =
            vmlal_u32(sum, vget_low_u32(a), vget_low_u32(b));
        /// Adds the products of the upper two numbers.
        add_high(sum: uint64x2_t, a: uint32x4_t, b: uint32x4_t) -> uint64x2_t = vmlal_high_u32(sum, a, b);
    }
}

/// A factor: both halves below 2^26.
#[inline(always)]
fn halves(a: uint64x2_t) -> uint32x4_t {
    one::and_32(one::split_26(a), one::splat_32(HALF_32))
}

/// Adds the low 52 bits of a b to `low` and the bits above them to `high`.
#[inline(always)]
fn multiply(low: uint64x2_t, high: uint64x2_t, a: uint32x4_t, b: uint32x4_t) -> (uint64x2_t, uint64x2_t) {
    let (zero, crossed) = (one::splat(0), one::swap(b));
    let first = one::add_low(zero, a, b);
    // Below 2^54.
    let middle = one::add_high(one::add_low(zero, a, crossed), a, crossed);
    let middle = one::add_shr_26(middle, first);
    let high = one::add_shr_26(one::add_high(high, a, b), middle);
    (one::add(low, one::join_26(first, one::and(middle, one::splat(HALF)))), high)
}

/// Products of halves, by column: column k is the multiple of 2^(26 k).
trait Terms: Copy {
    /// Adds column 2 `AT`: products of two low halves, and of two high ones.
    fn add_even<const AT: usize>(&self, sum: uint64x2_t) -> uint64x2_t;
    /// Adds column 2 `AT` + 1: products of a low half and a high one.
    fn add_odd<const AT: usize>(&self, sum: uint64x2_t) -> uint64x2_t;
}

/// The terms of a b; `crossed` is b with swapped halves.
#[derive(Clone, Copy)]
struct Product {
    a: Halves,
    b: Halves,
    crossed: Halves,
}

/// The terms of a a; `double` is 2 a, and `crossed` is the same with swapped halves.
#[derive(Clone, Copy)]
struct Square {
    a: Halves,
    double: Halves,
    crossed: Halves,
}

impl Product {
    #[inline(always)]
    fn new(a: Halves, b: Halves) -> Product {
        Product { a, b, crossed: b.map(one::swap) }
    }
}

impl Square {
    #[inline(always)]
    fn new(a: Halves) -> Square {
        let double = a.map(
            #[inline(always)]
            |a| one::add_32(a, a),
        );
        Square { a, double, crossed: double.map(one::swap) }
    }
}

impl Terms for Product {
    #[inline(always)]
    fn add_even<const AT: usize>(&self, mut sum: uint64x2_t) -> uint64x2_t {
        for i in 0..5 {
            if i <= AT && AT - i < 5 {
                sum = one::add_low(sum, self.a[i], self.b[AT - i]);
            }
            if i < AT && AT - 1 - i < 5 {
                sum = one::add_high(sum, self.a[i], self.b[AT - 1 - i]);
            }
        }
        sum
    }

    #[inline(always)]
    fn add_odd<const AT: usize>(&self, mut sum: uint64x2_t) -> uint64x2_t {
        for i in 0..5 {
            if i <= AT && AT - i < 5 {
                sum = one::add_low(sum, self.a[i], self.crossed[AT - i]);
                sum = one::add_high(sum, self.a[i], self.crossed[AT - i]);
            }
        }
        sum
    }
}

impl Terms for Square {
    #[inline(always)]
    fn add_even<const AT: usize>(&self, mut sum: uint64x2_t) -> uint64x2_t {
        for i in 0..5 {
            if 2 * i <= AT && AT - i < 5 {
                let other = if 2 * i == AT { self.a[i] } else { self.double[i] };
                sum = one::add_low(sum, other, self.a[AT - i]);
            }
            if 2 * i < AT && AT - 1 - i < 5 {
                let other = if 2 * i + 1 == AT { self.a[i] } else { self.double[i] };
                sum = one::add_high(sum, other, self.a[AT - 1 - i]);
            }
        }
        sum
    }

    #[inline(always)]
    fn add_odd<const AT: usize>(&self, mut sum: uint64x2_t) -> uint64x2_t {
        for i in 0..5 {
            if i <= AT && AT - i < 5 {
                sum = one::add_low(sum, self.a[i], self.crossed[AT - i]);
            }
        }
        sum
    }
}

impl<A: Terms, B: Terms> Terms for (A, B) {
    #[inline(always)]
    fn add_even<const AT: usize>(&self, sum: uint64x2_t) -> uint64x2_t {
        self.1.add_even::<AT>(self.0.add_even::<AT>(sum))
    }

    #[inline(always)]
    fn add_odd<const AT: usize>(&self, sum: uint64x2_t) -> uint64x2_t {
        self.1.add_odd::<AT>(self.0.add_odd::<AT>(sum))
    }
}

/// The sum of the terms modulo p, plus `start`: below 2^256 + 2^219 in limbs below 2^52.
///
/// The upper columns come first, so that each is added to a lower one as soon as it is carried.
#[inline(always)]
fn reduce(terms: &impl Terms, start: Option<&Limbs>) -> Limbs {
    let zero = one::splat(0);
    let half = one::splat(HALF);
    // Columns 10 to 19 as halves below 2^26; the sum is below 2^520, so the last one has no carry.
    let c10 = terms.add_even::<5>(zero);
    let c11 = one::add_shr_26(terms.add_odd::<5>(zero), c10);
    let c12 = one::add_shr_26(terms.add_even::<6>(zero), c11);
    let c13 = one::add_shr_26(terms.add_odd::<6>(zero), c12);
    let c14 = one::add_shr_26(terms.add_even::<7>(zero), c13);
    let c15 = one::add_shr_26(terms.add_odd::<7>(zero), c14);
    let c16 = one::add_shr_26(terms.add_even::<8>(zero), c15);
    let c17 = one::add_shr_26(terms.add_odd::<8>(zero), c16);
    let c18 = one::add_shr_26(terms.add_even::<9>(zero), c17);
    let c19 = one::add_shr_26(zero, c18);
    let mask = one::splat_32(HALF_32);
    let h10 = one::and_32(one::narrow(c10, c11), mask);
    let h12 = one::and_32(one::narrow(c12, c13), mask);
    let h14 = one::and_32(one::narrow(c14, c15), mask);
    let h16 = one::and_32(one::narrow(c16, c17), mask);
    let h18 = one::and_32(one::narrow(c18, c19), mask);
    let (low, high) = (one::splat_32(FOLD_LOW), one::splat_32(FOLD_HIGH));
    let [s0, s1, s2, s3, s4] = start.map_or([zero; 5], |start| *start);
    let c0 = one::add_low(terms.add_even::<0>(s0), h10, low);
    let c1 = one::add_low(one::add_high(terms.add_odd::<0>(zero), h10, low), h10, high);
    let c2 = one::add_high(one::add_low(terms.add_even::<1>(s1), h12, low), h10, high);
    let c3 = one::add_low(one::add_high(terms.add_odd::<1>(zero), h12, low), h12, high);
    let c4 = one::add_high(one::add_low(terms.add_even::<2>(s2), h14, low), h12, high);
    let c5 = one::add_low(one::add_high(terms.add_odd::<2>(zero), h14, low), h14, high);
    let c6 = one::add_high(one::add_low(terms.add_even::<3>(s3), h16, low), h14, high);
    let c7 = one::add_low(one::add_high(terms.add_odd::<3>(zero), h16, low), h16, high);
    let c8 = one::add_high(one::add_low(terms.add_even::<4>(s4), h18, low), h16, high);
    let c9 = one::add_low(one::add_high(terms.add_odd::<4>(zero), h18, low), h18, high);
    // Column 10 is h19 FOLD_HIGH. With columns 7 to 9 carried, what is below 2^256 exceeds it by less than 2^219.
    let c8 = one::add_shr_26(c8, c7);
    let c9 = one::add_shr_26(c9, c8);
    let above = one::add_high(one::shr_22(c9), h18, one::splat_32(FOLD_HIGH << 4));
    let (c7, c8, c9) = (one::and(c7, half), one::and(c8, half), one::and(c9, one::splat(TOP)));
    // Below 2^41.
    let fold = one::splat_32(FOLD_TOP);
    let c0 = one::add_low(c0, one::and_32(one::narrow(above, above), mask), fold);
    let c1 = one::add_low(one::add(c1, one::shift(above, 6)), one::narrow_shr_26(above), fold);
    let c1 = one::add_shr_26(c1, c0);
    let c2 = one::add_shr_26(c2, c1);
    let c3 = one::add_shr_26(c3, c2);
    let c4 = one::add_shr_26(c4, c3);
    let c5 = one::add_shr_26(c5, c4);
    let c6 = one::add_shr_26(c6, c5);
    let c7 = one::add_shr_26(c7, c6);
    let c8 = one::add_shr_26(c8, c7);
    let c9 = one::add_shr_26(c9, c8);
    [
        one::join_26(c0, one::and(c1, half)),
        one::join_26(c2, one::and(c3, half)),
        one::join_26(c4, one::and(c5, half)),
        one::join_26(c6, one::and(c7, half)),
        one::join_26(c8, c9),
    ]
}

#[inline(always)]
fn of<const VECTOR: usize, T: Copy>(limbs: &[[T; 2]; 5]) -> [T; 5] {
    let [a, b, c, d, e] = limbs;
    [a[VECTOR], b[VECTOR], c[VECTOR], d[VECTOR], e[VECTOR]]
}

#[inline(always)]
fn join([a0, b0, c0, d0, e0]: Limbs, [a1, b1, c1, d1, e1]: Limbs) -> [Vector; 5] {
    [[a0, a1], [b0, b1], [c0, c1], [d0, d1], [e0, e1]]
}

// Called, not inlined: the formulas have hundreds of products, which would not fit into the instruction cache.

#[inline(never)]
fn product(a: &[Factor; 5], b: &[Factor; 5]) -> [Vector; 5] {
    let first = reduce(&Product::new(of::<0, _>(a), of::<0, _>(b)), None);
    let second = reduce(&Product::new(of::<1, _>(a), of::<1, _>(b)), None);
    join(first, second)
}

#[inline(never)]
fn product_plus(a: &[Factor; 5], b: &[Factor; 5], start: &[Vector; 5]) -> [Vector; 5] {
    let first = reduce(&Product::new(of::<0, _>(a), of::<0, _>(b)), Some(&of::<0, _>(start)));
    let second = reduce(&Product::new(of::<1, _>(a), of::<1, _>(b)), Some(&of::<1, _>(start)));
    join(first, second)
}

#[inline(never)]
fn two_products(a: &[Factor; 5], b: &[Factor; 5], c: &[Factor; 5], d: &[Factor; 5]) -> [Vector; 5] {
    let first = (Product::new(of::<0, _>(a), of::<0, _>(b)), Product::new(of::<0, _>(c), of::<0, _>(d)));
    let second = (Product::new(of::<1, _>(a), of::<1, _>(b)), Product::new(of::<1, _>(c), of::<1, _>(d)));
    join(reduce(&first, None), reduce(&second, None))
}

#[inline(never)]
fn square(a: &[Factor; 5]) -> [Vector; 5] {
    join(reduce(&Square::new(of::<0, _>(a)), None), reduce(&Square::new(of::<1, _>(a)), None))
}

#[inline(never)]
fn square_plus(a: &[Factor; 5], start: &[Vector; 5]) -> [Vector; 5] {
    let first = reduce(&Square::new(of::<0, _>(a)), Some(&of::<0, _>(start)));
    let second = reduce(&Square::new(of::<1, _>(a)), Some(&of::<1, _>(start)));
    join(first, second)
}

/// The words of two lines, transposed.
#[inline(always)]
fn transposed(first: &Line, second: &Line) -> [uint64x2_t; 8] {
    let mut words = [one::splat(0); 8];
    let pairs = first.0.as_chunks().0.iter().zip(second.0.as_chunks().0);
    for (two, (first, second)) in words.as_chunks_mut::<2>().0.iter_mut().zip(pairs) {
        let (first, second) = (one::load(first), one::load(second));
        *two = [one::firsts(first, second), one::seconds(first, second)];
    }
    words
}

#[inline(always)]
fn both([a, b, c, d, e, f, g, h]: [uint64x2_t; 8], other: [uint64x2_t; 8]) -> [Vector; 8] {
    let [i, j, k, l, m, n, o, p] = other;
    [[a, i], [b, j], [c, k], [d, l], [e, m], [f, n], [g, o], [h, p]]
}

/// Applies an instruction to both vectors.
macro_rules! each {
    ($instruction:ident($($argument:expr),+)) => {
        [one::$instruction($($argument[0]),+), one::$instruction($($argument[1]),+)]
    };
}

impl Lanes for Neon {
    const NAME: &'static str = "neon";
    const IS_AFFINE: bool = true;
    // A check in lanes takes at most two thirds of the reference's instructions.
    const USEFUL_PER_WASTED: usize = 2;
    const BATCH_CHECKS_MIN: usize = 96;
    const PRODUCTS: Option<ProductLanes<Neon>> =
        Some(Products { product, product_plus, two_products, square, square_plus });
    const WIDTH: usize = 4;
    type Vector = Vector;
    type Factor = Factor;
    type Mask = Vector;

    #[inline]
    fn run<R>(self, work: impl FnOnce() -> R) -> R {
        work()
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Vector {
        [one::splat(word); 2]
    }

    #[inline(always)]
    fn load(self, words: &[u64; WIDTH_MAX]) -> Vector {
        let pairs = words.as_chunks().0;
        [one::load(&pairs[0]), one::load(&pairs[1])]
    }

    #[inline(always)]
    fn store(self, vector: Vector) -> [u64; WIDTH_MAX] {
        let [a, b] = vector;
        [one::first(a), one::second(a), one::first(b), one::second(b), 0, 0, 0, 0]
    }

    #[inline(always)]
    fn mask(self, bits: u8) -> Vector {
        let word = |lane: u32| u64::from(bits >> lane & 1).wrapping_neg();
        [one::pair(word(0), word(1)), one::pair(word(2), word(3))]
    }

    #[inline(always)]
    fn bits(self, mask: Vector) -> u8 {
        let [a, b, c, d, ..] = self.store(mask).map(|word| u8::from(word != 0));
        a | b << 1 | c << 2 | d << 3
    }

    #[inline(always)]
    fn add(self, a: Vector, b: Vector) -> Vector {
        each!(add(a, b))
    }

    #[inline(always)]
    fn sub(self, a: Vector, b: Vector) -> Vector {
        each!(sub(a, b))
    }

    #[inline(always)]
    fn and(self, a: Vector, b: Vector) -> Vector {
        each!(and(a, b))
    }

    #[inline(always)]
    fn or(self, a: Vector, b: Vector) -> Vector {
        each!(or(a, b))
    }

    #[inline(always)]
    fn xor(self, a: Vector, b: Vector) -> Vector {
        each!(xor(a, b))
    }

    #[inline(always)]
    fn shl(self, a: Vector, count: u32) -> Vector {
        let count = i64::from(count);
        [one::shift(a[0], count), one::shift(a[1], count)]
    }

    #[inline(always)]
    fn shr(self, a: Vector, count: u32) -> Vector {
        let count = -i64::from(count);
        [one::shift(a[0], count), one::shift(a[1], count)]
    }

    #[inline(always)]
    fn equal(self, a: Vector, b: Vector) -> Vector {
        each!(equal(a, b))
    }

    #[inline(always)]
    fn select(self, mask: Vector, a: Vector, b: Vector) -> Vector {
        each!(select(mask, a, b))
    }

    #[inline(always)]
    fn differ(self, a: Vector, b: Vector) -> Vector {
        self.xor(a, b)
    }

    #[inline(always)]
    fn factor(self, a: Vector) -> Factor {
        [halves(a[0]), halves(a[1])]
    }

    #[inline(always)]
    fn multiply(self, low: Vector, high: Vector, a: Factor, b: Factor) -> (Vector, Vector) {
        let (low_0, high_0) = multiply(low[0], high[0], a[0], b[0]);
        let (low_1, high_1) = multiply(low[1], high[1], a[1], b[1]);
        ([low_0, low_1], [high_0, high_1])
    }

    #[inline(always)]
    fn pick(self, entries: &Entries<Self>, index: Vector) -> [Vector; 5] {
        let [a, b, c, d, ..] = self.store(index).map(super::plain::low_bits);
        let mut limbs = [index; 5];
        for i in 0..5 {
            limbs[i] = [
                one::first_and_second(entries[a][i][0], entries[b][i][0]),
                one::first_and_second(entries[c][i][1], entries[d][i][1]),
            ];
        }
        limbs
    }

    #[inline(always)]
    fn lines(self, table: &[Line; 4096], index: Vector) -> [Vector; 8] {
        let [a, b, c, d, ..] = self.store(index);
        let line = |index| super::line(table, index);
        both(transposed(line(a), line(b)), transposed(line(c), line(d)))
    }

    #[inline(always)]
    fn rows(self, rows: [&Line; WIDTH_MAX]) -> [Vector; 8] {
        let [a, b, c, d, ..] = rows;
        both(transposed(a, b), transposed(c, d))
    }

    #[inline(always)]
    fn is_below(self, a: Vector, bits: u32) -> bool {
        self.bits(self.equal(self.shr(a, bits), self.splat(0))) == 15
    }
}
