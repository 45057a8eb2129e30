//! Random numbers from a seed: the same on every machine.
//!
//! Input: a seed and a label (each use has a stream of its own). Output: integers. Invariant: integer arithmetic only,
//! so that a chain does not depend on a libm. It must never read the machine's entropy.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// The stream for a seed and a label.
    pub fn new(seed: u64, label: &str) -> Random {
        let mut bytes = b"lydian-lab random".to_vec();
        bytes.extend_from_slice(&seed.to_le_bytes());
        bytes.extend_from_slice(label.as_bytes());
        Random(ChaCha8Rng::from_seed(lydian_hash::sha256(&bytes)))
    }

    /// A number below `bound`; 0 if `bound` is 0. Its bias is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.0.next_u64()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or_default()
    }

    /// An index below `len`; 0 if `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or_default()
    }

    /// A number from `low` to `high`, inclusive.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below((high + 1).saturating_sub(low))
    }

    /// True with a probability of `per_mille` / 1000.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    /// Picks a row of (share, low, high) by share, then a number between its bounds.
    pub fn from_table(&mut self, table: &[(u64, u64, u64)]) -> u64 {
        let total = table.iter().map(|row| row.0).sum();
        let mut point = self.below(total);
        for &(share, low, high) in table {
            if point < share {
                return self.between(low, high);
            }
            point -= share;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_stream_and_a_seed_repeats_it() {
        let take = |seed, label| (0..4).scan(Random::new(seed, label), |r, _| Some(r.next_u64())).collect::<Vec<_>>();
        assert_eq!(take(1, "a"), take(1, "a"));
        assert_ne!(take(1, "a"), take(1, "b"));
        assert_ne!(take(1, "a"), take(2, "a"));
    }

    #[test]
    fn numbers_stay_in_their_bounds() {
        let mut random = Random::new(7, "bounds");
        assert_eq!(random.below(0), 0);
        let seen: std::collections::BTreeSet<u64> = (0..1000).map(|_| random.between(3, 5)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [3, 4, 5]);
        assert!((0..1000).all(|_| [1, 2, 9].contains(&random.from_table(&[(5, 1, 2), (1, 9, 9)]))));
    }
}
