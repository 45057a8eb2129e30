//! Batches made to be exceptional: the lanes give up on them early, and every verdict stays the reference's.

#![allow(clippy::unwrap_used, reason = "tests fail on what cannot be")]

use lydian_curve::limits::{EXCEPTIONAL_LANES_MAX, PORTION_CHECKS_MAX};
use lydian_curve::{Check, Engine, LaneEngine, PublicKeyBytes, Reference, Tally};
use secp256k1::{Message, PublicKey, Scalar, SecretKey, ecdsa};

/// Lanes of the widest kernel: what is begun is ended.
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

/// message = r d and s = 2 r d for R = G: the two points whose sum is R are equal; with the other parity of the key they are
/// opposite, and their sum is no point.
fn exceptional(number: usize, holds: bool) -> Check {
    let mut one = [0; 32];
    one[31] = 1;
    let generator = PublicKey::from_secret_key(&SecretKey::from_secret_bytes(one).unwrap());
    let r: [u8; 32] = generator.serialize()[1..].try_into().unwrap();
    let d = secret(number);
    let product = d.mul_tweak(&Scalar::from_be_bytes(r).unwrap()).unwrap();
    let double = product.add_tweak(&Scalar::from(product)).unwrap();
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&r);
    signature[32..].copy_from_slice(&double.to_secret_bytes());
    let mut key = PublicKey::from_secret_key(&d).serialize();
    key[0] ^= u8::from(!holds);
    Check::Ecdsa { key: PublicKeyBytes::new(&key).unwrap(), message: product.to_secret_bytes(), signature }
}

fn engines() -> Vec<LaneEngine> {
    let mut engines = LaneEngine::available();
    engines.push(LaneEngine::plain());
    engines
}

/// Verifies, compares with the reference, and says who decided.
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

/// Exceptional checks, then as many honest ones: up to the limit the honest ones keep their lanes; one group above it they lose
/// them.
///
/// limit: EXCEPTIONAL_LANES_MAX at
/// limit: EXCEPTIONAL_LANES_MAX above
#[test]
fn lanes_are_given_up_above_the_limit() {
    for engine in engines() {
        for wasted in [EXCEPTIONAL_LANES_MAX, EXCEPTIONAL_LANES_MAX + WIDTH_MAX] {
            let mut checks: Vec<Check> = (0..wasted).map(|i| exceptional(i + 1, i % 3 != 0)).collect();
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
        // And the next batch has all lanes again.
        let checks: Vec<Check> = (0..64).map(|i| honest(i + 1, i % 5 != 0)).collect();
        assert_eq!(run(&engine, &checks), Tally { lanes: 64, reference: 0 });
    }
}

/// Mixtures by an adversary who knows the limit: each portion's honest checks before, between and behind the exceptional ones.
#[test]
fn mixtures_are_decided_as_the_reference_decides() {
    let honest: Vec<Check> = (0..PORTION_CHECKS_MAX).map(|i| honest(i + 1, i % 3 != 0)).collect();
    let bad: Vec<Check> = (0..PORTION_CHECKS_MAX).map(|i| exceptional(i + 1, i % 3 != 0)).collect();
    let mixture = |is_bad: &dyn Fn(usize) -> bool| -> Vec<Check> {
        (0..PORTION_CHECKS_MAX).map(|i| if is_bad(i) { bad[i] } else { honest[i] }).collect()
    };
    let size = count(PORTION_CHECKS_MAX);
    for engine in LaneEngine::available() {
        // One lane of eight: all others stay in lanes.
        assert_eq!(run(&engine, &mixture(&|i| i % 8 == 3)), Tally { lanes: size / 8 * 7, reference: size / 8 });
        // Half of them, and half behind: exactly as many are useful as wasted.
        assert_eq!(run(&engine, &mixture(&|i| i % 2 == 1)), Tally { lanes: size / 2, reference: size / 2 });
        let half = PORTION_CHECKS_MAX / 2;
        assert_eq!(run(&engine, &mixture(&|i| i >= half)), Tally { lanes: size / 2, reference: size / 2 });
        // All of them: none in lanes.
        assert_eq!(run(&engine, &bad), Tally { lanes: 0, reference: size });
        // Portions in turn: each begins anew.
        let both = [mixture(&|_| true), mixture(&|_| false)].concat();
        assert_eq!(run(&engine, &both), Tally { lanes: size, reference: size });
    }
}
