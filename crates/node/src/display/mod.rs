//! The display of a run. Input: what the node is doing, and the engine's meter while it validates. Output: on a terminal three lines that
//! are drawn anew four times a second, otherwise a line every ten seconds, or nothing; at the end a table.
//!
//! A thread of its own looks at counters that the engine keeps anyway; it asks nothing of the engine and blocks nothing. It also keeps the
//! status file of `lydian info` fresh.

mod figures;
mod text;

#[cfg(test)]
mod tests;

pub(crate) use figures::{Figures, StageFigures};
pub(crate) use text::{Costs, megabytes, table};

use crate::clock::Stopwatch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lydian_engine::Meter;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between two looks at the meter.
const TICK: Duration = Duration::from_millis(250);

/// Looks over which rates are told: five seconds.
const RECENT: usize = 20;

/// Looks between two plain lines: ten seconds.
const LINE_TICKS: u64 = 40;

/// Looks between two status files: five seconds.
const STATUS_TICKS: u64 = 20;

/// Where progress is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Terminal,
    Lines,
    Silent,
}

/// What the node is doing.
#[derive(Clone, Debug)]
pub(crate) enum Doing {
    /// In words, which change while it goes on.
    Something(String),
    Validating(Arc<Meter>),
}

/// A running display; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Display {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    doing: Mutex<(Doing, bool)>,
    ended: Condvar,
}

impl Display {
    /// `keep_status` is called every few seconds.
    pub(crate) fn start(style: Style, workers: usize, keep_status: impl Fn() + Send + 'static) -> io::Result<Display> {
        let doing = Mutex::new((Doing::Something("starting".to_owned()), false));
        let shared = Arc::new(Shared { doing, ended: Condvar::new() });
        let viewer = Viewer::new(style, workers, Arc::clone(&shared));
        let thread = thread::Builder::new().name("display".to_owned()).spawn(move || viewer.run(&keep_status))?;
        Ok(Display { shared, thread: Some(thread) })
    }

    pub(crate) fn tell(&self, doing: Doing) {
        self.shared.doing.lock().unwrap_or_else(PoisonError::into_inner).0 = doing;
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.shared.doing.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // A display that failed has nothing to say any more.
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
    recent: VecDeque<Figures>,
    told: String,
}

impl Viewer {
    fn new(style: Style, workers: usize, shared: Arc<Shared>) -> Viewer {
        let target = match style {
            Style::Terminal => ProgressDrawTarget::stderr_with_hz(8),
            Style::Lines | Style::Silent => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        let recent = VecDeque::with_capacity(RECENT + 1);
        Viewer { style, workers, shared, bar, watch: Stopwatch::start(), recent, told: String::new() }
    }

    fn run(mut self, keep_status: &dyn Fn()) {
        let mut tick: u64 = 0;
        loop {
            let doing = {
                let guard = self.shared.doing.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = self.shared.ended.wait_timeout_while(guard, TICK, |(_, is_ended)| !*is_ended);
                let (guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
                if guard.1 {
                    break;
                }
                guard.0.clone()
            };
            tick += 1;
            self.look(&doing, tick);
            if tick.is_multiple_of(STATUS_TICKS) {
                keep_status();
            }
        }
        self.bar.finish_and_clear();
    }

    fn look(&mut self, doing: &Doing, tick: u64) {
        let text = match doing {
            Doing::Something(words) if self.style == Style::Terminal => words.clone(),
            Doing::Something(words) => {
                // Told once, when it begins.
                let begin = words.split(':').next().unwrap_or_default().to_owned();
                if begin == self.told {
                    return;
                }
                self.told.clone_from(&begin);
                begin
            }
            Doing::Validating(meter) => {
                let seconds = self.watch.seconds();
                let now = Figures::new(
                    &meter.snapshot(),
                    self.workers,
                    seconds.wall_seconds,
                    seconds.cpu_seconds.unwrap_or_default(),
                );
                let since =
                    self.recent.front().map_or_else(|| now.since(&Figures::default()), |first| now.since(first));
                self.recent.push_back(now.clone());
                if self.recent.len() > RECENT {
                    self.recent.pop_front();
                }
                match self.style {
                    Style::Terminal => text::lines(&now, &since),
                    _ if tick.is_multiple_of(LINE_TICKS) => text::line(&now, &since),
                    _ => return,
                }
            }
        };
        match self.style {
            Style::Terminal => {
                self.bar.set_message(text);
                self.bar.tick();
            }
            Style::Lines => {
                // Nobody is left to be told that nobody is left.
                let _ = writeln!(io::stderr().lock(), "{text}");
            }
            Style::Silent => {}
        }
    }
}
