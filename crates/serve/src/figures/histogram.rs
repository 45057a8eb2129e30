//! [`Histogram`]: how many events took how long, in fixed buckets. Input: durations, from any thread. Output: a
//! [`Distribution`]. Cost: two atomic additions for an event, no lock.

use super::float;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets, in seconds. One more bucket has what takes longer.
pub const SECONDS: [f64; 7] = [0.0001, 0.0005, 0.0025, 0.01, 0.05, 0.25, 2.0];

/// The same in nanoseconds.
const NANOS: [u64; 7] = [100_000, 500_000, 2_500_000, 10_000_000, 50_000_000, 250_000_000, 2_000_000_000];

/// Counts events by their duration.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; SECONDS.len() + 1],
    nanos: AtomicU64,
}

/// The events so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Distribution {
    /// The events of each bucket, not of those below it.
    pub counts: [u64; SECONDS.len() + 1],
    /// The sum of all durations.
    pub seconds: f64,
}

impl Histogram {
    /// Adds an event.
    pub fn note(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = NANOS.iter().position(|bound| nanos <= *bound).unwrap_or(NANOS.len());
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// The events so far; one that is added meanwhile may be in the counts only.
    pub fn read(&self) -> Distribution {
        let counts = std::array::from_fn(|bucket| self.counts[bucket].load(Ordering::Relaxed));
        Distribution { counts, seconds: float(self.nanos.load(Ordering::Relaxed)) / 1e9 }
    }
}

impl Distribution {
    /// The number of events.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The duration that this share of the events does not exceed, from zero to one, with the events of a bucket spread
    /// evenly, as in Prometheus' `histogram_quantile`. `None` without events.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let rank = share * float(self.count());
        let (mut below, mut from) = (0, 0.0);
        for (count, to) in self.counts.iter().zip(SECONDS) {
            if *count > 0 && float(below + count) >= rank {
                return Some(from + (to - from) * ((rank - float(below)) / float(*count)).max(0.0));
            }
            (below, from) = (below + count, to);
        }
        // Longer than the last bound.
        (self.count() > 0).then_some(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_the_same_twice() {
        assert!(SECONDS.is_sorted());
        for (seconds, nanos) in SECONDS.iter().zip(NANOS) {
            assert_eq!(Duration::from_secs_f64(*seconds), Duration::from_nanos(nanos));
        }
    }

    #[test]
    fn events_are_counted_up_to_their_bound() {
        let histogram = Histogram::default();
        assert_eq!((histogram.read(), histogram.read().quantile(0.5)), (Distribution::default(), None));
        for nanos in [0, 100_000, 100_001, 2_000_000_000, 2_000_000_001] {
            histogram.note(Duration::from_nanos(nanos));
        }
        let all = histogram.read();
        assert_eq!(all.counts, [2, 1, 0, 0, 0, 0, 1, 1]);
        assert_eq!(all.count(), 5);
        assert!((all.seconds - 4.000_200_002).abs() < 1e-9, "{}", all.seconds);
        assert_eq!(all.quantile(0.4), Some(0.0001));
        assert_eq!(all.quantile(0.2), Some(0.00005));
        assert_eq!(all.quantile(1.0), Some(2.0));
    }
}
