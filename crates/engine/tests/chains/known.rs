//! Scripts that were verified before: a run that skips them gives the same verdicts; flags count; and the review of
//! blocks at the tip does not believe it.

use crate::expected::{Expected, Order, parse};
use crate::lydian::{How, Lydian, Place};
use crate::referee::{SIGNED, false_twin, watched};
use crate::seeds::for_seeds;
use crate::story::{Shape, Story};
use lydian_chains::rng::Random;
use lydian_consensus::{CheckedBlock, KnownScripts};
use lydian_curve::{Check, Engine, Reference};
use lydian_engine::Settings;
use lydian_primitives::{Block, Height, Wtxid};
use lydian_script::Flags;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Transactions with the flags under which they are valid.
#[derive(Debug, Default)]
struct Known {
    flags: HashMap<Wtxid, Flags>,
    skipped: AtomicU64,
}

impl KnownScripts for Known {
    fn are_valid(&self, wtxid: &Wtxid, flags: Flags) -> bool {
        let is_known = self.flags.get(wtxid).is_some_and(|known| known.contains(flags));
        self.skipped.fetch_add(u64::from(is_known), Ordering::Relaxed);
        is_known
    }
}

impl Known {
    /// A part of the transactions of valid blocks, some of them with fewer flags than their block has.
    fn random(story: &Story, expected: &Expected, random: &mut Random) -> Known {
        let mut known = Known::default();
        for fed in &expected.fed {
            let Ok(accepted) = &fed.answer else { continue };
            let block = parse(&fed.block);
            if expected.violations.contains_key(&block.hash()) {
                continue;
            }
            let flags = flags_of(&block, story, accepted.height);
            for tx in block.txs().skip(1) {
                if random.chance(600) {
                    let fewer = if random.chance(200) { Flags::NONE } else { flags };
                    known.flags.insert(tx.wtxid(), fewer);
                }
            }
        }
        known
    }
}

fn flags_of(block: &Block, story: &Story, height: Height) -> Flags {
    match CheckedBlock::check_again(block.clone(), height, &story.params) {
        Ok(checked) => checked.flags(),
        Err(violation) => panic!("{violation:?}"),
    }
}

/// checklist: 57
#[test]
fn known_scripts_change_no_verdict() {
    let mut skipped = 0;
    let count = for_seeds("known::known_scripts_change_no_verdict", 40, |seed| {
        let mut random = Random::new(seed, "known");
        let story = Story::with_shape(seed, Shape::random(&mut random));
        let expected = Expected::new(&story, Order::File, &mut random);
        let how = How { fails_at: None, ..How::random(&mut random) };
        let known = Arc::new(Known::random(&story, &expected, &mut random));
        let settings = Settings { known_scripts: Some(Arc::<Known>::clone(&known)), ..how.settings() };
        let place = Place::new(&how, &format!("known-{seed}"));
        let lydian = Lydian::open_with(&place, &story.params, &how, settings).unwrap();
        for (index, fed) in expected.fed.iter().enumerate() {
            assert_eq!(lydian.accept_at(&fed.block, fed.now).unwrap(), fed.answer, "block {index} under {how:?}");
        }
        lydian.assert_state(&expected.end, &format!("under {how:?}"));
        skipped += known.skipped.load(Ordering::Relaxed);
    });
    assert!(count < 5 || skipped > 0, "no transaction was skipped in {count} stories");
}

/// Says that everything was verified.
#[derive(Debug, Default)]
struct Liar {
    asked: AtomicU64,
}

impl KnownScripts for Liar {
    fn are_valid(&self, _: &Wtxid, _: Flags) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// The reference as a kernel: it is watched, and never wrong.
struct Honest;

impl Engine for Honest {
    fn name(&self) -> &'static str {
        "honest"
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        Reference.verify(checks, verdicts);
    }
}

/// A block with a false signature is accepted because its transactions are said to be verified. The review disconnects
/// it; the kernel, which was not asked, is still trusted, and the liar is not asked again.
#[test]
fn the_review_at_the_tip_does_not_believe_it() {
    let story = Story::with_shape(4, SIGNED);
    let mut random = Random::new(4, "believed");
    let expected = Expected::new(&story, Order::File, &mut random);
    let how =
        How { is_real: false, followers: 2, fails_at: None, stop_at: None, workers: 2, ..How::random(&mut random) };
    let liar = Arc::new(Liar::default());
    let (settings, reported) = watched(Box::new(Honest), u64::MAX, how.settings());
    let settings = Settings { known_scripts: Some(Arc::<Liar>::clone(&liar)), ..settings };
    let place = Place::new(&how, "believed");
    let lydian = Lydian::open_with(&place, &story.params, &how, settings).unwrap();
    let mut found = 0;
    for fed in &expected.fed {
        if let Some(twin) = false_twin(&fed.block).filter(|_| found == 0) {
            let asked = liar.asked.load(Ordering::Relaxed);
            assert!(lydian.accept_at(&twin, fed.now).unwrap().is_ok(), "its scripts are not verified");
            lydian.engine.finish_reviews().unwrap();
            assert!(liar.asked.load(Ordering::Relaxed) > asked);
            assert!(lydian.engine.violation_of(&parse(&twin).hash()).is_some(), "the review found it");
            assert_ne!(lydian.engine.tip().hash, parse(&twin).hash());
            found = liar.asked.load(Ordering::Relaxed);
        }
        assert_eq!(lydian.accept_at(&fed.block, fed.now).unwrap(), fed.answer);
    }
    assert!(found > 0 && liar.asked.load(Ordering::Relaxed) == found, "it is not asked again");
    assert!(reported.lock().unwrap().is_empty() && lydian.engine.signatures().is_trusted());
    lydian.assert_state(&expected.end, "after the lie");
}
