//! How far the clocks of peers are from ours. Input: the offset of each peer that we connected to. Output: their median. Core's `TimeOffsets`: it changes no
//! time here, and only tells a person.

use std::collections::VecDeque;

/// Offsets that are kept: Core's `MAX_SIZE`.
const OFFSETS_MAX: usize = 50;

/// Fewer tell nothing.
const OFFSETS_MIN: usize = 5;

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
    }
}
