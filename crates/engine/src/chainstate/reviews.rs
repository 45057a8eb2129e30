//! The queue of blocks that wait for their review, and the counts of earlier ones.
//!
//! Input: committed blocks at the tip. Output: the blocks in order, for the thread of [`crate::review`]. Invariants:
//! pushing never waits; the queue is bounded, and a block pushed out of it is counted.

use super::settings::Cancel;
use crate::limits::REVIEW_QUEUE_BLOCKS_MAX;
use lydian_consensus::FundedBlock;
use lydian_stdx::{IgnorePoison, lock};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// The blocks queued for review, and counts of earlier ones. For use from any thread.
#[derive(Debug, Default)]
pub struct Reviews {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Set when the engine is closed.
    pub(crate) cancel: Cancel,
    blocks: AtomicU64,
    demoted: AtomicU64,
}

#[derive(Debug, Default)]
struct Queue {
    /// Each with whether scripts of it were skipped because they are known to be valid.
    blocks: VecDeque<(Arc<FundedBlock>, bool)>,
    /// A block is being reviewed.
    is_busy: bool,
    /// The queue accepts no more blocks.
    is_ended: bool,
}

/// Counts of blocks at the tip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReviewCounts {
    /// Blocks of which the reference verified every signature.
    pub blocks: u64,
    /// Blocks of which the reference verified only a sample: others came too fast, or the engine was closed.
    pub demoted: u64,
}

impl Reviews {
    /// Queues a block; the oldest is dropped if there are too many.
    pub(crate) fn push(&self, block: Arc<FundedBlock>, has_known: bool) {
        let too_many = {
            let mut queue = lock(&self.queue);
            queue.blocks.push_back((block, has_known));
            let is_full = queue.is_ended || queue.blocks.len() > REVIEW_QUEUE_BLOCKS_MAX;
            if is_full { queue.blocks.pop_front() } else { None }
        };
        if too_many.is_some() {
            self.demoted.fetch_add(1, Ordering::Relaxed);
        }
        self.changed.notify_all();
    }

    /// Waits until the queue is empty and no review is running.
    pub(crate) fn wait(&self) {
        let mut queue = lock(&self.queue);
        while !queue.is_ended && (queue.is_busy || !queue.blocks.is_empty()) {
            queue = self.changed.wait(queue).ignore_poison();
        }
    }

    /// Drops the queued blocks, and stops the running review as soon as possible.
    pub(crate) fn end(&self) {
        self.cancel.cancel();
        let given_up = {
            let mut queue = lock(&self.queue);
            queue.is_ended = true;
            std::mem::take(&mut queue.blocks)
        };
        self.demoted.fetch_add(given_up.len() as u64, Ordering::Relaxed);
        self.changed.notify_all();
    }

    pub fn counts(&self) -> ReviewCounts {
        ReviewCounts { blocks: self.blocks.load(Ordering::Relaxed), demoted: self.demoted.load(Ordering::Relaxed) }
    }

    /// Waits for the next block; `None` at the end.
    pub(crate) fn take(&self) -> Option<(Arc<FundedBlock>, bool)> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.is_ended {
                return None;
            }
            if let Some(block) = queue.blocks.pop_front() {
                queue.is_busy = true;
                return Some(block);
            }
            queue = self.changed.wait(queue).ignore_poison();
        }
    }

    /// Reports that the review of the block taken last is over.
    pub(crate) fn done(&self) {
        lock(&self.queue).is_busy = false;
        self.changed.notify_all();
    }

    /// Counts a block, of which the reference verified every signature or only a sample.
    pub(crate) fn count(&self, is_reviewed: bool) {
        let count = if is_reviewed { &self.blocks } else { &self.demoted };
        count.fetch_add(1, Ordering::Relaxed);
    }
}
