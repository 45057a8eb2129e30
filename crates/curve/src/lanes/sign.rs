//! Signatures in lanes: k G for many secret nonces k, and s of ECDSA and BIP-0340.
//!
//! Input: private keys and the hashes to sign. Output: the signatures, or `None` in an exceptional case, in which
//! libsecp256k1 must sign. Invariant: no branch and no memory address depends on a secret. The table of the generator
//! is read as a whole, and masks select the entry; the formulas have no branches; powers have constant exponents
//! (`docs/adr/0016-signatures-in-the-lanes.md`). The coordinates are scaled by a random number, so that values on the
//! way are not those of the secret alone. Cost: a comb of 65 additions per point. Must never: use the tables of
//! [`super::generator`] that are read by index.

use super::field::{Carried, Masked};
use super::generator::{COMB_BITS, COMB_ENTRIES, Comb, comb};
use super::point::{Jacobian, Window, unpack};
use super::prepare::{ORDER, limbs, modulo_order, words};
use super::scalar::{Canonical, Scalar};
use super::{Lanes, Line, WIDTH_MAX};
use crate::limits::PORTION_CHECKS_MAX;
use crate::signing::{Scheme, ToSign, bip340, rfc6979};
use lydian_hash::BIP0340_CHALLENGE;
use lydian_stdx::{wipe, wipe_stack};
use secp256k1::SecretKey;
use std::hint::black_box;

/// Five limbs of a number.
type Limbs = [u64; 5];

/// A point of a secret number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) x: [u8; 32],
    pub(crate) is_odd: bool,
}

/// A nonce, a secret key, and what they sign: s is (`message` + `factor` * `key`) / `nonce` for ECDSA, and `nonce` +
/// `factor` * `key` for BIP-0340.
pub(crate) struct Terms {
    pub(crate) nonce: [u64; 4],
    pub(crate) key: [u64; 4],
    /// r, or the challenge. Below n.
    pub(crate) factor: [u64; 4],
    /// Below n; not used by BIP-0340.
    pub(crate) message: [u64; 4],
}

/// An ECDSA signature that has no nonce yet.
struct Open {
    index: usize,
    /// The signed hash modulo n.
    message: [u64; 4],
    /// The first counter that is not tried yet.
    counter: u32,
}

/// After so many nonces without a low r, each of which has one with probability one half, something is wrong.
const NONCES_MAX: u32 = 256;

/// Signs all; `None` where libsecp256k1 must sign. `seed`: random bytes.
pub(crate) fn sign<L: Lanes>(l: L, wanted: &[ToSign], seed: &[u8; 32]) -> Vec<Option<[u8; 64]>> {
    // Below p, and not zero.
    let mut blind = words(seed);
    blind[3] >>= 1;
    blind[0] |= 1;
    let mut made = vec![None; wanted.len()];
    sign_ecdsa(l, wanted, &blind, &mut made);
    sign_schnorr(l, wanted, &blind, &mut made);
    wipe(&mut blind);
    // Limbs in vectors, and the copies of secrets that the compiler made.
    wipe_stack();
    made
}

/// Indexes and private keys of one kind of signature.
fn keys(wanted: &[ToSign], scheme: Scheme) -> impl Iterator<Item = (usize, &ToSign)> {
    let is_key = |one: &ToSign| SecretKey::from_secret_bytes(*one.secret()).is_ok();
    wanted.iter().enumerate().filter(move |(_, one)| one.scheme() == scheme && is_key(one))
}

fn sign_ecdsa<L: Lanes>(l: L, wanted: &[ToSign], blind: &[u64; 4], made: &mut [Option<[u8; 64]>]) {
    let begin =
        |(index, one): (usize, &ToSign)| Open { index, message: modulo_order(words(one.message())), counter: 0 };
    let mut open: Vec<Open> = keys(wanted, Scheme::Ecdsa).map(begin).collect();
    let (mut found, mut terms) = (Vec::with_capacity(open.len()), Vec::with_capacity(open.len()));
    while !open.is_empty() {
        // Several nonces of each, if lanes would be empty otherwise.
        let tries = (L::WIDTH / open.len()).max(1);
        let mut nonces = Vec::with_capacity(open.len() * tries);
        for one in &mut open {
            for _ in 0..tries {
                let mut nonce = rfc6979(wanted[one.index].secret(), &to_bytes(&one.message), one.counter);
                nonces.push(words(&nonce));
                wipe(&mut nonce);
                one.counter += 1;
            }
        }
        let points = points(l, &nonces, blind);
        let mut next = Vec::with_capacity(open.len() / 2);
        for ((one, nonces), points) in open.into_iter().zip(nonces.chunks(tries)).zip(points.chunks(tries)) {
            let is_high = |point: &Option<Point>| point.is_some_and(|point| point.x[0] >= 0x80);
            let Some(place) = points.iter().position(|point| !is_high(point)) else {
                next.extend(Some(one).filter(|one| one.counter < NONCES_MAX));
                continue;
            };
            let Some(point) = points[place] else { continue };
            let (nonce, key) = (nonces[place], words(wanted[one.index].secret()));
            terms.push(Terms { nonce, key, factor: words(&point.x), message: one.message });
            found.push((one.index, point.x));
        }
        wipe(&mut nonces);
        open = next;
    }
    for ((index, r), s) in found.into_iter().zip(ecdsa(l, &terms)) {
        made[index] = with_low_s(&r, &s);
    }
}

pub(super) fn with_low_s(r: &[u8; 32], s: &[u8; 32]) -> Option<[u8; 64]> {
    let mut signature = secp256k1::ecdsa::Signature::from_compact(&joined(r, s)).ok()?;
    signature.normalize_s();
    Some(signature.serialize_compact())
}

pub(super) fn joined(r: &[u8; 32], s: &[u8; 32]) -> [u8; 64] {
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(r);
    signature[32..].copy_from_slice(s);
    signature
}

fn sign_schnorr<L: Lanes>(l: L, wanted: &[ToSign], blind: &[u64; 4], made: &mut [Option<[u8; 64]>]) {
    let all: Vec<(usize, &ToSign)> = keys(wanted, Scheme::Schnorr).collect();
    let mut secrets: Vec<[u64; 4]> = all.iter().map(|(_, one)| words(one.secret())).collect();
    let keys = points(l, &secrets, blind);
    let mut nonces = Vec::with_capacity(all.len());
    for ((secret, key), (_, one)) in secrets.iter_mut().zip(&keys).zip(&all) {
        // Whether y of a public key or of a nonce is odd is no secret.
        if key.is_some_and(|key| key.is_odd) {
            *secret = negated(secret);
        }
        let x = key.map_or([0; 32], |key| key.x);
        let mut bytes = to_bytes(secret);
        let mut nonce = bip340(&bytes, &x, one.message());
        nonces.push(modulo_order(words(&nonce)));
        wipe(&mut bytes);
        wipe(&mut nonce);
    }
    let points = points(l, &nonces, blind);
    let (mut found, mut terms) = (Vec::with_capacity(all.len()), Vec::with_capacity(all.len()));
    for (i, (index, one)) in all.iter().enumerate() {
        let (Some(key), Some(point)) = (keys[i], points[i]) else { continue };
        let nonce = if point.is_odd { negated(&nonces[i]) } else { nonces[i] };
        let challenge = BIP0340_CHALLENGE.hash(&[&point.x, &key.x, one.message()]);
        terms.push(Terms { nonce, key: secrets[i], factor: modulo_order(words(&challenge)), message: [0; 4] });
        found.push((*index, point.x));
    }
    wipe(&mut secrets);
    wipe(&mut nonces);
    for ((index, r), s) in found.into_iter().zip(schnorr(l, &terms)) {
        made[index] = Some(joined(&r, &s));
    }
}

/// n - k, for k below n and not zero.
pub(super) fn negated(k: &[u64; 4]) -> [u64; 4] {
    let (mut apart, mut borrow) = ([0; 4], 0);
    for i in 0..4 {
        let (less, below) = ORDER[i].overflowing_sub(k[i]);
        let (less, again) = less.overflowing_sub(borrow);
        (apart[i], borrow) = (less, u64::from(below | again));
    }
    apart
}

/// k G for each k in words, least significant first.
pub(crate) fn points<L: Lanes>(l: L, secrets: &[[u64; 4]], blind: &[u64; 4]) -> Vec<Option<Point>> {
    points_by(l, secrets, |group| multiply_secret(l, group, blind))
}

/// The same with another multiplication for each group of lanes.
pub(super) fn points_by<L: Lanes>(
    l: L,
    secrets: &[[u64; 4]],
    multiply: impl Fn(&[[u64; 4]]) -> Jacobian<L>,
) -> Vec<Option<Point>> {
    let mut points = Vec::with_capacity(secrets.len());
    for portion in secrets.chunks(PORTION_CHECKS_MAX) {
        // No nonce is out of range, but for a chance of 2^-127; zero is caught by the formulas.
        let sums: Vec<Jacobian<L>> = portion.chunks(L::WIDTH).map(&multiply).collect();
        let (inverses, exceptional) = l.run(
            #[inline(always)]
            || invert_all(l, &sums),
        );
        for (((group, sum), inverse), exceptional) in
            portion.chunks(L::WIDTH).zip(&sums).zip(&inverses).zip(&exceptional)
        {
            let (x, odd) = l.run(
                #[inline(always)]
                || affine(l, sum, inverse),
            );
            for lane in 0..group.len() {
                let point = Point { x: bytes(&x.lane(l, lane)), is_odd: odd >> lane & 1 == 1 };
                points.push((exceptional >> lane & 1 == 0).then_some(point));
            }
        }
    }
    points
}

/// One number of every element of a group; lanes without one repeat the last.
#[inline(always)]
pub(super) fn load<L: Lanes, T>(l: L, group: &[T], number: impl Fn(&T) -> [u64; 4]) -> [L::Vector; 5] {
    let mut words = [[0; WIDTH_MAX]; 5];
    for lane in 0..L::WIDTH {
        let limbs = limbs(number(&group[lane.min(group.len() - 1)]));
        for i in 0..5 {
            words[i][lane] = limbs[i];
        }
    }
    [l.load(&words[0]), l.load(&words[1]), l.load(&words[2]), l.load(&words[3]), l.load(&words[4])]
}

/// k G: one entry for each of 65 windows of four bits.
fn multiply_secret<L: Lanes>(l: L, group: &[[u64; 4]], blind: &[u64; 4]) -> Jacobian<L> {
    let comb = comb();
    l.run(
        #[inline(always)]
        || {
            let (windows, is_even) = Canonical(load(l, group, |k| *k)).generator_windows(l);
            let z = Masked::constant(l, limbs(*blind)).factor(l);
            let mut sum = begin(l, comb, &windows, &z);
            for i in 1..comb.len() {
                let (x, y, is_negative) = entry(l, comb, &windows, i);
                sum = sum.add(l, &x.factor(l), &y.factor(l), is_negative);
            }
            sum.is_negative = l.differ(sum.is_negative, is_even);
            sum
        },
    )
}

/// The first entry, scaled by z.
#[inline(always)]
fn begin<L: Lanes>(l: L, comb: &Comb, windows: &[L::Vector; 5], z: &Carried<L>) -> Jacobian<L> {
    let (x, y, is_negative) = entry(l, comb, windows, 0);
    let z2 = z.square(l).carry(l);
    let z3 = z2.times(l, z).carry(l);
    let (x, y) = (x.factor(l).times(l, &z2).mask(l), y.factor(l).times(l, &z3).mask(l));
    Jacobian { x, y, z: *z, is_negative }
}

/// The entry of window i.
#[inline(always)]
fn entry<L: Lanes>(l: L, comb: &Comb, windows: &[L::Vector; 5], i: usize) -> (Masked<L>, Masked<L>, L::Mask) {
    let digit = l.and(l.shr(windows[i / WINDOWS_IN_LIMB], SHIFTS[i % WINDOWS_IN_LIMB]), l.splat((1 << COMB_BITS) - 1));
    let window = Window::new(l, digit, COMB_BITS);
    let (x, y) = unpack(l, &choose(l, &comb[i], window.index));
    (x, y, window.is_negative)
}

const WINDOWS_IN_LIMB: usize = 13;

/// The positions of the windows in a limb.
const SHIFTS: [u32; WINDOWS_IN_LIMB] = [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48];

/// The line of an index, read in the same way for every index.
#[inline(always)]
fn choose<L: Lanes>(l: L, row: &[Line; COMB_ENTRIES], index: L::Vector) -> [L::Vector; 8] {
    let mut words = [l.splat(0); 8];
    let mut at = l.splat(0);
    for line in row {
        let mask = l.equal(index, at);
        for i in 0..8 {
            words[i] = l.select(mask, l.splat(line.0[i]), words[i]);
        }
        at = l.add(at, l.splat(1));
    }
    words
}

/// 1 / Z of each sum, and the lanes in which Z is zero.
#[inline(always)]
fn invert_all<L: Lanes>(l: L, sums: &[Jacobian<L>]) -> (Vec<Carried<L>>, Vec<u8>) {
    let one = Masked::constant(l, [1, 0, 0, 0, 0]);
    let (mut inverses, mut factors) = (Vec::with_capacity(sums.len()), Vec::with_capacity(sums.len()));
    let mut exceptional = Vec::with_capacity(sums.len());
    let mut product = Carried::one(l);
    for sum in sums {
        let z = sum.z.times(l, &Carried::one(l)).canonical(l);
        let is_zero = z.is_zero(l);
        let z = Masked::select(l, is_zero, &one, &z).factor(l);
        exceptional.push(l.bits(is_zero));
        inverses.push(product);
        product = product.times(l, &z).carry(l);
        factors.push(z);
    }
    let mut inverse = product.invert(l);
    for (before, z) in inverses.iter_mut().zip(&factors).rev() {
        *before = before.times(l, &inverse).carry(l);
        inverse = inverse.times(l, z).carry(l);
    }
    (inverses, exceptional)
}

/// x, and the lanes in which y is odd.
#[inline(always)]
fn affine<L: Lanes>(l: L, sum: &Jacobian<L>, inverse: &Carried<L>) -> (Masked<L>, u8) {
    let square = inverse.square(l).carry(l);
    let cube = square.times(l, inverse).carry(l);
    let x = sum.x.factor(l).times(l, &square).canonical(l);
    let y = sum.signed_y(l).carry(l).times(l, &cube).canonical(l);
    (x, l.bits(y.is_odd(l)))
}

/// s of ECDSA for each, with one inversion for all groups.
pub(crate) fn ecdsa<L: Lanes>(l: L, terms: &[Terms]) -> Vec<[u8; 32]> {
    let mut all = vec![[0; 32]; terms.len()];
    for (portion, all) in terms.chunks(PORTION_CHECKS_MAX).zip(all.chunks_mut(PORTION_CHECKS_MAX)) {
        l.run(
            #[inline(always)]
            || {
                let mut before = Vec::with_capacity(portion.len().div_ceil(L::WIDTH));
                let mut product = Scalar::one(l);
                for group in portion.chunks(L::WIDTH) {
                    let nonce = Scalar::new(l, &load(l, group, |terms| terms.nonce)).to_montgomery(l);
                    before.push((nonce, product));
                    product = product.times(l, &nonce);
                }
                let mut inverse = product.invert(l);
                let groups = portion.chunks(L::WIDTH).zip(all.chunks_mut(L::WIDTH)).zip(&before).rev();
                for ((group, all), (nonce, before)) in groups {
                    let one = inverse.times(l, before);
                    inverse = inverse.times(l, nonce);
                    let message = Canonical(load(l, group, |terms| terms.message));
                    let sum = product_of(l, group).plus(l, &message);
                    store(l, &sum.times_canonical(l, &one), all);
                }
                // The nonces, and products of them.
                before.fill((Scalar::one(l), Scalar::one(l)));
                black_box(&mut before);
            },
        );
    }
    all
}

/// s of BIP-0340 for each.
pub(crate) fn schnorr<L: Lanes>(l: L, terms: &[Terms]) -> Vec<[u8; 32]> {
    let mut all = vec![[0; 32]; terms.len()];
    l.run(
        #[inline(always)]
        || {
            for (group, all) in terms.chunks(L::WIDTH).zip(all.chunks_mut(L::WIDTH)) {
                let nonce = Canonical(load(l, group, |terms| terms.nonce));
                let sum = product_of(l, group).plus(l, &nonce);
                store(l, &sum.times_canonical(l, &Scalar::one(l)), all);
            }
        },
    );
    all
}

/// `factor` * `key`.
#[inline(always)]
fn product_of<L: Lanes>(l: L, group: &[Terms]) -> Canonical<L> {
    let key = Scalar::new(l, &load(l, group, |terms| terms.key)).to_montgomery(l);
    Scalar::new(l, &load(l, group, |terms| terms.factor)).times_canonical(l, &key)
}

#[inline(always)]
fn store<L: Lanes>(l: L, value: &Canonical<L>, all: &mut [[u8; 32]]) {
    let words = value.0.map(|limb| l.store(limb));
    for (lane, bytes_of) in all.iter_mut().enumerate() {
        *bytes_of = bytes(&[words[0][lane], words[1][lane], words[2][lane], words[3][lane], words[4][lane]]);
    }
}

/// Five clean limbs below 2^256 as bytes.
fn bytes(&[a, b, c, d, e]: &Limbs) -> [u8; 32] {
    to_bytes(&[a | b << 52, b >> 12 | c << 40, c >> 24 | d << 28, d >> 36 | e << 16])
}

/// Words as bytes, most significant first.
pub(super) fn to_bytes(words: &[u64; 4]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().rev().zip(words) {
        *chunk = word.to_be_bytes();
    }
    bytes
}

impl Drop for Terms {
    fn drop(&mut self) {
        wipe(&mut self.nonce);
        wipe(&mut self.key);
    }
}
