//! Commands that people hang on events (`-startupnotify`, `-shutdownnotify`, `-blocknotify`). Input: a command for `sh`. Output: a process; a
//! failure is a line in the log, never more.
//!
//! Each command is waited for by a thread of its own that sleeps meanwhile, at most [`COMMANDS_MAX`] at once; a block that comes while so many
//! run is not told, the next one is.

use crate::limits::COMMANDS_MAX;
use crate::log::Log;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Runs commands.
#[derive(Clone, Debug)]
pub(crate) struct Notifier {
    log: Arc<Log>,
    running: Arc<AtomicUsize>,
}

impl Notifier {
    pub(crate) fn new(log: &Arc<Log>) -> Notifier {
        Notifier { log: Arc::clone(log), running: Arc::default() }
    }

    /// Starts the commands with `%s` replaced, and goes on.
    pub(crate) fn start(&self, commands: &[String], replacement: &str) {
        for command in commands {
            if self.running.fetch_add(1, Ordering::SeqCst) >= COMMANDS_MAX {
                self.running.fetch_sub(1, Ordering::SeqCst);
                self.log.warning(format!("'{command}' was not run: {COMMANDS_MAX} commands run already"));
                continue;
            }
            let (this, command) = (self.clone(), command.replace("%s", replacement));
            let spawned = thread::Builder::new().name("notify".to_owned()).spawn(move || {
                this.run(&command);
                this.running.fetch_sub(1, Ordering::SeqCst);
            });
            if let Err(error) = spawned {
                self.running.fetch_sub(1, Ordering::SeqCst);
                self.log.warning(format!("a command was not run: {error}"));
            }
        }
    }

    /// Runs the commands and waits for them: before shutdown.
    pub(crate) fn run_all(&self, commands: &[String]) {
        thread::scope(|scope| {
            for command in commands {
                scope.spawn(|| self.run(command));
            }
        });
    }

    fn run(&self, command: &str) {
        match Command::new("/bin/sh").arg("-c").arg(command).stdin(Stdio::null()).status() {
            Ok(status) if status.success() => {}
            Ok(status) => self.log.warning(format!("'{command}' failed: {status}")),
            Err(error) => self.log.warning(format!("'{command}' could not be run: {error}")),
        }
    }
}
