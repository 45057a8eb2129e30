//! Open files of a simulated disk, with input and output as in [`ReadFile`], [`AppendFile`] and [`FixedFile`].
//!
//! The operations are implemented in `state`. An open file outlives its name, as on POSIX. A writer that failed once
//! stays failed, like the real one. Must never: change anything without `state` recording it.

use super::SimDisk;
use crate::{AppendFile, DiskError, DiskErrorKind, FixedFile, Lock, ReadFile};
use lydian_stdx::saturating_usize;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct SimReadFile {
    pub(super) disk: SimDisk,
    pub(super) id: u64,
    pub(super) path: PathBuf,
    pub(super) size: u64,
    /// Keeps the file after its name is removed.
    pub(super) _handle: Arc<()>,
}

impl ReadFile for SimReadFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn is_named(&self) -> bool {
        self.disk.state().file(&self.path) == Ok(self.id)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        let mut state = self.disk.state();
        state.begin_read(&self.path, offset)?;
        let bytes = state.files.get(&self.id).map_or(&[][..], |inode| inode.bytes.as_slice());
        let end = offset.saturating_add(buffer.len() as u64);
        let size = self.size.min(bytes.len() as u64);
        if end > size {
            let kind = DiskErrorKind::UnexpectedEnd { missing: end - size };
            return Err(DiskError::new(&self.path, Some(offset), kind));
        }
        let start = saturating_usize(offset);
        buffer.copy_from_slice(&bytes[start..start + buffer.len()]);
        Ok(())
    }
}

/// A file of fixed size is the reader of it, with which it is also written.
impl FixedFile for SimReadFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.disk.state().overwrite(self.id, &self.path, offset, bytes)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.disk.state().sync(self.id, &self.path)
    }
}

#[derive(Debug)]
pub(super) struct SimAppendFile {
    pub(super) disk: SimDisk,
    pub(super) id: u64,
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) is_poisoned: bool,
    pub(super) _handle: Arc<()>,
}

impl SimAppendFile {
    fn check_poison(&self) -> Result<(), DiskError> {
        if self.is_poisoned {
            return Err(DiskError::new(&self.path, Some(self.size), DiskErrorKind::Poisoned));
        }
        Ok(())
    }
}

impl AppendFile for SimAppendFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn is_named(&self) -> bool {
        let state = self.disk.state();
        // After a crash the answer is unknown; the following write fails.
        state.alive(&self.path).is_err() || state.file(&self.path) == Ok(self.id)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.check_poison()?;
        let result = self.disk.state().write(self.id, &self.path, bytes);
        self.is_poisoned = result.is_err();
        result?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        self.check_poison()?;
        let result = self.disk.state().sync(self.id, &self.path);
        self.is_poisoned = result.is_err();
        result
    }
}

#[derive(Debug)]
pub(super) struct SimLock {
    pub(super) disk: SimDisk,
    pub(super) id: u64,
}

impl Lock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.state().locks.remove(&self.id);
    }
}
