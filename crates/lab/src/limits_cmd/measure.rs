//! [`Measure`]: repeated measurements of a time.

use serde::Serialize;
use std::time::{Duration, Instant};

/// A median with minimum and maximum.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Measure {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Measure {
    pub(crate) fn of(mut values: Vec<f64>) -> Measure {
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        Measure { median: at(values.len() / 2), min: at(0), max: at(values.len().saturating_sub(1)) }
    }

    /// Converts to another unit; a conversion that decreases swaps minimum and maximum.
    pub(super) fn map(self, convert: impl Fn(f64) -> f64) -> Measure {
        Measure::of(vec![convert(self.min), convert(self.median), convert(self.max)])
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts of a measurement lie far below 2^52")]
pub(super) fn as_f64(count: u64) -> f64 {
    count as f64
}

#[allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
pub(super) fn seconds_of(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().max(Duration::from_nanos(1)).as_secs_f64()
}

/// CPU time of this thread: other processes hardly affect it, and a floor must not rise because of them.
pub(super) fn cpu_seconds_of(work: impl FnOnce()) -> f64 {
    let now = || Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime));
    let start = now();
    work();
    match (start, now()) {
        (Ok(start), Ok(end)) => end.saturating_sub(start).max(Duration::from_nanos(1)).as_secs_f64(),
        _ => unreachable!("a thread's CPU time is not negative"),
    }
}

/// Like [`repeat`] in CPU time, for single-threaded work.
pub(super) fn repeat_cpu(rounds: usize, mut work: impl FnMut()) -> Measure {
    Measure::of((0..=rounds).map(|_| cpu_seconds_of(&mut work)).skip(1).collect())
}

/// Seconds of each round; the first is a warm-up and is discarded.
pub(super) fn repeat(rounds: usize, mut work: impl FnMut()) -> Measure {
    Measure::of((0..=rounds).map(|_| seconds_of(&mut work)).skip(1).collect())
}
