//! Progress of the runs on stderr: on a terminal one line that changes, otherwise a line when a run starts; its end has
//! a line in either case.
//!
//! Input: moments. Output: text. Cost: four updates of the line per second, on a terminal only.

use crate::cli::print_progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lydian_lab::runs::progress::{Moment, Progress};
use lydian_report::results::Cache;
use std::io::IsTerminal;

/// Draws per second: as often as moments arrive.
const DRAWS_PER_SECOND: u8 = 4;

/// The line on a terminal; `None` without one.
pub(crate) struct Shown(Option<ProgressBar>);

impl Shown {
    pub(crate) fn new() -> Shown {
        if !std::io::stderr().is_terminal() {
            return Shown(None);
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND));
        if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        Shown(Some(bar))
    }
}

impl Progress for Shown {
    fn begins(&self, at: &Moment<'_>) {
        if self.0.is_none() {
            print_progress(&begins(at));
        }
    }

    fn is_watched(&self) -> bool {
        self.0.is_some()
    }

    fn goes(&self, at: &Moment<'_>) {
        if let Some(bar) = &self.0 {
            // Draws by itself, but not after it was finished.
            bar.set_message(goes(at));
            if bar.is_finished() {
                bar.reset();
            }
        }
    }

    fn ends(&self) {
        if let Some(bar) = &self.0 {
            // Clears the line, so that others can write there; the next moment draws it again.
            bar.finish_and_clear();
        }
    }
}

/// For example `knots cold run 2 of 3 begins (5 of 6 to be made), 12 s left of all`.
fn begins(at: &Moment<'_>) -> String {
    format!("{} begins ({} of {} to be made){}", name(at), at.position, at.steps, all_left(at))
}

/// For example `knots run 2 of 3, 12 s, height 431 of 550, 15 %, 3 s left; 12 s left of all`.
fn goes(at: &Moment<'_>) -> String {
    let mut text = format!("{}, {}", name(at), clock(at.elapsed_seconds));
    if let Some(height) = at.height {
        let share = at.share.unwrap_or(0.0) * 100.0;
        text += &format!(", height {height} of {}, {:.0} %", at.height_end, share.floor());
    }
    if let Some(left) = at.left_seconds {
        text += &format!(", {} left", clock(left));
    }
    text + &all_left(at)
}

fn name(at: &Moment<'_>) -> String {
    let step = at.step;
    let cache = if step.cache == Cache::Cold { " cold" } else { "" };
    format!("{}{cache} run {} of {}", step.node, step.number, step.of)
}

fn all_left(at: &Moment<'_>) -> String {
    at.all_left_seconds.map_or(String::new(), |left| format!("; {} left of all", clock(left)))
}

/// For example `47 s`, `3:05 min`, `2:07 h`.
fn clock(seconds: f64) -> String {
    // A float that is cast saturates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time of some days at most")]
    let seconds = seconds.max(0.0).round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!("{}:{:02} h", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_lab::runs::progress::Step;

    #[test]
    fn a_line_has_what_is_known() {
        let step = Step { node: "knots".into(), cache: Cache::Cold, number: 2, of: 3, own_height: None };
        let mut at = Moment {
            step: &step,
            position: 5,
            steps: 6,
            elapsed_seconds: 12.2,
            height: Some(431),
            height_end: 550,
            share: Some(0.1599),
            left_seconds: Some(3.4),
            all_left_seconds: Some(185.0),
        };
        let line = "knots cold run 2 of 3, 12 s, height 431 of 550, 15 %, 3 s left; 3:05 min left of all";
        assert_eq!(goes(&at), line);
        assert_eq!(begins(&at), "knots cold run 2 of 3 begins (5 of 6 to be made); 3:05 min left of all");
        (at.height, at.left_seconds, at.all_left_seconds) = (None, None, None);
        assert_eq!(goes(&at), "knots cold run 2 of 3, 12 s");
        assert_eq!(clock(7_620.0), "2:07 h");
        assert_eq!(clock(59.6), "1:00 min");
    }
}
