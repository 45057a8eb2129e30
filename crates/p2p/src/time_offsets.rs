//! The clock offsets of peers. Core's `TimeOffsets`.
//!
//! Input: the offset of each outbound peer. Output: their median, which only triggers a warning; no time is adjusted.

use std::collections::VecDeque;

/// The number of offsets that are kept: Core's `MAX_SIZE`.
const OFFSETS_MAX: usize = 50;

/// With fewer offsets, the median is not used.
const OFFSETS_MIN: usize = 5;

/// A larger median causes a warning: Core's `WARN_THRESHOLD`, in seconds and in minutes.
const WARN_S: u64 = 60 * WARN_MINUTES;
const WARN_MINUTES: u64 = 10;

/// Core's warning about a clock that differs from most peers.
pub const CLOCK_OUT_OF_SYNC: &str = "Your computer's date and time appear to be more than 10 minutes out of sync with the network, this may lead to consensus \
     failure. After you've confirmed your computer's clock, this message should no longer appear when you restart your \
     node. Without a restart, it should stop showing automatically after you've connected to a sufficient number of new \
     outbound peers, which may take some time. You can inspect the `timeoffset` field of the `getpeerinfo` and \
     `getnetworkinfo` RPC methods to get more info.";

/// The most recent offsets, in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimeOffsets(VecDeque<i64>);

impl TimeOffsets {
    pub(crate) fn add(&mut self, seconds: i64) {
        if self.0.len() >= OFFSETS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(seconds);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether our clock, or those of most peers, is wrong.
    pub(crate) fn is_out_of_sync(&self) -> bool {
        self.median_s().unsigned_abs() > WARN_S
    }

    /// Returns the median, the upper one of the two middle values; 0 for too few offsets.
    pub(crate) fn median_s(&self) -> i64 {
        if self.0.len() < OFFSETS_MIN {
            return 0;
        }
        let mut sorted: Vec<_> = self.0.iter().copied().collect();
        sorted.sort_unstable();
        sorted[sorted.len() / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_last_fifty() {
        let mut offsets = TimeOffsets::default();
        [9, -3, 4, 4].into_iter().for_each(|seconds| offsets.add(seconds));
        assert_eq!(offsets.median_s(), 0);
        offsets.add(-100);
        assert_eq!(offsets.median_s(), 4);
        offsets.add(5);
        assert_eq!(offsets.median_s(), 4, "of -100 -3 4 4 5 9");
        (0..OFFSETS_MAX).for_each(|_| offsets.add(-7));
        assert_eq!(offsets.median_s(), -7);
        (0..OFFSETS_MAX / 2).for_each(|_| offsets.add(8));
        assert_eq!(offsets.median_s(), 8, "the oldest are gone");
        assert!(!offsets.is_out_of_sync());
        (0..OFFSETS_MAX).for_each(|_| offsets.add(-600));
        assert!(!offsets.is_out_of_sync(), "ten minutes are allowed");
        (0..OFFSETS_MAX).for_each(|_| offsets.add(-601));
        assert!(offsets.is_out_of_sync());
        assert!(CLOCK_OUT_OF_SYNC.contains(&format!("more than {WARN_MINUTES} minutes")));
    }
}
