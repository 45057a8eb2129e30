//! Blocks from the store, as a front end reads them.
//!
//! Input: heights and hashes of blocks of the index, and places of transactions. Output: their bytes, from values that
//! were checked; nothing if the commit row does not say that the store has them; an error if it says so and they are
//! missing on a quorum of replicas. Cost: a round for parts of blocks, of which only those with the wanted bytes are
//! read; two rounds for a whole block, since its size is in its head.

use crate::ahead::block_hashes;
use crate::blocks::{self, BLOCK_PART_BYTES, BlockHead};
use crate::commit::Commit;
use crate::fetch::{Fetcher, READS_AT_ONCE};
use crate::reader::SharedIndex;
use crate::runs::series_at;
use crate::seal::Sealed;
use crate::store::{BlockHeight, Key, Store, StoreError};
use crate::writer::WriterError;
use lydian_index::Place;
use lydian_primitives::{BlockHash, Header};
use std::collections::HashMap;
use std::sync::Arc;

impl SharedIndex {
    /// Whether the row has any block.
    pub fn has_blocks(&self) -> bool {
        self.row.get().commit.stored_blocks() > 0
    }

    /// Whether the block of the chain at a height is in the store.
    pub fn has_block(&self, height: u32) -> bool {
        self.block_place(height).is_some()
    }

    /// The height of a block of the chain: see [`lydian_index::RemoteTables::height_of`].
    pub fn height_of(&self, hash: &BlockHash) -> Option<u32> {
        self.tables.get().height_of(hash)
    }

    fn block_place(&self, height: u32) -> Option<BlockHeight> {
        series_at(&self.row.get().commit.blocks, height).map(|series| BlockHeight { series, height })
    }

    /// The headers of blocks; `None` if the store does not have all of them.
    pub fn stored_headers(&self, blocks: &[(u32, BlockHash)]) -> Result<Option<Vec<Header>>, StoreError> {
        let place = |(height, hash): &(u32, BlockHash)| Some((self.block_place(*height)?, *hash));
        let Some(places) = blocks.iter().map(place).collect::<Option<Vec<_>>>() else { return Ok(None) };
        Ok(Some(self.fetcher.heads(&places)?.into_iter().map(|head| head.header).collect()))
    }

    /// The bytes of a block; `None` if the store does not have it.
    pub fn stored_block(&self, height: u32, hash: &BlockHash) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(at) = self.block_place(height) else { return Ok(None) };
        self.fetcher.block(at, hash).map(Some)
    }

    /// The bytes of transactions at places, with the hashes of their blocks; `None` if the store does not have all of
    /// these blocks.
    pub fn stored_transactions(&self, places: &[(Place, BlockHash)]) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
        let row = self.row.get();
        let wanted = |(place, hash): &(Place, BlockHash)| {
            let height = place.height.0;
            let at = BlockHeight { series: series_at(&row.commit.blocks, height)?, height };
            Some(Wanted { at, hash: *hash, offset: place.offset, size: place.size })
        };
        let wanted: Option<Vec<Wanted>> = places.iter().map(wanted).collect();
        wanted.map(|wanted| self.fetcher.ranges(&wanted)).transpose()
    }
}

/// Bytes of a block.
struct Wanted {
    at: BlockHeight,
    hash: BlockHash,
    offset: u32,
    size: u32,
}

impl Wanted {
    fn keys(&self) -> impl Iterator<Item = Key> {
        let (at, hash) = (self.at, self.hash);
        blocks::parts_of(self.offset, self.size).map(move |part| blocks::key(at, hash, part))
    }

    /// The bytes, from the contents of its parts.
    fn take(&self, parts: &HashMap<Key, Vec<u8>>) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        for key in self.keys() {
            bytes.extend_from_slice(parts.get(&key).map(Vec::as_slice).unwrap_or_default());
        }
        let start = self.offset as usize % BLOCK_PART_BYTES;
        let found = start.checked_add(self.size as usize).and_then(|end| bytes.get(start..end));
        let short = || {
            let key = blocks::key(self.at, self.hash, *blocks::parts_of(self.offset, self.size).end());
            Sealed::Value(key).damaged("the block ends before a transaction that it should have")
        };
        found.map(<[u8]>::to_vec).ok_or_else(short)
    }
}

impl Fetcher {
    fn heads(&self, blocks: &[(BlockHeight, BlockHash)]) -> Result<Vec<BlockHead>, StoreError> {
        let key = |(at, hash): &(BlockHeight, BlockHash)| blocks::key(*at, *hash, 0);
        let contents = self.read(&blocks.iter().map(key).collect::<Vec<Key>>())?;
        let head = |(block, content): (&(BlockHeight, BlockHash), Vec<u8>)| {
            let damaged = || Sealed::Value(key(block)).damaged("it is not the head of this block");
            BlockHead::decode(&content, &block.1).ok_or_else(damaged)
        };
        blocks.iter().zip(contents).map(head).collect()
    }

    fn block(&self, at: BlockHeight, hash: &BlockHash) -> Result<Vec<u8>, StoreError> {
        let damaged = |part, what| Sealed::Value(blocks::key(at, *hash, part)).damaged(what);
        let head = self.heads(&[(at, *hash)])?.pop().ok_or_else(|| damaged(0, "it was not read"))?;
        let keys: Vec<Key> = head.parts().map(|part| blocks::key(at, *hash, part)).collect();
        let bytes = self.read(&keys)?.concat();
        let is_whole = bytes.len() == head.size as usize;
        if is_whole { Ok(bytes) } else { Err(damaged(0, "the parts have another size than the block")) }
    }

    /// Ranges of blocks. A part that several of them need is read once, if they follow each other.
    fn ranges(&self, wanted: &[Wanted]) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut all = Vec::with_capacity(wanted.len());
        while let Some(rest) = wanted.get(all.len()..).filter(|rest| !rest.is_empty()) {
            let mut keys: Vec<Key> = Vec::new();
            let mut some = 0;
            for one in rest {
                let new: Vec<Key> = one.keys().filter(|key| !keys.contains(key)).collect();
                // A single one that has more is read alone.
                if some > 0 && keys.len() + new.len() > READS_AT_ONCE {
                    break;
                }
                keys.extend(new);
                some += 1;
            }
            let parts: HashMap<Key, Vec<u8>> = keys.iter().copied().zip(self.read(&keys)?).collect();
            for one in rest.iter().take(some) {
                all.push(one.take(&parts)?);
            }
        }
        Ok(all)
    }
}

/// The bytes of the blocks that a row says are in the store. Reads the head of the last block of each run.
pub fn stored_bytes(store: &Arc<dyn Store>, commit: &Commit) -> Result<u64, WriterError> {
    let runs = commit.blocks.iter().filter(|run| !run.heights.is_empty());
    let last: Vec<BlockHeight> =
        runs.map(|run| BlockHeight { series: run.series, height: run.heights.end - 1 }).collect();
    let hashes = block_hashes(store, commit, &last.iter().map(|at| at.height).collect::<Vec<u32>>())?;
    let heads: Vec<(BlockHeight, BlockHash)> =
        last.into_iter().zip(hashes).filter_map(|(at, hash)| Some((at, hash?))).collect();
    let heads = Fetcher::new(Arc::clone(store)).heads(&heads)?;
    Ok(heads.iter().map(|head| head.total).fold(0, u64::saturating_add))
}
