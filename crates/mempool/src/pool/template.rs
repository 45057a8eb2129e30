//! [`BlockContent`]: the transactions of the next block. Core's `BlockAssembler::addChunks` (node/miner.cpp).
//!
//! Input: a snapshot of the pool, what the options of mining set, the height of the block, and the median time past of
//! the tip. Output: chunks of the pool in mining order, as many as fit. Invariant: parents come before children, since
//! a chunk is taken whole, and after one that is left out, none of its cluster is taken. Cost: that of
//! [`super::projection`] for one block.

use super::cluster::ClusterView;
use super::entry::Entry;
use super::snapshot::{PoolChunk, Snapshot};
use crate::policy::FeeRate;
use lydian_consensus::limits::{MAX_BLOCK_SIGOPS_COST, MAX_BLOCK_WEIGHT, WITNESS_SCALE_FACTOR};
use lydian_consensus::tx::is_final;
use lydian_primitives::{Amount, Height};
use std::collections::HashSet;
use std::sync::Arc;

/// Chunks in a row that do not fit, after which a block that is almost full is closed: Core's
/// `MAX_CONSECUTIVE_FAILURES`.
const FAILURES_MAX: usize = 1_000;

/// The weight that is left in a block that is almost full: Core's `BLOCK_FULL_ENOUGH_WEIGHT_DELTA`.
const ALMOST_FULL: usize = 4_000;

/// What a block may hold, with Core's defaults (policy/policy.h, node/types.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockOptions {
    /// `-blockmaxweight`.
    pub weight_max: usize,
    /// `-blockreservedweight`: for the header, the number of transactions and the coinbase.
    pub reserved_weight: usize,
    /// Cost of the signature operations in the coinbase's outputs.
    pub reserved_sigops_cost: usize,
    /// `-blockmintxfee`: chunks that pay less are left out.
    pub min_feerate: FeeRate,
}

impl Default for BlockOptions {
    fn default() -> BlockOptions {
        BlockOptions {
            weight_max: MAX_BLOCK_WEIGHT,
            reserved_weight: 8_000,
            reserved_sigops_cost: 400,
            min_feerate: FeeRate::per_kvb(1),
        }
    }
}

/// The transactions of a block but the coinbase, with their sums.
#[derive(Clone, Debug)]
pub struct BlockContent {
    pub entries: Vec<Arc<Entry>>,
    /// Without any deltas.
    pub fees: Amount,
    /// With the reserved weight.
    pub weight: usize,
    /// With the reserved cost.
    pub sigops_cost: usize,
}

impl Snapshot {
    /// The transactions of a block at `height`, whose parent has this median time past.
    pub fn block_content(&self, options: &BlockOptions, height: Height, median_time: i64) -> BlockContent {
        let first = self.projection(options, height, median_time, 1).blocks.into_iter().next();
        first.map_or_else(|| BlockContent::empty(options), |block| block.content)
    }
}

impl BlockContent {
    /// A block with nothing but its coinbase.
    pub fn empty(options: &BlockOptions) -> BlockContent {
        BlockContent {
            entries: Vec::new(),
            fees: Amount(0),
            weight: options.reserved_weight,
            sigops_cost: options.reserved_sigops_cost,
        }
    }

    /// Takes chunks in mining order as long as the block has room. `look` gets each chunk that was looked at, and
    /// whether it was taken; the others are left in the iterator.
    pub(super) fn fill<'a>(
        options: &BlockOptions,
        height: Height,
        median_time: i64,
        chunks: &mut impl Iterator<Item = PoolChunk<'a>>,
        mut look: impl FnMut(PoolChunk<'a>, bool),
    ) -> BlockContent {
        let mut content = BlockContent::empty(options);
        let (mut skipped, mut failures): (HashSet<*const ClusterView>, usize) = (HashSet::new(), 0);
        for chunk in chunks {
            // A snapshot has each cluster once.
            let cluster = std::ptr::from_ref(chunk.cluster);
            if skipped.contains(&cluster) {
                look(chunk, false);
                continue;
            }
            let feerate = chunk.chunk.feerate;
            // Core's `ToFeePerVSize`.
            let vsize = (i64::from(feerate.size) + WITNESS_SCALE_FACTOR as i64 - 1) / WITNESS_SCALE_FACTOR as i64;
            if FeeRate::new(feerate.fee, vsize) < options.min_feerate {
                // The others pay no more.
                look(chunk, false);
                break;
            }
            let sigops = || chunk.entries().map(|entry| entry.sigops_cost() as usize).sum::<usize>();
            let size = usize::try_from(feerate.size).unwrap_or(usize::MAX);
            let fits = content.weight.saturating_add(size) < options.weight_max
                && content.sigops_cost.saturating_add(sigops()) < MAX_BLOCK_SIGOPS_COST
                && chunk.entries().all(|entry| is_final(entry.tx().view(), height, median_time));
            if fits {
                failures = 0;
                chunk.entries().for_each(|entry| content.add(entry));
                look(chunk, true);
                continue;
            }
            skipped.insert(cluster);
            look(chunk, false);
            failures += 1;
            if failures > FAILURES_MAX && content.weight + ALMOST_FULL > options.weight_max {
                break;
            }
        }
        content
    }

    fn add(&mut self, entry: &Arc<Entry>) {
        self.weight += entry.tx().view().weight();
        self.sigops_cost += entry.sigops_cost() as usize;
        self.fees = Amount(self.fees.0.saturating_add(entry.fee().0));
        self.entries.push(Arc::clone(entry));
    }
}
