//! Records the history of the node, every 10 seconds, until it is dropped.
//!
//! Input: the parts of the node. Output: the file `history.dat` (crate `dashboard`), and lines in the log about it. A
//! thread of its own opens the file, which is read once, and writes one slot for each interval. If the file cannot be
//! opened or written, the log says why once, and the next attempt is made later; the node goes on.

mod reading;
mod series;

use super::PageNode;
use crate::clock::{now, now_nanos};
use lydian_dashboard::Past;
use lydian_dashboard::history::{History, HistoryError};
use lydian_stdx::{IgnorePoison, lock};
use reading::Reading;
use series::{SERIES, Sample};
use std::io;
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Intervals between two attempts to open the file.
const OPEN_INTERVALS: u64 = 6;

/// The history, once it is open.
pub(super) type Slot = OnceLock<Arc<History>>;

/// A running recorder.
#[derive(Debug)]
pub(super) struct Recorder {
    ending: Arc<Ending>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Ending {
    is_ended: Mutex<bool>,
    changed: Condvar,
}

impl Recorder {
    pub(super) fn start(node: &Arc<PageNode>) -> io::Result<Recorder> {
        let ending = Arc::<Ending>::default();
        let writer = Writer { node: Arc::clone(node), ending: Arc::clone(&ending), problem: None };
        let thread = thread::Builder::new().name("page-history".to_owned()).spawn(move || writer.run())?;
        Ok(Recorder { ending, thread: Some(thread) })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        *lock(&self.ending.is_ended) = true;
        self.ending.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // If it panicked, that is in the log.
            let _ = thread.join();
        }
    }
}

impl Past for PageNode {
    fn history(&self) -> Option<Arc<History>> {
        self.machine.history.get().cloned()
    }
}

struct Writer {
    node: Arc<PageNode>,
    ending: Arc<Ending>,
    /// What was last logged about the file.
    problem: Option<String>,
}

impl Writer {
    fn run(mut self) {
        let mut history = self.open();
        let mut before: Option<(u64, Reading)> = None;
        let mut intervals = 0;
        while self.wait() {
            intervals += 1;
            if history.is_none() && intervals % OPEN_INTERVALS == 0 {
                history = self.open();
            }
            let Some(history) = &history else { continue };
            let (nanos, reading) = (now_nanos(), Reading::new(&self.node));
            let sample = Sample {
                before: before.as_ref().map(|(_, reading)| reading),
                now: &reading,
                seconds: before.as_ref().map_or(0.0, |(then, _)| Duration::from_nanos(nanos - then).as_secs_f64()),
            };
            // The interval that has just ended.
            let time = u64::from(now()).saturating_sub(STEP / 2);
            let written = history.record(time, &series::values(&sample));
            self.note(written.map_err(HistoryError::from), "the last 10 seconds are not recorded");
            before = Some((nanos, reading));
        }
        if let Some(history) = history {
            self.note(history.sync().map_err(HistoryError::from), "the last minutes may be lost");
        }
    }

    /// Waits for the end of an interval. Returns false at the end of the node.
    fn wait(&self) -> bool {
        let left = Duration::from_secs(STEP - u64::from(now()) % STEP);
        let is_ended = lock(&self.ending.is_ended);
        let waited = self.ending.changed.wait_timeout_while(is_ended, left, |is_ended| !*is_ended);
        !*waited.ignore_poison().0
    }

    fn open(&mut self) -> Option<Arc<History>> {
        let machine = &self.node.machine;
        let opened = History::open(machine.disk.as_ref(), &machine.datadir, &SERIES, now().into());
        let history = match opened {
            Ok((history, remarks)) => {
                remarks.iter().for_each(|remark| machine.log.warning(remark));
                Ok(Arc::new(history))
            }
            Err(error) => Err(error),
        };
        let history = self.note(history, "the page has no history")?;
        // It is opened once.
        let _ = self.node.machine.history.set(Arc::clone(&history));
        Some(history)
    }

    /// Logs a problem once, and its end.
    fn note<T>(&mut self, result: Result<T, HistoryError>, consequence: &str) -> Option<T> {
        let log = &self.node.machine.log;
        match result {
            Ok(value) => {
                if self.problem.take().is_some() {
                    log.info("The history of the page is recorded again.");
                }
                Some(value)
            }
            Err(error) => {
                let words = format!("History of the page: {error}; {consequence}");
                if self.problem.as_ref() != Some(&words) {
                    log.warning(&words);
                    self.problem = Some(words);
                }
                None
            }
        }
    }
}

/// Seconds of an interval.
const STEP: u64 = 10;
