//! Opening the store: the index log is replayed, what a crash tore is cut off, and blocks that the log does not have are looked for behind
//! the last ones known. Input: a disk and two directories. Output: the store, the tree, and what a person may want to know.
//!
//! Cost: one pass over the log (about 130 bytes a block) and one hash a header; after a crash also one pass over the bytes appended since the
//! last sync; where there is no log, a read of 88 bytes for each block in our own files.

use super::entry::{IndexEntry, LogItem};
use super::error::{ChainError, network_name};
use super::files::{Files, Part, StoreFile, own_number};
use super::log::{self, LogEnd, LogWriter};
use super::read;
use super::reindex::{self, remove_if_there};
use super::remark::StoreRemark;
use super::writer::{BlockWriter, CHECKSUM_SIZE, UndoWriter};
use super::{BlockStore, Log};
use crate::limits::REMARKS_MAX;
use crate::obfuscation::Obfuscation;
use crate::position::BlockPosition;
use crate::scan::{Record, RemarkKind, View, scan_file};
use crate::tree::{HeaderTree, NodeId};
use lydian_consensus::Params;
use lydian_disk::{Disk, DiskErrorKind, PathKind};
use lydian_primitives::{BlockHash, HEADER_SIZE, Header};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Where the store lies.
#[derive(Clone, Debug)]
pub struct Layout {
    /// `blk?????.dat`, `rev?????.dat`, `xor.dat`.
    pub blocks: PathBuf,
    /// The index log.
    pub index: PathBuf,
    /// The key for a new directory of blocks: random bytes, as Core does, or zeros for none. One that is there counts.
    pub new_key: [u8; Obfuscation::SIZE],
}

/// A store that was opened.
#[derive(Debug)]
pub struct Opened {
    pub store: BlockStore,
    /// All that is known. Its active chain is the genesis block: the coins say which it is ([`HeaderTree::activate`]).
    pub tree: HeaderTree,
    pub remarks: Vec<StoreRemark>,
    /// A reindex was begun and is not finished.
    pub is_reindexing: bool,
}

pub(super) fn log_path(index: &Path) -> PathBuf {
    index.join("index.log")
}

pub(super) fn open(
    disk: Arc<dyn Disk>,
    layout: &Layout,
    params: &Params,
    progress: &mut dyn FnMut(&Path, usize),
) -> Result<Opened, ChainError> {
    disk.create_dir(&layout.blocks)?;
    disk.create_dir(&layout.index)?;
    let is_reindexing = reindex::resume(disk.as_ref(), layout)?;
    let files = Files::new(Arc::clone(&disk), layout.blocks.clone(), own_key(disk.as_ref(), layout)?);
    let mut opening = Opening {
        disk: disk.as_ref(),
        params,
        files,
        tree: HeaderTree::new(params),
        remarks: Vec::new(),
        writer: None,
        recent: Vec::new(),
        pruned: BTreeSet::new(),
        ends: BTreeMap::new(),
    };
    let path = log_path(&layout.index);
    let end = opening.replay(&path)?;
    if end.is_none() {
        log::create(opening.disk, &path, params)?;
    }
    opening.writer = Some(LogWriter::open(opening.disk, &path, end.map_or(1, |end| end.sequence))?);
    opening.drop_what_was_lost()?;
    opening.note_ends();
    let own = opening.own_files()?;
    opening.scan(&own, end.is_some(), progress)?;
    if end.is_some() {
        opening.cut_undo_files(&own)?;
    }
    let last = own.iter().rev().find(|own| own.has_blocks).map(|own| own.file);
    let resume = last.map(|file| (file, opening.ends.get(&file).copied().unwrap_or(0)));
    let Opening { files, tree, remarks, writer: Some(writer), .. } = opening else {
        unreachable!("the log was opened above")
    };
    let next_id = u32::try_from(tree.len()).unwrap_or(u32::MAX);
    let store = BlockStore {
        magic: params.magic,
        index: layout.index.clone(),
        files,
        blocks: Mutex::new(BlockWriter::new(resume)),
        undos: Mutex::new(UndoWriter::default()),
        log: Mutex::new(Log { writer, next_id }),
        failed: Mutex::new(None),
        disk,
    };
    store.flush()?;
    Ok(Opened { store, tree, remarks, is_reindexing })
}

/// The key in `xor.dat`. In a directory that has block files and no key there is none; a new directory gets one.
fn own_key(disk: &dyn Disk, layout: &Layout) -> Result<Obfuscation, ChainError> {
    let path = layout.blocks.join("xor.dat");
    let has_key = match disk.kind(&path) {
        Ok(_) => true,
        Err(error) if error.kind == DiskErrorKind::NotFound => false,
        Err(error) => return Err(error.into()),
    };
    if has_key {
        return Ok(crate::files::read_key(disk, &path)?);
    }
    let is_own = |(path, _): &(PathBuf, PathKind)| {
        own_number(path, Part::Blocks).is_some() || own_number(path, Part::Undo).is_some()
    };
    if disk.list(&layout.blocks)?.iter().any(is_own) {
        return Ok(Obfuscation::NONE);
    }
    disk.write_whole(&path, &layout.new_key)?;
    Ok(Obfuscation::new(layout.new_key))
}

/// A number of which there is a file in our directory.
struct Own {
    file: u32,
    has_blocks: bool,
    has_undo: bool,
}

struct Opening<'a> {
    disk: &'a dyn Disk,
    params: &'a Params,
    files: Files,
    tree: HeaderTree,
    remarks: Vec<StoreRemark>,
    /// The log, once it was replayed.
    writer: Option<LogWriter>,
    /// Offset of its record and block of each entry that the last `Synced` may not cover; whether it is of undo data.
    recent: Vec<(u64, NodeId, bool)>,
    pruned: BTreeSet<u32>,
    /// By number: where the last block known ends.
    ends: BTreeMap<u32, u64>,
}

impl Opening<'_> {
    fn remark(&mut self, remark: StoreRemark) {
        if self.remarks.len() < REMARKS_MAX {
            self.remarks.push(remark);
        }
    }

    fn record(&mut self, entry: IndexEntry) -> Result<(), ChainError> {
        match &mut self.writer {
            Some(writer) => Ok(writer.push(&LogItem::Entry(entry))?),
            None => unreachable!("nothing is found before the log was replayed"),
        }
    }

    fn replay(&mut self, path: &Path) -> Result<Option<LogEnd>, ChainError> {
        let (disk, params) = (self.disk, self.params);
        let end = log::read(disk, path, params, &mut |offset, item| self.apply(offset, item))?;
        if let Some(LogEnd { size, torn, .. }) = end
            && torn > 0
        {
            self.disk.truncate(path, size)?;
            self.remark(StoreRemark::TornIndex { path: path.to_owned(), offset: size, size: torn });
        }
        Ok(end)
    }

    fn apply(&mut self, offset: u64, item: LogItem) -> Result<(), &'static str> {
        let entry = match item {
            LogItem::Entry(entry) => entry,
            LogItem::File { file, path, key, is_external } => {
                self.files.restore(file, StoreFile { path, key, is_external });
                return Ok(());
            }
            LogItem::FilePruned { file } => {
                self.pruned.insert(file);
                return Ok(());
            }
            LogItem::Synced { offset, .. } => {
                self.recent.retain(|(at, ..)| *at >= offset);
                return Ok(());
            }
        };
        let tree = &mut self.tree;
        let known =
            |id: NodeId| if id.index() < tree.len() { Ok(id) } else { Err("names a block that it does not have") };
        match entry {
            IndexEntry::Header { id, header } => {
                let is_next = id.index() == tree.len();
                if !is_next || tree.restore_header(&header) != Some(id) {
                    return Err("has a header out of its order");
                }
            }
            IndexEntry::Block { id, position } => {
                self.pruned.remove(&position.file);
                tree.set_block(known(id)?, position);
                self.recent.push((offset, id, false));
            }
            IndexEntry::Undo { id, position } => {
                self.pruned.remove(&position.file);
                tree.set_undo(known(id)?, position);
                self.recent.push((offset, id, true));
            }
            IndexEntry::Verified { id } => tree.set_verified(known(id)?),
            IndexEntry::Invalid { id } if id == NodeId::GENESIS => return Err("calls the genesis block invalid"),
            IndexEntry::Invalid { id } => tree.invalidate(known(id)?),
            IndexEntry::Reconsidered { id } => tree.reconsider(known(id)?),
            IndexEntry::BlockCleared { id } => tree.clear_block(known(id)?),
            IndexEntry::UndoCleared { id } => tree.clear_undo(known(id)?),
        }
        Ok(())
    }

    /// Looks whether the bytes are there that the log named without having seen them safe: after power was lost they may not be.
    fn drop_what_was_lost(&mut self) -> Result<(), ChainError> {
        for (_, id, is_undo) in std::mem::take(&mut self.recent) {
            let node = self.tree.node(id);
            if is_undo {
                let Some(position) = node.undo else { continue };
                if !read::is_undo_whole(&self.files, self.params.magic, position, &node.header.prev_block)? {
                    self.tree.clear_undo(id);
                    self.record(IndexEntry::UndoCleared { id })?;
                    let path = self.files.path(position.file, Part::Undo);
                    self.remark(StoreRemark::UndoLost { path, offset: position.offset, hash: node.hash });
                }
                continue;
            }
            let Some(position) = node.block else { continue };
            let Some(file) = self.files.get(position.file).or_else(|| self.own(position.file)) else { continue };
            if !file.is_external && !read::is_block_whole(&self.files, position, &node.hash)? {
                self.tree.clear_block(id);
                self.record(IndexEntry::BlockCleared { id })?;
                self.remark(StoreRemark::BlockLost { path: file.path, offset: position.offset, hash: node.hash });
            }
        }
        Ok(())
    }

    /// Enters a number that the log does not name: then it is ours.
    fn own(&self, file: u32) -> Option<StoreFile> {
        self.files.insert_own(file);
        self.files.get(file)
    }

    fn note_ends(&mut self) {
        for id in self.tree.ids() {
            if let Some(position) = self.tree.node(id).block {
                let end = self.ends.entry(position.file).or_default();
                *end = (*end).max(position.offset + u64::from(position.size));
            }
        }
    }

    /// The files of our own that are there, by number; files that were to be removed are.
    fn own_files(&mut self) -> Result<Vec<Own>, ChainError> {
        let mut found: BTreeMap<u32, Own> = BTreeMap::new();
        let mut is_removed = false;
        for (path, kind) in self.disk.list(self.files.directory())? {
            if kind != PathKind::File {
                continue;
            }
            let (blocks, undo) = (own_number(&path, Part::Blocks), own_number(&path, Part::Undo));
            let Some(file) = blocks.or(undo) else { continue };
            if self.pruned.contains(&file) {
                remove_if_there(self.disk, &path)?;
                is_removed = true;
                continue;
            }
            let own = found.entry(file).or_insert(Own { file, has_blocks: false, has_undo: false });
            own.has_blocks |= blocks.is_some();
            own.has_undo |= undo.is_some();
        }
        if is_removed {
            self.disk.sync_dir(self.files.directory())?;
        }
        for own in found.values() {
            if self.files.get(own.file).is_none() {
                self.files.insert_own(own.file);
            }
        }
        // A number that an adopted file has is no number of a block file of ours.
        let is_ours = |own: &Own| self.files.get(own.file).is_some_and(|known| !known.is_external);
        for own in found.values_mut() {
            own.has_blocks &= is_ours(own);
        }
        Ok(found.into_values().collect())
    }

    /// Looks for blocks behind the last one known of each file of ours. With a log these are what came after it was written last, and each is
    /// read whole; without one they are everything, and only headers are read.
    fn scan(
        &mut self,
        own: &[Own],
        is_whole_read: bool,
        progress: &mut dyn FnMut(&Path, usize),
    ) -> Result<(), ChainError> {
        let mut finder = Finder::default();
        for own in own.iter().filter(|own| own.has_blocks) {
            let file = own.file;
            let path = self.files.path(file, Part::Blocks);
            let opened = self.disk.open(&path)?;
            let start = self.ends.get(&file).copied().unwrap_or(0);
            if start > opened.size() {
                self.remark(StoreRemark::FileShort { path, size: opened.size(), known: start });
                self.ends.insert(file, opened.size());
                continue;
            }
            if start == opened.size() {
                continue;
            }
            progress(&path, finder.found);
            let view = View { path: &path, file: opened.as_ref(), key: self.files.key };
            let mut remarks = Vec::new();
            let records = scan_file(&view, file, self.params.magic, start, |remark| remarks.push(remark))?;
            if let Some(RemarkKind::OtherChain { magic, .. }) = remarks
                .iter()
                .map(|remark| &remark.kind)
                .find(|kind| records.is_empty() && start == 0 && matches!(kind, RemarkKind::OtherChain { .. }))
            {
                let expected = self.params.chain.name();
                return Err(ChainError::OtherNetwork { path, found: network_name(*magic), expected });
            }
            remarks.into_iter().for_each(|remark| self.remark(StoreRemark::Scan(remark)));
            let before = finder.found;
            for record in records {
                let position = BlockPosition { file, offset: record.offset, size: record.size };
                if is_whole_read && !read::is_block_whole(&self.files, position, &record.hash)? {
                    self.remark(StoreRemark::BlockLost {
                        path: path.clone(),
                        offset: record.offset,
                        hash: record.hash,
                    });
                    continue;
                }
                self.ends.insert(file, record.offset + u64::from(record.size));
                let mut header = [0; HEADER_SIZE];
                view.read_at(record.offset, &mut header)?;
                finder.take(self, record, Header::parse(&header))?;
            }
            if finder.found > before {
                self.remark(StoreRemark::BlocksFound { path, count: finder.found - before });
            }
        }
        let count = finder.orphans.values().map(Vec::len).sum();
        if count > 0 {
            self.remark(StoreRemark::MissingParents { count });
        }
        Ok(())
    }

    /// Cuts off undo data that the log does not name: it is made again, and must not be followed by more.
    fn cut_undo_files(&mut self, own: &[Own]) -> Result<(), ChainError> {
        let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
        for id in self.tree.ids() {
            if let Some(position) = self.tree.node(id).undo {
                let end = position.offset + u64::from(position.size) + CHECKSUM_SIZE as u64;
                let known = ends.entry(position.file).or_default();
                *known = (*known).max(end);
            }
        }
        for own in own.iter().filter(|own| own.has_undo) {
            let path = self.files.path(own.file, Part::Undo);
            let end = ends.get(&own.file).copied().unwrap_or(0);
            if self.disk.open(&path)?.size() > end {
                self.disk.truncate(&path, end)?;
                self.files.close(own.file);
            }
        }
        Ok(())
    }
}

/// Enters found blocks into the tree, parents before children whatever their order in the files.
#[derive(Default)]
struct Finder {
    found: usize,
    /// By the hash of their parent.
    orphans: HashMap<BlockHash, Vec<(Record, Header)>>,
}

impl Finder {
    fn take(&mut self, opening: &mut Opening<'_>, record: Record, header: Header) -> Result<(), ChainError> {
        let mut open = vec![(record, header)];
        while let Some((record, header)) = open.pop() {
            let is_known = opening.tree.find(&record.hash).is_some();
            if !is_known && opening.tree.find(&header.prev_block).is_none() {
                self.orphans.entry(header.prev_block).or_default().push((record, header));
                continue;
            }
            if self.enter(opening, &record, &header)? {
                open.extend(self.orphans.remove(&record.hash).unwrap_or_default().into_iter().rev());
            }
        }
        Ok(())
    }

    /// Gives whether the header is in the tree now.
    fn enter(&mut self, opening: &mut Opening<'_>, record: &Record, header: &Header) -> Result<bool, ChainError> {
        let count = opening.tree.len();
        // It was not from the future when it came.
        let id = match opening.tree.accept_header(header, i64::MAX / 2, opening.params) {
            Ok(id) => id,
            Err(reason) => {
                let path = opening.files.path(record.file, Part::Blocks);
                let Record { offset, hash, .. } = *record;
                opening.remark(StoreRemark::HeaderRefused { path, offset, hash, reason });
                return Ok(false);
            }
        };
        if opening.tree.len() > count {
            opening.record(IndexEntry::Header { id, header: *header })?;
        }
        if opening.tree.node(id).block.is_none() {
            let position = BlockPosition { file: record.file, offset: record.offset, size: record.size };
            opening.tree.set_block(id, position);
            opening.record(IndexEntry::Block { id, position })?;
            self.found += 1;
        }
        Ok(true)
    }
}
