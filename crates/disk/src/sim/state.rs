//! The content of a simulated disk, and the numbered operations on it.
//!
//! Input: paths, file ids, bytes. Output: changed state or a [`DiskError`]. The state stores for every name the durable
//! entry and the entries that replaced it since; for every file its bytes as a reader sees them and the ranges that are
//! not durable. Invariant: an operation that fails without a crash leaves a state that a failed system call may leave.
//! Must never: forget that something was not synced.

use super::Fault;
use super::overwrite::Overwrites;
use crate::{DiskError, DiskErrorKind, PathKind};
use lydian_stdx::{SplitMix64, saturating_usize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct State {
    pub(super) names: BTreeMap<PathBuf, Name>,
    pub(super) files: BTreeMap<u64, Inode>,
    pub(super) next_file: u64,
    pub(super) locks: BTreeSet<u64>,
    pub(super) operation_count: u64,
    pub(super) faults: BTreeMap<u64, Fault>,
    pub(super) read_count: u64,
    pub(super) read_faults: BTreeSet<u64>,
    pub(super) is_gone: bool,
    pub(super) capacity: u64,
    pub(super) random: SplitMix64,
}

/// How much of an operation takes effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    /// The part that a failed call may have done.
    Failed,
    /// The part that was done when the process ended.
    CutOff,
}

/// A name in a directory. The root directories `` and `/` always exist and have no name.
#[derive(Clone, Debug, Default)]
pub(super) struct Name {
    pub(super) durable: Option<Entry>,
    /// The entries given to this name since the directory was last synced, oldest first.
    pub(super) pending: Vec<Option<Entry>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Directory,
    File(u64),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    /// Shared with the disks derived from this one until one of them changes it.
    pub(super) bytes: Arc<Vec<u8>>,
    /// Ranges written since the last sync, one for each write, in order.
    pub(super) pending: Vec<Range<usize>>,
    /// Ranges covered by a failed sync: the kernel treats their pages as clean, so that no later sync writes them.
    pub(super) doomed: Vec<Range<usize>>,
    /// Bytes written over others since the last sync, and those of failed syncs.
    pub(super) overwrites: Overwrites,
    /// Cloned by every open file.
    pub(super) handle: Arc<()>,
}

impl Entry {
    pub(super) fn kind(self) -> PathKind {
        match self {
            Entry::Directory => PathKind::Directory,
            Entry::File(_) => PathKind::File,
        }
    }

    pub(super) fn file(self) -> Option<u64> {
        if let Entry::File(id) = self { Some(id) } else { None }
    }
}

impl Name {
    pub(super) fn current(&self) -> Option<Entry> {
        self.pending.last().copied().unwrap_or(self.durable)
    }
}

impl State {
    pub(super) fn new(seed: u64) -> State {
        State {
            names: BTreeMap::new(),
            files: BTreeMap::new(),
            next_file: 0,
            locks: BTreeSet::new(),
            operation_count: 0,
            faults: BTreeMap::new(),
            read_count: 0,
            read_faults: BTreeSet::new(),
            is_gone: false,
            capacity: u64::MAX,
            random: SplitMix64::new(seed),
        }
    }

    pub(super) fn killed(&self) -> State {
        let files = self.files.iter().map(|(id, inode)| (*id, Inode { handle: Arc::default(), ..inode.clone() }));
        State {
            names: self.names.clone(),
            files: files.collect(),
            next_file: self.next_file,
            capacity: self.capacity,
            random: self.random,
            ..State::new(0)
        }
    }

    /// Fails once the process is gone.
    pub(super) fn alive(&self, path: &Path) -> Result<(), DiskError> {
        if self.is_gone { Err(gone(path)) } else { Ok(()) }
    }

    pub(super) fn entry(&self, path: &Path) -> Result<Entry, DiskError> {
        let key = normal(path);
        if is_root(&key) {
            return Ok(Entry::Directory);
        }
        if let Some(entry) = self.names.get(&key).and_then(Name::current) {
            return Ok(entry);
        }
        let is_file = |path: &Path| matches!(self.names.get(path).and_then(Name::current), Some(Entry::File(_)));
        let below_file = key.ancestors().skip(1).any(is_file);
        let kind = if below_file { DiskErrorKind::NotADirectory } else { DiskErrorKind::NotFound };
        Err(DiskError::new(path, None, kind))
    }

    pub(super) fn file(&self, path: &Path) -> Result<u64, DiskError> {
        match self.entry(path)? {
            Entry::File(id) => Ok(id),
            Entry::Directory => Err(DiskError::new(path, None, DiskErrorKind::IsADirectory)),
        }
    }

    pub(super) fn directory(&self, path: &Path) -> Result<(), DiskError> {
        match self.entry(path)? {
            Entry::Directory => Ok(()),
            Entry::File(_) => Err(DiskError::new(path, None, DiskErrorKind::NotADirectory)),
        }
    }

    pub(super) fn children(&self, path: &Path) -> impl Iterator<Item = (&OsStr, Entry)> {
        let parent = normal(path);
        let inside = self.names.iter().filter(move |(key, _)| parent_of(key) == parent);
        inside.filter_map(|(key, name)| Some((key.file_name()?, name.current()?)))
    }

    pub(super) fn room(&self) -> u64 {
        if self.capacity == u64::MAX {
            return u64::MAX;
        }
        let used: u64 = self.files.values().map(|inode| inode.bytes.len() as u64).sum();
        self.capacity.saturating_sub(used)
    }

    pub(super) fn begin_read(&mut self, path: &Path, offset: u64) -> Result<(), DiskError> {
        self.alive(path)?;
        self.read_count += 1;
        if self.read_faults.remove(&(self.read_count - 1)) {
            return Err(DiskError::new(path, Some(offset), DiskErrorKind::Io));
        }
        Ok(())
    }

    /// The file, created if it does not exist.
    pub(super) fn file_or_new(&mut self, path: &Path) -> Result<u64, DiskError> {
        match self.file(path) {
            Err(error) if error.kind == DiskErrorKind::NotFound => self.create_file(path),
            found => found,
        }
    }

    /// Creates an empty file. If the name belongs to another file, that file loses its name.
    pub(super) fn create_file(&mut self, path: &Path) -> Result<u64, DiskError> {
        let id = self.next_file;
        self.next_file += 1;
        self.create(path, Entry::File(id))?;
        Ok(id)
    }

    pub(super) fn create(&mut self, path: &Path, entry: Entry) -> Result<(), DiskError> {
        self.directory(parent_of(path)).map_err(|error| DiskError { path: path.to_owned(), ..error })?;
        match self.entry(path).map(Entry::kind) {
            Ok(PathKind::Directory) => return Err(DiskError::new(path, None, DiskErrorKind::IsADirectory)),
            Ok(PathKind::File) if entry == Entry::Directory => {
                return Err(DiskError::new(path, None, DiskErrorKind::NotADirectory));
            }
            _ => {}
        }
        self.operate(path, None, |state, extent| {
            if extent == Extent::Whole {
                if let Entry::File(id) = entry {
                    state.files.insert(id, Inode::default());
                }
                state.name(path).pending.push(Some(entry));
            }
        })
    }

    pub(super) fn write(&mut self, id: u64, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        let room = saturating_usize(self.room());
        let start = self.files.entry(id).or_default().bytes.len();
        let mut is_full = false;
        self.operate(path, Some(start as u64), |state, extent| {
            let wanted = if extent == Extent::Whole { bytes.len() } else { state.random.below(bytes.len() + 1) };
            let count = wanted.min(room);
            is_full = count < wanted;
            let inode = state.files.entry(id).or_default();
            Arc::make_mut(&mut inode.bytes).extend_from_slice(&bytes[..count]);
            if count > 0 {
                inode.pending.push(start..start + count);
            }
        })?;
        if is_full { Err(DiskError::new(path, Some(start as u64), DiskErrorKind::NoSpace)) } else { Ok(()) }
    }

    pub(super) fn sync(&mut self, id: u64, path: &Path) -> Result<(), DiskError> {
        let size = self.files.entry(id).or_default().bytes.len() as u64;
        self.operate(path, Some(size), |state, extent| {
            let inode = state.files.entry(id).or_default();
            match extent {
                Extent::Whole => {
                    inode.pending.clear();
                    inode.overwrites.settle();
                }
                Extent::Failed => {
                    inode.doomed.append(&mut inode.pending);
                    inode.overwrites.doom();
                }
                // The pages are still dirty: the next sync writes them.
                Extent::CutOff => {}
            }
        })
    }

    /// Writes over bytes of a file.
    pub(super) fn overwrite(&mut self, id: u64, path: &Path, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let size = self.files.entry(id).or_default().bytes.len() as u64;
        let end = offset.saturating_add(bytes.len() as u64);
        if end > size {
            let kind = DiskErrorKind::UnexpectedEnd { missing: end - size };
            return Err(DiskError::new(path, Some(offset), kind));
        }
        self.operate(path, Some(offset), |state, extent| {
            let count = if extent == Extent::Whole { bytes.len() } else { state.random.below(bytes.len() + 1) };
            let inode = state.files.entry(id).or_default();
            let content = Arc::make_mut(&mut inode.bytes);
            inode.overwrites.write(content, saturating_usize(offset), &bytes[..count]);
        })
    }

    /// Extends a file to a size by zeros and syncs it; if it fails, the file may have its new size, not durably.
    pub(super) fn extend(&mut self, id: u64, path: &Path, size: u64) -> Result<(), DiskError> {
        let old = self.files.entry(id).or_default().bytes.len() as u64;
        if size.saturating_sub(old) > self.room() {
            return Err(DiskError::new(path, Some(old), DiskErrorKind::NoSpace));
        }
        self.operate(path, Some(old), |state, extent| {
            let has_grown = size > old && (extent == Extent::Whole || state.random.below(2) == 0);
            let inode = state.files.entry(id).or_default();
            if has_grown {
                let range = saturating_usize(old)..saturating_usize(size);
                Arc::make_mut(&mut inode.bytes).resize(range.end, 0);
                inode.pending.push(range);
            }
            if extent == Extent::Whole {
                inode.pending.clear();
                inode.overwrites.settle();
            }
        })
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<(), DiskError> {
        let id = self.file(from)?;
        if self.directory(to).is_ok() {
            return Err(DiskError::new(to, None, DiskErrorKind::IsADirectory));
        }
        self.operate(to, None, |state, extent| {
            if extent == Extent::Whole {
                state.name(from).pending.push(None);
                state.name(to).pending.push(Some(Entry::File(id)));
            }
        })
    }

    pub(super) fn remove(&mut self, path: &Path) -> Result<(), DiskError> {
        self.file(path)?;
        self.operate(path, None, |state, extent| {
            if extent == Extent::Whole {
                state.name(path).pending.push(None);
            }
        })
    }

    /// Shortens a file; a truncation that fails may or may not have taken effect.
    pub(super) fn truncate(&mut self, path: &Path, size: u64) -> Result<(), DiskError> {
        let id = self.file(path)?;
        let missing = size.saturating_sub(self.files.entry(id).or_default().bytes.len() as u64);
        if missing > 0 {
            return Err(DiskError::new(path, Some(size), DiskErrorKind::UnexpectedEnd { missing }));
        }
        self.operate(path, Some(size), |state, extent| {
            if extent == Extent::Whole || state.random.below(2) == 0 {
                state.files.entry(id).or_default().cut(saturating_usize(size));
            }
        })
    }

    pub(super) fn sync_dir(&mut self, path: &Path) -> Result<(), DiskError> {
        self.directory(path)?;
        let parent = normal(path);
        self.operate(path, None, |state, extent| {
            if extent == Extent::Whole {
                state.settle_names(&parent);
            }
        })
    }

    /// Syncs the parent directory of a path; an error names the path.
    pub(super) fn sync_parent(&mut self, path: &Path) -> Result<(), DiskError> {
        self.sync_dir(parent_of(path)).map_err(|error| DiskError { path: path.to_owned(), ..error })
    }

    fn settle_names(&mut self, parent: &Path) {
        let mut is_one_gone = false;
        for (_, name) in self.names.iter_mut().filter(|(key, _)| parent_of(key) == parent) {
            is_one_gone |= name.pending.len() + usize::from(name.durable.is_some()) > 1;
            name.durable = name.current();
            name.pending.clear();
        }
        if is_one_gone {
            self.names.retain(|_, name| name.durable.is_some() || !name.pending.is_empty());
            let named: BTreeSet<u64> = self.names.values().flat_map(Name::files).collect();
            self.files.retain(|id, inode| named.contains(id) || Arc::strong_count(&inode.handle) > 1);
        }
    }

    fn name(&mut self, path: &Path) -> &mut Name {
        self.names.entry(normal(path)).or_default()
    }

    /// Numbers an operation and performs it as planned: completely, or partially and with an error.
    fn operate(
        &mut self,
        path: &Path,
        offset: Option<u64>,
        act: impl FnOnce(&mut State, Extent),
    ) -> Result<(), DiskError> {
        self.alive(path)?;
        let number = self.operation_count;
        self.operation_count += 1;
        let fault = self.faults.remove(&number);
        if fault == Some(Fault::CrashBefore) {
            self.is_gone = true;
            return Err(gone(path));
        }
        let extent = match fault {
            None | Some(Fault::CrashAfter) => Extent::Whole,
            Some(Fault::CrashBefore | Fault::CrashInside) => Extent::CutOff,
            Some(Fault::NoSpace | Fault::Io) => Extent::Failed,
        };
        act(self, extent);
        match fault {
            None => Ok(()),
            Some(Fault::NoSpace) => Err(DiskError::new(path, offset, DiskErrorKind::NoSpace)),
            Some(Fault::Io) => Err(DiskError::new(path, offset, DiskErrorKind::Io)),
            Some(Fault::CrashBefore | Fault::CrashInside | Fault::CrashAfter) => {
                self.is_gone = true;
                Err(gone(path))
            }
        }
    }
}

impl Name {
    fn files(&self) -> impl Iterator<Item = u64> {
        let entries = self.pending.iter().copied().chain([self.durable]).flatten();
        entries.filter_map(Entry::file)
    }
}

impl Inode {
    /// Shortens the file and marks the rest as synced.
    fn cut(&mut self, size: usize) {
        Arc::make_mut(&mut self.bytes).truncate(size);
        self.pending.clear();
        self.doomed.retain_mut(|range| {
            range.end = range.end.min(size);
            range.start < range.end
        });
    }
}

/// The parent directory of a path.
pub(super) fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn normal(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

fn is_root(path: &Path) -> bool {
    path.parent().is_none()
}

fn gone(path: &Path) -> DiskError {
    DiskError::new(path, None, DiskErrorKind::Other { reason: "the simulated process is gone".to_owned() })
}
