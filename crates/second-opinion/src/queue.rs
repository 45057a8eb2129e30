//! The queue of blocks that wait for the verifier.
//!
//! Input: blocks, from the engine. Output: the blocks in order, for one thread. Invariants: to offer a block never
//! waits for the verifier; the bytes of the blocks that wait and of the one that is being verified are bounded, or
//! there is only one block.

use crate::limits::{SAMPLE_BYTES_MAX, TIP_BYTES_MAX};
use crate::report::Why;
use lydian_consensus::Coin;
use lydian_primitives::{Block, BlockHash, Height, RawBlock};
use lydian_stdx::{IgnorePoison, lock};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

/// A block to verify.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) why: Why,
    pub(crate) height: Height,
    pub(crate) hash: BlockHash,
    /// Without the tables of a parsed block, which take twice its bytes again.
    pub(crate) block: RawBlock,
    /// In the order of the inputs, without the coinbase.
    pub(crate) spent: Vec<Coin>,
}

/// The bytes that a job for a block takes in memory.
pub(crate) fn cost(block: &Block, spent: &[Coin]) -> usize {
    let scripts: usize = spent.iter().map(|coin| coin.script_pubkey.len()).sum();
    block.as_bytes().len() + size_of_val(spent) + scripts
}

/// The queue. For use from any thread.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// As in the state, readable without a lock.
    is_ended: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Each with its cost.
    jobs: VecDeque<(Job, usize)>,
    /// The costs of the jobs that wait and of the one that was taken.
    held: usize,
    /// The cost of the job that was taken and is not done.
    taken: usize,
    is_busy: bool,
    is_ended: bool,
}

impl Queue {
    /// Queues a job of a given cost, unless there is no room for it or the queue has ended. Returns whether it did.
    pub(crate) fn offer(&self, why: Why, cost: usize, make: impl FnOnce() -> Job) -> bool {
        {
            let mut state = lock(&self.state);
            if state.is_ended || !has_room(why, state.held, cost) {
                return false;
            }
            state.held += cost;
            state.jobs.push_back((make(), cost));
        }
        self.changed.notify_all();
        true
    }

    /// Waits for the next job; `None` at the end.
    pub(crate) fn take(&self) -> Option<Job> {
        let mut state = lock(&self.state);
        loop {
            if state.is_ended {
                return None;
            }
            if let Some((job, cost)) = state.jobs.pop_front() {
                (state.is_busy, state.taken) = (true, cost);
                return Some(job);
            }
            state = self.changed.wait(state).ignore_poison();
        }
    }

    /// The job that was taken last is done.
    pub(crate) fn done(&self) {
        {
            let mut state = lock(&self.state);
            state.held -= state.taken;
            (state.is_busy, state.taken) = (false, 0);
        }
        self.changed.notify_all();
    }

    /// Ends the queue. Returns why each job that still waited was chosen.
    pub(crate) fn end(&self) -> Vec<Why> {
        self.is_ended.store(true, Ordering::Release);
        let left = {
            let mut state = lock(&self.state);
            state.is_ended = true;
            std::mem::take(&mut state.jobs)
        };
        self.changed.notify_all();
        left.iter().map(|(job, _)| job.why).collect()
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }

    /// Waits until no job waits and none is being done, or the queue has ended.
    pub(crate) fn wait_until_idle(&self) {
        let mut state = lock(&self.state);
        while !state.is_ended && (state.is_busy || !state.jobs.is_empty()) {
            state = self.changed.wait(state).ignore_poison();
        }
    }
}

/// Whether a job may join others; one job is always allowed.
fn has_room(why: Why, held: usize, cost: usize) -> bool {
    let max = match why {
        Why::Tip => TIP_BYTES_MAX,
        Why::Sample => SAMPLE_BYTES_MAX,
    };
    held == 0 || held.saturating_add(cost) <= max
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_consensus::{Chain, Params};

    fn job(why: Why, height: u32) -> Job {
        let params = Params::new(Chain::Regtest);
        Job { why, height: Height(height), hash: params.genesis_hash, block: params.genesis_block(), spent: Vec::new() }
    }

    /// limit: TIP_BYTES_MAX at
    /// limit: TIP_BYTES_MAX above
    #[test]
    fn blocks_at_the_tip_are_bounded() {
        assert!(has_room(Why::Tip, 0, TIP_BYTES_MAX + 1), "one block is always allowed");
        assert!(has_room(Why::Tip, 1, TIP_BYTES_MAX - 1) && has_room(Why::Tip, TIP_BYTES_MAX - 7, 7));
        assert!(!has_room(Why::Tip, 1, TIP_BYTES_MAX) && !has_room(Why::Tip, TIP_BYTES_MAX - 7, 8));
        assert!(!has_room(Why::Tip, 1, usize::MAX));
    }

    /// limit: SAMPLE_BYTES_MAX at
    /// limit: SAMPLE_BYTES_MAX above
    #[test]
    fn the_sample_leaves_room_for_the_tip() {
        assert!(has_room(Why::Sample, SAMPLE_BYTES_MAX - 7, 7) && !has_room(Why::Sample, SAMPLE_BYTES_MAX - 7, 8));
        let queue = Queue::default();
        assert!(queue.offer(Why::Sample, SAMPLE_BYTES_MAX - 1, || job(Why::Sample, 1)));
        assert!(queue.offer(Why::Sample, 1, || job(Why::Sample, 2)));
        assert!(!queue.offer(Why::Sample, 1, || job(Why::Sample, 3)));
        assert!(queue.offer(Why::Tip, TIP_BYTES_MAX - SAMPLE_BYTES_MAX, || job(Why::Tip, 4)));
        assert!(!queue.offer(Why::Tip, 1, || job(Why::Tip, 5)));
        // What was taken counts until it is done.
        assert_eq!(queue.take().unwrap().height, Height(1));
        assert!(!queue.offer(Why::Tip, 1, || job(Why::Tip, 6)));
        queue.done();
        assert!(queue.offer(Why::Tip, 1, || job(Why::Tip, 7)));
        assert_eq!(queue.end(), [Why::Sample, Why::Tip, Why::Tip]);
        assert!(queue.is_ended() && queue.take().is_none() && queue.end().is_empty());
        assert!(!queue.offer(Why::Tip, 1, || job(Why::Tip, 8)));
        queue.wait_until_idle();
    }

    #[test]
    fn the_cost_counts_block_and_coins() {
        let block = job(Why::Tip, 0).block.parse().unwrap();
        let coin = |length: usize| Coin {
            value: lydian_primitives::Amount(1),
            script_pubkey: vec![0; length].into(),
            height: Height(1),
            is_coinbase: false,
        };
        let alone = cost(&block, &[]);
        assert_eq!(alone, block.as_bytes().len());
        assert_eq!(cost(&block, &[coin(10_000), coin(0)]), alone + 10_000 + 2 * size_of::<Coin>());
    }
}
