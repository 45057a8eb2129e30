//! The last lines of the log, for the page. Input: every line that is written. Output: the lines that are kept, whole
//! or those since a number.
//!
//! Invariants: at most [`LOG_LINES_SHOWN_MAX`] lines and [`LOG_SHOWN_BYTES_MAX`] bytes of text are kept; a longer line
//! than [`LOG_LINE_SHOWN_BYTES_MAX`] is cut. A line is formatted before the lock is taken, and a reader copies pointers
//! only: neither makes the other wait. Cost: one allocation for each line.

use super::category::Category;
use super::{Level, escape};
use crate::limits::{LOG_LINE_SHOWN_BYTES_MAX, LOG_LINES_SHOWN_MAX, LOG_SHOWN_BYTES_MAX};
use lydian_stdx::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A line of the log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Microseconds since 1970.
    pub(crate) micros: u64,
    pub(crate) level: Level,
    pub(crate) category: Option<&'static str>,
    /// The message, without control characters except line breaks.
    pub(crate) text: String,
}

impl Line {
    pub(super) fn new(micros: u64, category: Option<Category>, level: Level, message: &str) -> Line {
        let mut text = escape(message);
        if text.len() > LOG_LINE_SHOWN_BYTES_MAX {
            let room = LOG_LINE_SHOWN_BYTES_MAX - CUT.len();
            let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            text.push_str(CUT);
        }
        Line { micros, level, category: category.map(Category::name), text }
    }
}

/// The end of a line that was cut.
const CUT: &str = " ...";

/// The last lines.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    lines: VecDeque<Arc<Line>>,
    bytes: usize,
    /// Lines that were added so far: the number of the last one.
    count: u64,
}

impl Recent {
    pub(super) fn push(&self, line: Line) {
        let line = Arc::new(line);
        let mut gone: Vec<Arc<Line>> = Vec::new();
        let mut ring = lock(&self.0);
        ring.count += 1;
        ring.bytes += line.text.len();
        ring.lines.push_back(line);
        while ring.lines.len() > LOG_LINES_SHOWN_MAX || ring.bytes > LOG_SHOWN_BYTES_MAX {
            let Some(old) = ring.lines.pop_front() else { break };
            ring.bytes -= old.text.len();
            gone.push(old);
        }
        drop(ring);
    }

    /// Lines that were written so far.
    pub(super) fn count(&self) -> u64 {
        lock(&self.0).count
    }

    /// The lines that are kept, with their numbers, from 1 on.
    pub(super) fn lines(&self) -> Vec<(u64, Arc<Line>)> {
        let ring = lock(&self.0);
        let first = ring.count - ring.lines.len() as u64 + 1;
        (first..).zip(ring.lines.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(recent: &Recent, text: &str) -> Vec<(u64, Arc<Line>)> {
        recent.push(Line::new(7, Some(Category::NET), Level::Debug, text));
        recent.lines()
    }

    /// limit: LOG_LINES_SHOWN_MAX at
    /// limit: LOG_LINES_SHOWN_MAX above
    #[test]
    fn the_last_lines_are_kept() {
        let recent = Recent::default();
        assert_eq!((recent.lines(), recent.count()), (vec![], 0));
        for number in 1..=LOG_LINES_SHOWN_MAX {
            assert_eq!(pushed(&recent, "x").len(), number);
        }
        let lines = pushed(&recent, "last\x1b\n");
        assert_eq!((lines.len(), lines[0].0), (LOG_LINES_SHOWN_MAX, 2));
        let (number, last) = lines[LOG_LINES_SHOWN_MAX - 1].clone();
        let expected = Line { micros: 7, level: Level::Debug, category: Some("net"), text: "last\\x1b".to_owned() };
        assert_eq!((number, &*last, recent.count()), (1_001, &expected, 1_001));
    }

    /// limit: LOG_LINE_SHOWN_BYTES_MAX at
    /// limit: LOG_LINE_SHOWN_BYTES_MAX above
    #[test]
    fn long_lines_are_cut_between_letters() {
        let recent = Recent::default();
        let whole = "x".repeat(LOG_LINE_SHOWN_BYTES_MAX);
        assert_eq!(pushed(&recent, &whole)[0].1.text, whole);
        let cut = &pushed(&recent, &format!("{whole}y"))[1].1.text;
        assert_eq!((cut.len(), cut.ends_with("x ...")), (LOG_LINE_SHOWN_BYTES_MAX, true));
        let cut = &pushed(&recent, &format!("x{}", "ä".repeat(LOG_LINE_SHOWN_BYTES_MAX)))[2].1.text;
        assert!(cut.len() < LOG_LINE_SHOWN_BYTES_MAX && cut.ends_with("ä ..."));
    }

    /// limit: LOG_SHOWN_BYTES_MAX at
    /// limit: LOG_SHOWN_BYTES_MAX above
    #[test]
    fn the_bytes_of_all_lines_are_bounded() {
        let recent = Recent::default();
        let whole = "x".repeat(LOG_LINE_SHOWN_BYTES_MAX);
        let fit = LOG_SHOWN_BYTES_MAX / LOG_LINE_SHOWN_BYTES_MAX;
        for number in 1..=fit {
            assert_eq!(pushed(&recent, &whole).len(), number);
        }
        assert_eq!(pushed(&recent, "x").len(), fit);
        assert_eq!(pushed(&recent, "x").len(), fit + 1);
    }
}
