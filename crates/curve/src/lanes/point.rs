//! Points of y^2 = x^3 + b in lanes: doubling, addition of an affine point, a table of odd multiples.
//!
//! No formula reads b, so they hold on every curve isomorphic to secp256k1 and on its twist. Input and output: Jacobian
//! points up to a sign for each lane. Invariant: the formulas are incomplete. If one meets a case that it cannot
//! compute (equal or opposite points, infinity), Z becomes 0 and every later Z stays 0, so a test at the end detects
//! it. Cost: 8 multiplications for a doubling, 11 for an addition, 11 for a table entry. Must never: branch on a value.
//! Derivations: `docs/derivations/doubling.md`, `docs/derivations/addition.md`.

use super::field::{Carried, Masked, Raw};
use super::scalar::Halves;
use super::{Entries, Lanes, Line};

/// (X / Z^2, +-Y / Z^3), with a minus if the mask is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jacobian<L: Lanes> {
    pub(crate) x: Masked<L>,
    pub(crate) y: Masked<L>,
    pub(crate) z: Carried<L>,
    pub(crate) is_negative: L::Mask,
}

/// P, 3 P, ..., 31 P as affine points of the curve isomorphic by `z`, and their images under the endomorphism.
#[derive(Debug)]
struct OddMultiples<L: Lanes> {
    x: Entries<L>,
    y: Entries<L>,
    beta_x: Entries<L>,
    z: Carried<L>,
}

/// A cube root of 1 in the field: (beta x, y) is lambda (x, y).
pub(crate) const BETA: [u64; 5] =
    [0x9_6c28_7195_01ee, 0x7_512f_5899_5c13, 0xc_3434_e99c_f049, 0x7106_e644_79ea, 0x7ae9_6a2b_657c];

/// The same value of each of K independent computations, in a loop: a closure passed to `array::from_fn` is not
/// compiled for the instruction set.
macro_rules! abreast {
    ($k:ident, $count:expr => $value:expr) => {{
        let mut values = [{
            let $k = 0;
            $value
        }; $count];
        for $k in 1..$count {
            values[$k] = $value;
        }
        values
    }};
}
pub(super) use abreast;

impl<L: Lanes> Jacobian<L> {
    #[inline(always)]
    pub(crate) fn affine(l: L, x: Masked<L>, y: Masked<L>, is_negative: L::Mask) -> Jacobian<L> {
        Jacobian { x, y, z: Carried::one(l), is_negative }
    }

    #[inline(always)]
    pub(crate) fn double(&self, l: L) -> Jacobian<L> {
        l.run(
            #[inline(always)]
            || self.double_here(l),
        )
    }

    #[inline(always)]
    pub(crate) fn double_here(&self, l: L) -> Jacobian<L> {
        let [double] = Jacobian::doubles(l, &[*self]);
        double
    }

    /// With A = Y^2, V = 4 X A, M = 3 X^2: X' = M^2 - 2 V, Y' = M (V - X') - 8 A^2, Z' = 2 Y Z.
    #[inline(always)]
    fn double_limbs(&self, l: L) -> Jacobian<L> {
        let (x, y) = (self.x.factor(l), self.y.factor(l));
        let a = y.square(l);
        // 4 A below 2^259, 3 p - 2 A below 2^258.
        let (four_a, minus_two_a) = (a.quadruple(l).carry(l), a.double(l).negate::<3>(l).carry(l));
        let v = x.times(l, &four_a);
        // Below 2^258.
        let m = x.square(l).triple(l).carry(l);
        let x3 = m.square_plus(l, &v.double(l).negate::<3>(l)).mask(l);
        // V + 2 p - X' below 2^258; the two products below 2^516 + 2^517.
        let y3 = m.times_plus_times(l, &minus(l, &v, &x3.raw()), &four_a, &minus_two_a).mask(l);
        let z3 = y.times(l, &self.z).double(l).carry(l);
        Jacobian { x: x3, y: y3, z: z3, is_negative: self.is_negative }
    }

    /// Doubles independent points side by side. Packed values are easily halved, so with S = Y^2, T = X S,
    /// M = 3 X^2 / 2: X' = M^2 - 2 T, -Y' = M (X' - T) + S^2, Z' = Y Z. The sign is that of -Y'.
    #[inline(always)]
    pub(crate) fn doubles<const K: usize>(l: L, points: &[Jacobian<L>; K]) -> [Jacobian<L>; K] {
        let Some(packed) = L::PACKED else {
            return abreast!(k, K => points[k].double_limbs(l));
        };
        let y = abreast!(k, K => points[k].y.factor(l));
        let s = abreast!(k, K => y[k].square(l).carry(l));
        let x = abreast!(k, K => points[k].x.factor(l));
        // Below 2^257.
        let m = abreast!(k, K => x[k].square(l).triple(l).half(&packed).carry(l));
        let t = abreast!(k, K => x[k].times(l, &s[k]));
        let z3 = abreast!(k, K => y[k].times(l, &points[k].z).carry(l));
        let x3 = abreast!(k, K => m[k].square_plus(l, &t[k].double(l).negate::<3>(l)).mask(l));
        // X' + 2 p - T below 3 * 2^256; the sum of both products below 7 * 2^512.
        let y3 = abreast!(k, K => m[k].times_plus_square(&packed, &minus(l, &x3[k].raw(), &t[k]), &s[k]).mask(l));
        abreast!(k, K => {
            let is_negative = l.differ(points[k].is_negative, l.mask(u8::MAX));
            Jacobian { x: x3[k], y: y3[k], z: z3[k], is_negative }
        })
    }

    /// P + Q for Q = (x, y), or (x, -y) if `is_negative`.
    ///
    /// With H = x Z^2 - X, R = y Z^3 - Y, V = X H^2: X' = R^2 - H^3 - 2 V, Y' = R (V - X') - Y H^3, Z' = Z H. The sign
    /// of Q becomes the sign of the result: if it differs from the sign of P, Y is negated before adding (x, y).
    #[inline(always)]
    pub(crate) fn add(&self, l: L, x: &Carried<L>, y: &Carried<L>, is_negative: L::Mask) -> Jacobian<L> {
        l.run(
            #[inline(always)]
            || self.add_here(l, x, y, is_negative),
        )
    }

    #[inline(always)]
    pub(crate) fn add_here(&self, l: L, x: &Carried<L>, y: &Carried<L>, is_negative: L::Mask) -> Jacobian<L> {
        let [sum] = Jacobian::sums(l, &[*self], &[(*x, *y, is_negative)]);
        sum
    }

    /// Adds to independent points side by side.
    #[inline(always)]
    pub(crate) fn sums<const K: usize>(
        l: L,
        points: &[Jacobian<L>; K],
        others: &[(Carried<L>, Carried<L>, L::Mask); K],
    ) -> [Jacobian<L>; K] {
        let z2 = abreast!(k, K => points[k].z.square(l).carry(l));
        let z3 = abreast!(k, K => z2[k].times(l, &points[k].z).carry(l));
        let h = abreast!(k, K => others[k].0.times_plus(l, &z2[k], &points[k].x.raw().negate::<2>(l)).carry(l));
        let minus_y = abreast!(k, K => {
            let (y, flip) = (points[k].y.raw(), l.differ(points[k].is_negative, others[k].2));
            select(l, flip, &y, &y.negate::<2>(l))
        });
        let r = abreast!(k, K => others[k].1.times_plus(l, &z3[k], &minus_y[k]).carry(l));
        let h2 = abreast!(k, K => h[k].square(l).carry(l));
        let h3 = abreast!(k, K => h2[k].times(l, &h[k]));
        let v = abreast!(k, K => points[k].x.factor(l).times(l, &h2[k]));
        // H^3 + 2 V below 3 * 2^256.
        let x_out = abreast!(k, K => r[k].square_plus(l, &h3[k].add(l, &v[k].double(l)).negate::<4>(l)).mask(l));
        // V + 2 p - X' and 2 p - Y below 2^258: two products below 2^515.
        let y_out = abreast!(k, K => {
            let apart = minus(l, &v[k], &x_out[k].raw());
            r[k].times_plus_times(l, &apart, &h3[k].carry(l), &minus_y[k].carry(l)).mask(l)
        });
        abreast!(k, K => {
            let z = points[k].z.times(l, &h[k]).carry(l);
            Jacobian { x: x_out[k], y: y_out[k], z, is_negative: others[k].2 }
        })
    }

    /// Y with its sign.
    #[inline(always)]
    pub(crate) fn signed_y(&self, l: L) -> Raw<L> {
        select(l, self.is_negative, &self.y.raw().negate::<2>(l), &self.y.raw())
    }
}

/// a + 2 p - b, for b below 2^256 + 2^221.
#[inline(always)]
pub(crate) fn minus<L: Lanes>(l: L, a: &Raw<L>, b: &Raw<L>) -> Carried<L> {
    b.negate::<2>(l).add(l, a).carry(l)
}

#[inline(always)]
pub(crate) fn select<L: Lanes>(l: L, mask: L::Mask, a: &Raw<L>, b: &Raw<L>) -> Raw<L> {
    let mut limbs = a.0;
    for i in 0..5 {
        limbs[i] = l.select(mask, limbs[i], b.0[i]);
    }
    Raw(limbs)
}

impl<L: Lanes> OddMultiples<L> {
    /// Adds points that share their Z (`docs/derivations/addition.md`, section 2), then rescales all entries to the
    /// last Z.
    #[inline(always)]
    fn new(l: L, x: &Carried<L>, y: &Carried<L>) -> OddMultiples<L> {
        let a = y.square(l);
        let (four_a, two_a) = (a.quadruple(l).carry(l), a.double(l).carry(l));
        let minus_two_a = a.double(l).negate::<3>(l).carry(l);
        let v = x.times(l, &four_a);
        let m = x.square(l).triple(l).carry(l);
        // 2 P and P with Z = 2 y.
        let mut double_x = m.square_plus(l, &v.double(l).negate::<3>(l)).mask(l);
        let mut double_y = m.times_plus_times(l, &minus(l, &v, &double_x.raw()), &four_a, &minus_two_a).mask(l);
        let (mut x_out, mut y_out) = (v.mask(l), four_a.times(l, &two_a).mask(l));
        let zero = [[l.splat(0); 5]; 16];
        let mut table =
            OddMultiples { x: zero, y: zero, beta_x: zero, z: y.times(l, &Carried::one(l)).double(l).carry(l) };
        let mut ratios = [Carried::one(l); 16];
        (table.x[0], table.y[0]) = (x_out.words(), y_out.words());
        for i in 1..16 {
            let h = minus(l, &double_x.raw(), &x_out.raw());
            let c = h.square(l).carry(l);
            let (w1, w2) = (double_x.factor(l).times(l, &c), x_out.factor(l).times(l, &c));
            let dy = minus(l, &double_y.raw(), &y_out.raw());
            let a1 = double_y.factor(l).times(l, &minus(l, &w1, &w2));
            x_out = dy.square_plus(l, &w1.add(l, &w2).negate::<3>(l)).mask(l);
            y_out = dy.times_plus(l, &minus(l, &w1, &x_out.raw()), &a1.negate::<2>(l)).mask(l);
            (double_x, double_y) = (w1.mask(l), a1.mask(l));
            (table.x[i], table.y[i], ratios[i]) = (x_out.words(), y_out.words(), h);
            table.z = table.z.times(l, &h).carry(l);
        }
        table.rescale(l, &ratios);
        table
    }

    #[inline(always)]
    fn rescale(&mut self, l: L, ratios: &[Carried<L>; 16]) {
        let beta = Masked::constant(l, BETA).factor(l);
        let mut scale = Carried::one(l);
        for i in 0..16 {
            let i = 15 - i;
            let scale2 = scale.square(l).carry(l);
            let scale3 = scale2.times(l, &scale).carry(l);
            let x = Masked::of(l, self.x[i]).factor(l).times(l, &scale2).mask(l);
            self.y[i] = Masked::of(l, self.y[i]).factor(l).times(l, &scale3).mask(l).words();
            self.beta_x[i] = x.factor(l).times(l, &beta).mask(l).words();
            self.x[i] = x.words();
            scale = scale.times(l, &ratios[i]).carry(l);
        }
    }

    /// The entry for a window of the first half, or of the second half through the endomorphism.
    #[inline(always)]
    fn entry(&self, l: L, window: &Window<L>, is_second: bool) -> (Masked<L>, Masked<L>) {
        let x = l.pick(if is_second { &self.beta_x } else { &self.x }, window.index);
        (Masked::of(l, x), Masked::of(l, l.pick(&self.y, window.index)))
    }
}

/// An odd digit: its sign, and (|digit| - 1) / 2 as the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<L: Lanes> {
    pub(crate) index: L::Vector,
    pub(crate) is_negative: L::Mask,
}

impl<L: Lanes> Window<L> {
    /// From b of `bits` bits, which represents the digit 2 b - (2^bits - 1).
    #[inline(always)]
    pub(crate) fn new(l: L, digit: L::Vector, bits: u32) -> Window<L> {
        let half = 1 << (bits - 1);
        let is_negative = l.equal(l.and(digit, l.splat(half)), l.splat(0));
        let flipped = l.select(is_negative, l.xor(digit, l.splat(half - 1)), digit);
        Window { index: l.and(flipped, l.splat(half - 1)), is_negative }
    }
}

/// k P for P = (x, y): 26 windows of five bits over the two halves of k. About 1,500 multiplications.
#[inline(always)]
pub(crate) fn multiply<L: Lanes>(l: L, x: &Masked<L>, y: &Masked<L>, k: &Halves<L>) -> Jacobian<L> {
    let table = l.run(
        #[inline(always)]
        || OddMultiples::new(l, &x.factor(l), &y.factor(l)),
    );
    let mut sum: Option<Jacobian<L>> = None;
    for i in 0..26 {
        if let Some(point) = &mut sum {
            for _ in 0..5 {
                *point = point.double(l);
            }
        }
        for (is_second, half) in [(false, &k.first), (true, &k.second)] {
            let window = Window::new(l, half.window(l, 25 - i), 5);
            let (x, y) = table.entry(l, &window, is_second);
            sum = Some(match sum {
                None => Jacobian::affine(l, x, y, window.is_negative),
                Some(point) => point.add(l, &x.factor(l), &y.factor(l), window.is_negative),
            });
        }
    }
    let sum = sum.unwrap_or(Jacobian::affine(l, *x, *y, l.mask(0)));
    Jacobian { z: sum.z.times(l, &table.z).carry(l), ..sum }
}

/// k G: one table entry for each of 20 windows of 13 bits, no doubling. `windows` is (k - 1) / 2 + 2^259 for an odd k.
#[inline(always)]
pub(crate) fn multiply_generator<L: Lanes>(
    l: L,
    windows: &[L::Vector; 5],
    tables: &[Box<[Line; 4096]>; 20],
) -> Jacobian<L> {
    let mut sum: Option<Jacobian<L>> = None;
    for (i, table) in tables.iter().enumerate() {
        let (x, y, is_negative) = generator_entry(l, windows, i, table);
        sum = Some(match sum {
            None => Jacobian::affine(l, x, y, is_negative),
            Some(point) => point.add(l, &x.factor(l), &y.factor(l), is_negative),
        });
    }
    sum.unwrap_or(Jacobian::affine(l, Masked::constant(l, [0; 5]), Masked::constant(l, [0; 5]), l.mask(0)))
}

/// The entry of window i: x, y and its sign.
#[inline(always)]
pub(crate) fn generator_entry<L: Lanes>(
    l: L,
    windows: &[L::Vector; 5],
    i: usize,
    table: &[Line; 4096],
) -> (Masked<L>, Masked<L>, L::Mask) {
    let digit = l.and(l.shr(windows[i / 4], SHIFTS[i % 4]), l.splat(0x1fff));
    let window = Window::new(l, digit, 13);
    let (x, y) = unpack(l, &l.lines(table, window.index));
    (x, y, window.is_negative)
}

/// The positions of the windows in a limb: four windows of 13 bits are 52.
const SHIFTS: [u32; 4] = [0, 13, 26, 39];

/// Four words of 64 bits as five limbs of 52, twice.
#[inline(always)]
pub(crate) fn unpack<L: Lanes>(l: L, words: &[L::Vector; 8]) -> (Masked<L>, Masked<L>) {
    let [x0, x1, x2, x3, y0, y1, y2, y3] = *words;
    (Masked::unpack(l, [x0, x1, x2, x3]), Masked::unpack(l, [y0, y1, y2, y3]))
}
