//! Recovers data after a crash: bytes that were written but are not known to be durable. Input: the replayed log and
//! our own files. Output: the tree with every intact block, and the files without anything else.
//!
//! Bytes after the durable part of a file may be readable now but lost after the next power failure, even if they are
//! synced again, if an earlier sync of them failed. So intact data among them is rewritten to other files. Once that is
//! durable, a log that names it atomically replaces the old one, and only then the old bytes are cut off. A crash in
//! between leaves the old state. Cost: a pass over the bytes appended since the last sync, and a copy of the log. While
//! the index is rebuilt from block files, these are used unchanged: 88 bytes are read per block.

use super::entry::{IndexEntry, LogItem};
use super::error::{ChainError, network_name};
use super::files::{Files, KEY_FILE, Part, own_number};
use super::log::{LogFile, LogWriter};
use super::open::Replay;
use super::read;
use super::remark::StoreRemark;
use super::writer::{BlockWriter, CHECKSUM_SIZE, UndoWriter};
use crate::limits::REMARKS_MAX;
use crate::position::{BlockPosition, UndoPosition};
use crate::scan::{Record, Remark, RemarkKind, View, scan_file};
use crate::tree::{HeaderId, HeaderTree};
use lydian_consensus::Params;
use lydian_disk::{Change, Disk, PathKind};
use lydian_primitives::BlockHash;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The state while a store is opened.
pub(super) struct Recovery<'a> {
    disk: &'a dyn Disk,
    params: &'a Params,
    is_reindexing: bool,
    replay: Replay,
    /// Items to be written to the log.
    items: Vec<LogItem>,
    /// The log, once everything in it is durable.
    log: Option<LogWriter>,
    /// The writers for rewritten data, later for new data.
    blocks: BlockWriter,
    undos: UndoWriter,
    remarks: Vec<StoreRemark>,
    /// Blocks found whose header cannot be added yet, by the hash of their parent.
    orphans: HashMap<BlockHash, Vec<(Record, BlockPosition)>>,
    found: usize,
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
            log: None,
            blocks: BlockWriter::new(None),
            undos: UndoWriter::new(),
            remarks,
            orphans: HashMap::new(),
            found: 0,
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
            if end > 0 || size == 0 {
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
        let items = std::mem::take(&mut self.items);
        self.log = Some(match items.is_empty() {
            true => LogWriter::resume(self.disk, log)?,
            false => LogWriter::rewrite(self.disk, log, &items)?,
        });
        self.cut(&tails)?;
        if self.is_reindexing {
            last = self.take_all(&own, progress)?.or(last);
        }
        if self.blocks.current().is_none() {
            self.blocks = BlockWriter::new(last);
        }
        self.finish()
    }

    fn finish(mut self) -> Result<Recovered, ChainError> {
        let count = self.orphans.values().map(Vec::len).sum();
        if count > 0 {
            self.remark(StoreRemark::MissingParents { count });
        }
        let Recovery { replay: Replay { files, tree, .. }, log: Some(mut log), blocks, undos, remarks, .. } = self
        else {
            unreachable!("the log was opened before")
        };
        log.flush()?;
        Ok(Recovered { files, tree, remarks, blocks, undos, log })
    }

    fn remark(&mut self, remark: StoreRemark) {
        if self.remarks.len() < REMARKS_MAX {
            self.remarks.push(remark);
        }
    }

    fn record(&mut self, entry: IndexEntry) -> Result<(), ChainError> {
        let item = LogItem::Entry(entry);
        match &mut self.log {
            Some(log) => log.push(&item)?,
            None => self.items.push(item),
        }
        Ok(())
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
                LogItem::Entry(IndexEntry::Block { position, .. })
                    if !self.is_reindexing && !self.replay.is_adopted(position.file) => {}
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
            self.remark(StoreRemark::FileShort { path, size, known });
        }
        Ok(size)
    }

    fn remark_missing_files(&mut self, own: &[Own], ends: &BTreeMap<u32, u64>) {
        let is_there = |file: u32| own.iter().any(|own| own.file == file && own.has_blocks);
        for (&file, &known) in ends.iter().filter(|(file, _)| !is_there(**file)) {
            if !self.replay.is_adopted(file) {
                let path = self.replay.files.path(file, Part::Blocks);
                self.remark(StoreRemark::FileShort { path, size: 0, known });
            }
        }
    }

    /// Rewrites the intact blocks after `start`.
    fn take_tail(&mut self, file: u32, start: u64, progress: &mut dyn FnMut(&Path, usize)) -> Result<(), ChainError> {
        let path = self.replay.files.path(file, Part::Blocks);
        progress(&path, self.found);
        let before = self.found;
        for record in self.scan(file, &path, start)? {
            let Record { offset, size, hash, .. } = record;
            let position = BlockPosition { file, offset, size };
            let Some(block) = read::read_whole_block(&self.replay.files, position, &hash)? else {
                self.remark(StoreRemark::BlockLost { path: path.clone(), offset, hash });
                continue;
            };
            let known = self.replay.tree.find(&hash);
            if known.is_none_or(|id| self.replay.tree.block(id).is_none()) {
                let magic = self.params.magic;
                let position = self.blocks.append(self.disk, &self.replay.files, magic, block.as_bytes())?;
                self.enter(record, position)?;
            }
        }
        self.remark_found(&path, before);
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
                self.record(IndexEntry::Undo { id, position })?;
            }
        }
        Ok(())
    }

    /// Takes the blocks of our files at their positions. Every file is scanned from its start, because a block may have
    /// waited for its parent. Returns the last file and the end of its last block.
    fn take_all(
        &mut self,
        own: &[Own],
        progress: &mut dyn FnMut(&Path, usize),
    ) -> Result<Option<(u32, u64)>, ChainError> {
        let (mut last, mut has_bytes) = (None, false);
        for file in own.iter().filter(|own| own.has_blocks).map(|own| own.file) {
            let path = self.replay.files.path(file, Part::Blocks);
            progress(&path, self.found);
            let before = self.found;
            let mut end = 0;
            for record in self.scan(file, &path, 0)? {
                let position = BlockPosition { file, offset: record.offset, size: record.size };
                end = record.offset + u64::from(record.size);
                self.enter(record, position)?;
            }
            self.remark_found(&path, before);
            if end > 0 {
                // A file in which nothing was found may be anything, so it is not appended to and not truncated.
                last = Some((file, end));
            }
            has_bytes |= self.disk.open(&path)?.size() > 0;
        }
        let tree = &self.replay.tree;
        let has_block = |id| tree.block(id).is_some_and(|position| !self.replay.is_adopted(position.file));
        match has_bytes && !tree.ids().any(has_block) {
            // Otherwise an empty chain would be built, and the files would be treated as remains of a crash.
            true => Err(ChainError::KeyDiffers { path: self.replay.files.directory().path().join(KEY_FILE) }),
            false => Ok(last),
        }
    }

    fn remark_found(&mut self, path: &Path, before: usize) {
        let count = self.found - before;
        if count > 0 {
            self.remark(StoreRemark::BlocksFound { path: path.to_owned(), count });
        }
    }

    fn scan(&mut self, file: u32, path: &Path, start: u64) -> Result<Vec<Record>, ChainError> {
        let opened = self.disk.open(path)?;
        let view = View { path, file: opened.as_ref(), key: self.replay.files.key };
        let mut remarks: Vec<Remark> = Vec::new();
        let records = scan_file(&view, file, self.params.magic, start, |remark| remarks.push(remark))?;
        for remark in remarks {
            match remark.kind {
                RemarkKind::OtherChain { magic, .. } if records.is_empty() && start == 0 => {
                    let (path, expected) = (path.to_owned(), self.params.chain.name());
                    return Err(ChainError::OtherNetwork { path, found: network_name(magic), expected });
                }
                _ => self.remark(StoreRemark::Scan(remark)),
            }
        }
        Ok(records)
    }

    /// Adds a block that was found, and the blocks that waited for it.
    fn enter(&mut self, record: Record, position: BlockPosition) -> Result<(), ChainError> {
        let mut open = vec![(record, position)];
        while let Some((record, position)) = open.pop() {
            let tree = &mut self.replay.tree;
            if tree.find(&record.hash).is_none() && tree.find(&record.header.prev_block).is_none() {
                self.orphans.entry(record.header.prev_block).or_default().push((record, position));
                continue;
            }
            let count = tree.len();
            // It was not from the future when it was accepted.
            let id = match tree.accept_header(&record.header, i64::MAX / 2, self.params) {
                Ok(id) => id,
                Err(reason) => {
                    let path = self.replay.files.path(record.file, Part::Blocks);
                    let Record { offset, hash, .. } = record;
                    self.remark(StoreRemark::HeaderRefused { path, offset, hash, reason });
                    continue;
                }
            };
            let (is_new, has_block) = (tree.len() > count, tree.block(id).is_some());
            if !has_block {
                tree.set_block(id, position);
                self.found += 1;
            }
            if is_new {
                self.record(IndexEntry::Header { id, header: record.header })?;
            }
            if !has_block {
                self.record(IndexEntry::Block { id, position })?;
            }
            open.extend(self.orphans.remove(&record.hash).unwrap_or_default().into_iter().rev());
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
                self.remark(StoreRemark::NotOurs { path });
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
