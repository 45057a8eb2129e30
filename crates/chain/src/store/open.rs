//! Opens the store: replays the index log, then recovers what is not known to be durable (`recover`). Input: a disk and
//! two directories. Output: the store, the tree, and remarks for the user.
//!
//! Cost: two passes over the log (about 130 bytes per block) and one hash per header.

use super::entry::{IndexEntry, LogItem};
use super::error::ChainError;
use super::files::{Files, KEY_FILE, Part, StoreFile, own_blocks, own_index, own_number};
use super::log::{self, LogFile};
use super::recover::{Recovered, Recovery};
use super::reindex;
use super::remark::StoreRemark;
use super::{BlockStore, Queue};
use crate::obfuscation::Obfuscation;
use crate::owner::{blocks_owner, mark};
use crate::position::BlockPosition;
use crate::tree::{HeaderId, HeaderTree};
use lydian_consensus::Params;
use lydian_disk::{Disk, DiskErrorKind, PathKind};
use lydian_hash::Sha256;
use lydian_primitives::{BlockHash, HEADER_SIZE};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The directories of the store.
#[derive(Clone, Debug)]
pub struct Layout {
    /// `blk?????.dat`, `rev?????.dat`, `xor.dat`.
    pub blocks: PathBuf,
    /// The index log.
    pub index: PathBuf,
    /// The key for a new blocks directory: random bytes as in Core, or zeros for none. An existing key takes
    /// precedence.
    pub new_key: [u8; Obfuscation::SIZE],
}

/// An opened store.
#[derive(Debug)]
pub struct Opened {
    pub store: BlockStore,
    /// Everything that is known. Its active chain is only the genesis block; the coins determine the real one
    /// ([`HeaderTree::activate`]).
    pub tree: HeaderTree,
    pub remarks: Vec<StoreRemark>,
    /// A reindex was started but not finished: only the genesis block is known until [`BlockStore::reindex`].
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
    check_owner(disk.as_ref(), layout)?;
    make_directory(disk.as_ref(), &layout.blocks)?;
    make_directory(disk.as_ref(), &layout.index)?;
    let is_reindexing = reindex::resume(disk.as_ref(), layout)?;
    let path = log_path(&layout.index);
    let log = LogFile::open(disk.as_ref(), &path, params)?;
    if log.is_none() && !is_reindexing && has_own_files(disk.as_ref(), layout, Part::Blocks)? {
        return Err(ChainError::IndexMissing { path });
    }
    // Marked before any other file is written, so that the directory remains ours whatever else is lost.
    mark(disk.as_ref(), &layout.blocks, params.chain.name())?;
    let files = Files::new(Arc::clone(&disk), &layout.blocks, own_key(disk.as_ref(), layout, params.magic)?);
    let mut replay = Replay::new(files, params);
    if let Some(log) = &log {
        log.items(&mut |is_safe, item| replay.take(is_safe, item))?;
        replay.check_key(&key_path(layout))?;
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
    let Recovered { files, mut tree, remarks, blocks, undos, log, unread } = recovery.run(log, progress)?;
    let next_id = u32::try_from(tree.len()).unwrap_or(u32::MAX);
    let store = BlockStore {
        magic: params.magic,
        index: own_index(&layout.index),
        files,
        blocks: Mutex::new(blocks),
        undos: Mutex::new(undos),
        log: Mutex::new(log),
        queue: Mutex::new(Queue { items: Vec::new(), next_id }),
        failed: Mutex::new(None),
        unread: Mutex::new(unread),
        disk,
    };
    reindex::enter_genesis(&store, &mut tree, params)?;
    Ok(Opened { store, tree, remarks, is_reindexing })
}

/// Returns an error if another program wrote the directory, before anything is written into it.
pub(super) fn check_owner(disk: &dyn Disk, layout: &Layout) -> Result<(), ChainError> {
    blocks_owner(disk, &layout.blocks, &layout.index)?.check(&layout.blocks)?;
    Ok(())
}

/// Creates a directory and makes its name durable. An existing one may have been created by a process that died before
/// its name was durable.
fn make_directory(disk: &dyn Disk, path: &Path) -> Result<(), ChainError> {
    disk.create_dir(path)?;
    for parent in path.ancestors().skip(1) {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        match disk.sync_dir(parent) {
            // We did not create a directory that we may not even open.
            Err(error) if error.kind != DiskErrorKind::PermissionDenied => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

fn key_path(layout: &Layout) -> PathBuf {
    layout.blocks.join(KEY_FILE)
}

/// Reads the key in `xor.dat`. A new directory gets one; block files of a directory without a key start with the plain
/// magic.
fn own_key(disk: &dyn Disk, layout: &Layout, magic: [u8; 4]) -> Result<Obfuscation, ChainError> {
    let path = key_path(layout);
    let has_key = match disk.kind(&path) {
        Ok(_) => true,
        Err(error) if error.kind == DiskErrorKind::NotFound => false,
        Err(error) => return Err(error.into()),
    };
    if has_key {
        return Ok(crate::files::read_key(disk, &path)?);
    }
    if has_own_files(disk, layout, Part::Blocks)? || has_own_files(disk, layout, Part::Undo)? {
        return match shows_magic(disk, layout, magic)? {
            true => Ok(Obfuscation::NONE),
            false => Err(ChainError::KeyMissing { path }),
        };
    }
    own_blocks(&layout.blocks).replace(disk, &path, &layout.new_key)?;
    Ok(Obfuscation::new(layout.new_key))
}

/// Whether a block file starts with the plain magic, or all of them are empty.
fn shows_magic(disk: &dyn Disk, layout: &Layout, magic: [u8; 4]) -> Result<bool, ChainError> {
    let mut is_empty = true;
    for (path, kind) in disk.list(&layout.blocks)? {
        if kind == PathKind::File && own_number(&path, Part::Blocks).is_some() {
            let (file, mut start) = (disk.open(&path)?, [0; 4]);
            if file.size() >= 4 {
                file.read_at(0, &mut start)?;
                if start == magic {
                    return Ok(true);
                }
                is_empty = false;
            }
        }
    }
    Ok(is_empty)
}

fn has_own_files(disk: &dyn Disk, layout: &Layout, part: Part) -> Result<bool, ChainError> {
    Ok(disk
        .list(&layout.blocks)?
        .iter()
        .any(|(path, kind)| *kind == PathKind::File && own_number(path, part).is_some()))
}

/// Rebuilds the tree from the index log.
pub(super) struct Replay {
    pub(super) files: Files,
    pub(super) tree: HeaderTree,
    /// Items that can be read but may not be durable; not yet in the tree.
    pub(super) recent: Vec<LogItem>,
    /// Numbers of files to be removed.
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

    /// Checks that some blocks of our own files are at their indexed positions. With the wrong key none is, and
    /// everything that relies on the key would fail in another way: a reindex, for example, would find an empty chain.
    fn check_key(&self, path: &Path) -> Result<(), ChainError> {
        let own: Vec<_> = (self.tree.ids())
            .filter_map(|id| Some((id, self.tree.block(id).filter(|position| !self.is_adopted(position.file))?)))
            .collect();
        let (mut read, mut found) = (0, 0);
        for (id, BlockPosition { file, offset, .. }) in
            [0, own.len() / 2, own.len().saturating_sub(1)].into_iter().filter_map(|index| own.get(index).copied())
        {
            self.files.insert_own(file);
            // A missing or short file is handled elsewhere.
            let opened = self.files.open(file, Part::Blocks, offset + HEADER_SIZE as u64);
            self.files.forget(file);
            let Ok(Ok(bytes)) = opened.map(|opened| opened.read(offset, HEADER_SIZE)) else { continue };
            read += 1;
            let hash = Sha256::new().update(&bytes).finalize_double();
            found += usize::from(BlockHash(hash) == *self.tree.hash(id));
        }
        if read > 0 && found == 0 { Err(ChainError::KeyDiffers { path: path.to_owned() }) } else { Ok(()) }
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
        let known = |id: HeaderId| {
            if id.index() < tree.len() { Ok(id) } else { Err("names an unknown block") }
        };
        match entry {
            IndexEntry::Header { id, header } => {
                let is_next = id.index() == tree.len();
                if !is_next || tree.restore_header(&header) != Some(id) {
                    return Err("has a header out of order");
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
            IndexEntry::Counts { id, counts } => tree.set_counts(known(id)?, counts),
            IndexEntry::Invalid { id } if id == HeaderId::GENESIS => return Err("marks the genesis block as invalid"),
            IndexEntry::Invalid { id } => tree.invalidate(known(id)?),
            IndexEntry::Reconsidered { id } => tree.reconsider(known(id)?),
            IndexEntry::BlockCleared { id } => tree.clear_block(known(id)?),
            IndexEntry::UndoCleared { id } => tree.clear_undo(known(id)?),
        }
        Ok(())
    }

    /// Marks the file with this number as in use.
    fn note(&mut self, file: u32) {
        self.files.note(file);
        self.pruned.remove(&file);
    }

    /// Whether the number belongs to a file with another path than our own file would have.
    pub(super) fn is_adopted(&self, file: u32) -> bool {
        self.files.get(file).is_some_and(|known| known.path != self.files.path(file, Part::Blocks))
    }
}
