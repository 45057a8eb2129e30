//! The only opener of files. Input: paths. Output: bytes at offsets, names in a directory, whole files written atomically, appended
//! bytes; or a [`DiskError`] that is one sentence with path and offset.
//!
//! Everything goes through the trait [`Disk`]: [`RealDisk`] is the operating system's, [`SimDisk`] one in memory that
//! loses power at will. Files that exist are changed through an [`OwnDir`], which touches no file but ours.
//! [`record`] is the framing of append-only logs. What is assumed of disks and operating systems is written in `docs/formats/disk.md`.
//! Invariants: a read gives all the bytes asked for or an error; a file written whole is there complete or not at all; a writer that failed
//! once stays failed. Nothing here knows Bitcoin, reads a clock, or buffers more than it says.

#![deny(unsafe_code)]

mod error;
pub mod limits;
mod many;
mod own;
mod pool;
mod real;
pub mod record;
mod sim;
mod sys;
mod whole;

pub use error::{DiskError, DiskErrorKind};
pub use many::ReadWay;
pub use own::{Change, OwnDir, OwnFile, Proof};
pub use real::RealDisk;
pub use sim::{Fault, SimDisk};
pub use sys::release_free_memory;
pub use whole::{is_zst, open_content, read_whole};

use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// What a node may ask of its disk.
pub trait Disk: Debug + Send + Sync {
    /// Whether the path is a file or a directory.
    fn kind(&self, path: &Path) -> Result<PathKind, DiskError>;

    /// Opens a regular file for reading.
    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>, DiskError>;

    /// The files and directories in a directory, sorted by name. Links to files count as files; links to directories are left out.
    fn list(&self, path: &Path) -> Result<Vec<(PathBuf, PathKind)>, DiskError>;

    /// Makes a directory and its parents, durable on return; one that is there already is fine.
    fn create_dir(&self, path: &Path) -> Result<(), DiskError>;

    /// Writes a file under another name, syncs it, renames it and syncs the directory: after a crash the path holds either what it held
    /// before or all of `bytes`.
    fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError>;

    /// Opens a file for appending; makes it if it is not there. Its name is durable on return, its bytes once synced; what is written is
    /// seen by every [`open`](Disk::open) that follows.
    fn append_file(&self, path: &Path) -> Result<Box<dyn AppendFile>, DiskError>;

    /// Removes a file; durable once its directory is synced. One that is not there is [`DiskErrorKind::NotFound`].
    fn remove_file(&self, path: &Path) -> Result<(), DiskError>;

    /// Shortens a file to `size` bytes; durable on return. A file that is shorter is [`DiskErrorKind::UnexpectedEnd`]. No writer of the
    /// file may be open: its idea of the size would be wrong.
    fn truncate_file(&self, path: &Path, size: u64) -> Result<(), DiskError>;

    /// Returns when the names in a directory (files made, replaced, removed) are on the disk.
    fn sync_dir(&self, path: &Path) -> Result<(), DiskError>;

    /// Takes a lock file for this process alone, making it if it is not there; [`DiskErrorKind::Locked`] if another
    /// holds it, with `fcntl` (as Bitcoin Core does) or `flock`. Held until the value is dropped or the process ends,
    /// however it ends.
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError>;

    /// Bytes that may still be written on the file system of a file or directory.
    fn free_bytes(&self, path: &Path) -> Result<u64, DiskError>;
}

/// A lock file, held as long as this lives.
pub trait Lock: Debug + Send + Sync {}

/// What a path names. Anything else (a pipe, a socket, a device) is an error, because opening it may never return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    File,
    Directory,
}

/// A file open for reading at any offset.
pub trait ReadFile: Debug + Send + Sync {
    /// Bytes in the file when it was opened.
    fn size(&self) -> u64;

    /// Whether the path still names this file: it was not removed, renamed or replaced since it was opened.
    fn is_named(&self) -> bool;

    /// Fills `buffer` from `offset`, or fails.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError>;

    /// Fills every buffer, or fails with the error of one of them; then the buffers hold anything. A real disk has all of them under way at
    /// once.
    fn read_many(&self, reads: &mut [ReadRequest<'_>]) -> Result<(), DiskError> {
        reads.iter_mut().try_for_each(|read| self.read_at(read.offset, read.buffer))
    }

    /// Says that these bytes will be wanted soon. A hint: never an error, and no promise.
    fn prefetch(&self, _offset: u64, _size: u64) {}
}

/// One of many reads: as many bytes as the buffer is long.
#[derive(Debug)]
pub struct ReadRequest<'a> {
    pub offset: u64,
    pub buffer: &'a mut [u8],
}

/// A file open for appending. After a write or sync that failed, every later one fails as well: what lies on the disk is then unknown
/// until the file is opened again.
pub trait AppendFile: Debug + Send {
    /// Bytes in the file, with those appended.
    fn size(&self) -> u64;

    /// Whether the path still names this file: it was not removed, renamed or replaced since it was opened.
    fn is_named(&self) -> bool;

    fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError>;

    /// Returns when the bytes are on the disk.
    fn sync(&mut self) -> Result<(), DiskError>;
}
