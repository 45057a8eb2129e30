//! Runs users' commands on events (`-startupnotify`, `-shutdownnotify`, `-blocknotify`, `-alertnotify`). Input: a
//! command for `sh`. Output: a process; a failure is only logged.
//!
//! At most [`COMMANDS_MAX`] processes of a command run at once; a sleeping thread waits for each. One more event may
//! wait, and a newer event replaces it. So the command always runs for the newest event, and for the events before it
//! only as far as it keeps up. (Core starts a process for each event, however many run.) Memory: one waiting event for
//! each command in the settings.

use crate::daemon::MARK;
use crate::limits::COMMANDS_MAX;
use crate::log::Log;
use lydian_stdx::lock;
use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// Runs commands.
#[derive(Clone, Debug)]
pub(crate) struct Notifier {
    log: Arc<Log>,
    /// By command, as written in the settings.
    queues: Arc<Mutex<HashMap<String, Queue>>>,
}

/// The processes of one command.
#[derive(Debug, Default)]
struct Queue {
    running: usize,
    /// The replacement of `%s` for the next process, if one waits.
    pending: Option<String>,
}

impl Notifier {
    pub(crate) fn new(log: &Arc<Log>) -> Notifier {
        Notifier { log: Arc::clone(log), queues: Arc::default() }
    }

    /// Starts the commands with `%s` replaced, now or as soon as another process of the same command has ended. Does
    /// not wait for them.
    pub(crate) fn start(&self, commands: &[String], replacement: &str) {
        for command in commands {
            {
                let mut queues = self.lock();
                let queue = queues.entry(command.clone()).or_default();
                if queue.running >= COMMANDS_MAX {
                    queue.pending = Some(replacement.to_owned());
                    continue;
                }
                queue.running += 1;
            }
            let (this, owned, replacement) = (self.clone(), command.clone(), replacement.to_owned());
            let spawned =
                thread::Builder::new().name("notify".to_owned()).spawn(move || this.work(&owned, replacement));
            if let Err(error) = spawned {
                self.lock().entry(command.clone()).and_modify(|queue| queue.running -= 1);
                self.log.warning(format!("a command was not run: {error}"));
            }
        }
    }

    /// Runs a command, then again for the event that waits meanwhile.
    fn work(&self, command: &str, mut replacement: String) {
        loop {
            self.run(&command.replace("%s", &replacement));
            let mut queues = self.lock();
            let Some(queue) = queues.get_mut(command) else { return };
            match queue.pending.take() {
                Some(next) => replacement = next,
                None => {
                    queue.running -= 1;
                    return;
                }
            }
        }
    }

    /// Starts the waiting commands without waiting for them, because the node is ending.
    #[allow(clippy::zombie_processes, reason = "the process ends, and the system takes its children over")]
    pub(crate) fn flush(&self) {
        let mut queues = self.lock();
        for (command, queue) in queues.iter_mut() {
            let Some(replacement) = queue.pending.take() else { continue };
            let command = command.replace("%s", &replacement);
            if let Err(error) = shell(&command).spawn() {
                self.log.warning(format!("'{command}' could not be run: {error}"));
            }
        }
    }

    /// Runs the commands and waits for them, before the shutdown.
    pub(crate) fn run_all(&self, commands: &[String]) {
        thread::scope(|scope| {
            for command in commands {
                scope.spawn(|| self.run(command));
            }
        });
    }

    fn run(&self, command: &str) {
        match shell(command).status() {
            Ok(status) if status.success() => {}
            // The status as returned by `system`.
            Ok(status) => {
                self.log.warning(format!("runCommand error: system({command}) returned {}", status.into_raw()));
            }
            Err(error) => self.log.warning(format!("runCommand error: /bin/sh cannot be started: {error}")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Queue>> {
        lock(&self.queues)
    }
}

fn shell(text: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(text).env_remove(MARK).stdin(Stdio::null());
    command
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the commands write files")]
mod tests {
    use super::*;
    use crate::log::{Categories, Levels, LogForm};
    use crate::settings::LogSettings;
    use lydian_disk::{Disk, SimDisk, read_whole};
    use std::path::{Path, PathBuf};

    fn notifier() -> (SimDisk, Notifier) {
        let disk = SimDisk::new(0);
        let settings = LogSettings {
            file: Some("/debug.log".into()),
            console: None,
            has_micros: false,
            shrink: false,
            categories: Categories::default(),
            levels: Levels::default(),
            form: LogForm::default(),
        };
        let log = Arc::new(Log::new(Arc::new(disk.clone()), &settings, false));
        log.open(false).unwrap();
        (disk, Notifier::new(&log))
    }

    fn log(disk: &dyn Disk) -> String {
        String::from_utf8(read_whole(disk, Path::new("/debug.log"), 1 << 20).unwrap()).unwrap()
    }

    #[test]
    fn a_failure_is_logged() {
        let (disk, notifier) = notifier();
        notifier.run_all(&["true".to_owned(), "exit 3".to_owned()]);
        assert!(log(&disk).ends_with("[warning] runCommand error: system(exit 3) returned 768\n"), "{}", log(&disk));
    }

    #[test]
    fn the_replacement_is_put_in() {
        let (disk, notifier) = notifier();
        notifier.start(&["test %s = abc || exit 9".to_owned()], "abc");
        notifier.start(&["exit %s".to_owned()], "4");
        notifier.finish();
        assert!(log(&disk).contains("runCommand error: system(exit 4) returned 1024") && !log(&disk).contains("abc"));
    }

    impl Notifier {
        fn count(&self, of: impl Fn(&Queue) -> usize) -> usize {
            self.lock().values().map(of).sum()
        }

        fn running(&self) -> usize {
            self.count(|queue| queue.running)
        }

        fn finish(&self) {
            while self.running() > 0 {
                thread::yield_now();
            }
        }
    }

    /// The lines that a command wrote.
    fn lines(file: &Path) -> Vec<String> {
        std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// A file that commands write to, and one whose existence lets them end.
    fn files(name: &str) -> (PathBuf, PathBuf) {
        let folder = std::env::temp_dir().join(format!("lydian-notify-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        (folder.join("told"), folder.join("go"))
    }

    /// A slow command of `-blocknotify`: 16 blocks arrived while it ran, and no command was run for the blocks after
    /// them, so that a program that waited for the tip missed it until the next block. Now the newest event waits, and
    /// its command starts when another ends.
    ///
    /// limit: COMMANDS_MAX at
    /// limit: COMMANDS_MAX above
    #[test]
    fn the_newest_event_is_never_lost() {
        let (told, go) = files("newest");
        let (_, notifier) = notifier();
        let (told_at, go_at) = (told.display(), go.display());
        let command = format!("while [ ! -e {go_at} ]; do sleep 0.02; done; echo %s >> {told_at}");
        let event = |number: usize| notifier.start(std::slice::from_ref(&command), &number.to_string());
        (0..COMMANDS_MAX).for_each(event);
        assert_eq!(
            (notifier.running(), notifier.count(|queue| usize::from(queue.pending.is_some()))),
            (COMMANDS_MAX, 0)
        );
        (COMMANDS_MAX..COMMANDS_MAX + 5).for_each(event);
        assert_eq!(
            (notifier.running(), notifier.count(|queue| usize::from(queue.pending.is_some()))),
            (COMMANDS_MAX, 1)
        );
        // Another command has its own processes.
        notifier.start(&[format!("echo other >> {told_at}")], "");
        while !lines(&told).contains(&"other".to_owned()) {
            thread::yield_now();
        }
        std::fs::write(&go, "").unwrap();
        notifier.finish();
        let mut seen = lines(&told);
        seen.sort();
        let mut expected: Vec<String> = (0..COMMANDS_MAX).map(|number| number.to_string()).collect();
        expected.extend([(COMMANDS_MAX + 4).to_string(), "other".to_owned()]);
        expected.sort();
        assert_eq!(seen, expected);
    }

    /// A node that ends while commands are slow still starts the command for the newest event.
    #[test]
    fn what_waits_is_started_at_the_end() {
        let (told, go) = files("end");
        let (_, notifier) = notifier();
        let command = format!("echo %s >> {}; while [ ! -e {} ]; do sleep 0.02; done", told.display(), go.display());
        (0..=COMMANDS_MAX).for_each(|number| notifier.start(std::slice::from_ref(&command), &number.to_string()));
        notifier.flush();
        while !lines(&told).contains(&COMMANDS_MAX.to_string()) {
            thread::yield_now();
        }
        std::fs::write(&go, "").unwrap();
        notifier.finish();
        assert_eq!(lines(&told).len(), COMMANDS_MAX + 1);
    }
}
