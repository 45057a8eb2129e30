//! Numbers modulo the group order n in lanes, in Montgomery form with 2^260, and their recoding into odd digits.
//!
//! Input: five limbs below 2^256. Output: the same, below n if the name says canonical; halves of 156 bits. Invariant:
//! a product of two values below 2^257 is below 2^256. Cost: 105 multiply-adds for a product. Must never: invert zero.
//! Derivations: `docs/derivations/scalar.md`, `docs/derivations/inversion.md`.

use super::{LIMB, Lanes};

/// The group order.
pub(crate) const ORDER: [u64; 5] =
    [0x2_5e8c_d036_4141, 0xe_6af4_8a03_bbfd, 0xf_ffff_feba_aedc, 0xf_ffff_ffff_ffff, 0xffff_ffff_ffff];
/// -1 / n modulo 2^52.
const ORDER_INVERSE: u64 = 0xd_ff66_5588_b13f;
/// 2^260 modulo n: one, in Montgomery form.
const ONE: [u64; 5] = [0xa_1732_fc9b_ebf0, 0x9_50b7_5fc4_402d, 0x1455_1231, 0x0, 0x0];
/// 2^520 modulo n.
const SQUARE: [u64; 5] =
    [0xe_180c_268b_3b23, 0x9_4fd6_e33e_4c8e, 0xd_07c7_3b97_5948, 0xc_5e69_7f5e_45bc, 0x671c_d581_c69b];
/// n - 2 in words, most significant first.
const ORDER_LESS_2: [u64; 4] =
    [0xffff_ffff_ffff_ffff, 0xffff_ffff_ffff_fffe, 0xbaae_dce6_af48_a03b, 0xbfd2_5e8c_d036_413f];

/// A1 times 2^364 / n, rounded; `B1_SCALED` likewise for B1.
///
/// The lattice of (a, b) with a + b lambda = 0 modulo n has the basis (A1, -B1), (A2, A1).
const A1_SCALED: [u64; 5] =
    [0x7_fe89_3209_a45e, 0xd_aa8a_1471_e8ca, 0x9_0e49_284e_b153, 0x1_a7d4_6bcd_e86c, 0x308_6d22];
const B1_SCALED: [u64; 5] =
    [0xc_6157_1b4a_e8ac, 0x2_1208_ac9d_f506, 0x7_fa90_abfe_4c42, 0x6_010e_8828_6f54, 0xe44_37ed];
const A1: [u64; 3] = [0xc_90e4_9284_eb15, 0x2_1a7d_46bc_de86, 0x30_86d2];
const MINUS_A1: [u64; 3] = [0x3_6f1b_6d7b_14eb, 0xd_e582_b943_2179, 0xf_ffff_ffcf_792d];
const A2: [u64; 3] = [0x1_108d_9d44_cfd8, 0xf_7a8e_2f3f_657c, 0x114_ca50];
const MINUS_A2: [u64; 3] = [0xe_ef72_62bb_3028, 0x8571_d0c0_9a83, 0xf_ffff_feeb_35af];
const B1: [u64; 3] = [0x4_7fa9_0abf_e4c3, 0xd_6010_e882_86f5, 0xe4_437e];
const MINUS_B1: [u64; 3] = [0xb_8056_f540_1b3d, 0x2_9fef_177d_790a, 0xf_ffff_ff1b_bc81];

/// A number in lanes; only the low 52 bits of its limbs are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalar<L: Lanes>([L::Factor; 5]);

/// A canonical number: clean limbs, below n.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Canonical<L: Lanes>(pub(crate) [L::Vector; 5]);

/// k = first + second * lambda, both odd and below 2^130 in absolute value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Halves<L: Lanes> {
    pub(crate) first: Half<L>,
    pub(crate) second: Half<L>,
}

/// (k + 2^130 - 1) / 2 of an odd k, in three clean limbs: 26 windows of five bits, each an odd digit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Half<L: Lanes>([L::Vector; 3]);

impl<L: Lanes> Scalar<L> {
    /// From clean limbs.
    #[inline(always)]
    pub(crate) fn new(l: L, limbs: &[L::Vector; 5]) -> Scalar<L> {
        let [a, b, c, d, e] = *limbs;
        Scalar([l.factor(a), l.factor(b), l.factor(c), l.factor(d), l.factor(e)])
    }

    #[inline(always)]
    fn constant(l: L, limbs: &[u64; 5]) -> Scalar<L> {
        let [a, b, c, d, e] = *limbs;
        Scalar::new(l, &[l.splat(a), l.splat(b), l.splat(c), l.splat(d), l.splat(e)])
    }

    #[inline(always)]
    pub(crate) fn one(l: L) -> Scalar<L> {
        Scalar::constant(l, &ONE)
    }

    #[inline(always)]
    pub(crate) fn to_montgomery(self, l: L) -> Scalar<L> {
        self.times(l, &Scalar::constant(l, &SQUARE))
    }

    /// self * other / 2^260. Below 2^256 for factors below 2^257.
    #[inline(always)]
    pub(crate) fn times(&self, l: L, other: &Scalar<L>) -> Scalar<L> {
        l.run(
            #[inline(always)]
            || Scalar::new(l, &self.product(l, other)),
        )
    }

    /// The product, below n, in clean limbs.
    #[inline(always)]
    pub(crate) fn times_canonical(&self, l: L, other: &Scalar<L>) -> Canonical<L> {
        let mut value = self.product(l, other);
        for limb in &mut value[..4] {
            *limb = l.and(*limb, l.splat(LIMB));
        }
        // The product is below 2^254 + n, so one subtraction is enough. value + 2^260 - n reaches 2^260 if value
        // reaches n.
        let mut less = value;
        for i in 0..5 {
            less[i] = l.add(less[i], l.splat(LIMB - ORDER[i] + if i == 0 { 1 } else { 0 }));
        }
        for i in 0..4 {
            less[i + 1] = l.add(less[i + 1], l.shr(less[i], 52));
            less[i] = l.and(less[i], l.splat(LIMB));
        }
        let is_less = l.equal(l.shr(less[4], 52), l.splat(0));
        less[4] = l.and(less[4], l.splat(LIMB));
        for i in 0..5 {
            value[i] = l.select(is_less, value[i], less[i]);
        }
        Canonical(value)
    }

    /// Limbs below 2^59 whose low 52 bits are the product, the top limb clean.
    #[inline(always)]
    fn product(&self, l: L, other: &Scalar<L>) -> [L::Vector; 5] {
        let mut columns = begin(l);
        add_product(l, &mut columns, &self.0, &other.0);
        let inverse = l.factor(l.splat(ORDER_INVERSE));
        let order = Scalar::constant(l, &ORDER);
        for i in 0..5 {
            let (quotient, _) = l.multiply(l.splat(0), l.splat(0), l.factor(columns[i]), inverse);
            let quotient = l.factor(quotient);
            for j in 0..5 {
                let at = i + j;
                (columns[at], columns[at + 1]) = l.multiply(columns[at], columns[at + 1], quotient, order.0[j]);
            }
            // Column i is now 0 modulo 2^52: at most 19 halves of products and a carry.
            debug_assert!(l.is_below(columns[i], 58), "a column has room");
            columns[i + 1] = l.add(columns[i + 1], l.shr(columns[i], 52));
        }
        for i in 5..9 {
            columns[i + 1] = l.add(columns[i + 1], l.shr(columns[i], 52));
        }
        debug_assert!(l.is_below(columns[9], 49), "a product is below 2^257");
        [columns[5], columns[6], columns[7], columns[8], columns[9]]
    }

    /// 1 / self, input and output in Montgomery form; self to the power n - 2, four bits at a time.
    #[inline(always)]
    pub(crate) fn invert(&self, l: L) -> Scalar<L> {
        let mut powers = [Scalar::one(l); 16];
        for i in 1..16 {
            powers[i] = powers[i - 1].times(l, self);
        }
        let mut value = Scalar::one(l);
        for word in ORDER_LESS_2 {
            for nibble in 0..16 {
                for _ in 0..4 {
                    value = value.times(l, &value);
                }
                value = value.times(l, &powers[nibble_of(word, nibble)]);
            }
        }
        value
    }
}

/// Nibble `nibble` of a word, counted from the most significant one.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "four bits")]
fn nibble_of(word: u64, nibble: u32) -> usize {
    (word >> (60 - 4 * nibble) & 15) as usize
}

impl<L: Lanes> Canonical<L> {
    /// The windows of an odd k in 20 odd digits of 13 bits: (k - 1) / 2 + 2^259, where k is self, or n - self if self
    /// is even. The mask marks the lanes with an even self.
    #[inline(always)]
    pub(crate) fn generator_windows(&self, l: L) -> ([L::Vector; 5], L::Mask) {
        let mut value = self.0;
        let is_even = self.is_even(l);
        let mut borrow = l.splat(0);
        for i in 0..5 {
            // n - self limb by limb; 2^52 is added to the limb of n so that the difference is not negative.
            let apart = l.sub(l.splat(ORDER[i] + (1 << 52)), l.add(value[i], borrow));
            borrow = l.xor(l.shr(apart, 52), l.splat(1));
            value[i] = l.select(is_even, l.and(apart, l.splat(LIMB)), value[i]);
        }
        let mut windows = value;
        for i in 0..4 {
            let carried = l.shl(l.and(value[i + 1], l.splat(1)), 51);
            windows[i] = l.or(l.shr(value[i], 1), carried);
        }
        windows[4] = l.or(l.shr(value[4], 1), l.splat(1 << 51));
        (windows, is_even)
    }

    #[inline(always)]
    pub(crate) fn equals(&self, l: L, other: &Canonical<L>) -> L::Mask {
        let mut apart = l.splat(0);
        for i in 0..5 {
            apart = l.or(apart, l.xor(self.0[i], other.0[i]));
        }
        l.equal(apart, l.splat(0))
    }

    #[inline(always)]
    pub(crate) fn is_even(&self, l: L) -> L::Mask {
        l.equal(l.and(self.0[0], l.splat(1)), l.splat(0))
    }

    /// The sum, below 2 n.
    #[inline(always)]
    pub(crate) fn plus(&self, l: L, other: &Canonical<L>) -> Scalar<L> {
        let mut sum = self.0;
        for i in 0..5 {
            sum[i] = l.add(sum[i], other.0[i]);
        }
        for i in 0..4 {
            // The low 52 bits of a limb are all that is used of it.
            sum[i + 1] = l.add(sum[i + 1], l.shr(sum[i], 52));
        }
        Scalar::new(l, &sum)
    }

    /// k = first + second * lambda with short odd halves.
    #[inline(always)]
    pub(crate) fn split(&self, l: L) -> Halves<L> {
        let k = Scalar::new(l, &self.0);
        let c1 = shifted_product(l, &k, &A1_SCALED);
        let c2 = shifted_product(l, &k, &B1_SCALED);
        // first = k - c1 A1 - c2 A2, second = c1 B1 - c2 A1: modulo 2^156, each below 2^129 in absolute value.
        let mut first = [self.0[0], self.0[1], self.0[2]];
        add_low_product(l, &mut first, &c1, &MINUS_A1);
        add_low_product(l, &mut first, &c2, &MINUS_A2);
        let mut second = [l.splat(0); 3];
        add_low_product(l, &mut second, &c1, &B1);
        add_low_product(l, &mut second, &c2, &MINUS_A1);
        // (A1, -B1) is (odd, odd), (A2, A1) is (even, odd): adding the former where first is even, then the latter
        // where second is even, makes both odd.
        let first_even = l.equal(l.and(first[0], l.splat(1)), l.splat(0));
        add_where(l, &mut first, first_even, &A1);
        add_where(l, &mut second, first_even, &MINUS_B1);
        let second_even = l.equal(l.and(second[0], l.splat(1)), l.splat(0));
        add_where(l, &mut first, second_even, &A2);
        add_where(l, &mut second, second_even, &A1);
        Halves { first: Half::new(l, first), second: Half::new(l, second) }
    }
}

/// Ten columns with the value zero. If parts of products are signed, each column borrows 2^56 from the next.
#[inline(always)]
fn begin<L: Lanes>(l: L) -> [L::Vector; 10] {
    if L::IS_SIGNED {
        let middle = l.splat((1 << 56) - (1 << 4));
        let (first, last) = (l.splat(1 << 56), l.splat((1_u64 << 4).wrapping_neg()));
        return [first, middle, middle, middle, middle, middle, middle, middle, middle, last];
    }
    [l.splat(0); 10]
}

/// Adds limb i times limb j to the columns i + j and i + j + 1.
#[inline(always)]
fn add_product<L: Lanes>(l: L, columns: &mut [L::Vector; 10], a: &[L::Factor; 5], b: &[L::Factor; 5]) {
    for i in 0..5 {
        for j in 0..5 {
            let at = i + j;
            (columns[at], columns[at + 1]) = l.multiply(columns[at], columns[at + 1], a[i], b[j]);
        }
    }
}

/// k * scaled / 2^364, rounded down.
#[inline(always)]
fn shifted_product<L: Lanes>(l: L, k: &Scalar<L>, scaled: &[u64; 5]) -> [L::Factor; 3] {
    let mut columns = begin(l);
    add_product(l, &mut columns, &k.0, &Scalar::constant(l, scaled).0);
    for i in 0..9 {
        columns[i + 1] = l.add(columns[i + 1], l.shr(columns[i], 52));
    }
    [l.factor(columns[7]), l.factor(columns[8]), l.factor(columns[9])]
}

/// Adds a * b modulo 2^156, uncarried.
#[inline(always)]
fn add_low_product<L: Lanes>(l: L, sum: &mut [L::Vector; 3], a: &[L::Factor; 3], b: &[u64; 3]) {
    let mut columns = [sum[0], sum[1], sum[2], l.splat(0)];
    for i in 0..3 {
        for j in 0..3 {
            if i + j < 3 {
                let at = i + j;
                let limb = l.factor(l.splat(b[j]));
                (columns[at], columns[at + 1]) = l.multiply(columns[at], columns[at + 1], a[i], limb);
            }
        }
    }
    *sum = [columns[0], columns[1], columns[2]];
}

#[inline(always)]
fn add_where<L: Lanes>(l: L, sum: &mut [L::Vector; 3], mask: L::Mask, term: &[u64; 3]) {
    for i in 0..3 {
        sum[i] = l.add(sum[i], l.select(mask, l.splat(term[i]), l.splat(0)));
    }
}

impl<L: Lanes> Half<L> {
    /// From uncarried limbs of an odd k modulo 2^156, k below 2^130 in absolute value.
    #[inline(always)]
    fn new(l: L, limbs: [L::Vector; 3]) -> Half<L> {
        let [a, b, c] = limbs;
        // k + 2^130 - 1, which is even and at least 0.
        let limb = l.splat(LIMB);
        // If parts of products are signed, each limb borrows 2^56 from the next; the highest may become negative,
        // modulo 2^64.
        let (bias, next) = if L::IS_SIGNED { (1 << 56, 1 << 4) } else { (0, 0) };
        let a = l.add(a, l.splat(LIMB + bias));
        let b = l.add(l.add(b, l.splat(LIMB + bias - next)), l.shr(a, 52));
        let c = l.add(l.add(c, l.splat((1 << 26) - 1 - next)), l.shr(b, 52));
        let (a, b, c) = (l.and(a, limb), l.and(b, limb), l.and(c, limb));
        debug_assert!(l.is_below(c, 27), "half a scalar plus its bias is below 2^131");
        let one = l.splat(1);
        Half([l.or(l.shr(a, 1), l.shl(l.and(b, one), 51)), l.or(l.shr(b, 1), l.shl(l.and(c, one), 51)), l.shr(c, 1)])
    }

    pub(crate) fn limbs(&self) -> [L::Vector; 3] {
        self.0
    }

    /// Window i of 26: five bits b that represent the odd digit 2 b - 31.
    #[inline(always)]
    pub(crate) fn window(&self, l: L, i: u32) -> L::Vector {
        let bit = 5 * i;
        let [a, b, c] = self.0;
        let (low, high) = if bit < 52 {
            (a, b)
        } else if bit < 104 {
            (b, c)
        } else {
            (c, l.splat(0))
        };
        let offset = bit % 52;
        l.and(l.or(l.shr(low, offset), l.shl(high, 52 - offset)), l.splat(31))
    }
}

/// a + b modulo 2^156.
const fn sum(a: &[u64; 3], b: &[u64; 3]) -> [u64; 3] {
    let low = a[0] + b[0];
    let middle = a[1] + b[1] + (low >> 52);
    [low & LIMB, middle & LIMB, (a[2] + b[2] + (middle >> 52)) & LIMB]
}

const fn is_same(a: &[u64; 3], b: &[u64; 3]) -> bool {
    a[0] == b[0] && a[1] == b[1] && a[2] == b[2]
}

// The constants depend on each other; `docs/derivations/check.py` checks the relations that need more than limbs.
const _: () = {
    // -1 / n modulo 2^52, and 16 n + one = 2^260.
    assert!(ORDER[0].wrapping_mul(ORDER_INVERSE) & LIMB == LIMB);
    let (mut i, mut carry) = (0, 0);
    while i < 5 {
        let limb = 16 * ORDER[i] + ONE[i] + carry;
        assert!(limb & LIMB == 0);
        carry = limb >> 52;
        i += 1;
    }
    assert!(carry == 1);
    // A2 = A1 + B1, and each `MINUS_` constant is the difference to 2^156.
    assert!(is_same(&A2, &sum(&A1, &B1)));
    assert!(is_same(&sum(&A1, &MINUS_A1), &[0; 3]));
    assert!(is_same(&sum(&A2, &MINUS_A2), &[0; 3]) && is_same(&sum(&B1, &MINUS_B1), &[0; 3]));
    // Odd halves are below 2 (A1 + A2), and that is below 2^130: 26 digits of five bits.
    assert!(2 * (A1[2] + A2[2] + 1) < 1 << 26);
    // Required to make both halves odd: A1 and B1 are odd, A2 is even.
    assert!(A1[0] & 1 == 1 && B1[0] & 1 == 1 && A2[0] & 1 == 0);
    // A column of a product: 10 halves of one, 10 of quotients, the borrow of signed halves, and the carry of the
    // column below.
    assert!(20 * LIMB + (1 << 56) + (1 << 58 >> 52) < 1 << 58);
};
