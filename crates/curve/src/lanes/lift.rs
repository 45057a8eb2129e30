//! Points from their x alone, with even y (`lift_x` of BIP-0340), many square roots in parallel.
//!
//! Input: x coordinates below p. Output: packed points, and for each whether it is on the curve. Invariant: a point
//! that is reported to be on the curve satisfies y^2 = x^3 + 7. Cost: 254 squares and 14 products for each. Must never:
//! trust a root without squaring it. Derivation: `docs/derivations/batch.md`, section 2.

use super::field::{Carried, Masked};
use super::point::{BETA, unpack};
use super::{Lanes, Line, WIDTH_MAX};

/// Vectors computed in parallel: each square depends on the previous one, so a single chain leaves the multiplier idle.
const SIDE_BY_SIDE: usize = 3;

type Abreast<L> = [Carried<L>; SIDE_BY_SIDE];

/// Appends a line for every x and returns whether each x is that of a point; if not, the content of its line is
/// unspecified.
pub(crate) fn lift<L: Lanes>(l: L, xs: &[[u64; 5]], lines: &mut Vec<Line>) -> Vec<bool> {
    let first = lines.len();
    lines.resize(first + xs.len(), Line::default());
    let mut are_points = Vec::with_capacity(xs.len());
    let size = SIDE_BY_SIDE * L::WIDTH;
    for (xs, lines) in xs.chunks(size).zip(lines[first..].chunks_mut(size)) {
        let bits = l.run(
            #[inline(always)]
            || lift_abreast(l, xs, lines),
        );
        are_points.extend((0..xs.len()).map(|i| bits[i / L::WIDTH] >> (i % L::WIDTH) & 1 == 1));
    }
    are_points
}

#[inline(always)]
fn lift_abreast<L: Lanes>(l: L, xs: &[[u64; 5]], lines: &mut [Line]) -> [u8; SIDE_BY_SIDE] {
    let seven = Masked::constant(l, [7, 0, 0, 0, 0]).raw();
    // Loops, because a closure passed to `array::map` or `from_fn` is not compiled for the instruction set.
    let mut points = [seven.mask(l); SIDE_BY_SIDE];
    let mut cubics = points;
    let mut factors = [Carried::one(l); SIDE_BY_SIDE];
    for k in 0..SIDE_BY_SIDE {
        points[k] = Masked::new(l, load(l, |lane| xs[(k * L::WIDTH + lane).min(xs.len() - 1)]));
        let x = points[k].factor(l);
        cubics[k] = x.square(l).carry(l).times_plus(l, &x, &seven).mask(l);
        factors[k] = cubics[k].factor(l);
    }
    let roots = roots(l, &factors);
    let mut are_points = [0; SIDE_BY_SIDE];
    for (k, lines) in lines.chunks_mut(L::WIDTH).enumerate() {
        let y = roots[k].times(l, &Carried::one(l)).canonical(l);
        let difference = y.factor(l).square_plus(l, &cubics[k].raw().negate::<2>(l)).canonical(l);
        are_points[k] = l.bits(difference.is_zero(l));
        // y is not zero, since -7 is not a cube.
        let minus_y = y.raw().negate::<2>(l).carry(l).times(l, &Carried::one(l)).canonical(l);
        let y = Masked::select(l, y.is_odd(l), &minus_y, &y);
        store(l, &points[k], &y, lines);
    }
    are_points
}

/// c to the power (p + 1) / 4: a root of c if there is one.
#[inline(always)]
fn roots<L: Lanes>(l: L, c: &Abreast<L>) -> Abreast<L> {
    // xN: c to the power 2^N - 1. (p + 1) / 4 is 223 ones, a zero, 22 ones, 00001100.
    let x2 = chain(l, c, 1, c);
    let x3 = chain(l, &x2, 1, c);
    let x6 = chain(l, &x3, 3, &x3);
    let x9 = chain(l, &x6, 3, &x3);
    let x11 = chain(l, &x9, 2, &x2);
    let x22 = chain(l, &x11, 11, &x11);
    let x44 = chain(l, &x22, 22, &x22);
    let x88 = chain(l, &x44, 44, &x44);
    let x176 = chain(l, &x88, 88, &x88);
    let x220 = chain(l, &x176, 44, &x44);
    let x223 = chain(l, &x220, 3, &x3);
    let value = chain(l, &x223, 23, &x22);
    square_times(l, &chain(l, &value, 6, &x2), 2)
}

/// x to the power 2^count, times y.
#[inline(always)]
fn chain<L: Lanes>(l: L, x: &Abreast<L>, count: u32, y: &Abreast<L>) -> Abreast<L> {
    let mut powers = square_times(l, x, count);
    for k in 0..SIDE_BY_SIDE {
        powers[k] = powers[k].times(l, &y[k]).carry(l);
    }
    powers
}

#[inline(always)]
fn square_times<L: Lanes>(l: L, x: &Abreast<L>, count: u32) -> Abreast<L> {
    l.run(
        #[inline(always)]
        || {
            let mut values = *x;
            for _ in 0..count {
                for value in &mut values {
                    *value = value.square(l).carry(l);
                }
            }
            values
        },
    )
}

/// Appends the images of the points from line `first` on under the endomorphism.
pub(crate) fn append_images<L: Lanes>(l: L, lines: &mut Vec<Line>, first: usize) {
    let count = lines.len() - first;
    lines.resize(first + 2 * count, Line::default());
    let (points, images) = lines[first..].split_at_mut(count);
    l.run(
        #[inline(always)]
        || {
            let beta = Masked::constant(l, BETA).factor(l);
            for (points, images) in points.chunks(L::WIDTH).zip(images.chunks_mut(L::WIDTH)) {
                let (x, y) = point(l, std::array::from_fn(|lane| &points[lane.min(points.len() - 1)]));
                store(l, &x.factor(l).times(l, &beta).canonical(l), &y, images);
            }
        },
    );
}

/// Loads a number for each lane, in clean limbs.
#[inline(always)]
pub(crate) fn load<L: Lanes>(l: L, number: impl Fn(usize) -> [u64; 5]) -> [L::Vector; 5] {
    let mut words = [[0; WIDTH_MAX]; 5];
    for lane in 0..L::WIDTH {
        let limbs = number(lane);
        for i in 0..5 {
            words[i][lane] = limbs[i];
        }
    }
    [l.load(&words[0]), l.load(&words[1]), l.load(&words[2]), l.load(&words[3]), l.load(&words[4])]
}

/// x and y of a packed point for each lane.
#[inline(always)]
pub(crate) fn point<L: Lanes>(l: L, lines: [&Line; WIDTH_MAX]) -> (Masked<L>, Masked<L>) {
    unpack(l, &l.rows(lines))
}

/// Packs canonical coordinates into the lines, one lane each.
#[inline(always)]
pub(crate) fn store<L: Lanes>(l: L, x: &Masked<L>, y: &Masked<L>, lines: &mut [Line]) {
    let ([x0, x1, x2, x3], [y0, y1, y2, y3]) = (x.pack(l), y.pack(l));
    l.store_rows([x0, x1, x2, x3, y0, y1, y2, y3], lines);
}
