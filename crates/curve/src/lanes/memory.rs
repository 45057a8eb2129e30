//! The memory in which batches are decided: kept from one batch to the next, because the system clears every page that
//! it maps anew.
//!
//! Input: a batch and what is to be done with it. Output: the same, done in memory that an earlier batch has left.
//! Invariants: what is kept is never more than [`BATCH_MEMORY_BYTES`] for each thread that verifies at the same time,
//! and is freed after [`SMALL_BATCHES`] small batches in turn. Cost: two short locks for each batch. Must never: let a
//! batch read values of an earlier one.

use super::Lanes;
use super::buckets::Buckets;
use super::decide::Sums;
use crate::limits::BATCH_MEMORY_BYTES;
use lydian_stdx::lock;
use std::any::Any;
use std::sync::Mutex;

/// Batches in turn with less than a quarter of the checks for which the memory was needed.
const SMALL_BATCHES: usize = 64;

/// What one thread needs for a batch.
#[derive(Debug)]
pub(crate) struct Memory<L: Lanes> {
    pub(crate) buckets: Buckets<L>,
    pub(crate) sums: Sums<L>,
    /// Most checks of a batch so far.
    checks_max: usize,
    small_batches: usize,
}

impl<L: Lanes> Memory<L> {
    fn new(l: L) -> Memory<L> {
        Memory { buckets: Buckets::new(l), sums: Sums::new(), checks_max: 0, small_batches: 0 }
    }

    /// Whether the next batches are likely to need the memory that a batch of this many checks leaves.
    fn is_worth_keeping(&mut self, checks: usize) -> bool {
        self.checks_max = self.checks_max.max(checks);
        self.small_batches = if checks < self.checks_max / 4 { self.small_batches + 1 } else { 0 };
        self.buckets.bytes() + self.sums.bytes() <= BATCH_MEMORY_BYTES && self.small_batches < SMALL_BATCHES
    }
}

/// The memory that no thread uses now; all of it is of one instruction set.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Vec<Box<dyn Any + Send>>>);

impl Spare {
    /// Decides this many checks in spare memory, or in new memory if other threads use all of it.
    pub(crate) fn with<L: Lanes, R>(&self, l: L, checks: usize, decide: impl FnOnce(&mut Memory<L>) -> R) -> R {
        let spare = lock(&self.0).pop().and_then(|spare| spare.downcast().ok());
        let mut memory: Box<Memory<L>> = spare.unwrap_or_else(|| Box::new(Memory::new(l)));
        let decided = decide(&mut memory);
        if memory.is_worth_keeping(checks) {
            lock(&self.0).push(memory);
        } else if memory.small_batches >= SMALL_BATCHES {
            // Threads that verified at the same time have left as much.
            lock(&self.0).clear();
        }
        decided
    }
}

#[cfg(test)]
mod tests {
    use super::super::Line;
    use super::super::plain::Plain;
    use super::*;

    /// The bytes of the memory that is spare after a batch with this many checks that needs so many bytes.
    fn bytes_after(spare: &Spare, checks: usize, bytes: usize) -> usize {
        spare.with(Plain, checks, |memory| memory.buckets.lines(0).reserve_exact(bytes / size_of::<Line>()));
        let kept = lock(&spare.0);
        let memory = kept.iter().filter_map(|spare| spare.downcast_ref::<Memory<Plain>>());
        memory.map(|memory| memory.buckets.bytes() + memory.sums.bytes()).sum()
    }

    /// limit: BATCH_MEMORY_BYTES at
    /// limit: BATCH_MEMORY_BYTES above
    #[test]
    fn memory_up_to_the_limit_is_kept() {
        let most = BATCH_MEMORY_BYTES;
        assert_eq!(bytes_after(&Spare::default(), 1_000, most), most);
        assert_eq!(bytes_after(&Spare::default(), 1_000, most + size_of::<Line>()), 0);
    }

    #[test]
    fn memory_that_is_not_needed_is_freed() {
        let (spare, bytes) = (Spare::default(), 1 << 20);
        // Two threads at a time.
        spare.with(Plain, 1_000, |memory| {
            memory.buckets.lines(0).reserve_exact(bytes / size_of::<Line>());
            assert_eq!(bytes_after(&spare, 1_000, bytes), bytes);
        });
        for _ in 1..SMALL_BATCHES {
            assert_eq!(bytes_after(&spare, 249, 0), 2 * bytes);
        }
        assert_eq!(bytes_after(&spare, 250, 0), 2 * bytes, "not small, so the count starts again");
        for _ in 1..SMALL_BATCHES {
            assert_eq!(bytes_after(&spare, 249, 0), 2 * bytes);
        }
        assert_eq!(bytes_after(&spare, 249, 0), 0);
    }
}
