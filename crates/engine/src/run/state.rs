//! The state of a run: the path, its blocks between reading and retirement, and the windows.
//!
//! Input: blocks read, failures, and the progress of the schedule. Output: the blocks of a task, and those retired.
//! Invariant: a block is dropped outside the lock of the workers. It must never decide what is done next.

use super::job::Job;
use super::schedule::Schedule;
use super::window::Window;
use crate::chainstate::followers::Standing;
use crate::chainstate::manager::ChainstateManager;
use crate::chainstate::settings::Cancel;
use crate::event::{Observer, UnreadableReason};
use crate::limits::REVIEW_RUN_BLOCKS_MAX;
use lydian_chain::{BlockPosition, HeaderId};
use lydian_coins::PARTITIONS;
use lydian_consensus::Violation;
use lydian_primitives::Height;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A block of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathBlock {
    pub(crate) id: HeaderId,
    pub(crate) position: BlockPosition,
    pub(crate) is_trusted: bool,
}

/// The block after the last committed one cannot be connected.
#[derive(Debug)]
pub(crate) enum Failure {
    Invalid(Violation),
    Unreadable(UnreadableReason),
}

/// The state shared by all workers of a run.
pub(super) struct Run<'a> {
    pub(super) chainstate: &'a ChainstateManager,
    pub(super) more: &'a (dyn Fn(HeaderId) -> Vec<PathBlock> + Sync),
    pub(super) cancel: &'a Cancel,
    pub(super) observer: &'a dyn Observer,
    /// Whether its blocks are at the tip: they are queued for a review once they are committed, and have an event.
    pub(super) is_at_tip: AtomicBool,
    /// No block is left to read, but there are headers of more.
    pub(super) is_starved: AtomicBool,
    pub(super) windows: [Mutex<Window>; PARTITIONS],
}

pub(super) struct State {
    pub(super) schedule: Schedule,
    pub(super) path: Vec<PathBlock>,
    /// The blocks that were read, from index `first_job` on.
    pub(super) jobs: VecDeque<Option<Arc<Job>>>,
    pub(super) first_job: usize,
    /// Blocks retired since the last report: freeing one takes long, so it is done outside the lock.
    pub(super) retired: Vec<Arc<Job>>,
    /// The lowest block that cannot be connected.
    pub(super) failure: Option<(usize, Failure)>,
}

impl State {
    pub(super) fn job(&self, index: usize) -> Arc<Job> {
        match self.jobs.get(index - self.first_job) {
            Some(Some(job)) => Arc::clone(job),
            _ => panic!("a task is about blocks that were read and are not retired"),
        }
    }

    pub(super) fn jobs(&self, range: Range<usize>) -> Vec<Arc<Job>> {
        range.map(|index| self.job(index)).collect()
    }

    pub(super) fn insert(&mut self, job: Arc<Job>) {
        let place = job.index - self.first_job;
        if self.jobs.len() <= place {
            self.jobs.resize(place + 1, None);
        }
        self.jobs[place] = Some(job);
    }

    pub(super) fn fail(&mut self, index: usize, failure: Failure) {
        if index < self.schedule.end() {
            self.schedule.end_at(index);
            self.failure = Some((index, failure));
        }
    }

    /// Moves retired blocks to `retired`.
    pub(super) fn retire(&mut self) {
        while self.first_job < self.schedule.base()
            && let Some(job) = self.jobs.pop_front()
        {
            self.retired.extend(job);
            self.first_job += 1;
        }
    }
}

impl Run<'_> {
    /// Extends the run with blocks that arrived since its path was made.
    pub(super) fn extend(&self, state: &mut State) {
        let Some(last) = state.path.last() else { return };
        let more = (self.more)(last.id);
        state.schedule.extend(more.iter().map(|path_block| path_block.position.size));
        state.path.extend(more);
        if state.path.len() > REVIEW_RUN_BLOCKS_MAX {
            self.is_at_tip.store(false, Ordering::Relaxed);
        }
    }

    /// Whether the header of the next block is known but its data is missing.
    pub(super) fn is_starved(&self, state: &State) -> bool {
        let Some(last) = state.path.last().filter(|_| state.schedule.takes_more()) else { return false };
        let tree = self.chainstate.tree();
        let stop_at = self.chainstate.settings.stop_at.unwrap_or(Height(u32::MAX));
        tree.height(last.id) < tree.height(tree.best_header()).min(stop_at)
    }

    /// Takes over followers that caught up, if their next block is still here; refuses the others, which go on
    /// catching up.
    pub(super) fn admit(&self, state: &mut State) {
        let followers = &self.chainstate.followers;
        for index in followers.with(Standing::Joining) {
            let next = followers.place(index).at.and_then(|at| self.index_after(state, at));
            match next.filter(|next| state.schedule.joinable().contains(next)) {
                Some(next) if followers.change(index, Standing::Joining, Standing::InStep) => {
                    state.schedule.join(index, next, super::feed_of(self.chainstate, index));
                }
                _ => drop(followers.change(index, Standing::Joining, Standing::Behind)),
            }
        }
    }

    /// The index in the path of the block after `id`.
    fn index_after(&self, state: &State, id: HeaderId) -> Option<usize> {
        let first = state.path.first()?.id;
        let tree = self.chainstate.tree();
        if tree.parent(first) == Some(id) {
            return Some(0);
        }
        let index = tree.height(id).0.checked_sub(tree.height(first).0)? as usize;
        state.path.get(index).filter(|path_block| path_block.id == id).map(|_| index + 1)
    }
}
