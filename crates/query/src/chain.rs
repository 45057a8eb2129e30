//! [`NodeChain`]: the chain of the engine in this process.
//!
//! Cost: locks of the header tree for headers; a read of a block's bytes for its txids, of a transaction's bytes for a
//! transaction.

use crate::error::QueryError;
use crate::source::{BlockInfo, Chain};
use lydian_chain::{HeaderId, HeaderTree};
use lydian_engine::{Engine, Tip};
use lydian_index::Place;
use lydian_primitives::{Block, BlockHash, Header, Height, Transaction, Txid};
use std::sync::{Arc, Weak};

/// The chain of an engine.
#[derive(Clone, Debug)]
pub struct NodeChain {
    /// Weak, since what has this may outlive the engine.
    engine: Weak<Engine>,
}

impl NodeChain {
    pub fn new(engine: &Arc<Engine>) -> NodeChain {
        NodeChain { engine: Arc::downgrade(engine) }
    }

    fn engine(&self) -> Result<Arc<Engine>, QueryError> {
        self.engine.upgrade().ok_or(QueryError::Stopping)
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
        match engine.block(&info)? {
            Some(block) => Ok(Some((info.node.hash, block.txs().map(|tx| tx.txid()).collect()))),
            None if info.is_pruned() => Err(QueryError::Pruned(height)),
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
        if info.is_pruned() {
            return Err(QueryError::Pruned(info.node.height));
        }
        Ok(engine.block(&info)?)
    }

    fn transaction(&self, place: Place) -> Result<Option<Transaction>, QueryError> {
        let engine = self.engine()?;
        let Some(info) = engine.header_info_at(place.height) else { return Ok(None) };
        if info.is_pruned() {
            return Err(QueryError::Pruned(place.height));
        }
        let bytes = engine.block_part(&info, place.offset, place.size)?;
        Ok(bytes.and_then(|bytes| Transaction::parse(bytes).ok()))
    }
}
