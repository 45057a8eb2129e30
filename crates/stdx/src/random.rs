//! SplitMix64: pseudorandom numbers from a seed, for tests and the simulators.
//!
//! Input: a seed. Output: numbers, the same on every machine and in every version: seeds of failed tests, and the
//! expected results of some tests, depend on the exact sequence. It must never be used for secrets.

/// A stream of pseudorandom numbers.
#[derive(Clone, Copy, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns the lowest byte of the next number.
    pub fn byte(&mut self) -> u8 {
        self.next_u64().to_le_bytes()[0]
    }

    /// Returns a number below `count`, which must not be 0. Its bias is below `count` / 2^64.
    pub fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next_u64() % count as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the published generator (Steele, Lea, Flood; the code by Vigna) for the seed 1234567.
    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = SplitMix64::new(1_234_567);
        let numbers: [u64; 5] = std::array::from_fn(|_| random.next_u64());
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(numbers, published);
    }

    #[test]
    fn parts_of_a_number() {
        let (mut random, mut same) = (SplitMix64::new(7), SplitMix64::new(7));
        assert_eq!(random.byte(), same.next_u64().to_le_bytes()[0]);
        assert_eq!(random.below(10), usize::try_from(same.next_u64() % 10).unwrap());
        assert!((0..1000).all(|_| random.below(3) < 3));
    }
}
