//! A set of misbehaving addresses that forgets the oldest ones.
//!
//! Input: keys (bytes of addresses). Output: whether a key is among the last ones inserted, with rare false positives.
//!
//! Core's `CRollingBloomFilter`. Each position has two bits with the number (1 to 3) of the generation that set it. A
//! generation is half the number of keys that the set promises to remember; a new generation first clears the positions
//! that still have its number. Invariants: the last `elements` keys are found; a key that was never inserted is found
//! with at most the promised probability; memory is fixed at creation. A peer that fills the set can only make it
//! forget. Keys cannot be listed or removed. Cost: 20 hashes per key for a rate of one in a million; 50,000 keys take
//! 539 kB.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;

/// The set.
#[derive(Clone)]
pub struct RollingBloomFilter {
    /// The low bits of 64 positions, the high bits of the same 64 positions, and so on.
    data: Vec<u64>,
    hash_count: u32,
    tweak: u32,
    /// 1, 2 or 3.
    generation: u64,
    entries_in_generation: u32,
    entries_per_generation: u32,
}

/// Core's maximum number of hash functions.
const HASH_COUNT_MAX: f64 = 50.0;

/// The difference between the seeds of the hash functions.
const SEED_STEP: u32 = 0xFBA4_C795;

impl RollingBloomFilter {
    /// Creates a set that remembers the last `elements` keys and reports other keys with a probability of
    /// `false_positive_rate`.
    pub fn new(elements: u32, false_positive_rate: f64, random: &mut ChaCha20Rng) -> Self {
        let log_rate = false_positive_rate.log2();
        let hash_count = (-log_rate).round().clamp(1.0, HASH_COUNT_MAX);
        let entries_per_generation = elements.div_ceil(2).max(1);
        let most = f64::from(entries_per_generation) * 3.0;
        let bits = (-hash_count * most / (1.0 - (log_rate / hash_count).exp2()).ln()).ceil();
        RollingBloomFilter {
            data: vec![0; 2 * (to_u32(bits) as usize).div_ceil(64).max(1)],
            hash_count: to_u32(hash_count),
            tweak: random.next_u32(),
            generation: 1,
            entries_in_generation: 0,
            entries_per_generation,
        }
    }

    pub fn insert(&mut self, key: &[u8]) {
        if self.entries_in_generation == self.entries_per_generation {
            self.begin_generation();
        }
        self.entries_in_generation += 1;
        for number in 0..self.hash_count {
            let (index, bit) = self.place(number, key);
            let mask = 1 << bit;
            self.data[index] = (self.data[index] & !mask) | ((self.generation & 1) << bit);
            self.data[index + 1] = (self.data[index + 1] & !mask) | ((self.generation >> 1) << bit);
        }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        (0..self.hash_count).all(|number| {
            let (index, bit) = self.place(number, key);
            ((self.data[index] | self.data[index + 1]) >> bit) & 1 == 1
        })
    }

    /// Forgets all keys and chooses new positions.
    pub fn reset(&mut self, random: &mut ChaCha20Rng) {
        self.tweak = random.next_u32();
        self.generation = 1;
        self.entries_in_generation = 0;
        self.data.fill(0);
    }

    /// Starts the next generation and clears the positions that still have its number.
    fn begin_generation(&mut self) {
        self.entries_in_generation = 0;
        self.generation = self.generation % 3 + 1;
        let low = 0_u64.wrapping_sub(self.generation & 1);
        let high = 0_u64.wrapping_sub(self.generation >> 1);
        for pair in self.data.chunks_exact_mut(2) {
            let keep = (pair[0] ^ low) | (pair[1] ^ high);
            pair[0] &= keep;
            pair[1] &= keep;
        }
    }

    /// Returns the even index of a pair of words, and the bit in both.
    fn place(&self, number: u32, key: &[u8]) -> (usize, u32) {
        let hash = murmur3(number.wrapping_mul(SEED_STEP).wrapping_add(self.tweak), key);
        let index = (u64::from(hash) * self.data.len() as u64) >> 32;
        (usize::try_from(index).unwrap_or(0) & !1, hash & 63)
    }
}

impl std::fmt::Debug for RollingBloomFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RollingBloomFilter").field("words", &self.data.len()).finish_non_exhaustive()
    }
}

/// MurmurHash3, the 32-bit x86 variant, as Core's `MurmurHash3`.
fn murmur3(seed: u32, data: &[u8]) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    let scramble = |word: u32| word.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
    let mut hash = seed;
    let (words, tail) = data.as_chunks::<4>();
    for word in words {
        hash = (hash ^ scramble(u32::from_le_bytes(*word))).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let mut last = [0; 4];
    last[..tail.len()].copy_from_slice(tail);
    hash ^= scramble(u32::from_le_bytes(last));
    hash ^= u32::try_from(data.len()).unwrap_or(u32::MAX);
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

/// Converts a count that was computed in floating point.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and that is what is meant"
)]
fn to_u32(value: f64) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    fn filter(elements: u32, rate: f64) -> RollingBloomFilter {
        RollingBloomFilter::new(elements, rate, &mut ChaCha20Rng::seed_from_u64(7))
    }

    /// The published test vectors, including those of Core's tests.
    #[test]
    fn murmur3_is_the_published_function() {
        let check = |expected: u32, seed: u32, data: &[u8]| assert_eq!(murmur3(seed, data), expected, "{data:02x?}");
        check(0x0000_0000, 0, &[]);
        check(0x6a39_6f08, 0xFBA4_C795, &[]);
        check(0x81f1_6f39, 0xffff_ffff, &[]);
        check(0x514e_28b7, 0, &[0x00]);
        check(0xea3f_0b17, 0xFBA4_C795, &[0x00]);
        check(0xfd6c_f10d, 0, &[0xff]);
        check(0x16c6_b7ab, 0, &[0x00, 0x11]);
        check(0x8eb5_1c3d, 0, &[0x00, 0x11, 0x22]);
        check(0xb447_1bf8, 0, &[0x00, 0x11, 0x22, 0x33]);
        check(0xe230_1fa8, 0, &[0x00, 0x11, 0x22, 0x33, 0x44]);
        check(0xfc2e_4a15, 0, &[0x00, 0x11, 0x22, 0x33, 0x44, 0x55]);
        check(0xb074_502c, 0, &[0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66]);
        check(0x8034_d2a0, 0, &[0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77]);
        check(0xb469_8def, 0, &[0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]);
    }

    #[test]
    fn the_last_keys_are_found_and_old_ones_forgotten() {
        let mut set = filter(100, 0.01);
        for number in 0..10_000_u32 {
            set.insert(&number.to_le_bytes());
            for back in 0..100.min(number) {
                assert!(set.contains(&(number - back).to_le_bytes()), "{number} less {back}");
            }
        }
        let remembered = (0..9800_u32).filter(|number| set.contains(&number.to_le_bytes())).count();
        assert!(remembered < 200, "{remembered} of 9800 keys that should be forgotten");
        set.reset(&mut ChaCha20Rng::seed_from_u64(8));
        assert!(!set.contains(&9999_u32.to_le_bytes()));
    }

    /// The same number of words as in Core's set: 20 hashes for a rate of one in a million.
    #[test]
    fn the_size_is_that_of_core() {
        let set = filter(50_000, 0.000_001);
        assert_eq!((set.hash_count, set.entries_per_generation), (20, 25_000));
        assert_eq!(set.data.len(), 2 * 2_156_646_usize.div_ceil(64));
        assert_eq!(filter(1, 0.5).hash_count, 1);
        assert_eq!(filter(1, 1e-300).hash_count, 50);
    }

    #[test]
    fn few_strangers_are_taken_for_a_key() {
        let mut set = filter(1000, 0.001);
        for number in 0..1500_u32 {
            set.insert(&number.to_le_bytes());
        }
        let taken = (1_000_000..1_100_000_u32).filter(|number| set.contains(&number.to_le_bytes())).count();
        assert!(taken <= 150, "{taken} of 100,000");
    }
}
