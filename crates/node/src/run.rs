//! The node, from its settings to its end. Input: [`Settings`]. Output: an exit code.
//!
//! Order, as in Core: switch to the background, lock the directory, open the log, catch signals, write the pid file, do
//! the work (which starts the commands of `-startupnotify`), run the commands of `-shutdownnotify`, remove the pid
//! file.

use crate::answers::Parts;
use crate::build;
use crate::clock;
use crate::daemon;
use crate::datadir::{DataDir, DataDirError};
use crate::exit;
use crate::listening::Listening;
use crate::log::{Log, iso8601};
use crate::notify::Notifier;
use crate::service;
use crate::settings::Settings;
use crate::signals::{self, Hangups, Stop};
use lydian_disk::{Change, Disk, DiskError, DiskErrorKind, OwnDir, OwnFile, Proof, RealDisk};
use lydian_engine::InitialDownload;
use lydian_options::Notice;
use lydian_rpc::Warnings;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

/// Runs `work` between the start and the clean end of the node. `has_console` is used if `-printtoconsole` is not set.
///
/// An exit code sent through `leave` ends the process at once, no matter what is running.
pub(crate) fn run(
    settings: &Settings,
    has_console: bool,
    leave: &SyncSender<u8>,
    work: impl FnOnce(&Session<'_>) -> u8,
) -> u8 {
    if settings.daemon && !daemon::is_background() {
        // Core probes the locks before it forks, so that the first process reports what is wrong. They are released
        // before the background process takes them.
        let looked = DataDir::open(settings, &RealDisk).map(drop);
        return match looked {
            Ok(()) => daemon::start(settings.log.file.as_deref()),
            Err(error) => refuse(&error),
        };
    }
    if settings.daemon && !settings.daemonwait {
        daemon::ready();
    }
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let directory = match DataDir::open(settings, disk.as_ref()) {
        Ok(directory) => directory,
        Err(error) => return refuse(&error),
    };
    if let Some(file) = &settings.file
        && let Err(problem) = file.write(disk.as_ref())
    {
        daemon::complain(&problem.to_string());
        return exit::DIRECTORY;
    }
    let has_console = settings.log.console.unwrap_or(has_console && !settings.daemon);
    let log = Arc::new(Log::new(Arc::clone(&disk), &settings.log, has_console));
    greet(settings, &log);
    if let Err(error) = log.open(settings.log.shrink) {
        let path = settings.log.file.as_deref().unwrap_or(Path::new("")).display();
        daemon::complain(&format!("Could not open debug log file {path}"));
        log.error(error);
        return exit::DISK;
    }
    if let Some(seconds) = settings.mocktime {
        clock::mock(u64::from(seconds));
    }
    let notifier = Notifier::new(&log);
    let initial_download = Arc::new(InitialDownload::new(settings.minimum_chain_work, settings.max_tip_age_seconds));
    let session = Session {
        settings,
        disk,
        log,
        stop: Stop::default(),
        hangups: Hangups::default(),
        notifier,
        has_console,
        initial_download,
        warnings: Arc::default(),
        listening: Arc::default(),
        ending: Arc::default(),
    };
    let code = live(&session, leave, work);
    drop(directory);
    code
}

/// The pid file. An option sets its name.
pub(crate) const PID_FILES: &[OwnFile] = &[OwnFile { name: "*", proof: Proof::Option }];

fn own_pid(pid: &Path) -> OwnDir {
    OwnDir::of(pid, PID_FILES)
}

/// Core's `SysErrorString`, for the errors that a path can cause.
fn system_words(error: &DiskError) -> String {
    match error.kind {
        DiskErrorKind::NotFound => "No such file or directory (2)".to_owned(),
        DiskErrorKind::PermissionDenied => "Permission denied (13)".to_owned(),
        DiskErrorKind::NotADirectory => "Not a directory (20)".to_owned(),
        DiskErrorKind::IsADirectory => "Is a directory (21)".to_owned(),
        DiskErrorKind::NoSpace => "No space left on device (28)".to_owned(),
        _ => error.to_string(),
    }
}

fn refuse(error: &DataDirError) -> u8 {
    daemon::complain(&error.to_string());
    match error {
        DataDirError::Disk(_) => exit::DISK,
        _ => exit::DIRECTORY,
    }
}

fn live(session: &Session<'_>, leave: &SyncSender<u8>, work: impl FnOnce(&Session<'_>) -> u8) -> u8 {
    let Session { settings, disk, log, stop, hangups, notifier, .. } = session;
    let ending = Ending {
        is_announced: Arc::clone(&session.ending),
        notifier: notifier.clone(),
        commands: settings.shutdownnotify.clone(),
        pid: settings.pid.clone(),
        disk: Arc::clone(disk),
        log: Arc::clone(log),
    };
    let (at_once, leave) = (ending.clone(), leave.clone());
    let end_at_once = move || {
        at_once.end();
        // It is full only if the process is exiting already.
        let _ = leave.try_send(exit::DONE);
    };
    if let Err(error) = signals::catch(stop, hangups, log, end_at_once) {
        daemon::complain(&format!("signals cannot be caught: {error}"));
        return exit::DIRECTORY;
    }
    if let Some(pid) = &settings.pid
        && let Err(error) = own_pid(pid).replace(disk.as_ref(), pid, format!("{}\n", process::id()).as_bytes())
    {
        let reason = system_words(&error);
        daemon::complain(&format!("Unable to create the PID file '{}': {reason}", pid.display()));
        return exit::DISK;
    }
    let code = work(session);
    ending.end();
    code
}

/// The steps at the end of the node, whatever ends it.
#[derive(Clone, Debug)]
struct Ending {
    is_announced: Arc<AtomicBool>,
    notifier: Notifier,
    commands: Vec<String>,
    pid: Option<PathBuf>,
    disk: Arc<dyn Disk>,
    log: Arc<Log>,
}

impl Ending {
    fn end(&self) {
        if !self.is_announced.swap(true, Ordering::Relaxed) {
            self.log.info("Shutdown in progress...");
            service::is_stopping();
            self.notifier.run_all(&self.commands);
        }
        self.notifier.flush();
        if let Some(pid) = &self.pid
            && let Err(error) = own_pid(pid).change(self.disk.as_ref(), pid, Change::Remove)
        {
            self.log.warning(format!("Unable to remove PID file ({}): {error}", pid.display()));
        }
        self.log.info("Shutdown done");
    }
}

/// State that every part of a running node needs.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) log: Arc<Log>,
    pub(crate) stop: Stop,
    pub(crate) hangups: Hangups,
    pub(crate) notifier: Notifier,
    /// Whether the log goes to stdout.
    pub(crate) has_console: bool,
    /// Whether the node is in initial block download.
    pub(crate) initial_download: Arc<InitialDownload>,
    /// The current warnings of the node.
    pub(crate) warnings: Arc<Warnings>,
    /// Where the servers of this process answer.
    pub(crate) listening: Arc<Listening>,
    ending: Arc<AtomicBool>,
}

impl Session<'_> {
    /// What the servers for wallets need.
    pub(crate) fn parts(&self) -> Parts<'_> {
        let Session { settings, disk, log, hangups, listening, .. } = self;
        Parts { settings, disk, log, hangups, listening }
    }

    /// Runs the commands of `-shutdownnotify`, once, before the rest of the shutdown.
    pub(crate) fn announce_shutdown(&self) {
        if !self.ending.swap(true, Ordering::Relaxed) {
            self.log.info("Shutdown in progress...");
            service::is_stopping();
            self.notifier.run_all(&self.settings.shutdownnotify);
        }
    }
}

/// Core's `CLIENT_NAME`.
const CLIENT_NAME: &str = "Lydian";

/// Logs the first lines, as in Core.
fn greet(settings: &Settings, log: &Log) {
    let build = if cfg!(debug_assertions) { "debug build" } else { "release build" };
    log.info(format!("{CLIENT_NAME} version {}", format_args!("v{} ({build})", env!("CARGO_PKG_VERSION"))));
    log.info(build::line());
    log.info("Log output may contain privacy-sensitive information. Be cautious when sharing logs.");
    if !settings.log.form.is_rate_limited {
        log.info("Log rate limiting disabled");
    }
    if !settings.log.form.has_timestamps {
        log.info(format!("Startup time: {}", iso8601(i64::from(clock::now()))));
    }
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
    settings.net.notes.iter().for_each(|line| log.info(line));
    for notice in &settings.notices {
        match notice {
            Notice::Warning(text) | Notice::LogWarning(text) => log.warning(text),
            Notice::LogInfo(text) => log.info(text),
            Notice::Stderr(_) => {}
        }
    }
    let net = &settings.net;
    log.info(format!(
        "Using at most {} automatic connections ({} file descriptors available)",
        net.connections_max, net.descriptors
    ));
    log.info("No wallet support compiled in!");
}
