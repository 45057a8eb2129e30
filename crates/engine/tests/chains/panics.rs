//! A panic somewhere in a run: every worker returns, the panic continues in the caller, and the engine refuses further
//! work, since its coins may contain half a block. Opened again, it has all that was durable.

use crate::expected::{Expected, Order, parse};
use crate::lydian::{How, Lydian, Place};
use crate::seeds::for_seeds;
use crate::story::{NOW, Story};
use lydian_chains::rng::Random;
use lydian_engine::{Cancel, EngineError, Event, Observer, Unobserved};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Panics at an event.
struct PanicAt(AtomicU64);

impl Observer for PanicAt {
    fn event(&self, _: &Event<'_>) {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 1 {
            // `resume_unwind` does not run the panic hook, which would print the message.
            resume_unwind(Box::new("a mistake"));
        }
    }
}

#[test]
fn a_panic_ends_everything_but_what_is_durable() {
    for_seeds("panics::a_panic_ends_everything_but_what_is_durable", 20, |seed| {
        let mut random = Random::new(seed, "panics");
        let how = How::random(&mut random);
        let story = Story::new(seed);
        let expected = Expected::new(&story, Order::ALL[random.index(3)], &mut random);
        let place = Place::new(&how, &format!("panics-{seed}"));
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        for fed in &expected.fed {
            let _ = lydian.engine.store_block(parse(&fed.block), i64::from(NOW)).unwrap();
        }
        let observer = PanicAt(AtomicU64::new(random.below(12) + 1));
        let advance = || lydian.engine.advance(&Cancel::new(), &observer);
        let payload = catch_unwind(AssertUnwindSafe(advance)).expect_err("the panic goes on in the caller");
        assert_eq!(payload.downcast_ref(), Some(&"a mistake"), "as it was");
        let is_refused = |result: Result<(), EngineError>| matches!(result, Err(EngineError::Poisoned { .. }));
        assert!(is_refused(lydian.advance().map(|_| ())));
        assert!(is_refused(lydian.engine.checkpoint(&Unobserved)), "half a block is never made durable");
        drop(lydian);
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        lydian.advance().unwrap();
        lydian.assert_state(&expected.end, &format!("after a panic under {how:?}"));
    });
}
