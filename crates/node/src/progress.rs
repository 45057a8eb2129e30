//! Progress on stderr: a bar on a terminal, otherwise one line per event; with `--json`, nothing unless on a terminal.

use crate::clock::Stopwatch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};

/// Time between two lines about the same work.
const LINE_INTERVAL_SECONDS: f64 = 10.0;

/// Where progress is shown.
#[derive(Debug)]
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines { what: String, total: u64, last: Stopwatch },
    Silent,
}

impl Progress {
    pub(crate) fn new(is_json: bool) -> Progress {
        match io::stderr().is_terminal() {
            true => Progress::Bar(ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())),
            false if is_json => Progress::Silent,
            false => Progress::Lines { what: String::new(), total: 0, last: Stopwatch::start() },
        }
    }

    /// Begins work of this number of steps.
    pub(crate) fn begin(&mut self, text: &str, steps: u64) {
        match self {
            Progress::Bar(bar) => {
                let template = if steps > 1 { "{msg} [{bar:30}] {human_pos}/{human_len} {eta}" } else { "{wide_msg}" };
                if let Ok(style) = ProgressStyle::with_template(template) {
                    bar.set_style(style.progress_chars("=> "));
                }
                bar.set_message(text.to_owned());
                bar.set_length(steps);
                bar.reset();
            }
            Progress::Lines { what, total, last } => {
                print_line(text);
                (*what, *total, *last) = (text.to_owned(), steps, Stopwatch::start());
            }
            Progress::Silent => {}
        }
    }

    /// Reports that `done` of the steps are done.
    pub(crate) fn advance(&mut self, done: u64) {
        match self {
            Progress::Bar(bar) => bar.set_position(done),
            Progress::Lines { what, total, last } => {
                if last.seconds().wall_seconds >= LINE_INTERVAL_SECONDS {
                    print_line(&format!("{what}: {done} of {total}"));
                    *last = Stopwatch::start();
                }
            }
            Progress::Silent => {}
        }
    }

    /// Hides the bar while `write` runs.
    pub(crate) fn around(&self, write: impl FnOnce()) {
        match self {
            Progress::Bar(bar) => bar.suspend(write),
            Progress::Lines { .. } | Progress::Silent => write(),
        }
    }

    /// Removes the bar from the screen until new work begins.
    pub(crate) fn clear(&mut self) {
        if let Progress::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn print_line(text: &str) {
    // If stderr is closed, there is nowhere to report it.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
