//! Pruning: removes whole files, the oldest first. Input: the tree and what to keep. Output: what was removed.
//!
//! Invariants: neither blocks nor undo data at or above `keep_from` or of the last 288 blocks below the durable tip are
//! removed (a crash may require replaying or disconnecting them); the removal is logged before a file is removed;
//! adopted files stay, only their undo data, which is ours, is removed. Cost: one pass over all headers.

use super::BlockStore;
use super::entry::{IndexEntry, LogItem};
use super::error::ChainError;
use super::files::Part;
use crate::limits::BLOCKS_TO_KEEP_MIN;
use crate::tree::{HeaderId, HeaderTree};
use lydian_disk::{DiskError, DiskErrorKind};
use lydian_primitives::Height;
use lydian_stdx::lock;
use std::collections::BTreeMap;

/// The result of pruning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pruned {
    pub files: usize,
    pub blocks: usize,
    pub bytes: u64,
    /// Size of the remaining block and undo files of our own in bytes.
    pub bytes_left: u64,
}

/// The content of the files with one number.
#[derive(Clone, Debug, Default)]
struct Held {
    highest: Height,
    ids: Vec<HeaderId>,
    bytes: u64,
}

impl BlockStore {
    /// Removes files, the lowest number first, until ours have at most `target_bytes`, or no file is left that is
    /// entirely below `keep_from` and 288 blocks below `durable_tip`, the height of the coins' last checkpoint.
    pub fn prune(
        &self,
        tree: &mut HeaderTree,
        keep_from: Height,
        target_bytes: u64,
        durable_tip: Height,
    ) -> Result<Pruned, ChainError> {
        self.check()?;
        let end = keep_from.min(Height(durable_tip.0.saturating_sub(BLOCKS_TO_KEEP_MIN)));
        let held = self.held(tree)?;
        let current = lock(&self.blocks).current();
        let mut pruned = Pruned { bytes_left: held.values().map(|held| held.bytes).sum(), ..Pruned::default() };
        let mut chosen = Vec::new();
        for (file, held) in held {
            if pruned.bytes_left <= target_bytes {
                break;
            }
            if Some(file) != current && held.bytes > 0 && held.highest < end {
                pruned.files += 1;
                pruned.bytes += held.bytes;
                pruned.bytes_left -= held.bytes;
                pruned.blocks += self.forget(tree, file, &held.ids);
                chosen.push(file);
            }
        }
        if chosen.is_empty() {
            return Ok(pruned);
        }
        // From here on the positions are gone, whether or not the files are.
        self.sync()?;
        let removed = chosen.iter().try_for_each(|file| self.remove_files(*file));
        let removed = removed.and_then(|()| self.disk.sync_dir(self.files.directory().path()));
        removed.map(|()| pruned).map_err(|error| self.fail(error.into()))
    }

    /// The content of the files by number, and the size of our own. The genesis block has no position and is never
    /// removed.
    fn held(&self, tree: &HeaderTree) -> Result<BTreeMap<u32, Held>, ChainError> {
        let mut all: BTreeMap<u32, Held> =
            self.files.all().into_iter().map(|(file, _)| (file, Held::default())).collect();
        for id in tree.ids() {
            let block = tree.block(id).map(|position| position.file);
            let undo = tree.undo(id).map(|position| position.file);
            for file in [block, undo.filter(|file| Some(*file) != block)].into_iter().flatten() {
                let held = all.entry(file).or_default();
                held.highest = held.highest.max(tree.height(id));
                held.ids.push(id);
            }
        }
        for (file, held) in &mut all {
            held.bytes = self.size(*file, Part::Undo)?;
            if self.files.get(*file).is_some_and(|known| !known.is_external) {
                held.bytes += self.size(*file, Part::Blocks)?;
            }
        }
        Ok(all)
    }

    pub(super) fn size(&self, file: u32, part: Part) -> Result<u64, ChainError> {
        let path = match part {
            Part::Blocks => self.files.get(file).map_or_else(|| self.files.path(file, part), |known| known.path),
            Part::Undo => self.files.path(file, part),
        };
        match self.disk.open(&path) {
            Ok(opened) => Ok(opened.size()),
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the positions from the tree and the log. Returns the number of blocks.
    fn forget(&self, tree: &mut HeaderTree, file: u32, ids: &[HeaderId]) -> usize {
        let is_external = self.files.get(file).is_some_and(|known| known.is_external);
        let mut entries = Vec::new();
        let mut blocks = 0;
        for id in ids {
            let node = tree.node(*id);
            if !is_external && node.block.is_some_and(|position| position.file == file) {
                tree.clear_block(*id);
                entries.push(IndexEntry::BlockCleared { id: *id });
                blocks += 1;
            }
            if node.undo.is_some_and(|position| position.file == file) {
                tree.clear_undo(*id);
                entries.push(IndexEntry::UndoCleared { id: *id });
            }
        }
        self.record(&entries);
        self.enqueue([LogItem::FilePruned { file }]);
        blocks
    }

    pub(super) fn remove_files(&self, file: u32) -> Result<(), DiskError> {
        lock(&self.undos).forget(file);
        let own = self.files.directory();
        own.remove(self.disk.as_ref(), &self.files.path(file, Part::Undo))?;
        match self.files.get(file) {
            Some(known) if !known.is_external => {
                own.remove(self.disk.as_ref(), &known.path)?;
                self.files.forget(file);
            }
            _ => self.files.close(file),
        }
        Ok(())
    }
}
