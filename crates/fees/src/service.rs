//! [`FeeEstimates`]: the estimator of a running node.
//!
//! Input: events from the threads that change the mempool, in the order of the changes. Output: estimates that know
//! every event before the question. Invariants: adding events only appends to a queue, so a block does not wait for the
//! estimator, unless [`QUEUE_MAX`] events and transactions are waiting; a question applies what waits first. Memory:
//! the queue and the tracked transactions, 120 bytes for each of the mempool's.

use crate::estimator::{Estimator, Event, Horizon, Mode, SmartEstimate};
use crate::limits::QUEUE_MAX;
use crate::stats::RawEstimate;
use lydian_stdx::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

#[derive(Debug, Default)]
struct Queue {
    events: Vec<Event>,
    /// Events, and transactions of blocks.
    size: usize,
}

/// The estimator of a node. For use from any thread.
#[derive(Debug, Default)]
pub struct FeeEstimates {
    estimator: Mutex<Estimator>,
    /// Locked after the estimator by those who hold both.
    queue: Mutex<Queue>,
    /// Seconds by which tests moved the schedule of the file forward.
    forwarded: AtomicU64,
    /// The file must stay as it is: [`crate::Loaded::may_replace`].
    leaves_file: bool,
}

fn size_of_event(event: &Event) -> usize {
    match event {
        Event::Added { .. } | Event::Removed(_) => 1,
        Event::Block { txs, .. } => 1 + txs.len(),
    }
}

impl FeeEstimates {
    pub fn new(estimator: Estimator) -> FeeEstimates {
        FeeEstimates { estimator: Mutex::new(estimator), ..FeeEstimates::default() }
    }

    /// The file of the node must stay as it is.
    pub fn leaving_file(self) -> FeeEstimates {
        FeeEstimates { leaves_file: true, ..self }
    }

    /// Whether the file must stay as it is.
    pub fn leaves_file(&self) -> bool {
        self.leaves_file
    }

    /// Adds events, which follow on those that were added before.
    pub fn push(&self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let mut queue = lock(&self.queue);
        queue.size += events.iter().map(size_of_event).sum::<usize>();
        queue.events.extend(events);
        let is_full = queue.size > QUEUE_MAX;
        drop(queue);
        if is_full {
            self.settle();
        }
    }

    /// Applies what waits.
    pub fn settle(&self) {
        drop(self.current());
    }

    /// The estimator after every event so far.
    fn current(&self) -> MutexGuard<'_, Estimator> {
        let mut estimator = lock(&self.estimator);
        let waiting = std::mem::take(&mut *lock(&self.queue));
        waiting.events.iter().for_each(|event| estimator.apply(event));
        estimator
    }

    /// Core's `estimateSmartFee`.
    pub fn smart(&self, target: u32, mode: Mode) -> SmartEstimate {
        self.current().smart(target, mode)
    }

    /// Core's `estimateRawFee`; `None` for a target that the horizon does not track.
    pub fn raw(&self, target: u32, threshold: f64, horizon: Horizon) -> Option<(Option<i64>, RawEstimate)> {
        self.current().raw(target, threshold, horizon)
    }

    /// Core's `HighestTargetTracked`.
    pub fn highest_target(&self, horizon: Horizon) -> u32 {
        self.current().highest_target(horizon)
    }

    /// Moves the schedule of the file forward: `mockscheduler`.
    pub fn forward(&self, seconds: u64) {
        self.forwarded.fetch_add(seconds, Ordering::Relaxed);
    }

    /// The sum of all such moves.
    pub fn forwarded(&self) -> u64 {
        self.forwarded.load(Ordering::Relaxed)
    }

    /// A copy of the estimator, to be saved.
    pub fn copy(&self) -> Estimator {
        self.current().clone()
    }

    /// Counts what is unconfirmed as a failure to confirm, at the end.
    pub fn flush_unconfirmed(&self) {
        self.current().flush_unconfirmed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimator::TxInfo;
    use lydian_primitives::Txid;

    fn waiting(estimates: &FeeEstimates) -> usize {
        lock(&estimates.queue).size
    }

    /// limit: QUEUE_MAX at
    /// limit: QUEUE_MAX above
    #[test]
    fn a_full_queue_is_applied_by_the_thread_that_fills_it() {
        let estimates = FeeEstimates::default();
        estimates.push(vec![Event::Removed(Txid([1; 32])); QUEUE_MAX - 2]);
        let tx = TxInfo { txid: Txid([2; 32]), feerate: 1_000, height: 0 };
        estimates.push(vec![Event::Block { height: 1, txs: vec![tx] }]);
        assert_eq!(waiting(&estimates), QUEUE_MAX);
        estimates.push(vec![Event::Removed(Txid([1; 32]))]);
        assert_eq!(waiting(&estimates), 0);
    }

    #[test]
    fn a_question_comes_after_every_event() {
        let estimates = FeeEstimates::default();
        let tx = TxInfo { txid: Txid([2; 32]), feerate: 1_000, height: 0 };
        estimates.push(vec![Event::Added { tx, counts: true }]);
        assert_eq!((waiting(&estimates), estimates.copy().tracked(), waiting(&estimates)), (1, 1, 0));
        estimates.push(vec![Event::Block { height: 1, txs: vec![tx] }]);
        assert_eq!(estimates.copy().tracked(), 0);
    }
}
