//! [`SimDisk`]: a disk in memory that loses power, fills up and fails on demand.
//!
//! Input and output as in [`Disk`](crate::Disk). It behaves as a file system without a journal may, as described in
//! `docs/formats/disk.md`: any combination of unsynced changes may be lost. All random choices come from seeds: the
//! same calls in the same order with the same seeds give the same disk. Cost: memory for the bytes of all files; one
//! lock for all calls. Must never: be more forgiving than a real disk, or read a clock.
//!
//! Operations that change something are numbered from 0 in the order in which they happen: creating a file or
//! directory, a write, a sync of a file or directory, a rename, a truncation, a removal. `write_whole` consists of five
//! (create, write, sync, rename, sync of the directory), `append_file` of one or two (create if missing, sync of the
//! directory), `fixed_file` of two or three (create if missing, extend and sync, sync of the directory). Reads are
//! numbered separately.

mod file;
mod loss;
mod overwrite;
mod state;

use crate::{AppendFile, Disk, DiskError, DiskErrorKind, FixedFile, Lock, PathKind, ReadFile};
use file::{SimAppendFile, SimLock, SimReadFile};
use lydian_stdx::lock;
use state::{Entry, State};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// A simulated disk. A clone is the same disk.
#[derive(Clone, Debug)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// A fault of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The operation fails with [`DiskErrorKind::NoSpace`]; a write may be partially done.
    NoSpace,
    /// The operation fails with [`DiskErrorKind::Io`]; a write may be partially done. Bytes covered by a failed sync
    /// never become durable.
    Io,
    /// The process ends before the operation: it and every later call fail.
    CrashBefore,
    /// The process ends during the operation: a write is partially done. It and every later call fail.
    CrashInside,
    /// The process ends after the operation: it takes effect, but it and every later call fail.
    CrashAfter,
}

impl SimDisk {
    /// Creates an empty disk; the seed decides how much of a failing write is done.
    pub fn new(seed: u64) -> SimDisk {
        SimDisk::of(State::new(seed))
    }

    /// Returns the disk as the next process finds it if this one is killed now.
    ///
    /// The operating system keeps all written data, synced or not, and releases locks. The new disk has no planned
    /// faults, and its counts are zero. This disk is unchanged and shares nothing with the new one.
    pub fn kill(&self) -> SimDisk {
        SimDisk::of(self.state().killed())
    }

    /// Returns the disk after a power loss at this moment; the seed decides which unsynced writes and names are lost.
    /// Otherwise like [`kill`](SimDisk::kill).
    pub fn power_loss(&self, seed: u64) -> SimDisk {
        SimDisk::of(loss::power_loss(&self.state(), seed))
    }

    /// The count of operations so far, including failed ones: the number of the next one.
    pub fn operation_count(&self) -> u64 {
        self.state().operation_count
    }

    /// Plans a fault for the operation with this number.
    pub fn fail_at(&self, operation: u64, fault: Fault) {
        self.state().faults.insert(operation, fault);
    }

    /// The count of reads so far: the number of the next one. Each request of a `read_many` counts as one.
    pub fn read_count(&self) -> u64 {
        self.state().read_count
    }

    /// Makes the read with this number fail with [`DiskErrorKind::Io`].
    pub fn fail_read_at(&self, read: u64) {
        self.state().read_faults.insert(read);
    }

    /// Whether a planned crash has happened, after which every call fails.
    pub fn is_crashed(&self) -> bool {
        self.state().is_gone
    }

    /// Limits the total size of all files; a write beyond it writes what fits and fails with
    /// [`DiskErrorKind::NoSpace`].
    pub fn set_capacity(&self, bytes: u64) {
        self.state().capacity = bytes;
    }

    /// Silently inverts the bits of `mask` in one byte of a file, to simulate bit rot.
    pub fn flip(&self, path: &Path, offset: u64, mask: u8) -> Result<(), DiskError> {
        let mut state = self.state();
        let id = state.file(path)?;
        let bytes = Arc::make_mut(&mut state.files.entry(id).or_default().bytes);
        let size = bytes.len() as u64;
        match usize::try_from(offset).ok().and_then(|offset| bytes.get_mut(offset)) {
            Some(byte) => *byte ^= mask,
            None => {
                let kind = DiskErrorKind::UnexpectedEnd { missing: (offset - size).saturating_add(1) };
                return Err(DiskError::new(path, Some(offset), kind));
            }
        }
        Ok(())
    }

    /// Returns every file and its bytes, as a reader sees them now.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.state();
        let ids = state.names.iter().filter_map(|(path, name)| Some((path, name.current()?.file()?)));
        ids.map(|(path, id)| (path.clone(), state.files.get(&id).map_or(Vec::new(), |inode| inode.bytes.to_vec())))
            .collect()
    }

    fn of(state: State) -> SimDisk {
        SimDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// Ignores poisoning: a thread that panicked leaves a consistent state, since every change is a few infallible
    /// steps.
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn write_and_rename(state: &mut State, temporary: &Path, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        let id = state.create_file(temporary)?;
        state.write(id, temporary, bytes)?;
        state.sync(id, temporary)?;
        state.rename(temporary, path)?;
        state.sync_parent(path)
    }
}

impl Disk for SimDisk {
    fn kind(&self, path: &Path) -> Result<PathKind, DiskError> {
        let state = self.state();
        state.alive(path)?;
        Ok(state.entry(path)?.kind())
    }

    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>, DiskError> {
        let mut state = self.state();
        state.alive(path)?;
        let id = state.file(path)?;
        let inode = state.files.entry(id).or_default();
        let (size, handle) = (inode.bytes.len() as u64, inode.handle.clone());
        Ok(Box::new(SimReadFile { disk: self.clone(), id, path: path.to_owned(), size, _handle: handle }))
    }

    fn list(&self, path: &Path) -> Result<Vec<(PathBuf, PathKind)>, DiskError> {
        let state = self.state();
        state.alive(path)?;
        state.directory(path)?;
        Ok(state.children(path).map(|(name, entry)| (path.join(name), entry.kind())).collect())
    }

    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        let mut state = self.state();
        state.alive(path)?;
        let missing: Vec<&Path> = path.ancestors().take_while(|path| state.directory(path).is_err()).collect();
        for path in missing.into_iter().rev() {
            state.create(path, Entry::Directory)?;
            state.sync_parent(path)?;
        }
        Ok(())
    }

    fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let temporary = path.with_file_name(name);
        let mut state = self.state();
        state.alive(path)?;
        SimDisk::write_and_rename(&mut state, &temporary, path, bytes).map_err(|error| {
            if !state.is_gone && state.file(&temporary).is_ok() {
                let _ = state.remove(&temporary);
            }
            DiskError { path: path.to_owned(), ..error }
        })
    }

    fn append_file(&self, path: &Path) -> Result<Box<dyn AppendFile>, DiskError> {
        let mut state = self.state();
        state.alive(path)?;
        let id = state.file_or_new(path)?;
        state.sync_parent(path)?;
        let inode = state.files.entry(id).or_default();
        let (size, handle) = (inode.bytes.len() as u64, inode.handle.clone());
        Ok(Box::new(SimAppendFile {
            disk: self.clone(),
            id,
            path: path.to_owned(),
            size,
            is_poisoned: false,
            _handle: handle,
        }))
    }

    fn fixed_file(&self, path: &Path, size: u64) -> Result<Box<dyn FixedFile>, DiskError> {
        let mut state = self.state();
        state.alive(path)?;
        let id = state.file_or_new(path)?;
        state.extend(id, path, size)?;
        state.sync_parent(path)?;
        let inode = state.files.entry(id).or_default();
        let (size, handle) = (inode.bytes.len() as u64, inode.handle.clone());
        Ok(Box::new(SimReadFile { disk: self.clone(), id, path: path.to_owned(), size, _handle: handle }))
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        let mut state = self.state();
        state.alive(path)?;
        state.remove(path)
    }

    fn truncate_file(&self, path: &Path, size: u64) -> Result<(), DiskError> {
        let mut state = self.state();
        state.alive(path)?;
        state.truncate(path, size)
    }

    fn sync_dir(&self, path: &Path) -> Result<(), DiskError> {
        let mut state = self.state();
        state.alive(path)?;
        state.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError> {
        let mut state = self.state();
        state.alive(path)?;
        let id = state.file_or_new(path)?;
        if !state.locks.insert(id) {
            return Err(DiskError::new(path, None, DiskErrorKind::Locked));
        }
        Ok(Box::new(SimLock { disk: self.clone(), id }))
    }

    fn free_bytes(&self, path: &Path) -> Result<u64, DiskError> {
        let state = self.state();
        state.alive(path)?;
        state.entry(path)?;
        Ok(state.room())
    }
}
