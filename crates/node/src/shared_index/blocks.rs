//! [`FileBlocks`]: the blocks of a data directory without a node, for `lydian index load` and `verify`.
//!
//! Input: the block files and the log with the places of their blocks. Output: the bytes of the blocks of the index's
//! chain, checked for their merkle roots. Memory: the headers. The caller holds the lock of the data directory.

use crate::settings::Settings;
use lydian_chain::{BlockStore, ChainError, HeaderTree, Layout};
use lydian_disk::Disk;
use lydian_engine::Tip;
use lydian_primitives::{BlockHash, Height};
use lydian_shared_index::{BlockSource, checked_block};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct FileBlocks {
    store: BlockStore,
    /// Its active chain is that of the index.
    tree: HeaderTree,
}

impl FileBlocks {
    /// `None` if the block files do not have the chain up to the block of the index, as during a reindex.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        settings: &Settings,
        tip: Option<Tip>,
    ) -> Result<Option<FileBlocks>, ChainError> {
        // The directory exists, and has a key.
        let layout = Layout { blocks: settings.blocks.clone(), index: settings.index(), new_key: [0; 8] };
        let opened = BlockStore::open(Arc::clone(disk), &layout, &settings.params)?;
        let mut tree = opened.tree;
        let Some(id) = tip.and_then(|tip| tree.find(&tip.hash)).filter(|_| !opened.is_reindexing) else {
            return Ok(None);
        };
        tree.activate(id);
        Ok(Some(FileBlocks { store: opened.store, tree }))
    }
}

impl BlockSource for FileBlocks {
    fn first_from(&self, height: u32) -> Option<u32> {
        let tip = self.tree.height(self.tree.tip()).0;
        let is_here = |height: &u32| {
            let id = self.tree.active(Height(*height));
            id.is_some_and(|id| self.tree.block(id).is_some())
        };
        (height..=tip).find(is_here)
    }

    fn block(&self, height: u32, hash: &BlockHash) -> Result<Option<Vec<u8>>, String> {
        let position = self.tree.find(hash).and_then(|id| self.tree.block(id));
        let Some(position) = position else { return Ok(None) };
        let raw = self.store.read_block(position);
        let raw = raw.map_err(|error| format!("block {hash} at height {height} cannot be read: {error}"))?;
        checked_block(raw, hash).map(Some)
    }
}

/// A node that is asked for no block.
#[derive(Debug)]
pub(crate) struct NoBlocks;

impl BlockSource for NoBlocks {
    fn first_from(&self, _: u32) -> Option<u32> {
        None
    }

    fn block(&self, _: u32, _: &BlockHash) -> Result<Option<Vec<u8>>, String> {
        Ok(None)
    }
}
