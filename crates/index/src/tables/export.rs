//! [`Export`]: what the tables have at one moment, as values for a copy in another store.
//!
//! Input: a moment of the index. Output: the facts and the pages of its segments, each for itself or several as one,
//! and the rows of each block behind them. What is handed out follows from the chain and the salt alone. The index
//! goes on meanwhile: files that it removes stay readable here.

use super::merged::{MergedPages, facts_of};
use super::moment::Moment;
use super::pages::Facts;
use super::remote::{Identity, SegmentFacts, Table};
use super::segment::{Rows, Segment, merged_facts};
use super::{events, places, rows};
use crate::error::IndexError;
use lydian_engine::Tip;
use lydian_primitives::BlockHash;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// What the tables have at one moment.
#[derive(Clone, Debug)]
pub struct Export {
    identity: Identity,
    segments: Arc<Vec<Segment>>,
    groups: Vec<(u32, Arc<Rows>)>,
    tip: Option<Tip>,
    sealed: u32,
}

impl Export {
    pub(super) fn new(identity: Identity, moment: &Moment<'_>, sealed: u32) -> Export {
        let groups = moment.rows().map(|(from, rows)| (from, Arc::clone(rows))).collect();
        Export { identity, segments: Arc::clone(moment.segments), groups, tip: moment.tip, sealed }
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The block up to which the index has the chain.
    pub fn tip(&self) -> Option<Tip> {
        self.tip
    }

    /// The blocks below this height are sealed: only a reorganisation of more than [`super::UNSEALED_BLOCKS`] removes
    /// one of them.
    pub fn sealed(&self) -> u32 {
        self.sealed
    }

    /// The blocks below this height are in segments.
    pub fn written(&self) -> u32 {
        self.segments.last().map_or(0, |segment| segment.heights.end)
    }

    /// The heights of the segments, in their order.
    pub fn heights(&self) -> impl Iterator<Item = Range<u32>> {
        self.segments.iter().map(|segment| segment.heights.clone())
    }

    /// The facts of a segment that is made of some, which are counted from the first; `None` if there are none.
    pub fn facts(&self, parts: Range<usize>) -> Result<Option<SegmentFacts>, IndexError> {
        let parts = self.segments.get(parts).unwrap_or_default();
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(None) };
        let block = places::block_at(last.blocks.as_ref(), last.heights.end - last.heights.start - 1)?;
        let none = || last.blocks.damaged(0, "a segment without blocks");
        let facts = |table| (table, merged_facts(table, &facts_of(parts, table)));
        let tables = Table::of(self.identity.profile).map(facts).collect();
        let heights = first.heights.start..last.heights.end;
        Ok(Some(SegmentFacts { heights, hash: block.ok_or_else(none)?.hash, tables }))
    }

    /// The pages of that segment.
    pub fn pages(&self, parts: Range<usize>) -> Result<MergedPages, IndexError> {
        MergedPages::start(Arc::clone(&self.segments), parts)
    }

    /// The keys of the scripts in a page of [`Table::Events`] of a segment with these facts.
    pub fn script_keys(page: u32, bytes: &[u8], facts: &Facts) -> Result<Vec<u64>, IndexError> {
        let reason = || format!("page {page} of the merged table of events cannot be decoded");
        events::keys_of(page, bytes, facts).ok_or_else(|| IndexError::Store { reason: reason() })
    }

    /// The hashes of the blocks behind the segments.
    pub fn hashes(&self) -> impl Iterator<Item = BlockHash> {
        self.groups.iter().flat_map(|(_, rows)| rows.blocks.iter().map(|block| block.hash))
    }

    /// The hash of the block at a height; `None` above the tip. Of a block in a segment, a page is read.
    pub fn hash(&self, height: u32) -> Result<Option<BlockHash>, IndexError> {
        let Some(segment) = self.segments.iter().find(|segment| segment.heights.contains(&height)) else {
            let above = height.checked_sub(self.written());
            return Ok(above.and_then(|above| self.hashes().nth(above as usize)));
        };
        Ok(places::block_at(segment.blocks.as_ref(), height - segment.heights.start)?.map(|row| row.hash))
    }

    /// Whether another one has the same segments.
    pub fn has_segments_of(&self, other: &Export) -> bool {
        Arc::ptr_eq(&self.segments, &other.segments)
    }

    /// Lets go of the rows in memory, which the index would have to copy with the next block. What is left has the
    /// segments only.
    pub fn forget_rows(&mut self) {
        self.groups.clear();
    }

    /// What the block at a height behind the segments adds; `None` if there is none.
    pub fn delta(&self, height: u32) -> Option<Vec<u8>> {
        let (from, rows) = self.groups.iter().rev().find(|(from, _)| *from <= height)?;
        let at = (height - from) as usize;
        let block = rows.blocks.get(at)?;
        let counts = rows.counts();
        let first: usize = counts.iter().take(at).map(|count| *count as usize).sum();
        let txs = first..first + block.transactions as usize;
        let scripts = match (&rows.settled, at.checked_sub(rows.settled_blocks())) {
            (_, Some(at)) => rows.scripts.get(at).map(|rows| Cow::Borrowed(rows.as_ref())),
            (Some(settled), None) => Some(Cow::Owned(settled.block(at, &counts))),
            (None, None) => None,
        };
        let txids = rows.txids.get(txs.clone()).unwrap_or_default();
        Some(rows::encode(block, rows.transactions.get(txs)?, txids, scripts.as_deref()))
    }
}
