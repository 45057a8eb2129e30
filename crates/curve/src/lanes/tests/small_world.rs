//! Exhaustive tests in small groups: 13 and 199 points of y^2 = x^3 + 2 and x^3 + 4 over the same field.
//!
//! Tests all sums of two points, and all pairs of multipliers through the whole of `decide`, against simple affine
//! arithmetic. The formulas depend on the curve only through its constant and on the generator only through its tables,
//! so they run here unchanged. The halves and digits of a multiplier are those modulo n; in this test they represent
//! their sum modulo 199. The steps that add equal or opposite points are known in advance, so the test expects each
//! exception, and has one at every window. See also `docs/derivations/README.md`.

use super::super::Line;
use super::super::affine::{Points, Shared};
use super::super::decide::{Sums, decide, groups_alone};
use super::super::generator::{Group, Tables};
use super::super::prepare::{Kind, Prepared};
use super::super::scalar::Half;
use super::*;
use crate::limits::PORTION_CHECKS_MAX;
use std::collections::BTreeMap;
use std::sync::OnceLock;

type Affine = (Big, Big);

/// The multiples 1 to order - 1 of a generator.
struct World {
    b: u64,
    order: u64,
    points: Vec<Affine>,
}

const BETA: Big = [0xc139_6c28_7195_01ee, 0x9cf0_4975_12f5_8995, 0x6e64_479e_ac34_34e9, 0x7ae9_6a2b_657c_0710];

impl World {
    fn of_13() -> World {
        let x = [0x0a27_41f7_501f_94de, 0xcf7e_4f68_7969_1601, 0x9cec_495f_82ba_bb21, 0xd766_1dfa_c809_808a];
        let y = [0x6c60_7f91_c852_0383, 0xf150_65bc_0910_01aa, 0xf787_bb15_bc0b_9fc1, 0xab34_e494_2373_ed8c];
        World::new(2, 13, (x, y))
    }

    fn of_199() -> World {
        let x = [0xeb44_a730_8316_4357, 0x511a_5793_2929_5e55, 0x617f_772c_20e1_e35d, 0xe402_2862_8166_72e9];
        let y = [0x2391_2bee_eca5_36c5, 0x4928_ab7f_d5b1_d6e3, 0xf2c1_1588_af0d_483a, 0xd592_a71f_19cf_f6a0];
        World::new(4, 199, (x, y))
    }

    fn new(b: u64, order: u64, generator: Affine) -> World {
        let mut points = vec![generator];
        while let Some(next) = plain_add(&points[points.len() - 1], &generator) {
            points.push(next);
        }
        assert_eq!(u64::try_from(points.len()).unwrap(), order - 1, "all points except infinity");
        for (x, y) in &points {
            let cube = mul_mod(&mul_mod(x, x, &P), x, &P);
            assert_eq!(mul_mod(y, y, &P), add_mod(&cube, &[b, 0, 0, 0], &P));
        }
        World { b, order, points }
    }

    fn point(&self, k: u64) -> &Affine {
        &self.points[usize::try_from(k % self.order - 1).unwrap()]
    }

    fn negative(&self, k: u64) -> u64 {
        (self.order - k % self.order) % self.order
    }

    fn is_odd(&self, k: u64) -> bool {
        self.point(k).1[0] & 1 == 1
    }

    /// k or -k, whichever has an even y.
    fn even(&self, k: u64) -> u64 {
        if self.is_odd(k) { self.negative(k) } else { k }
    }

    /// The factor of the endomorphism (x, y) -> (beta x, y) in this group.
    fn lambda(&self) -> u64 {
        let (x, y) = self.points[0];
        let image = (mul_mod(&x, &BETA, &P), y);
        (1..self.order).find(|k| *self.point(*k) == image).unwrap()
    }

    /// The generator's tables. An infinite odd multiple, which corresponds to no digit in a test, is replaced by any
    /// point.
    fn tables(&self) -> Tables {
        let mut base = 1;
        std::array::from_fn(|_| {
            let mut table = Box::new([Line::default(); 4096]);
            for (multiple, line) in (1..).step_by(2).zip(table.iter_mut()) {
                let k = multiple * base % self.order;
                let ([a, b, c, d], [e, f, g, h]) = *self.point(if k == 0 { 1 } else { k });
                *line = Line([a, b, c, d, e, f, g, h]);
            }
            base = (base << 13) % self.order;
            table
        })
    }
}

/// The textbook formulas; `None` is infinity.
fn plain_add(a: &Affine, b: &Affine) -> Option<Affine> {
    let slope = if a == b {
        let square = mul_mod(&a.0, &a.0, &P);
        let twice = add_mod(&a.1, &a.1, &P);
        mul_mod(&add_mod(&square, &add_mod(&square, &square, &P), &P), &inverse_mod(&twice, &P), &P)
    } else if a.0 == b.0 {
        return None;
    } else {
        mul_mod(&sub_mod(&b.1, &a.1, &P), &inverse_mod(&sub_mod(&b.0, &a.0, &P), &P), &P)
    };
    let x = sub_mod(&sub_mod(&mul_mod(&slope, &slope, &P), &a.0, &P), &b.0, &P);
    Some((x, sub_mod(&mul_mod(&slope, &sub_mod(&a.0, &x, &P), &P), &a.1, &P)))
}

fn signed(y: Big, is_negative: bool) -> Big {
    if is_negative { sub_mod(&[0; 4], &y, &P) } else { y }
}

on_every_kernel! {
    every_sum_and_double;
    every_pair_of_multipliers;
    multipliers_at_the_last_window;
    multipliers_at_the_last_addition;
}

/// All pairs of points, with different Z and signs.
fn every_sum_and_double<L: Lanes>(l: L) {
    for world in [World::of_13(), World::of_199()] {
        let mut numbers = Numbers::new(20);
        let pairs = (1..world.order).flat_map(|i| (1..world.order).map(move |j| (i, j)));
        // Debug builds of the plain lanes are slow, and they need the same number of bignum operations.
        let step = if L::WIDTH == 1 && world.order > 13 { 7 } else { 1 };
        let pairs: Vec<(u64, u64)> = pairs.step_by(step).collect();
        for (turn, group) in pairs.chunks(L::WIDTH).enumerate() {
            let pair = |lane: usize| group[lane.min(group.len() - 1)];
            let of_lane = |one: &dyn Fn(usize) -> Big| std::array::from_fn(one);
            let signs = u8::try_from((turn * 0x35) & 0xff).unwrap();
            let (left_negative, right_negative) = (|lane: usize| signs >> (lane % 8) & 1 == 1, turn % 2 == 1);
            let z = numbers.lanes(|numbers| {
                loop {
                    let z = numbers.big(&P);
                    if z != [0; 4] {
                        return z;
                    }
                }
            });
            let z2 = z.map(|z| mul_mod(&z, &z, &P));
            let left = |lane: usize| {
                let (x, y) = *world.point(pair(lane).0);
                (mul_mod(&x, &z2[lane], &P), mul_mod(&y, &mul_mod(&z2[lane], &z[lane], &P), &P))
            };
            // A negative point is stored as its opposite.
            let x = Masked::new(l, load_bigs(l, &of_lane(&|lane| left(lane).0)));
            let y = Masked::new(l, load_bigs(l, &of_lane(&|lane| signed(left(lane).1, left_negative(lane)))));
            let z = Masked::new(l, load_bigs(l, &z)).factor(l);
            let point = Jacobian { x, y, z, is_negative: l.mask(signs) };
            let right = |lane: usize| *world.point(pair(lane).1);
            let x = Masked::new(l, load_bigs(l, &of_lane(&|lane| right(lane).0))).factor(l);
            let y = Masked::new(l, load_bigs(l, &of_lane(&|lane| signed(right(lane).1, right_negative)))).factor(l);
            let sum = point.add(l, &x, &y, l.mask(if right_negative { u8::MAX } else { 0 }));
            assert_points(l, &world, &sum, |lane| {
                let (i, j) = pair(lane);
                // Incomplete: adding a point to itself does not give a point either.
                if i == j { 0 } else { (i + j) % world.order }
            });
            assert_points(l, &world, &point.double(l), |lane| 2 * pair(lane).0 % world.order);
        }
    }
}

/// Asserts that lane i holds k(i) G, and Z = 0 where that is 0.
fn assert_points<L: Lanes>(l: L, world: &World, got: &Jacobian<L>, k: impl Fn(usize) -> u64) {
    let z = bigs(l, &got.z.times(l, &Carried::one(l)));
    let (x, y) = (bigs(l, &got.x.raw()), bigs(l, &got.signed_y(l)));
    for lane in 0..L::WIDTH {
        let k = k(lane);
        if k == 0 {
            assert_eq!(z[lane], [0; 4], "lane {lane}");
            continue;
        }
        let (z2, expected) = (mul_mod(&z[lane], &z[lane], &P), world.point(k));
        assert_ne!(z[lane], [0; 4], "{k}");
        assert_eq!(x[lane], mul_mod(&expected.0, &z2, &P), "{k}");
        assert_eq!(y[lane], mul_mod(&expected.1, &mul_mod(&z2, &z[lane], &P), &P), "{k}");
    }
}

/// The first addition of a multiplication that meets an exception, and whether its points are equal.
type Exception = (usize, bool);

/// The result of the additions of a multiplication, modulo the order, and the exception of each of the two ways to
/// carry them out: a group of lanes alone, and groups together with affine points.
#[derive(Clone, Copy, Debug)]
struct Walk {
    residue: u64,
    exceptions: [Option<Exception>; 2],
}

/// Adds two terms; `exception` becomes the first exception.
fn plus(order: u64, step: usize, (a, b): (u64, u64), exception: &mut Option<Exception>) -> u64 {
    if a == b || (a + b) % order == 0 {
        *exception = exception.or(Some((step, a == b)));
    }
    (a + b) % order
}

/// Adds the terms in their order, each after `doublings` doublings if its place is a multiple of `every`. The first
/// addition has the number `first`.
fn walk(order: u64, terms: &[u64], first: usize, doublings: u32, every: usize) -> (u64, Option<Exception>) {
    let (mut sum, mut exception) = (terms[0], None);
    for (step, term) in terms.iter().enumerate().skip(1) {
        if step % every == 0 {
            sum = (sum << doublings) % order;
        }
        sum = plus(order, first + step - 1, (sum, *term), &mut exception);
    }
    (sum, exception)
}

/// Adds neighbours, then neighbours of these, and so on.
fn walk_of_tree(order: u64, terms: &[u64]) -> (u64, Option<Exception>) {
    let (mut terms, mut step, mut exception) = (terms.to_vec(), 0, None);
    while terms.len() > 1 {
        let mut sums = Vec::new();
        for pair in terms.chunks(2) {
            sums.push(if let [a, b] = pair {
                step += 1;
                plus(order, step - 1, (*a, *b), &mut exception)
            } else {
                pair[0]
            });
        }
        terms = sums;
    }
    (terms[0], exception)
}

fn residue(digit: u64, bits: u32, order: u64) -> u64 {
    let digit = i64::try_from(2 * digit).unwrap() - ((1 << bits) - 1);
    u64::try_from(digit.rem_euclid(i64::try_from(order).unwrap())).unwrap()
}

/// u G; `None` if a digit is a multiple of the order, which the tables here cannot hold.
fn walk_of_generator(world: &World, u: &Big) -> Option<Walk> {
    let (windows, is_opposite) = Canonical(load_bigs(Plain, &[*u; WIDTH_MAX])).generator_windows(Plain);
    let mut base = 1;
    let terms: Vec<u64> = (0..20)
        .map(|i| {
            let digit = residue(windows[i / 4] >> (13 * (i % 4)) & 0x1fff, 13, world.order);
            let term = digit * base % world.order;
            base = (base << 13) % world.order;
            term
        })
        .collect();
    if terms.contains(&0) {
        return None;
    }
    let ((sum, alone), (same, together)) = (walk(world.order, &terms, 0, 0, 1), walk_of_tree(world.order, &terms));
    assert_eq!(sum, same);
    let residue = if is_opposite { world.negative(sum) } else { sum };
    Some(Walk { residue, exceptions: [alone, together] })
}

/// v P, for a P of any order.
fn walk_of_point(world: &World, lambda: u64, v: &Big) -> Walk {
    let halves = Canonical(load_bigs(Plain, &[*v; WIDTH_MAX])).split(Plain);
    let mut terms = Vec::new();
    for i in (0..26).rev() {
        let digit = |half: &Half<Plain>| residue(half.window(Plain, i), 5, world.order);
        terms.push(digit(&halves.first));
        terms.push(digit(&halves.second) * lambda % world.order);
    }
    let (residue, alone) = walk(world.order, &terms, 0, 5, 2);
    // The additions 0 to 25 join a window, the others add it.
    let mut of_pairs = None;
    let pairs = terms.chunks(2).enumerate();
    let pairs: Vec<u64> = pairs.map(|(i, pair)| plus(world.order, i, (pair[0], pair[1]), &mut of_pairs)).collect();
    let (same, of_sums) = walk(world.order, &pairs, 26, 5, 1);
    assert_eq!(residue, same);
    Walk { residue, exceptions: [alone, of_pairs.or(of_sums)] }
}

/// A number below n for each residue without an exception, and one for each exception of each way.
struct Multipliers {
    clean: BTreeMap<u64, Big>,
    exceptional: BTreeMap<(usize, Exception), (Walk, Big)>,
}

impl Multipliers {
    fn find(seed: u64, walk: impl Fn(&Big) -> Option<Walk>) -> Multipliers {
        let mut numbers = Numbers::new(seed);
        let mut found = Multipliers { clean: BTreeMap::new(), exceptional: BTreeMap::new() };
        for _ in 0..60_000 {
            let number = numbers.big(&N);
            // A message may be zero, the other multiplier never is; another test covers zero.
            let Some(walk) = (if number == [0; 4] { None } else { walk(&number) }) else { continue };
            if walk.exceptions == [None; 2] {
                found.clean.entry(walk.residue).or_insert(number);
            }
            for (way, exception) in walk.exceptions.iter().enumerate() {
                if let Some(exception) = exception {
                    found.exceptional.entry((way, *exception)).or_insert((walk, number));
                }
            }
        }
        found
    }

    /// Whether these additions of a way met equal and opposite points.
    fn has_all(&self, way: usize, mut steps: std::ops::Range<usize>) -> bool {
        steps.all(|step| [true, false].iter().all(|equal| self.exceptional.contains_key(&(way, (step, *equal)))))
    }
}

/// A check with the verdict expected from `decide` for each way.
struct Case {
    kind: Kind,
    prepared: Prepared,
    expected: [Option<bool>; 2],
}

/// u and v with their residues; the key is `d` times the generator.
#[derive(Clone, Copy)]
struct Inputs<'a> {
    u: (Walk, &'a Big),
    v: (Walk, &'a Big),
    /// 1 / v.
    inverse: &'a SecretKey,
    d: u64,
}

/// The three kinds of check, each with the right r, with that of the difference instead of the sum, and with another.
fn cases(world: &World, inputs: &Inputs<'_>, cases: &mut Vec<Case>) {
    let Inputs { u: (of_u, u), v: (of_v, v), inverse, d } = *inputs;
    let (a, b) = (of_u.residue, of_v.residue);
    for kind in [Kind::Ecdsa, Kind::Schnorr, Kind::Tweak] {
        let d = if kind == Kind::Ecdsa { d } else { world.even(d) };
        let key = if kind == Kind::Tweak { d } else { b * d % world.order };
        let (sum, difference) = ((a + key) % world.order, (a + world.negative(key)) % world.order);
        let (right, wrong) = if kind == Kind::Schnorr { (difference, sum) } else { (sum, difference) };
        // Exceptional unless both sides are finite, and neither equal nor opposite.
        let is_exceptional = a == 0 || key == 0 || right == 0 || wrong == 0;
        for k in [right, wrong, 1 + (a + 3 * b) % (world.order - 1)] {
            let r = world.point(if k == 0 { 1 } else { k }).0;
            let case = a + b + k;
            // A given y that is not that of the key.
            let is_wrong_y = kind == Kind::Ecdsa && case % 4 == 3;
            let is_same_x = !is_exceptional && r == world.point(right).0;
            let parity = |k| !is_exceptional && world.is_odd(k);
            let flip = case % 5 == 0;
            let (numbers, is_odd, holds) = match kind {
                Kind::Ecdsa => (of_ecdsa(u, inverse, &r), world.is_odd(d), is_same_x && !is_wrong_y),
                Kind::Schnorr => ((*u, *v), false, is_same_x && !parity(right)),
                Kind::Tweak => ((*u, [0; 4]), parity(right) != flip, is_same_x && !flip),
            };
            let prepared = Prepared {
                index: cases.len(),
                key: limbs(world.point(d).0),
                y: key_y(world, kind, d, case),
                r: limbs(r),
                u: limbs(numbers.0),
                v: limbs(numbers.1),
                is_odd,
            };
            let mut expected = [None; 2];
            for way in 0..2 {
                // A tweak has no v.
                let meets = of_u.exceptions[way].is_some() || (kind != Kind::Tweak && of_v.exceptions[way].is_some());
                expected[way] = (!is_exceptional && !meets).then_some(holds);
            }
            cases.push(Case { kind, prepared, expected });
        }
    }
}

/// y of an ECDSA key in every second case, and one that differs from it in its second bit in half of these.
fn key_y(world: &World, kind: Kind, d: u64, case: u64) -> Option<[u64; 5]> {
    let mut y = world.point(d).1;
    y[0] ^= if case % 4 == 3 { 2 } else { 0 };
    (kind == Kind::Ecdsa && case % 2 == 1).then(|| limbs(y))
}

fn product(a: &SecretKey, b: &SecretKey) -> SecretKey {
    a.mul_tweak(&secp256k1::Scalar::from(*b)).unwrap()
}

fn inverse(v: &Big) -> SecretKey {
    let (exponent, v) = (sub_words(&N, &[2, 0, 0, 0]), secret(v));
    (0..256).rev().fold(secret(&[1, 0, 0, 0]), |power, bit| {
        let power = product(&power, &power);
        if exponent[bit / 64] >> (bit % 64) & 1 == 1 { product(&power, &v) } else { power }
    })
}

/// Message and s that give the multipliers u and v: s = r / v, message = u s.
fn of_ecdsa(u: &Big, inverse: &SecretKey, r: &Big) -> (Big, Big) {
    let s = product(&secret(r), inverse);
    let big = |key: &SecretKey| {
        let bytes = key.to_secret_bytes();
        std::array::from_fn(|i| u64::from_be_bytes(bytes[24 - 8 * i..32 - 8 * i].try_into().unwrap()))
    };
    (big(&product(&secret(u), &s)), big(&s))
}

/// All pairs of residues, and an exception at every addition of either multiplication.
fn all_cases(world: &World) -> Vec<Case> {
    let lambda = world.lambda();
    let of_generator = Multipliers::find(21, |u| walk_of_generator(world, u));
    let of_point = Multipliers::find(22, |v| Some(walk_of_point(world, lambda, v)));
    // No sum is infinite without an exception, so all residues but 0.
    assert_eq!((of_generator.clean.len(), of_point.clean.len()), (198, 198));
    // 19 and 51 additions, equal and opposite points at each. The exception is the first addition of a key: a half of
    // 130 bits leaves only a few digits to its highest window.
    for way in 0..2 {
        assert!(of_generator.has_all(way, 0..19) && of_point.has_all(way, 1..51), "{way}");
        assert!(of_point.exceptional.keys().any(|(of, (step, _))| *of == way && *step == 0));
    }
    let inverses: BTreeMap<u64, SecretKey> = of_point.clean.iter().map(|(b, v)| (*b, inverse(v))).collect();
    let clean = |residue| Walk { residue, exceptions: [None; 2] };
    let mut all = Vec::new();
    for a in 1..199 {
        for b in 1..199 {
            let (u, v) = ((clean(a), &of_generator.clean[&a]), (clean(b), &of_point.clean[&b]));
            let d = 1 + (7 * a + 13 * b) % 198;
            cases(world, &Inputs { u, v, inverse: &inverses[&b], d }, &mut all);
        }
    }
    for (b, (walk, u)) in (1..).zip(of_generator.exceptional.values()) {
        let v = (clean(b), &of_point.clean[&b]);
        cases(world, &Inputs { u: (*walk, u), v, inverse: &inverses[&b], d: 5 }, &mut all);
    }
    for (a, (walk, v)) in (1..).zip(of_point.exceptional.values()) {
        let a = 1 + a % 198;
        let u = (clean(a), &of_generator.clean[&a]);
        cases(world, &Inputs { u, v: (*walk, v), inverse: &inverse(v), d: 9 }, &mut all);
    }
    // Distributed, so that exceptions do not exclude their neighbours.
    let count = all.len();
    assert!(count % STRIDE != 0);
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_unstable_by_key(|at| at * STRIDE % count);
    let mut all: Vec<Option<Case>> = all.into_iter().map(Some).collect();
    let mut all: Vec<Case> = order.iter().map(|at| all[*at].take().unwrap()).collect();
    for (index, case) in all.iter_mut().enumerate() {
        case.prepared.index = index;
    }
    all
}

/// A prime.
const STRIDE: usize = 7_919;

/// The world with its tables and cases, built once for all kernels.
fn prepared_world() -> &'static (World, Tables, Vec<Case>) {
    static WORLD: OnceLock<(World, Tables, Vec<Case>)> = OnceLock::new();
    WORLD.get_or_init(|| {
        let world = World::of_199();
        let (tables, cases) = (world.tables(), all_cases(&world));
        (world, tables, cases)
    })
}

/// Every case gets the expected verdict, and is reported as exceptional if and only if it is: in large portions, and a
/// part of them in portions that are too small to be added together.
fn every_pair_of_multipliers<L: Lanes>(l: L) {
    // One lane at a time is slow in debug builds, so it tests only a part of the pairs, with every residue.
    let step = if L::WIDTH > 1 {
        1
    } else if L::PACKED.is_some() {
        7
    } else {
        23
    };
    decide_cases(l, step, PORTION_CHECKS_MAX);
    if L::IS_AFFINE {
        decide_cases(l, 5 * step, 35);
    }
}

/// Decides every `step`th case of each kind, in portions of this size.
fn decide_cases<L: Lanes>(l: L, step: usize, size: usize) {
    let (world, tables, all) = prepared_world();
    let (mut counts, mut sums) = ([[0; 3]; 2], Sums::new());
    for kind in [Kind::Ecdsa, Kind::Schnorr, Kind::Tweak] {
        let checks: Vec<Prepared> =
            all.iter().filter(|case| case.kind == kind).step_by(step).map(|case| case.prepared).collect();
        for portion in checks.chunks(size) {
            let groups = portion.len().div_ceil(L::WIDTH);
            let (group, mut got) = (Group { b: world.b, tables }, BTreeMap::new());
            decide(l, kind, portion, group, &mut sums, &mut |index, verdict| {
                assert!(got.insert(index, verdict).is_none(), "one verdict for each check");
            });
            for (i, check) in portion.iter().enumerate() {
                let way = usize::from(i / L::WIDTH >= groups_alone::<L>(groups));
                let case = &all[check.index];
                assert_eq!(got[&check.index], case.expected[way], "{kind:?} {way} {:?}", case.prepared);
                counts[way][case.expected[way].map_or(2, usize::from)] += 1;
            }
        }
    }
    for [invalid, valid, exceptional] in counts {
        let count = valid + invalid + exceptional;
        assert!(valid * 5 >= count && invalid * 5 >= count && exceptional * 200 >= count, "{counts:?}");
    }
    // Most groups of a large portion are added together.
    let [alone, together] = counts.map(|counts| counts.iter().sum::<usize>());
    let is_shared = L::IS_AFFINE && size == PORTION_CHECKS_MAX;
    assert!(if is_shared { together > 10 * alone } else { together == 0 }, "{counts:?}");
}

/// The possible exceptions on secp256k1 itself, all known in advance.
///
/// Equal and opposite points can meet only where the digits reach the size of the group: at the last window of the
/// generator for one u and its opposite, at the last window of a key for small i + j lambda.
fn multipliers_at_the_last_window<L: Lanes>(l: L) {
    // 511 * 2^248 - n: before the last window the sum is 511 * 2^247 - n, and 511 * 2^247 comes next
    // (docs/derivations/scalar.md).
    let (u, _) = add_words(&[0, 0, 0, 0xff << 56], &sub_words(&[0; 4], &N));
    for u in [u, sub_words(&N, &u)] {
        let is_last = |u: &Big| {
            let (windows, _) = Canonical(load_bigs(l, &[*u; WIDTH_MAX])).generator_windows(l);
            let sum = multiply_generator(l, &windows, tables());
            bigs(l, &sum.z.times(l, &Carried::one(l)))[0] == [0; 4]
        };
        assert!(is_last(&u), "{u:x?}");
        for near in [add_mod(&u, &[2, 0, 0, 0], &N), sub_mod(&u, &[2, 0, 0, 0], &N)] {
            assert!(!is_last(&near), "{near:x?}");
        }
    }
    let key = PublicKey::from_secret_key(&secret(&[77, 0, 0, 0]));
    let (x, y) = coordinates(&key);
    let (x, y) = (Masked::new(l, load_bigs(l, &[x; WIDTH_MAX])), Masked::new(l, load_bigs(l, &[y; WIDTH_MAX])));
    let small = |i: i64| signed_scalar([i.unsigned_abs(), 0, 0, 0], i < 0);
    // Two points can meet there only for 2 e + e' lambda, e' lambda, 2 e' lambda and 0, where e and e' are odd digits.
    let digits = (-31..=31).step_by(2);
    let both = digits.clone().flat_map(|e| digits.clone().map(move |other| (2 * e, other)));
    let all: Vec<Big> = (both.chain((-62..=62).map(|other| (0, other))))
        .map(|(i, j)| add_mod(&small(i), &mul_mod(&small(j), &LAMBDA, &N), &N))
        .collect();
    let (mut exceptional, mut regular) = (0, 0);
    for group in all.chunks(L::WIDTH) {
        let lane = |lane: usize| group[lane.min(group.len() - 1)];
        let v: [Big; WIDTH_MAX] = std::array::from_fn(lane);
        let product = multiply(l, &x, &y, &Canonical(load_bigs(l, &v)).split(l));
        for (lane, z) in bigs(l, &product.z.times(l, &Carried::one(l))).iter().enumerate() {
            let meets = meets_an_exception(&v[lane]);
            assert_eq!(*z == [0; 4], meets, "{:x?}", v[lane]);
            if meets { exceptional += 1 } else { regular += 1 }
        }
    }
    assert!(exceptional >= 2 && regular > 1_000, "{exceptional} {regular}");
}

/// The same for affine additions (docs/derivations/scalar.md, section 4): one u and its opposite for the last sum of
/// the tree, and one 2 e + 2 e' lambda for the last window of a key.
fn multipliers_at_the_last_addition<L: Lanes>(l: L) {
    let key = PublicKey::from_secret_key(&secret(&[77, 0, 0, 0]));
    let (x, y) = coordinates(&key);
    let (x, y) = (Masked::new(l, load_bigs(l, &[x; WIDTH_MAX])), Masked::new(l, load_bigs(l, &[y; WIDTH_MAX])));
    // n - 2 (n modulo 2^208), and 2 (n modulo 2^208).
    let rest = [N[0], N[1], N[2], N[3] & 0xffff];
    let twice = add_words(&rest, &rest).0;
    let last = [sub_words(&N, &twice), twice];
    let near = last.map(|u| [add_mod(&u, &[2, 0, 0, 0], &N), sub_mod(&u, &[2, 0, 0, 0], &N)]).concat();
    let usual = [12_345, 6, 7, 8];
    let mut all: Vec<([Big; 2], bool)> = last.map(|u| ([u, usual], true)).to_vec();
    all.extend(near.iter().map(|u| ([*u, usual], false)));
    let small = |i: i64| signed_scalar([i.unsigned_abs(), 0, 0, 0], i < 0);
    for (e, other) in (-62..=62).step_by(2).flat_map(|e| (-62..=62).step_by(2).map(move |other| (e, other))) {
        let v = add_mod(&small(e), &mul_mod(&small(other), &LAMBDA, &N), &N);
        if v != [0; 4] {
            all.push(([usual, v], meets_an_affine_exception(&v)));
        }
    }
    // Two u, and of all these v only 54 - 14 lambda has the halves for it.
    let found: Vec<&Big> = all.iter().filter(|(_, meets)| *meets).map(|([_, v], _)| v).collect();
    assert_eq!(found, [&usual, &usual, &add_mod(&small(54), &mul_mod(&small(-14), &LAMBDA, &N), &N)]);
    let width = L::WIDTH;
    let mut points = vec![Points::new(l); all.len().div_ceil(width)];
    let mut shared = Shared::new(points.len());
    let lanes = |group: usize, part: usize| -> [Big; WIDTH_MAX] {
        std::array::from_fn(|lane| all[(group * width + lane).min(all.len() - 1)].0[part])
    };
    for (group, points) in points.iter_mut().enumerate() {
        let u = Canonical(load_bigs(l, &lanes(group, 0)));
        points.load_generator(l, &u.generator_windows(l).0, tables());
        points.load_key(l, &x, &y);
    }
    shared.add_levels(l, &mut points, true);
    for (group, points) in points.iter_mut().enumerate() {
        points.load_windows(l, &Canonical(load_bigs(l, &lanes(group, 1))).split(l));
    }
    shared.add_pairs(l, &mut points);
    for (group, points) in points.iter().enumerate() {
        let (of_u, [of_v]) = (points.generator(l), Points::multiples(l, &[points]));
        let (of_u, of_v) = (bigs(l, &of_u.z.times(l, &Carried::one(l))), bigs(l, &of_v.z.times(l, &Carried::one(l))));
        for lane in 0..width {
            let ([u, v], meets) = all[(group * width + lane).min(all.len() - 1)];
            assert_eq!(of_u[lane] == [0; 4] || of_v[lane] == [0; 4], meets, "{u:x?} {v:x?}");
        }
    }
}

fn signed_scalar(value: Big, is_negative: bool) -> Big {
    if is_negative { sub_mod(&[0; 4], &value, &N) } else { value }
}

/// Whether an addition of v P meets an exception, computed with numbers modulo n.
fn meets_an_exception(v: &Big) -> bool {
    let halves = Canonical(load_bigs(Plain, &[*v; WIDTH_MAX])).split(Plain);
    let mut sum = None;
    for i in (0..26).rev() {
        for (is_second, half) in [(false, &halves.first), (true, &halves.second)] {
            let digit = i64::try_from(2 * half.window(Plain, i)).unwrap() - 31;
            let mut term = signed_scalar([digit.unsigned_abs(), 0, 0, 0], digit < 0);
            if is_second {
                term = mul_mod(&term, &LAMBDA, &N);
            }
            sum = Some(match sum {
                None => term,
                Some(sum) => {
                    let sum = if is_second { sum } else { mul_mod(&sum, &[32, 0, 0, 0], &N) };
                    if sum == term || add_mod(&sum, &term, &N) == [0; 4] {
                        return true;
                    }
                    add_mod(&sum, &term, &N)
                }
            });
        }
    }
    false
}

/// Whether v P from the sums of windows meets an exception, computed with numbers modulo n.
fn meets_an_affine_exception(v: &Big) -> bool {
    let halves = Canonical(load_bigs(Plain, &[*v; WIDTH_MAX])).split(Plain);
    let digit = |half: &Half<Plain>, i| {
        let digit = i64::try_from(2 * half.window(Plain, i)).unwrap() - 31;
        signed_scalar([digit.unsigned_abs(), 0, 0, 0], digit < 0)
    };
    let are_exceptional = |a: &Big, b: &Big| a == b || add_mod(a, b, &N) == [0; 4];
    let mut sum = None;
    for i in (0..26).rev() {
        let (first, second) = (digit(&halves.first, i), mul_mod(&digit(&halves.second, i), &LAMBDA, &N));
        let pair = add_mod(&first, &second, &N);
        let before = sum.map(|sum| mul_mod(&sum, &[32, 0, 0, 0], &N));
        if are_exceptional(&first, &second) || before.is_some_and(|sum| are_exceptional(&sum, &pair)) {
            return true;
        }
        sum = Some(before.map_or(pair, |sum| add_mod(&sum, &pair, &N)));
    }
    false
}
