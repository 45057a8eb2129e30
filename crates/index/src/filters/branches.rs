//! The filters of any block that was ever connected: those of the chain from the index, those of branches that left it
//! from their block and undo files.
//!
//! Input: the hash of a block. Output: its filter and filter header. The filter header of a branch goes on from that of
//! the block at which it left the chain. Core keeps the filters of such blocks instead.
//!
//! Invariants: nothing is kept. Cost: for a branch, every block of it is read, at most [`BRANCH_BLOCKS_MAX`].

use super::{FilterEntry, FilterReader, basic_filter, filter_hash, filter_header};
use crate::error::IndexError;
use lydian_engine::{BlockWithSpent, Engine, EngineError, HeaderInfo};
use lydian_primitives::{BlockHash, Height};

/// The longest branch whose filters are made; one of two blocks is rare.
const BRANCH_BLOCKS_MAX: usize = 288;

/// How often a question is repeated whose block moved between the chain and a branch meanwhile.
const ATTEMPTS_MAX: usize = 3;

/// A filter with its entry.
type Found = (Vec<u8>, FilterEntry);

impl FilterReader {
    /// The filter of a block; `None` if the index does not have the block yet, or if it was never connected.
    pub fn filter_of(&self, engine: &Engine, block: &BlockHash) -> Result<Option<Found>, IndexError> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(info) = engine.header_info(block) else { return Ok(None) };
            let mut last = None;
            let found = match info.is_active {
                true => self.filter(info.node.height, block)?,
                false => self.branch(engine, &info, &mut |found| last = Some(found))?.and(last),
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The entries of the blocks from a height up to a block; `None` if one of them is missing.
    pub fn entries_to(
        &self,
        engine: &Engine,
        from: Height,
        stop: &BlockHash,
    ) -> Result<Option<Vec<FilterEntry>>, IndexError> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(info) = engine.header_info(stop) else { return Ok(None) };
            let mut branch = Vec::new();
            let Some(fork) = self.branch(engine, &info, &mut |(_, entry)| branch.push(entry))? else { continue };
            let mut entries = Vec::new();
            if let Some(below) = fork.0.checked_sub(from.0) {
                entries = self.entries(from, below.saturating_add(1))?;
            }
            let on_chain = entries.len();
            entries.extend(branch);
            let count = (info.node.height.0 as usize + 1).saturating_sub(from.0 as usize);
            // A branch is longer than the range if the range begins above the fork.
            let entries = entries.split_off(entries.len().saturating_sub(count));
            let is_whole = entries.len() == count && entries.last().is_none_or(|last| last.block == *stop);
            // The chain may have changed while its entries were read.
            let is_joined =
                on_chain == 0 || self.entry(fork)?.map(|entry| entry.block) == self.hash_at(engine, &info, fork);
            if is_whole && is_joined {
                return Ok(Some(entries));
            }
        }
        Ok(None)
    }

    /// The filter headers at heights up to a block; `None` if one of them is missing.
    pub fn headers_at(
        &self,
        engine: &Engine,
        heights: impl Iterator<Item = Height>,
        stop: &BlockHash,
    ) -> Result<Option<Vec<[u8; 32]>>, IndexError> {
        let Some(info) = engine.header_info(stop) else { return Ok(None) };
        let mut branch = Vec::new();
        let Some(fork) = self.branch(engine, &info, &mut |(_, entry)| branch.push(entry))? else { return Ok(None) };
        let mut headers = Vec::new();
        for height in heights {
            let entry = match height.0.checked_sub(fork.0 + 1) {
                Some(above) => branch.get(above as usize).copied(),
                None => self.entry(height)?,
            };
            let expected = self.hash_at(engine, &info, height);
            let Some(entry) = entry.filter(|entry| Some(entry.block) == expected) else { return Ok(None) };
            headers.push(entry.header);
        }
        Ok(Some(headers))
    }

    fn hash_at(&self, engine: &Engine, info: &HeaderInfo, height: Height) -> Option<BlockHash> {
        engine.ancestor_info(info.id, height).map(|info| info.node.hash)
    }

    /// Makes the filters of the blocks of a branch, in its order. Returns the height at which it left the chain, which
    /// is that of the block itself if it is on the chain.
    fn branch(
        &self,
        engine: &Engine,
        stop: &HeaderInfo,
        visit: &mut dyn FnMut(Found),
    ) -> Result<Option<Height>, IndexError> {
        let (mut infos, mut info) = (Vec::new(), *stop);
        while !info.is_active {
            let parent =
                info.node.height.0.checked_sub(1).and_then(|height| engine.ancestor_info(info.id, Height(height)));
            let Some(parent) = parent.filter(|_| infos.len() < BRANCH_BLOCKS_MAX) else { return Ok(None) };
            infos.push(std::mem::replace(&mut info, parent));
        }
        let fork = info.node.height;
        let Some(entry) = self.entry(fork)?.filter(|entry| entry.block == info.node.hash) else { return Ok(None) };
        let mut header = entry.header;
        for info in infos.iter().rev() {
            let Some(block) = engine.block(info).map_err(unreadable)? else { return Ok(None) };
            let Some(spent) = engine.spent_coins(info, &block).map_err(unreadable)? else { return Ok(None) };
            let filter = basic_filter(&BlockWithSpent { height: info.node.height, block: &block, spent: &spent });
            let hash = filter_hash(&filter);
            header = filter_header(&hash, &header);
            visit((filter, FilterEntry { block: info.node.hash, hash, header }));
        }
        Ok(Some(fork))
    }
}

fn unreadable(error: EngineError) -> IndexError {
    IndexError::Chain { reason: error.to_string() }
}
