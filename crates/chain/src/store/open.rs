//! Opening the store: the index log is replayed, then what is not known to be safe on the disk is recovered (`recover`). Input: a disk and two
//! directories. Output: the store, the tree, and what a person may want to know.
//!
//! Cost: two passes over the log (about 130 bytes a block) and one hash a header.

use super::entry::{IndexEntry, LogItem};
use super::error::ChainError;
use super::files::{Files, Part, StoreFile, own_number};
use super::log::{self, LogFile};
use super::recover::{Recovered, Recovery};
use super::reindex;
use super::remark::StoreRemark;
use super::{BlockStore, Queue};
use crate::obfuscation::Obfuscation;
use crate::tree::{HeaderTree, NodeId};
use lydian_consensus::Params;
use lydian_disk::{Disk, DiskErrorKind, PathKind};
use std::collections::BTreeSet;
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
    make_directory(disk.as_ref(), &layout.blocks)?;
    make_directory(disk.as_ref(), &layout.index)?;
    let mut is_reindexing = reindex::resume(disk.as_ref(), layout)?;
    let path = log_path(&layout.index);
    let log = LogFile::open(disk.as_ref(), &path, params)?;
    let files = Files::new(Arc::clone(&disk), layout.blocks.clone(), own_key(disk.as_ref(), layout)?);
    let mut replay = Replay::new(files, params);
    if let Some(log) = &log {
        log.items(&mut |is_safe, item| replay.take(is_safe, item))?;
    }
    if log.is_none() && !is_reindexing && has_own_files(disk.as_ref(), layout, Part::Blocks)? {
        // The log was lost, or the files were put here by hand: the index is built from them, and that may be interrupted.
        reindex::mark(disk.as_ref(), &layout.index)?;
        is_reindexing = true;
    }
    let mut remarks = Vec::new();
    let log = match log {
        Some(log) => {
            if log.torn() > 0 {
                remarks.push(StoreRemark::TornIndex { path: path.clone(), offset: log.end(), size: log.torn() });
            }
            log
        }
        None => {
            log::create(disk.as_ref(), &path, params)?;
            match LogFile::open(disk.as_ref(), &path, params)? {
                Some(log) => log,
                None => return Err(ChainError::IndexDamaged { path, offset: 0 }),
            }
        }
    };
    let recovery = Recovery::new(disk.as_ref(), params, replay, remarks, is_reindexing);
    let Recovered { files, tree, remarks, blocks, undos, log } = recovery.run(log, progress)?;
    let next_id = u32::try_from(tree.len()).unwrap_or(u32::MAX);
    let store = BlockStore {
        magic: params.magic,
        index: layout.index.clone(),
        files,
        blocks: Mutex::new(blocks),
        undos: Mutex::new(undos),
        log: Mutex::new(log),
        queue: Mutex::new(Queue { items: Vec::new(), next_id }),
        failed: Mutex::new(None),
        disk,
    };
    Ok(Opened { store, tree, remarks, is_reindexing })
}

/// Makes a directory, and makes its name safe: one that is there may have been made by a process that died before its name was.
fn make_directory(disk: &dyn Disk, path: &Path) -> Result<(), ChainError> {
    disk.create_dir(path)?;
    for parent in path.ancestors().skip(1) {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        match disk.sync_dir(parent) {
            // What we may not even open we did not make.
            Err(error) if error.kind != DiskErrorKind::PermissionDenied => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
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
    if has_own_files(disk, layout, Part::Blocks)? || has_own_files(disk, layout, Part::Undo)? {
        return Ok(Obfuscation::NONE);
    }
    disk.write_whole(&path, &layout.new_key)?;
    Ok(Obfuscation::new(layout.new_key))
}

fn has_own_files(disk: &dyn Disk, layout: &Layout, part: Part) -> Result<bool, ChainError> {
    Ok(disk
        .list(&layout.blocks)?
        .iter()
        .any(|(path, kind)| *kind == PathKind::File && own_number(path, part).is_some()))
}

/// The index log becoming a tree again.
pub(super) struct Replay {
    pub(super) files: Files,
    pub(super) tree: HeaderTree,
    /// What may not be safe on the disk, though it can be read; not in the tree yet.
    pub(super) recent: Vec<LogItem>,
    /// Numbers of files that are to be gone.
    pub(super) pruned: BTreeSet<u32>,
}

impl Replay {
    fn new(files: Files, params: &Params) -> Replay {
        Replay { files, tree: HeaderTree::new(params), recent: Vec::new(), pruned: BTreeSet::new() }
    }

    fn take(&mut self, is_safe: bool, item: LogItem) -> Result<(), &'static str> {
        if is_safe {
            return self.apply(item);
        }
        if !matches!(item, LogItem::Synced { .. }) {
            self.recent.push(item);
        }
        Ok(())
    }

    pub(super) fn apply(&mut self, item: LogItem) -> Result<(), &'static str> {
        match item {
            LogItem::Entry(entry) => self.apply_entry(entry)?,
            LogItem::File { file, path, key, is_external } => {
                self.files.restore(file, StoreFile { path, key, is_external });
            }
            LogItem::FilePruned { file } => {
                self.files.note(file);
                self.pruned.insert(file);
            }
            LogItem::Synced { .. } => {}
        }
        Ok(())
    }

    fn apply_entry(&mut self, entry: IndexEntry) -> Result<(), &'static str> {
        let tree = &mut self.tree;
        let known = |id: NodeId| {
            if id.index() < tree.len() { Ok(id) } else { Err("names a block that it does not have") }
        };
        match entry {
            IndexEntry::Header { id, header } => {
                let is_next = id.index() == tree.len();
                if !is_next || tree.restore_header(&header) != Some(id) {
                    return Err("has a header out of its order");
                }
            }
            IndexEntry::Block { id, position } => {
                tree.set_block(known(id)?, position);
                self.note(position.file);
            }
            IndexEntry::Undo { id, position } => {
                tree.set_undo(known(id)?, position);
                self.note(position.file);
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

    /// The file of this number is in use.
    fn note(&mut self, file: u32) {
        self.files.note(file);
        self.pruned.remove(&file);
    }

    /// Whether the number is that of a file that lies elsewhere or has another name than ours.
    pub(super) fn is_adopted(&self, file: u32) -> bool {
        self.files.get(file).is_some_and(|known| known.path != self.files.path(file, Part::Blocks))
    }
}
