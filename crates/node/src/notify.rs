//! Commands that people hang on events (`-startupnotify`, `-shutdownnotify`, `-blocknotify`). Input: a command for `sh`. Output: a process; a
//! failure is a line in the log, never more.
//!
//! Each command is waited for by a thread of its own that sleeps meanwhile, at most [`COMMANDS_MAX`] at once; a block that comes while so many
//! run is not told, the next one is.

use crate::daemon::MARK;
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
        match Command::new("/bin/sh").arg("-c").arg(command).env_remove(MARK).stdin(Stdio::null()).status() {
            Ok(status) if status.success() => {}
            Ok(status) => self.log.warning(format!("'{command}' failed: {status}")),
            Err(error) => self.log.warning(format!("'{command}' could not be run: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Categories, Levels};
    use crate::settings::LogSettings;
    use lydian_disk::{Disk, SimDisk, read_whole};
    use std::path::Path;

    fn notifier() -> (SimDisk, Notifier) {
        let disk = SimDisk::new(0);
        let settings = LogSettings {
            file: Some("/debug.log".into()),
            console: None,
            has_micros: false,
            shrink: false,
            categories: Categories::default(),
            levels: Levels::default(),
        };
        let log = Arc::new(Log::new(Arc::new(disk.clone()), &settings, false));
        log.open(false).unwrap();
        (disk, Notifier::new(&log))
    }

    fn log(disk: &dyn Disk) -> String {
        String::from_utf8(read_whole(disk, Path::new("/debug.log"), 1 << 20).unwrap()).unwrap()
    }

    #[test]
    fn a_failure_is_told_in_the_log() {
        let (disk, notifier) = notifier();
        notifier.run_all(&["true".to_owned(), "exit 3".to_owned()]);
        assert!(log(&disk).ends_with("[warning] 'exit 3' failed: exit status: 3\n"), "{}", log(&disk));
    }

    #[test]
    fn the_replacement_is_put_in() {
        let (disk, notifier) = notifier();
        notifier.start(&["test %s = abc || exit 9".to_owned()], "abc");
        notifier.start(&["exit %s".to_owned()], "4");
        while notifier.running.load(Ordering::SeqCst) > 0 {
            thread::yield_now();
        }
        assert!(log(&disk).contains("'exit 4' failed: exit status: 4") && !log(&disk).contains("abc"));
    }

    /// limit: COMMANDS_MAX at
    /// limit: COMMANDS_MAX above
    #[test]
    fn only_so_many_run_at_once() {
        for (count, refused) in [(COMMANDS_MAX, 0), (COMMANDS_MAX + 1, 1)] {
            let (disk, notifier) = notifier();
            notifier.start(&vec!["sleep 0.5".to_owned(); count], "");
            assert_eq!(log(&disk).matches("was not run").count(), refused);
            while notifier.running.load(Ordering::SeqCst) > 0 {
                thread::yield_now();
            }
        }
    }
}
