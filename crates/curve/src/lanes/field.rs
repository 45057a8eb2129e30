//! The field of 2^256 - 0x1000003d1 elements in lanes: five limbs of 52 bits.
//!
//! The type shows the state of a value: the limbs of [`Raw`], a sum, have room to grow; [`Carried`] is ready to be
//! multiplied (its limbs may have garbage above bit 52 that no multiplier reads); [`Masked`] has clean limbs and may be
//! multiplied and added. Input and output: values congruent to the named result, not canonical ones. Invariants,
//! asserted in debug builds: limbs of `Raw` below 2^62, of `Masked` below 2^52 with the top limb below 2^49. Cost: 50
//! multiply-adds for a product, 30 for a square, 12 to reduce. Must never: let the subtraction of limbs become
//! negative. Derivation: `docs/derivations/field.md`.

use super::{LIMB, Lanes, WIDTH_MAX};
use std::ops::Range;

/// 2^256 modulo p.
pub(super) const FOLD_256: u64 = 0x0001_0000_03d1;
/// 2^260 modulo p.
const FOLD_260: u64 = 0x0010_0000_3d10;
/// The bits of the top limb below 2^256.
const TOP: u64 = (1 << 48) - 1;

/// A sum: value = sum of limb i times 2^(52 i), limbs below 2^62.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<L: Lanes>(pub(crate) [L::Vector; 5]);

/// A factor: the low 52 bits of the limbs form a value below 2^260.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried<L: Lanes>([L::Factor; 5]);

/// A clean value: limbs below 2^52, the top one below 2^49.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Masked<L: Lanes>([L::Vector; 5]);

/// Arithmetic on values in four words of 64 bits and a fifth for multiples of 2^256, instead of limbs: `V` is five
/// words, `F` a factor.
///
/// [`Raw`] then has any fifth word below 2^16, the other types have zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<V, F> {
    /// From limbs below 2^62.
    pub(super) from_limbs: fn(&V) -> V,
    pub(super) to_limbs: fn(&V) -> V,
    pub(super) add: fn(&V, &V) -> V,
    /// Half of the value, or of the value plus p.
    pub(super) half: fn(&V) -> V,
    /// A multiple of p minus the value.
    pub(super) negate: fn(&V, u64) -> V,
    /// The value modulo p, below 2^256.
    pub(super) fold: fn(&V) -> F,
    /// The value modulo p, below p.
    pub(super) canonical: fn(&V) -> V,
    /// A product and a square modulo p, below 2^256.
    pub(super) product_plus_square: fn(&F, &F, &F) -> V,
}

/// Multiplication by code of the instruction set, instead of columns of [`Lanes::multiply_loose`]: `V` is a value, `F`
/// a factor.
///
/// Results are below 2^256 if values are packed, otherwise limbs below 2^62 of a value below 2^256 + 2^220.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Products<V, F> {
    pub(super) product: fn(&F, &F) -> V,
    pub(super) product_plus: fn(&F, &F, &V) -> V,
    pub(super) two_products: fn(&F, &F, &F, &F) -> V,
    pub(super) square: fn(&F) -> V,
    pub(super) square_plus: fn(&F, &V) -> V,
}

/// The same for an instruction set.
pub(crate) type PackedLanes<L> = Packed<[<L as Lanes>::Vector; 5], [<L as Lanes>::Factor; 5]>;
pub(crate) type ProductLanes<L> = Products<[<L as Lanes>::Vector; 5], [<L as Lanes>::Factor; 5]>;

/// A multiple of p from which any value with limbs below 2^60 and a top limb of at most `multiple` - 1 times 2^48 can
/// be subtracted limb by limb.
const fn minuend(multiple: u64) -> [u64; 5] {
    // multiple * p = multiple * 2^256 - multiple * FOLD_256, written with a borrow of 2^60 - 2^8 into every lower limb.
    let middle = (1 << 60) - (1 << 8) + LIMB;
    [(1 << 60) + (1 << 52) - multiple * FOLD_256, middle, middle, middle, multiple * (1 << 48) - 1 - (1 << 8)]
}

impl<L: Lanes> Raw<L> {
    #[inline(always)]
    pub(crate) fn add(self, l: L, other: &Raw<L>) -> Raw<L> {
        if let Some(packed) = L::PACKED {
            return Raw((packed.add)(&self.0, &other.0));
        }
        let mut limbs = self.0;
        for i in 0..5 {
            limbs[i] = l.add(limbs[i], other.0[i]);
        }
        Raw(limbs)
    }

    #[cfg(test)]
    pub(crate) fn from_limbs(limbs: [L::Vector; 5]) -> Raw<L> {
        Raw(L::PACKED.map_or(limbs, |packed| (packed.from_limbs)(&limbs)))
    }

    #[cfg(test)]
    pub(crate) fn limbs(&self) -> [L::Vector; 5] {
        L::PACKED.map_or(self.0, |packed| (packed.to_limbs)(&self.0))
    }

    #[inline(always)]
    pub(crate) fn double(self, l: L) -> Raw<L> {
        if let Some(packed) = L::PACKED {
            return Raw((packed.add)(&self.0, &self.0));
        }
        let mut limbs = self.0;
        for limb in &mut limbs {
            *limb = l.shl(*limb, 1);
        }
        Raw(limbs)
    }

    #[inline(always)]
    pub(crate) fn triple(self, l: L) -> Raw<L> {
        if let Some(packed) = L::PACKED {
            return Raw((packed.add)(&self.0, &(packed.add)(&self.0, &self.0)));
        }
        let mut limbs = self.0;
        for limb in &mut limbs {
            *limb = l.add(l.shl(*limb, 1), *limb);
        }
        Raw(limbs)
    }

    #[inline(always)]
    pub(crate) fn quadruple(self, l: L) -> Raw<L> {
        if L::PACKED.is_some() {
            return self.double(l).double(l);
        }
        let mut limbs = self.0;
        for limb in &mut limbs {
            *limb = l.shl(*limb, 2);
        }
        Raw(limbs)
    }

    /// Half of the value modulo p: half of the value plus p if that is odd.
    #[inline(always)]
    pub(crate) fn half(self, packed: &PackedLanes<L>) -> Raw<L> {
        Raw((packed.half)(&self.0))
    }

    /// `MULTIPLE` * p - self, for self below (`MULTIPLE` - 1) * 2^256.
    #[inline(always)]
    pub(crate) fn negate<const MULTIPLE: u64>(self, l: L) -> Raw<L> {
        if let Some(packed) = L::PACKED {
            return Raw((packed.negate)(&self.0, MULTIPLE));
        }
        let minuend = const { minuend(MULTIPLE) };
        let mut limbs = self.0;
        for i in 0..5 {
            debug_assert!(l.is_below(limbs[i], 60), "a limb to be subtracted is below 2^60");
            limbs[i] = l.sub(l.splat(minuend[i]), limbs[i]);
        }
        Raw(limbs)
    }

    /// Carries into the limbs above.
    #[inline(always)]
    fn chain(self, l: L) -> [L::Vector; 5] {
        let mut limbs = self.0;
        for i in 0..4 {
            // Before: limb i + 1 below 2^62. After: the low 52 bits of limb i are correct, the bits above are garbage.
            debug_assert!(l.is_below(limbs[i], 63), "a sum has room for its carry");
            limbs[i + 1] = l.add(limbs[i + 1], l.shr(limbs[i], 52));
        }
        debug_assert!(l.is_below(limbs[4], 52), "a factor is below 2^260");
        limbs
    }

    #[inline(always)]
    pub(crate) fn carry(self, l: L) -> Carried<L> {
        if let Some(packed) = L::PACKED {
            return Carried((packed.fold)(&self.0));
        }
        factors(l, self.chain(l))
    }

    /// Only for a value that a multiplication has reduced.
    #[inline(always)]
    pub(crate) fn mask(self, l: L) -> Masked<L> {
        if L::PACKED.is_some() {
            return Masked::of(l, self.0);
        }
        let mut limbs = self.chain(l);
        for limb in &mut limbs[..4] {
            *limb = l.and(*limb, l.splat(LIMB));
        }
        debug_assert!(l.is_below(limbs[4], 49), "a reduced value is below 2^257");
        Masked(limbs)
    }

    /// The unique representative below p. Only for a value that a multiplication has reduced.
    #[inline(always)]
    pub(crate) fn canonical(self, l: L) -> Masked<L> {
        if let Some(packed) = L::PACKED {
            return Masked((packed.canonical)(&self.0));
        }
        let value = self.mask(l).0;
        let mut less = value;
        less[0] = l.add(less[0], l.splat(FOLD_256));
        for i in 0..4 {
            less[i + 1] = l.add(less[i + 1], l.shr(less[i], 52));
            less[i] = l.and(less[i], l.splat(LIMB));
        }
        // value + 2^256 - p is at least 2^256 if and only if value is at least p; it is below 2^257.
        let is_less = l.equal(l.shr(less[4], 48), l.splat(0));
        less[4] = l.and(less[4], l.splat(TOP));
        Masked::select(l, is_less, &Masked(value), &Masked(less))
    }
}

impl<L: Lanes> Masked<L> {
    /// From limbs below 2^52, the top one below 2^49.
    #[inline(always)]
    pub(crate) fn new(l: L, limbs: [L::Vector; 5]) -> Masked<L> {
        if let Some(packed) = L::PACKED {
            return Masked::of(l, (packed.from_limbs)(&limbs));
        }
        for limb in &limbs[..4] {
            debug_assert!(l.is_below(*limb, 52), "a clean limb");
        }
        debug_assert!(l.is_below(limbs[4], 49), "a clean top limb");
        Masked(limbs)
    }

    #[inline(always)]
    pub(crate) fn constant(l: L, limbs: [u64; 5]) -> Masked<L> {
        let [a, b, c, d, e] = limbs;
        Masked::new(l, [l.splat(a), l.splat(b), l.splat(c), l.splat(d), l.splat(e)])
    }

    /// From the words of [`Masked::words`].
    #[inline(always)]
    pub(crate) fn of(l: L, words: [L::Vector; 5]) -> Masked<L> {
        debug_assert!(l.is_below(words[4], if L::PACKED.is_some() { 0 } else { 49 }), "a clean value");
        Masked(words)
    }

    /// The limbs, or the packed words.
    #[inline(always)]
    pub(crate) fn words(&self) -> [L::Vector; 5] {
        self.0
    }

    /// From four words of 64 bits.
    #[inline(always)]
    pub(crate) fn unpack(l: L, [a, b, c, d]: [L::Vector; 4]) -> Masked<L> {
        if L::PACKED.is_some() {
            return Masked::of(l, [a, b, c, d, l.splat(0)]);
        }
        let limb = l.splat(LIMB);
        let limbs = [
            l.and(a, limb),
            l.and(l.or(l.shr(a, 52), l.shl(b, 12)), limb),
            l.and(l.or(l.shr(b, 40), l.shl(c, 24)), limb),
            l.and(l.or(l.shr(c, 28), l.shl(d, 36)), limb),
            l.shr(d, 16),
        ];
        Masked::new(l, limbs)
    }

    /// Four words of 64 bits, of a canonical value.
    #[inline(always)]
    pub(crate) fn pack(&self, l: L) -> [L::Vector; 4] {
        let [a, b, c, d, e] = self.0;
        if L::PACKED.is_some() {
            return [a, b, c, d];
        }
        [
            l.or(a, l.shl(b, 52)),
            l.or(l.shr(b, 12), l.shl(c, 40)),
            l.or(l.shr(c, 24), l.shl(d, 28)),
            l.or(l.shr(d, 36), l.shl(e, 16)),
        ]
    }

    #[inline(always)]
    pub(crate) fn raw(&self) -> Raw<L> {
        Raw(self.0)
    }

    #[inline(always)]
    pub(crate) fn factor(&self, l: L) -> Carried<L> {
        if let Some(packed) = L::PACKED {
            let [a, b, c, d, _] = self.0;
            return Carried((packed.fold)(&[a, b, c, d, l.splat(0)]));
        }
        factors(l, self.0)
    }

    #[inline(always)]
    pub(crate) fn select(l: L, mask: L::Mask, a: &Masked<L>, b: &Masked<L>) -> Masked<L> {
        let mut limbs = a.0;
        for i in 0..5 {
            limbs[i] = l.select(mask, limbs[i], b.0[i]);
        }
        Masked(limbs)
    }

    /// Lanes that are zero; only for a canonical value.
    #[inline(always)]
    pub(crate) fn is_zero(&self, l: L) -> L::Mask {
        let [a, b, c, d, e] = self.0;
        l.equal(l.or(l.or(l.or(a, b), l.or(c, d)), e), l.splat(0))
    }

    /// Lanes that are odd; only for a canonical value.
    #[inline(always)]
    pub(crate) fn is_odd(&self, l: L) -> L::Mask {
        l.equal(l.and(self.0[0], l.splat(1)), l.splat(1))
    }

    /// The limbs of one lane.
    #[inline(always)]
    pub(crate) fn lane(&self, l: L, lane: usize) -> [u64; 5] {
        let limbs = L::PACKED.map_or(self.0, |packed| (packed.to_limbs)(&self.0));
        limbs.map(|limb| l.store(limb)[lane % WIDTH_MAX])
    }
}

impl<L: Lanes> Carried<L> {
    #[inline(always)]
    pub(crate) fn one(l: L) -> Carried<L> {
        Masked::constant(l, [1, 0, 0, 0, 0]).factor(l)
    }

    #[inline(always)]
    pub(crate) fn times(&self, l: L, other: &Carried<L>) -> Raw<L> {
        if let Some(products) = L::PRODUCTS {
            return Raw((products.product)(&self.0, &other.0));
        }
        l.piece(
            #[inline(always)]
            || product(l, None, &self.0, &other.0),
        )
    }

    /// self * other + start. The addition is cheap: `start` is the initial value of the columns.
    #[inline(always)]
    pub(crate) fn times_plus(&self, l: L, other: &Carried<L>, start: &Raw<L>) -> Raw<L> {
        if let Some(products) = L::PRODUCTS {
            return Raw((products.product_plus)(&self.0, &other.0, &start.0));
        }
        l.piece(
            #[inline(always)]
            || product(l, Some(start), &self.0, &other.0),
        )
    }

    /// self * other + c * d, reduced once.
    #[inline(always)]
    pub(crate) fn times_plus_times(&self, l: L, other: &Carried<L>, c: &Carried<L>, d: &Carried<L>) -> Raw<L> {
        if let Some(products) = L::PRODUCTS {
            return Raw((products.two_products)(&self.0, &other.0, &c.0, &d.0));
        }
        l.piece(
            #[inline(always)]
            || {
                let mut columns = settled::<L, 2, 1>(l);
                add_upper(l, &mut columns, &self.0, &other.0);
                add_upper(l, &mut columns, &c.0, &d.0);
                let high = upper(l, &columns);
                add_third(l, &mut columns, &self.0, &other.0);
                add_third(l, &mut columns, &c.0, &d.0);
                fold(
                    l,
                    columns,
                    &high,
                    #[inline(always)]
                    |columns| {
                        add_lower(l, columns, &self.0, &other.0);
                        add_lower(l, columns, &c.0, &d.0);
                    },
                )
            },
        )
    }

    /// self * other + c^2, reduced once.
    #[inline(always)]
    pub(crate) fn times_plus_square(&self, packed: &PackedLanes<L>, other: &Carried<L>, c: &Carried<L>) -> Raw<L> {
        Raw((packed.product_plus_square)(&self.0, &other.0, &c.0))
    }

    #[inline(always)]
    pub(crate) fn square(&self, l: L) -> Raw<L> {
        if let Some(products) = L::PRODUCTS {
            return Raw((products.square)(&self.0));
        }
        l.piece(
            #[inline(always)]
            || square(l, None, &self.0),
        )
    }

    #[inline(always)]
    pub(crate) fn square_plus(&self, l: L, start: &Raw<L>) -> Raw<L> {
        if let Some(products) = L::PRODUCTS {
            return Raw((products.square_plus)(&self.0, &start.0));
        }
        l.piece(
            #[inline(always)]
            || square(l, Some(start), &self.0),
        )
    }

    /// self to the power 2^count.
    #[inline(always)]
    pub(crate) fn square_times(&self, l: L, count: u32) -> Carried<L> {
        l.run(
            #[inline(always)]
            || {
                let mut value = *self;
                for _ in 0..count {
                    value = value.square(l).carry(l);
                }
                value
            },
        )
    }

    /// self to the power p - 2: the inverse, or zero for zero.
    #[inline(always)]
    pub(crate) fn invert(&self, l: L) -> Carried<L> {
        // xN: self to the power 2^N - 1. p - 2 is 223 ones, a zero, 22 ones, and 0000101101.
        let x1 = *self;
        let x2 = chain(l, &x1, 1, &x1);
        let x3 = chain(l, &x2, 1, &x1);
        let x6 = chain(l, &x3, 3, &x3);
        let x9 = chain(l, &x6, 3, &x3);
        let x11 = chain(l, &x9, 2, &x2);
        let x22 = chain(l, &x11, 11, &x11);
        let x44 = chain(l, &x22, 22, &x22);
        let x88 = chain(l, &x44, 44, &x44);
        let x176 = chain(l, &x88, 88, &x88);
        let x220 = chain(l, &x176, 44, &x44);
        let x223 = chain(l, &x220, 3, &x3);
        let mut value = chain(l, &x223, 23, &x22);
        value = chain(l, &value, 5, &x1);
        value = chain(l, &value, 3, &x2);
        chain(l, &value, 2, &x1)
    }
}

/// x to the power 2^count, times y.
#[inline(always)]
fn chain<L: Lanes>(l: L, x: &Carried<L>, count: u32, y: &Carried<L>) -> Carried<L> {
    x.square_times(l, count).times(l, y).carry(l)
}

#[inline(always)]
fn factors<L: Lanes>(l: L, limbs: [L::Vector; 5]) -> Carried<L> {
    let [a, b, c, d, e] = limbs;
    Carried([l.factor(a), l.factor(b), l.factor(c), l.factor(d), l.factor(e)])
}

/// The initial columns of `PRODUCTS` products, divided by `PART`: the constants that correct the final sums.
#[inline(always)]
fn settled<L: Lanes, const PRODUCTS: u64, const PART: u64>(l: L) -> [L::Vector; 10] {
    let settlement = const { settlement::<L>(PRODUCTS, PART) };
    let mut columns = [l.splat(0); 10];
    for i in 0..10 {
        columns[i] = l.splat(settlement[i]);
    }
    columns
}

#[inline(always)]
fn add_start<L: Lanes>(l: L, columns: &mut [L::Vector; 10], start: Option<&Raw<L>>, limbs: Range<usize>) {
    if let Some(start) = start {
        for i in limbs {
            columns[i] = l.add(columns[i], start.0[i]);
        }
    }
}

/// a * b + start.
#[inline(always)]
fn product<L: Lanes>(l: L, start: Option<&Raw<L>>, a: &[L::Factor; 5], b: &[L::Factor; 5]) -> Raw<L> {
    let mut columns = settled::<L, 1, 1>(l);
    add_start(l, &mut columns, start, 0..5);
    add_upper(l, &mut columns, a, b);
    let high = upper(l, &columns);
    add_third(l, &mut columns, a, b);
    fold(
        l,
        columns,
        &high,
        #[inline(always)]
        |columns| add_lower(l, columns, a, b),
    )
}

/// Adds limb i times limb j to the columns i + j and i + j + 1, with the excess of [`Lanes::multiply_loose`], for i + j
/// of at least 4. This completes columns 5 to 9, so they can be folded while the lower products are still being
/// computed.
#[inline(always)]
fn add_upper<L: Lanes>(l: L, columns: &mut [L::Vector; 10], a: &[L::Factor; 5], b: &[L::Factor; 5]) {
    if L::IS_SIGNED {
        add_column::<L, 4>(l, columns, a, b);
        add_column::<L, 5>(l, columns, a, b);
        add_column::<L, 6>(l, columns, a, b);
        add_column::<L, 7>(l, columns, a, b);
        add_column::<L, 8>(l, columns, a, b);
        return;
    }
    for i in 0..5 {
        for j in 0..5 {
            let at = i + j;
            (columns[at], columns[at + 1]) = l.multiply_loose(columns[at], columns[at + 1], a[i], b[j]);
        }
    }
}

/// Adds the products with i + j = 3, unless [`add_upper`] has added all products because registers hold all columns.
/// This completes column 4, and with it what the second fold needs.
#[inline(always)]
fn add_third<L: Lanes>(l: L, columns: &mut [L::Vector; 10], a: &[L::Factor; 5], b: &[L::Factor; 5]) {
    if L::IS_SIGNED {
        add_column::<L, 3>(l, columns, a, b);
    }
}

/// Adds the products that are left.
#[inline(always)]
fn add_lower<L: Lanes>(l: L, columns: &mut [L::Vector; 10], a: &[L::Factor; 5], b: &[L::Factor; 5]) {
    if L::IS_SIGNED {
        add_column::<L, 0>(l, columns, a, b);
        add_column::<L, 1>(l, columns, a, b);
        add_column::<L, 2>(l, columns, a, b);
    }
}

/// Adds the products of the limbs i and j with i + j = AT. Column by column, sixteen registers are enough for the sums
/// in use and the limbs.
#[inline(always)]
fn add_column<L: Lanes, const AT: usize>(l: L, columns: &mut [L::Vector; 10], a: &[L::Factor; 5], b: &[L::Factor; 5]) {
    for i in 0..5 {
        if i <= AT && AT - i < 5 {
            (columns[AT], columns[AT + 1]) = l.multiply_loose(columns[AT], columns[AT + 1], a[i], b[AT - i]);
        }
    }
}

/// a^2 + start: products of different limbs, doubled, then the squares of limbs.
#[inline(always)]
fn square<L: Lanes>(l: L, start: Option<&Raw<L>>, a: &[L::Factor; 5]) -> Raw<L> {
    // Half of the settlement, since it is doubled with the columns.
    let mut columns = settled::<L, 1, 2>(l);
    if L::IS_SIGNED {
        // In the order of a product.
        add_different::<L, 4>(l, &mut columns, a);
        add_different::<L, 5>(l, &mut columns, a);
        add_different::<L, 6>(l, &mut columns, a);
        add_different::<L, 7>(l, &mut columns, a);
        add_different::<L, 3>(l, &mut columns, a);
        add_different::<L, 2>(l, &mut columns, a);
        double(l, &mut columns[3..]);
        add_square::<L, 2>(l, &mut columns, a);
        add_square::<L, 3>(l, &mut columns, a);
        add_square::<L, 4>(l, &mut columns, a);
    } else {
        for i in 0..5 {
            for j in i + 1..5 {
                let at = i + j;
                (columns[at], columns[at + 1]) = l.multiply_loose(columns[at], columns[at + 1], a[i], a[j]);
            }
        }
        double(l, &mut columns);
        add_square::<L, 0>(l, &mut columns, a);
        add_square::<L, 1>(l, &mut columns, a);
        add_square::<L, 2>(l, &mut columns, a);
        add_square::<L, 3>(l, &mut columns, a);
        add_square::<L, 4>(l, &mut columns, a);
    }
    add_start(l, &mut columns, start, if L::IS_SIGNED { 3..5 } else { 0..5 });
    let high = upper(l, &columns);
    fold(
        l,
        columns,
        &high,
        #[inline(always)]
        |columns| {
            if L::IS_SIGNED {
                add_different::<L, 1>(l, columns, a);
                double(l, &mut columns[..3]);
                add_square::<L, 0>(l, columns, a);
                add_square::<L, 1>(l, columns, a);
                add_start(l, columns, start, 0..3);
            }
        },
    )
}

#[inline(always)]
fn double<L: Lanes>(l: L, columns: &mut [L::Vector]) {
    for column in columns {
        *column = l.add(*column, *column);
    }
}

/// Adds the products of different limbs i and j with i + j = AT, each once.
#[inline(always)]
fn add_different<L: Lanes, const AT: usize>(l: L, columns: &mut [L::Vector; 10], a: &[L::Factor; 5]) {
    for i in 0..5 {
        if 2 * i < AT && AT - i < 5 {
            (columns[AT], columns[AT + 1]) = l.multiply_loose(columns[AT], columns[AT + 1], a[i], a[AT - i]);
        }
    }
}

#[inline(always)]
fn add_square<L: Lanes, const I: usize>(l: L, columns: &mut [L::Vector; 10], a: &[L::Factor; 5]) {
    (columns[2 * I], columns[2 * I + 1]) = l.multiply_loose(columns[2 * I], columns[2 * I + 1], a[I], a[I]);
}

/// Bits of the constant that makes a column positive if products have signed parts.
const BIAS: u32 = 56;

/// The constants that correct the columns of `products` products, divided by `part`.
///
/// They subtract the excess of every loose multiplication that adds to the columns, including those of the fold. If
/// parts of products are signed, columns 0 to 4 also get 256 p minus 16 times 2^260 folded, and columns 5 to 9 get
/// these 16 times 2^260. Each column borrows 2^56 from the next, so that none is negative
/// (`docs/derivations/doubles.md`).
const fn settlement<L: Lanes>(products: u64, part: u64) -> [u64; 10] {
    let mut columns = [0_u64; 10];
    if L::IS_SIGNED {
        let (bias, next) = (1 << BIAS, 1 << (BIAS - 52));
        // Twice 2^52 is borrowed for the borrows of 256 p, so that everything stays even.
        let middle = bias - next + 2 * LIMB;
        let low = bias + (2 << 52) - 256 * FOLD_256 - 16 * FOLD_260;
        let top = 256 * (1 << 48) - 2 - next;
        columns = [low, middle, middle, middle, top, bias + 16, bias - next, bias - next, bias - next, 0];
        columns[9] = next.wrapping_neg();
    }
    let mut i = 0;
    while i < 10 {
        // Column k gets the low parts of the products with i + j = k, the high parts of those with i + j = k - 1, and
        // one of each from the fold.
        let lows = if i < 9 { products * pairs(i) } else { 0 } + if i < 5 { 1 } else { 0 };
        let highs = if i > 0 { products * pairs(i - 1) } else { 0 } + if i > 0 && i < 5 { 1 } else { 0 };
        let excess = lows.wrapping_mul(L::LOW_EXCESS).wrapping_add(highs.wrapping_mul(L::HIGH_EXCESS));
        let exact = columns[i].wrapping_sub(excess);
        assert!(exact % part == 0, "a halved constant is even");
        columns[i] = exact / part;
        i += 1;
    }
    columns
}

/// The number of pairs i, j below 5 with the sum k.
const fn pairs(k: usize) -> u64 {
    [1, 2, 3, 4, 5, 4, 3, 2, 1][k]
}

/// Columns 5 to 9 as factors.
#[inline(always)]
fn upper<L: Lanes>(l: L, columns: &[L::Vector; 10]) -> [L::Factor; 5] {
    let mut high = [columns[5], columns[6], columns[7], columns[8], columns[9]];
    for i in 0..4 {
        // Below 2^57 each: at most 18 halves of products. After: the low 52 bits of limb i of the upper half are
        // correct.
        debug_assert!(l.is_below(high[i], 58), "a column has at most 18 halves and a carry");
        high[i + 1] = l.add(high[i + 1], l.shr(high[i], 52));
    }
    debug_assert!(l.is_below(high[4], 52), "a sum of products is below 2^520");
    factors(l, high).0
}

/// From ten columns to a value below 2^256 + 2^220: columns 5 to 9 fold onto 0 to 4, then the bits above 2^256.
///
/// `lower` adds to columns 0 to 3 what was not added before; it fills the time that the second fold waits.
#[inline(always)]
fn fold<L: Lanes>(
    l: L,
    mut columns: [L::Vector; 10],
    high: &[L::Factor; 5],
    lower: impl FnOnce(&mut [L::Vector; 10]),
) -> Raw<L> {
    columns[5] = l.splat(0_u64.wrapping_sub(L::HIGH_EXCESS));
    let fold = l.factor(l.splat(FOLD_260));
    for i in if L::IS_SIGNED { 3..5 } else { 0..5 } {
        (columns[i], columns[i + 1]) = l.multiply_loose(columns[i], columns[i + 1], high[i], fold);
    }
    // Column 5 is below 2^37, column 4 below 2^58: the part at or above 2^256 is below 2^42.
    let above = l.add(l.shr(columns[4], 48), l.shl(columns[5], 4));
    debug_assert!(l.is_below(above, 42), "the second fold is one limb");
    columns[4] = l.and(columns[4], l.splat(TOP));
    let above = l.factor(above);
    if L::IS_SIGNED {
        lower(&mut columns);
        for i in 0..3 {
            (columns[i], columns[i + 1]) = l.multiply_loose(columns[i], columns[i + 1], high[i], fold);
        }
    }
    (columns[0], columns[1]) = l.multiply(columns[0], columns[1], above, l.factor(l.splat(FOLD_256)));
    let [a, b, c, d, e, ..] = columns;
    Raw([a, b, c, d, e])
}

/// Whether the limbs are `multiple` * p, and at least as large as each limb of a value that may be subtracted.
const fn is_minuend(limbs: &[u64; 5], multiple: u64) -> bool {
    // With multiple * (2^256 - p) added, the sum is multiple * 2^256: the limbs below the top limb are zero.
    let (mut i, mut carry, mut is_zero) = (0, multiple * FOLD_256, true);
    while i < 4 {
        let sum = limbs[i] + carry;
        is_zero &= sum & LIMB == 0 && limbs[i] >= 1 << 60;
        carry = sum >> 52;
        i += 1;
    }
    is_zero && limbs[4] + carry == multiple << 48 && limbs[4] >= (multiple - 1) << 48
}

// The multiples of p that the formulas subtract from, and 2^260 as 16 times 2^256 modulo p.
const _: () = assert!(is_minuend(&minuend(2), 2) && is_minuend(&minuend(3), 3) && is_minuend(&minuend(4), 4));
const _: () = assert!(FOLD_260 == FOLD_256 << 4 && TOP == LIMB >> 4);
// Columns: nine halves of each of two products, the borrow of signed halves, and a carry; then an initial sum of limbs
// below 2^62, and two halves of the fold.
const _: () = assert!(18 * LIMB + (1 << BIAS) + 256 < 1 << 58);
const _: () = assert!((1 << 62) + 20 * LIMB + (1 << BIAS) < 1 << 63);
