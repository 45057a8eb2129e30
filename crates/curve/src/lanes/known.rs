//! Public keys and signatures whose private keys protect nothing: those of test chains.
//!
//! Input: private keys with their public keys, and the hashes to sign. Output: points k G and signatures, or `None` in
//! an exceptional case, in which libsecp256k1 must compute. Invariant: a signature is that of libsecp256k1. Cost: 20
//! additions per point, a third of [`super::sign`], because the tables of [`super::generator`] are read by index. Must
//! never: be used with a key that protects money.

use super::Lanes;
use super::generator::tables;
use super::point::multiply_generator;
use super::prepare::{modulo_order, words};
use super::scalar::Canonical;
use super::sign::{Point, Terms, ecdsa, joined, load, negated, points_by, schnorr, to_bytes, with_low_s};
use crate::signing::{bip340, rfc6979};
use crate::test_signature::{TestScheme, TestSignature};
use lydian_hash::BIP0340_CHALLENGE;

/// k G for each k in words, least significant first, below n and not zero.
pub(crate) fn points<L: Lanes>(l: L, numbers: &[[u64; 4]]) -> Vec<Option<Point>> {
    let tables = tables();
    points_by(l, numbers, |group| {
        l.run(
            #[inline(always)]
            || {
                let (windows, is_even) = Canonical(load(l, group, |k| *k)).generator_windows(l);
                let mut sum = multiply_generator(l, &windows, tables);
                sum.is_negative = l.differ(sum.is_negative, is_even);
                sum
            },
        )
    })
}

/// Signs all; `None` where libsecp256k1 must sign.
pub(crate) fn sign<L: Lanes>(l: L, wanted: &[TestSignature]) -> Vec<Option<[u8; 64]>> {
    let nonces: Vec<[u64; 4]> = wanted.iter().map(nonce).collect();
    let points = points(l, &nonces);
    let mut made = vec![None; wanted.len()];
    for scheme in [TestScheme::Ecdsa, TestScheme::Schnorr] {
        let of_scheme = || (0..wanted.len()).filter(|&at| wanted[at].scheme == scheme);
        let found: Vec<(usize, Point)> = of_scheme().filter_map(|at| points[at].map(|point| (at, point))).collect();
        let terms: Vec<Terms> = found.iter().map(|(at, point)| terms_of(&wanted[*at], nonces[*at], point)).collect();
        match scheme {
            TestScheme::Ecdsa => {
                for (((at, _), terms), s) in found.iter().zip(&terms).zip(ecdsa(l, &terms)) {
                    made[*at] = with_low_s(&to_bytes(&terms.factor), &s);
                }
            }
            TestScheme::Schnorr => {
                for ((at, point), s) in found.iter().zip(schnorr(l, &terms)) {
                    made[*at] = Some(joined(&point.x, &s));
                }
            }
        }
    }
    made
}

/// The first nonce of RFC 6979, or that of BIP-0340 without auxiliary randomness.
fn nonce(one: &TestSignature) -> [u64; 4] {
    match one.scheme {
        TestScheme::Ecdsa => words(&rfc6979(&one.secret, &to_bytes(&modulo_order(words(&one.message))), 0)),
        TestScheme::Schnorr => modulo_order(words(&bip340(&to_bytes(&even_secret(one)), &one.key.x, &one.message))),
    }
}

/// The private key of the point with the same x and an even y.
fn even_secret(one: &TestSignature) -> [u64; 4] {
    let secret = words(&one.secret);
    if one.key.is_odd { negated(&secret) } else { secret }
}

fn terms_of(one: &TestSignature, nonce: [u64; 4], point: &Point) -> Terms {
    match one.scheme {
        TestScheme::Ecdsa => Terms {
            nonce,
            key: words(&one.secret),
            factor: modulo_order(words(&point.x)),
            message: modulo_order(words(&one.message)),
        },
        TestScheme::Schnorr => {
            let challenge = BIP0340_CHALLENGE.hash(&[&point.x, &one.key.x, &one.message]);
            let nonce = if point.is_odd { negated(&nonce) } else { nonce };
            Terms { nonce, key: even_secret(one), factor: modulo_order(words(&challenge)), message: [0; 4] }
        }
    }
}
