//! `debug.log`, in Bitcoin Core's line format. Input: messages with a level and a category. Output: lines in the file
//! and on the console.
//!
//! A line is `2026-11-20T12:00:00Z message`; with a category, or a level other than info, it has `[validation]
//! message`, `[warning] message` or `[validation:trace] message`.
//!
//! Invariants: one line is one write, so that lines of different threads do not mix; if the disk fails, the log loses
//! its file and the node continues; no control character reaches a terminal; no place of the program can fill the disk,
//! no matter what provokes it ([`rate`]). The last lines stay in memory for the page ([`recent`]). Before the log is
//! opened, messages wait (at most [`LINES_WAITING_MAX`]). Cost: one system call per line.

mod category;
mod lines;
mod rate;
mod recent;

pub(crate) use category::{Categories, Category, Levels, NAMES as CATEGORIES};
pub(crate) use lines::{TipLine, expected_transactions, iso8601, log2, progress, update_tip};
pub(crate) use recent::Line;

use crate::clock::{mocked, now_micros};
use crate::limits::{LINES_WAITING_MAX, LOG_KEPT_BYTES, LOG_SHRINK_BYTES};
use crate::settings::LogSettings;
use lydian_disk::{AppendFile, Disk, DiskError, DiskErrorKind, OwnDir, OwnFile, Proof};
use lydian_engine::{LogLevel, LogPlace, LogSwitches};
use lydian_stdx::lock;
use rate::{Place, RateLimit, Verdict};
use recent::Recent;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The log file. An option sets its name.
pub(crate) const LOG_FILES: &[OwnFile] = &[OwnFile { name: "*", proof: Proof::Option }];

/// The log of one process.
#[derive(Debug)]
pub(crate) struct Log {
    /// Bits of [`Categories`]; they may change while the node runs.
    categories: AtomicU32,
    levels: Levels,
    has_micros: bool,
    form: LogForm,
    /// The enabled categories, shared with the crates that produce lines.
    switches: LogSwitches,
    wants_reopening: AtomicBool,
    sink: Mutex<Sink>,
    recent: Recent,
}

/// Where lines are written besides the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Console {
    Stdout,
    Stderr,
}

#[derive(Debug)]
struct Sink {
    disk: Arc<dyn Disk>,
    path: Option<PathBuf>,
    file: Option<Box<dyn AppendFile>>,
    console: Option<Console>,
    is_open: bool,
    waiting: VecDeque<String>,
    /// Lines that were dropped because too many waited.
    discarded: usize,
    limit: RateLimit,
}

/// The parts of a line other than its text, and whether places are rate-limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogForm {
    /// `-logtimestamps`
    pub(crate) has_timestamps: bool,
    /// `-logthreadnames`
    pub(crate) has_thread_names: bool,
    /// `-logsourcelocations`
    pub(crate) has_source_locations: bool,
    /// `-loglevelalways`
    pub(crate) has_level_always: bool,
    /// `-logratelimit`
    pub(crate) is_rate_limited: bool,
    /// `-logips`
    pub(crate) has_ips: bool,
}

impl Default for LogForm {
    fn default() -> LogForm {
        LogForm {
            has_timestamps: true,
            has_thread_names: false,
            has_source_locations: false,
            has_level_always: false,
            is_rate_limited: true,
            has_ips: false,
        }
    }
}

/// Severity of a message, in ascending order.
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
        Log::with_console(disk, settings, has_console.then_some(Console::Stdout))
    }

    /// The same with another console.
    pub(crate) fn with_console(disk: Arc<dyn Disk>, settings: &LogSettings, console: Option<Console>) -> Log {
        let path = settings.file.clone().filter(|path| path != Path::new("/dev/null"));
        let sink = Sink {
            disk,
            path,
            file: None,
            console,
            is_open: false,
            waiting: VecDeque::new(),
            discarded: 0,
            limit: RateLimit::default(),
        };
        let log = Log {
            categories: AtomicU32::new(settings.categories.bits()),
            levels: settings.levels.clone(),
            has_micros: settings.has_micros,
            form: settings.form,
            switches: LogSwitches::new(&category::NAMES, settings.form.has_ips),
            wants_reopening: AtomicBool::new(false),
            sink: Mutex::new(sink),
            recent: Recent::default(),
        };
        log.update_switches();
        log
    }

    /// What is logged now, for crates that produce lines. The value follows every change.
    pub(crate) fn switches(&self) -> LogSwitches {
        self.switches.clone()
    }

    fn update_switches(&self) {
        let logged = self.levels.with_debug(self.categories());
        self.switches.set(logged.bits());
    }

    /// Opens the file, shrinking it first if asked, and writes the waiting lines.
    pub(crate) fn open(&self, shrink: bool) -> Result<(), DiskError> {
        let mut sink = lock(&self.sink);
        if let Some(path) = sink.path.clone() {
            if shrink {
                shrink_file(sink.disk.as_ref(), &path)?;
            }
            let mut file = own(&path).append(sink.disk.as_ref(), &path)?;
            // As in Core, empty lines separate runs.
            file.write(b"\n\n\n\n\n")?;
            sink.file = Some(file);
        }
        sink.is_open = true;
        if sink.discarded > 0 {
            let text = format!("Early logging buffer overflowed, {} log lines discarded.", sink.discarded);
            sink.write(&self.framed(now_micros(), None, Level::Info, Location::caller(), &text));
        }
        while let Some(line) = sink.waiting.pop_front() {
            sink.write(&line);
        }
        Ok(())
    }

    /// Makes the next line reopen the file, because it was moved away.
    pub(crate) fn reopen(&self) {
        self.wants_reopening.store(true, Ordering::Relaxed);
    }

    #[track_caller]
    pub(crate) fn info(&self, message: impl fmt::Display) {
        self.limited(Level::Info, Location::caller(), &message);
    }

    /// Logs a frequent line that nothing outside the node can provoke.
    #[track_caller]
    pub(crate) fn info_unlimited(&self, message: impl fmt::Display) {
        self.line_at(now_micros(), None, Level::Info, Source::unlimited(Location::caller()), &message.to_string());
    }

    #[track_caller]
    pub(crate) fn warning(&self, message: impl fmt::Display) {
        self.limited(Level::Warning, Location::caller(), &message);
    }

    #[track_caller]
    pub(crate) fn error(&self, message: impl fmt::Display) {
        self.limited(Level::Error, Location::caller(), &message);
    }

    /// Logs a line if its category is enabled; the message is built only then.
    #[track_caller]
    pub(crate) fn debug<T: fmt::Display>(&self, category: Category, message: impl FnOnce() -> T) {
        if self.is_debug_on(category) {
            let source = Source::unlimited(Location::caller());
            self.line_at(now_micros(), Some(category), Level::Debug, source, &message().to_string());
        }
    }

    /// Logs a line of another crate.
    pub(crate) fn take(&self, level: LogLevel, place: LogPlace, text: &dyn fmt::Display) {
        match level {
            LogLevel::Info => self.limited(Level::Info, place, text),
            LogLevel::Warning => self.limited(Level::Warning, place, text),
            LogLevel::Error => self.limited(Level::Error, place, text),
            LogLevel::Debug(name) => {
                if let Some(category) = Category::find(name).filter(|category| self.is_debug_on(*category)) {
                    let source = Source::unlimited(place);
                    self.line_at(now_micros(), Some(category), Level::Debug, source, &text.to_string());
                }
            }
        }
    }

    fn limited(&self, level: Level, place: Place, text: &dyn fmt::Display) {
        let source = Source { place, is_limited: self.form.is_rate_limited };
        self.line_at(now_micros(), None, level, source, &text.to_string());
    }

    /// Whether debug lines of the category are logged.
    pub(crate) fn is_debug_on(&self, category: Category) -> bool {
        self.categories().contains(category) && self.levels.of(category) <= Level::Debug
    }

    /// The categories that are logged now.
    pub(crate) fn categories(&self) -> Categories {
        Categories::from_bits(self.categories.load(Ordering::Relaxed))
    }

    /// Switches a category, or all of them; returns false if the name is unknown.
    pub(crate) fn set_category(&self, name: &str, is_on: bool) -> bool {
        if let Some(words) = Categories::deprecated(name) {
            self.warning(words);
        }
        let mut changed = Categories::default();
        let is_known = changed.enable(name).is_ok();
        match is_on {
            true => self.categories.fetch_or(changed.bits(), Ordering::Relaxed),
            false => self.categories.fetch_and(!changed.bits(), Ordering::Relaxed),
        };
        self.update_switches();
        is_known
    }

    /// The last lines with their numbers, which count all lines from 1 on.
    pub(crate) fn recent(&self) -> Vec<(u64, Arc<Line>)> {
        self.recent.lines()
    }

    /// Lines that were written so far.
    pub(crate) fn line_count(&self) -> u64 {
        self.recent.count()
    }

    /// The file, if there is one.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        lock(&self.sink).path.clone()
    }

    /// Formats a whole line: Core's `Format`.
    fn framed(&self, now: u64, category: Option<Category>, level: Level, place: Place, message: &str) -> String {
        let mut line = String::with_capacity(message.len() + 64);
        if self.form.has_timestamps {
            line.push_str(&stamp(now, self.has_micros));
            if let Some(mocked) = mocked() {
                line.push_str(&format!(" (mocktime: {})", iso8601(i64::try_from(mocked).unwrap_or(i64::MAX))));
            }
            line.push(' ');
        }
        if self.form.has_thread_names {
            line.push_str(&format!("[{}] ", thread::current().name().unwrap_or("unknown")));
        }
        if self.form.has_source_locations {
            line.push_str(&format!("[{}:{}] [{}] ", place.file(), place.line(), rate::function(place)));
        }
        line.push_str(&prefix(category, level, self.form.has_level_always));
        line.push_str(&escape(message));
        line.push('\n');
        line
    }

    fn line_at(&self, now: u64, category: Option<Category>, level: Level, source: Source, message: &str) {
        let Source { place, is_limited } = source;
        let line = self.framed(now, category, level, place, message);
        let shown = Line::new(now, category, level, message);
        let mut sink = lock(&self.sink);
        if !sink.is_open {
            if sink.waiting.len() == LINES_WAITING_MAX {
                sink.waiting.pop_front();
                sink.discarded += 1;
            }
            sink.waiting.push_back(line);
            self.recent.push(shown);
            return;
        }
        if self.wants_reopening.swap(false, Ordering::Relaxed)
            && let Some(file) = sink.path.as_ref().and_then(|path| own(path).append(sink.disk.as_ref(), path).ok())
        {
            sink.file = Some(file);
        }
        for warning in sink.limit.turn(now) {
            sink.write(&self.framed(now, None, Level::Warning, place, &warning));
            self.recent.push(Line::new(now, None, Level::Warning, &warning));
        }
        let verdict = if is_limited { sink.limit.take(place, line.len()) } else { Verdict::Write };
        // As in Core, lines written while others are suppressed are marked.
        let mark = if sink.limit.is_suppressing() { "[*] " } else { "" };
        if verdict == Verdict::WriteLast {
            let warning = rate::warning(place);
            let line = self.framed(now, None, Level::Warning, place, &warning);
            sink.write(&format!("{mark}{line}"));
            self.recent.push(Line::new(now, None, Level::Warning, &warning));
        }
        match verdict {
            Verdict::Drop => sink.write_console(&format!("{mark}{line}")),
            Verdict::Write | Verdict::WriteLast => {
                sink.write(&format!("{mark}{line}"));
                self.recent.push(shown);
            }
        }
    }
}

/// The place that a line comes from, and whether it is rate-limited.
#[derive(Clone, Copy, Debug)]
struct Source {
    place: Place,
    is_limited: bool,
}

impl Source {
    fn unlimited(place: Place) -> Source {
        Source { place, is_limited: false }
    }
}

impl Sink {
    fn write_console(&self, line: &str) {
        // If the stream is closed, there is nowhere to report it.
        let _ = match self.console {
            None => Ok(()),
            Some(Console::Stdout) => io::stdout().lock().write_all(line.as_bytes()),
            Some(Console::Stderr) => io::stderr().lock().write_all(line.as_bytes()),
        };
    }

    fn write(&mut self, line: &str) {
        self.write_console(line);
        // A log that cannot be written must not stop the node.
        if self.file.as_mut().is_some_and(|file| file.write(line.as_bytes()).is_err()) {
            self.file = None;
        }
    }
}

/// Keeps only the end of a file that has grown too long.
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

/// The log is the file of `-debuglogfile`, by default in a data directory that is ours; it is not opened before that is
/// known.
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

/// Core's `GetLogPrefix`: a category without a level means debug, a level without a category applies to all. With
/// `is_full`, both are always written.
fn prefix(category: Option<Category>, level: Level, is_full: bool) -> String {
    match (category, level) {
        (category, level) if is_full => format!("[{}:{}] ", category.map_or("all", Category::name), level.name()),
        (None, Level::Info) => String::new(),
        (None, level) => format!("[{}] ", level.name()),
        (Some(category), Level::Debug) => format!("[{}] ", category.name()),
        (Some(category), level) => format!("[{}:{}] ", category.name(), level.name()),
    }
}

/// Escapes control characters as `\x1b`, except line breaks; drops line breaks at the end.
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
mod sentences;
#[cfg(test)]
mod tests;
