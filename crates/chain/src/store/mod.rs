//! [`BlockStore`]: blocks and undo data in files of Core's framing, and the log that says where they are. Input: bytes of blocks, what became
//! known of them. Output: positions; bytes at positions; after a restart the header tree as it was.
//!
//! Every method takes `&self` and may be called from any thread; reads do not wait for appends. Invariants: what [`BlockStore::sync`] returned
//! for is there after any crash; what came later is there whole, or is gone and said to be gone; adopted files are never written to and never
//! removed; after a write or sync that failed nothing is taken any more until the store is opened again. No clock, no randomness, no rule.

mod entry;
mod error;
mod files;
mod log;
mod open;
mod prune;
mod read;
mod recover;
mod reindex;
mod remark;
mod writer;

pub use entry::IndexEntry;
pub use error::{ChainError, UndoFault};
pub use files::{BLOCKS_FILES, INDEX_FILES};
pub use log::INDEX_VERSION;
pub use open::{Layout, Opened};
pub use prune::Pruned;
pub use reindex::wipe_for_reindex;
pub use remark::StoreRemark;

use crate::files::BlockFile;
use crate::limits::{BLOCK_FILE_SIZE_MAX, INDEX_QUEUE_ENTRIES_MAX, PATH_SIZE_MAX};
use crate::position::{BlockPosition, UndoPosition};
use crate::undo::BlockUndo;
use entry::LogItem;
use files::{Files, Part, lock};
use log::LogWriter;
use lydian_consensus::{Coin, Params};
use lydian_disk::{Disk, DiskError, OwnDir};
use lydian_primitives::{Block, BlockHash, RawBlock};
use std::path::Path;
use std::sync::{Arc, Mutex};
use writer::{BlockWriter, UndoWriter};

/// The store.
#[derive(Debug)]
pub struct BlockStore {
    disk: Arc<dyn Disk>,
    magic: [u8; 4],
    index: OwnDir,
    files: Files,
    blocks: Mutex<BlockWriter>,
    undos: Mutex<UndoWriter>,
    /// Taken before `queue` by those who want both.
    log: Mutex<LogWriter>,
    /// What was recorded and is not yet given to the log, so that who records does not wait for a sync.
    queue: Mutex<Queue>,
    /// The first write or sync that failed.
    failed: Mutex<Option<ChainError>>,
}

#[derive(Debug, Default)]
struct Queue {
    items: Vec<LogItem>,
    /// The id of the next header.
    next_id: u32,
}

impl BlockStore {
    /// Opens the store of a chain, or makes it; replays the index log and finds what a crash left behind it.
    pub fn open(disk: Arc<dyn Disk>, layout: &Layout, params: &Params) -> Result<Opened, ChainError> {
        open::open(disk, layout, params, &mut |_, _| {})
    }

    /// The same. `progress` is told each block file of our own that is about to be scanned, and how many blocks were found so far that the
    /// index log did not have.
    pub fn open_with(
        disk: Arc<dyn Disk>,
        layout: &Layout,
        params: &Params,
        progress: &mut dyn FnMut(&Path, usize),
    ) -> Result<Opened, ChainError> {
        open::open(disk, layout, params, progress)
    }

    /// Appends a block to the last block file of our own. It is safe on the disk after the next [`BlockStore::sync`], and known after a
    /// restart once [`IndexEntry::Block`] is recorded.
    pub fn append_block(&self, block: &[u8]) -> Result<BlockPosition, ChainError> {
        self.check()?;
        let appended = lock(&self.blocks).append(self.disk.as_ref(), &self.files, self.magic, block);
        appended.map_err(|error| self.fail(error))
    }

    /// Makes block files smaller than Core's 128 MiB, so that few blocks fill several: Core's `-fastprune`.
    pub fn set_block_file_size_max(&self, bytes: u64) {
        lock(&self.blocks).size_max = bytes.min(BLOCK_FILE_SIZE_MAX);
    }

    /// Takes in files of blocks that are read where they lie; gives the number of each, which positions then name. A file that is known keeps
    /// its number. The caller scans them.
    pub fn adopt(&self, files: &[BlockFile], is_external: bool) -> Result<Vec<u32>, ChainError> {
        self.check()?;
        let is_long = |file: &&BlockFile| file.path.as_os_str().len() > PATH_SIZE_MAX;
        if let Some(file) = files.iter().find(is_long) {
            return Err(ChainError::PathTooLong { path: file.path.clone() });
        }
        let mut numbers = Vec::with_capacity(files.len());
        for adopted in files {
            let (file, is_new) = self.files.adopt(adopted, is_external);
            if is_new {
                let BlockFile { path, key } = adopted.clone();
                self.enqueue([LogItem::File { file, path, key, is_external }]);
            }
            numbers.push(file);
        }
        Ok(numbers)
    }

    /// The file of a number, if there is one.
    pub fn file(&self, file: u32) -> Option<BlockFile> {
        self.files.get(file).map(|known| BlockFile { path: known.path, key: known.key })
    }

    /// The bytes at a position. Whether they are the block that was meant, only its hash tells.
    pub fn read_block(&self, position: BlockPosition) -> Result<RawBlock, ChainError> {
        read::read_block(&self.files, position)
    }

    /// The first bytes of a block, as many as there are up to `size`.
    pub fn read_block_start(&self, position: BlockPosition, size: usize) -> Result<Vec<u8>, ChainError> {
        let BlockPosition { file, offset, size: whole } = position;
        let opened = self.files.open(file, Part::Blocks, offset.saturating_add(u64::from(whole)))?;
        Ok(opened.read(offset, size.min(whole as usize))?)
    }

    /// Bytes of block files of our own, and of undo files.
    pub fn size_on_disk(&self) -> Result<u64, ChainError> {
        let mut bytes = 0;
        for (file, known) in self.files.all() {
            bytes += self.size(file, Part::Undo)?;
            if !known.is_external {
                bytes += self.size(file, Part::Blocks)?;
            }
        }
        Ok(bytes)
    }

    /// Says that a block will be read soon. Never an error.
    pub fn prefetch(&self, position: BlockPosition) {
        let BlockPosition { file, offset, size } = position;
        if let Ok(opened) = self.files.open(file, Part::Blocks, offset.saturating_add(u64::from(size))) {
            opened.prefetch(offset, u64::from(size));
        }
    }

    /// Appends the undo data of a block to the undo file that has the number of the block's.
    pub fn append_undo(
        &self,
        block: BlockPosition,
        prev_hash: &BlockHash,
        undo: &[u8],
    ) -> Result<UndoPosition, ChainError> {
        self.check()?;
        let appended = lock(&self.undos).append(self.disk.as_ref(), &self.files, self.magic, block, prev_hash, undo);
        appended.map_err(|error| self.fail(error))
    }

    /// The undo data at a position, its frame and checksum compared. `prev_hash` is that of the block's parent.
    pub fn read_undo(&self, position: UndoPosition, prev_hash: &BlockHash) -> Result<BlockUndo, ChainError> {
        read::read_undo(&self.files, self.magic, position, prev_hash)
    }

    /// The coins that a block spent, in the order of its inputs; an error if there is not one for each.
    pub fn read_spent(&self, position: UndoPosition, block: &Block) -> Result<Vec<Coin>, ChainError> {
        let undo = self.read_undo(position, &block.header().prev_block)?;
        if undo.fits(block) {
            return Ok(undo.coins);
        }
        let path = self.files.path(position.file, Part::Undo);
        Err(ChainError::UndoDamaged { path, offset: position.offset, fault: UndoFault::OtherBlock })
    }

    /// Takes entries for the index log. They are written by [`BlockStore::flush`] and [`BlockStore::sync`], which also tell what went wrong
    /// here. Headers must come in the order of their ids: whoever enters one into the tree records it while nobody else can.
    ///
    /// Does not wait for a sync that is under way, unless very much came since it began.
    pub fn record(&self, entries: &[IndexEntry]) {
        if self.check().is_err() {
            return;
        }
        self.enqueue(entries.iter().cloned().map(LogItem::Entry));
    }

    fn enqueue(&self, items: impl IntoIterator<Item = LogItem>) {
        let is_full = {
            let mut queue = lock(&self.queue);
            for item in items {
                if let LogItem::Entry(IndexEntry::Header { id, .. }) = &item {
                    assert_eq!(id.0, queue.next_id, "headers are recorded in the order of their ids");
                    queue.next_id += 1;
                }
                queue.items.push(item);
            }
            queue.items.len() >= INDEX_QUEUE_ENTRIES_MAX
        };
        if is_full && let Err(error) = self.drain(&mut lock(&self.log)) {
            self.fail(error.into());
        }
    }

    /// Gives what was recorded to the log, whose lock the caller holds: so the order is kept.
    fn drain(&self, log: &mut LogWriter) -> Result<(), DiskError> {
        let items = std::mem::take(&mut lock(&self.queue).items);
        items.iter().try_for_each(|item| log.push(item))
    }

    /// Writes the entries recorded so far. They survive the end of the process, not that of power.
    pub fn flush(&self) -> Result<(), ChainError> {
        self.check()?;
        let mut log = lock(&self.log);
        let flushed = self.drain(&mut log).and_then(|()| log.flush());
        flushed.map_err(|error| self.fail(error.into()))
    }

    /// Returns when everything appended and recorded so far is safe on the disk.
    pub fn sync(&self) -> Result<(), ChainError> {
        self.check()?;
        // Held throughout, so that no entry is written whose bytes were appended after their file was synced; entries that come meanwhile
        // wait in the queue.
        let mut log = lock(&self.log);
        let synced = self.drain(&mut log);
        let synced = synced.and_then(|()| lock(&self.blocks).sync());
        let synced = synced.and_then(|()| lock(&self.undos).sync());
        let synced = synced.and_then(|()| log.sync());
        synced.map_err(|error| self.fail(error.into()))
    }

    /// Whether a reindex was begun and not finished: blocks may be missing from the tree that lie in the files.
    pub fn is_reindexing(&self) -> Result<bool, ChainError> {
        reindex::is_marked(self.disk.as_ref(), &self.index)
    }

    /// The reindex is finished: everything that was found is recorded. Syncs first.
    pub fn finish_reindex(&self) -> Result<(), ChainError> {
        self.sync()?;
        reindex::unmark(self.disk.as_ref(), &self.index).map_err(|error| self.fail(error))
    }

    /// An error if something failed before, as every method but [`BlockStore::record`] says.
    pub fn check(&self) -> Result<(), ChainError> {
        match &*lock(&self.failed) {
            Some(first) => Err(ChainError::Poisoned { first: Box::new(first.clone()) }),
            None => Ok(()),
        }
    }

    fn fail(&self, error: ChainError) -> ChainError {
        lock(&self.failed).get_or_insert_with(|| error.clone());
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::NodeId;
    use lydian_consensus::Chain;
    use lydian_disk::SimDisk;

    /// Who records does not wait for a sync that is under way (here: for the log, which it holds), until too much waits; and all of it is in
    /// the log in the end, in order.
    /// limit: INDEX_QUEUE_ENTRIES_MAX at
    /// limit: INDEX_QUEUE_ENTRIES_MAX above
    #[test]
    fn recording_waits_for_a_sync_only_when_much_waits() {
        let disk = SimDisk::new(1);
        let layout = Layout { blocks: "blocks".into(), index: "index".into(), new_key: [0; 8] };
        let params = Params::new(Chain::Regtest);
        let Opened { store, mut tree, .. } = BlockStore::open(Arc::new(disk.clone()), &layout, &params).unwrap();
        let mut tip = NodeId::GENESIS;
        let entries: Vec<_> = (0..INDEX_QUEUE_ENTRIES_MAX + 1)
            .map(|_| {
                let header = lydian_primitives::Header { prev_block: *tree.hash(tip), ..tree.header(NodeId::GENESIS) };
                tip = tree.restore_header(&header).unwrap();
                IndexEntry::Header { id: tip, header }
            })
            .collect();
        let log = lock(&store.log);
        store.record(&entries[..INDEX_QUEUE_ENTRIES_MAX - 1]);
        assert_eq!(lock(&store.queue).items.len(), INDEX_QUEUE_ENTRIES_MAX - 1);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| store.record(&entries[INDEX_QUEUE_ENTRIES_MAX - 1..]));
            while lock(&store.queue).items.len() <= INDEX_QUEUE_ENTRIES_MAX {
                std::thread::yield_now();
            }
            assert!(!waits.is_finished(), "it waits for the log");
            drop(log);
        });
        assert!(lock(&store.queue).items.is_empty());
        store.sync().unwrap();
        drop(store);
        let reopened = BlockStore::open(Arc::new(disk), &layout, &params).unwrap();
        assert_eq!(reopened.tree.len(), tree.len());
        assert!(tree.ids().all(|id| reopened.tree.hash(id) == tree.hash(id)));
    }
}
