//! Deletes what can be rebuilt from the block files, the index log and the undo files, and rebuilds the index. Input:
//! our own block files. Output: headers and positions in the tree and the log. Block files are never changed.
//!
//! A marker is written first and removed when the rebuilt index is durable, so that an interrupted reindex is never
//! mistaken for a finished one. It starts over: blocks may have been stored meanwhile, and the log of an unfinished
//! reindex may name bytes that a crash has lost. Cost: 88 bytes read and one header checked per block; the tree is
//! locked for one block at a time.

use super::BlockStore;
use super::entry::{IndexEntry, LogItem};
use super::error::ChainError;
use super::files::{KEY_FILE, Part, own_blocks, own_index, own_number};
use super::finder::{Finder, Found};
use super::open::{Layout, check_owner, log_path};
use super::remark::StoreRemark;
use super::writer::{FRAME_SIZE, u32_size};
use crate::position::BlockPosition;
use crate::tree::{HeaderId, HeaderTree};
use lydian_consensus::Params;
use lydian_disk::{Disk, DiskError, DiskErrorKind, OwnDir, PathKind, read_whole};
use lydian_stdx::{IgnorePoison, lock};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::RwLock;

/// Content of the marker while files are deleted, and after that.
const WIPING: &[u8] = b"wiping\n";
const REBUILDING: &[u8] = b"rebuilding\n";

/// Maximum size of the marker.
const MARKER_SIZE_MAX: u64 = 64;

/// What a reindex found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reindexed {
    /// Number of blocks found.
    pub blocks: usize,
    pub remarks: Vec<StoreRemark>,
    /// Further copies of blocks, in the order found.
    pub other_places: Vec<(HeaderId, BlockPosition)>,
    /// It was cancelled before the end of the files.
    pub is_cancelled: bool,
}

fn marker_path(index: &Path) -> PathBuf {
    index.join("reindex")
}

/// Removes the index log and the undo files; no store may be open on them. Until
/// [`BlockStore::finish_reindex`](super::BlockStore::finish_reindex) each [`BlockStore::open`](super::BlockStore::open)
/// reports that a reindex is in progress.
pub fn wipe_for_reindex(disk: &dyn Disk, layout: &Layout) -> Result<(), ChainError> {
    check_owner(disk, layout)?;
    disk.create_dir(&layout.index)?;
    disk.create_dir(&layout.blocks)?;
    let (blocks, index) = (own_blocks(&layout.blocks), own_index(&layout.index));
    index.replace(disk, &marker_path(&layout.index), WIPING)?;
    index.remove(disk, &log_path(&layout.index))?;
    disk.sync_dir(&layout.index)?;
    for (path, kind) in disk.list(&layout.blocks)? {
        if kind == PathKind::File && own_number(&path, Part::Undo).is_some() {
            blocks.remove(disk, &path)?;
        }
    }
    disk.sync_dir(&layout.blocks)?;
    index.replace(disk, &marker_path(&layout.index), REBUILDING)?;
    Ok(())
}

/// Resumes an interrupted wipe, and deletes what an interrupted reindex has written. Returns whether a reindex is in
/// progress.
pub(super) fn resume(disk: &dyn Disk, layout: &Layout) -> Result<bool, ChainError> {
    let Some(text) = read_marker(disk, &layout.index)? else { return Ok(false) };
    let has_log = match disk.kind(&log_path(&layout.index)) {
        Ok(_) => true,
        Err(error) if error.kind == DiskErrorKind::NotFound => false,
        Err(error) => return Err(error.into()),
    };
    // Undo data is written only after the log was created.
    if has_log || text != REBUILDING {
        wipe_for_reindex(disk, layout)?;
    }
    Ok(true)
}

/// Enters the genesis block if it comes first in the files, where Core and this node store it: callers may read it
/// before the files are searched.
pub(super) fn enter_genesis(store: &BlockStore, tree: &mut HeaderTree, params: &Params) -> Result<(), ChainError> {
    let first = lock(&store.unread).as_ref().and_then(|unread| unread.first().copied());
    let Some(file) = first else { return Ok(()) };
    let genesis = params.genesis_block();
    let size = u32_size(genesis.as_bytes());
    let record = [&params.magic[..], &size.to_le_bytes(), genesis.as_bytes()].concat();
    let opened = store.files.open(file, Part::Blocks, record.len() as u64)?;
    if opened.size() >= record.len() as u64 && opened.read(0, record.len())? == record {
        let (id, position) = (HeaderId::GENESIS, BlockPosition { file, offset: FRAME_SIZE as u64, size });
        tree.set_block(id, position);
        store.record(&[IndexEntry::Block { id, position }]);
    }
    Ok(())
}

/// Reads the block files that existed when the store was opened: see [`BlockStore::reindex`].
pub(super) fn rebuild(
    store: &BlockStore,
    tree: &RwLock<HeaderTree>,
    params: &Params,
    may_prune: bool,
    is_cancelled: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(&Path, usize),
) -> Result<Reindexed, ChainError> {
    let Some(unread) = lock(&store.unread).clone() else { return Ok(Reindexed::default()) };
    store.check()?;
    let mut finder = Finder::new(store.disk.as_ref(), params, Vec::new());
    // The files that may be continued, and the end of the last block of each.
    let mut ends = Vec::new();
    let mut has_bytes = false;
    for file in unread {
        let path = store.files.path(file, Part::Blocks);
        if is_cancelled() {
            return Ok(Reindexed { is_cancelled: true, ..Reindexed::default() });
        }
        progress(&path, finder.found);
        let before = finder.found;
        // From its start, because a block may have waited for its parent.
        let records = finder.scan(&store.files, file, 0)?;
        let end = records.last().map_or(0, |record| record.offset + u64::from(record.size));
        for record in records {
            if is_cancelled() {
                return Ok(Reindexed { is_cancelled: true, ..Reindexed::default() });
            }
            let position = BlockPosition { file, offset: record.offset, size: record.size };
            let mut tree = tree.write().ignore_poison();
            finder.enter(&store.files, &mut tree, record, position, &mut |entry| store.record(&[entry]));
        }
        finder.remark_found(&path, before);
        let size = store.disk.open(&path)?.size();
        has_bytes |= size > 0;
        // A file in which nothing was found may be anything, so it is not appended to and not truncated.
        if end > 0 || size == 0 {
            ends.push((file, end));
        }
    }
    if has_bytes && finder.entered == 0 {
        // Otherwise an empty chain would be built, and the files would be treated as remains of a crash.
        let directory = store.files.directory().path();
        match finder.has_family() {
            false => return Err(ChainError::KeyDiffers { path: directory.join(KEY_FILE) }),
            true if !may_prune => return Err(ChainError::FirstBlocksMissing { path: directory.to_owned() }),
            true => {}
        }
    }
    if may_prune {
        let useless = finder.useless_files();
        remove(store, &useless)?;
        if !useless.is_empty() {
            finder.remark(StoreRemark::UselessFiles { count: useless.len() });
        }
        ends.retain(|(file, _)| !useless.contains(file));
    }
    lock(&store.blocks).resume(ends.last().copied());
    let blocks = finder.found;
    let Found { remarks, other_places } = finder.finish();
    Ok(Reindexed { blocks, remarks, other_places, is_cancelled: false })
}

/// Removes files of which no block connects, as Core's `CleanupBlockRevFiles` does if blocks may be pruned. If this is
/// interrupted, the reindex starts over; should a removed name come back after that, the log has the file as pruned.
fn remove(store: &BlockStore, files: &BTreeSet<u32>) -> Result<(), ChainError> {
    store.enqueue(files.iter().map(|file| LogItem::FilePruned { file: *file }));
    for file in files {
        store.remove_files(*file)?;
    }
    Ok(store.disk.sync_dir(store.files.directory().path())?)
}

pub(super) fn unmark(disk: &dyn Disk, index: &OwnDir) -> Result<(), ChainError> {
    index.remove(disk, &marker_path(index.path()))?;
    Ok(disk.sync_dir(index.path())?)
}

fn read_marker(disk: &dyn Disk, index: &Path) -> Result<Option<Vec<u8>>, DiskError> {
    match read_whole(disk, &marker_path(index), MARKER_SIZE_MAX) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind == DiskErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
