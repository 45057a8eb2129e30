//! Batches crafted to be exceptional: the lanes abandon them early, and every verdict equals that of the reference.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::engines;
use common::equal_points::equal_points;
use lydian_curve::limits::{EXCEPTIONAL_LANES_MAX, PORTION_CHECKS_MAX};
use lydian_curve::{Check, Engine, LaneEngine, PublicKeyBytes, Reference, Tally};
use secp256k1::{Message, PublicKey, SecretKey, ecdsa};

/// Lanes of the widest kernel: a group that was started is finished.
const WIDTH_MAX: usize = 8;

fn secret(number: usize) -> SecretKey {
    let mut bytes = [0x3c; 32];
    bytes[24..].copy_from_slice(&number.to_be_bytes());
    SecretKey::from_secret_bytes(bytes).unwrap()
}

fn honest(number: usize, holds: bool) -> Check {
    let key = secret(number);
    let mut message = key.to_secret_bytes();
    let signature = ecdsa::sign(Message::from_digest(message), &key).serialize_compact();
    message[9] ^= u8::from(!holds);
    Check::Ecdsa {
        key: PublicKeyBytes::new(&PublicKey::from_secret_key(&key).serialize()).unwrap(),
        message,
        signature,
    }
}

/// Verifies the checks, compares with the reference, and returns how many each of them decided.
fn run(engine: &LaneEngine, checks: &[Check]) -> Tally {
    let before = engine.tally();
    let (mut got, mut expected) = (vec![false; checks.len()], vec![true; checks.len()]);
    engine.verify(checks, &mut got);
    Reference.verify(checks, &mut expected);
    assert_eq!(got, expected, "{}", engine.name());
    let after = engine.tally();
    Tally { lanes: after.lanes - before.lanes, reference: after.reference - before.reference }
}

fn count(number: usize) -> u64 {
    number.try_into().unwrap()
}

/// Exceptional checks, followed by 64 honest ones: up to the limit the honest ones are decided in lanes, one group
/// above it by the reference.
///
/// limit: EXCEPTIONAL_LANES_MAX at
/// limit: EXCEPTIONAL_LANES_MAX above
#[test]
fn lanes_are_given_up_above_the_limit() {
    for engine in engines() {
        for wasted in [EXCEPTIONAL_LANES_MAX, EXCEPTIONAL_LANES_MAX + WIDTH_MAX] {
            let mut checks: Vec<Check> = (0..wasted).map(|i| equal_points(&secret(i + 1), i % 3 != 0)).collect();
            checks.extend((0..64).map(|i| honest(i + 1, i % 3 != 0)));
            let tally = run(&engine, &checks);
            let in_lanes = if wasted > EXCEPTIONAL_LANES_MAX { 0 } else { 64 };
            assert_eq!(
                tally,
                Tally { lanes: in_lanes, reference: count(checks.len()) - in_lanes },
                "{}",
                engine.name()
            );
        }
        // The next batch uses all lanes again.
        let checks: Vec<Check> = (0..64).map(|i| honest(i + 1, i % 5 != 0)).collect();
        assert_eq!(run(&engine, &checks), Tally { lanes: 64, reference: 0 });
    }
}

/// Mixtures by an adversary who knows the limit: honest checks before, between and after the exceptional ones of a
/// portion.
#[test]
fn mixtures_are_decided_as_the_reference_decides() {
    let honest: Vec<Check> = (0..PORTION_CHECKS_MAX).map(|i| honest(i + 1, i % 3 != 0)).collect();
    let bad: Vec<Check> = (0..PORTION_CHECKS_MAX).map(|i| equal_points(&secret(i + 1), i % 3 != 0)).collect();
    let mixture = |is_bad: &dyn Fn(usize) -> bool| -> Vec<Check> {
        (0..PORTION_CHECKS_MAX).map(|i| if is_bad(i) { bad[i] } else { honest[i] }).collect()
    };
    let size = count(PORTION_CHECKS_MAX);
    for engine in LaneEngine::available() {
        // One exceptional lane out of eight: all others stay in lanes.
        assert_eq!(run(&engine, &mixture(&|i| i % 8 == 3)), Tally { lanes: size / 8 * 7, reference: size / 8 });
        // Every second one, and the second half: equal numbers of useful and wasted lanes.
        let every_second = run(&engine, &mixture(&|i| i % 2 == 1));
        if ["scalar", "neon"].contains(&engine.name()) {
            // There a wasted lane costs what two or four useful ones save: the lanes are given up early.
            assert!(every_second.lanes < size / 8 && every_second.lanes > 30, "{every_second:?}");
        } else {
            assert_eq!(every_second, Tally { lanes: size / 2, reference: size / 2 });
        }
        let half = PORTION_CHECKS_MAX / 2;
        assert_eq!(run(&engine, &mixture(&|i| i >= half)), Tally { lanes: size / 2, reference: size / 2 });
        // All of them: none in lanes.
        assert_eq!(run(&engine, &bad), Tally { lanes: 0, reference: size });
        // Consecutive portions: the count starts again with each.
        let both = [mixture(&|_| true), mixture(&|_| false)].concat();
        assert_eq!(run(&engine, &both), Tally { lanes: size, reference: size });
    }
}
