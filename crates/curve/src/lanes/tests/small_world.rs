//! Exhaustive tests in small groups: 13 and 199 points of y^2 = x^3 + 2 and x^3 + 4 over the same field.
//!
//! Tests all sums of two points, and all pairs of multipliers through the whole of `decide`, against simple affine
//! arithmetic. The formulas depend on the curve only through its constant and on the generator only through its tables,
//! so they run here unchanged. The halves and digits of a multiplier are those modulo n; in this test they represent
//! their sum modulo 199. The steps that add equal or opposite points are known in advance, so the test expects each
//! exception, and has one at every window. See also `docs/derivations/README.md`.

use super::super::Line;
use super::super::decide::decide;
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

/// The result of the additions of a multiplication, modulo the order.
#[derive(Clone, Copy, Debug)]
struct Walk {
    residue: u64,
    exception: Option<Exception>,
}

/// Adds the terms, each after its number of doublings.
fn walk(order: u64, terms: &[(u32, u64)]) -> Walk {
    let (mut sum, mut exception) = (terms[0].1, None);
    for (step, (doublings, term)) in terms.iter().enumerate().skip(1) {
        sum = (sum << doublings) % order;
        if sum == *term || (sum + term) % order == 0 {
            exception = exception.or(Some((step, sum == *term)));
        }
        sum = (sum + term) % order;
    }
    Walk { residue: sum, exception }
}

fn residue(digit: u64, bits: u32, order: u64) -> u64 {
    let digit = i64::try_from(2 * digit).unwrap() - ((1 << bits) - 1);
    u64::try_from(digit.rem_euclid(i64::try_from(order).unwrap())).unwrap()
}

/// u G; `None` if a digit is a multiple of the order, which the tables here cannot hold.
fn walk_of_generator(world: &World, u: &Big) -> Option<Walk> {
    let (windows, is_opposite) = Canonical(load_bigs(Plain, &[*u; WIDTH_MAX])).generator_windows(Plain);
    let mut base = 1;
    let terms: Vec<(u32, u64)> = (0..20)
        .map(|i| {
            let digit = residue(windows[i / 4] >> (13 * (i % 4)) & 0x1fff, 13, world.order);
            let term = digit * base % world.order;
            base = (base << 13) % world.order;
            (0, term)
        })
        .collect();
    let mut walk = terms.iter().all(|(_, term)| *term != 0).then(|| walk(world.order, &terms))?;
    if is_opposite {
        walk.residue = world.negative(walk.residue);
    }
    Some(walk)
}

/// v P, for a P of any order.
fn walk_of_point(world: &World, lambda: u64, v: &Big) -> Walk {
    let halves = Canonical(load_bigs(Plain, &[*v; WIDTH_MAX])).split(Plain);
    let mut terms = Vec::new();
    for i in (0..26).rev() {
        let digit = |half: &Half<Plain>| residue(half.window(Plain, i), 5, world.order);
        terms.push((if i == 25 { 0 } else { 5 }, digit(&halves.first)));
        terms.push((0, digit(&halves.second) * lambda % world.order));
    }
    walk(world.order, &terms)
}

/// A number below n for each residue without an exception, and one for each exception.
struct Multipliers {
    clean: BTreeMap<u64, Big>,
    exceptional: BTreeMap<Exception, Big>,
}

impl Multipliers {
    fn find(seed: u64, walk: impl Fn(&Big) -> Option<Walk>) -> Multipliers {
        let mut numbers = Numbers::new(seed);
        let mut found = Multipliers { clean: BTreeMap::new(), exceptional: BTreeMap::new() };
        for _ in 0..60_000 {
            let number = numbers.big(&N);
            // A message may be zero, the other multiplier never is; another test covers zero.
            let walk = if number == [0; 4] { None } else { walk(&number) };
            match walk {
                Some(Walk { exception: Some(exception), .. }) => found.exceptional.entry(exception).or_insert(number),
                Some(Walk { residue, exception: None }) => found.clean.entry(residue).or_insert(number),
                _ => continue,
            };
        }
        found
    }
}

/// A check with the verdict expected from `decide`.
struct Case {
    kind: Kind,
    prepared: Prepared,
    expected: Option<bool>,
}

/// u and v with their residues; the key is `d` times the generator.
#[derive(Clone, Copy)]
struct Inputs<'a> {
    u: (u64, &'a Big),
    v: (u64, &'a Big),
    /// 1 / v.
    inverse: &'a SecretKey,
    d: u64,
    is_exceptional: bool,
}

/// The three kinds of check, each with the right r, with that of the difference instead of the sum, and with another.
fn cases(world: &World, inputs: &Inputs<'_>, cases: &mut Vec<Case>) {
    let Inputs { u: (a, u), v: (b, v), inverse, d, is_exceptional } = *inputs;
    for kind in [Kind::Ecdsa, Kind::Schnorr, Kind::Tweak] {
        let d = if kind == Kind::Ecdsa { d } else { world.even(d) };
        let key = if kind == Kind::Tweak { d } else { b * d % world.order };
        let (sum, difference) = ((a + key) % world.order, (a + world.negative(key)) % world.order);
        let (right, wrong) = if kind == Kind::Schnorr { (difference, sum) } else { (sum, difference) };
        // Exceptional unless both sides are finite, and neither equal nor opposite.
        let is_exceptional = (is_exceptional && kind != Kind::Tweak) || a == 0 || key == 0 || right == 0 || wrong == 0;
        for k in [right, wrong, 1 + (a + 3 * b) % (world.order - 1)] {
            let r = world.point(if k == 0 { 1 } else { k }).0;
            let is_same_x = !is_exceptional && r == world.point(right).0;
            let parity = |k| !is_exceptional && world.is_odd(k);
            let flip = (a + b + k) % 5 == 0;
            let (numbers, is_odd, holds) = match kind {
                Kind::Ecdsa => (of_ecdsa(u, inverse, &r), world.is_odd(d), is_same_x),
                Kind::Schnorr => ((*u, *v), false, is_same_x && !parity(right)),
                Kind::Tweak => ((*u, [0; 4]), parity(right) != flip, is_same_x && !flip),
            };
            let prepared = Prepared {
                index: cases.len(),
                key: limbs(world.point(d).0),
                r: limbs(r),
                u: limbs(numbers.0),
                v: limbs(numbers.1),
                is_odd,
            };
            cases.push(Case { kind, prepared, expected: (!is_exceptional).then_some(holds) });
        }
    }
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
    assert_eq!(of_generator.exceptional.len(), 2 * 19);
    assert!((2..52).all(|step| [true, false].iter().all(|equal| of_point.exceptional.contains_key(&(step, *equal)))));
    assert!(of_point.exceptional.keys().any(|(step, _)| *step == 1));
    let inverses: BTreeMap<u64, SecretKey> = of_point.clean.iter().map(|(b, v)| (*b, inverse(v))).collect();
    let mut all = Vec::new();
    for a in 1..199 {
        for b in 1..199 {
            let (u, v) = ((a, &of_generator.clean[&a]), (b, &of_point.clean[&b]));
            let d = 1 + (7 * a + 13 * b) % 198;
            cases(world, &Inputs { u, v, inverse: &inverses[&b], d, is_exceptional: false }, &mut all);
        }
    }
    for (b, u) in (1..).zip(of_generator.exceptional.values()) {
        let v = (b, &of_point.clean[&b]);
        // The formulas see an infinite A.
        cases(world, &Inputs { u: (0, u), v, inverse: &inverses[&b], d: 5, is_exceptional: true }, &mut all);
    }
    for (a, v) in (1..).zip(of_point.exceptional.values()) {
        let u = (a, &of_generator.clean[&a]);
        // A tweak has no v.
        cases(world, &Inputs { u, v: (2, v), inverse: &inverse(v), d: 9, is_exceptional: true }, &mut all);
    }
    all
}

/// The world with its tables and cases, built once for all kernels.
fn prepared_world() -> &'static (World, Tables, Vec<Case>) {
    static WORLD: OnceLock<(World, Tables, Vec<Case>)> = OnceLock::new();
    WORLD.get_or_init(|| {
        let world = World::of_199();
        let (tables, cases) = (world.tables(), all_cases(&world));
        (world, tables, cases)
    })
}

/// Every case gets the expected verdict, and is reported as exceptional if and only if it is.
fn every_pair_of_multipliers<L: Lanes>(l: L) {
    let (world, tables, all) = prepared_world();
    // Debug builds of the plain lanes are slow, so they test only a part of the pairs, with every residue.
    let step = if L::WIDTH == 1 { 23 } else { 1 };
    let mut got = vec![None; all.len()];
    for kind in [Kind::Ecdsa, Kind::Schnorr, Kind::Tweak] {
        let checks = all.iter().step_by(step).filter(|case| case.kind == kind).map(|case| case.prepared);
        for portion in checks.collect::<Vec<_>>().chunks(PORTION_CHECKS_MAX) {
            let group = Group { b: world.b, tables };
            decide(l, kind, portion, group, &mut |index, verdict| got[index] = Some(verdict));
        }
    }
    let (mut valid, mut invalid, mut exceptional) = (0, 0, 0);
    for (case, got) in all.iter().zip(&got).step_by(step) {
        assert_eq!(*got, Some(case.expected), "{:?} {:?}", case.kind, case.prepared);
        match case.expected {
            Some(true) => valid += 1,
            Some(false) => invalid += 1,
            None => exceptional += 1,
        }
    }
    let count = valid + invalid + exceptional;
    assert!(valid * 5 > count && invalid * 5 > count && exceptional * 100 > count, "{valid} {invalid} {exceptional}");
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
