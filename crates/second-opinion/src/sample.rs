//! [`Sample`]: which blocks of the sync are verified again. Input: a block hash. Output: yes or no. Invariant: without
//! the secret of the process, the choice cannot be predicted, so that no block can be made to escape it.

use lydian_hash::SipHasher;
use lydian_primitives::BlockHash;

/// One block in this number is chosen: 1 to 3 % of the processor time of a sync with all scripts.
pub const SAMPLED_ONE_IN: u64 = 100;

/// A choice of blocks.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    keys: (u64, u64),
    one_in: u64,
}

impl Sample {
    pub(crate) fn new(secret: [u8; 16], one_in: u64) -> Sample {
        let secret = u128::from_le_bytes(secret);
        let low = u64::try_from(secret & u128::from(u64::MAX)).unwrap_or_default();
        Sample { keys: (low, u64::try_from(secret >> 64).unwrap_or_default()), one_in: one_in.max(1) }
    }

    pub(crate) fn contains(&self, hash: &BlockHash) -> bool {
        SipHasher::new(self.keys.0, self.keys.1).hash_32(&hash.0).is_multiple_of(self.one_in)
    }
}

/// The keys are secret.
impl std::fmt::Debug for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sample").field("one_in", &self.one_in).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(secret: [u8; 16], one_in: u64) -> Vec<u32> {
        let sample = Sample::new(secret, one_in);
        let hash = |number: u32| {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&number.to_le_bytes());
            BlockHash(bytes)
        };
        (0..10_000).filter(|number| sample.contains(&hash(*number))).collect()
    }

    #[test]
    fn one_block_in_a_hundred_by_the_secret() {
        let [one, other] = [[1; 16], [2; 16]].map(|secret| chosen(secret, SAMPLED_ONE_IN));
        assert!((60..150).contains(&one.len()) && (60..150).contains(&other.len()), "{} {}", one.len(), other.len());
        assert_ne!(one, other);
        assert_eq!(one, chosen([1; 16], SAMPLED_ONE_IN), "the same in one process");
        let mut halves = [1; 16];
        halves[8] = 9;
        assert_ne!(one, chosen(halves, SAMPLED_ONE_IN), "both halves of the secret count");
        assert_eq!((chosen([1; 16], 1).len(), chosen([1; 16], 0).len()), (10_000, 10_000), "all of them");
    }
}
