//! A run: blocks of one chain, starting on top of the tip, go through all steps on `workers` threads.
//!
//! Input: a path of headers whose blocks are stored, and a callback that returns the blocks that follow its end. Blocks
//! that arrive meanwhile join the run, so that a sync is one run as long as blocks arrive faster than they are
//! validated. Output: the valid blocks at the start of the path, committed, and the reason why the run ended. The order
//! of everything is decided by [`schedule`]; the work of a task is in [`tasks`]. Threads exist as long as the run;
//! their number, which includes the caller's, is that of the settings ([`workers`]).
//!
//! Invariants: the failure of a block is reported once all blocks below it are committed, and no block above it is ever
//! committed; a disk error ends the run and is not a verdict; a cancelled run applies all committed blocks and drops
//! the others.

pub(crate) mod job;
mod schedule;
#[cfg(test)]
mod shuttled;
mod tasks;
pub(crate) mod window;
mod workers;

/// The primitives that [`workers`] is built on; its tests provide their own.
mod sync {
    pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
    pub(super) use std::thread::scope;
}

use crate::chainstate::manager::ChainstateManager;
use crate::chainstate::settings::Cancel;
use crate::error::EngineError;
use crate::event::{Observer, UnreadableReason};
use crate::limits::{REVIEW_DEPTH_MAX, REVIEW_RUN_BLOCKS_MAX};
use crate::meter::Stage;
use crate::run::job::Job;
use crate::run::window::Window;
use lydian_chain::{BlockPosition, HeaderId};
use lydian_coins::PARTITIONS;
use lydian_consensus::Violation;
use lydian_primitives::Height;
use schedule::{Bounds, Next, Schedule};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tasks::{Report, Work};
use workers::{Crew, Step, work_off};

/// A block of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathBlock {
    pub(crate) id: HeaderId,
    pub(crate) position: BlockPosition,
    pub(crate) is_trusted: bool,
}

/// The result of a run: the number of blocks committed and, if it failed before the end of the path, the failure and
/// its block.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) committed: usize,
    pub(crate) failure: Option<(HeaderId, Failure)>,
    /// Every block of the path is committed.
    pub(crate) is_whole: bool,
}

/// The block after the last committed one cannot be connected.
#[derive(Debug)]
pub(crate) enum Failure {
    Invalid(Violation),
    Unreadable(UnreadableReason),
}

/// Validates the path, and the blocks that `more` returns for its last block.
pub(crate) fn run(
    chainstate: &ChainstateManager,
    path: Vec<PathBlock>,
    more: &(dyn Fn(HeaderId) -> Vec<PathBlock> + Sync),
    cancel: &Cancel,
    observer: &dyn Observer,
) -> Result<Outcome, EngineError> {
    let settings = &chainstate.settings;
    let bounds = Bounds {
        workers: settings.workers,
        bytes_max: settings.window_bytes,
        blocks_max: settings.window_blocks,
        batch_inputs: settings.batch_inputs,
        followers: chainstate.followers.len(),
    };
    let sizes = path.iter().map(|path_block| path_block.position.size).collect();
    let is_reviewed = is_at_tip(chainstate, &path) && settings.signatures.is_watched();
    let run = Run {
        chainstate,
        more,
        cancel,
        observer,
        is_reviewed: AtomicBool::new(is_reviewed),
        is_starved: AtomicBool::new(false),
        windows: std::array::from_fn(|partition| Mutex::new(Window::new(partition))),
    };
    let state = State {
        schedule: Schedule::new(bounds, sizes),
        path,
        jobs: VecDeque::new(),
        first_job: 0,
        retired: Vec::new(),
        failure: None,
    };
    let state = work_off(&run, state, settings.workers)?;
    let committed = state.schedule.committed();
    // A failure above the block where the run was cancelled does not count.
    let failure = state.failure.filter(|(index, _)| *index == committed);
    let failure = failure.map(|(index, failure)| (state.path[index].id, failure));
    Ok(Outcome { committed, failure, is_whole: committed == state.path.len() })
}

/// Whether the run is at the tip: a short run that ends near the best header.
fn is_at_tip(chainstate: &ChainstateManager, path: &[PathBlock]) -> bool {
    let tree = chainstate.tree();
    let Some(last) = path.last() else { return false };
    let left = tree.height(tree.best_header()).0.saturating_sub(tree.height(last.id).0);
    path.len() <= REVIEW_RUN_BLOCKS_MAX && left <= REVIEW_DEPTH_MAX
}

/// The state shared by all workers of a run.
struct Run<'a> {
    chainstate: &'a ChainstateManager,
    more: &'a (dyn Fn(HeaderId) -> Vec<PathBlock> + Sync),
    cancel: &'a Cancel,
    observer: &'a dyn Observer,
    /// Whether its blocks are queued for a review once they are committed.
    is_reviewed: AtomicBool,
    /// No block is left to read, but there are headers of more.
    is_starved: AtomicBool,
    windows: [Mutex<Window>; PARTITIONS],
}

struct State {
    schedule: Schedule,
    path: Vec<PathBlock>,
    /// The blocks that were read, from index `first_job` on.
    jobs: VecDeque<Option<Arc<Job>>>,
    first_job: usize,
    /// Blocks retired since the last report: freeing one takes long, so it is done outside the lock.
    retired: Vec<Arc<Job>>,
    /// The lowest block that cannot be connected.
    failure: Option<(usize, Failure)>,
}

impl State {
    fn job(&self, index: usize) -> Arc<Job> {
        match self.jobs.get(index - self.first_job) {
            Some(Some(job)) => Arc::clone(job),
            _ => panic!("a task is about blocks that were read and are not retired"),
        }
    }

    fn jobs(&self, range: Range<usize>) -> Vec<Arc<Job>> {
        range.map(|index| self.job(index)).collect()
    }

    fn insert(&mut self, job: Arc<Job>) {
        let place = job.index - self.first_job;
        if self.jobs.len() <= place {
            self.jobs.resize(place + 1, None);
        }
        self.jobs[place] = Some(job);
    }

    fn fail(&mut self, index: usize, failure: Failure) {
        if index < self.schedule.end() {
            self.schedule.end_at(index);
            self.failure = Some((index, failure));
        }
    }

    /// Moves retired blocks to `retired`.
    fn retire(&mut self) {
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
    fn extend(&self, state: &mut State) {
        let Some(last) = state.path.last() else { return };
        let more = (self.more)(last.id);
        state.schedule.extend(more.iter().map(|path_block| path_block.position.size));
        state.path.extend(more);
        if state.path.len() > REVIEW_RUN_BLOCKS_MAX {
            self.is_reviewed.store(false, Ordering::Relaxed);
        }
    }
}

impl Run<'_> {
    /// Whether the header of the next block is known but its data is missing.
    fn is_starved(&self, state: &State) -> bool {
        let Some(last) = state.path.last().filter(|_| state.schedule.takes_more()) else { return false };
        let tree = self.chainstate.tree();
        let stop_at = self.chainstate.settings.stop_at.unwrap_or(Height(u32::MAX));
        tree.height(last.id) < tree.height(tree.best_header()).min(stop_at)
    }
}

impl Crew for Run<'_> {
    type State = State;
    type Work = Work;
    type Report = Report;
    type Error = EngineError;
    type Rest = Vec<Arc<Job>>;

    fn next(&self, state: &mut State) -> Step<Work> {
        if self.cancel.is_cancelled() {
            let end = state.schedule.uncommitted_from();
            state.schedule.end_at(end);
        } else if state.schedule.takes_more() {
            self.extend(state);
        }
        match state.schedule.next() {
            Next::Task(task) => Step::Work(self.prepare(state, task)),
            Next::Wait => {
                self.is_starved.store(self.is_starved(state), Ordering::Relaxed);
                Step::Wait
            }
            Next::Done => Step::Done,
        }
    }

    fn perform(&self, work: Work) -> Result<Report, EngineError> {
        Run::perform(self, work)
    }

    fn enter(&self, state: &mut State, report: Report) -> Option<Vec<Arc<Job>>> {
        Run::enter(self, state, report);
        (!state.retired.is_empty()).then(|| std::mem::take(&mut state.retired))
    }

    fn wait<T>(&self, wait: impl FnOnce() -> T) -> T {
        let stage = if self.is_starved.load(Ordering::Relaxed) { Stage::Blocks } else { Stage::Wait };
        self.chainstate.meter.time(stage, wait)
    }
}
