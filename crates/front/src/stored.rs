//! [`StoredBlocks`]: blocks of the index whose bytes are in the store.
//!
//! Input: hashes and places. Output: the same as from nodes, with the same checks; nothing of a block that the store
//! does not have. [`or_of_nodes`] and [`or_of_store`] say who is asked first.

use lydian_index::Place;
use lydian_primitives::{Block, BlockHash, Header, Height, RawBlock, Transaction};
use lydian_query::{BlockInfo, QueryError};
use lydian_shared_index::{SharedIndex, StoreError};
use std::sync::Arc;

/// Headers whose times make the median of a block: Core's `nMedianTimeSpan`.
const MEDIAN_TIME_SPAN: u32 = 11;

/// What the store has; `None`: nothing of it. An error is one sentence.
pub(crate) type Stored<T> = Result<Option<T>, String>;

/// What the store has, or else nodes. If both fail, the error has both reasons.
pub(crate) fn or_of_nodes<T>(
    stored: Stored<T>,
    of_nodes: impl FnOnce() -> Result<Option<T>, QueryError>,
) -> Result<Option<T>, QueryError> {
    match stored {
        Ok(Some(found)) => Ok(Some(found)),
        Ok(None) => of_nodes(),
        Err(reason) => of_nodes().map_err(|error| both(error, &reason)),
    }
}

/// What nodes have; if none answers, what the store has.
pub(crate) fn or_of_store<T>(
    of_nodes: Result<Option<T>, QueryError>,
    stored: impl FnOnce() -> Stored<T>,
) -> Result<Option<T>, QueryError> {
    let Err(error @ QueryError::Failed(_)) = of_nodes else { return of_nodes };
    match stored() {
        Ok(Some(found)) => Ok(Some(found)),
        Ok(None) => Err(error),
        Err(reason) => Err(both(error, &reason)),
    }
}

fn both(error: QueryError, of_store: &str) -> QueryError {
    match error {
        QueryError::Failed(of_nodes) => QueryError::Failed(format!("{of_nodes}; and {of_store}")),
        error => error,
    }
}

/// Whether it is this block, with the transactions of its header.
pub(crate) fn is_whole(block: &Block, hash: &BlockHash) -> bool {
    let has_root = block.merkle_root() == block.header().merkle_root && !block.is_merkle_mutated();
    block.hash() == *hash && has_root
}

#[derive(Debug)]
pub(crate) struct StoredBlocks {
    index: Arc<SharedIndex>,
}

fn sentence(error: StoreError) -> String {
    error.to_string()
}

impl StoredBlocks {
    pub(crate) fn new(index: Arc<SharedIndex>) -> StoredBlocks {
        StoredBlocks { index }
    }

    /// The height of a block that the store has.
    pub(crate) fn height_of(&self, hash: &BlockHash) -> Option<u32> {
        // The hashes are gone through, so only if it may help.
        let height = self.index.has_blocks().then(|| self.index.height_of(hash)).flatten()?;
        self.index.has_block(height).then_some(height)
    }

    pub(crate) fn has(&self, height: Height) -> bool {
        self.index.has_block(height.0)
    }

    pub(crate) fn block(&self, hash: &BlockHash) -> Stored<Block> {
        let Some(height) = self.height_of(hash) else { return Ok(None) };
        let Some(bytes) = self.index.stored_block(height, hash).map_err(sentence)? else { return Ok(None) };
        let parsed = RawBlock::new(bytes).parse().ok().filter(|block| is_whole(block, hash));
        parsed.map(Some).ok_or_else(|| format!("the store of the index has something else as block {hash}"))
    }

    /// Transactions at places, with the hashes of their blocks: `None` unless the store has all of these.
    pub(crate) fn transactions(&self, places: &[(Place, BlockHash)]) -> Stored<Vec<Transaction>> {
        let Some(all) = self.index.stored_transactions(places).map_err(sentence)? else { return Ok(None) };
        let parse = |((place, hash), bytes): (&(Place, BlockHash), Vec<u8>)| {
            let wrong =
                |_| format!("the store of the index has no transaction at byte {} of block {hash}", place.offset);
            Transaction::parse(bytes).map_err(wrong)
        };
        places.iter().zip(all).map(parse).collect::<Result<_, _>>().map(Some)
    }

    /// The headers of blocks that follow each other.
    pub(crate) fn headers(&self, from: u32, hashes: &[BlockHash]) -> Stored<Vec<Header>> {
        let blocks: Vec<(u32, BlockHash)> = (from..).zip(hashes.iter().copied()).collect();
        self.index.stored_headers(&blocks).map_err(sentence)
    }

    pub(crate) fn info(&self, hash: &BlockHash) -> Stored<BlockInfo> {
        let Some(height) = self.height_of(hash) else { return Ok(None) };
        let first = (height + 1).saturating_sub(MEDIAN_TIME_SPAN);
        let hashes = self.index.hashes(first, MEDIAN_TIME_SPAN as usize + 1);
        let (own, next) = hashes.split_at((height - first + 1).min(MEDIAN_TIME_SPAN) as usize);
        if own.last() != Some(hash) {
            // The chain moved.
            return Ok(None);
        }
        let Some(headers) = self.headers(first, own)? else { return Ok(None) };
        let Some(header) = headers.last().copied() else { return Ok(None) };
        let mut times: Vec<u32> = headers.iter().map(|header| header.time).collect();
        times.sort_unstable();
        let median_time = times.get(times.len() / 2).copied().unwrap_or(header.time).into();
        let next = next.first().copied();
        Ok(Some(BlockInfo { hash: *hash, header, height, median_time, is_active: true, next }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed<T>(text: &str) -> Result<Option<T>, QueryError> {
        Err(QueryError::Failed(text.to_owned()))
    }

    #[test]
    fn the_second_one_is_asked_if_the_first_one_has_nothing_or_fails() {
        let fault = || Err("the store is gone".to_owned());
        assert_eq!(or_of_nodes(Ok(Some(1)), || unreachable!()), Ok(Some(1)));
        assert_eq!(or_of_nodes(Ok(None), || Ok(Some(2))), Ok(Some(2)));
        assert_eq!(or_of_nodes(fault(), || Ok(Some(2))), Ok(Some(2)));
        assert_eq!(or_of_nodes::<u8>(fault(), || failed("no node")), failed("no node; and the store is gone"));
        assert_eq!(or_of_nodes::<u8>(fault(), || Err(QueryError::Moving)), Err(QueryError::Moving));
        assert_eq!(or_of_store(Ok(Some(1)), || unreachable!()), Ok(Some(1)));
        assert_eq!(or_of_store::<u8>(Ok(None), || unreachable!()), Ok(None));
        assert_eq!(or_of_store::<u8>(Err(QueryError::Moving), || unreachable!()), Err(QueryError::Moving));
        assert_eq!(or_of_store(failed("no node"), || Ok(Some(2))), Ok(Some(2)));
        assert_eq!(or_of_store::<u8>(failed("no node"), || Ok(None)), failed("no node"));
        assert_eq!(or_of_store::<u8>(failed("no node"), fault), failed("no node; and the store is gone"));
    }
}
