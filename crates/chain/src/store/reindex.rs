//! Deletes what can be rebuilt from the block files: the index log and the undo files. Block files are never changed.
//!
//! A marker is written first and removed when the rebuilt index is durable, so that an interrupted reindex is resumed
//! and never mistaken for a finished one.

use super::error::ChainError;
use super::files::{Part, own_blocks, own_index, own_number};
use super::open::{Layout, check_owner, log_path};
use lydian_disk::{Disk, DiskError, DiskErrorKind, OwnDir, PathKind, read_whole};
use std::path::{Path, PathBuf};

/// Content of the marker while files are deleted, and after that.
const WIPING: &[u8] = b"wiping\n";
const REBUILDING: &[u8] = b"rebuilding\n";

/// Maximum size of the marker.
const MARKER_SIZE_MAX: u64 = 64;

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

/// Resumes an interrupted wipe. Returns whether a reindex is in progress.
pub(super) fn resume(disk: &dyn Disk, layout: &Layout) -> Result<bool, ChainError> {
    match read_marker(disk, &layout.index)? {
        None => Ok(false),
        Some(text) => {
            if text != REBUILDING {
                wipe_for_reindex(disk, layout)?;
            }
            Ok(true)
        }
    }
}

pub(super) fn is_marked(disk: &dyn Disk, index: &OwnDir) -> Result<bool, ChainError> {
    Ok(read_marker(disk, index.path())?.is_some())
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
