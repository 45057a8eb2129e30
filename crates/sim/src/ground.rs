//! What all seeds stand on: chains made once, and what the coins of the honest ones hash to, by the plain validator. Input: nothing. Output:
//! [`ground`], the same always. Cost: some tenths of a second, once.

use crate::chain::{Chain, Fault, params};
use lydian_consensus::PlainValidator;
use lydian_primitives::{BlockHash, RawBlock};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Height of the honest chain.
pub const HONEST_HEIGHT: u32 = 135;

/// Where the rival leaves it, and how high it is.
pub const RIVAL_FORK: u32 = 124;
pub const RIVAL_HEIGHT: u32 = 140;

/// Where chains with a bad block leave it. They are as high as [`BAD_HEIGHT`].
pub const BAD_FORK: u32 = 120;
pub const BAD_HEIGHT: u32 = 150;

/// Where the chain leaves it of which only headers are shown.
pub const WITHHELD_FORK: u32 = 112;

/// A clock that is right: a while after the last block of any chain.
pub const NOW: u64 = 1_700_000_000 + 170 * 600;

/// The same, but so soon after the last honest block that what is announced is requested at once: blocks of bad chains
/// are of the next hours.
pub const SOON: u64 = 1_700_000_000 + 143 * 600;

/// Where the branch leaves the honest chain that has as much work: more blocks below than are requested on an
/// announcement.
pub const BRANCH_FORK: u32 = 100;

/// The chains.
#[derive(Debug)]
pub struct Ground {
    pub honest: Arc<Chain>,
    /// As high as the honest one.
    pub branch: Arc<Chain>,
    /// An honest branch with more work.
    pub rival: Arc<Chain>,
    /// More work than any other, and one block on the way breaks a rule.
    pub bad: Vec<(Fault, Arc<Chain>)>,
    /// More work than any honest one; nobody has its blocks.
    pub withheld: Arc<Chain>,
    /// More headers than a message may have.
    pub long: Chain,
    /// Hashes of the coins at the blocks where a run may end.
    coins: HashMap<BlockHash, [u8; 32]>,
}

/// What all seeds stand on.
pub fn ground() -> &'static Ground {
    static GROUND: OnceLock<Ground> = OnceLock::new();
    GROUND.get_or_init(Ground::new)
}

impl Ground {
    fn new() -> Ground {
        let honest = Chain::genesis().extended(HONEST_HEIGHT, b"honest");
        let rival = honest.cut(RIVAL_FORK).extended(RIVAL_HEIGHT - RIVAL_FORK, b"rival");
        let bad = |fault| {
            let base = honest.cut(BAD_FORK).extended_badly(fault);
            (fault, Arc::new(base.extended_empty(BAD_HEIGHT - BAD_FORK - 1, b"bad")))
        };
        let bad = Fault::ALL.into_iter().map(bad).collect();
        let coins = [&honest, &rival].into_iter().flat_map(coins_of).collect();
        let withheld = Arc::new(honest.cut(WITHHELD_FORK).extended_empty(BAD_HEIGHT - WITHHELD_FORK, b"withheld"));
        let branch = Arc::new(honest.cut(BRANCH_FORK).extended_empty(HONEST_HEIGHT - BRANCH_FORK, b"branch"));
        let long = Chain::genesis().extended_empty(2_010, b"long");
        Ground { branch, withheld, long, honest: Arc::new(honest), rival: Arc::new(rival), bad, coins }
    }

    /// The hash of the coins after a block: `hash_serialized_3`.
    pub fn coins_of(&self, block: &BlockHash) -> Option<[u8; 32]> {
        self.coins.get(block).copied()
    }
}

/// The hash of the coins after each block of a chain.
fn coins_of(chain: &Chain) -> Vec<(BlockHash, [u8; 32])> {
    let mut validator = PlainValidator::new(params());
    let now = u32::try_from(NOW).unwrap();
    let mut coins = vec![(chain.at(0).hash, validator.hash_serialized_3())];
    for made in chain.blocks().skip(1) {
        let accepted = validator.accept_block(RawBlock::new(made.bytes.clone()).parse().unwrap(), now);
        assert!(accepted.is_ok_and(|accepted| accepted.is_active), "block {} of an honest chain", made.height);
        coins.push((made.hash, validator.hash_serialized_3()));
    }
    coins
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each fault is found where it was put, and nothing before it.
    #[test]
    fn bad_chains_are_bad_from_one_block_on() {
        for (fault, chain) in &ground().bad {
            let mut validator = PlainValidator::new(params());
            let now = u32::try_from(NOW).unwrap();
            let verdicts = chain.blocks().skip(1).map(|made| {
                let block = RawBlock::new(made.bytes.clone()).parse().unwrap();
                validator.accept_block(block, now).is_ok()
            });
            let valid = verdicts.take_while(|is_valid| *is_valid).count();
            assert_eq!(valid, usize::try_from(BAD_FORK).unwrap(), "{fault:?}");
        }
    }
}
