//! The thread that validates stored blocks.
//!
//! It starts when the blocks that were on disk at startup have been loaded. Input: wake-ups. Output: a longer chain;
//! invalid blocks reported to the manager; the end of the node if the disk fails. One run of the engine also processes
//! blocks that arrive meanwhile.

use crate::{Events, Host};
use lydian_engine::{Cancel, Engine, EngineError, InitialDownload, Observer};
use lydian_p2p::driver;
use lydian_stdx::{IgnorePoison, lock};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// One slice of the wait for blocks.
const SLICE: Duration = Duration::from_millis(100);

/// Why validation ended before shutdown was requested.
#[derive(Debug)]
pub enum ValidationEnd {
    /// The height of `-stopatheight` was reached.
    Stopped,
    /// The disk failed.
    Failed(EngineError),
}

/// Validates stored blocks.
pub struct Validator {
    engine: Arc<Engine>,
    observer: Arc<dyn Observer + Send>,
    events: Events,
    initial_download: Arc<InitialDownload>,
    host: Arc<dyn Host>,
    cancel: Cancel,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    has_work: bool,
    is_ending: bool,
    end: Option<ValidationEnd>,
}

impl std::fmt::Debug for Validator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Validator").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Validator {
    pub(crate) fn new(
        engine: Arc<Engine>,
        observer: Arc<dyn Observer + Send>,
        events: Events,
        initial_download: Arc<InitialDownload>,
        host: Arc<dyn Host>,
    ) -> Validator {
        let state = Mutex::new(State { has_work: true, ..State::default() });
        let (cancel, changed) = (Cancel::new(), Condvar::new());
        Validator { engine, observer, events, initial_download, host, cancel, state, changed }
    }

    /// Signals that there may be blocks to validate.
    pub fn wake(&self) {
        self.lock().has_work = true;
        self.changed.notify_all();
    }

    /// Returns why validation ended, if it did. The node should then stop too.
    pub fn end(&self) -> Option<ValidationEnd> {
        self.lock().end.take()
    }

    /// Whether [`Validator::end`] has something to return.
    pub fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Cancels validation. The thread ends once its current tasks are done.
    pub(crate) fn stop(&self) {
        self.cancel.cancel();
        self.lock().is_ending = true;
        self.changed.notify_all();
    }

    pub(crate) fn fail(&self, error: EngineError) {
        self.set_end(ValidationEnd::Failed(error));
    }

    fn set_end(&self, end: ValidationEnd) {
        self.lock().end.get_or_insert(end);
        self.host.validation_ended();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn work(&self) {
        while self.wait() {
            match self.engine.advance(&self.cancel, self.observer.as_ref()) {
                Ok(advance) => {
                    let is_stopped = advance.is_stopped;
                    driver::validated(advance).for_each(|event| self.send(event));
                    if is_stopped {
                        self.set_end(ValidationEnd::Stopped);
                    }
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Waits for work. Returns false if the validator must stop.
    fn wait(&self) -> bool {
        let mut state = self.lock();
        while (!state.has_work || self.initial_download.is_loading()) && !state.is_ending {
            if self.initial_download.is_loading() {
                // The engine works for the thread that loads the blocks; this does not count as waiting for blocks of
                // peers.
                state = self.changed.wait_timeout(state, SLICE).ignore_poison().0;
                continue;
            }
            // In slices, so that the waiting time is reported while it passes.
            let waited = self.engine.await_blocks(|| self.changed.wait_timeout(state, SLICE));
            state = waited.ignore_poison().0;
        }
        state.has_work = false;
        !state.is_ending
    }

    fn send(&self, event: driver::Event) {
        // If there is no receiver, the network is ending.
        let _ = self.events.blocking_send(event.into());
    }
}
