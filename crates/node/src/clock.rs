//! Reads the clock; no other module does. Output: the time of day for the rule about headers from the future; wall and
//! CPU time for reports.

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Linux counts CPU time of a process in hundredths of a second (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds since 1970.
#[allow(clippy::disallowed_methods, reason = "the clock is read here and handed down as a value")]
pub(crate) fn now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// Core's `NodeClock` for timers: the time set by `setmocktime`, if any. Otherwise the time of day at the first call
/// plus the time since then on the monotonic clock, so that a machine whose clock is reset loses no peers.
#[allow(clippy::disallowed_methods, reason = "the clock is read here and handed down as a value")]
pub(crate) fn node_now() -> Duration {
    static START: OnceLock<(Duration, Instant)> = OnceLock::new();
    match MOCKED.load(Ordering::Relaxed) {
        0 => {
            let start = || (SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), Instant::now());
            let (since, began) = START.get_or_init(start);
            since.saturating_add(began.elapsed())
        }
        mocked => Duration::from_secs(mocked),
    }
}

/// Seconds since 1970 by Core's `NodeClock`: the system clock, or the time set by `setmocktime`.
pub(crate) fn mockable_now() -> u64 {
    match MOCKED.load(Ordering::Relaxed) {
        0 => u64::from(now()),
        mocked => mocked,
    }
}

/// The time of `setmocktime`, if one is set.
pub(crate) fn mocked() -> Option<u64> {
    Some(MOCKED.load(Ordering::Relaxed)).filter(|seconds| *seconds > 0)
}

/// Freezes the clock at this time; 0 returns to the system clock.
pub(crate) fn mock(seconds: u64) {
    MOCKED.store(seconds, Ordering::Relaxed);
}

/// The mock time of the process; 0 if none is set.
static MOCKED: AtomicU64 = AtomicU64::new(0);

/// Microseconds since 1970.
#[allow(clippy::disallowed_methods, reason = "the clock is read here and handed down as a value")]
pub(crate) fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Nanoseconds since the first call.
#[allow(clippy::disallowed_methods, reason = "the clock is read here; no rule depends on it")]
pub(crate) fn now_nanos() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// CPU time of the current thread.
pub(crate) fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The start of a time measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    wall: Instant,
    cpu: Option<f64>,
}

/// Elapsed time.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Seconds {
    pub(crate) wall_seconds: f64,
    /// Of this process, user and system; `None` if the system does not report it.
    pub(crate) cpu_seconds: Option<f64>,
}

impl Stopwatch {
    #[allow(clippy::disallowed_methods, reason = "the clock is read here; no rule depends on it")]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { wall: Instant::now(), cpu: cpu_seconds() }
    }

    pub(crate) fn seconds(&self) -> Seconds {
        let cpu_seconds = self.cpu.zip(cpu_seconds()).map(|(start, end)| round(end - start));
        Seconds { wall_seconds: round(self.wall.elapsed().as_secs_f64()), cpu_seconds }
    }
}

fn round(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// CPU time of this process, user and system; `None` if the system does not report it.
#[allow(clippy::disallowed_methods, reason = "/proc is no file on a disk; it has no size that `disk` could read")]
pub(crate) fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in brackets and may contain any character; user and system time are fields
    // 14 and 15.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}
