//! Kernels with wrong verdicts, in both directions: in deep sync the sample finds them, at the tip the review does.
//! Blocks accepted on a wrong verdict are disconnected, and the result is the plain validator's.

use crate::expected::{Answer, Expected, Order, parse};
use crate::lydian::{How, Lydian, Place, layout};
use crate::seeds::for_seeds;
use crate::stored::{assert_reasons, store};
use crate::story::{NOW, Shape, Story};
use lydian_chains::rng::Random;
use lydian_consensus::{Rejected, Rule, Violation};
use lydian_curve::{Check, Disagreement, Engine, Evidence, Refereed, Reference, Sampling};
use lydian_engine::limits::{REVIEW_DEPTH_MAX, REVIEW_QUEUE_BLOCKS_MAX, REVIEW_RUN_BLOCKS_MAX};
use lydian_engine::{Cancel, Event, Observer, Settings, Unobserved, Wipe, wipe};
use lydian_hash::sha256;
use lydian_primitives::BlockHash;
use lydian_primitives::build::MutBlock;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A kernel that gives wrong verdicts on some checks, always the same ones: chosen by a hash of what is signed.
#[derive(Clone, Copy, Debug)]
struct Liar {
    /// Out of 256 checks that hold. `about_false`: out of 256 that do not.
    about_true: u16,
    about_false: u16,
    salt: u8,
}

impl Engine for Liar {
    fn name(&self) -> &'static str {
        "liar"
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        for (check, verdict) in checks.iter().zip(verdicts) {
            let truth = Reference.check(check);
            let share = if truth { self.about_true } else { self.about_false };
            *verdict = truth != (u16::from(self.lot(check)) < share);
        }
    }
}

impl Liar {
    fn lot(&self, check: &Check) -> u8 {
        let (message, other) = match check {
            Check::Ecdsa { message, signature, .. } | Check::Schnorr { message, signature, .. } => {
                (message, signature[9])
            }
            Check::Tweak { output, tweak, .. } => (tweak, output[9]),
        };
        sha256(&[&message[..], &[other, self.salt]].concat())[0]
    }
}

/// The disagreements reported to the alarm.
pub type Reported = Arc<Mutex<Vec<Disagreement>>>;

pub fn watched(kernel: Box<dyn Engine + Send>, interval: u64, settings: Settings) -> (Settings, Reported) {
    let reported = Reported::default();
    let reporter = Arc::clone(&reported);
    let sampling = Sampling { interval: NonZeroU64::new(interval).unwrap(), seed: [3; 32] };
    let alarm = move |disagreement: &Disagreement| reporter.lock().unwrap().push(disagreement.clone());
    let signatures = Arc::new(Refereed::new(kernel, sampling, Box::new(alarm)));
    (Settings { signatures, ..settings }, reported)
}

/// Asserts that every recorded disagreement is a wrong verdict of the kernel.
fn assert_wrong_verdicts(reported: &Reported, when: &str) {
    for disagreement in reported.lock().unwrap().iter() {
        match &disagreement.evidence {
            Evidence::Check { check, kernel, reference } => {
                assert_eq!((Reference.check(check), !kernel), (*reference, *reference), "{when}");
            }
            Evidence::Accepted { what } => assert!(what.starts_with("block "), "{what} {when}"),
        }
    }
}

/// A story with signatures, some of them false.
fn story_of_keys(seed: u64) -> Story {
    Story::with_shape(seed, Shape { blocks: 14, faults_per_mille: 400, keys_per_mille: 600, ..SIGNED })
}

/// Valid blocks in which nearly all coins need signatures.
pub const SIGNED: Shape =
    Shape { blocks: 30, repeats: false, faults_per_mille: 0, keys_per_mille: 900, txs: 6, is_rotten: false };

/// Without sampling, each block is accepted with whatever the kernel answers, and then reviewed. After each review, the
/// chain is the plain validator's.
#[test]
fn at_the_tip_a_block_accepted_on_a_lie_is_taken_off() {
    let mut taken_off = 0;
    let count = for_seeds("referee::at_the_tip_a_block_accepted_on_a_lie_is_taken_off", 100, |seed| {
        let mut random = Random::new(seed, "tip");
        let story = story_of_keys(seed);
        let expected = with_false_twins(&story, &mut random);
        let how = How::random(&mut random);
        let about_true = [0, 0, 0, 40, 256][random.index(5)];
        let liar = Liar { about_true, about_false: [64, 256, 256][random.index(3)], salt: how.seed };
        let when = format!("with {liar:?} under {how:?}");
        let place = Place::new(&how, &format!("liar-{seed}"));
        let seen = Arc::<Seen>::default();
        let (settings, reported) = watched(Box::new(liar), u64::MAX, how.settings());
        let settings = Settings { background: Arc::<Seen>::clone(&seen), ..settings };
        let mut lydian = Lydian::open_with(&place, &story.params, &how, settings).unwrap();
        lydian.has_liar = true;
        for (index, fed) in expected.fed.iter().enumerate() {
            let answer = lydian.accept_at(&fed.block, fed.now).unwrap();
            if without_place(&answer) != without_place(&fed.answer) {
                // The block was accepted, or refused for a fault of its own after a block below it was accepted.
                let is_above_one = matches!(&fed.answer, Ok(right) if !right.is_active && !right.invalid.is_empty());
                let is_possible = answer.is_ok() || is_above_one;
                assert!(is_possible, "block {index} {when}: {answer:?}, not {:?} ({})", fed.answer, fed.note);
                lydian.engine.finish_reviews().unwrap();
                let invalid = seen.invalid.lock().unwrap().clone();
                let is_found = !invalid.is_empty() && invalid.iter().all(|hash| expected.violation_of(hash).is_some());
                let reviews = lydian.engine.reviews();
                assert!(is_found, "block {index} {when}: {invalid:?}, {reviews:?}, {answer:?}, not {:?}", fed.answer);
                assert!(!lydian.engine.signatures().is_trusted());
                taken_off += 1;
            }
            lydian.engine.finish_reviews().unwrap();
            let tip = lydian.engine.tip();
            assert_eq!((tip.height, tip.hash), fed.tip, "the tip after block {index} {when} ({})", fed.note);
            if let Some(state) = &fed.state {
                lydian.assert_state(state, &format!("after block {index} {when}"));
            }
        }
        lydian.assert_state(&expected.end, &when);
        assert_wrong_verdicts(&reported, &when);
        // The next process does not review it again.
        drop(lydian);
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        lydian.advance().unwrap();
        lydian.assert_state(&expected.end, &format!("in a new process {when}"));
    });
    assert!(count < 5 || taken_off > 0, "{taken_off} taken off in {count} stories");
}

/// The answer without the place of failed scripts: if a block has more than one fault, a wrong verdict may change which
/// one is named, in the answer to it and in the list of other blocks.
fn without_place(answer: &Answer) -> Answer {
    let without = |violation: &Violation| match violation.rule {
        Rule::ScriptVerify => Violation::of(Rule::ScriptVerify),
        _ => *violation,
    };
    match answer.clone() {
        Ok(mut accepted) => {
            accepted.invalid.iter_mut().for_each(|(_, violation)| *violation = without(violation));
            Ok(accepted)
        }
        Err(Rejected::Violation(violation)) => Err(Rejected::Violation(without(&violation))),
        Err(rejected) => Err(rejected),
    }
}

/// The kernel is distrusted by another thread after it has verified a block with a false signature, and before the
/// commit. Regression test: the block was not reviewed any more, and stayed.
#[test]
fn a_block_verified_before_the_kernel_was_distrusted_is_reviewed() {
    let story = Story::with_shape(7, SIGNED);
    let how = How::random(&mut Random::new(7, "distrusted"));
    let place = Place::new(&how, "distrusted");
    let seen = Arc::<Seen>::default();
    let lies = Arc::<AtomicBool>::default();
    let (settings, _) = watched(Box::new(Late(Arc::clone(&lies))), u64::MAX, how.settings());
    let distrusts = Distrusts(Arc::clone(&settings.signatures));
    let settings = Settings { background: Arc::<Seen>::clone(&seen), ..settings };
    let lydian = Lydian::open_with(&place, &story.params, &how, settings).unwrap();
    for made in &story.blocks {
        let before = lydian.engine.tip();
        let is_next = parse(&made.bytes).header().prev_block == before.hash;
        if let Some(twin) = false_twin(&made.bytes).filter(|_| is_next) {
            lydian.engine.finish_reviews().unwrap();
            lies.store(true, Ordering::Relaxed);
            let accepted = lydian.engine.accept_block(parse(&twin), i64::from(NOW), &distrusts).unwrap();
            assert!(accepted.as_ref().is_ok_and(|accepted| accepted.is_active), "{accepted:?}");
            lydian.engine.finish_reviews().unwrap();
            assert_eq!((seen.invalid.lock().unwrap().len(), lydian.engine.tip()), (1, before));
            return;
        }
        let _ = lydian.accept(&made.bytes).unwrap();
    }
    unreachable!("the story has signatures");
}

/// A kernel that begins to accept everything.
struct Late(Arc<AtomicBool>);

impl Engine for Late {
    fn name(&self) -> &'static str {
        "late"
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        Reference.verify(checks, verdicts);
        let lies = self.0.load(Ordering::Relaxed);
        verdicts.iter_mut().for_each(|verdict| *verdict |= lies);
    }
}

/// Distrusts the kernel when a block is connected.
struct Distrusts(Arc<Refereed>);

impl Observer for Distrusts {
    fn event(&self, event: &Event<'_>) {
        if matches!(event, Event::UpdateTip(_)) {
            self.0.distrust("a test".to_owned());
        }
    }
}

/// The blocks of a story in order, some of them preceded by a copy with one false signature.
fn with_false_twins(story: &Story, random: &mut Random) -> Expected {
    let mut brought = Vec::new();
    for made in &story.blocks {
        if let Some(twin) = false_twin(&made.bytes).filter(|_| random.chance(300)) {
            brought.push((twin, format!("a false signature, {}", made.note), NOW));
        }
        brought.push((made.bytes.clone(), made.note.clone(), NOW));
    }
    Expected::of(&story.params, brought)
}

pub fn false_twin(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut block = MutBlock::from(&parse(bytes));
    let witnesses = block.txs.iter_mut().skip(1).flat_map(|tx| &mut tx.inputs).map(|input| &mut input.witness);
    let mut signatures =
        witnesses.filter_map(|witness| witness.first_mut()).filter(|item| (64..=73).contains(&item.len()));
    let signature = signatures.next()?;
    // In the middle of s.
    let place = signature.len() - 15;
    signature[place] ^= 1;
    block.seal_on_regtest();
    Some(block.encode())
}

/// The background events.
#[derive(Debug, Default)]
struct Seen {
    invalid: Mutex<Vec<BlockHash>>,
    failed: AtomicU64,
}

impl Observer for Seen {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::InvalidBlock { hash, .. } => self.invalid.lock().unwrap().push(*hash),
            Event::NotTakenOff { .. } => drop(self.failed.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
    }
}

/// With every check sampled, a wrong verdict has no effect: the same verdicts, reasons and coins.
#[test]
fn in_deep_sync_the_batch_is_decided_again() {
    let mut lied = 0;
    let count = for_seeds("referee::in_deep_sync_the_batch_is_decided_again", 60, |seed| {
        let mut random = Random::new(seed, "deep");
        let story = story_of_keys(seed);
        let expected = Expected::new(&story, Order::File, &mut random);
        let how = How::random(&mut random);
        let liar = Liar { about_true: 30, about_false: 256, salt: how.seed };
        let place = Place::new(&how, &format!("deep-{seed}"));
        let (settings, reported) = watched(Box::new(liar), 1, how.settings());
        let mut lydian = Lydian::open_with(&place, &story.params, &how, settings).unwrap();
        lydian.has_liar = true;
        let when = format!("under {how:?}");
        store(&lydian, &expected, 0..expected.fed.len(), &when);
        let advance = lydian.advance().unwrap();
        assert_reasons(&advance, &expected, &when);
        lydian.assert_state(&expected.end, &when);
        assert_wrong_verdicts(&reported, &when);
        let counts = lydian.engine.signatures().counts();
        assert_eq!(lydian.engine.signatures().is_trusted(), counts.disagreements == 0);
        lied += u32::from(counts.disagreements > 0);
    });
    assert!(count == 1 || lied > 0, "{lied} of {count} seeds had something to lie about");
}

/// An honest kernel with every check sampled, including the false pairs of multisigs: no disagreement is reported.
#[test]
fn false_pairs_are_no_wrong_verdicts_and_threads_end() {
    let story = Story::with_shape(4, SIGNED);
    let mut random = Random::new(4, "pairs");
    let expected = Expected::new(&story, Order::File, &mut random);
    let how = How { is_real: false, followers: 0, workers: 2, ..How::random(&mut random) };
    let honest = Arc::new(Counted::default());
    let place = Place::new(&how, "pairs");
    let (settings, reported) = watched(Box::new(Shared(Arc::clone(&honest))), 1, how.settings());
    let lydian = Lydian::open_with(&place, &story.params, &how, settings).unwrap();
    for fed in &expected.fed {
        assert_eq!(lydian.accept_at(&fed.block, fed.now).unwrap(), fed.answer);
    }
    lydian.engine.finish_reviews().unwrap();
    lydian.assert_state(&expected.end, "with an honest kernel");
    let counts = lydian.engine.signatures().counts();
    let reviews = lydian.engine.reviews();
    assert!(reported.lock().unwrap().is_empty() && lydian.engine.signatures().is_trusted());
    assert!(counts.sampled > 100 && counts.reviewed > 100 && reviews.blocks > 0, "{counts:?} {reviews:?}");
    assert!(honest.false_checks.load(Ordering::Relaxed) > 0, "some pairs of some multisig are false");
    drop(lydian);
    assert_eq!(Arc::strong_count(&honest), 1, "the kernel is no longer in use: the review thread has ended");

    // After a disagreement the warning asks for a reindex, which trusts no earlier verification.
    wipe(place.disk.as_ref(), &layout(&place.root), Wipe::Index).unwrap();
    let how = How { has_lanes: false, ..how };
    let lydian = Lydian::open(&place, &story.params, &how).unwrap();
    let advance = lydian.advance().unwrap();
    assert_eq!((advance.connected, lydian.engine.progress().blocks_trusted), (u64::from(expected.end.height.0), 0));
    lydian.assert_state(&expected.end, "after a reindex");
}

/// The reference under another name; counts checks that fail.
#[derive(Debug, Default)]
struct Counted {
    false_checks: AtomicU64,
}

struct Shared(Arc<Counted>);

impl Engine for Shared {
    fn name(&self) -> &'static str {
        "counted"
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        Reference.verify(checks, verdicts);
        let count = verdicts.iter().filter(|verdict| !**verdict).count();
        self.0.false_checks.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// A kernel that blocks in reviews while it is held.
#[derive(Debug, Default)]
struct Gate {
    is_held: AtomicBool,
    has_come: AtomicBool,
    reviews: AtomicU64,
}

struct Slow(Arc<Gate>);

impl Engine for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        if std::thread::current().name() == Some("review") {
            self.0.reviews.fetch_add(1, Ordering::Relaxed);
            self.0.has_come.store(true, Ordering::Release);
            while self.0.is_held.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Reference.verify(checks, verdicts);
    }
}

/// Blocks are accepted while the first review hangs; a block pushed out of the queue is covered by the sample. Closing
/// waits for the part in progress.
/// limit: REVIEW_QUEUE_BLOCKS_MAX at
/// limit: REVIEW_QUEUE_BLOCKS_MAX above
#[test]
fn acceptance_never_waits_for_a_review() {
    let story = Story::with_shape(9, Shape { blocks: 60, ..SIGNED });
    let mut random = Random::new(9, "slow");
    let expected = Expected::new(&story, Order::File, &mut random);
    let how = How { is_real: false, followers: 0, ..How::random(&mut random) };
    let place = Place::new(&how, "slow");
    let gate = Arc::new(Gate { is_held: AtomicBool::new(true), ..Gate::default() });
    let (settings, _) = watched(Box::new(Slow(Arc::clone(&gate))), u64::MAX, how.settings());
    let lydian = Lydian::open_with(&place, &story.params, &how, settings).unwrap();
    let brought = || {
        let progress = lydian.engine.progress();
        progress.stats.blocks - progress.blocks_trusted
    };
    let gone = || {
        let reviews = lydian.engine.reviews();
        reviews.blocks + reviews.demoted
    };
    let (mut at_gate, mut has_been_full) = (None, [false; 2]);
    for fed in &expected.fed {
        let _ = lydian.accept_at(&fed.block, fed.now).unwrap();
        while at_gate.is_none() && gone() < brought() {
            at_gate = gate.has_come.load(Ordering::Acquire).then(|| (brought(), lydian.engine.reviews().demoted));
        }
        if let Some((before, demoted)) = at_gate {
            let waiting = brought() - before;
            let too_many = waiting.saturating_sub(REVIEW_QUEUE_BLOCKS_MAX as u64);
            assert_eq!(lydian.engine.reviews().demoted - demoted, too_many, "{waiting} have come since");
            has_been_full[0] |= waiting == REVIEW_QUEUE_BLOCKS_MAX as u64;
            has_been_full[1] |= waiting == REVIEW_QUEUE_BLOCKS_MAX as u64 + 1;
        }
    }
    assert_eq!(has_been_full, [true; 2]);
    lydian.assert_state(&expected.end, "while a review hangs");
    assert_eq!(gate.reviews.load(Ordering::Relaxed), 1);
    let opener = std::thread::spawn({
        let gate = Arc::clone(&gate);
        move || {
            std::thread::sleep(Duration::from_millis(100));
            gate.is_held.store(false, Ordering::Release);
        }
    });
    drop(lydian);
    opener.join().unwrap();
    assert!(gate.reviews.load(Ordering::Relaxed) <= 3, "rounds of multisigs of the part in hand, no other block");
    assert_eq!(Arc::strong_count(&gate), 1, "the thread has ended");
}

/// The end of a short run near the best header is reviewed.
/// limit: REVIEW_DEPTH_MAX at
/// limit: REVIEW_DEPTH_MAX above
/// limit: REVIEW_RUN_BLOCKS_MAX at
/// limit: REVIEW_RUN_BLOCKS_MAX above
#[test]
fn the_end_of_a_short_run_is_reviewed() {
    let story = Story::with_shape(2, Shape { blocks: 0, ..SIGNED });
    let run = |blocks: usize, headers: usize| {
        let mut random = Random::new(2, "run");
        let how = How { is_real: false, followers: 0, ..How::random(&mut random) };
        let place = Place::new(&how, "run");
        let (settings, _) = watched(Box::new(Shared(Arc::default())), u64::MAX, how.settings());
        let lydian = Lydian::open_with(&place, &story.params, &how, settings).unwrap();
        for (index, made) in story.blocks.iter().take(headers).enumerate() {
            let block = parse(&made.bytes);
            if index < blocks {
                lydian.engine.store_block(block, i64::from(NOW)).unwrap().unwrap();
            } else {
                lydian.engine.accept_header(block.header(), i64::from(NOW)).unwrap().unwrap();
            }
        }
        let advance = lydian.engine.advance(&Cancel::new(), &Unobserved).unwrap();
        assert_eq!(advance.connected, blocks as u64);
        lydian.engine.finish_reviews().unwrap();
        lydian.engine.reviews()
    };
    let (depth, longest) = (REVIEW_DEPTH_MAX as usize, REVIEW_RUN_BLOCKS_MAX);
    let done = |blocks: usize, headers: usize| {
        let reviews = run(blocks, headers);
        reviews.blocks + reviews.demoted
    };
    assert_eq!(done(3, 3), 3);
    assert_eq!(done(3, 3 + depth), 3, "the best header is as far above as may be");
    assert_eq!(done(3, 4 + depth), 0, "and one more");
    assert_eq!(done(longest, longest), longest as u64);
    assert_eq!(done(longest + 1, longest + 1), 0, "a long run is catching up");
}
