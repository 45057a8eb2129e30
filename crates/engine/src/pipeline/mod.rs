//! A run: blocks of one chain, from the first that stands on the tip, through all steps by `workers` threads.
//!
//! Input: a path of headers whose blocks are stored. Output: as many of them committed as are valid, and why it ended. The
//! order of everything is [`schedule`]'s; what a task does is [`tasks`]'. Threads live as long as the run and are as many as
//! the settings say, the caller's among them; between tasks they hold one lock for a few operations. Invariants: a block
//! that fails is told about once all below it are committed, and nothing above it ever is; an error of the disk ends the run
//! and is no verdict; a run that is cancelled leaves committed blocks applied and forgets the others.

mod schedule;
mod tasks;

use crate::core::Core;
use crate::error::EngineError;
use crate::event::{Observer, UnreadableReason};
use crate::job::{Job, lock};
use crate::meter::Stage;
use crate::settings::Cancel;
use crate::window::Window;
use lydian_chain::{BlockPosition, NodeId};
use lydian_coins::PARTITIONS;
use lydian_consensus::Violation;
use schedule::{Bounds, Next, Schedule};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

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

/// How often a worker without work looks whether the run is cancelled.
const CANCEL_INTERVAL: Duration = Duration::from_millis(50);

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
        state: Mutex::new(State {
            schedule: Schedule::new(bounds, sizes),
            jobs: VecDeque::new(),
            first_job: 0,
            failure: None,
            error: None,
            is_panicking: false,
        }),
        wake: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 1..settings.workers {
            scope.spawn(|| run.work());
        }
        run.work();
    });
    let state = run.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = state.error {
        return Err(error);
    }
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
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    schedule: Schedule,
    /// The blocks that are read, from index `first_job` on.
    jobs: VecDeque<Option<Arc<Job>>>,
    first_job: usize,
    /// The lowest block that cannot be connected.
    failure: Option<(usize, Failure)>,
    error: Option<EngineError>,
    is_panicking: bool,
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
        while self.first_job < self.schedule.base() && self.jobs.pop_front().is_some() {
            self.first_job += 1;
        }
    }
}

/// Tells the others if its thread panics: they would wait for its report for ever.
struct PanicGuard<'r, 'a>(&'r Run<'a>);

impl Drop for PanicGuard<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.state).is_panicking = true;
            self.0.wake.notify_all();
        }
    }
}

impl Run<'_> {
    fn work(&self) {
        let _guard = PanicGuard(self);
        let mut state = lock(&self.state);
        loop {
            if state.error.is_some() || state.is_panicking {
                self.wake.notify_all();
                return;
            }
            if self.cancel.is_cancelled() {
                let end = state.schedule.uncommitted_from();
                state.schedule.end_at(end);
            }
            match state.schedule.next() {
                Next::Done => {
                    self.wake.notify_all();
                    return;
                }
                Next::Wait => {
                    state = self.core.meter.time(Stage::Wait, || {
                        let result = self.wake.wait_timeout(state, CANCEL_INTERVAL);
                        result.unwrap_or_else(PoisonError::into_inner).0
                    });
                }
                Next::Task(task) => {
                    let work = self.prepare(&state, task);
                    drop(state);
                    let report = self.perform(work);
                    state = lock(&self.state);
                    match report {
                        Ok(report) => self.enter(&mut state, report),
                        Err(error) => state.error = state.error.take().or(Some(error)),
                    }
                    self.wake.notify_all();
                }
            }
        }
    }
}
