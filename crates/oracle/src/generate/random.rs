//! Choices of the generator, from a seed or from a fuzzer's bytes.
//!
//! Input: a seed and a label, or bytes. Output: numbers below a bound, chances, bytes. Invariants: the same input gives
//! the same choices on every machine; when the bytes run out, a fixed stream continues them, so that every loop ends.
//! Must never use the machine's entropy.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of choices.
#[derive(Clone, Debug)]
pub struct Random(Source);

#[derive(Clone, Debug)]
enum Source {
    Seeded(Box<ChaCha8Rng>),
    /// The unread bytes, and the stream that follows them.
    Bytes(Vec<u8>, Box<ChaCha8Rng>),
}

impl Random {
    /// Returns the stream of this seed and label.
    pub fn new(seed: u64, label: &str) -> Self {
        let bytes = [b"lydian-oracle", &seed.to_le_bytes()[..], label.as_bytes()].concat();
        Self(Source::Seeded(Box::new(ChaCha8Rng::from_seed(lydian_hash::sha256(&bytes)))))
    }

    /// Returns a stream of the choices that these bytes make, in order.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut left = bytes.to_vec();
        left.reverse();
        Self(Source::Bytes(left, Box::new(ChaCha8Rng::from_seed([0; 32]))))
    }

    pub fn next_u64(&mut self) -> u64 {
        match &mut self.0 {
            Source::Seeded(stream) => stream.next_u64(),
            Source::Bytes(left, rest) => {
                let mut word = rest.next_u64().to_le_bytes();
                word.iter_mut().for_each(|byte| *byte = left.pop().unwrap_or(*byte));
                u64::from_le_bytes(word)
            }
        }
    }

    pub fn byte(&mut self) -> u8 {
        match &mut self.0 {
            Source::Seeded(stream) => stream.next_u64().to_le_bytes()[7],
            Source::Bytes(left, rest) => left.pop().unwrap_or_else(|| rest.next_u64().to_le_bytes()[7]),
        }
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // One byte of the fuzzer makes one choice if possible.
        if bound <= 256 {
            return usize::from(self.byte()) * bound / 256;
        }
        let product = u128::from(self.next_u64()) * bound as u128;
        usize::try_from(product >> 64).unwrap_or_default()
    }

    /// Returns true in this percentage of calls.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of `items`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    pub fn u32(&mut self) -> u32 {
        (self.next_u64() >> 32).try_into().unwrap_or_default()
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    pub fn hash(&mut self) -> [u8; 32] {
        let words = [(); 4].map(|()| self.next_u64().to_le_bytes());
        let mut hash = [0; 32];
        hash.copy_from_slice(words.as_flattened());
        hash
    }

    /// Returns a number near the limits in scripts and transactions, or any number.
    pub fn edge_u32(&mut self) -> u32 {
        const EDGES: [u32; 18] = [
            0,
            1,
            2,
            3,
            16,
            17,
            127,
            128,
            255,
            32_767,
            65_535,
            1 << 22,
            (1 << 22) + 1,
            499_999_999,
            500_000_000,
            1 << 31,
            u32::MAX - 1,
            u32::MAX,
        ];
        if self.chance(80) { self.pick(&EDGES) } else { self.u32() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_repeat_and_stay_in_bounds() {
        for make in [|| Random::new(7, "a"), || Random::from_bytes(b"some bytes of a fuzzer")] {
            let take = |mut random: Random| (0..500).map(|i| random.below(i)).collect::<Vec<_>>();
            let taken = take(make());
            assert_eq!(taken, take(make()));
            assert!(taken.iter().enumerate().all(|(bound, choice)| *choice < bound.max(1)));
        }
        assert_ne!(Random::new(7, "a").hash(), Random::new(7, "b").hash());
        assert_eq!(Random::from_bytes(&[1, 2, 3]).bytes(3), [1, 2, 3]);
        let mut random = Random::from_bytes(&[]);
        assert!((0..1000).any(|_| random.chance(50)) && (0..1000).any(|_| !random.chance(50)), "works without bytes");
    }
}
