//! The chains that all seeds share, made once, and the UTXO set hashes of the honest ones, computed by the plain
//! validator.
//!
//! Input: nothing. Output: [`ground`], always the same. Cost: some tenths of a second, once.

use crate::chain::{Chain, Fault, params};
use lydian_consensus::PlainValidator;
use lydian_primitives::{BlockHash, RawBlock};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Height of the honest chain.
pub const HONEST_HEIGHT: u32 = 135;

/// Fork height and height of the rival chain.
pub const RIVAL_FORK: u32 = 124;
pub const RIVAL_HEIGHT: u32 = 140;

/// Fork height of the chains with a bad block. Their height is [`BAD_HEIGHT`].
pub const BAD_FORK: u32 = 120;
pub const BAD_HEIGHT: u32 = 150;

/// Fork height of the chain of which only headers are shown.
pub const WITHHELD_FORK: u32 = 112;

/// A correct clock: some time after the last block of any chain.
pub const NOW: u64 = 1_700_000_000 + 170 * 600;

/// A correct clock so soon after the last honest block that announced blocks are requested directly. The blocks of bad
/// chains are from the following hours.
pub const SOON: u64 = 1_700_000_000 + 143 * 600;

/// Fork height of the branch with as much work as the honest chain. It has more blocks than are requested directly on
/// an announcement.
pub const BRANCH_FORK: u32 = 100;

/// The chains that all seeds share.
#[derive(Debug)]
pub struct Ground {
    pub honest: Arc<Chain>,
    /// As high as the honest chain.
    pub branch: Arc<Chain>,
    /// A valid branch with more work.
    pub rival: Arc<Chain>,
    /// More work than any honest chain, but one of the blocks breaks a rule.
    pub bad: Vec<(Fault, Arc<Chain>)>,
    /// More work than any honest chain, but no peer has its blocks.
    pub withheld: Arc<Chain>,
    /// More headers than a message may have.
    pub long: Chain,
    /// UTXO set hashes at the blocks where a run may end.
    coins: HashMap<BlockHash, [u8; 32]>,
}

/// Returns the chains that all seeds share.
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

    /// Returns the UTXO set hash (`hash_serialized_3`) after a block.
    pub fn coins_of(&self, block: &BlockHash) -> Option<[u8; 32]> {
        self.coins.get(block).copied()
    }
}

/// Returns the UTXO set hash after each block of a chain.
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

    /// Each fault is found at its block, and none before it.
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
