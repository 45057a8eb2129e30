//! The only module that reads the clock. Output: seconds since 1970, for the ages that `-netinfo` shows; deadlines.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Returns the seconds since 1970.
#[allow(clippy::disallowed_methods, reason = "the clock is read here and handed down as a value")]
pub(crate) fn now_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The time at which waiting ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    begun: Instant,
    wait: Duration,
}

impl Deadline {
    #[allow(clippy::disallowed_methods, reason = "the clock is read here; only waiting depends on it")]
    pub(crate) fn after(wait: Duration) -> Deadline {
        Deadline { begun: Instant::now(), wait }
    }

    /// Returns the time left to wait, or `None` if there is none.
    pub(crate) fn left(self) -> Option<Duration> {
        self.wait.checked_sub(self.begun.elapsed()).filter(|left| !left.is_zero())
    }
}
