//! [`Projection`]: the next blocks, if they were made of the pool as it is now.
//!
//! Input: a snapshot, and what the block builder of `template` needs. Output: the first blocks, each filled by that
//! builder with what the blocks before it left. The first one is [`Snapshot::block_content`].
//!
//! Cost: a walk over the pool, and a sort of the best chunks, which have enough weight for one block more. The bands
//! give a feerate below which none is looked at. If those do not fill the blocks after all, all chunks are sorted.

use super::bands::{BAND_RATES, band_of};
use super::snapshot::{PoolChunk, Snapshot, sort_chunks};
use super::template::{BlockContent, BlockOptions};
use crate::graph::FeeSize;
use lydian_consensus::limits::WITNESS_SCALE_FACTOR;
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
        let weight = options.weight_max.saturating_mul(count.saturating_add(1));
        let rate = self.bands().rate_above(u64::try_from(weight / WITNESS_SCALE_FACTOR).unwrap_or(u64::MAX));
        let is_paying = |feerate| BAND_RATES[band_of(feerate)] >= rate;
        let mut best = self.chunks(|chunk| is_paying(chunk.feerate));
        let is_all = !keep_best(&mut best, weight) && rate == BAND_RATES[0];
        sort_chunks(&mut best);
        if let Some(projection) = Projection::of(best, is_all, options, height, median_time, count) {
            return projection;
        }
        let all = self.chunks_in_mining_order();
        Projection::of(all, true, options, height, median_time, count).unwrap_or_default()
    }
}

/// The weight of a chunk, for a first guess of the number of chunks.
const CHUNK_WEIGHT: usize = 2_000;

/// Keeps the chunks with the highest feerates that have this weight together, and those with the same feerate as the
/// last one. Returns whether any was left out. Cost: linear.
fn keep_best(chunks: &mut Vec<PoolChunk<'_>>, weight: usize) -> bool {
    let mut count = weight / CHUNK_WEIGHT + 1;
    while count < chunks.len() {
        let (best, last, _) =
            chunks.select_nth_unstable_by(count, |a, b| b.chunk.feerate.compare_feerate(&a.chunk.feerate));
        let sum: usize = best.iter().map(|chunk| usize::try_from(chunk.chunk.feerate.size).unwrap_or(0)).sum();
        if sum >= weight {
            let (least, before) = (last.chunk.feerate, chunks.len());
            chunks.retain(|chunk| chunk.chunk.feerate.compare_feerate(&least).is_ge());
            return chunks.len() < before;
        }
        count = count.saturating_mul(2);
    }
    false
}

impl Projection {
    /// Fills blocks with chunks in mining order. `None` if a block could take more than these and they are not all.
    fn of(
        mut chunks: Vec<PoolChunk<'_>>,
        is_all: bool,
        options: &BlockOptions,
        height: Height,
        median_time: i64,
        count: usize,
    ) -> Option<Projection> {
        let mut blocks = Vec::with_capacity(count);
        for at in (height.0..).take(count) {
            let (mut rest, mut left, mut rates) = (chunks.into_iter(), Vec::new(), Vec::new());
            let content = BlockContent::fill(options, Height(at), median_time, &mut rest, |chunk, is_taken| {
                if is_taken { rates.push(chunk.chunk.feerate) } else { left.push(chunk) }
            });
            if rest.len() == 0 && !is_all {
                return None;
            }
            left.extend(rest);
            chunks = left;
            match ProjectedBlock::new(content, &rates) {
                Some(block) => blocks.push(block),
                None => break,
            }
        }
        Some(Projection { blocks })
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
