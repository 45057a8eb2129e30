//! When a batch of Schnorr checks is decided without an equation, because the last ones did not hold.
//!
//! Input: whether the equation of each batch held. Output: whether the next batch has one. Invariants: one failure
//! changes nothing, each further one in turn doubles the number of batches without an equation up to
//! [`BATCHES_ALONE_MAX`], and an equation that holds ends it. So a false check in every batch costs few equations, and
//! a rare one does not take the equation from other batches. Cost: two numbers. Must never: decide a check.

use crate::limits::BATCHES_ALONE_MAX;
use std::sync::atomic::{AtomicU32, Ordering};

/// Threads may count at the same time: a batch more or less has no effect on verdicts.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    /// Batches without an equation after the next failure.
    next: AtomicU32,
    /// Batches that will have none now.
    alone: AtomicU32,
}

impl Failures {
    /// Whether a batch is to be decided without an equation; counts it.
    pub(crate) fn is_alone(&self) -> bool {
        let less = |batches: u32| batches.checked_sub(1);
        self.alone.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Records whether an equation held.
    pub(crate) fn record(&self, holds: bool) {
        let alone = if holds { 0 } else { self.next.load(Ordering::Relaxed) };
        self.alone.store(alone, Ordering::Relaxed);
        self.next.store(if holds { 0 } else { (2 * alone + 1).min(BATCHES_ALONE_MAX) }, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of batches without an equation until the next one, which holds or not.
    fn alone_before(failures: &Failures, holds: bool) -> u32 {
        let mut count = 0;
        while failures.is_alone() {
            count += 1;
        }
        failures.record(holds);
        count
    }

    /// limit: BATCHES_ALONE_MAX at
    /// limit: BATCHES_ALONE_MAX above
    #[test]
    fn failures_in_turn_double_the_batches_alone() {
        let failures = Failures::default();
        for expected in [0, 0, 1, 3, 7, BATCHES_ALONE_MAX, BATCHES_ALONE_MAX, BATCHES_ALONE_MAX] {
            assert_eq!(alone_before(&failures, false), expected);
        }
        assert_eq!(alone_before(&failures, true), BATCHES_ALONE_MAX);
        // Failures between equations that hold change nothing.
        for _ in 0..3 {
            assert_eq!([false, true].map(|holds| alone_before(&failures, holds)), [0, 0]);
        }
    }
}
