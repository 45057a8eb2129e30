//! [`RateLimit`]: limits how much one place of the program may write to the file in an hour, so that no peer or client
//! can fill the disk by provoking the same line again and again. It is Core's `LogRateLimiter`.
//!
//! Input: places, sizes of lines, the time. Output: whether a line is written, and what to report about that. Cost: one
//! look-up per line; 100 bytes of memory for each place that wrote in the window. Must never suppress what cannot be
//! provoked from outside: debug lines, which the user has enabled, and new tips.

use crate::limits::{LOG_BYTES_PER_PLACE_MAX, LOG_WINDOW_MICROS};
use std::collections::HashMap;
use std::panic::Location;

/// The source location that produces a line.
pub(super) type Place = &'static Location<'static>;

#[derive(Debug, Default)]
pub(super) struct RateLimit {
    began_micros: u64,
    places: HashMap<(&'static str, u32), Written>,
    is_suppressing: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Written {
    bytes: usize,
    dropped: usize,
}

/// What happens to a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Write,
    /// It is the last line of this place in the window.
    WriteLast,
    Drop,
}

impl RateLimit {
    pub(super) fn is_suppressing(&self) -> bool {
        self.is_suppressing
    }

    pub(super) fn take(&mut self, place: Place, bytes: usize) -> Verdict {
        let written = self.places.entry((place.file(), place.line())).or_default();
        if written.dropped == 0 && written.bytes + bytes <= LOG_BYTES_PER_PLACE_MAX {
            written.bytes += bytes;
            return Verdict::Write;
        }
        self.is_suppressing = true;
        let is_first = written.dropped == 0;
        written.dropped += bytes;
        if is_first { Verdict::WriteLast } else { Verdict::Drop }
    }

    /// Ends the window after an hour, so that all places may write again. Returns a sentence for each place that had
    /// lines dropped.
    pub(super) fn turn(&mut self, now_micros: u64) -> Vec<String> {
        if now_micros.saturating_sub(self.began_micros) < LOG_WINDOW_MICROS {
            return Vec::new();
        }
        self.began_micros = now_micros;
        self.is_suppressing = false;
        let held_back = |((file, line), written): ((&str, u32), Written)| {
            (written.dropped > 0).then(|| {
                let (dropped, seconds) = (written.dropped, LOG_WINDOW_MICROS / 1_000_000);
                format!(
                    "Restarting logging from {file}:{line} ({}): {dropped} bytes were dropped during the last {seconds}s.",
                    stem(file)
                )
            })
        };
        let mut lines: Vec<_> = self.places.drain().filter_map(held_back).collect();
        lines.sort();
        lines
    }
}

/// The module, instead of the function name that Core prints.
pub(super) fn function(place: Place) -> &'static str {
    stem(place.file())
}

fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split('.').next().unwrap_or(name)
}

/// The warning that is logged when a place is suppressed.
pub(super) fn warning(place: Place) -> String {
    format!(
        "Excessive logging detected from {}:{} ({}): >{} bytes logged during the last time window of {}s. Suppressing logging to disk from \
         this source location until time window resets. Console logging unaffected. Last log entry.",
        place.file(),
        place.line(),
        function(place),
        LOG_BYTES_PER_PLACE_MAX,
        LOG_WINDOW_MICROS / 1_000_000
    )
}
