//! How far the clocks of peers are from ours. Input: the offset of each peer that we connected to. Output: their median. Core's `TimeOffsets`: it changes no
//! time here, and only tells a person.

use std::collections::VecDeque;

/// Offsets that are kept: Core's `MAX_SIZE`.
const OFFSETS_MAX: usize = 50;

/// Fewer tell nothing.
const OFFSETS_MIN: usize = 5;

/// A median further off than this is warned of: Core's `WARN_THRESHOLD`, in seconds and in minutes.
const WARN_S: u64 = 60 * WARN_MINUTES;
const WARN_MINUTES: u64 = 10;

/// Core's warning of a clock that most peers disagree with.
pub const CLOCK_OUT_OF_SYNC: &str = "Your computer's date and time appear to be more than 10 minutes out of sync with the network, this may lead to consensus \
     failure. After you've confirmed your computer's clock, this message should no longer appear when you restart your \
     node. Without a restart, it should stop showing automatically after you've connected to a sufficient number of new \
     outbound peers, which may take some time. You can inspect the `timeoffset` field of the `getpeerinfo` and \
     `getnetworkinfo` RPC methods to get more info.";

/// The last offsets, in seconds.
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

    /// Whether our clock is wrong, or those of most peers are.
    pub(crate) fn is_out_of_sync(&self) -> bool {
        self.median_s().unsigned_abs() > WARN_S
    }

    /// The upper one of the two in the middle; 0 while there are few.
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
