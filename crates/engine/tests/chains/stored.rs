//! Blocks are stored first and the engine validates them at its own pace: in one run or many, cancelled anywhere,
//! stopped at heights. The result is the plain validator's, and no block is invalid for another reason.

use crate::expected::{Answer, Expected, Order, parse};
use crate::lydian::{How, Lydian, Place};
use crate::seeds::for_seeds;
use crate::story::{NOW, Story, sealed};
use lydian_chains::rng::Random;
use lydian_consensus::{Chain, Params, Rejected, Rule, Step};
use lydian_disk::SimDisk;
use lydian_engine::limits::CHECKED_BYTES;
use lydian_engine::{Advance, Cancel, Event, Observer, Unobserved};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether the answer to storing a block fits the plain validator's, which connects at once. A block that only coins or
/// scripts make invalid is stored, and so are its children.
fn is_fitting(stored: &Result<(), Rejected>, plain: &Answer) -> bool {
    let is_late = |rule: Rule| matches!(rule.info().step, Step::Coins | Step::Scripts);
    let is_for_its_parent = |rule: Rule| matches!(rule, Rule::PrevBlkNotFound | Rule::BadPrevblk);
    match (stored, plain) {
        (Ok(()), Ok(_)) => true,
        (Ok(()), Err(Rejected::Violation(violation))) => is_late(violation.rule) || is_for_its_parent(violation.rule),
        // Its header extends a block that was refused for its coins.
        (Ok(()), Err(Rejected::DuplicateInvalid)) => true,
        (Err(Rejected::Violation(found)), Err(Rejected::DuplicateInvalid)) => {
            found.rule.info().step == Step::BlockInChain
        }
        (Ok(()), Err(Rejected::Duplicate)) => false,
        (Err(Rejected::Duplicate), Err(Rejected::DuplicateInvalid)) => true,
        // The parent is stored, so the block itself is checked.
        (Err(Rejected::Violation(found)), Err(Rejected::Violation(violation))) if is_for_its_parent(violation.rule) => {
            found.rule >= violation.rule
        }
        (Err(Rejected::Duplicate | Rejected::DuplicateInvalid), Err(Rejected::Violation(violation))) => {
            is_for_its_parent(violation.rule)
        }
        (Err(stored), Err(plain)) => stored == plain,
        (Err(_), Ok(_)) => false,
    }
}

/// Asserts that every block the engine found invalid is so for the plain validator's reason.
pub fn assert_reasons(advance: &Advance, expected: &Expected, when: &str) {
    for (hash, violation) in &advance.invalid {
        assert_eq!(expected.violation_of(hash), Some(*violation), "{hash} {when}");
    }
    assert!(advance.unreadable.is_empty(), "{when}: {advance:?}");
}

/// Cancels after a number of events.
struct CancelAfter {
    cancel: Cancel,
    events: AtomicU64,
}

impl Observer for CancelAfter {
    fn event(&self, _: &Event<'_>) {
        if self.events.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.cancel.cancel();
        }
    }
}

/// Runs to the end, with a few cancelled runs before.
fn advance_with_cancels(lydian: &Lydian, expected: &Expected, random: &mut Random, when: &str) {
    for _ in 0..random.below(4) {
        let observer = CancelAfter { cancel: Cancel::new(), events: AtomicU64::new(random.below(40)) };
        let advance = lydian.engine.advance(&observer.cancel, &observer).unwrap();
        assert_reasons(&advance, expected, when);
        lydian.assert_followers(&lydian.state(), when);
    }
    let advance = lydian.advance().unwrap();
    assert_reasons(&advance, expected, when);
    assert!(!advance.is_cancelled && !advance.is_stopped);
}

pub fn store(lydian: &Lydian, expected: &Expected, range: std::ops::Range<usize>, when: &str) {
    for (index, fed) in expected.fed[range.clone()].iter().enumerate() {
        let answer = lydian.engine.store_block(parse(&fed.block), i64::from(fed.now)).unwrap().map(|_| ());
        let index = range.start + index;
        assert!(
            is_fitting(&answer, &fed.answer),
            "block {index} {when}: {answer:?}, plain {:?} ({})",
            fed.answer,
            fed.note
        );
    }
}

/// One run over everything: many blocks in flight above one that fails, reorganisations caused by failures, checkpoints
/// in the middle (checklist 58: with 8 workers, parts of blocks above the failing one are being verified).
/// checklist: 34, 58, 92
#[test]
fn one_run_over_all_blocks() {
    for_seeds("stored::one_run_over_all_blocks", 100, |seed| {
        let mut random = Random::new(seed, "stored");
        let story = Story::new(seed);
        let order = Order::ALL[random.index(3)];
        let expected = Expected::new(&story, order, &mut random);
        let mut found = Vec::new();
        for workers in [1, 2, 8] {
            let how = How { workers, ..How::random(&mut random) };
            let when = format!("in {order:?} under {how:?}");
            let place = Place::new(&how, &format!("stored-{seed}-{workers}"));
            let lydian = Lydian::open(&place, &story.params, &how).unwrap();
            store(&lydian, &expected, 0..expected.fed.len(), &when);
            let advance = lydian.advance().unwrap();
            assert_reasons(&advance, &expected, &when);
            lydian.assert_state(&expected.end, &when);
            assert_eq!(lydian.engine.utxo_hashes().unwrap().muhash, expected.muhash, "{when}");
            found.push(advance.invalid);
        }
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "the same blocks fail in the same order: {found:?}");
    });
}

/// Many runs, each cut short at random, by a cancel or a height to stop at; sometimes by the end of the process.
/// checklist: 86
#[test]
fn cancelled_and_stopped_anywhere() {
    for_seeds("stored::cancelled_and_stopped_anywhere", 100, |seed| {
        let mut random = Random::new(seed, "cancelled");
        let story = Story::new(seed);
        let order = Order::ALL[random.index(3)];
        let expected = Expected::new(&story, order, &mut random);
        let mut how = How { followers: random.index(3), follower_delay: random.index(9), ..How::random(&mut random) };
        let place = Place::new(&how, &format!("cancelled-{seed}"));
        let mut from = 0;
        while from < expected.fed.len() {
            let (seed, is_real, followers) = (how.seed, how.is_real, how.followers);
            how = How { seed, is_real, followers, ..How::random(&mut random) };
            let to = expected.fed.len().min(from + 1 + random.index(expected.fed.len()));
            let when = format!("{from}..{to} in {order:?} under {how:?}");
            if random.chance(300) {
                stop_at_a_height(&place, &story, &how, &mut random, &expected);
            }
            let lydian = Lydian::open(&place, &story.params, &how).unwrap();
            store(&lydian, &expected, from..to, &when);
            advance_with_cancels(&lydian, &expected, &mut random, &when);
            let (tip, fed) = (lydian.engine.tip(), &expected.fed[to - 1]);
            assert_eq!((tip.height, tip.hash), fed.tip, "{when}");
            // Headers and verdicts that are not written yet are lost with the process.
            if fed.answer.is_err() || random.chance(300) {
                lydian.engine.checkpoint(&Unobserved).unwrap();
            }
            from = to;
        }
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        advance_with_cancels(&lydian, &expected, &mut random, "at the end");
        lydian.assert_state(&expected.end, &format!("in {order:?} at the end"));
    });
}

fn stop_at_a_height(place: &Place, story: &Story, how: &How, random: &mut Random, expected: &Expected) {
    let height = u32::try_from(random.below(150)).unwrap();
    let how = How { stop_at: Some(height), ..*how };
    let lydian = Lydian::open(place, &story.params, &how).unwrap();
    let before = lydian.engine.tip().height.0;
    let advance = lydian.advance().unwrap();
    assert_reasons(&advance, expected, "before a height to stop at");
    let after = lydian.engine.tip().height.0;
    assert!(after <= height.max(before), "stopped at {after}, not at {height}, from {before}");
}

/// With everything stored, the first run of a new engine stops exactly at the height, and the next one continues.
#[test]
fn a_height_to_stop_at_is_kept() {
    for_seeds("stored::a_height_to_stop_at_is_kept", 10, |seed| {
        let mut random = Random::new(seed, "stop");
        let story = Story::new(seed);
        let expected = Expected::new(&story, Order::File, &mut random);
        let how = How::random(&mut random);
        let place = Place::new(&how, &format!("stop-{seed}"));
        let mut reached = HashSet::new();
        for _ in 0..3 {
            let height = u32::try_from(random.below(u64::from(expected.end.height.0))).unwrap().max(1);
            let how = How { stop_at: Some(height), ..how };
            let lydian = Lydian::open(&place, &story.params, &how).unwrap();
            if reached.is_empty() {
                store(&lydian, &expected, 0..expected.fed.len(), "before a stop");
            }
            let from = lydian.engine.tip().height.0;
            let advance = lydian.advance().unwrap();
            assert_reasons(&advance, &expected, "before a stop");
            assert!(advance.is_stopped, "from {from} to {height}: {advance:?}");
            assert_eq!(lydian.engine.tip().height.0, height.max(from));
            lydian.engine.checkpoint(&Unobserved).unwrap();
            reached.insert(height);
        }
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        lydian.advance().unwrap();
        lydian.assert_state(&expected.end, "after the stops");
    });
}

/// A block that was checked when it arrived is not read from disk, parsed and checked again, whether the run begins at
/// once or after all blocks are stored. After a restart, and without memory for it, the blocks on disk are used.
#[test]
fn a_stored_block_is_parsed_once() {
    const BLOCKS: u32 = 30;
    let params = Params::new(Chain::Regtest);
    let mut tip = params.genesis_hash;
    let mut next = |height| {
        let block = sealed(tip, height, b"once", Vec::new());
        tip = block.header.hash();
        block.encode()
    };
    let blocks: Vec<_> = (0..BLOCKS).map(&mut next).collect();
    let all = u64::from(BLOCKS);
    for (checked_bytes, is_each_run, restarts, taken_over) in [
        (CHECKED_BYTES, true, false, all),
        (CHECKED_BYTES, false, false, all),
        (CHECKED_BYTES, false, true, 0),
        (0, true, false, 0),
    ] {
        let how = How { checked_bytes, is_real: false, ..How::random(&mut Random::new(1, "once")) };
        let place = Place::on(SimDisk::new(1));
        let mut lydian = Lydian::open(&place, &params, &how).unwrap();
        for block in &blocks {
            lydian.engine.store_block(parse(block), i64::from(NOW)).unwrap().unwrap();
            if is_each_run {
                lydian.advance().unwrap();
            }
        }
        if restarts {
            lydian.engine.checkpoint(&Unobserved).unwrap();
            drop(lydian);
            lydian = Lydian::open(&place, &params, &how).unwrap();
        }
        lydian.advance().unwrap();
        assert_eq!(lydian.engine.tip().height.0, BLOCKS);
        assert_eq!(lydian.engine.progress().blocks_taken_over, taken_over, "{how:?}");
    }
}

/// The run finds the same about valid and invalid blocks, whether it takes over all checked blocks, some or none.
/// checklist: 92
#[test]
fn blocks_that_are_taken_over_affect_no_verdict() {
    for_seeds("stored::blocks_that_are_taken_over_affect_no_verdict", 30, |seed| {
        let mut random = Random::new(seed, "taken over");
        let story = Story::new(seed);
        let expected = Expected::new(&story, Order::ALL[random.index(3)], &mut random);
        let how = How { is_real: false, ..How::random(&mut random) };
        let mut found = Vec::new();
        for checked_bytes in [0, 20_000, CHECKED_BYTES] {
            let how = How { checked_bytes, ..how };
            let when = format!("under {how:?}");
            let place = Place::new(&how, &format!("taken-{seed}-{checked_bytes}"));
            let lydian = Lydian::open(&place, &story.params, &how).unwrap();
            store(&lydian, &expected, 0..expected.fed.len(), &when);
            let advance = lydian.advance().unwrap();
            assert_reasons(&advance, &expected, &when);
            lydian.assert_state(&expected.end, &when);
            assert_eq!(lydian.engine.progress().blocks_taken_over > 0, checked_bytes > 0, "{when}");
            found.push(advance.invalid);
        }
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{found:?}");
    });
}
