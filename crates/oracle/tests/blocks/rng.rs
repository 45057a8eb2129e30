//! Random choices from a seed. The same seed gives the same blocks on every machine.

use lydian_stdx::SplitMix64;

#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number below `end`, which must be at least 1.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }

    /// Returns a number from `low` to `high`, both included.
    pub fn range(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.next() % u64::try_from(high - low + 1).unwrap()).unwrap()
    }

    /// Returns true with probability 1 / `n`.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.0.byte()).collect()
    }

    pub fn u32(&mut self) -> u32 {
        u32::try_from(self.next() >> 32).unwrap()
    }
}
