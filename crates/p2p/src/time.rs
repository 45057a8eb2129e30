//! Seconds since 1970 as a type.
//!
//! Input: the caller's clock or numbers in a file. Output: comparisons that cannot overflow. This crate reads no clock.

use std::time::Duration;

/// A moment in seconds since 1970 (UTC); 0 means "never".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(pub u64);

impl UnixTime {
    pub const NEVER: UnixTime = UnixTime(0);

    /// Returns the seconds from `earlier` to `self`; negative if `earlier` is later.
    pub fn since(self, earlier: UnixTime) -> i64 {
        self.signed().saturating_sub(earlier.signed())
    }

    /// Returns the moment this many seconds earlier, 1970 at the earliest.
    #[must_use]
    pub fn minus(self, seconds: u64) -> UnixTime {
        UnixTime(self.0.saturating_sub(seconds))
    }

    #[must_use]
    pub fn plus(self, seconds: u64) -> UnixTime {
        UnixTime(self.0.saturating_add(seconds))
    }

    pub(crate) fn signed(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }

    /// Returns the value for messages; a larger one is replaced by the maximum.
    pub fn to_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

/// The current time on the clocks of the caller. Each timer uses the same clock as Core's timer of the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Core's steady clock, which never goes back: pauses between connections, its scheduler, rates of links.
    pub elapsed: Duration,
    /// Core's `NodeClock`, which `setmocktime` sets and which may go back: pings, timeouts and all other timers.
    /// Counted from any fixed moment.
    pub mockable: Duration,
    /// The same clock in seconds since 1970.
    pub unix: UnixTime,
}

impl Moment {
    /// Creates a moment of a clock that is not mocked, where `unix` and `elapsed` advance together.
    pub const fn new(elapsed: Duration, unix: UnixTime) -> Moment {
        Moment { elapsed, mockable: Duration::new(unix.0, elapsed.subsec_nanos()), unix }
    }
}

impl From<u32> for UnixTime {
    fn from(seconds: u32) -> UnixTime {
        UnixTime(u64::from(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overflows() {
        assert_eq!(UnixTime(10).since(UnixTime(4)), 6);
        assert_eq!(UnixTime(4).since(UnixTime(10)), -6);
        assert_eq!(UnixTime(u64::MAX).since(UnixTime::NEVER), i64::MAX);
        assert_eq!(UnixTime(3).minus(4), UnixTime::NEVER);
        assert_eq!(UnixTime(u64::MAX).plus(1), UnixTime(u64::MAX));
        assert_eq!(UnixTime(u64::MAX).to_u32(), u32::MAX);
    }
}
