//! [`NodeChain`]: the chain of the engine in this process.
//!
//! Cost: locks of the header tree for headers; a read of a block's bytes for its txids, of a transaction's bytes for a
//! transaction. For a block that was pruned, [`PrunedBlocks`] has it fetched as a whole.

use crate::allowance::Allowance;
use crate::error::QueryError;
use crate::pruned::PrunedBlocks;
use crate::source::{BlockInfo, Chain, SpentOutput};
use lydian_chain::{BlockPart, HeaderId, HeaderTree, UndoParts};
use lydian_engine::{Engine, EngineError, HeaderInfo, Tip};
use lydian_index::Place;
use lydian_primitives::{Block, BlockHash, Header, Height, RawBlock, Transaction, Txid};
use std::sync::{Arc, Weak};

/// The chain of an engine.
#[derive(Clone, Debug)]
pub struct NodeChain {
    /// Weak, since what has this may outlive the engine.
    engine: Weak<Engine>,
    /// Where pruned blocks come from; `None`: they are errors.
    pruned: Option<PrunedBlocks>,
    /// Whether an answer waits for a pruned block. Otherwise there is none until the block is here.
    waits: bool,
}

impl NodeChain {
    pub fn new(engine: &Arc<Engine>) -> NodeChain {
        NodeChain { engine: Arc::downgrade(engine), pruned: None, waits: true }
    }

    /// Pruned blocks come from there.
    pub fn with_pruned(self, pruned: PrunedBlocks) -> NodeChain {
        NodeChain { pruned: Some(pruned), ..self }
    }

    /// The same chain for a caller that must not wait: an answer that needs a pruned block is an error until the block
    /// was fetched, so the caller asks again.
    pub fn without_waiting(&self) -> NodeChain {
        NodeChain { waits: false, ..self.clone() }
    }

    fn engine(&self) -> Result<Arc<Engine>, QueryError> {
        self.engine.upgrade().ok_or(QueryError::Stopping)
    }

    /// Reads something of a block: from disk, or from its bytes if it was pruned.
    fn read<T>(
        &self,
        engine: &Engine,
        info: HeaderInfo,
        from_disk: impl Fn(&HeaderInfo) -> Result<Option<T>, EngineError>,
        from_bytes: impl Fn(Arc<[u8]>) -> Option<T>,
    ) -> Result<Option<T>, QueryError> {
        let (hash, height) = (info.node.hash, info.node.height);
        if !info.is_pruned() {
            match from_disk(&info) {
                Ok(Some(found)) => return Ok(Some(found)),
                // It may have been pruned after the look at its header.
                _ if engine.header_info(&hash).is_some_and(|now| now.is_pruned()) => {}
                failed => return Ok(failed?),
            }
        }
        let pruned = self.pruned.as_ref().ok_or(QueryError::Pruned(height))?;
        let bytes = if self.waits { pruned.get(&hash, height) } else { pruned.get_later(&hash, height) };
        Ok(from_bytes(bytes?))
    }

    /// Runs `look` on each of the heights that the chain has.
    fn map<T>(
        &self,
        from: Height,
        count: usize,
        look: impl Fn(&HeaderTree, HeaderId) -> T,
    ) -> Result<Vec<T>, QueryError> {
        let engine = self.engine()?;
        let mut all = Vec::new();
        let mut next = from.0;
        while all.len() < count {
            // Incoming blocks wait for the tree, so it is held for a few headers at a time.
            let step = (count - all.len()).min(HEADERS_AT_ONCE);
            let end = next.saturating_add(u32::try_from(step).unwrap_or(u32::MAX));
            let some: Vec<T> = engine.with_tree(|tree| {
                (next..end).map_while(|height| tree.active(Height(height)).map(|id| look(tree, id))).collect()
            });
            let is_last = some.len() < step;
            all.extend(some);
            if is_last {
                break;
            }
            next = end;
        }
        Ok(all)
    }
}

/// Headers that are read under one lock of the tree.
const HEADERS_AT_ONCE: usize = 512;

impl Chain for NodeChain {
    fn tip(&self) -> Result<Tip, QueryError> {
        Ok(self.engine()?.settled_tip())
    }

    fn headers(&self, from: Height, count: usize) -> Result<Vec<Header>, QueryError> {
        self.map(from, count, |tree, id| tree.node(id).header)
    }

    fn hashes(&self, from: Height, count: usize) -> Result<Vec<BlockHash>, QueryError> {
        self.map(from, count, |tree, id| *tree.hash(id))
    }

    fn txids(&self, height: Height) -> Result<Option<(BlockHash, Vec<Txid>)>, QueryError> {
        let engine = self.engine()?;
        let Some(info) = engine.header_info_at(height) else { return Ok(None) };
        match self.read(&engine, info, |info| engine.block(info), parse)? {
            Some(block) => Ok(Some((info.node.hash, block.txs().map(|tx| tx.txid()).collect()))),
            None => Err(QueryError::Failed(format!("the block at height {height} cannot be read"))),
        }
    }

    fn block_info(&self, hash: &BlockHash) -> Result<Option<BlockInfo>, QueryError> {
        let found = self.engine()?.header_info(hash);
        Ok(found.map(|info| BlockInfo {
            hash: info.node.hash,
            header: info.node.header,
            height: info.node.height.0,
            median_time: info.median_time,
            is_active: info.is_active,
            next: info.next,
        }))
    }

    fn block(&self, hash: &BlockHash) -> Result<Option<Block>, QueryError> {
        let engine = self.engine()?;
        let Some(info) = engine.header_info(hash) else { return Ok(None) };
        self.read(&engine, info, |info| engine.block(info), parse)
    }

    fn spent(&self, hash: &BlockHash, block: &Block) -> Result<Option<Vec<SpentOutput>>, QueryError> {
        let engine = self.engine()?;
        let Some(info) = engine.header_info(hash) else { return Ok(None) };
        let coins = engine.spent_coins(&info, block)?;
        let outputs = coins.map(|coins| coins.into_iter().map(|coin| (coin.value.0, coin.script_pubkey)));
        Ok(outputs.map(|all| all.map(|(value, script_pubkey)| SpentOutput { value, script_pubkey }).collect()))
    }

    fn undo(&self, hash: &BlockHash, bytes_max: usize) -> Result<Option<UndoParts>, QueryError> {
        let engine = self.engine()?;
        let Some(info) = engine.header_info(hash) else { return Ok(None) };
        Ok(engine.undo_parts(&info, bytes_max)?)
    }

    fn transaction(&self, place: Place) -> Result<Option<Transaction>, QueryError> {
        let engine = self.engine()?;
        let Some(info) = engine.header_info_at(place.height) else { return Ok(None) };
        let from_disk = |info: &HeaderInfo| engine.block_part(info, place.offset, place.size);
        let bytes = self.read(&engine, info, from_disk, |bytes| part(&bytes, place))?;
        Ok(bytes.and_then(|bytes| Transaction::parse(bytes).ok()))
    }

    fn transactions(&self, places: &[Place]) -> Result<Vec<Option<Transaction>>, QueryError> {
        let engine = self.engine()?;
        let mut all = Vec::with_capacity(places.len());
        for some in places.chunks(HEADERS_AT_ONCE) {
            let parts: Option<Vec<BlockPart>> = engine.with_tree(|tree| {
                let part = |place: &Place| {
                    let block = tree.node(tree.active(place.height)?).block?;
                    Some(BlockPart { block, start: place.offset, size: place.size })
                };
                some.iter().map(part).collect()
            });
            // One by one if a block is missing, or was pruned after the look at its header.
            let read = parts.and_then(|parts| engine.block_parts(&parts).ok());
            match read {
                Some(read) => {
                    all.extend(read.into_iter().map(|bytes| bytes.and_then(|bytes| Transaction::parse(bytes).ok())));
                }
                None => all.extend(some.iter().map(|place| self.transaction(*place)).collect::<Result<Vec<_>, _>>()?),
            }
        }
        Ok(all)
    }

    fn is_pruned(&self, height: Height) -> bool {
        let engine = self.engine.upgrade();
        engine.is_some_and(|engine| engine.with_tree(|tree| pruned_at(tree, height)).is_some())
    }

    fn check_fetches(&self, mut heights: Vec<Height>) -> Result<(), QueryError> {
        let Some((allowance, pruned)) = Allowance::current().zip(self.pruned.as_ref()) else { return Ok(()) };
        heights.sort_unstable();
        heights.dedup();
        if heights.len() <= allowance.left() {
            return Ok(());
        }
        let engine = self.engine()?;
        let mut needed = 0;
        for some in heights.chunks(HEADERS_AT_ONCE) {
            let hashes: Vec<BlockHash> =
                engine.with_tree(|tree| some.iter().filter_map(|height| pruned_at(tree, *height)).collect());
            needed += pruned.missing(&hashes);
        }
        allowance.check(needed)
    }
}

/// The hash of the block of the active chain at a height, if it was pruned.
fn pruned_at(tree: &HeaderTree, height: Height) -> Option<BlockHash> {
    let node = tree.node(tree.active(height)?);
    (node.block.is_none() && node.sequence.is_some()).then_some(node.hash)
}

fn parse(bytes: Arc<[u8]>) -> Option<Block> {
    RawBlock::new(Box::<[u8]>::from(&*bytes)).parse().ok()
}

/// The bytes of a transaction of a block.
fn part(block: &[u8], place: Place) -> Option<Vec<u8>> {
    let start = place.offset as usize;
    Some(block.get(start..start.checked_add(place.size as usize)?)?.to_vec())
}
