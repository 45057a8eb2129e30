//! Compares every lane kernel of this CPU, and the plain lanes, with libsecp256k1.
//!
//! Covers valid and invalid signatures of all kinds, scalars and points for which the formulas are exceptional, and
//! which implementation decided which checks. `LYDIAN_LANE_CHECKS` sets the number of random checks, of which all but
//! the fastest kernel get a tenth, and `LYDIAN_LANE_KERNEL` the only kernel to compare; `make fuzz` compares more.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test file uses its part")]
mod common;

use common::engines;
use lydian_curve::limits::{EXCEPTIONAL_LANES_MAX, LANE_CHECKS_MIN, PORTION_CHECKS_MAX};
use lydian_curve::{Check, Engine, LaneEngine, PublicKeyBytes, Reference};
use lydian_hash::BIP0340_CHALLENGE;
use lydian_stdx::SplitMix64;
use secp256k1::{Keypair, Message, Parity, PublicKey, Scalar, SecretKey, ecdsa};
use std::io::Write;

/// Number of random checks if the environment variable is not set.
const CHECKS: usize = 1_000_000;

const ORDER: [u8; 32] = *b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xba\xae\xdc\xe6\xaf\x48\xa0\x3b\xbf\xd2\x5e\x8c\xd0\x36\x41\x41";
const PRIME: [u8; 32] = *b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xfc\x2f";
const LAMBDA: [u8; 32] = *b"\x53\x63\xad\x4c\xc0\x5c\x30\xe0\xa5\x26\x1c\x02\x88\x12\x64\x5a\x12\x2e\x22\xea\x20\x81\x66\x78\xdf\x02\x96\x7c\x1b\x23\xbd\x72";

/// Asserts that an engine's verdicts are those of the reference, and returns how many checks hold.
fn compare(engine: &LaneEngine, checks: &[Check]) -> usize {
    let (mut got, mut expected) = (vec![false; checks.len()], vec![true; checks.len()]);
    engine.verify(checks, &mut got);
    Reference.verify(checks, &mut expected);
    for ((check, got), expected) in checks.iter().zip(&got).zip(&expected) {
        assert_eq!(got, expected, "{}: {check:?}", engine.name());
    }
    expected.iter().filter(|holds| **holds).count()
}

/// Pseudorandom numbers, the same in every run.
struct Numbers(SplitMix64);

impl Numbers {
    fn new(seed: u64) -> Numbers {
        Numbers(SplitMix64::new(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound)
    }

    fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&self.next().to_be_bytes()));
        bytes
    }

    fn secret(&mut self) -> SecretKey {
        SecretKey::from_secret_bytes(self.bytes()).unwrap()
    }
}

fn small(value: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[24..].copy_from_slice(&value.to_be_bytes());
    bytes
}

/// `base` + `offset` as numbers.
fn near(base: [u8; 32], offset: i32) -> [u8; 32] {
    let mut bytes = base;
    let mut carry = offset;
    for byte in bytes.iter_mut().rev() {
        carry += i32::from(*byte);
        *byte = u8::try_from(carry.rem_euclid(256)).unwrap();
        carry = carry.div_euclid(256);
    }
    bytes
}

/// n / 2, rounded down.
fn half_order() -> [u8; 32] {
    let mut half = ORDER;
    for i in (0..32).rev() {
        half[i] = ORDER[i] >> 1 | if i > 0 { ORDER[i - 1] << 7 } else { 0 };
    }
    half
}

fn scalar(bytes: [u8; 32]) -> SecretKey {
    SecretKey::from_secret_bytes(bytes).unwrap()
}

fn times(a: &SecretKey, b: &SecretKey) -> SecretKey {
    a.mul_tweak(&Scalar::from(*b)).unwrap()
}

/// To the power n - 2.
fn inverse(a: &SecretKey) -> SecretKey {
    let exponent = near(ORDER, -2);
    (0..256).fold(scalar(small(1)), |power, bit| {
        let power = times(&power, &power);
        if exponent[bit / 8] >> (7 - bit % 8) & 1 == 1 { times(&power, a) } else { power }
    })
}

/// An ECDSA nonce with the values for a cheap signature by any key.
struct Nonce {
    r: [u8; 32],
    inverse: SecretKey,
}

/// Keys and nonces from which signatures are made without multiplying a point.
struct Pool {
    keys: Vec<(SecretKey, PublicKey)>,
    nonces: Vec<Nonce>,
    /// The secrets and x of points with even y.
    even: Vec<(SecretKey, [u8; 32])>,
    tweaks: Vec<Check>,
}

impl Pool {
    fn new(numbers: &mut Numbers) -> Pool {
        let mut secrets: Vec<SecretKey> = (1..40).map(|d| scalar(small(d))).collect();
        secrets.extend((1..40).map(|d| scalar(small(d)).negate()));
        secrets.extend((0..400).map(|_| numbers.secret()));
        let keys = secrets.iter().map(|d| (*d, PublicKey::from_secret_key(d))).collect();
        let nonces = (0..400).map(|_| {
            let (key, message) = (numbers.secret(), numbers.secret());
            let signature = ecdsa::sign(Message::from_digest(message.to_secret_bytes()), &key).serialize_compact();
            let (r, s) = signature.split_at(32);
            let r: [u8; 32] = r.try_into().unwrap();
            // s = (message + r key) / nonce.
            let sum = times(&scalar(r), &key).add_tweak(&Scalar::from(message)).unwrap();
            Nonce { r, inverse: times(&scalar(s.try_into().unwrap()), &inverse(&sum)) }
        });
        let nonces = nonces.collect();
        let even = secrets.iter().map(|d| {
            let (x, parity) = Keypair::from_secret_key(d).x_only_public_key();
            (if parity == Parity::Odd { d.negate() } else { *d }, x.to_byte_array())
        });
        let even = even.collect();
        let tweaks = (0..2_000).map(|_| tweak_check(&numbers.secret(), numbers.bytes()));
        Pool { keys, nonces, even, tweaks: tweaks.collect() }
    }

    /// A valid check.
    fn check(&self, numbers: &mut Numbers) -> Check {
        match numbers.below(16) {
            0 => self.tweaks[numbers.below(self.tweaks.len())],
            1..6 => {
                let (d, key) = &self.even[numbers.below(self.even.len())];
                let (nonce, r) = &self.even[78 + numbers.below(self.even.len() - 78)];
                let message = numbers.bytes();
                let challenge = BIP0340_CHALLENGE.hash(&[r, key, &message]);
                let s = times(d, &scalar(challenge)).add_tweak(&Scalar::from(*nonce)).unwrap();
                Check::Schnorr { key: *key, message, signature: join(*r, s.to_secret_bytes()) }
            }
            _ => {
                let (d, key) = &self.keys[numbers.below(self.keys.len())];
                let nonce = &self.nonces[numbers.below(self.nonces.len())];
                let message = numbers.bytes();
                let sum = times(&scalar(nonce.r), d).add_tweak(&Scalar::from(scalar(message))).unwrap();
                let mut s = times(&sum, &nonce.inverse);
                if numbers.below(2) == 0 {
                    s = s.negate();
                }
                // Some keys are uncompressed.
                let with_y = key.serialize_uncompressed();
                let is_compressed = numbers.below(8) > 0;
                let key =
                    if is_compressed { PublicKeyBytes::new(&key.serialize()) } else { PublicKeyBytes::new(&with_y) };
                Check::Ecdsa { key: key.unwrap(), message, signature: join(nonce.r, s.to_secret_bytes()) }
            }
        }
    }
}

fn tweak_check(d: &SecretKey, tweak: [u8; 32]) -> Check {
    let internal = Keypair::from_secret_key(d).x_only_public_key().0;
    let (output, parity) = internal.add_tweak(&Scalar::from_be_bytes(tweak).unwrap()).unwrap();
    let (output, internal) = (output.to_byte_array(), internal.to_byte_array());
    Check::Tweak { output, is_odd: parity == Parity::Odd, internal, tweak }
}

fn join(r: [u8; 32], s: [u8; 32]) -> [u8; 64] {
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&r);
    signature[32..].copy_from_slice(&s);
    signature
}

/// A number at or near an edge.
fn edge(numbers: &mut Numbers) -> [u8; 32] {
    let base = [[0; 32], ORDER, PRIME, half_order(), p_less_n(), [0xff; 32]][numbers.below(6)];
    near(base, i32::try_from(numbers.below(7)).unwrap() - 3)
}

fn p_less_n() -> [u8; 32] {
    let mut apart = [0; 32];
    apart[15..].copy_from_slice(b"\x01\x45\x51\x23\x19\x50\xb7\x5f\xc4\x40\x2d\xa1\x72\x2f\xc9\xba\xee");
    apart
}

/// Changes a check in one of several ways, to an invalid value or an edge.
fn spoil(check: &mut Check, numbers: &mut Numbers) {
    let flip = |bytes: &mut [u8], numbers: &mut Numbers| {
        let bit = numbers.below(8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
    };
    let set = |signature: &mut [u8; 64], value: [u8; 32], numbers: &mut Numbers| {
        let at = 32 * numbers.below(2);
        signature[at..at + 32].copy_from_slice(&value);
    };
    let way = numbers.below(9);
    match check {
        Check::Ecdsa { key, message, signature } => match way {
            0 => flip(message, numbers),
            1 | 2 => flip(signature, numbers),
            3 => *message = edge(numbers),
            4 => set(signature, edge(numbers), numbers),
            _ => *key = spoiled_key(key, way, numbers),
        },
        Check::Schnorr { key, message, signature } => match way {
            0 | 1 => flip(message, numbers),
            2 | 3 => flip(signature, numbers),
            4 => set(signature, edge(numbers), numbers),
            5 => *key = edge(numbers),
            6 => *key = numbers.bytes(),
            _ => flip(key, numbers),
        },
        Check::Tweak { output, is_odd, internal, tweak } => match way {
            0 => *is_odd ^= true,
            1 => flip(output, numbers),
            2 => flip(internal, numbers),
            3 => flip(tweak, numbers),
            4 => *output = edge(numbers),
            5 => *internal = edge(numbers),
            6 => *tweak = edge(numbers),
            7 => *internal = numbers.bytes(),
            _ => *output = *internal,
        },
    }
}

fn spoiled_key(key: &PublicKeyBytes, way: usize, numbers: &mut Numbers) -> PublicKeyBytes {
    let mut bytes = key.as_bytes().to_vec();
    match way {
        // Another y, or a hybrid key, right or wrong.
        5 => bytes[0] = if bytes[0] == 4 { 6 } else { bytes[0] ^ 1 },
        6 => {
            let bit = 8 + numbers.below(8 * bytes.len() - 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        // Half of all x are not the coordinate of a point.
        7 => bytes[1..33].copy_from_slice(&if numbers.below(2) == 0 { edge(numbers) } else { numbers.bytes() }),
        // The same point, uncompressed or hybrid (right or wrong), or off the curve.
        _ => {
            bytes = PublicKey::from_slice(&bytes).unwrap().serialize_uncompressed().to_vec();
            bytes[0] = [4, 6, 7][numbers.below(3)];
            bytes[64] ^= u8::from(numbers.below(4) == 0);
        }
    }
    PublicKeyBytes::new(&bytes).unwrap()
}

/// A third of the checks are changed. Batches have various sizes, so that lanes are filled in every way.
///
/// checklist: 59
#[test]
fn random_checks_against_the_reference() {
    let count = std::env::var("LYDIAN_LANE_CHECKS").map_or(CHECKS, |text| text.parse().unwrap());
    let seed = 0x6c61_6e65;
    let mut engines = LaneEngine::available();
    if let Ok(name) = std::env::var("LYDIAN_LANE_KERNEL") {
        engines.retain(|engine| engine.name() == name);
        assert!(!engines.is_empty(), "this processor has no kernel {name}");
    }
    for (i, engine) in engines.iter().enumerate() {
        // The slower engines get a tenth.
        let count = if i == 0 { count } else { count / 10 };
        std::thread::scope(|scope| {
            for thread in 0..2 {
                scope.spawn(move || compare_random(engine, count / 2, seed + thread));
            }
        });
        let tally = engine.tally();
        report(&format!(
            "{}: {} checks decided in lanes, {} by the reference",
            engine.name(),
            tally.lanes,
            tally.reference
        ));
        assert!(tally.lanes * 100 > (tally.lanes + tally.reference) * 90, "{tally:?}");
    }
}

fn compare_random(engine: &LaneEngine, count: usize, seed: u64) {
    let mut numbers = Numbers::new(seed);
    let pool = Pool::new(&mut numbers);
    let (mut done, mut valid) = (0, 0);
    while done < count {
        let size = if numbers.below(4) == 0 { numbers.below(40) } else { 512 };
        let checks: Vec<Check> = (0..size)
            .map(|_| {
                let mut check = pool.check(&mut numbers);
                if numbers.below(3) == 0 {
                    spoil(&mut check, &mut numbers);
                }
                check
            })
            .collect();
        valid += compare(engine, &checks);
        done += size;
    }
    assert!(valid * 100 > done * 60 && valid * 100 < done * 75, "{valid} of {done} are valid");
}

/// Uncompressed and hybrid keys: lanes compare y, the reference decides only what has an unusual form.
#[test]
fn keys_with_their_y() {
    let mut numbers = Numbers::new(91);
    let pool = Pool::new(&mut numbers);
    let mut checks = Vec::new();
    while checks.len() < 180 {
        let Check::Ecdsa { key, mut message, signature } = pool.check(&mut numbers) else { continue };
        let point = PublicKey::from_slice(key.as_bytes()).unwrap();
        let mut bytes = point.serialize_uncompressed();
        let hybrid = 6 | bytes[64] & 1;
        match checks.len() % 9 {
            0 => {}
            1 => bytes[0] = hybrid,
            2 => bytes[0] = hybrid ^ 1,
            // Not on the curve.
            3 => bytes[64] ^= 2,
            4 => bytes[20] ^= 0x10,
            5 => bytes[33..].fill(0xff),
            6 => bytes[1..33].copy_from_slice(&PRIME),
            // The opposite point.
            7 => bytes = point.negate().serialize_uncompressed(),
            _ => message[7] ^= 1,
        }
        checks.push(Check::Ecdsa { key: PublicKeyBytes::new(&bytes).unwrap(), message, signature });
    }
    for engine in engines() {
        assert_eq!(compare(&engine, &checks), 40, "{}", engine.name());
        // Wrong prefixes, and coordinates from p up.
        assert_eq!(engine.tally().reference, 60, "{}", engine.name());
    }
}

/// The same with fewer checks, for slow kernels too.
#[test]
fn random_checks_on_every_kernel() {
    for engine in engines() {
        compare_random(&engine, 6_000, 77);
        let tally = engine.tally();
        assert!(tally.lanes * 10 > (tally.lanes + tally.reference) * 9, "{}: {tally:?}", engine.name());
    }
}

/// A valid signature by the key d with the multipliers u and v: r = x(u + v d), s = r / v, message = u s.
fn from_multipliers(u: Option<&SecretKey>, v: &SecretKey, d: &SecretKey) -> Option<Check> {
    let product = times(v, d);
    let sum = match u {
        Some(u) => product.add_tweak(&Scalar::from(*u)).ok()?,
        None => product,
    };
    let r: [u8; 32] = PublicKey::from_secret_key(&sum).serialize()[1..].try_into().unwrap();
    let s = times(&SecretKey::from_secret_bytes(r).ok()?, &inverse(v));
    let message = u.map_or([0; 32], |u| times(u, &s).to_secret_bytes());
    let key = PublicKeyBytes::new(&PublicKey::from_secret_key(d).serialize()).unwrap();
    Some(Check::Ecdsa { key, message, signature: join(r, s.to_secret_bytes()) })
}

/// Multipliers for which the formulas add equal and opposite points: at every window of both multiplications, through
/// the endomorphism, and in the last sum.
#[test]
fn exceptional_multipliers() {
    let (one, lambda) = (scalar(small(1)), scalar(LAMBDA));
    let mut multipliers: Vec<SecretKey> = (1..34).map(|i| scalar(small(i))).collect();
    let mut power = one;
    for bit in 0..256 {
        // Twice a digit of a window, and its neighbours: the sum before the window equals the addend.
        if bit % 13 < 2 || bit % 5 < 2 {
            multipliers.extend([
                power,
                times(&power, &scalar(small(2 * 31))),
                times(&power, &scalar(small(2 * 4_095))),
            ]);
            multipliers.extend(power.add_tweak(&Scalar::ONE));
        }
        power = times(&power, &scalar(small(2)));
    }
    let by_lambda: Vec<SecretKey> = multipliers.iter().map(|one| times(one, &lambda)).collect();
    multipliers.extend(by_lambda);
    let negated: Vec<SecretKey> = multipliers.iter().map(|one| one.negate()).collect();
    multipliers.extend(negated);
    let d = scalar([0x5a; 32]);
    let mut checks = Vec::new();
    for (i, v) in multipliers.iter().enumerate() {
        let equal = times(v, &d);
        checks.extend(from_multipliers(Some(&equal), v, &d));
        // Opposite points: their sum is infinity, so a neighbour is used for the valid signature.
        let opposite = equal.negate();
        checks.extend(opposite.add_tweak(&Scalar::ONE).ok().and_then(|u| from_multipliers(Some(&u), v, &d)));
        checks.extend(from_multipliers(None, v, &d));
        checks.extend(from_multipliers(Some(v), &multipliers[(7 * i + 3) % multipliers.len()], &d));
        checks.extend(from_multipliers(Some(v), v, &one));
    }
    // Invalid checks with the same multipliers: another r.
    let wrong: Vec<Check> = checks
        .iter()
        .filter_map(|check| {
            let Check::Ecdsa { key, message, mut signature } = *check else { return None };
            signature[5] ^= 1;
            Some(Check::Ecdsa { key, message, signature })
        })
        .collect();
    for engine in engines() {
        // In small batches, so that exceptional lanes do not exclude the others.
        for (valid, wrong) in checks.chunks(EXCEPTIONAL_LANES_MAX).zip(wrong.chunks(EXCEPTIONAL_LANES_MAX)) {
            assert_eq!(compare(&engine, valid), valid.len());
            assert_eq!(compare(&engine, wrong), 0);
        }
        let tally = engine.tally();
        // At least equal points and messages of zero are exceptional.
        assert!(tally.reference >= u64::try_from(2 * multipliers.len()).unwrap(), "{}: {tally:?}", engine.name());
        assert!(tally.lanes >= u64::try_from(multipliers.len()).unwrap(), "{}: {tally:?}", engine.name());
    }
    // The same among enough others for affine additions, which share an inversion: the others stay in lanes.
    let others: Vec<Check> = checks.iter().filter(|check| !is_exceptional(check)).take(64).copied().collect();
    for engine in engines() {
        for (valid, wrong) in checks.chunks(EXCEPTIONAL_LANES_MAX).zip(wrong.chunks(EXCEPTIONAL_LANES_MAX)) {
            let batch = [&others, valid, &others, wrong].concat();
            assert_eq!(compare(&engine, &batch), batch.len() - wrong.len());
        }
    }
}

/// Whether the plain lanes send a check to the reference.
fn is_exceptional(check: &Check) -> bool {
    let plain = LaneEngine::plain();
    plain.verify(&[*check; LANE_CHECKS_MIN], &mut [false; LANE_CHECKS_MIN]);
    plain.tally().lanes == 0
}

/// Opposite points give infinity, which has no x, so no r is valid.
#[test]
fn sums_at_infinity_are_invalid() {
    let (d, mut checks) = (scalar([0x5a; 32]), Vec::new());
    for i in 1..40 {
        // message + r d = 0.
        let r = scalar(Numbers::new(i).bytes());
        let message = times(&r, &d).negate().to_secret_bytes();
        let key = PublicKeyBytes::new(&PublicKey::from_secret_key(&d).serialize()).unwrap();
        checks.push(Check::Ecdsa { key, message, signature: join(r.to_secret_bytes(), small(i)) });
        let internal = Keypair::from_secret_key(&scalar(small(i))).x_only_public_key();
        let tweak = if internal.1 == Parity::Even { scalar(small(i)).negate() } else { scalar(small(i)) };
        let (tweak, internal) = (tweak.to_secret_bytes(), internal.0.to_byte_array());
        checks.push(Check::Tweak { output: internal, is_odd: false, internal, tweak });
        // Equal points, which are valid.
        let (sum, parity) = {
            let point = scalar(small(2 * i));
            Keypair::from_secret_key(&point).x_only_public_key()
        };
        let key = Keypair::from_secret_key(&scalar(small(i))).x_only_public_key();
        if key.1 == Parity::Even {
            checks.push(Check::Tweak {
                output: sum.to_byte_array(),
                is_odd: parity == Parity::Odd,
                internal,
                tweak: small(i),
            });
        }
    }
    for engine in engines() {
        let valid = compare(&engine, &checks);
        assert!(valid > 5 && valid < 40, "{valid}");
    }
}

/// r also matches x = r + n if that is below p. The points are derived from x: key = R - u G with v = 1.
#[test]
fn x_above_the_order() {
    let mut checks = Vec::new();
    let mut x = ORDER;
    while checks.len() < 40 {
        x = near(x, 1);
        let mut compressed = [2; 33];
        compressed[1..].copy_from_slice(&x);
        let Ok(point) = PublicKey::from_slice(&compressed) else { continue };
        let u = scalar(Numbers::new(u64::try_from(checks.len()).unwrap()).bytes());
        let key = point.combine(&PublicKey::from_secret_key(&u).negate()).unwrap();
        let r = less_order(x).unwrap();
        let Ok(s) = SecretKey::from_secret_bytes(r) else { continue };
        let message = times(&u, &s).to_secret_bytes();
        let key = PublicKeyBytes::new(&key.serialize()).unwrap();
        checks.push(Check::Ecdsa { key, message, signature: join(r, s.to_secret_bytes()) });
    }
    for engine in engines() {
        assert_eq!(compare(&engine, &checks), 40);
        assert_eq!(engine.tally().lanes, 0, "the reference decides if x has two candidates");
    }
}

/// Valid signatures with s or the message at an edge, in every lane, and the same with one bit changed.
///
/// s = 1, n / 2 - 1, n / 2, n / 2 + 1, n - 1; a message of 0, 1, n - 1, n, n + 1, p and 2^256 - 1.
#[test]
fn valid_signatures_at_edges() {
    let (d, k) = (scalar([0x5a; 32]), scalar([0x33; 32]));
    let key = PublicKeyBytes::new(&PublicKey::from_secret_key(&d).serialize()).unwrap();
    let r: [u8; 32] = PublicKey::from_secret_key(&k).serialize()[1..].try_into().unwrap();
    let rd = times(&scalar(r), &d);
    let mut checks = Vec::new();
    for offset in -2..=3 {
        for s in [near(half_order(), offset), near(ORDER, -4 + offset), near(small(3), offset)] {
            // message = s k - r d.
            let message = times(&scalar(s), &k).add_tweak(&Scalar::from(rd.negate())).unwrap().to_secret_bytes();
            checks.push(Check::Ecdsa { key, message, signature: join(r, s) });
        }
    }
    let messages = (0..5)
        .flat_map(|i| [near(ORDER, i - 2), near([0xff; 32], -i), near(PRIME, i - 2), small(i.unsigned_abs().into())]);
    for message in messages {
        // s = (message + r d) / k, with the message modulo n.
        let residue = if message < ORDER { message } else { less_order(message).unwrap() };
        let sum = match SecretKey::from_secret_bytes(residue) {
            Ok(message) => rd.add_tweak(&Scalar::from(message)).unwrap(),
            Err(_) => rd,
        };
        let s = times(&sum, &inverse(&k));
        checks.push(Check::Ecdsa { key, message, signature: join(r, s.to_secret_bytes()) });
        checks.push(Check::Ecdsa { key, message, signature: join(r, s.negate().to_secret_bytes()) });
    }
    let spoiled = checks.iter().map(|check| {
        let Check::Ecdsa { key, mut message, signature } = *check else { return *check };
        message[31] ^= 1;
        Check::Ecdsa { key, message, signature }
    });
    let spoiled: Vec<Check> = spoiled.collect();
    for engine in engines() {
        for shift in 0..9 {
            checks.rotate_left(shift);
            assert_eq!(compare(&engine, &checks), checks.len(), "{}", engine.name());
        }
        let tally = engine.tally();
        // For hashes of 0 and n, u G is infinite, which is exceptional.
        assert_eq!(tally.reference, 9 * 4, "{}", engine.name());
        assert_eq!(compare(&engine, &spoiled), 0, "{}", engine.name());
    }
}

/// value - n, or `None` if the value is below n.
fn less_order(value: [u8; 32]) -> Option<[u8; 32]> {
    let (mut apart, mut carry) = ([0; 32], 0);
    for i in (0..32).rev() {
        let one = i32::from(value[i]) - i32::from(ORDER[i]) + carry;
        apart[i] = u8::try_from(one.rem_euclid(256)).unwrap();
        carry = one.div_euclid(256);
    }
    (carry == 0).then_some(apart)
}

/// Combinations of edge values in the fields of every kind of check, including r in [n, p), hashes of 0 and n,
/// keys off the curve, and s = n / 2 +- 1.
#[test]
fn edges_in_every_field_with_every_other() {
    let mut edges: Vec<[u8; 32]> = Vec::new();
    for base in [[0; 32], ORDER, PRIME, half_order(), p_less_n()] {
        edges.extend((-1..=1).map(|offset| near(base, offset)));
    }
    // Between n and p, between p and 2^256, and the x of a point.
    edges.extend([
        near(ORDER, 1_000_000),
        near([0xff; 32], -900),
        scalar([0x5a; 32]).x_only_public_key().0.to_byte_array(),
    ]);
    let mut checks = Vec::new();
    for (i, a) in edges.iter().enumerate() {
        for b in &edges {
            for c in &edges {
                let mut compressed = [2 + u8::from(i % 2 == 0); 33];
                compressed[1..].copy_from_slice(&edges[(3 * i + 1) % edges.len()]);
                let signature = join(*b, *c);
                checks.push(Check::Ecdsa { key: PublicKeyBytes::new(&compressed).unwrap(), message: *a, signature });
                compressed[1..].copy_from_slice(edges.last().unwrap());
                checks.push(Check::Ecdsa { key: PublicKeyBytes::new(&compressed).unwrap(), message: *a, signature });
                checks.push(Check::Schnorr { key: *a, message: edges[i % 7], signature });
                checks.push(Check::Tweak { output: *a, is_odd: i % 2 == 0, internal: *b, tweak: *c });
            }
        }
    }
    for engine in engines() {
        // Debug builds of the plain lanes are slow.
        let some: Vec<Check> = checks.iter().copied().step_by(if engine.name() == "plain" { 11 } else { 1 }).collect();
        let valid = compare(&engine, &some);
        let tally = engine.tally();
        assert!(tally.lanes > 300 && tally.reference > 1_000, "{}: {tally:?}", engine.name());
        assert!(valid < some.len() / 50, "{}: {valid}", engine.name());
    }
}

/// Fully random bytes, and bytes that are nearly all equal.
fn any_bytes<const SIZE: usize>(numbers: &mut Numbers) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    bytes.fill([0, 0xff, numbers.next().to_be_bytes()[0]][numbers.below(3)]);
    let random = [SIZE, SIZE, 0, 1, SIZE / 2][numbers.below(5)];
    let start = numbers.below(SIZE - random + 1);
    for byte in &mut bytes[start..start + random] {
        *byte = numbers.next().to_be_bytes()[0];
    }
    bytes
}

/// Arbitrary bytes as key, message or signature, in batches of various sizes, give the verdict of the reference, and no
/// panic.
#[test]
fn any_bytes_at_all() {
    for engine in engines() {
        let mut numbers = Numbers::new(0x616e_7962);
        let (count, mut done) = (if engine.name() == "plain" { 3_000 } else { 30_000 }, 0);
        while done < count {
            let size = [1, 2, 3, 4, 7, 8, 9, 60, 400][numbers.below(9)];
            let checks: Vec<Check> = std::iter::repeat_with(|| any_check(&mut numbers)).take(size).collect();
            compare(&engine, &checks);
            done += size;
        }
        let tally = engine.tally();
        assert_eq!(tally.lanes + tally.reference, u64::try_from(done).unwrap());
        assert!(tally.lanes * 3 > tally.reference, "{}: {tally:?}", engine.name());
    }
}

fn any_check(numbers: &mut Numbers) -> Check {
    let message = any_bytes(numbers);
    match numbers.below(3) {
        0 => loop {
            // Any length and first byte: only the type checks the form of a key.
            let bytes: [u8; 65] = any_bytes(numbers);
            let mut bytes = bytes[..[33, 33, 33, 65, 65, numbers.below(66)][numbers.below(6)]].to_vec();
            if let Some(first) = bytes.first_mut() {
                *first = [2, 3, 4, 6, 7, *first][numbers.below(6)];
            }
            let size = match bytes.first() {
                Some(2 | 3) => 33,
                Some(4 | 6 | 7) => 65,
                _ => usize::MAX,
            };
            let key = PublicKeyBytes::new(&bytes);
            assert_eq!(key.is_some(), bytes.len() == size, "{bytes:x?}");
            if let Some(key) = key {
                return Check::Ecdsa { key, message, signature: any_bytes(numbers) };
            }
        },
        1 => Check::Schnorr { key: any_bytes(numbers), message, signature: any_bytes(numbers) },
        _ => {
            let is_odd = numbers.below(2) == 0;
            Check::Tweak { output: any_bytes(numbers), is_odd, internal: any_bytes(numbers), tweak: message }
        }
    }
}

/// Batches at their limits; the verdict of a check does not depend on other checks.
///
/// limit: LANE_CHECKS_MIN at
/// limit: LANE_CHECKS_MIN above
/// limit: PORTION_CHECKS_MAX at
/// limit: PORTION_CHECKS_MAX above
#[test]
fn batches_of_every_size() {
    let mut numbers = Numbers::new(5);
    let pool = Pool::new(&mut numbers);
    let mut checks = Vec::new();
    while checks.len() < PORTION_CHECKS_MAX + 1 {
        let check = pool.check(&mut numbers);
        if matches!(check, Check::Ecdsa { .. }) {
            checks.push(check);
        }
    }
    for engine in LaneEngine::available() {
        for size in (0..=40).chain([PORTION_CHECKS_MAX - 1, PORTION_CHECKS_MAX, PORTION_CHECKS_MAX + 1]) {
            let before = engine.tally();
            let mut verdicts = vec![false; size];
            engine.verify(&checks[..size], &mut verdicts);
            assert!(verdicts.iter().all(|holds| *holds), "{size}");
            let lanes = engine.tally().lanes - before.lanes;
            // The checks that remain after a full portion are a batch of their own, here of one check.
            let alone = size % PORTION_CHECKS_MAX;
            let expected = if alone < LANE_CHECKS_MIN { size - alone } else { size };
            assert_eq!(lanes, u64::try_from(expected).unwrap(), "{size}");
        }
        // A wrong check at any position affects only its own verdict.
        for at in 0..24 {
            let mut batch = checks[..24].to_vec();
            if let Check::Ecdsa { message, .. } = &mut batch[at] {
                message[31] ^= 1;
            }
            let mut verdicts = vec![false; 24];
            engine.verify(&batch, &mut verdicts);
            assert!(verdicts.iter().enumerate().all(|(i, holds)| *holds == (i != at)), "{at}: {verdicts:?}");
        }
    }
}

/// Kernels leave the rounding mode and the exception masks of the caller's floating-point unit unchanged.
#[cfg(target_arch = "x86_64")]
#[test]
#[allow(unsafe_code, reason = "there is no safe way to read the register")]
fn floating_point_state_is_untouched() {
    fn state() -> u32 {
        let mut word = 0_u32;
        // SAFETY: stmxcsr writes four bytes to the address of `word`; SSE is part of x86-64.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack)) };
        word
    }
    /// Rounding mode, exception masks, denormals: all but the flags that arithmetic may set.
    const CONTROL: u32 = !0x3f;
    let mut numbers = Numbers::new(6);
    let pool = Pool::new(&mut numbers);
    let checks: Vec<Check> = (0..64).map(|_| pool.check(&mut numbers)).collect();
    for engine in engines() {
        let before = state();
        let mut verdicts = vec![false; checks.len()];
        engine.verify(&checks, &mut verdicts);
        assert_eq!(state() & CONTROL, before & CONTROL, "{}", engine.name());
        assert!(verdicts.iter().all(|holds| *holds));
        // The kernel itself decided the checks.
        assert!(engine.tally().lanes > 50, "{}", engine.name());
    }
}

/// Prints a line even if the test passes, bypassing the output capture of the test harness.
fn report(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}
