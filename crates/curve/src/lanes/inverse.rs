//! 1 / x modulo p or n in 64-bit words, by divsteps.
//!
//! Input: values below 2^256, in four words, least significant first. Output: their inverses, below 2^256. Invariant:
//! an inverse modulo p is only returned if its product with the value is 1. Cost: 1.7 us for eight values on a Zen 3.
//! Must never: compute with secrets, because the time depends on the value. Derivation:
//! `docs/derivations/inversion.md`, section 2.

use super::field::{Carried, FOLD_256, Masked};
use super::scalar::Scalar;
use super::word::{canonical_words, from_limbs, multiply};
use super::{Lanes, WIDTH_MAX, prepare};

/// A value in limbs of 62 bits, least significant first. The highest has the sign; the others are not negative, except
/// in a modulus.
type Limbs = [i64; 5];

/// The low 62 bits of a word.
const LOW: u64 = (1 << STEPS) - 1;
/// Divsteps at a time: as many as the entries of their matrix have room for.
const STEPS: u32 = 62;
/// After this many times 62 divsteps, g is zero for any two values below 2^256: 741 are enough (Bernstein and Yang,
/// theorem 11.2).
const TIMES_MAX: usize = 12;

/// An odd number.
#[derive(Clone, Copy, Debug)]
struct Modulus {
    limbs: Limbs,
    /// 1 / modulus modulo 2^62.
    inverse: u64,
}

/// p is 2^256 - FOLD_256.
const P: Modulus = Modulus::new([-FOLD_256.cast_signed(), 0, 0, 0, 1 << (256 - 4 * STEPS)]);
/// The group order.
const N: Modulus =
    Modulus::new(limbs(&[0xbfd2_5e8c_d036_4141, 0xbaae_dce6_af48_a03b, 0xffff_ffff_ffff_fffe, u64::MAX]));

impl Modulus {
    const fn new(limbs: Limbs) -> Modulus {
        let low = limbs[0].cast_unsigned();
        // Correct in three bits; each round doubles them.
        let (mut inverse, mut bits) = (low, 3);
        while bits < STEPS {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(low.wrapping_mul(inverse)));
            bits *= 2;
        }
        Modulus { limbs, inverse: inverse & LOW }
    }
}

/// (f, g) after 62 divsteps is (u f + v g, q f + r g) / 2^62, with |u| + |v| and |q| + |r| at most 2^62.
#[derive(Clone, Copy, Debug)]
struct Matrix {
    u: i64,
    v: i64,
    q: i64,
    r: i64,
}

/// 62 divsteps of f and g, of which only the low 62 bits count, f odd. `eta` is minus delta.
#[inline(always)]
fn divsteps(eta: &mut i64, f: i64, g: i64) -> Matrix {
    // Modulo 2^64.
    let (mut f, mut g) = (f.cast_unsigned(), g.cast_unsigned());
    let (mut u, mut v, mut q, mut r) = (1_u64, 0_u64, 0_u64, 1_u64);
    let mut left = STEPS;
    loop {
        // While g is even, a step halves it: instead of that, the others are doubled.
        let zeros = (g | u64::MAX << left).trailing_zeros();
        g >>= zeros;
        (u, v) = (u << zeros, v << zeros);
        *eta -= i64::from(zeros);
        left -= zeros;
        if left == 0 {
            break;
        }
        // Now both are odd. As many low bits of g as there are steps before the next swap become zero if the right
        // multiple of f is added.
        let multiple = if *eta < 0 {
            *eta = -*eta;
            (f, g) = (g, f.wrapping_neg());
            (u, q) = (q, u.wrapping_neg());
            (v, r) = (r, v.wrapping_neg());
            // f (f^2 - 2) is -1 / f modulo 64.
            f.wrapping_mul(g).wrapping_mul(f.wrapping_mul(f).wrapping_sub(2)) & 63
        } else {
            // -g / f modulo 16.
            let inverse = f.wrapping_add((f.wrapping_add(1) & 4) << 1);
            inverse.wrapping_neg().wrapping_mul(g) & 15
        };
        let steps = (*eta + 1).min(i64::from(left));
        let multiple = multiple & u64::MAX >> (64 - steps);
        g = g.wrapping_add(f.wrapping_mul(multiple));
        q = q.wrapping_add(u.wrapping_mul(multiple));
        r = r.wrapping_add(v.wrapping_mul(multiple));
    }
    Matrix { u: u.cast_signed(), v: v.cast_signed(), q: q.cast_signed(), r: r.cast_signed() }
}

#[inline(always)]
fn product(a: i64, b: i64) -> i128 {
    i128::from(a) * i128::from(b)
}

/// The low 62 bits; the caller takes those above separately.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "the bits above are taken separately")]
fn low(sum: i128) -> i64 {
    (sum as i64) & LOW.cast_signed()
}

/// The highest limb, with its sign.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "values are below 2^258 in absolute value, so this is below 2^11")]
fn top(sum: i128) -> i64 {
    sum as i64
}

/// (u f + v g, q f + r g) / 2^62, which divides both.
#[inline(always)]
fn apply(matrix: &Matrix, f: &mut Limbs, g: &mut Limbs) {
    let Matrix { u, v, q, r } = *matrix;
    let mut sum_f = product(u, f[0]) + product(v, g[0]);
    let mut sum_g = product(q, f[0]) + product(r, g[0]);
    debug_assert!(low(sum_f) == 0 && low(sum_g) == 0, "the divsteps made the low bits zero");
    for i in 1..5 {
        sum_f = (sum_f >> STEPS) + product(u, f[i]) + product(v, g[i]);
        sum_g = (sum_g >> STEPS) + product(q, f[i]) + product(r, g[i]);
        (f[i - 1], g[i - 1]) = (low(sum_f), low(sum_g));
    }
    (f[4], g[4]) = (top(sum_f >> STEPS), top(sum_g >> STEPS));
}

/// (u d + v e, q d + r e) / 2^62 modulo the modulus, all between -2 and 1 times it.
#[inline(always)]
fn apply_modulo(modulus: &Modulus, matrix: &Matrix, d: &mut Limbs, e: &mut Limbs) {
    let Matrix { u, v, q, r } = *matrix;
    let (sign_d, sign_e) = (d[4] >> 63, e[4] >> 63);
    let mut sum_d = product(u, d[0]) + product(v, e[0]);
    let mut sum_e = product(q, d[0]) + product(r, e[0]);
    // Multiples of the modulus: once for each term that is negative, and what makes the low 62 bits zero.
    let times = |negative: i64, sum: i128| {
        let zero = modulus.inverse.wrapping_mul(low(sum).cast_unsigned()).wrapping_add(negative.cast_unsigned()) & LOW;
        negative - zero.cast_signed()
    };
    let times_d = times((u & sign_d) + (v & sign_e), sum_d);
    let times_e = times((q & sign_d) + (r & sign_e), sum_e);
    sum_d += product(modulus.limbs[0], times_d);
    sum_e += product(modulus.limbs[0], times_e);
    debug_assert!(low(sum_d) == 0 && low(sum_e) == 0, "the multiple made the low bits zero");
    for i in 1..5 {
        sum_d = (sum_d >> STEPS) + product(u, d[i]) + product(v, e[i]);
        sum_e = (sum_e >> STEPS) + product(q, d[i]) + product(r, e[i]);
        if modulus.limbs[i] != 0 {
            sum_d += product(modulus.limbs[i], times_d);
            sum_e += product(modulus.limbs[i], times_e);
        }
        (d[i - 1], e[i - 1]) = (low(sum_d), low(sum_e));
    }
    (d[4], e[4]) = (top(sum_d >> STEPS), top(sum_e >> STEPS));
}

/// Adds the modulus if the value is negative.
#[inline(always)]
fn positive(modulus: &Modulus, value: &Limbs) -> Limbs {
    let mut limbs = *value;
    let mut carry = 0;
    for i in 0..5 {
        carry += limbs[i] + (modulus.limbs[i] & value[4] >> 63);
        limbs[i] = if i < 4 { carry & LOW.cast_signed() } else { carry };
        carry >>= STEPS;
    }
    limbs
}

/// 1 / value modulo the modulus, if there is an inverse.
#[inline(always)]
fn invert(modulus: &Modulus, value: &[u64; 4]) -> [u64; 4] {
    let (mut f, mut g) = (modulus.limbs, limbs(value));
    // f = d value and g = e value, modulo the modulus and up to a power of two that the steps take away.
    let (mut d, mut e): (Limbs, Limbs) = ([0; 5], [1, 0, 0, 0, 0]);
    let mut eta = -1;
    for _ in 0..TIMES_MAX {
        if g == [0; 5] {
            break;
        }
        let matrix = divsteps(&mut eta, f[0], g[0]);
        apply_modulo(modulus, &matrix, &mut d, &mut e);
        apply(&matrix, &mut f, &mut g);
    }
    // f is the greatest common divisor, 1 or -1.
    let mut inverse = positive(modulus, &d);
    if f[4] < 0 {
        inverse = negate(inverse);
    }
    inverse = positive(modulus, &inverse);
    words(&inverse)
}

#[inline(always)]
fn negate(mut limbs: Limbs) -> Limbs {
    let mut carry = 0;
    for limb in &mut limbs[..4] {
        carry -= *limb;
        *limb = carry & LOW.cast_signed();
        carry >>= STEPS;
    }
    limbs[4] = carry - limbs[4];
    limbs
}

const fn limbs(&[a, b, c, d]: &[u64; 4]) -> Limbs {
    let words = [a & LOW, (a >> 62 | b << 2) & LOW, (b >> 60 | c << 4) & LOW, (c >> 58 | d << 6) & LOW, d >> 56];
    let [a, b, c, d, e] = words;
    [a.cast_signed(), b.cast_signed(), c.cast_signed(), d.cast_signed(), e.cast_signed()]
}

/// Of limbs that are not negative.
#[inline(always)]
fn words(limbs: &Limbs) -> [u64; 4] {
    let [a, b, c, d, e] = limbs.map(i64::cast_unsigned);
    [a | b << 62, b >> 2 | c << 60, c >> 4 | d << 58, d >> 6 | e << 56]
}

/// Replaces all values by their inverses modulo p, or returns false if one has none.
#[inline(never)]
pub(super) fn invert_all_modulo_p(values: &mut [[u64; 4]]) -> bool {
    let mut before = [[0; 4]; WIDTH_MAX];
    let one = [1, 0, 0, 0];
    let mut product = one;
    for (before, value) in before.iter_mut().zip(values.iter()) {
        *before = product;
        product = multiply(&product, value);
    }
    let mut inverse = invert(&P, &canonical_words(&product));
    if canonical_words(&multiply(&inverse, &product)) != one {
        return false;
    }
    for (before, value) in before.iter().zip(values).rev() {
        let of_value = multiply(&inverse, before);
        inverse = multiply(&inverse, value);
        *value = of_value;
    }
    true
}

/// Returns 1 / value modulo the group order, if it has an inverse. This is not checked.
#[inline(never)]
pub(super) fn invert_modulo_order(value: &[u64; 4]) -> [u64; 4] {
    invert(&N, value)
}

impl<L: Lanes> Carried<L> {
    /// The inverse, or zero for zero, in a time that depends on the value: not for secrets.
    #[inline(always)]
    pub(crate) fn invert_var(&self, l: L) -> Carried<L> {
        let words = self.times(l, &Carried::one(l)).canonical(l).pack(l).map(|word| l.store(word));
        let mut lanes = [[0; 4]; WIDTH_MAX];
        for lane in 0..L::WIDTH {
            lanes[lane] = words.map(|word| word[lane]);
        }
        if !invert_all_modulo_p(&mut lanes[..L::WIDTH]) {
            return self.invert(l);
        }
        let word = |i: usize| l.load(&lanes.map(|lane| lane[i]));
        Masked::unpack(l, [word(0), word(1), word(2), word(3)]).factor(l)
    }
}

impl<L: Lanes> Scalar<L> {
    /// The inverse in a time that depends on the value: not for secrets. Input and output are in Montgomery form.
    #[inline(always)]
    pub(crate) fn invert_var(&self, l: L) -> Scalar<L> {
        let one = Scalar::one(l);
        let limbs = self.times_canonical(l, &one).0.map(|limb| l.store(limb));
        let mut lanes = [[0; 5]; WIDTH_MAX];
        for lane in 0..L::WIDTH {
            let [a, b, c, d, _] = from_limbs(&limbs.map(|limb| limb[lane]));
            lanes[lane] = prepare::limbs(invert_modulo_order(&[a, b, c, d]));
        }
        let limb = |i: usize| l.load(&lanes.map(|lane| lane[i]));
        // 1 / (s 2^260), times 2^520 twice.
        let inverse = Scalar::new(l, &[limb(0), limb(1), limb(2), limb(3), limb(4)]);
        let inverse = inverse.to_montgomery(l).to_montgomery(l);
        let is_one = self.times_canonical(l, &inverse).equals(l, &one.times_canonical(l, &one));
        if l.bits(is_one) == l.bits(l.mask(u8::MAX)) { inverse } else { self.invert(l) }
    }
}
