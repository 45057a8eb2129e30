//! The referee with kernels that return wrong verdicts, in both directions, found by the sample and by a review; and
//! with honest kernels, for which it never reports a disagreement.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use lydian_curve::limits::DISAGREEMENTS_MAX;
use lydian_curve::{Check, Disagreement, Engine, Evidence, LaneEngine, PublicKeyBytes, Refereed, Reference, Sampling};
use secp256k1::{Keypair, Message, Scalar, SecretKey, ecdsa};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// An engine that returns the wrong verdict for some checks.
struct Liar {
    lies_about: fn(&Check) -> bool,
    calls: Arc<AtomicUsize>,
}

impl Engine for Liar {
    fn name(&self) -> &'static str {
        "liar"
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        for (check, verdict) in checks.iter().zip(verdicts) {
            *verdict = Reference.check(check) != (self.lies_about)(check);
        }
    }
}

fn message(number: u32) -> [u8; 32] {
    let mut message = [7; 32];
    message[..4].copy_from_slice(&number.to_le_bytes());
    message
}

fn number(check: &Check) -> u32 {
    match check {
        Check::Ecdsa { message, .. } | Check::Schnorr { message, .. } => {
            u32::from_le_bytes(message[..4].try_into().unwrap())
        }
        Check::Tweak { .. } => u32::MAX,
    }
}

/// An ECDSA or Schnorr check; a third of them do not hold.
fn check(number: u32) -> Check {
    let secret = SecretKey::from_secret_bytes([3; 32]).unwrap();
    let pair = Keypair::from_secret_key(&secret);
    let message = message(number);
    let spoil = |mut signature: [u8; 64]| {
        signature[40] ^= u8::from(number % 3 == 1);
        signature
    };
    if number.is_multiple_of(2) {
        let key = PublicKeyBytes::new(&pair.public_key().serialize()).unwrap();
        let signature = ecdsa::sign(Message::from_digest(message), &secret).serialize_compact();
        Check::Ecdsa { key, message, signature: spoil(signature) }
    } else {
        let signature = secp256k1::schnorr::sign_no_aux_rand(&message, &pair).to_byte_array();
        Check::Schnorr { key: pair.x_only_public_key().0.to_byte_array(), message, signature: spoil(signature) }
    }
}

fn checks(range: std::ops::Range<u32>) -> Vec<Check> {
    range.map(check).collect()
}

fn truth(checks: &[Check]) -> Vec<bool> {
    checks.iter().map(|check| Reference.check(check)).collect()
}

type Reported = Arc<Mutex<Vec<Disagreement>>>;

fn watched(kernel: Box<dyn Engine + Send>, interval: u64, seed: u8) -> (Refereed, Reported) {
    let reported = Reported::default();
    let reporter = Arc::clone(&reported);
    let sampling = Sampling { interval: NonZeroU64::new(interval).unwrap(), seed: [seed; 32] };
    let alarm = move |disagreement: &Disagreement| reporter.lock().unwrap().push(disagreement.clone());
    (Refereed::new(kernel, sampling, Box::new(alarm)), reported)
}

fn liar(lies_about: fn(&Check) -> bool) -> (Box<dyn Engine + Send>, Arc<AtomicUsize>) {
    let calls = Arc::<AtomicUsize>::default();
    (Box::new(Liar { lies_about, calls: Arc::clone(&calls) }), calls)
}

fn verify(engine: &dyn Engine, checks: &[Check]) -> Vec<bool> {
    let mut verdicts = vec![false; checks.len()];
    engine.verify(checks, &mut verdicts);
    verdicts
}

/// A valid check with the verdict false (12) and an invalid one with the verdict true (13).
#[test]
fn a_lie_ends_the_kernel_and_the_batch_is_decided_again() {
    for (lies_about, lie) in [(12, false), (13, true)] {
        let (kernel, calls) = liar(if lies_about == 12 { |c| number(c) == 12 } else { |c| number(c) == 13 });
        let (referee, reported) = watched(kernel, 1, 0);
        let (first, second) = (checks(0..10), checks(10..40));
        assert_eq!(verify(&referee, &first), truth(&first));
        assert!(referee.is_trusted() && referee.is_watched() && referee.name() == "liar");
        assert_eq!(verify(&referee, &second), truth(&second), "the current batch is decided again");
        assert!(!referee.is_trusted() && !referee.is_watched() && referee.name() == "reference");
        let evidence = Evidence::Check { check: check(lies_about), kernel: lie, reference: !lie };
        let expected = vec![Disagreement { kernel: "liar", evidence }];
        assert_eq!((referee.disagreements(), reported.lock().unwrap().clone()), (expected.clone(), expected));
        assert_eq!((referee.counts().sampled, referee.counts().disagreements), (40, 1));
        let before = calls.load(Ordering::Relaxed);
        assert_eq!(verify(&referee, &second), truth(&second));
        assert_eq!(calls.load(Ordering::Relaxed), before, "the kernel is not called any more");
        let mut verdicts = vec![false; second.len()];
        assert_eq!(referee.review(&second, &mut verdicts), 0);
        assert_eq!((verdicts, calls.load(Ordering::Relaxed)), (truth(&second), before), "nor in a review");
    }
}

/// A kernel that is wrong about all checks is detected at the first sampled check: within the rest of the current
/// stretch and the next one.
#[test]
fn the_sample_has_one_place_in_each_stretch() {
    let (kernel, _) = liar(|_| true);
    let (referee, _) = watched(kernel, 64, 5);
    let (mut done, all) = (0, checks(0..128));
    let expected = truth(&all);
    for (chunk, expected) in all.chunks(7).zip(expected.chunks(7)) {
        let verdicts = verify(&referee, chunk);
        if !referee.is_trusted() {
            assert_eq!(verdicts, expected);
            break;
        }
        done += chunk.len();
    }
    assert!(!referee.is_trusted() && done < 64, "{done}");

    let (honest, _) = watched(liar(|_| false).0, 64, 5);
    for chunk in all.chunks(7) {
        assert_eq!(verify(&honest, chunk), truth(chunk));
    }
    assert_eq!((honest.counts().sampled, honest.counts().disagreements), (2, 0));
}

/// The seed decides which check is sampled: over many seeds each place occurs about equally often.
#[test]
fn the_sample_depends_on_the_seed() {
    let mut times = [0; 4];
    for seed in 0..200 {
        for (place, count) in times.iter_mut().enumerate() {
            let lies: [fn(&Check) -> bool; 4] =
                [|c| number(c) == 0, |c| number(c) == 1, |c| number(c) == 2, |c| number(c) == 3];
            let (referee, _) = watched(liar(lies[place]).0, 4, seed);
            verify(&referee, &checks(0..4));
            *count += u32::from(!referee.is_trusted());
        }
    }
    assert_eq!(times.iter().sum::<u32>(), 200, "one place of four for each seed: {times:?}");
    assert!(times.iter().all(|count| (25..80).contains(count)), "{times:?}");
}

#[test]
fn a_review_finds_what_the_sample_does_not() {
    let (kernel, _) = liar(|c| number(c) == 30);
    let (referee, reported) = watched(kernel, u64::MAX, 0);
    let all = checks(0..40);
    let said = verify(&referee, &all);
    assert_ne!(said[30], truth(&all)[30], "the wrong verdict is not detected");
    let mut verdicts = said;
    assert_eq!(referee.review(&all[..30], &mut verdicts[..30]), 0);
    assert!(referee.is_trusted());
    assert_eq!(referee.review(&all, &mut verdicts), 1);
    assert_eq!(verdicts, truth(&all));
    assert!(!referee.is_trusted() && reported.lock().unwrap().len() == 1);
    assert_eq!((referee.counts().reviewed, referee.counts().disagreements), (70, 1));
}

#[test]
fn what_was_accepted_wrongly_ends_the_kernel_too() {
    let (referee, reported) = watched(liar(|_| false).0, 8, 0);
    referee.distrust("a block".to_owned());
    assert!(!referee.is_trusted());
    let expected = Disagreement { kernel: "liar", evidence: Evidence::Accepted { what: "a block".to_owned() } };
    assert_eq!(*reported.lock().unwrap(), vec![expected]);
}

/// limit: DISAGREEMENTS_MAX at
/// limit: DISAGREEMENTS_MAX above
#[test]
fn disagreements_are_limited_and_counted() {
    for count in [DISAGREEMENTS_MAX, DISAGREEMENTS_MAX + 1] {
        let (referee, reported) = watched(liar(|_| true).0, 1, 0);
        let all = checks(0..u32::try_from(count).unwrap());
        assert_eq!(verify(&referee, &all), truth(&all));
        assert_eq!(referee.counts().disagreements, count as u64);
        assert_eq!(
            (referee.disagreements().len(), reported.lock().unwrap().len()),
            (DISAGREEMENTS_MAX, DISAGREEMENTS_MAX)
        );
    }
}

/// One of many threads meets the wrong verdict: after that, no thread gets a verdict of the kernel.
#[test]
fn threads_learn_of_it_at_once() {
    let (kernel, calls) = liar(|c| number(c) == 77);
    let (referee, _) = watched(kernel, 1, 0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let referee = &referee;
            scope.spawn(move || {
                for batch in 0..20 {
                    let start = (thread * 20 + batch) * 4;
                    let all = checks(start..start + 4);
                    assert_eq!(verify(referee, &all), truth(&all));
                }
            });
        }
    });
    assert!(!referee.is_trusted() && referee.counts().disagreements == 1);
    let before = calls.load(Ordering::Relaxed);
    verify(&referee, &checks(0..4));
    assert_eq!(calls.load(Ordering::Relaxed), before);
}

#[test]
fn honest_kernels_are_never_accused_and_the_reference_is_not_watched() {
    let secret = SecretKey::from_secret_bytes([0x99; 32]).unwrap();
    let internal = Keypair::from_secret_key(&secret).x_only_public_key().0;
    let mut all = checks(0..300);
    for tweak in 1..60u8 {
        let tweak = [tweak; 32];
        let (output, parity) = internal.add_tweak(&Scalar::from_be_bytes(tweak).unwrap()).unwrap();
        let is_odd = (parity == secp256k1::Parity::Odd) != (tweak[0] % 3 == 0);
        let (output, internal) = (output.to_byte_array(), internal.to_byte_array());
        all.push(Check::Tweak { output, is_odd, internal, tweak });
    }
    let expected = truth(&all);
    assert!(expected.contains(&true) && expected.contains(&false));
    for kernel in LaneEngine::available().into_iter().chain([LaneEngine::plain()]) {
        let (referee, reported) = watched(Box::new(kernel), 3, 9);
        let mut verdicts = verify(&referee, &all);
        assert_eq!(verdicts, expected);
        assert_eq!(referee.review(&all, &mut verdicts), 0);
        assert!(referee.is_trusted() && reported.lock().unwrap().is_empty());
        assert_eq!(referee.counts().reviewed, 359);
        assert!((119..=120).contains(&referee.counts().sampled), "one place in each stretch, the last may be outside");
    }
    let referee = Refereed::reference();
    assert_eq!(verify(&referee, &all), expected);
    assert_eq!(referee.review(&all, &mut vec![false; all.len()]), 0);
    assert_eq!(referee.counts(), Default::default());
    assert!(referee.is_trusted() && !referee.is_watched());
}
