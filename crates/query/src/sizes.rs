//! [`Sizes`]: the sizes of blocks that were asked for last.
//!
//! A block is read as a whole for its weight. What a hash stands for never changes, so nothing is ever wrong here.
//! Memory: about 100 bytes for a block.

use lydian_primitives::{Block, BlockHash};
use lydian_stdx::lock;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

/// Blocks whose sizes are kept.
pub(crate) const BLOCKS_MAX: usize = 8_192;

/// How large a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    pub transactions: usize,
    /// With witnesses, in bytes.
    pub size: usize,
    pub weight: usize,
}

impl From<&Block> for BlockSizes {
    fn from(block: &Block) -> BlockSizes {
        BlockSizes { transactions: block.tx_count(), size: block.total_size(), weight: block.weight() }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Sizes(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    blocks: HashMap<BlockHash, BlockSizes>,
    /// The oldest first.
    order: VecDeque<BlockHash>,
}

impl Sizes {
    pub(crate) fn get(&self, hash: &BlockHash) -> Option<BlockSizes> {
        lock(&self.0).blocks.get(hash).copied()
    }

    pub(crate) fn put(&self, hash: &BlockHash, sizes: BlockSizes) {
        let mut kept = lock(&self.0);
        if kept.blocks.insert(*hash, sizes).is_none() {
            kept.order.push_back(*hash);
        }
        while kept.order.len() > BLOCKS_MAX {
            let oldest = kept.order.pop_front();
            oldest.map(|hash| kept.blocks.remove(&hash));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_blocks_make_room() {
        let kept = Sizes::default();
        let hash = |number: usize| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            BlockHash(bytes)
        };
        let sizes = BlockSizes { transactions: 1, size: 285, weight: 1_140 };
        (0..BLOCKS_MAX).for_each(|number| kept.put(&hash(number), sizes));
        kept.put(&hash(0), sizes);
        assert_eq!(kept.get(&hash(0)), Some(sizes));
        kept.put(&hash(BLOCKS_MAX), sizes);
        assert_eq!([0, 1, BLOCKS_MAX].map(|number| kept.get(&hash(number))), [None, Some(sizes), Some(sizes)]);
    }
}
