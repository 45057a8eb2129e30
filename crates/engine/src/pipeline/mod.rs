//! A run: blocks of one chain, from the first that stands on the tip, through all steps by `workers` threads.
//!
//! Input: a path of headers whose blocks are stored, and who tells what follows on its end: blocks that came meanwhile join the run,
//! so that a sync is one run as long as blocks come faster than they are validated. Output: as many of them committed as are valid, and why it ended. The
//! order of everything is [`schedule`]'s; what a task does is [`tasks`]'. Threads live as long as the run and are as many as
//! the settings say, the caller's among them ([`workers`]). Invariants: a block that fails is told about once all below it are
//! committed, and nothing above it ever is; an error of the disk ends the run and is no verdict; a run that is cancelled
//! leaves committed blocks applied and forgets the others.

mod schedule;
#[cfg(test)]
mod shuttled;
mod tasks;
mod workers;

/// What [`workers`] is made of; its tests bring their own.
mod sync {
    pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
    pub(super) use std::thread::scope;
}

use crate::core::Core;
use crate::error::EngineError;
use crate::event::{Observer, UnreadableReason};
use crate::job::Job;
use crate::limits::{REVIEW_DEPTH_MAX, REVIEW_RUN_BLOCKS_MAX};
use crate::meter::Stage;
use crate::settings::Cancel;
use crate::window::Window;
use lydian_chain::{BlockPosition, NodeId};
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
pub(crate) struct Stop {
    pub(crate) id: NodeId,
    pub(crate) position: BlockPosition,
    pub(crate) is_trusted: bool,
}

/// How a run ended: blocks committed, what stopped it before the end of the path, and at which block.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) committed: usize,
    pub(crate) failure: Option<(NodeId, Failure)>,
    /// Every block of the path is committed.
    pub(crate) is_whole: bool,
}

/// The block after the last committed one cannot be connected.
#[derive(Debug)]
pub(crate) enum Failure {
    Invalid(Violation),
    Unreadable(UnreadableReason),
}

/// Validates the path, and what `more` says follows on its last block.
pub(crate) fn run(
    core: &Core,
    path: Vec<Stop>,
    more: &(dyn Fn(NodeId) -> Vec<Stop> + Sync),
    cancel: &Cancel,
    observer: &dyn Observer,
) -> Result<Outcome, EngineError> {
    let settings = &core.settings;
    let bounds = Bounds {
        workers: settings.workers,
        bytes_max: settings.window_bytes,
        blocks_max: settings.window_blocks,
        batch_inputs: settings.batch_inputs,
        followers: core.followers.len(),
    };
    let sizes = path.iter().map(|stop| stop.position.size).collect();
    let is_reviewed = is_at_tip(core, &path) && settings.signatures.is_watched();
    let run = Run {
        core,
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
    // A failure above a block where the run was cancelled is none.
    let failure = state.failure.filter(|(index, _)| *index == committed);
    let failure = failure.map(|(index, failure)| (state.path[index].id, failure));
    Ok(Outcome { committed, failure, is_whole: committed == state.path.len() })
}

/// Whether this is no catching up: a short run that ends near the best header.
fn is_at_tip(core: &Core, path: &[Stop]) -> bool {
    let tree = core.tree();
    let Some(last) = path.last() else { return false };
    let left = tree.height(tree.best_header()).0.saturating_sub(tree.height(last.id).0);
    path.len() <= REVIEW_RUN_BLOCKS_MAX && left <= REVIEW_DEPTH_MAX
}

/// What all workers of a run share.
struct Run<'a> {
    core: &'a Core,
    more: &'a (dyn Fn(NodeId) -> Vec<Stop> + Sync),
    cancel: &'a Cancel,
    observer: &'a dyn Observer,
    /// Its blocks wait for a review once they are committed.
    is_reviewed: AtomicBool,
    /// Nothing is left to read, and headers tell of more.
    is_starved: AtomicBool,
    windows: [Mutex<Window>; PARTITIONS],
}

struct State {
    schedule: Schedule,
    path: Vec<Stop>,
    /// The blocks that are read, from index `first_job` on.
    jobs: VecDeque<Option<Arc<Job>>>,
    first_job: usize,
    /// Blocks let go of since anybody looked: to free one takes long.
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

    /// Lets go of retired blocks.
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
    /// Lets the run go on with blocks that came since its path was made.
    fn extend(&self, state: &mut State) {
        let Some(last) = state.path.last() else { return };
        let more = (self.more)(last.id);
        state.schedule.extend(more.iter().map(|stop| stop.position.size));
        state.path.extend(more);
        if state.path.len() > REVIEW_RUN_BLOCKS_MAX {
            self.is_reviewed.store(false, Ordering::Relaxed);
        }
    }
}

impl Run<'_> {
    /// Whether the next block is not here although its header is.
    fn is_starved(&self, state: &State) -> bool {
        let Some(last) = state.path.last().filter(|_| state.schedule.takes_more()) else { return false };
        let tree = self.core.tree();
        let stop_at = self.core.settings.stop_at.unwrap_or(Height(u32::MAX));
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
        self.core.meter.time(stage, wait)
    }
}
