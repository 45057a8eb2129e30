//! The UTXO set that a chain ends with, computed from nothing but the blocks, a part at a time.
//!
//! Input: the blocks of a valid chain, once for each part. Output: tip, number of coins, `hash_serialized_3`. Cost: one
//! pass over the chain and about 200 bytes for each coin of the largest part. Invariant: a part is a range of the first
//! byte of txids, and parts are in the order in which `hash_serialized_3` takes coins.

use lydian_consensus::Coin;
use lydian_consensus::utxo_hash::serialize_coin;
use lydian_hash::Sha256;
use lydian_primitives::{BlockHash, Height, OutPoint, RawBlock};
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// `MAX_SCRIPT_SIZE`: an output with a longer script never enters the UTXO set; nor does one that begins with
/// OP_RETURN.
const SCRIPT_SIZE_MAX: usize = 10_000;
const OP_RETURN: u8 = 0x6a;
/// A txid has so many first bytes, which are all equally likely.
const FIRST_BYTES: u64 = 256;

/// Splits the first bytes of txids into ranges that each have about `at_once` of `coins`.
pub(crate) fn parts(coins: u64, at_once: u64) -> Vec<RangeInclusive<u8>> {
    let count = coins.div_ceil(at_once.max(1)).clamp(1, FIRST_BYTES);
    let first = |part: u64| part * FIRST_BYTES / count;
    (0..count)
        .map(|part| {
            let byte = |at: u64| u8::try_from(at).unwrap_or(u8::MAX);
            byte(first(part))..=byte(first(part + 1) - 1)
        })
        .collect()
}

/// One part of the UTXO set of consecutive blocks.
pub(crate) struct Walk {
    part: RangeInclusive<u8>,
    coins: HashMap<OutPoint, Coin>,
    tip: Option<(u32, BlockHash)>,
}

impl Walk {
    pub(crate) fn new(part: RangeInclusive<u8>) -> Walk {
        Walk { part, coins: HashMap::new(), tip: None }
    }

    /// `None` if the block does not extend the last one, or spends a coin of the part that does not exist.
    pub(crate) fn connect(mut self, bytes: &[u8]) -> Option<Walk> {
        let block = RawBlock::new(bytes).parse().ok()?;
        let (height, prev) = self.tip.map_or((0, BlockHash([0; 32])), |(height, hash)| (height + 1, hash));
        if block.header().prev_block != prev {
            return None;
        }
        self.tip = Some((height, block.hash()));
        // The output of the genesis block cannot be spent and is not in any UTXO set.
        for (index, tx) in block.txs().enumerate().skip(usize::from(height == 0)) {
            for input in tx.inputs().filter(|input| index > 0 && self.part.contains(&input.prevout.txid.0[0])) {
                self.coins.remove(&input.prevout)?;
            }
            let txid = tx.txid();
            if !self.part.contains(&txid.0[0]) {
                continue;
            }
            for (vout, output) in (0..).zip(tx.outputs()) {
                let script = output.script_pubkey;
                if script.first() != Some(&OP_RETURN) && script.len() <= SCRIPT_SIZE_MAX {
                    self.coins.insert(OutPoint { txid, vout }, Coin::new(output, Height(height), index == 0));
                }
            }
        }
        Some(self)
    }
}

/// What all parts together are.
pub(crate) struct UtxoSet {
    pub(crate) height: u32,
    pub(crate) tip: BlockHash,
    pub(crate) coins: u64,
    /// `hash_serialized_3`, which is displayed in reverse order, as a block hash is.
    pub(crate) hash: BlockHash,
}

/// The sum of the parts so far.
#[derive(Default)]
pub(crate) struct Sum {
    coins: u64,
    hasher: Sha256,
    tip: Option<(u32, BlockHash)>,
}

impl Sum {
    /// Adds the part that follows the last one.
    pub(crate) fn add(mut self, walk: Walk) -> Sum {
        let mut coins: Vec<(&OutPoint, &Coin)> = walk.coins.iter().collect();
        coins.sort_unstable_by_key(|(outpoint, _)| **outpoint);
        self.coins += coins.len() as u64;
        for (outpoint, coin) in coins {
            self.hasher.update(&serialize_coin(outpoint, coin));
        }
        self.tip = walk.tip;
        self
    }

    pub(crate) fn finish(self) -> Option<UtxoSet> {
        let (height, tip) = self.tip?;
        Some(UtxoSet { height, tip, coins: self.coins, hash: BlockHash(self.hasher.finalize_double()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_first_byte_is_in_one_part_in_order() {
        for (coins, at_once, count) in [(0, 5, 1), (5, 5, 1), (6, 5, 2), (180, 30, 6), (1_000, 1, 256), (9, 0, 9)] {
            let parts = parts(coins, at_once);
            assert_eq!(parts.len(), count);
            assert!(parts.into_iter().flatten().eq(0..=u8::MAX), "{coins} coins, {at_once} at once");
        }
    }
}
