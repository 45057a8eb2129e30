//! The turns of the writer: a caller that needs a checkpoint gets it from the run in progress, or makes it once the
//! writer's lock is free, whichever comes first.
//!
//! Input: the end of each turn and of each checkpoint. Output: the end of a wait for one of them. Invariants: a caller
//! that read the counts before it tried the lock misses no change after it; a run is asked for a checkpoint only while
//! a caller waits for one. Cost: a lock for each turn.

use lydian_stdx::{IgnorePoison, lock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

/// What has ended so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct TurnCounts {
    /// Times that the writer's lock was released.
    released: u64,
    pub(crate) checkpoints: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Turns {
    counts: Mutex<TurnCounts>,
    changed: Condvar,
    /// Changed under the lock of the counts.
    is_checkpoint_wanted: AtomicBool,
}

impl Turns {
    pub(crate) fn counts(&self) -> TurnCounts {
        *lock(&self.counts)
    }

    /// The writer's lock was released.
    pub(crate) fn released(&self) {
        self.count(|counts| counts.released += 1);
    }

    pub(crate) fn checkpoint_made(&self) {
        self.count(|counts| counts.checkpoints += 1);
    }

    /// Wakes all callers, of whom those that still need a checkpoint ask again.
    fn count(&self, add: impl FnOnce(&mut TurnCounts)) {
        let mut counts = lock(&self.counts);
        add(&mut counts);
        self.is_checkpoint_wanted.store(false, Ordering::SeqCst);
        drop(counts);
        self.changed.notify_all();
    }

    /// Whether the run in progress is asked for a checkpoint.
    pub(crate) fn is_checkpoint_wanted(&self) -> bool {
        self.is_checkpoint_wanted.load(Ordering::SeqCst)
    }

    /// Asks the run in progress for a checkpoint, and waits until the counts differ from those seen.
    pub(crate) fn wait(&self, seen: TurnCounts) {
        let mut counts = lock(&self.counts);
        while *counts == seen {
            self.is_checkpoint_wanted.store(true, Ordering::SeqCst);
            counts = self.changed.wait(counts).ignore_poison();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run is asked only while a caller waits, so that no checkpoint is made for a caller that has gone.
    #[test]
    fn a_checkpoint_is_wanted_while_somebody_waits() {
        let turns = Turns::default();
        let seen = turns.counts();
        for end in [Turns::released, Turns::checkpoint_made] {
            let now = turns.counts();
            std::thread::scope(|scope| {
                scope.spawn(|| turns.wait(now));
                while !turns.is_checkpoint_wanted() {
                    std::thread::yield_now();
                }
                end(&turns);
            });
            assert!(!turns.is_checkpoint_wanted());
        }
        assert_eq!(turns.counts().checkpoints, 1);
        turns.wait(seen);
        assert!(!turns.is_checkpoint_wanted(), "what has ended already is not waited for");
    }
}
