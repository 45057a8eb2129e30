//! The tables of odd multiples of the generator: 4,096 points for each of 20 windows of 13 bits, 5 MiB, shared.
//!
//! Input: none. Output: entry j of table i is (2 j + 1) 2^(13 i) G, packed in one cache line. Built once with the plain
//! lanes. Cost: about 25 ms of CPU time, once per process. Must never: change after being built.

use super::field::{Carried, Masked, Raw};
use super::plain::Plain;
use super::point::{Jacobian, minus};
use super::{Lanes, Line};
use std::sync::OnceLock;

/// Number of windows of a scalar.
const TABLES: usize = 20;
/// Bits per window.
const BITS: u32 = 13;

pub(crate) type Tables = [Box<[Line; 4096]>; TABLES];

/// The group parameters that the formulas use: the curve y^2 = x^3 + b, and the multiples of its generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'a> {
    pub(crate) b: u64,
    pub(crate) tables: &'a Tables,
}

/// secp256k1.
pub(crate) fn secp256k1() -> Group<'static> {
    Group { b: 7, tables: tables() }
}

/// The tables, built on first use.
pub(crate) fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(build)
}

/// The generator, x then y.
const GENERATOR: [[u64; 5]; 2] = [
    [0x2_815b_16f8_1798, 0xd_b2dc_e28d_959f, 0xe_870b_0702_9bfc, 0xb_bac5_5a06_295c, 0x79be_667e_f9dc],
    [0x7_d08f_fb10_d4b8, 0x4_8a68_5541_99c4, 0xe_1108_a8fd_17b4, 0xc_4655_da4f_bfc0, 0x483a_da77_26a3],
];

#[derive(Clone, Copy, Debug)]
struct Affine {
    x: Masked<Plain>,
    y: Masked<Plain>,
}

fn build() -> Tables {
    let mut base = generator();
    std::array::from_fn(|_| {
        let mut table = Box::new([Line::default(); 4096]);
        base = fill(&mut table[..], base, BITS);
        table
    })
}

fn generator() -> Affine {
    let [x, y] = GENERATOR.map(|limbs| Masked::constant(Plain, limbs));
    Affine { x, y }
}

/// Sets the lines to the odd multiples of `base` below 2^bits. Returns 2^bits times the base.
fn fill(lines: &mut [Line], base: Affine, bits: u32) -> Affine {
    let mut points = vec![base];
    let mut power = base;
    // Adding 2^k times the base to the multiples 1, 3, ..., 2^k - 1 gives those up to 2^(k+1) - 1.
    for _ in 0..bits - 1 {
        power = double(&power);
        add_to_all(&mut points, &power);
    }
    for (line, point) in lines.iter_mut().zip(&points) {
        let (x, y) = (pack(&point.x), pack(&point.y));
        *line = Line([x[0], x[1], x[2], x[3], y[0], y[1], y[2], y[3]]);
    }
    double(&power)
}

/// Windows of the table for secret numbers.
const COMB_WINDOWS: usize = 65;
/// Bits per window: few, since each entry is read for each number.
pub(crate) const COMB_BITS: u32 = 4;
pub(crate) const COMB_ENTRIES: usize = 1 << (COMB_BITS - 1);

/// Entry j of window i is (2 j + 1) 2^(4 i) G: 33 KB.
pub(crate) type Comb = [[Line; COMB_ENTRIES]; COMB_WINDOWS];

/// The table for secret numbers, built on first use.
pub(crate) fn comb() -> &'static Comb {
    static COMB: OnceLock<Box<Comb>> = OnceLock::new();
    COMB.get_or_init(|| {
        let mut comb = Box::new([[Line::default(); COMB_ENTRIES]; COMB_WINDOWS]);
        comb.iter_mut().fold(generator(), |base, row| fill(row, base, COMB_BITS));
        comb
    })
}

/// Appends every point plus `addend`; no point may equal `addend` or its opposite.
fn add_to_all(points: &mut Vec<Affine>, addend: &Affine) {
    let l = Plain;
    let apart: Vec<Carried<Plain>> = points.iter().map(|point| minus(l, &addend.x.raw(), &point.x.raw())).collect();
    let inverses = invert_all(&apart);
    for (i, inverse) in inverses.iter().enumerate() {
        let point = points[i];
        let slope = minus(l, &addend.y.raw(), &point.y.raw()).times(l, inverse).carry(l);
        let sum: Raw<Plain> = point.x.raw().add(l, &addend.x.raw());
        let x = slope.square_plus(l, &sum.negate::<3>(l)).canonical(l);
        let y = slope.times_plus(l, &minus(l, &point.x.raw(), &x.raw()), &point.y.raw().negate::<2>(l)).canonical(l);
        points.push(Affine { x, y });
    }
}

/// Inverts all values with one inversion (`docs/derivations/inversion.md`).
fn invert_all(values: &[Carried<Plain>]) -> Vec<Carried<Plain>> {
    let l = Plain;
    let mut products = Vec::with_capacity(values.len());
    let mut product = Carried::one(l);
    for value in values {
        products.push(product);
        product = product.times(l, value).carry(l);
    }
    let mut inverse = product.invert(l);
    for (product, value) in products.iter_mut().zip(values).rev() {
        *product = product.times(l, &inverse).carry(l);
        inverse = inverse.times(l, value).carry(l);
    }
    products
}

fn double(point: &Affine) -> Affine {
    let l = Plain;
    let doubled = Jacobian::affine(l, point.x, point.y, false).double(l);
    let inverse = doubled.z.invert(l);
    let square = inverse.square(l).carry(l);
    let x = doubled.x.factor(l).times(l, &square).canonical(l);
    let cube = square.times(l, &inverse).carry(l);
    Affine { x, y: doubled.signed_y(l).carry(l).times(l, &cube).canonical(l) }
}

/// Five limbs of 52 bits as four words of 64.
fn pack(value: &Masked<Plain>) -> [u64; 4] {
    let [a, b, c, d, e] = value.lane(Plain, 0);
    [a | b << 52, b >> 12 | c << 40, c >> 24 | d << 28, d >> 36 | e << 16]
}

// The windows are the widest for which the tables need no more than 8 MiB.
const _: () = assert!(TABLES * 4096 * size_of::<Line>() <= 8 << 20 && Plain::WIDTH == 1);
