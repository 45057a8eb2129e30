//! The node, from its settings to its end. Input: [`Settings`]. Output: an exit code.
//!
//! Order, as in Core: into the background, the directory and its lock, the log, the pid file, signals, the commands of `-startupnotify`, the
//! work, the commands of `-shutdownnotify`, the pid file away.

use crate::daemon;
use crate::datadir::{DataDir, DataDirError};
use crate::exit;
use crate::log::Log;
use crate::notify::Notifier;
use crate::settings::Settings;
use crate::signals::{self, Stop};
use lydian_disk::{Disk, RealDisk};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `work` between a good start and a clean end; `has_console` where the settings say nothing of `-printtoconsole`.
pub(crate) fn run(settings: &Settings, has_console: bool, work: impl FnOnce(&Session<'_>) -> u8) -> u8 {
    if settings.daemon && !daemon::is_background() {
        return daemon::start();
    }
    if settings.daemon && !settings.daemonwait {
        daemon::ready();
    }
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let directory = match DataDir::open(settings, disk.as_ref()) {
        Ok(directory) => directory,
        Err(error) => {
            daemon::complain(&error.to_string());
            return match error {
                DataDirError::Disk(_) => exit::DISK,
                _ => exit::DIRECTORY,
            };
        }
    };
    let has_console = settings.log.console.unwrap_or(has_console && !settings.daemon);
    let log = Arc::new(Log::new(Arc::clone(&disk), &settings.log, has_console));
    greet(settings, &log);
    if let Err(error) = log.open(settings.log.shrink) {
        daemon::complain(&format!("Could not open debug log file {error}"));
        return exit::DISK;
    }
    let stop = Stop::default();
    if let Err(error) = signals::catch(&stop, &log) {
        daemon::complain(&format!("signals cannot be caught: {error}"));
        return exit::DIRECTORY;
    }
    if let Some(pid) = &settings.pid
        && let Err(error) = disk.write_whole(pid, format!("{}\n", process::id()).as_bytes())
    {
        daemon::complain(&format!("Unable to create the PID file {error}"));
        return exit::DISK;
    }
    let notifier = Notifier::new(&log);
    notifier.start(&settings.startupnotify, "");
    let session =
        Session { settings, disk, log, stop, notifier, has_console, is_shutdown_announced: AtomicBool::new(false) };
    let code = work(&session);
    session.announce_shutdown();
    if let Some(pid) = &settings.pid
        && let Err(error) = session.disk.remove(pid)
    {
        session.log.warning(format!("Unable to remove PID file: {error}"));
    }
    session.log.info("Shutdown done");
    drop(directory);
    code
}

/// What every part of a running node needs.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) log: Arc<Log>,
    pub(crate) stop: Stop,
    pub(crate) notifier: Notifier,
    /// The log goes to stdout.
    pub(crate) has_console: bool,
    is_shutdown_announced: AtomicBool,
}

impl Session<'_> {
    /// Runs the commands of `-shutdownnotify`, once; what is left to do comes after them.
    pub(crate) fn announce_shutdown(&self) {
        if !self.is_shutdown_announced.swap(true, Ordering::Relaxed) {
            self.notifier.run_all(&self.settings.shutdownnotify);
        }
    }
}

/// The first lines of the log: Core's.
fn greet(settings: &Settings, log: &Log) {
    log.info(format!("Lydian version {}", env!("CARGO_PKG_VERSION")));
    if let Some(default) = &settings.default_datadir {
        log.info(format!("Default data directory {}", default.display()));
    }
    log.info(format!("Using data directory {}", settings.datadir.display()));
    match &settings.conf {
        None => log.info("Config file: <disabled>"),
        Some(path) if settings.has_conf => log.info(format!("Config file: {}", path.display())),
        Some(path) => log.info(format!("Config file: {} (not found, skipping)", path.display())),
    }
    settings.arguments.iter().for_each(|line| log.info(line));
    settings.warnings.iter().for_each(|line| log.warning(line));
}
