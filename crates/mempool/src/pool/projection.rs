//! [`Projection`]: the next blocks, if they were made of the pool as it is now.
//!
//! Input: a snapshot, and what the block builder of `template` needs. Output: the first blocks, each filled by that
//! builder with what the blocks before it left. The first one is [`Snapshot::block_content`].
//!
//! Cost: that of the chunks that are looked at, best first, which are little more than the blocks; not of the pool. A
//! block that is almost full is closed after 1,000 chunks that do not fit.

use super::ahead::Ahead;
use super::snapshot::Snapshot;
use super::template::{BlockContent, BlockOptions};
use crate::graph::FeeSize;
use lydian_primitives::Height;

/// A block that would be made of the pool.
#[derive(Clone, Debug)]
pub struct ProjectedBlock {
    pub content: BlockContent,
    /// The sum of the virtual sizes of its transactions.
    pub vsize: u64,
    /// The feerates of its chunks in satoshi per weight unit: the last one that was taken, the one in the middle of the
    /// block's weight, the first one.
    pub min: FeeSize,
    pub median: FeeSize,
    pub max: FeeSize,
}

/// The next blocks.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    /// Those that have transactions, the next one first.
    pub blocks: Vec<ProjectedBlock>,
}

impl Snapshot {
    /// At most `count` blocks, the first one at `height`, if its parent has this median time past.
    pub fn projection(&self, options: &BlockOptions, height: Height, median_time: i64, count: usize) -> Projection {
        let (mut rest, mut left) = (Ahead::new(self.chunk_members()), Vec::new());
        let mut blocks = Vec::new();
        for at in (height.0..).take(count) {
            // What the blocks before it looked at and left is better than the rest.
            let mut first = std::mem::take(&mut left).into_iter();
            let mut chunks = first.by_ref().chain(rest.by_ref());
            let mut rates = Vec::new();
            let content = BlockContent::fill(options, Height(at), median_time, &mut chunks, |chunk, is_taken| {
                if is_taken { rates.push(chunk.chunk.feerate) } else { left.push(chunk) }
            });
            left.extend(first);
            match ProjectedBlock::new(content, &rates) {
                Some(block) => blocks.push(block),
                None => break,
            }
        }
        Projection { blocks }
    }
}

impl ProjectedBlock {
    /// `rates`: of its chunks, in their order. `None` without transactions.
    fn new(content: BlockContent, rates: &[FeeSize]) -> Option<ProjectedBlock> {
        let (max, min) = (*rates.first()?, *rates.last()?);
        let half = rates.iter().map(|rate| i64::from(rate.size)).sum::<i64>() / 2;
        let mut sum = 0;
        let is_middle = |rate: &&FeeSize| {
            sum += i64::from(rate.size);
            sum >= half
        };
        let median = rates.iter().find(is_middle).copied().unwrap_or(min);
        let vsize = content.entries.iter().map(|entry| u64::from(entry.vsize().unsigned_abs())).sum();
        Some(ProjectedBlock { content, vsize, min, median, max })
    }
}
