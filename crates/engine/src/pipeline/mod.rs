//! A run: blocks of one chain, from the first that stands on the tip, through all steps by `workers` threads.
//!
//! Input: a path of headers whose blocks are stored. Output: as many of them committed as are valid, and why it ended. The
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
use crate::meter::Stage;
use crate::settings::Cancel;
use crate::window::Window;
use lydian_chain::{BlockPosition, NodeId};
use lydian_coins::PARTITIONS;
use lydian_consensus::Violation;
use schedule::{Bounds, Next, Schedule};
use std::collections::VecDeque;
use std::ops::Range;
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

/// How a run ended: blocks committed, and what stopped it before the end of the path.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) committed: usize,
    pub(crate) failure: Option<Failure>,
}

/// The block after the last committed one cannot be connected.
#[derive(Debug)]
pub(crate) enum Failure {
    Invalid(Violation),
    Unreadable(UnreadableReason),
}

/// Validates the path.
pub(crate) fn run(
    core: &Core,
    path: &[Stop],
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
    let run = Run {
        core,
        path,
        cancel,
        observer,
        windows: std::array::from_fn(|partition| Mutex::new(Window::new(partition))),
    };
    let state = State {
        schedule: Schedule::new(bounds, sizes),
        jobs: VecDeque::new(),
        first_job: 0,
        retired: Vec::new(),
        failure: None,
    };
    let state = work_off(&run, state, settings.workers)?;
    let committed = state.schedule.committed();
    // A failure above a block where the run was cancelled is none.
    let failure = state.failure.filter(|(index, _)| *index == committed).map(|(_, failure)| failure);
    Ok(Outcome { committed, failure })
}

/// What all workers of a run share.
struct Run<'a> {
    core: &'a Core,
    path: &'a [Stop],
    cancel: &'a Cancel,
    observer: &'a dyn Observer,
    windows: [Mutex<Window>; PARTITIONS],
}

struct State {
    schedule: Schedule,
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
        }
        match state.schedule.next() {
            Next::Task(task) => Step::Work(self.prepare(state, task)),
            Next::Wait => Step::Wait,
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
        self.core.meter.time(Stage::Wait, wait)
    }
}
