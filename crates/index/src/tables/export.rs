//! [`Export`]: what the tables have at one moment, as values for a copy in another store.
//!
//! Input: a moment of the index. Output: the facts and the pages of its segments, and the rows of each block behind
//! them. What is handed out follows from the chain and the salt alone. The index goes on meanwhile: files that it
//! removes stay readable here.

use super::moment::Moment;
use super::remote::{Identity, SegmentFacts, Table};
use super::segment::{Rows, Segment};
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

    /// The segments, in the order of their heights.
    pub fn segments(&self) -> Result<Vec<SegmentFacts>, IndexError> {
        self.segments.iter().map(|segment| self.facts(segment)).collect()
    }

    fn facts(&self, segment: &Segment) -> Result<SegmentFacts, IndexError> {
        let last = places::block_at(segment.blocks.as_ref(), segment.heights.end - segment.heights.start - 1)?;
        let none = || segment.blocks.damaged(0, "a segment without blocks");
        let tables = Table::of(self.identity.profile);
        let tables = tables.filter_map(|table| Some((table, *segment.table(table)?.facts()))).collect();
        Ok(SegmentFacts { heights: segment.heights.clone(), hash: last.ok_or_else(none)?.hash, tables })
    }

    /// Pages of a table of a segment, at most 128; the segment is counted from the first.
    pub fn pages(&self, segment: usize, table: Table, numbers: &[u32]) -> Result<Vec<Vec<u8>>, IndexError> {
        let no_table =
            || IndexError::Store { reason: format!("the index has no table {table:?} of segment {segment}") };
        let source = self.segments.get(segment).and_then(|segment| segment.table(table));
        source.ok_or_else(no_table)?.pages(numbers)
    }

    /// The numbers of the pages of [`Table::Lists`] that belong to a page of [`Table::Events`].
    pub fn list_pages_of(&self, segment: usize, page: u32, bytes: &[u8]) -> Result<Range<u32>, IndexError> {
        let source = self.segments.get(segment).and_then(|segment| segment.table(Table::Events));
        let Some(source) = source else { return Ok(0..0) };
        let pages = events::list_pages_of(page, bytes, source.facts());
        pages.ok_or_else(|| source.damaged(page, "its lists do not follow each other"))
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
