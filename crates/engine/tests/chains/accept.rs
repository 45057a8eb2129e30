//! Blocks are submitted one at a time in various orders: the engine answers each as the plain validator does.

use crate::expected::{Expected, Fed, Order, parse};
use crate::lydian::{How, Lydian, Place};
use crate::seeds::for_seeds;
use crate::story::Story;
use lydian_chains::rng::Random;
use lydian_consensus::{Rejected, Step, Violation};
use lydian_primitives::{BlockHash, Height};

pub fn assert_fed(fed: &Fed, lydian: &Lydian, when: &str) {
    match &fed.answer {
        // The plain validator accepts a header alone only if the block's bytes do not match the header.
        Err(Rejected::Violation(violation)) if is_header_alone(fed, violation) => {
            let header = *parse(&fed.block).header();
            let answer = lydian.engine.accept_header(&header, i64::from(fed.now)).unwrap();
            assert_eq!(answer, Ok(()), "header {when} ({})", fed.note);
        }
        expected => {
            let answer = lydian.accept_at(&fed.block, fed.now).unwrap();
            assert_eq!(answer, *expected, "block {when} ({})", fed.note);
        }
    }
    let tip = lydian.engine.tip();
    assert_eq!((tip.height, tip.hash), fed.tip, "the tip after block {when} ({})", fed.note);
    if let Some(state) = &fed.state {
        lydian.assert_state(state, &format!("after block {when}"));
    }
}

/// Half of the headers without their block are submitted with `accept_header`.
fn is_header_alone(fed: &Fed, violation: &Violation) -> bool {
    let is_late = violation.rule.info().step == Step::BlockInChain && violation.rule.is_of_the_bytes();
    is_late && fed.note.starts_with("header of") && fed.block.len().is_multiple_of(2)
}

/// checklist: 33, 34, 92, 97
#[test]
fn every_block_gets_the_same_answer() {
    for_seeds("accept::every_block_gets_the_same_answer", 100, |seed| {
        let mut random = Random::new(seed, "accept");
        let how = How::random(&mut random);
        let story = Story::new(seed);
        let order = Order::ALL[random.index(3)];
        let expected = Expected::new(&story, order, &mut random);
        let place = Place::new(&how, &format!("accept-{seed}"));
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        for (index, fed) in expected.fed.iter().enumerate() {
            assert_fed(fed, &lydian, &format!("{index} of {order:?} under {how:?}"));
        }
        lydian.assert_state(&expected.end, "at the end");
        assert_eq!(lydian.engine.utxo_hashes().unwrap().muhash, expected.muhash);
        let height = expected.end.height.0;
        let checked = lydian.engine.check_last_blocks(height, 4).unwrap_or_else(|error| panic!("checked: {error}"));
        assert_eq!(checked, height);
    });
}

/// A process ends anywhere without a clean shutdown, and the next one continues: no answered block is forgotten. The
/// followers are durable at other blocks than the coins.
/// checklist: 33, 86
#[test]
fn a_new_process_goes_on() {
    for_seeds("accept::a_new_process_goes_on", 100, |seed| {
        let mut random = Random::new(seed, "reopen");
        let how = How { follower_delay: random.index(12), ..How::random(&mut random) };
        let story = Story::new(seed);
        let order = Order::ALL[random.index(3)];
        let expected = Expected::new(&story, order, &mut random);
        let place = Place::new(&how, &format!("reopen-{seed}"));
        let mut how = how;
        let mut lydian = Lydian::open(&place, &story.params, &how).unwrap();
        for (index, fed) in expected.fed.iter().enumerate() {
            let when = format!("{index} of {order:?} under {how:?}");
            assert_fed(fed, &lydian, &when);
            // After other answers a header or a verdict may not be written yet.
            if fed.answer.is_ok() && random.chance(25) {
                if random.chance(200) {
                    lydian.engine.checkpoint(&lydian_engine::Unobserved).unwrap();
                }
                drop(lydian);
                how =
                    How { seed: how.seed, is_real: how.is_real, followers: how.followers, ..How::random(&mut random) };
                lydian = reopened(&place, &story, &how, fed.tip, &when);
            }
        }
        drop(lydian);
        let tip = (expected.end.height, expected.end.hash);
        reopened(&place, &story, &how, tip, "the end").assert_state(&expected.end, "at the end");
    });
}

fn reopened(place: &Place, story: &Story, how: &How, tip: (Height, BlockHash), when: &str) -> Lydian {
    let lydian = Lydian::open(place, &story.params, how).unwrap();
    let advance = lydian.advance().unwrap();
    assert!(advance.invalid.is_empty() && advance.unreadable.is_empty(), "{when}: {advance:?}");
    let found = lydian.engine.tip();
    assert_eq!((found.height, found.hash), tip, "the tip of a new process after {when}");
    let trusted = lydian.engine.progress().blocks_trusted;
    assert_eq!(trusted, advance.connected, "scripts that succeeded once are not run again: {when}");
    lydian
}
