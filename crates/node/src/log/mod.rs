//! `debug.log`, in Bitcoin Core's line form. Input: messages with a level and a category. Output: lines in the file and on the console.
//!
//! `2026-11-20T12:00:00Z message`; with a category or a level other than information `[validation] message`, `[warning] message`,
//! `[validation:trace] message`. Invariants: one line is one write, so that lines of threads do not mix; a disk that fails takes the file
//! away, never the node; no control character reaches a terminal; no place of the program fills the disk, whoever
//! provokes it ([`rate`]). Before the log is opened, messages wait (at most
//! [`LINES_WAITING_MAX`]). Cost: one system call a line.

mod category;
mod lines;
mod rate;

pub(crate) use category::{Categories, Category, Levels};
pub(crate) use lines::{TipLine, iso8601, progress, update_tip};

use crate::clock::now_micros;
use crate::limits::{LINES_WAITING_MAX, LOG_KEPT_BYTES, LOG_SHRINK_BYTES};
use crate::settings::LogSettings;
use lydian_disk::{AppendFile, Disk, DiskError, DiskErrorKind, OwnDir, OwnFile, Proof};
use rate::{Place, RateLimit, Verdict};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The log.
pub(crate) const LOG_FILES: &[OwnFile] = &[OwnFile { name: "*", proof: Proof::Option }];

/// The log of one process.
#[derive(Debug)]
pub(crate) struct Log {
    /// Bits of [`Categories`]; they may be switched while the node runs.
    categories: AtomicU32,
    levels: Levels,
    has_micros: bool,
    wants_reopening: AtomicBool,
    sink: Mutex<Sink>,
}

#[derive(Debug)]
struct Sink {
    disk: Arc<dyn Disk>,
    path: Option<PathBuf>,
    file: Option<Box<dyn AppendFile>>,
    has_console: bool,
    is_open: bool,
    waiting: VecDeque<String>,
    limit: RateLimit,
}

/// Of a message. The order is that of weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Trace,
    Debug,
    Info,
    Warning,
    Error,
}

impl Level {
    pub(crate) const ALL: [Level; 5] = [Level::Trace, Level::Debug, Level::Info, Level::Warning, Level::Error];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Level::Trace => "trace",
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

impl Log {
    /// A log that keeps its lines until it is opened.
    pub(crate) fn new(disk: Arc<dyn Disk>, settings: &LogSettings, has_console: bool) -> Log {
        let path = settings.file.clone().filter(|path| path != Path::new("/dev/null"));
        let sink = Sink {
            disk,
            path,
            file: None,
            has_console,
            is_open: false,
            waiting: VecDeque::new(),
            limit: RateLimit::default(),
        };
        Log {
            categories: AtomicU32::new(settings.categories.bits()),
            levels: settings.levels.clone(),
            has_micros: settings.has_micros,
            wants_reopening: AtomicBool::new(false),
            sink: Mutex::new(sink),
        }
    }

    /// Shrinks and opens the file, and writes what waits.
    pub(crate) fn open(&self, shrink: bool) -> Result<(), DiskError> {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = sink.path.clone() {
            if shrink {
                shrink_file(sink.disk.as_ref(), &path)?;
            }
            let mut file = own(&path).append(sink.disk.as_ref(), &path)?;
            // Core tells runs apart by empty lines.
            file.write(b"\n\n\n\n\n")?;
            sink.file = Some(file);
        }
        sink.is_open = true;
        while let Some(line) = sink.waiting.pop_front() {
            sink.write(&line);
        }
        Ok(())
    }

    /// The next line opens the file anew: somebody moved it away.
    pub(crate) fn reopen(&self) {
        self.wants_reopening.store(true, Ordering::Relaxed);
    }

    #[track_caller]
    pub(crate) fn info(&self, message: impl fmt::Display) {
        self.line(None, Level::Info, Some(Location::caller()), &message.to_string());
    }

    /// A line that nobody can provoke, and that may come often.
    pub(crate) fn info_unlimited(&self, message: impl fmt::Display) {
        self.line(None, Level::Info, None, &message.to_string());
    }

    #[track_caller]
    pub(crate) fn warning(&self, message: impl fmt::Display) {
        self.line(None, Level::Warning, Some(Location::caller()), &message.to_string());
    }

    #[track_caller]
    pub(crate) fn error(&self, message: impl fmt::Display) {
        self.line(None, Level::Error, Some(Location::caller()), &message.to_string());
    }

    /// A line for those who asked for the category; the message is made only then.
    pub(crate) fn debug<T: fmt::Display>(&self, category: Category, message: impl FnOnce() -> T) {
        if self.categories().contains(category) && self.levels.of(category) <= Level::Debug {
            self.line(Some(category), Level::Debug, None, &message().to_string());
        }
    }

    /// What is logged now.
    pub(crate) fn categories(&self) -> Categories {
        Categories::from_bits(self.categories.load(Ordering::Relaxed))
    }

    /// Switches a category, or all of them; false if there is none of this name.
    pub(crate) fn set_category(&self, name: &str, is_on: bool) -> bool {
        let mut changed = Categories::default();
        let is_known = changed.enable(name).is_ok();
        match is_on {
            true => self.categories.fetch_or(changed.bits(), Ordering::Relaxed),
            false => self.categories.fetch_and(!changed.bits(), Ordering::Relaxed),
        };
        is_known
    }

    fn line(&self, category: Option<Category>, level: Level, place: Option<Place>, message: &str) {
        self.line_at(now_micros(), category, level, place, message);
    }

    fn line_at(&self, now: u64, category: Option<Category>, level: Level, place: Option<Place>, message: &str) {
        let framed = |level, text: &str| format!("{} {}{text}\n", stamp(now, self.has_micros), prefix(category, level));
        let line = framed(level, &escape(message));
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        if !sink.is_open {
            if sink.waiting.len() == LINES_WAITING_MAX {
                sink.waiting.pop_front();
            }
            sink.waiting.push_back(line);
            return;
        }
        if self.wants_reopening.swap(false, Ordering::Relaxed)
            && let Some(file) = sink.path.as_ref().and_then(|path| own(path).append(sink.disk.as_ref(), path).ok())
        {
            sink.file = Some(file);
        }
        for told in sink.limit.turn(now) {
            sink.write(&framed(Level::Warning, &told));
        }
        let verdict = place.map_or(Verdict::Write, |place| sink.limit.take(place, line.len()));
        if let (Some(place), Verdict::WriteLast) = (place, verdict) {
            sink.write(&framed(Level::Warning, &rate::warning(place)));
        }
        match verdict {
            Verdict::Drop => sink.tell_console(&line),
            // Core marks what is written while something is held back.
            _ if sink.limit.is_suppressing() => sink.write(&format!("[*] {line}")),
            _ => sink.write(&line),
        }
    }
}

impl Sink {
    fn tell_console(&self, line: &str) {
        if self.has_console {
            // Nobody is left to be told that nobody is left.
            let _ = io::stdout().lock().write_all(line.as_bytes());
        }
    }

    fn write(&mut self, line: &str) {
        self.tell_console(line);
        // A log that cannot be written must not stop what it tells about.
        if self.file.as_mut().is_some_and(|file| file.write(line.as_bytes()).is_err()) {
            self.file = None;
        }
    }
}

/// Keeps the end of a file that has grown too long.
fn shrink_file(disk: &dyn Disk, path: &Path) -> Result<(), DiskError> {
    let file = match disk.open(path) {
        Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    if file.size() <= LOG_SHRINK_BYTES {
        return Ok(());
    }
    let mut bytes = vec![0; usize::try_from(LOG_KEPT_BYTES).unwrap_or(0)];
    file.read_at(file.size() - LOG_KEPT_BYTES, &mut bytes)?;
    own(path).replace(disk, path, &bytes)
}

/// `-debuglogfile`, by default in a data directory that is ours: the log is not opened before that is known.
fn own(path: &Path) -> OwnDir {
    OwnDir::of(path, LOG_FILES)
}

fn stamp(micros: u64, has_micros: bool) -> String {
    let seconds = iso8601(i64::try_from(micros / 1_000_000).unwrap_or(0));
    match has_micros {
        true => format!("{}.{:06}Z", seconds.trim_end_matches('Z'), micros % 1_000_000),
        false => seconds,
    }
}

/// Core's `GetLogPrefix`: a category without a level is debug, a level without a category is everything's.
fn prefix(category: Option<Category>, level: Level) -> String {
    match (category, level) {
        (None, Level::Info) => String::new(),
        (None, level) => format!("[{}] ", level.name()),
        (Some(category), Level::Debug) => format!("[{}] ", category.name()),
        (Some(category), level) => format!("[{}:{}] ", category.name(), level.name()),
    }
}

/// Control characters as `\x1b`; a line stays a line.
fn escape(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for letter in message.trim_end_matches('\n').chars() {
        match letter {
            letter if letter >= ' ' && letter != '\x7f' => out.push(letter),
            '\n' => out.push('\n'),
            letter => out.push_str(&format!("\\x{:02x}", u32::from(letter))),
        }
    }
    out
}

#[cfg(test)]
mod tests;
