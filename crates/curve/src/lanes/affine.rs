//! Sums of points in affine coordinates: many groups of lanes add at the same time and share one inversion.
//!
//! Input: for each group the windows of u and v, and the key as a point. Output: u G with Z = 1 and v P, as in `point`.
//! The entries of the generator's table are added as a tree, the odd multiples of the key level by level, and both
//! points of a window of v before the doublings. Invariants: no group reads the values of another, except through the
//! shared inversion, which contains no zero; a lane that met equal or opposite points is marked and gets Z = 0. Cost: 5
//! products and a square per addition instead of 8 and 3; six inversions for all groups; some 40 KB for a group of
//! eight lanes. Must never: leave a zero in the product that is inverted. Derivation: `docs/derivations/addition.md`,
//! section 3.

use super::field::{Carried, Masked};
use super::generator::Tables;
use super::point::{BETA, Jacobian, Window, abreast, generator_entry, minus, select};
use super::scalar::Halves;
use super::{Entries, Lanes};

/// (x, y), or (x, -y) if the mask is set.
#[derive(Clone, Copy, Debug)]
struct Affine<L: Lanes> {
    x: Masked<L>,
    y: Masked<L>,
    is_negative: L::Mask,
}

/// Adds two points of a group, or doubles one if both are the same.
#[derive(Clone, Copy, Debug)]
struct Step {
    left: usize,
    right: usize,
    to: usize,
}

/// Entries of the generator's table: one for each window of u.
const LEAVES: usize = 20;
/// The place of 1, 3, ..., 31 times the key, and of the power of two that is added to them.
const MULTIPLES: usize = LEAVES;
const POWER: usize = MULTIPLES + 16;
/// Windows of each half of v.
const WINDOWS: usize = 26;
/// The two points of a window are neighbours.
const POINTS: usize = 2 * WINDOWS;
/// Levels of the tree, and of the table of odd multiples.
const LEVELS: usize = 5;

/// The most steps of a level: every window of v.
const STEPS_MAX: usize = WINDOWS;

/// The points of one group of lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Points<L: Lanes> {
    points: [Affine<L>; POINTS],
    generator: Affine<L>,
    /// Bit i: lane i met equal or opposite points; its points are arbitrary.
    exceptional: u8,
}

/// The memory of a level's inversion, for every step.
#[derive(Debug)]
pub(crate) struct Shared<L: Lanes> {
    /// The product of all denominators before this one.
    before: Vec<Carried<L>>,
    denominators: Vec<Carried<L>>,
}

/// Additions of neighbours at a distance of 2^level; what has no neighbour waits.
const fn tree(level: usize) -> ([Step; STEPS_MAX], usize) {
    let (mut steps, mut count) = ([Step { left: 0, right: 0, to: 0 }; STEPS_MAX], 0);
    let apart = 1 << level;
    let mut left = 0;
    while left + apart < LEAVES {
        steps[count] = Step { left, right: left + apart, to: left };
        (count, left) = (count + 1, left + 2 * apart);
    }
    (steps, count)
}

/// First 2^level P is doubled, unless it is the last; then, with the P of before, it is added to P, 3 P, ...,
/// (2^level - 1) P.
const fn table(level: usize) -> ([Step; STEPS_MAX], usize) {
    let (mut steps, mut count) = ([Step { left: 0, right: 0, to: 0 }; STEPS_MAX], 0);
    if level + 1 < LEVELS {
        steps[0] = Step { left: POWER, right: POWER, to: POWER };
        count = 1;
    }
    let entries = 1 << level >> 1;
    let mut i = 0;
    while i < entries {
        steps[count] = Step { left: MULTIPLES + i, right: POWER, to: MULTIPLES + entries + i };
        (count, i) = (count + 1, i + 1);
    }
    (steps, count)
}

/// Both points of every window.
const fn pairs() -> [Step; WINDOWS] {
    let (mut steps, mut i) = ([Step { left: 0, right: 0, to: 0 }; WINDOWS], 0);
    while i < WINDOWS {
        steps[i] = Step { left: 2 * i, right: 2 * i + 1, to: 2 * i };
        i += 1;
    }
    steps
}

impl<L: Lanes> Affine<L> {
    #[inline(always)]
    fn zero(l: L) -> Affine<L> {
        let zero = Masked::constant(l, [0; 5]);
        Affine { x: zero, y: zero, is_negative: l.mask(0) }
    }

    /// x2 - x1, or 2 y for a doubling.
    #[inline(always)]
    fn denominator(&self, l: L, other: &Affine<L>, is_double: bool) -> Carried<L> {
        if is_double { self.y.raw().double(l).carry(l) } else { minus(l, &other.x.raw(), &self.x.raw()) }
    }

    /// The sum, with the sign of the first: slope = (y2 - y1) / (x2 - x1), x3 = slope^2 - x1 - x2, y3 = slope (x1 - x3)
    /// - y1. The slope of a doubling is 3 x^2 / (2 y).
    #[inline(always)]
    fn add(&self, l: L, other: &Affine<L>, is_double: bool, inverse: &Carried<L>) -> Affine<L> {
        let (x, y) = (self.x.raw(), other.y.raw());
        let minus_y = self.y.raw().negate::<2>(l);
        let numerator = if is_double {
            // Below 2^258.
            self.x.factor(l).square(l).triple(l).carry(l)
        } else {
            // Relative to the sign of the first; below 2^259.
            let flip = l.differ(self.is_negative, other.is_negative);
            select(l, flip, &y.negate::<2>(l), &y).add(l, &minus_y).carry(l)
        };
        let slope = numerator.times(l, inverse).carry(l);
        let x3 = slope.square_plus(l, &x.add(l, &other.x.raw()).negate::<3>(l)).mask(l);
        let y3 = slope.times_plus(l, &minus(l, &x, &x3.raw()), &minus_y).mask(l);
        Affine { x: x3, y: y3, is_negative: self.is_negative }
    }
}

impl<L: Lanes> Shared<L> {
    pub(crate) fn new(groups: usize) -> Shared<L> {
        let mut shared = Shared { before: Vec::new(), denominators: Vec::new() };
        shared.reserve(groups);
        shared
    }

    /// Reserves memory for this number of groups.
    pub(crate) fn reserve(&mut self, groups: usize) {
        let steps = groups * STEPS_MAX;
        for values in [&mut self.before, &mut self.denominators] {
            values.clear();
            values.reserve_exact(steps);
        }
    }

    /// The size of the memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Carried<L>>() * (self.before.capacity() + self.denominators.capacity())
    }

    /// Takes the same steps in every group, all with one inversion. No step reads what a later one of the list writes.
    #[inline(always)]
    fn take(&mut self, l: L, groups: &mut [Points<L>], steps: &[Step]) {
        self.before.clear();
        self.denominators.clear();
        let mut product = Carried::one(l);
        for group in &*groups {
            for step in steps {
                let (left, right) = (&group.points[step.left], &group.points[step.right]);
                let denominator = left.denominator(l, right, step.left == step.right);
                self.before.push(product);
                product = product.times(l, &denominator).carry(l);
                self.denominators.push(denominator);
            }
        }
        if l.bits(product.times(l, &Carried::one(l)).canonical(l).is_zero(l)) != 0 {
            product = self.without_zeros(l, groups, steps.len());
        }
        let mut inverse = product.invert_var(l);
        let mut at = self.before.len();
        for group in groups.iter_mut().rev() {
            for step in steps.iter().rev() {
                at -= 1;
                let of_one = self.before[at].times(l, &inverse).carry(l);
                inverse = inverse.times(l, &self.denominators[at]).carry(l);
                let (left, right) = (&group.points[step.left], &group.points[step.right]);
                group.points[step.to] = left.add(l, right, step.left == step.right, &of_one);
            }
        }
    }

    /// Marks the lanes in which a denominator is zero and replaces it by one. Returns the product of all.
    #[cold]
    #[inline(never)]
    fn without_zeros(&mut self, l: L, groups: &mut [Points<L>], steps: usize) -> Carried<L> {
        l.run(
            #[inline(always)]
            || {
                let one = Masked::constant(l, [1, 0, 0, 0, 0]);
                let mut product = Carried::one(l);
                for (at, denominator) in self.denominators.iter_mut().enumerate() {
                    let canonical = denominator.times(l, &Carried::one(l)).canonical(l);
                    let zeros = canonical.is_zero(l);
                    groups[at / steps].exceptional |= l.bits(zeros);
                    *denominator = Masked::select(l, zeros, &one, &canonical).factor(l);
                    self.before[at] = product;
                    product = product.times(l, denominator).carry(l);
                }
                product
            },
        )
    }

    /// Adds up the entries of the generator, and computes the odd multiples of the keys if there are any.
    pub(crate) fn add_levels(&mut self, l: L, groups: &mut [Points<L>], has_keys: bool) {
        for level in 0..LEVELS {
            let ((mut steps, mut count), (more, more_count)) = (tree(level), table(level));
            if has_keys {
                steps[count..count + more_count].copy_from_slice(&more[..more_count]);
                count += more_count;
            }
            l.run(
                #[inline(always)]
                || self.take(l, groups, &steps[..count]),
            );
        }
        for group in groups {
            group.generator = group.points[0];
        }
    }

    /// Adds the two points of every window of v.
    pub(crate) fn add_pairs(&mut self, l: L, groups: &mut [Points<L>]) {
        const PAIRS: [Step; WINDOWS] = pairs();
        l.run(
            #[inline(always)]
            || self.take(l, groups, &PAIRS),
        );
    }
}

impl<L: Lanes> Points<L> {
    pub(crate) fn new(l: L) -> Points<L> {
        l.run(
            #[inline(always)]
            || Points { points: [Affine::zero(l); POINTS], generator: Affine::zero(l), exceptional: 0 },
        )
    }

    /// Begins u G, from the windows of `generator_windows`.
    #[inline(always)]
    pub(crate) fn load_generator(&mut self, l: L, windows: &[L::Vector; 5], tables: &Tables) {
        self.exceptional = 0;
        for (i, table) in tables.iter().enumerate() {
            let (x, y, is_negative) = generator_entry(l, windows, i, table);
            self.points[i] = Affine { x, y, is_negative };
        }
    }

    /// Begins v P.
    #[inline(always)]
    pub(crate) fn load_key(&mut self, l: L, x: &Masked<L>, y: &Masked<L>) {
        let key = Affine { x: *x, y: *y, is_negative: l.mask(0) };
        (self.points[MULTIPLES], self.points[POWER]) = (key, key);
    }

    /// Replaces the odd multiples of the key by the two points of every window of v, the highest first.
    #[inline(always)]
    pub(crate) fn load_windows(&mut self, l: L, v: &Halves<L>) {
        let zero = [[l.splat(0); 5]; 16];
        let (mut x, mut y, mut beta_x): (Entries<L>, Entries<L>, Entries<L>) = (zero, zero, zero);
        let beta = Masked::constant(l, BETA).factor(l);
        for i in 0..16 {
            let multiple = &self.points[MULTIPLES + i];
            (x[i], y[i]) = (multiple.x.words(), multiple.y.words());
            beta_x[i] = multiple.x.factor(l).times(l, &beta).mask(l).words();
        }
        for i in 0..2 * WINDOWS {
            let (half, x) = if i % 2 == 0 { (&v.first, &x) } else { (&v.second, &beta_x) };
            #[allow(clippy::cast_possible_truncation, reason = "below 26")]
            let window = Window::new(l, half.window(l, (WINDOWS - 1 - i / 2) as u32), 5);
            self.points[i] = Affine {
                x: Masked::of(l, l.pick(x, window.index)),
                y: Masked::of(l, l.pick(&y, window.index)),
                is_negative: window.is_negative,
            };
        }
    }

    /// u G; Z = 0 in the lanes that are exceptional, also those of v P.
    #[inline(always)]
    pub(crate) fn generator(&self, l: L) -> Jacobian<L> {
        let (zero, one) = (Masked::constant(l, [0; 5]), Masked::constant(l, [1, 0, 0, 0, 0]));
        let Affine { x, y, is_negative } = self.generator;
        let z = Masked::select(l, l.mask(self.exceptional), &zero, &one).factor(l);
        Jacobian { x, y, z, is_negative }
    }

    /// v P of several groups side by side, from the sums of its windows. Has its own copies of a doubling and an
    /// addition, as `buckets` does.
    #[inline(always)]
    pub(crate) fn multiples<const K: usize>(l: L, points: &[&Points<L>; K]) -> [Jacobian<L>; K] {
        let mut sums = abreast!(k, K => {
            let first = &points[k].points[0];
            Jacobian::affine(l, first.x, first.y, first.is_negative)
        });
        for i in 1..WINDOWS {
            for _ in 0..5 {
                sums = Jacobian::doubles(l, &sums);
            }
            let others = abreast!(k, K => {
                let point = &points[k].points[2 * i];
                (point.x.factor(l), point.y.factor(l), point.is_negative)
            });
            sums = Jacobian::sums(l, &sums, &others);
        }
        sums
    }
}
