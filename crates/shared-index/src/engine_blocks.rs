//! [`EngineBlocks`]: the blocks of the engine in this process, for the writer.
//!
//! Input: heights and hashes. Output: the bytes of blocks that were not pruned, with their transactions checked for the
//! merkle root, so that nothing else gets into the store. Cost: a read of the block and two hashes for each
//! transaction.

use crate::block_upload::BlockSource;
use lydian_engine::{Engine, HeaderInfo};
use lydian_primitives::{BlockHash, Height, RawBlock};
use lydian_stdx::lock;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, Weak};

/// Headers that are looked at under one lock of the tree.
const HEADERS_AT_ONCE: u32 = 512;

#[derive(Debug)]
pub struct EngineBlocks {
    /// Weak, since the writer may outlive the engine.
    engine: Weak<Engine>,
    /// A height, and the lowest one from there on that had a block: those between were pruned.
    pruned: Mutex<(u32, u32)>,
}

impl EngineBlocks {
    pub fn new(engine: &Arc<Engine>) -> EngineBlocks {
        EngineBlocks { engine: Arc::downgrade(engine), pruned: Mutex::default() }
    }
}

/// The bytes of a block whose transactions are those of its header; or one sentence.
pub fn checked_block(raw: RawBlock, hash: &BlockHash) -> Result<Vec<u8>, String> {
    let damaged = || format!("block {hash} cannot be written to the store: its file is damaged");
    let block = raw.parse().map_err(|_| damaged())?;
    let is_same = block.hash() == *hash && block.merkle_root() == block.header().merkle_root;
    if is_same { Ok(block.as_bytes().to_vec()) } else { Err(damaged()) }
}

impl BlockSource for EngineBlocks {
    fn first_from(&self, height: u32) -> Option<u32> {
        let engine = self.engine.upgrade()?;
        let (from, found) = *lock(&self.pruned);
        let mut next = if (from..=found).contains(&height) { found } else { height };
        loop {
            let end = next.saturating_add(HEADERS_AT_ONCE);
            // Incoming blocks wait for the tree, so it is held for a few headers at a time.
            let look = engine.with_tree(|tree| {
                for height in next..end {
                    match tree.active(Height(height)) {
                        Some(id) if tree.block(id).is_some() => return ControlFlow::Break(Some(height)),
                        Some(_) => {}
                        None => return ControlFlow::Break(None),
                    }
                }
                ControlFlow::Continue(())
            });
            let ControlFlow::Break(found) = look else {
                next = end;
                continue;
            };
            let found = found?;
            if found - height >= HEADERS_AT_ONCE {
                *lock(&self.pruned) = (height, found);
            }
            return Some(found);
        }
    }

    fn block(&self, height: u32, hash: &BlockHash) -> Result<Option<Vec<u8>>, String> {
        let Some(engine) = self.engine.upgrade() else { return Ok(None) };
        let is_pruned = || engine.header_info(hash).is_none_or(|info: HeaderInfo| info.is_pruned());
        let Some(info) = engine.header_info(hash).filter(|info| !info.is_pruned()) else { return Ok(None) };
        match engine.raw_block(&info) {
            Ok(Some(raw)) => checked_block(raw, hash).map(Some),
            // It may have been pruned after the look at its header.
            Ok(None) | Err(_) if is_pruned() => Ok(None),
            Ok(None) => Err(format!("block {hash} at height {height} is missing")),
            Err(error) => Err(format!("block {hash} at height {height} cannot be read: {error}")),
        }
    }
}
