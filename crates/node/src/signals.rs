//! Signals. Input: SIGINT and SIGTERM (stop), SIGHUP (open the log anew). Output: [`Stop`], a flag that everything at work looks at.
//!
//! The thread that waits for signals does nothing else. A second stop is answered with a line: what was begun is finished first.

use crate::log::Log;
use lydian_engine::Cancel;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

/// Whether the node shall stop. A clone is the same flag; the engine looks at it between tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    cancel: Cancel,
    changed: Arc<(Mutex<()>, Condvar)>,
}

impl Stop {
    /// Asks for it; false if it was asked for already.
    pub(crate) fn ask(&self) -> bool {
        let _guard = self.changed.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !self.cancel.is_cancelled();
        self.cancel.cancel();
        self.changed.1.notify_all();
        is_first
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.cancel.is_cancelled()
    }

    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Sleeps until it is asked for.
    pub(crate) fn wait(&self) {
        let mut guard = self.changed.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_asked() {
            guard = self.changed.1.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Catches signals from here on.
pub(crate) fn catch(stop: &Stop, log: &Arc<Log>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let (stop, log) = (stop.clone(), Arc::clone(log));
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGHUP => log.reopen(),
                _ if stop.ask() => log.info("Shutdown requested. Exiting."),
                _ => {
                    log.info("Shutdown is already in progress.");
                    // Nobody is left to be told that nobody is left.
                    let _ = writeln!(
                        io::stderr().lock(),
                        "Lydian is already stopping; it writes what it has validated first."
                    );
                }
            }
        }
    })?;
    Ok(())
}
