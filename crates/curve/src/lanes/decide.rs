//! Verdicts without a square root: the sum A + B of A = u G and B = v P, where only x of P is known, and one inversion
//! for a whole batch.
//!
//! Input: prepared checks of one kind. Output: for each, whether it holds, or `None` if exceptional. Invariant: a
//! verdict is based on the y that solves a linear equation, and its square must be x^3 + 7, so a wrong key can never
//! pass. Cost: about 45 multiplications in addition to the two point multiplications. Must never: let a zero into the
//! product that is inverted. Derivations: `docs/derivations/no-square-root.md`, `docs/derivations/inversion.md`.

use super::affine::{Points, Shared};
use super::field::{Carried, Masked, Raw};
use super::generator::Group;
use super::point::{Jacobian, abreast, minus, multiply, multiply_generator};
use super::prepare::{Kind, Prepared};
use super::scalar::{Canonical, Scalar};
use super::{Lanes, WIDTH_MAX};
use crate::limits::EXCEPTIONAL_LANES_MAX;

/// u and v of a group, in clean limbs below n.
type Pair<L> = (Canonical<L>, Canonical<L>);

/// The values needed once the inverse is known: y of the key is `numerator` / `denominator`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending<L: Lanes> {
    numerator: Masked<L>,
    /// Never zero; `exceptional` lanes hold 1.
    denominator: Carried<L>,
    exceptional: L::Mask,
    /// x^3 + 7 of the key.
    cubic: Masked<L>,
    /// y of A + B is (y * `slope` - `offset`) * `scale` / `denominator`.
    slope: Masked<L>,
    offset: Masked<L>,
    scale: Masked<L>,
}

/// Calls `verdict` with the index of every check.
///
/// If the exceptional lanes cost more than the others save, by more than [`EXCEPTIONAL_LANES_MAX`] lanes, the checks
/// were crafted by an attacker: the rest skips the lanes, since the reference would have to decide it anyway.
pub(crate) fn decide<L: Lanes>(
    l: L,
    kind: Kind,
    checks: &[Prepared],
    curve: Group<'_>,
    sums: &mut Sums<L>,
    verdict: &mut impl FnMut(usize, Option<bool>),
) {
    let groups = checks.chunks(L::WIDTH);
    let scalars = l.run(
        #[inline(always)]
        || scalars(l, kind, checks),
    );
    sums.begin(groups.len());
    let alone = groups_alone::<L>(groups.len());
    for (group, scalars) in groups.clone().zip(&scalars).take(alone) {
        if sums.worth.is_lost::<L>() {
            break;
        }
        let one = l.run(
            #[inline(always)]
            || sum(l, kind, group, scalars, curve),
        );
        sums.push(l, group, one);
    }
    if L::IS_AFFINE && alone < groups.len() {
        let (checks, scalars) = (&checks[alone * L::WIDTH..], &scalars[alone..]);
        sum_together(l, kind, checks, scalars, curve, sums);
    }
    let pending = &sums.pending;
    let inverses = l.run(
        #[inline(always)]
        || invert_all(l, pending),
    );
    for ((group, pending), inverse) in groups.zip(pending).zip(&inverses) {
        let (holds, exceptional) = l.run(
            #[inline(always)]
            || finish(l, kind, group, pending, inverse),
        );
        for (lane, check) in group.iter().enumerate() {
            let is_exceptional = exceptional >> lane & 1 == 1;
            verdict(check.index, (!is_exceptional).then_some(holds >> lane & 1 == 1));
        }
    }
    checks.iter().skip(pending.len() * L::WIDTH).for_each(|check| verdict(check.index, None));
}

/// Fewer groups are faster alone.
const GROUPS_TOGETHER_MIN: usize = 3;

/// The number of groups at the start of a portion that do not share their inversions.
///
/// The first ones never do: if all checks of a portion are exceptional, they show it before work for many groups is
/// begun.
pub(crate) fn groups_alone<L: Lanes>(groups: usize) -> usize {
    let first = EXCEPTIONAL_LANES_MAX / L::WIDTH + 1;
    if L::IS_AFFINE && groups >= first + GROUPS_TOGETHER_MIN { first } else { groups }
}

/// The lanes that were exceptional so far, and those that were not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Worth {
    wasted: usize,
    useful: usize,
}

impl Worth {
    fn is_lost<L: Lanes>(&self) -> bool {
        self.wasted > self.useful / L::USEFUL_PER_WASTED + EXCEPTIONAL_LANES_MAX
    }

    fn count<L: Lanes>(&mut self, l: L, group: &[Prepared], pending: &Pending<L>) {
        let exceptional = (0..group.len()).filter(|lane| l.bits(pending.exceptional) >> lane & 1 == 1).count();
        (self.wasted, self.useful) = (self.wasted + exceptional, self.useful + group.len() - exceptional);
    }
}

/// The sums of a portion, and the memory for them, which serves one portion after another.
#[derive(Debug)]
pub(crate) struct Sums<L: Lanes> {
    pending: Vec<Pending<L>>,
    worth: Worth,
    points: Vec<Points<L>>,
    shared: Shared<L>,
}

impl<L: Lanes> Sums<L> {
    pub(crate) fn new() -> Sums<L> {
        Sums { pending: Vec::new(), worth: Worth::default(), points: Vec::new(), shared: Shared::new(0) }
    }

    fn begin(&mut self, groups: usize) {
        self.pending.clear();
        self.pending.reserve_exact(groups);
        self.worth = Worth::default();
    }

    fn push(&mut self, l: L, group: &[Prepared], one: Pending<L>) {
        self.worth.count(l, group, &one);
        self.pending.push(one);
    }

    /// The size of the memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Pending<L>>() * self.pending.capacity()
            + size_of::<Points<L>>() * self.points.capacity()
            + self.shared.bytes()
    }
}

/// Sums of groups that share their inversions, until the lanes are lost.
fn sum_together<L: Lanes>(
    l: L,
    kind: Kind,
    checks: &[Prepared],
    scalars: &[Pair<L>],
    curve: Group<'_>,
    sums: &mut Sums<L>,
) {
    let parts = scalars.len().div_ceil(L::GROUPS_TOGETHER_MAX);
    let size = scalars.len().div_ceil(parts);
    // A portion leaves its points; each one is written before it is read again.
    if sums.points.len() < size {
        sums.points.reserve_exact(size - sums.points.len());
        sums.points.resize(size, Points::new(l));
    }
    sums.shared.reserve(size);
    for (checks, scalars) in checks.chunks(size * L::WIDTH).zip(scalars.chunks(size)) {
        if sums.worth.is_lost::<L>() {
            return;
        }
        let points = &mut sums.points[..scalars.len()];
        add_points(l, kind, checks, scalars, curve, points, &mut sums.shared);
        let mut at = 0;
        while at < scalars.len() {
            if sums.worth.is_lost::<L>() {
                return;
            }
            if L::HAS_TWO_ABREAST && at + 2 <= scalars.len() {
                sum_next::<L, 2>(l, kind, checks, scalars, curve, at, sums);
                at += 2;
            } else {
                sum_next::<L, 1>(l, kind, checks, scalars, curve, at, sums);
                at += 1;
            }
        }
    }
}

/// The sums of K groups from group `at` on, side by side.
fn sum_next<L: Lanes, const K: usize>(
    l: L,
    kind: Kind,
    checks: &[Prepared],
    scalars: &[Pair<L>],
    curve: Group<'_>,
    at: usize,
    sums: &mut Sums<L>,
) {
    let end = checks.len().min((at + K) * L::WIDTH);
    let groups = &checks[at * L::WIDTH..end];
    let (scalars, points) = (&scalars[at..at + K], &sums.points[at..at + K]);
    let next: [Pending<L>; K] = l.run(
        #[inline(always)]
        || {
            let points = abreast!(k, K => &points[k]);
            let keys = abreast!(k, K => Key::new(l, &groups[k * L::WIDTH..], curve.b));
            let multiples = match kind {
                Kind::Tweak => abreast!(k, K => Jacobian::affine(l, keys[k].x, keys[k].y, l.mask(0))),
                Kind::Ecdsa | Kind::Schnorr => Points::multiples(l, &points),
            };
            abreast!(k, K => {
                let mut a = points[k].generator(l);
                a.is_negative = l.differ(a.is_negative, scalars[k].0.is_even(l));
                join(l, kind, &groups[k * L::WIDTH..], &a, multiples[k], &keys[k].c)
            })
        },
    );
    for (group, one) in groups.chunks(L::WIDTH).zip(next) {
        sums.push(l, group, one);
    }
}

/// All additions of affine points.
fn add_points<L: Lanes>(
    l: L,
    kind: Kind,
    checks: &[Prepared],
    scalars: &[Pair<L>],
    curve: Group<'_>,
    points: &mut [Points<L>],
    shared: &mut Shared<L>,
) {
    l.run(
        #[inline(always)]
        || {
            for ((group, (u, _)), points) in checks.chunks(L::WIDTH).zip(scalars).zip(&mut *points) {
                points.load_generator(l, &u.generator_windows(l).0, curve.tables);
                let key = Key::new(l, group, curve.b);
                points.load_key(l, &key.x, &key.y);
            }
        },
    );
    shared.add_levels(l, points, kind != Kind::Tweak);
    if kind == Kind::Tweak {
        return;
    }
    l.run(
        #[inline(always)]
        || {
            for ((_, v), points) in scalars.iter().zip(&mut *points) {
                points.load_windows(l, &v.split(l));
            }
        },
    );
    shared.add_pairs(l, points);
}

/// Loads one number of every check of a group; lanes without a check repeat the last.
#[inline(always)]
fn load<L: Lanes>(l: L, group: &[Prepared], number: impl Fn(&Prepared) -> &[u64; 5]) -> [L::Vector; 5] {
    let mut words = [[0; WIDTH_MAX]; 5];
    for lane in 0..L::WIDTH {
        let limbs = number(&group[lane.min(group.len() - 1)]);
        for i in 0..5 {
            words[i][lane] = limbs[i];
        }
    }
    [l.load(&words[0]), l.load(&words[1]), l.load(&words[2]), l.load(&words[3]), l.load(&words[4])]
}

/// u and v for every group: for ECDSA message / s and r / s, with one inversion for all groups.
#[inline(always)]
fn scalars<L: Lanes>(l: L, kind: Kind, checks: &[Prepared]) -> Vec<Pair<L>> {
    let mut pairs = Vec::with_capacity(checks.len().div_ceil(L::WIDTH));
    if kind != Kind::Ecdsa {
        for group in checks.chunks(L::WIDTH) {
            pairs.push((Canonical(load(l, group, |check| &check.u)), Canonical(load(l, group, |check| &check.v))));
        }
        return pairs;
    }
    let mut before = Vec::with_capacity(pairs.capacity());
    let mut product = Scalar::one(l);
    for group in checks.chunks(L::WIDTH) {
        let s = Scalar::new(l, &load(l, group, |check| &check.v)).to_montgomery(l);
        before.push((s, product));
        product = product.times(l, &s);
    }
    let mut inverse = product.invert_var(l);
    for (group, (s, before)) in checks.chunks(L::WIDTH).zip(&before).rev() {
        let one = inverse.times(l, before);
        inverse = inverse.times(l, s);
        let u = Scalar::new(l, &load(l, group, |check| &check.u));
        let v = Scalar::new(l, &load(l, group, |check| &check.r));
        pairs.push((u.times_canonical(l, &one), v.times_canonical(l, &one)));
    }
    pairs.reverse();
    pairs
}

/// A and B of a group, and the equation that y must solve.
#[inline(always)]
fn sum<L: Lanes>(l: L, kind: Kind, group: &[Prepared], (u, v): &Pair<L>, curve: Group<'_>) -> Pending<L> {
    let (windows, is_even) = u.generator_windows(l);
    let mut a = multiply_generator(l, &windows, curve.tables);
    a.is_negative = l.differ(a.is_negative, is_even);
    let key = Key::new(l, group, curve.b);
    let b = match kind {
        Kind::Tweak => Jacobian::affine(l, key.x, key.y, l.mask(0)),
        Kind::Ecdsa | Kind::Schnorr => multiply(l, &key.x, &key.y, &v.split(l)),
    };
    join(l, kind, group, &a, b, &key.c)
}

/// A key on the curve isomorphic by its y: (c x, c^2) for any y.
#[derive(Clone, Copy, Debug)]
struct Key<L: Lanes> {
    x: Masked<L>,
    y: Masked<L>,
    /// x^3 + b of the key.
    c: Masked<L>,
}

impl<L: Lanes> Key<L> {
    #[inline(always)]
    fn new(l: L, group: &[Prepared], b: u64) -> Key<L> {
        let x = Masked::new(l, load(l, group, |check| &check.key)).factor(l);
        let constant = Masked::constant(l, [b, 0, 0, 0, 0]);
        let c = x.square(l).carry(l).times_plus(l, &x, &constant.raw()).mask(l);
        let factor = c.factor(l);
        Key { x: factor.times(l, &x).mask(l), y: factor.square(l).mask(l), c }
    }
}

#[inline(always)]
fn join<L: Lanes>(
    l: L,
    kind: Kind,
    group: &[Prepared],
    a: &Jacobian<L>,
    mut b: Jacobian<L>,
    c: &Masked<L>,
) -> Pending<L> {
    if kind == Kind::Schnorr {
        b.is_negative = l.differ(b.is_negative, l.mask(u8::MAX));
    }
    let r = Masked::new(l, load(l, group, |check| &check.r));
    equation(l, a, &b, &r, c)
}

/// The equation of `docs/derivations/no-square-root.md`, section 3, with the same names.
#[inline(always)]
fn equation<L: Lanes>(l: L, a: &Jacobian<L>, b: &Jacobian<L>, r: &Masked<L>, c: &Masked<L>) -> Pending<L> {
    let cubic = *c;
    let c = c.factor(l);
    let (xa, ya, za) = (a.x.factor(l), a.signed_y(l).carry(l), a.z);
    let (xb, yb, zb) = (b.x.factor(l), b.signed_y(l).carry(l), b.z);
    let (zb2, t) = (zb.square(l).carry(l), za.square(l).carry(l));
    let s = c.times(l, &zb2).carry(l);
    let (xbt, xas) = (xb.times(l, &t), xa.times(l, &s));
    let h = minus(l, &xbt, &xas);
    let h2 = h.square(l).carry(l);
    let rst = r.factor(l).times(l, &s.times(l, &t).carry(l));
    let sum_of_x = rst.add(l, &xbt.add(l, &xas)).carry(l);
    // Z_A^3, and c Z_B^3.
    let (za3, czb3) = (t.times(l, &za).carry(l), s.times(l, &zb).carry(l));
    // Squares of t^3 = (Z_A^3)^2 and s^3 = c (c Z_B^3)^2.
    let yb_t = yb.times(l, &za3).carry(l);
    let ya_s = ya.times(l, &czb3).carry(l);
    let ya_s2 = ya_s.square(l).carry(l);
    let minus_sum = sum_of_x.times(l, &h2).negate::<2>(l);
    let n = yb_t.square_plus(l, &ya_s2.times_plus(l, &c, &minus_sum));
    let numerator = n.carry(l).times(l, &h).mask(l);
    // 2 Y_B Y_A c Z_B^3 Z_A^3 H.
    let denominator = yb_t.times(l, &ya_s).double(l).carry(l).times(l, &h).canonical(l);
    let exceptional = denominator.is_zero(l);
    let one = Masked::constant(l, [1, 0, 0, 0, 0]);
    // y of A + B.
    let apart = minus(l, &a.x.raw(), &r.factor(l).times(l, &t));
    let ya_c = ya.times(l, &c).carry(l);
    let zb_h = zb.times(l, &h).carry(l);
    let slope = yb_t.times(l, &apart).mask(l);
    let offset = czb3.times_plus_times(l, &apart, &zb_h, &Carried::one(l)).carry(l).times(l, &ya_c).mask(l);
    let scale = yb.times(l, &ya).double(l).carry(l).times(l, &zb2).mask(l);
    Pending {
        numerator,
        denominator: Masked::select(l, exceptional, &one, &denominator).factor(l),
        exceptional,
        cubic,
        slope,
        offset,
        scale,
    }
}

#[inline(always)]
fn invert_all<L: Lanes>(l: L, pending: &[Pending<L>]) -> Vec<Carried<L>> {
    let mut inverses = Vec::with_capacity(pending.len());
    let mut product = Carried::one(l);
    for one in pending {
        inverses.push(product);
        product = product.times(l, &one.denominator).carry(l);
    }
    let mut inverse = product.invert_var(l);
    for (before, one) in inverses.iter_mut().zip(pending).rev() {
        *before = before.times(l, &inverse).carry(l);
        inverse = inverse.times(l, &one.denominator).carry(l);
    }
    inverses
}

/// Returns the lanes that hold, and the lanes that are exceptional.
#[inline(always)]
fn finish<L: Lanes>(l: L, kind: Kind, group: &[Prepared], pending: &Pending<L>, inverse: &Carried<L>) -> (u8, u8) {
    let y = pending.numerator.factor(l).times(l, inverse).canonical(l);
    let difference: Raw<L> = y.factor(l).square_plus(l, &pending.cubic.raw().negate::<2>(l));
    let on_curve = l.bits(difference.canonical(l).is_zero(l));
    let mut wanted = 0;
    for (lane, check) in group.iter().enumerate() {
        wanted |= u8::from(check.is_odd) << lane;
    }
    let y_odd = l.bits(y.is_odd(l));
    let holds = if kind == Kind::Ecdsa {
        let mut holds = on_curve & !(y_odd ^ wanted);
        for (lane, check) in group.iter().enumerate() {
            if check.y.is_some_and(|given| given != y.lane(l, lane)) {
                holds &= !(1 << lane);
            }
        }
        holds
    } else {
        let minus_offset = pending.offset.raw().negate::<2>(l);
        let along = y.factor(l).times_plus(l, &pending.slope.factor(l), &minus_offset).carry(l);
        let sum_y = along.times(l, &pending.scale.factor(l)).carry(l).times(l, inverse).canonical(l);
        on_curve & !y_odd & !(l.bits(sum_y.is_odd(l)) ^ wanted)
    };
    (holds, l.bits(pending.exceptional))
}
