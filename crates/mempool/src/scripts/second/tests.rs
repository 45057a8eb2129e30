use super::super::verify::tests::spend_of;
use super::*;
use lydian_curve::Sampling;
use lydian_oracle::generate::{Random, random_case};
use std::num::NonZeroU64;

/// A kernel that accepts everything.
struct Liar;

impl Engine for Liar {
    fn name(&self) -> &'static str {
        "liar"
    }

    fn verify(&self, _: &[Check], verdicts: &mut [bool]) {
        verdicts.fill(true);
    }
}

/// A kernel without a fault.
struct Honest;

impl Engine for Honest {
    fn name(&self) -> &'static str {
        "honest"
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        Reference.verify(checks, verdicts);
    }
}

fn watched(kernel: Box<dyn Engine + Send>) -> Arc<Refereed> {
    let sampling = Sampling { interval: NonZeroU64::MAX, seed: [0; 32] };
    Arc::new(Refereed::new(kernel, sampling, Box::new(|_| {})))
}

/// Spends that these verdicts say are valid, and some that are not.
fn accepted(signatures: &Refereed, count: usize) -> Vec<Spend> {
    let mut random = Random::new(8, "second");
    let mut found = Vec::new();
    while found.len() < count {
        let Some(spend) = spend_of(&random_case(&mut random, &[])) else { continue };
        let mut counts = CheckCounts::default();
        if verify_many(&[&spend], Flags::STANDARD, signatures, &mut counts)[0].is_ok() {
            found.push(spend);
        }
    }
    found
}

fn start(signatures: &Arc<Refereed>) -> (SecondCheck, Arc<Mutex<Vec<bool>>>) {
    let wrong = Arc::<Mutex<Vec<bool>>>::default();
    let seen = Arc::clone(&wrong);
    let on_wrong: Box<OnWrong> = Box::new(move |found| lock(&seen).push(found.is_some()));
    (SecondCheck::start(Arc::clone(signatures), Flags::STANDARD, 1, on_wrong).unwrap(), wrong)
}

#[test]
fn what_a_kernel_accepted_wrongly_is_found_and_the_kernel_is_distrusted() {
    let signatures = watched(Box::new(Liar));
    let spends = accepted(&signatures, 100);
    let (second, wrong) = start(&signatures);
    spends.iter().for_each(|spend| second.push(spend));
    second.finish();
    assert!(!lock(&wrong).is_empty() && !signatures.is_trusted());
    // What comes after the first that is found is not taken.
    let SecondCounts { verified, left_out } = second.counts();
    assert!((1..=100).contains(&verified) && left_out == 0, "{verified} {left_out}");
    // Later transactions are verified by the reference in the first place.
    second.push(&spends[0]);
    second.finish();
    assert_eq!(second.counts().verified, verified);
}

#[test]
fn an_honest_kernel_stays_trusted() {
    let signatures = watched(Box::new(Honest));
    let spends = accepted(&signatures, 50);
    let (second, wrong) = start(&signatures);
    spends.iter().for_each(|spend| second.push(spend));
    second.finish();
    assert_eq!(second.counts(), SecondCounts { verified: 50, left_out: 0 });
    assert!(lock(&wrong).is_empty() && signatures.is_trusted());
}

/// limit: SECOND_CHECK_MAX at
/// limit: SECOND_CHECK_MAX above
#[test]
fn more_than_fit_are_sampled_evenly() {
    let signatures = watched(Box::new(Honest));
    let spends = accepted(&signatures, 10);
    let random = SplitMix64::new(4);
    let mut waiting = Waiting { sample: Vec::new(), seen: 0, random, is_busy: false, is_ended: false };
    let mut left_out = 0;
    for spend in spends.iter().flat_map(|spend| std::iter::repeat_n(spend, SECOND_CHECK_MAX)) {
        left_out += usize::from(waiting.add(spend));
        assert_eq!(
            (waiting.sample.len(), left_out),
            match waiting.seen {
                seen if seen <= SECOND_CHECK_MAX => (seen, 0),
                seen => (SECOND_CHECK_MAX, seen - SECOND_CHECK_MAX),
            }
        );
    }
    for spend in &spends {
        let is_this = |one: &&Spend| one.tx().view().txid() == spend.tx().view().txid();
        let count = waiting.sample.iter().filter(is_this).count();
        assert!((20..90).contains(&count), "{count} of {SECOND_CHECK_MAX}, a tenth is expected");
    }
}

/// It waits for a second between two samples, but not when it is dropped.
#[test]
fn the_end_does_not_wait_for_what_is_left() {
    let signatures = watched(Box::new(Honest));
    let spends = accepted(&signatures, 20);
    let (second, wrong) = start(&signatures);
    second.push(&spends[0]);
    second.finish();
    spends.iter().cycle().take(SECOND_CHECK_MAX).for_each(|spend| second.push(spend));
    let shared = Arc::clone(&second.shared);
    drop(second);
    assert!(shared.verified.load(Ordering::Relaxed) < 1 + SECOND_CHECK_MAX as u64, "some were left");
    assert!(lock(&wrong).is_empty());
}
