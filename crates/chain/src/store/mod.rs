//! [`BlockStore`]: blocks and undo data in files with Core's framing, and the log with their positions. Input: block
//! bytes and what becomes known about the blocks. Output: positions, bytes at positions, and after a restart the same
//! header tree.
//!
//! Every method takes `&self` and may be called from any thread; reads do not wait for appends. Invariants: everything
//! before a [`BlockStore::sync`] that returned survives any crash; later data is either complete after a crash, or lost
//! and reported as such; adopted files are never written to or removed; after a failed write or sync the store accepts
//! no more data until it is reopened. No clock, no randomness, no rules.

mod entry;
mod error;
mod files;
mod finder;
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
pub use log::{INDEX_FORMAT, INDEX_VERSION};
pub use open::{Layout, Opened};
pub use prune::Pruned;
pub use read::StoredBytes;
pub use reindex::{Reindexed, wipe_for_reindex};
pub use remark::StoreRemark;

use crate::files::BlockFile;
use crate::limits::{BLOCK_FILE_SIZE_MAX, INDEX_QUEUE_ENTRIES_MAX, PATH_SIZE_MAX};
use crate::position::{BlockPart, BlockPosition, UndoPosition};
use crate::tree::HeaderTree;
use crate::undo::{BlockUndo, UndoParts};
use entry::LogItem;
use files::{Files, Part};
use log::LogWriter;
use lydian_consensus::{Coin, Params};
use lydian_disk::{Disk, DiskError, OwnDir};
use lydian_primitives::{Block, BlockHash, RawBlock};
use lydian_stdx::lock;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};
use writer::{BlockWriter, UndoWriter};

/// The block store.
#[derive(Debug)]
pub struct BlockStore {
    disk: Arc<dyn Disk>,
    magic: [u8; 4],
    index: OwnDir,
    files: Files,
    blocks: Mutex<BlockWriter>,
    undos: Mutex<UndoWriter>,
    /// Locked before `queue` if both are needed.
    log: Mutex<LogWriter>,
    /// Recorded items that are not yet passed to the log, so that `record` does not wait for a sync.
    queue: Mutex<Queue>,
    /// The first failed write or sync.
    failed: Mutex<Option<ChainError>>,
    /// The block files that a reindex has yet to read; `None` if no reindex is in progress.
    unread: Mutex<Option<Vec<u32>>>,
}

#[derive(Debug, Default)]
struct Queue {
    items: Vec<LogItem>,
    /// The id of the next header.
    next_id: u32,
}

impl BlockStore {
    /// Opens the store of a chain, or creates it. Replays the index log and recovers data that a crash left after it.
    pub fn open(disk: Arc<dyn Disk>, layout: &Layout, params: &Params) -> Result<Opened, ChainError> {
        open::open(disk, layout, params, &mut |_, _| {})
    }

    /// Like [`BlockStore::open`]. Calls `progress` with the path of each of our own block files before the part of it
    /// that may not be durable is scanned, and the number of blocks found so far that the index log did not have.
    pub fn open_with(
        disk: Arc<dyn Disk>,
        layout: &Layout,
        params: &Params,
        progress: &mut dyn FnMut(&Path, usize),
    ) -> Result<Opened, ChainError> {
        open::open(disk, layout, params, progress)
    }

    /// Appends a block to the last block file of our own. It is durable after the next [`BlockStore::sync`], and known
    /// after a restart once [`IndexEntry::Block`] is recorded.
    pub fn append_block(&self, block: &[u8]) -> Result<BlockPosition, ChainError> {
        self.check()?;
        let appended = lock(&self.blocks).append(self.disk.as_ref(), &self.files, self.magic, block);
        appended.map_err(|error| self.fail(error))
    }

    /// Sets a block file size below Core's 128 MiB, so that few blocks fill several files: Core's `-fastprune`.
    pub fn set_block_file_size_max(&self, bytes: u64) {
        lock(&self.blocks).size_max = bytes.min(BLOCK_FILE_SIZE_MAX);
    }

    /// Adopts block files, which are then read in place. Returns the number of each for use in positions. A known file
    /// keeps its number. The caller scans the files.
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

    /// The file with a number, if it exists.
    pub fn file(&self, file: u32) -> Option<BlockFile> {
        self.files.get(file).map(|known| BlockFile { path: known.path, key: known.key })
    }

    /// Reads the bytes at a position. Only their hash shows whether they are the expected block.
    pub fn read_block(&self, position: BlockPosition) -> Result<RawBlock, ChainError> {
        read::read_block(&self.files, position)
    }

    /// Reads at most `size` bytes from the start of a block.
    pub fn read_block_start(&self, position: BlockPosition, size: usize) -> Result<Vec<u8>, ChainError> {
        let BlockPosition { file, offset, size: whole } = position;
        let opened = self.files.open(file, Part::Blocks, offset.saturating_add(u64::from(whole)))?;
        Ok(opened.read(offset, size.min(whole as usize))?)
    }

    /// Reads parts of blocks, those of a file at the same time; `None` for one that its block does not have.
    pub fn read_block_parts(&self, parts: &[BlockPart]) -> Result<Vec<Option<Vec<u8>>>, ChainError> {
        read::read_block_parts(&self.files, parts)
    }

    /// A part of a block that is read later, piece by piece; `None` if the block does not have it, or if its file is
    /// compressed and therefore in memory as a whole.
    pub fn block_bytes(&self, part: BlockPart) -> Result<Option<StoredBytes>, ChainError> {
        StoredBytes::open(&self.files, part)
    }

    /// Size of our own block files and of all undo files in bytes.
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

    /// Hints that a block will be read soon. Never fails.
    pub fn prefetch(&self, position: BlockPosition) {
        let BlockPosition { file, offset, size } = position;
        if let Ok(opened) = self.files.open(file, Part::Blocks, offset.saturating_add(u64::from(size))) {
            opened.prefetch(offset, u64::from(size));
        }
    }

    /// Appends the undo data of a block to the undo file with the number of its block file.
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

    /// Reads the undo data at a position and verifies its frame and checksum. `prev_hash` is the hash of the block's
    /// parent.
    pub fn read_undo(&self, position: UndoPosition, prev_hash: &BlockHash) -> Result<BlockUndo, ChainError> {
        read::read_undo(&self.files, self.magic, position, prev_hash)
    }

    /// Like [`BlockStore::read_undo`], for the coins of single transactions.
    pub fn read_undo_parts(&self, position: UndoPosition, prev_hash: &BlockHash) -> Result<UndoParts, ChainError> {
        read::read_undo_parts(&self.files, self.magic, position, prev_hash)
    }

    /// Reads the coins that a block spent, in the order of its inputs. Returns an error unless there is one for each
    /// input.
    pub fn read_spent(&self, position: UndoPosition, block: &Block) -> Result<Vec<Coin>, ChainError> {
        let undo = self.read_undo(position, &block.header().prev_block)?;
        if undo.fits(block) {
            return Ok(undo.coins);
        }
        let path = self.files.path(position.file, Part::Undo);
        Err(ChainError::UndoDamaged { path, offset: position.offset, fault: UndoFault::OtherBlock })
    }

    /// Queues entries for the index log. [`BlockStore::flush`] and [`BlockStore::sync`] write them and report errors
    /// that occurred here. Headers must be recorded in the order of their ids, so the caller must hold the tree
    /// exclusively from adding a header to recording it.
    ///
    /// Waits for a running sync only if many entries have been queued since it started.
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

    /// Passes the queued items to the log. The caller holds the log's lock, which preserves the order.
    fn drain(&self, log: &mut LogWriter) -> Result<(), DiskError> {
        let items = std::mem::take(&mut lock(&self.queue).items);
        items.iter().try_for_each(|item| log.push(item))
    }

    /// Writes the entries recorded so far. They survive the end of the process, but not a power loss.
    pub fn flush(&self) -> Result<(), ChainError> {
        self.check()?;
        let mut log = lock(&self.log);
        let flushed = self.drain(&mut log).and_then(|()| log.flush());
        flushed.map_err(|error| self.fail(error.into()))
    }

    /// Returns when everything appended and recorded so far is durable.
    pub fn sync(&self) -> Result<(), ChainError> {
        self.check()?;
        // Held throughout, so that no entry is written whose bytes were appended after their file was synced. Entries
        // that arrive in the meantime wait in the queue.
        let mut log = lock(&self.log);
        let synced = self.drain(&mut log);
        let synced = synced.and_then(|()| lock(&self.blocks).sync());
        let synced = synced.and_then(|()| lock(&self.undos).sync());
        let synced = synced.and_then(|()| log.sync());
        synced.map_err(|error| self.fail(error.into()))
    }

    /// Whether a reindex was started but not finished, so that blocks in the files may be missing from the tree.
    pub fn is_reindexing(&self) -> bool {
        lock(&self.unread).is_some()
    }

    /// Reads the headers of our own block files in their order, and enters them and the positions of the blocks, if a
    /// reindex is in progress. Only headers are checked. Calls `progress` with each file before it is scanned, and the
    /// number of blocks found so far. The tree and the store may be used meanwhile: new blocks go to a new file.
    ///
    /// `may_prune`: the node prunes, so files of which no block connects are removed; without it, files none of which
    /// begins the chain are an error.
    ///
    /// The reindex remains in progress until [`BlockStore::finish_reindex`].
    pub fn reindex(
        &self,
        tree: &RwLock<HeaderTree>,
        params: &Params,
        may_prune: bool,
        is_cancelled: &dyn Fn() -> bool,
        progress: &mut dyn FnMut(&Path, usize),
    ) -> Result<Reindexed, ChainError> {
        reindex::rebuild(self, tree, params, may_prune, is_cancelled, progress)
    }

    /// Finishes the reindex after everything that was found is recorded. Syncs first.
    pub fn finish_reindex(&self) -> Result<(), ChainError> {
        self.sync()?;
        reindex::unmark(self.disk.as_ref(), &self.index).map_err(|error| self.fail(error))?;
        *lock(&self.unread) = None;
        Ok(())
    }

    /// Returns an error if a write or sync has failed before, like the other writing methods except
    /// [`BlockStore::record`].
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
    use crate::tree::HeaderId;
    use lydian_consensus::Chain;
    use lydian_disk::SimDisk;

    /// `record` does not wait for a running sync (simulated here by holding the log's lock) until too many entries
    /// wait. In the end all of them are in the log, in order.
    /// limit: INDEX_QUEUE_ENTRIES_MAX at
    /// limit: INDEX_QUEUE_ENTRIES_MAX above
    #[test]
    fn recording_waits_for_a_sync_only_when_much_waits() {
        let disk = SimDisk::new(1);
        let layout = Layout { blocks: "blocks".into(), index: "index".into(), new_key: [0; 8] };
        let params = Params::new(Chain::Regtest);
        let Opened { store, mut tree, .. } = BlockStore::open(Arc::new(disk.clone()), &layout, &params).unwrap();
        let mut tip = HeaderId::GENESIS;
        let entries: Vec<_> = (0..INDEX_QUEUE_ENTRIES_MAX + 1)
            .map(|_| {
                let header =
                    lydian_primitives::Header { prev_block: *tree.hash(tip), ..tree.header(HeaderId::GENESIS) };
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
