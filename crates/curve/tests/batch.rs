//! Schnorr checks by one equation, compared with libsecp256k1.
//!
//! Covers mixtures, false checks, points that meet, limits, and which implementation decided which checks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test file uses its part")]
mod common;

use common::engines;
use lydian_curve::limits::{BATCH_CHECKS_MAX, BATCHES_ALONE_MAX};
use lydian_curve::{Check, Engine, LaneEngine, Reference};
use lydian_hash::{BIP0340_CHALLENGE, sha256};
use secp256k1::{Keypair, Parity, Scalar, SecretKey, schnorr};

/// Checks in a batch: more than any kernel needs for an equation.
const COUNT: usize = 2_000;

fn secret(number: u32) -> SecretKey {
    SecretKey::from_secret_bytes(sha256(&number.to_be_bytes())).unwrap()
}

fn signed(secret: &SecretKey, number: u32) -> Check {
    let (pair, message) = (Keypair::from_secret_key(secret), sha256(&(!number).to_be_bytes()));
    let signature = schnorr::sign_no_aux_rand(&message, &pair).to_byte_array();
    Check::Schnorr { key: pair.x_only_public_key().0.to_byte_array(), message, signature }
}

/// Valid checks, each with its own key.
fn distinct(count: usize) -> Vec<Check> {
    (0..u32::try_from(count).unwrap()).map(|number| signed(&secret(number), number)).collect()
}

/// The x-only key, and the secret of the point with even y.
fn even(secret: SecretKey) -> ([u8; 32], SecretKey) {
    let (key, parity) = Keypair::from_secret_key(&secret).x_only_public_key();
    (key.to_byte_array(), if parity == Parity::Odd { secret.negate() } else { secret })
}

/// A signature with a given nonce.
fn signed_with(secret: SecretKey, nonce: SecretKey, number: u32) -> Check {
    let ((key, secret), (r, nonce)) = (even(secret), even(nonce));
    let message = sha256(&number.to_le_bytes());
    let challenge = Scalar::from_be_bytes(BIP0340_CHALLENGE.hash(&[&r, &key, &message])).unwrap();
    let s = nonce.add_tweak(&Scalar::from(secret.mul_tweak(&challenge).unwrap())).unwrap();
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&r);
    signature[32..].copy_from_slice(&s.to_secret_bytes());
    Check::Schnorr { key, message, signature }
}

/// Asserts that the verdicts are those of the reference and returns what the engine counted in the meantime.
fn compare(engine: &LaneEngine, checks: &[Check]) -> Counts {
    let before = (engine.together(), engine.tally().reference);
    let (mut got, mut expected) = (vec![false; checks.len()], vec![true; checks.len()]);
    engine.verify(checks, &mut got);
    Reference.verify(checks, &mut expected);
    for ((check, got), expected) in checks.iter().zip(&got).zip(&expected) {
        assert_eq!(got, expected, "{}: {check:?}", engine.name());
    }
    Counts { together: engine.together() - before.0, reference: engine.tally().reference - before.1 }
}

/// Numbers of checks decided by one equation, and by the reference.
#[derive(Debug)]
struct Counts {
    together: u64,
    reference: u64,
}

/// The same with a new engine, which has not met a false check: `engines()[engine]`.
fn compare_anew(engine: usize, checks: &[Check]) -> Counts {
    compare(&engines()[engine], checks)
}

fn parts(check: &mut Check) -> (&mut [u8; 32], &mut [u8; 32], &mut [u8; 64]) {
    let Check::Schnorr { key, message, signature } = check else { unreachable!() };
    (key, message, signature)
}

/// limit: BATCH_CHECKS_MIN at
/// limit: BATCH_CHECKS_MIN above
/// limit: BATCH_CHECKS_MAX at
/// limit: BATCH_CHECKS_MAX above
#[test]
fn batches_at_their_limits() {
    let most = BATCH_CHECKS_MAX;
    let checks = distinct(most + COUNT);
    for engine in LaneEngine::available() {
        let least = engine.batch_checks_min();
        assert!(least <= COUNT);
        let sizes = [(least - 1, 0), (least, least), (least + 1, least + 1), (most, most), (most + 1, most)];
        for (size, together) in sizes.into_iter().chain([(most + least - 1, most), (most + least, most + least)]) {
            let mut verdicts = vec![false; size];
            let before = engine.together();
            engine.verify(&checks[..size], &mut verdicts);
            assert!(verdicts.iter().all(|holds| *holds), "{size}");
            assert_eq!(engine.together() - before, together as u64, "{}: {size}", engine.name());
        }
    }
}

/// Checks with a key or R that is not a point are rejected at once; the equation decides the others. Numbers out of
/// range never enter it.
#[test]
fn what_is_no_point_leaves_the_equation() {
    let mut checks = distinct(COUNT + 40);
    let mut off_curve = 0;
    for (i, check) in checks.iter_mut().enumerate().filter(|(i, _)| i % 100 == 7) {
        let (key, _, signature) = parts(check);
        match i / 100 % 4 {
            0 => key[..2].copy_from_slice(&[0xff; 2]),
            1 => signature[..32].fill(0xff),
            2 => signature[32..].fill(0xff),
            _ => signature[31] ^= 1,
        }
        off_curve += u64::from(i / 100 % 4 == 1 || i / 100 % 4 == 2);
    }
    // The reference decides numbers above p and n. The remaining changed checks that are still points are false, so the
    // equation does not hold.
    for engine in engines() {
        assert_eq!(compare(&engine, &checks).reference, off_curve, "{}", engine.name());
    }
    let mut checks = distinct(COUNT);
    for (i, check) in checks.iter_mut().enumerate().filter(|(i, _)| i % 500 == 3) {
        let (key, _, signature) = parts(check);
        let x = if i % 1000 == 3 { key } else { signature.first_chunk_mut().unwrap() };
        // No point on the curve has x = 5.
        *x = [0; 32];
        x[31] = 5;
    }
    for engine in engines() {
        let tally = compare(&engine, &checks);
        assert_eq!((tally.together, tally.reference), (COUNT as u64, 0), "{}", engine.name());
    }
}

/// A single false check is found at any position; so are two with errors that would cancel if all weights were equal.
#[test]
fn culprits_are_found() {
    let checks = distinct(COUNT + 1);
    for engine in 0..engines().len() {
        for (at, bit) in [(0, 1), (1_024, 0x80), (COUNT, 0x10)] {
            let mut checks = checks.clone();
            parts(&mut checks[at]).1[11] ^= bit;
            assert_eq!(compare_anew(engine, &checks).together, 0, "{engine}");
        }
        let mut checks = checks.clone();
        for (at, by) in [(40, 1), (1_999, -1)] {
            let s = parts(&mut checks[at]).2.last_chunk_mut::<32>().unwrap();
            let one = SecretKey::from_secret_bytes(Scalar::ONE.to_be_bytes()).unwrap();
            let by = Scalar::from(if by < 0 { one.negate() } else { one });
            *s = SecretKey::from_secret_bytes(*s).unwrap().add_tweak(&by).unwrap().to_secret_bytes();
        }
        assert_eq!(compare_anew(engine, &checks).together, 0, "{engine}");
    }
}

/// False checks in every batch cost an equation for few of them; one that holds makes the next batches have theirs.
#[test]
fn false_checks_cost_few_equations() {
    let checks = distinct(COUNT);
    for engine in LaneEngine::available() {
        let name = engine.name();
        let checks = &checks[..engine.batch_checks_min()];
        let mut with_false = checks.to_vec();
        parts(&mut with_false[5]).1[0] ^= 1;
        // The first failure: the next batch has an equation.
        assert_eq!(compare(&engine, &with_false).together, 0, "{name}");
        assert_eq!(compare(&engine, checks).together, checks.len() as u64, "{name}");
        // Six equations in turn that fail, with 0, 1, 3, 7 and 15 batches between them, then 15 batches without one.
        for batch in 0..6 + 26 {
            assert_eq!(compare(&engine, &with_false).together, 0, "{name}: batch {batch}");
        }
        for batch in 0..BATCHES_ALONE_MAX {
            assert_eq!(compare(&engine, checks).together, 0, "{name}: batch {batch}");
        }
        for _ in 0..2 {
            assert_eq!(compare(&engine, checks).together, checks.len() as u64, "{name}");
        }
    }
}

/// Equal keys are merged. Other equal points that meet in a bucket are exceptional: the checks are then verified
/// individually.
#[test]
fn points_that_meet() {
    let count = u32::try_from(COUNT).unwrap();
    let one_key: Vec<Check> = (0..count).map(|number| signed(&secret(1), number)).collect();
    let few_keys: Vec<Check> = (0..count).map(|number| signed(&secret(number % 37), number)).collect();
    let one_nonce: Vec<Check> = (0..count).map(|number| signed_with(secret(number), secret(count), number)).collect();
    let nonce_is_key: Vec<Check> = (0..count).map(|number| signed_with(secret(1), secret(1), number)).collect();
    let own_nonces: Vec<Check> = (0..count).map(|number| signed_with(secret(number), secret(number), number)).collect();
    let same: Vec<Check> = vec![signed(&secret(1), 1); COUNT];
    // Different sums of keys are equal: 1 + 4 = 2 + 3.
    let counted = |number: u32| {
        let mut secret = [0x5a; 32];
        secret[28..].copy_from_slice(&number.to_be_bytes());
        signed(&SecretKey::from_secret_bytes(secret).unwrap(), number)
    };
    let counted: Vec<Check> = (0..count).map(counted).collect();
    for engine in 0..engines().len() {
        for checks in [&one_key, &few_keys] {
            assert_eq!(compare_anew(engine, checks).together, u64::from(count), "{engine}");
        }
        for checks in [&one_nonce, &nonce_is_key, &own_nonces, &same, &counted] {
            let tally = compare_anew(engine, checks);
            assert!(tally.together == 0 || tally.together == u64::from(count), "{engine}: {tally:?}");
        }
        assert_eq!(compare_anew(engine, &one_nonce).together, 0, "{engine}");
        // And with one of them false.
        for checks in [&one_key, &one_nonce, &nonce_is_key, &same] {
            let mut checks = checks.clone();
            parts(&mut checks[77]).2[63] ^= 4;
            assert_eq!(compare_anew(engine, &checks).together, 0, "{engine}");
        }
    }
}

/// The equation works with any seed, and with checks of other kinds in the same batch.
#[test]
fn seeds_and_neighbours() {
    let mut checks = distinct(COUNT);
    for number in 0..50 {
        let pair = Keypair::from_secret_key(&secret(number)).x_only_public_key().0;
        let (output, parity) = pair.add_tweak(&Scalar::ONE).unwrap();
        let (output, internal) = (output.to_byte_array(), pair.to_byte_array());
        let is_odd = (parity == Parity::Odd) ^ (number % 2 == 0);
        let tweak = Check::Tweak { output, is_odd, internal, tweak: Scalar::ONE.to_be_bytes() };
        checks.insert(usize::try_from(number * 31).unwrap(), tweak);
    }
    for seed in [[0; 32], [1; 32], [0xff; 32]] {
        for engine in engines() {
            assert_eq!(compare(&engine.seeded(seed), &checks).together, COUNT as u64);
        }
    }
}
