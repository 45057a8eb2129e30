//! The display of a run.
//!
//! Input: what the node is doing, and counters while it validates or syncs. Output: on a terminal, a few lines redrawn
//! four times a second, or one line while the node is in step with its peers; otherwise a line every ten seconds on
//! stderr or in the log, or nothing; a table at the end.
//!
//! The last figures stay readable ([`Seen`]), so that the page shows the same.
//!
//! A thread of its own reads counters that the engine and the network keep anyway. It asks the engine only single
//! questions and blocks nothing. It also refreshes the status file of `lydian info`.

mod figures;
mod sync;
mod text;

#[cfg(test)]
mod tests;

use figures::History;
pub(crate) use figures::{Bottleneck, Figures, Late, StageFigures, float};
pub(crate) use sync::Sync;
pub(crate) use text::{Costs, duration, gigabytes, megabytes, table};

use crate::clock::Stopwatch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lydian_engine::Meter;
use lydian_stdx::{IgnorePoison, lock};
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two snapshots of the meter.
const TICK: Duration = Duration::from_millis(250);

/// Ticks between two plain lines: ten seconds.
const LINE_TICKS: u64 = 40;

/// Ticks between two status files: five seconds.
const STATUS_TICKS: u64 = 20;

/// Where progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Terminal,
    /// On stderr.
    Lines,
    /// In the log, while the node syncs from peers; other work has its own log lines.
    Log,
    Silent,
}

/// Returns the current state of a sync from peers.
pub(crate) type Look = Arc<dyn Fn() -> Sync + Send + std::marker::Sync>;

/// Writes a line to the log.
pub(crate) type WriteLog = Box<dyn Fn(&str) + Send>;

/// What the node is doing.
#[derive(Clone)]
pub(crate) enum Doing {
    /// A description, which may change while the work continues.
    Something(String),
    Validating(Arc<Meter>),
    /// With peers.
    Syncing(Arc<Meter>, Look),
    /// Without peers, and nothing is shown.
    Waiting(Arc<Meter>, Look),
}

/// What the display saw last.
#[derive(Clone, Debug, Default)]
pub(crate) enum Seen {
    #[default]
    Nothing,
    Something(String),
    Validating(Box<(Figures, Late)>),
    Syncing(Box<(Sync, Figures, Late)>),
}

/// Reads what the display saw last.
#[derive(Clone, Debug)]
pub(crate) struct Sight(Arc<Shared>);

impl Sight {
    pub(crate) fn get(&self) -> Seen {
        lock(&self.0.seen).clone()
    }
}

/// A running display. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Display {
    shared: Arc<Shared>,
    bar: ProgressBar,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    doing: Mutex<(Doing, bool)>,
    ended: Condvar,
    seen: Mutex<Seen>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Display {
    /// `keep_status` is called every few seconds with the line of the display, `write_log` with each line for the log.
    pub(crate) fn start(
        style: Style,
        workers: usize,
        write_log: WriteLog,
        keep_status: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Display> {
        let doing = Mutex::new((Doing::Something("starting".to_owned()), false));
        let shared = Arc::new(Shared { doing, ended: Condvar::new(), seen: Mutex::default() });
        let viewer = Viewer::new(style, workers, write_log, Arc::clone(&shared));
        let bar = viewer.bar.clone();
        let thread = thread::Builder::new().name("display".to_owned()).spawn(move || viewer.run(&keep_status))?;
        Ok(Display { shared, bar, thread: Some(thread) })
    }

    /// Shows nothing until the next [`show`](Self::show), but reads the figures.
    pub(crate) fn wait(&self, meter: Arc<Meter>, look: Look) {
        self.show(Doing::Waiting(meter, look));
        self.bar.finish_and_clear();
    }

    /// Reads what is shown.
    pub(crate) fn sight(&self) -> Sight {
        Sight(Arc::clone(&self.shared))
    }

    /// Hides the display while `write` runs.
    pub(crate) fn around(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    pub(crate) fn show(&self, doing: Doing) {
        lock(&self.shared.doing).0 = doing;
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        lock(&self.shared.doing).1 = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // A display that failed has nothing more to show.
            let _ = thread.join();
        }
    }
}

struct Viewer {
    style: Style,
    workers: usize,
    shared: Arc<Shared>,
    bar: ProgressBar,
    watch: Stopwatch,
    history: History,
    shown: String,
    write_log: WriteLog,
}

impl Viewer {
    fn new(style: Style, workers: usize, write_log: WriteLog, shared: Arc<Shared>) -> Viewer {
        let target = match style {
            Style::Terminal => ProgressDrawTarget::stderr_with_hz(8),
            Style::Lines | Style::Log | Style::Silent => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        let (watch, history, shown) = (Stopwatch::start(), History::default(), String::new());
        Viewer { style, workers, shared, bar, watch, history, shown, write_log }
    }

    fn run(mut self, keep_status: &dyn Fn(&str)) {
        let mut tick: u64 = 0;
        loop {
            let doing = {
                let guard = lock(&self.shared.doing);
                let waited = self.shared.ended.wait_timeout_while(guard, TICK, |(_, is_ended)| !*is_ended);
                let (guard, _) = waited.ignore_poison();
                if guard.1 {
                    break;
                }
                guard.0.clone()
            };
            tick += 1;
            self.look(&doing, tick);
            if tick.is_multiple_of(STATUS_TICKS) {
                keep_status(&self.sentence());
            }
        }
        self.bar.finish_and_clear();
    }

    /// What the node is doing, in one line.
    fn sentence(&self) -> String {
        match &*lock(&self.shared.seen) {
            Seen::Nothing => String::new(),
            Seen::Something(words) => words.clone(),
            Seen::Validating(figures) => text::line(&figures.0, &figures.1),
            Seen::Syncing(figures) => figures.0.line(&figures.1, &figures.2),
        }
    }

    fn saw(&self, seen: Seen) {
        *lock(&self.shared.seen) = seen;
    }

    fn look(&mut self, doing: &Doing, tick: u64) {
        if let Doing::Something(words) = doing {
            self.saw(Seen::Something(words.clone()));
        }
        let is_due = self.style == Style::Terminal || tick.is_multiple_of(LINE_TICKS);
        let text = match doing {
            Doing::Waiting(meter, look) => {
                let sync = look();
                let (now, late) = self.late(meter, sync.net.block_bytes);
                self.saw(Seen::Syncing(Box::new((sync, now, late))));
                None
            }
            Doing::Something(words) if self.style == Style::Terminal => Some(words.clone()),
            // Shown once, when it begins.
            Doing::Something(words) if self.style != Style::Log => self.once(words.split(':').next()),
            Doing::Something(_) => None,
            Doing::Validating(meter) => {
                let (now, late) = self.late(meter, 0);
                self.saw(Seen::Validating(Box::new((now.clone(), late.clone()))));
                let words = if self.style == Style::Terminal { text::lines } else { text::line };
                (is_due && self.style != Style::Log).then(|| words(&now, &late))
            }
            Doing::Syncing(meter, look) => {
                let sync = look();
                let (now, late) = self.late(meter, sync.net.block_bytes);
                self.saw(Seen::Syncing(Box::new((sync, now.clone(), late.clone()))));
                match self.style {
                    Style::Terminal => Some(sync.lines(&now, &late)),
                    // A node in step reports that once.
                    _ if sync.is_in_step() => {
                        let is_news = self.once(Some(IN_STEP)).is_some();
                        is_news.then(|| sync.line(&now, &late))
                    }
                    _ if is_due && sync.has_work() => {
                        self.shown.clear();
                        Some(sync.line(&now, &late))
                    }
                    _ => None,
                }
            }
        };
        if let Some(text) = text {
            self.show(text);
        }
    }

    /// Returns the words, unless they are the same as last time.
    fn once(&mut self, words: Option<&str>) -> Option<String> {
        let words = words.unwrap_or_default();
        (words != self.shown).then(|| {
            words.clone_into(&mut self.shown);
            self.shown.clone()
        })
    }

    fn late(&mut self, meter: &Meter, received_bytes: u64) -> (Figures, Late) {
        let seconds = self.watch.seconds();
        let (wall_seconds, cpu_seconds) = (seconds.wall_seconds, seconds.cpu_seconds.unwrap_or_default());
        let mut now = Figures::new(&meter.snapshot(), self.workers, wall_seconds, cpu_seconds);
        now.received_bytes = received_bytes;
        let late = self.history.look(&now);
        (now, late)
    }

    fn show(&self, text: String) {
        match self.style {
            Style::Terminal => {
                self.bar.set_message(text);
                self.bar.tick();
            }
            Style::Lines => {
                // If stderr is closed, there is nowhere to report it.
                let _ = writeln!(io::stderr().lock(), "{text}");
            }
            Style::Log => (self.write_log)(&text),
            Style::Silent => {}
        }
    }
}

/// The value of `shown` while a node is in step.
const IN_STEP: &str = "in step";
