//! The turns of the writer: a caller that needs a checkpoint gets it from the run in progress, or makes it once the
//! writer's lock is free, whichever comes first.
//!
//! Input: the end of each turn and of each checkpoint. Output: the end of a wait for one of them. Invariant: a caller
//! that read the counts before it tried the lock misses no change after it. Cost: a lock for each turn.

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
    is_checkpoint_wanted: AtomicBool,
}

impl Turns {
    pub(crate) fn counts(&self) -> TurnCounts {
        *lock(&self.counts)
    }

    /// The writer's lock was released.
    pub(crate) fn released(&self) {
        lock(&self.counts).released += 1;
        self.changed.notify_all();
    }

    /// Asks the run in progress for a checkpoint.
    pub(crate) fn want_checkpoint(&self) {
        self.is_checkpoint_wanted.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_checkpoint_wanted(&self) -> bool {
        self.is_checkpoint_wanted.load(Ordering::SeqCst)
    }

    /// A checkpoint begins: callers until now get it.
    pub(crate) fn checkpoint_begins(&self) {
        self.is_checkpoint_wanted.store(false, Ordering::SeqCst);
    }

    pub(crate) fn checkpoint_made(&self) {
        lock(&self.counts).checkpoints += 1;
        self.changed.notify_all();
    }

    /// Waits until the counts differ from those seen.
    pub(crate) fn wait(&self, seen: TurnCounts) {
        let mut counts = lock(&self.counts);
        while *counts == seen {
            counts = self.changed.wait(counts).ignore_poison();
        }
    }
}
