//! Recovers data after a crash: bytes that were written but are not known to be durable. Input: the replayed log and
//! our own files. Output: the tree with every intact block, and the files without anything else.
//!
//! Bytes after the durable part of a file may be readable now but lost after the next power failure, even if they are
//! synced again, if an earlier sync of them failed. So intact data among them is rewritten to other files. Once that is
//! durable, a log that names it atomically replaces the old one, and only then the old bytes are cut off. A crash in
//! between leaves the old state. Cost: a pass over the bytes appended since the last sync, and a copy of the log.
//!
//! If a reindex is in progress, the index is empty and every block file is only synced, so that everything in it counts
//! as durable; [`reindex`](super::reindex) reads the files later. Until then nothing is appended to them.

use super::entry::{IndexEntry, LogItem};
use super::error::ChainError;
use super::files::{Files, Part, own_number};
use super::finder::Finder;
use super::log::{LogFile, LogWriter};
use super::open::Replay;
use super::read;
use super::remark::StoreRemark;
use super::writer::{BlockWriter, CHECKSUM_SIZE, UndoWriter};
use crate::position::{BlockPosition, UndoPosition};
use crate::scan::Record;
use crate::tree::{HeaderId, HeaderTree};
use lydian_consensus::Params;
use lydian_disk::{Change, Disk, PathKind};
use std::collections::BTreeMap;
use std::path::Path;

/// The state while a store is opened.
pub(super) struct Recovery<'a> {
    disk: &'a dyn Disk,
    params: &'a Params,
    is_reindexing: bool,
    replay: Replay,
    /// Items to be written to the log.
    items: Vec<LogItem>,
    /// The writers for rewritten data, later for new data.
    blocks: BlockWriter,
    undos: UndoWriter,
    finder: Finder<'a>,
    /// Number of the file for rewritten undo data.
    anew: Option<u32>,
}

/// The result of the recovery.
pub(super) struct Recovered {
    pub(super) files: Files,
    pub(super) tree: HeaderTree,
    pub(super) remarks: Vec<StoreRemark>,
    pub(super) blocks: BlockWriter,
    pub(super) undos: UndoWriter,
    pub(super) log: LogWriter,
    /// Numbers of our own block files that a reindex has yet to read, lowest first; `None` without a reindex.
    pub(super) unread: Option<Vec<u32>>,
}

/// A number with at least one file in our directory.
#[derive(Clone, Copy)]
struct Own {
    file: u32,
    has_blocks: bool,
    has_undo: bool,
}

/// A file of ours with data after its durable part, which ends at `end`.
#[derive(Clone, Copy)]
struct Tail {
    file: u32,
    part: Part,
    end: u64,
}

impl<'a> Recovery<'a> {
    pub(super) fn new(
        disk: &'a dyn Disk,
        params: &'a Params,
        replay: Replay,
        remarks: Vec<StoreRemark>,
        is_reindexing: bool,
    ) -> Recovery<'a> {
        Recovery {
            disk,
            params,
            is_reindexing,
            replay,
            items: Vec::new(),
            blocks: BlockWriter::new(None),
            undos: UndoWriter::new(),
            finder: Finder::new(disk, params, remarks),
            anew: None,
        }
    }

    pub(super) fn run(mut self, log: LogFile, progress: &mut dyn FnMut(&Path, usize)) -> Result<Recovered, ChainError> {
        let undos = self.replay_unsynced(&log)?;
        let own = self.own_files()?;
        let block_ends = self.block_ends();
        self.remark_missing_files(&own, &block_ends);
        let mut tails = Vec::new();
        let mut last = None;
        for file in own.iter().filter(|own| own.has_blocks).map(|own| own.file) {
            let end = block_ends.get(&file).copied().unwrap_or(0);
            let size = self.size(file, Part::Blocks, end)?;
            if self.is_reindexing {
                // Nothing shows which part of them is durable; after this sync everything counts as durable.
                let files = &self.replay.files;
                files.directory().append(self.disk, &files.path(file, Part::Blocks))?.sync()?;
            } else if size > end {
                self.take_tail(file, end, progress)?;
                tails.push(Tail { file, part: Part::Blocks, end });
            }
            if !self.is_reindexing && (end > 0 || size == 0) {
                last = Some((file, end.min(size)));
            }
        }
        let undo_ends = self.undo_ends();
        self.take_undos(undos)?;
        for file in own.iter().filter(|own| own.has_undo).map(|own| own.file) {
            let end = undo_ends.get(&file).copied().unwrap_or(0);
            if self.size(file, Part::Undo, 0)? > end {
                tails.push(Tail { file, part: Part::Undo, end });
            }
        }
        self.blocks.sync()?;
        self.undos.sync()?;
        let log = match self.items.is_empty() {
            true => LogWriter::resume(self.disk, log)?,
            false => LogWriter::rewrite(self.disk, log, &self.items)?,
        };
        self.cut(&tails)?;
        if self.blocks.current().is_none() {
            self.blocks = BlockWriter::new(last);
        }
        let block_files = own.iter().filter(|own| own.has_blocks).map(|own| own.file);
        let unread = self.is_reindexing.then(|| block_files.collect());
        let Recovery { replay: Replay { files, tree, .. }, blocks, undos, finder, .. } = self;
        Ok(Recovered { files, tree, remarks: finder.finish().remarks, blocks, undos, log, unread })
    }

    /// Applies the items of the log that may not be durable to the tree. Positions of our own blocks and of undo data
    /// are not applied: the blocks are found again after the durable parts of their files, and the undo positions are
    /// returned.
    fn replay_unsynced(&mut self, log: &LogFile) -> Result<Vec<(HeaderId, UndoPosition)>, ChainError> {
        let mut undos = Vec::new();
        for item in std::mem::take(&mut self.replay.recent) {
            match item {
                LogItem::Entry(IndexEntry::Undo { id, position }) => undos.push((id, position)),
                LogItem::Entry(IndexEntry::UndoCleared { id }) => {
                    undos.retain(|(cleared, _)| *cleared != id);
                    self.replay_item(item, log)?;
                }
                LogItem::Entry(IndexEntry::Block { position, .. }) if !self.replay.is_adopted(position.file) => {}
                item => self.replay_item(item, log)?,
            }
        }
        Ok(undos)
    }

    fn replay_item(&mut self, item: LogItem, log: &LogFile) -> Result<(), ChainError> {
        self.items.push(item.clone());
        // An item with a correct checksum but invalid content is damage like any other.
        self.replay.apply(item).map_err(|reason| log.contradiction_behind_safe_part(reason))
    }

    /// The existing files of our own by number, without those to be removed.
    fn own_files(&self) -> Result<Vec<Own>, ChainError> {
        let mut found: BTreeMap<u32, Own> = BTreeMap::new();
        for (path, kind) in self.disk.list(self.replay.files.directory().path())? {
            let (blocks, undo) = (own_number(&path, Part::Blocks), own_number(&path, Part::Undo));
            let Some(file) = blocks.or(undo).filter(|_| kind == PathKind::File) else { continue };
            if self.replay.pruned.contains(&file) {
                continue;
            }
            let own = found.entry(file).or_insert(Own { file, has_blocks: false, has_undo: false });
            // If an adopted file has this number, a block file with the number is not ours.
            own.has_blocks |= blocks.is_some() && !self.replay.is_adopted(file);
            own.has_undo |= undo.is_some();
        }
        for file in found.keys().filter(|file| self.replay.files.get(**file).is_none()) {
            self.replay.files.insert_own(*file);
        }
        Ok(found.into_values().collect())
    }

    /// The end of the last known block in each file, by number.
    fn block_ends(&self) -> BTreeMap<u32, u64> {
        let tree = &self.replay.tree;
        let positions = tree.ids().filter_map(|id| tree.block(id));
        ends(positions.map(|position| (position.file, position.offset.saturating_add(u64::from(position.size)))))
    }

    fn undo_ends(&self) -> BTreeMap<u32, u64> {
        let tree = &self.replay.tree;
        let positions = tree.ids().filter_map(|id| tree.undo(id));
        ends(positions.map(|at| (at.file, at.offset + u64::from(at.size) + CHECKSUM_SIZE as u64)))
    }

    /// The size of a file of ours. Adds a remark if the file is too short.
    fn size(&mut self, file: u32, part: Part, known: u64) -> Result<u64, ChainError> {
        let path = self.replay.files.path(file, part);
        let size = self.disk.open(&path)?.size();
        if known > size {
            self.finder.remark(StoreRemark::FileShort { path, size, known });
        }
        Ok(size)
    }

    fn remark_missing_files(&mut self, own: &[Own], ends: &BTreeMap<u32, u64>) {
        let is_there = |file: u32| own.iter().any(|own| own.file == file && own.has_blocks);
        for (&file, &known) in ends.iter().filter(|(file, _)| !is_there(**file)) {
            if !self.replay.is_adopted(file) {
                let path = self.replay.files.path(file, Part::Blocks);
                self.finder.remark(StoreRemark::FileShort { path, size: 0, known });
            }
        }
    }

    /// Rewrites the intact blocks after `start`.
    fn take_tail(&mut self, file: u32, start: u64, progress: &mut dyn FnMut(&Path, usize)) -> Result<(), ChainError> {
        let path = self.replay.files.path(file, Part::Blocks);
        progress(&path, self.finder.found);
        let before = self.finder.found;
        for record in self.finder.scan(&self.replay.files, file, start)? {
            let Record { offset, size, hash, .. } = record;
            let position = BlockPosition { file, offset, size };
            let Some(block) = read::read_whole_block(&self.replay.files, position, &hash)? else {
                self.finder.remark(StoreRemark::BlockLost { path: path.clone(), offset, hash });
                continue;
            };
            let known = self.replay.tree.find(&hash);
            if known.is_none_or(|id| self.replay.tree.block(id).is_none()) {
                let magic = self.params.magic;
                let position = self.blocks.append(self.disk, &self.replay.files, magic, block.as_bytes())?;
                let Replay { files, tree, .. } = &mut self.replay;
                let items = &mut self.items;
                self.finder.enter(files, tree, record, position, &mut |entry| items.push(LogItem::Entry(entry)));
            }
        }
        self.finder.remark_found(&path, before);
        Ok(())
    }

    /// Rewrites the intact undo data.
    fn take_undos(&mut self, undos: Vec<(HeaderId, UndoPosition)>) -> Result<(), ChainError> {
        let magic = self.params.magic;
        for (id, position) in undos {
            if id.index() >= self.replay.tree.len() {
                continue;
            }
            let prev_hash = self.replay.tree.header(id).prev_block;
            let files = &self.replay.files;
            if let Some(undo) = read::read_whole_undo(files, magic, position, &prev_hash)? {
                let file = *self.anew.get_or_insert_with(|| files.new_own());
                let block = BlockPosition { file, offset: 0, size: 0 };
                let position = self.undos.append(self.disk, files, magic, block, &prev_hash, &undo)?;
                self.replay.tree.set_undo(id, position);
                self.items.push(LogItem::Entry(IndexEntry::Undo { id, position }));
            }
        }
        Ok(())
    }

    /// Whether an unknown file may be one that a crash tore: it is empty, or starts with our magic or with the zeros of
    /// a lost write. Any other file was put here by the user.
    fn may_be_ours(&self, path: &Path) -> Result<bool, ChainError> {
        let (file, mut start) = (self.disk.open(path)?, [0; 4]);
        if file.size() < start.len() as u64 {
            return Ok(true);
        }
        file.read_at(0, &mut start)?;
        if is_hole(&start) {
            return Ok(true);
        }
        self.replay.files.key.apply(0, &mut start);
        Ok(start == self.params.magic)
    }

    /// Removes the bytes that nothing refers to, and the files to be removed.
    fn cut(&mut self, tails: &[Tail]) -> Result<(), ChainError> {
        let directory = self.replay.files.directory().clone();
        let mut is_one_gone = false;
        for Tail { file, part, end } in tails.iter().copied() {
            let path = self.replay.files.path(file, part);
            self.replay.files.close(file);
            if end > 0 {
                directory.change(self.disk, &path, Change::Truncate { size: end })?;
            } else if !self.may_be_ours(&path)? {
                self.finder.remark(StoreRemark::NotOurs { path });
            } else {
                directory.change(self.disk, &path, Change::Remove)?;
                is_one_gone = true;
            }
        }
        for (path, _) in self.disk.list(directory.path())? {
            let number = own_number(&path, Part::Blocks).or(own_number(&path, Part::Undo));
            if number.is_some_and(|file| self.replay.pruned.contains(&file)) {
                directory.remove(self.disk, &path)?;
                is_one_gone = true;
            }
        }
        if is_one_gone { Ok(self.disk.sync_dir(directory.path())?) } else { Ok(()) }
    }
}

/// Whether all bytes are zero, as after a lost write.
fn is_hole(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// The highest end for each number.
fn ends(ends: impl Iterator<Item = (u32, u64)>) -> BTreeMap<u32, u64> {
    let mut highest = BTreeMap::new();
    for (file, end) in ends {
        let known = highest.entry(file).or_default();
        *known = end.max(*known);
    }
    highest
}
