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

mod job;
mod schedule;
#[cfg(test)]
mod shuttled;
mod state;
mod tasks;
mod window;
pub(crate) mod workers;

/// The primitives that [`workers`] is built on; its tests provide their own.
mod sync {
    pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
    pub(super) use std::thread::scope;
}

use crate::chainstate::followers::Standing;
use crate::chainstate::manager::ChainstateManager;
use crate::chainstate::settings::Cancel;
use crate::error::EngineError;
use crate::event::Observer;
use crate::limits::{REVIEW_DEPTH_MAX, REVIEW_RUN_BLOCKS_MAX};
use crate::meter::Stage;
use job::Job;
use lydian_chain::HeaderId;
use schedule::{Bounds, Feed, Next, Schedule};
use state::{Run, State};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tasks::{Report, Work};
use window::Window;
use workers::{Crew, Step, work_off};

pub(crate) use state::{Failure, PathBlock};

/// The result of a run: the number of blocks committed and, if it failed before the end of the path, the failure and
/// its block.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) committed: usize,
    pub(crate) failure: Option<(HeaderId, Failure)>,
    /// Every block of the path is committed.
    pub(crate) is_whole: bool,
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
        verifiers: settings.verifiers(),
        bytes_max: settings.window_bytes,
        blocks_max: settings.window_blocks,
        batch_inputs: settings.batch_inputs,
    };
    let feed = |index: usize| match chainstate.followers.place(index).standing {
        Standing::InStep => feed_of(chainstate, index),
        Standing::Behind | Standing::Joining | Standing::Failed => Feed::No,
    };
    let feeds: Vec<Feed> = (0..chainstate.followers.slots().len()).map(feed).collect();
    let sizes = path.iter().map(|path_block| path_block.position.size).collect();
    let is_at_tip = is_at_tip(chainstate, &path);
    let run = Run {
        chainstate,
        more,
        cancel,
        observer,
        is_at_tip: AtomicBool::new(is_at_tip),
        is_starved: AtomicBool::new(false),
        windows: std::array::from_fn(|partition| Mutex::new(Window::new(partition))),
    };
    let state = State {
        schedule: Schedule::new(bounds, sizes, &feeds),
        path,
        jobs: VecDeque::new(),
        first_job: 0,
        retired: Vec::new(),
        failure: None,
    };
    let state = work_off(&run, state, settings.workers);
    chainstate.meter.has_in_window(0, 0);
    let state = state?;
    let committed = state.schedule.committed();
    // A failure above the block where the run was cancelled does not count.
    let failure = state.failure.filter(|(index, _)| *index == committed);
    let failure = failure.map(|(index, failure)| (state.path[index].id, failure));
    Ok(Outcome { committed, failure, is_whole: committed == state.path.len() })
}

/// How a follower that is in step is fed.
fn feed_of(chainstate: &ChainstateManager, index: usize) -> Feed {
    if chainstate.followers.slots()[index].preparer.is_some() { Feed::PreparedBlocks } else { Feed::Blocks }
}

/// Whether the run is at the tip: a short run that ends near the best header.
fn is_at_tip(chainstate: &ChainstateManager, path: &[PathBlock]) -> bool {
    let tree = chainstate.tree();
    let Some(last) = path.last() else { return false };
    let left = tree.height(tree.best_header()).0.saturating_sub(tree.height(last.id).0);
    path.len() <= REVIEW_RUN_BLOCKS_MAX && left <= REVIEW_DEPTH_MAX
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
        if self.chainstate.followers.has_joining() {
            self.admit(state);
        }
        let next = state.schedule.next();
        let (blocks, bytes) = state.schedule.window();
        self.chainstate.meter.has_in_window(blocks, bytes);
        match next {
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

    fn wait_for_lock<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.chainstate.meter.time(Stage::Lock, wait)
    }
}
