//! Checked blocks that wait for their run, so that a block that arrives is read, parsed and checked once.
//!
//! Input: blocks that were checked and stored. Output: the same to the run that connects them. What is missing here is
//! read from disk and checked then.
//!
//! The run may take over the result of the check, because nothing that the check depends on has changed: the bytes are
//! in the block; the chain below it is fixed by the hash of its parent; the parameters are fixed. Of the rules, only
//! the one about times in the future depends on the clock, and a block that once satisfied it always will. Whether an
//! ancestor is invalid is decided when the path of the run is chosen.
//!
//! A run takes the lowest block first. So if there is no room, the highest block goes first: if the oldest went, a
//! backlog above the bound would always lose the block that is needed next. Blocks up to the committed height go too,
//! because they can only be connected in a reorganisation.
//!
//! Invariants: the blocks have at most `bytes_max` bytes with their tables; a block is returned once. A verdict never
//! depends on which blocks are here. Cost: a lock and a look-up per block. It must never read a disk.

use super::links::Links;
use lydian_consensus::{CheckedBlock, Coin};
use lydian_primitives::{Block, BlockHash, Height};
use lydian_stdx::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Bytes of a table's entry for a transaction, an input and an output, with the room that a growing table has left.
const TX_BYTES: usize = 200;
const INPUT_BYTES: usize = 48;
const OUTPUT_BYTES: usize = 24;

/// The checked blocks.
#[derive(Debug)]
pub(crate) struct CheckedBlocks {
    bytes_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    blocks: BTreeMap<Key, (usize, CheckedBlock)>,
    bytes: usize,
}

type Key = (Height, BlockHash);

impl CheckedBlocks {
    pub(crate) fn new(bytes_max: usize) -> CheckedBlocks {
        CheckedBlocks { bytes_max, kept: Mutex::default() }
    }

    /// Keeps a block, if there is room or it is below others, which go then.
    pub(crate) fn keep(&self, block: CheckedBlock) {
        let (key, cost) = ((block.height(), block.block().hash()), memory_bytes(block.block()));
        self.insert(key, cost, block);
    }

    fn insert(&self, key: Key, cost: usize, block: CheckedBlock) {
        if cost > self.bytes_max {
            return;
        }
        // Freeing a block takes long, so it is done outside the lock.
        let mut dropped = Vec::new();
        let mut kept = lock(&self.kept);
        dropped.extend(kept.remove(&key));
        while kept.bytes + cost > self.bytes_max {
            match kept.blocks.last_key_value().map(|(last, _)| *last) {
                Some(last) if last > key => dropped.extend(kept.remove(&last)),
                _ => return drop(kept),
            }
        }
        kept.bytes += cost;
        kept.blocks.insert(key, (cost, block));
        drop(kept);
    }

    /// Returns a block, which is not here any more afterwards.
    pub(crate) fn take(&self, height: Height, hash: BlockHash) -> Option<CheckedBlock> {
        lock(&self.kept).remove(&(height, hash))
    }

    /// Drops the blocks up to a committed height.
    pub(crate) fn forget_to(&self, height: Height) {
        let mut kept = lock(&self.kept);
        if kept.blocks.first_key_value().is_none_or(|((lowest, _), _)| *lowest > height) {
            return;
        }
        let above = kept.blocks.split_off(&(Height(height.0.saturating_add(1)), BlockHash::ZERO));
        let dropped = std::mem::replace(&mut kept.blocks, above);
        kept.bytes -= dropped.values().map(|(cost, _)| cost).sum::<usize>();
        drop(kept);
        drop(dropped);
    }
}

impl Kept {
    fn remove(&mut self, key: &Key) -> Option<CheckedBlock> {
        let (cost, block) = self.blocks.remove(key)?;
        self.bytes -= cost;
        Some(block)
    }
}

/// The most bytes of memory that a block uses.
fn memory_bytes(block: &Block) -> usize {
    let tables = block.tx_count() * TX_BYTES + block.input_count() * INPUT_BYTES + block.output_count() * OUTPUT_BYTES;
    size_of::<(Key, usize, CheckedBlock, Block)>() + block.as_bytes().len() + tables
}

/// The same with the coins that it spends and its links.
pub(crate) fn memory_with_coins(block: &Block, spent: &[Coin], links: &Links) -> usize {
    let scripts: usize = spent.iter().map(|coin| coin.script_pubkey.len()).sum();
    memory_bytes(block) + size_of_val(spent) + scripts + links.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::CHECKED_BYTES;
    use lydian_consensus::{Chain, Params};

    fn block() -> CheckedBlock {
        let params = Params::new(Chain::Regtest);
        let genesis = params.genesis_block().parse().unwrap();
        CheckedBlock::check_again(genesis, Height(0), &params).unwrap()
    }

    fn key(number: usize) -> Key {
        (Height(u32::try_from(number).unwrap()), BlockHash::ZERO)
    }

    fn heights(blocks: &CheckedBlocks) -> Vec<u32> {
        lock(&blocks.kept).blocks.keys().map(|(height, _)| height.0).collect()
    }

    /// limit: CHECKED_BYTES at
    /// limit: CHECKED_BYTES above
    #[test]
    fn no_more_than_the_bound_is_kept() {
        let (blocks, block) = (CheckedBlocks::new(CHECKED_BYTES), block());
        blocks.insert(key(0), CHECKED_BYTES + 1, block.clone());
        assert!(heights(&blocks).is_empty(), "larger than all room");
        for number in (0..8).rev() {
            blocks.insert(key(number), CHECKED_BYTES / 4, block.clone());
            assert!(lock(&blocks.kept).bytes <= CHECKED_BYTES);
        }
        assert_eq!(heights(&blocks), [0, 1, 2, 3], "the lowest stay");
        assert_eq!(lock(&blocks.kept).bytes, CHECKED_BYTES);
        blocks.insert(key(4), 1, block);
        assert_eq!(heights(&blocks), [0, 1, 2, 3], "a higher one finds no room");
    }

    #[test]
    fn a_block_is_returned_once() {
        let (blocks, block) = (CheckedBlocks::new(CHECKED_BYTES), block());
        let (height, hash) = (block.height(), block.block().hash());
        blocks.keep(block.clone());
        blocks.keep(block);
        assert_eq!(lock(&blocks.kept).blocks.len(), 1);
        assert!(blocks.take(height, BlockHash::ZERO).is_none());
        assert_eq!(blocks.take(height, hash).map(|block| block.block().hash()), Some(hash));
        assert!(blocks.take(height, hash).is_none());
        assert_eq!(lock(&blocks.kept).bytes, 0);
    }

    #[test]
    fn what_is_committed_is_dropped() {
        let (blocks, block) = (CheckedBlocks::new(CHECKED_BYTES), block());
        (1..=5).for_each(|number| blocks.insert(key(number), 10, block.clone()));
        for (height, left) in [(0, &[1, 2, 3, 4, 5][..]), (3, &[4, 5]), (u32::MAX, &[])] {
            blocks.forget_to(Height(height));
            assert_eq!(heights(&blocks), left);
            assert_eq!(lock(&blocks.kept).bytes, 10 * left.len());
        }
    }
}
