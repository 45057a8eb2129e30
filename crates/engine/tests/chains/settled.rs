//! The settled block: when it is announced, every follower in step has it; sequence numbers have no gap; in the end it
//! is the tip.

use crate::expected::{Expected, Order, parse};
use crate::lydian::{How, Lydian, Place};
use crate::recorder::{Manner, Shared};
use crate::seeds::for_seeds;
use crate::story::{NOW, Story};
use lydian_chains::rng::Random;
use lydian_engine::{Cancel, Event, Observer, Tip};
use std::sync::Mutex;

/// Compares each announcement with what the followers have.
struct Announced {
    followers: Vec<Shared>,
    last: Mutex<Option<(Tip, u64)>>,
}

impl Observer for Announced {
    fn event(&self, event: &Event<'_>) {
        let Event::Settled { tip, sequence } = event else { return };
        for follower in &self.followers {
            // One that fails is not waited for any longer, and one without files has only what came since the start.
            if matches!(follower.manner, Manner::Prepared | Manner::Late { .. }) {
                assert!(follower.has(tip.height, tip.hash), "{tip:?} is announced before {:?} has it", follower.manner);
            }
        }
        let before = self.last.lock().unwrap().replace((*tip, *sequence));
        assert!(before.is_none_or(|(_, before)| before + 1 == *sequence), "{before:?}, then {sequence}");
        assert!(before.is_none_or(|(before, _)| before != *tip), "{tip:?} is announced twice");
    }
}

#[test]
fn what_is_announced_is_with_every_follower() {
    for_seeds("settled::what_is_announced_is_with_every_follower", 40, |seed| {
        let mut random = Random::new(seed, "settled");
        let story = Story::new(seed);
        let expected = Expected::new(&story, Order::ALL[random.index(3)], &mut random);
        let fails_at = if random.chance(500) { Some(1 + random.index(40)) } else { None };
        let how = How { followers: 1 + random.index(3), fails_at, ..How::random(&mut random) };
        let place = Place::new(&how, &format!("settled-{seed}"));
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        let announced = Announced { followers: lydian.followers.clone(), last: Mutex::default() };
        for fed in &expected.fed {
            let _ = lydian.engine.store_block(parse(&fed.block), i64::from(NOW)).unwrap();
            if random.chance(300) {
                lydian.engine.advance(&Cancel::new(), &announced).unwrap();
            }
        }
        lydian.engine.advance(&Cancel::new(), &announced).unwrap();
        let last = announced.last.lock().unwrap().map(|(tip, _)| tip);
        assert!(last.is_none_or(|last| last == lydian.engine.tip()), "seed {seed}: {last:?}");
        lydian.assert_followers(&lydian.state(), &format!("under {how:?}"));
    });
}
