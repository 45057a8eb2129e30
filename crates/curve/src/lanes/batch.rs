//! Many Schnorr checks as one equation.
//!
//! With random weights k, the sum of k R + (k e) P is (the sum of k s) G if and only if every R + e P is s G, except
//! with a probability of 2^-128.
//!
//! Input: prepared Schnorr checks and a seed that an adversary does not know. Output: verdicts if the equation holds;
//! checks that it does not settle are verified individually. Invariants: a check is false if its key or R is not a
//! point; the others are accepted only by an equation computed without an exception. Weights come from a hash over the
//! seed and every check, so checks cannot be chosen to fit their weights, with or without knowledge of the seed. Cost:
//! `docs/benchmarks/lanes-schnorr-batch.md`. Must never: reject a check because the equation does not hold. Derivation:
//! `docs/derivations/batch.md`.

use super::Lanes;
use super::buckets::{Buckets, Coordinates, Recoded};
use super::field::{Masked, Raw};
use super::generator::Tables;
use super::lift::{append_images, lift, load};
use super::plain::Plain;
use super::point::multiply_generator;
use super::prepare::Prepared;
use super::scalar::{Canonical, Half, ORDER, Scalar};
use super::{LIMB, WIDTH_MAX};
use lydian_hash::{Sha256, Tag};
use std::collections::HashMap;

/// The tag of the hash that the weights come from.
const WEIGHTS: Tag = Tag::new("Lydian/SchnorrBatch");

type Limbs = [u64; 5];

/// Calls `verdict` for every check that it settles, and returns the others.
pub(crate) fn settle<L: Lanes>(
    l: L,
    checks: &[Prepared],
    tables: &Tables,
    seed: &[u8; 32],
    buckets: &mut Buckets<L>,
    verdict: &mut impl FnMut(usize, Option<bool>),
) -> Vec<Prepared> {
    let keys = Keys::merge(checks);
    let xs: Vec<Limbs> = checks.iter().map(|check| check.r).chain(keys.xs.iter().copied()).collect();
    let lines = buckets.lines(xs.len() + keys.xs.len());
    let are_points = lift(l, &xs, lines);
    if are_points.contains(&false) {
        let mut others = Vec::new();
        for (i, check) in checks.iter().enumerate() {
            if are_points[i] && are_points[checks.len() + keys.of_check[i]] {
                others.push(*check);
            } else {
                verdict(check.index, Some(false));
            }
        }
        // The keys and R of the others are all points, so this recurses only once.
        return settle(l, &others, tables, seed, buckets, verdict);
    }
    append_images(l, lines, checks.len());
    let weights = weights(seed, checks);
    if holds(l, checks, &keys, buckets, &weights, tables) != Some(true) {
        return checks.to_vec();
    }
    checks.iter().for_each(|check| verdict(check.index, Some(true)));
    Vec::new()
}

/// The distinct keys of checks.
#[derive(Debug)]
struct Keys {
    xs: Vec<Limbs>,
    of_check: Vec<usize>,
}

impl Keys {
    fn merge(checks: &[Prepared]) -> Keys {
        let mut xs = Vec::with_capacity(checks.len());
        let mut known = HashMap::with_capacity(checks.len());
        let of_check = checks.iter().map(|check| {
            *known.entry(check.key).or_insert_with(|| {
                xs.push(check.key);
                xs.len() - 1
            })
        });
        let of_check = of_check.collect();
        Keys { xs, of_check }
    }
}

/// Returns a number a for each check; its weight is k = 2 a + 1.
fn weights(seed: &[u8; 32], checks: &[Prepared]) -> Vec<u128> {
    // The challenge commits to R, the key and the message.
    let mut engine: Sha256 = WEIGHTS.engine();
    engine.update(seed);
    for check in checks {
        let mut block = [0; 64];
        for (bytes, word) in block.as_chunks_mut().0.iter_mut().zip(words(&check.v).into_iter().chain(words(&check.u)))
        {
            *bytes = word.to_be_bytes();
        }
        engine.update(&block);
    }
    let of_batch = engine.finalize();
    let mut weights = Vec::with_capacity(checks.len() + 1);
    for number in 0..checks.len().div_ceil(2) as u64 {
        let hash = WEIGHTS.hash(&[&of_batch, &number.to_be_bytes()]);
        weights.extend(hash.as_chunks().0.iter().map(|bytes| u128::from_be_bytes(*bytes)));
    }
    weights.truncate(checks.len());
    weights
}

/// Whether the equation holds; `None` if exceptional.
fn holds<L: Lanes>(
    l: L,
    checks: &[Prepared],
    keys: &Keys,
    buckets: &mut Buckets<L>,
    weights: &[u128],
    tables: &Tables,
) -> Option<bool> {
    let mut of_generator = [0; 5];
    let mut of_keys = vec![[0; 5]; keys.xs.len()];
    let mut at = 0;
    for (checks, weights) in checks.chunks(L::WIDTH).zip(weights.chunks(L::WIDTH)) {
        let products = l.run(
            #[inline(always)]
            || weighted(l, checks, weights),
        );
        for (of_key, of_s) in &products[..checks.len()] {
            let key = &mut of_keys[keys.of_check[at]];
            *key = add_modulo_order(key, of_key);
            of_generator = add_modulo_order(&of_generator, of_s);
            at += 1;
        }
    }
    let mut multipliers: Vec<Recoded> = weights.iter().map(|weight| recoded_weight(*weight)).collect();
    let mut first: Vec<Recoded> = Vec::with_capacity(of_keys.len());
    let mut second: Vec<Recoded> = Vec::with_capacity(of_keys.len());
    for of_keys in of_keys.chunks(L::WIDTH) {
        let halves = l.run(
            #[inline(always)]
            || split(l, of_keys),
        );
        first.extend(halves[..of_keys.len()].iter().map(|(first, _)| first));
        second.extend(halves[..of_keys.len()].iter().map(|(_, second)| second));
    }
    multipliers.extend(first);
    multipliers.extend(second);
    is_multiple_of_generator(&buckets.sum(&multipliers)?, &of_generator, tables)
}

/// k e and k s modulo n.
#[inline(always)]
fn weighted<L: Lanes>(l: L, checks: &[Prepared], weights: &[u128]) -> [(Limbs, Limbs); WIDTH_MAX] {
    let last = checks.len() - 1;
    let k = Scalar::new(l, &load(l, |lane| weight_limbs(weights[lane.min(last)]))).to_montgomery(l);
    let e = Scalar::new(l, &load(l, |lane| checks[lane.min(last)].v));
    let s = Scalar::new(l, &load(l, |lane| checks[lane.min(last)].u));
    let (of_key, of_s) = (k.times_canonical(l, &e).0, k.times_canonical(l, &s).0);
    let mut products = [([0; 5], [0; 5]); WIDTH_MAX];
    for i in 0..5 {
        let (of_key, of_s) = (l.store(of_key[i]), l.store(of_s[i]));
        for lane in 0..WIDTH_MAX {
            (products[lane].0[i], products[lane].1[i]) = (of_key[lane], of_s[lane]);
        }
    }
    products
}

/// Splits numbers into halves by lambda and recodes them.
#[inline(always)]
fn split<L: Lanes>(l: L, numbers: &[Limbs]) -> [(Recoded, Recoded); WIDTH_MAX] {
    let numbers = load(l, |lane| numbers[lane.min(numbers.len() - 1)]);
    let halves = Canonical::<L>(numbers).split(l);
    let (first, second) = (recoded(l, &halves.first), recoded(l, &halves.second));
    let mut both = [([0; 3], [0; 3]); WIDTH_MAX];
    for lane in 0..WIDTH_MAX {
        both[lane] = (first[lane], second[lane]);
    }
    both
}

#[inline(always)]
fn recoded<L: Lanes>(l: L, half: &Half<L>) -> [Recoded; WIDTH_MAX] {
    let [a, b, c] = half.limbs();
    let (a, b, c) = (l.store(a), l.store(b), l.store(c));
    let mut recoded = [[0; 3]; WIDTH_MAX];
    for lane in 0..WIDTH_MAX {
        recoded[lane] = [a[lane] | b[lane] << 52, b[lane] >> 12 | c[lane] << 40, c[lane] >> 24];
    }
    recoded
}

/// Whether left is k G; `None` if a formula met an exception. Called once per batch, so the plain lanes compute it.
fn is_multiple_of_generator(left: &Coordinates, k: &Limbs, tables: &Tables) -> Option<bool> {
    let l = Plain;
    let (windows, is_even) = Canonical::<Plain>(*k).generator_windows(l);
    let mut right = multiply_generator(l, &windows, tables);
    right.is_negative = l.differ(right.is_negative, is_even);
    let [left_x, left_y, left_z] = left.map(|limbs| Masked::new(l, limbs).factor(l));
    if left_z.times(l, &right.z).canonical(l).is_zero(l) {
        return None;
    }
    let (left_z2, right_z2) = (left_z.square(l).carry(l), right.z.square(l).carry(l));
    let (left_z3, right_z3) = (left_z2.times(l, &left_z).carry(l), right_z2.times(l, &right.z).carry(l));
    let equal = |a: Raw<Plain>, b: Raw<Plain>| a.canonical(l).words() == b.canonical(l).words();
    let same_x = equal(left_x.times(l, &right_z2), right.x.factor(l).times(l, &left_z2));
    let same_y = equal(left_y.times(l, &right_z3), right.signed_y(l).carry(l).times(l, &left_z3));
    Some(same_x && same_y)
}

/// 2 a + 1.
#[allow(clippy::cast_possible_truncation, reason = "masked to a limb")]
fn weight_limbs(a: u128) -> Limbs {
    let limb = |value: u128| value as u64 & LIMB;
    [limb(a << 1 | 1), limb(a >> 51), limb(a >> 103), 0, 0]
}

/// (2 a + 1 + 2^130 - 1) / 2 = a + 2^129.
#[allow(clippy::cast_possible_truncation, reason = "halves of 64 bits")]
fn recoded_weight(a: u128) -> Recoded {
    [a as u64, (a >> 64) as u64, 2]
}

/// Limbs as words, least significant first.
fn words([a, b, c, d, e]: &Limbs) -> [u64; 4] {
    [a | b << 52, b >> 12 | c << 40, c >> 24 | d << 28, d >> 36 | e << 16]
}

/// (a + b) modulo n, for a and b below n.
fn add_modulo_order(a: &Limbs, b: &Limbs) -> Limbs {
    let (mut sum, mut less) = ([0; 5], [0; 5]);
    let (mut carry, mut borrow) = (0, 0);
    for i in 0..5 {
        sum[i] = a[i] + b[i] + carry;
        (carry, sum[i]) = (sum[i] >> 52, sum[i] & LIMB);
        // 2^52 is added; that bit is clear afterwards if the difference of the limb is negative.
        less[i] = sum[i] + LIMB + 1 - ORDER[i] - borrow;
        (borrow, less[i]) = (1 - (less[i] >> 52), less[i] & LIMB);
    }
    if borrow == 0 { less } else { sum }
}

#[cfg(test)]
mod tests {
    use super::super::generator::tables;
    use super::super::prepare::prepare;
    use super::*;
    use crate::Check;
    use secp256k1::{Keypair, SecretKey, schnorr};

    fn checks(count: u32) -> Vec<Prepared> {
        let check = |number: u32| {
            let secret = SecretKey::from_secret_bytes(lydian_hash::sha256(&number.to_be_bytes())).unwrap();
            let (pair, message) = (Keypair::from_secret_key(&secret), [7; 32]);
            let signature = schnorr::sign_no_aux_rand(&message, &pair).to_byte_array();
            let key = pair.x_only_public_key().0.to_byte_array();
            prepare(usize::try_from(number).unwrap(), &Check::Schnorr { key, message, signature }).unwrap().1
        };
        (0..count).map(check).collect()
    }

    /// Sizes of many magnitudes, so that every window width occurs.
    fn sizes(l: impl Lanes) {
        let all = checks(1_500);
        // Also in buffers that a larger batch has left.
        let (mut buckets, mut lines_max) = (Buckets::new(l), 0);
        for size in [1, 2, 3, 9, 20, 50, 100, 300, 700, 1_500, 200] {
            let mut settled = Vec::new();
            let open = settle(l, &all[..size], tables(), &[3; 32], &mut buckets, &mut |index, verdict| {
                assert_eq!(verdict, Some(true));
                settled.push(index);
            });
            assert!(open.is_empty() && settled.iter().copied().eq(0..size), "{size}");
            // The memory that was reserved was enough.
            lines_max = lines_max.max(Buckets::new(l).lines(3 * size).capacity());
            assert_eq!(buckets.lines(0).capacity(), lines_max, "{size}");
        }
        // The same check twice: equal keys are merged, but the equal R meet in buckets.
        let twice = [all[0], all[0]];
        let mut open = |checks| settle(l, checks, tables(), &[0; 32], &mut buckets, &mut |_, _| unreachable!()).len();
        assert_eq!((open(&twice), open(&[])), (2, 0));
    }

    #[test]
    fn equations_of_many_sizes() {
        sizes(Plain);
        sizes(super::super::word::Word);
        #[cfg(target_arch = "x86_64")]
        {
            super::super::ifma512::Ifma512::detect().into_iter().for_each(sizes);
            super::super::ymm::Ifma256Vl::detect().into_iter().for_each(sizes);
            super::super::avx2::Avx2::detect().into_iter().for_each(sizes);
        }
        #[cfg(target_arch = "aarch64")]
        super::super::neon::Neon::detect().into_iter().for_each(sizes);
    }

    /// Every weight depends on the seed, on its position and on each number of each check.
    #[test]
    fn weights_depend_on_everything() {
        let checks = checks(5);
        let first = weights(&[0; 32], &checks);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!((first.len(), sorted.len()), (5, 5));
        assert_eq!(first, weights(&[0; 32], &checks));
        let mut seed = [0; 32];
        seed[31] = 1;
        let mut others = vec![weights(&seed, &checks), weights(&[0; 32], &checks[..4])];
        for at in 0..5 {
            let (mut e, mut s) = (checks.clone(), checks.clone());
            (e[at].v[0], s[at].u[4]) = (e[at].v[0] ^ 1, s[at].u[4] ^ 1);
            others.extend([weights(&[0; 32], &e), weights(&[0; 32], &s)]);
        }
        for other in others {
            assert!(first.iter().zip(&other).all(|(a, b)| a != b));
        }
    }

    #[test]
    fn sums_at_the_order() {
        let [a, b, c, d, e] = ORDER;
        let less_one = [a - 1, b, c, d, e];
        assert_eq!(add_modulo_order(&less_one, &[1, 0, 0, 0, 0]), [0; 5]);
        assert_eq!(add_modulo_order(&less_one, &[0; 5]), less_one);
        assert_eq!(add_modulo_order(&less_one, &less_one), [a - 2, b, c, d, e]);
        assert_eq!(add_modulo_order(&[LIMB, 1, 0, 0, 0], &[1, 1, 0, 0, 0]), [0, 3, 0, 0, 0]);
    }
}
