//! File access: this is the only crate that opens files.
//!
//! Input: paths. Output: bytes at offsets, names in a directory, whole files written atomically, appended bytes; or a
//! [`DiskError`] that is one sentence with path and offset.
//!
//! All access goes through the trait [`Disk`]: [`RealDisk`] is the operating system's, [`SimDisk`] is a disk in memory
//! that loses power on demand. Existing files are changed through an [`OwnDir`], which changes only our own files.
//! [`record`] is the framing of append-only logs. `docs/formats/disk.md` lists the assumptions about disks and
//! operating systems.
//!
//! Invariants: a read returns all requested bytes or an error; a file written whole exists completely or not at all; a
//! writer that failed once stays failed. Nothing here knows about Bitcoin, reads a clock, or buffers more than
//! documented.

#![deny(unsafe_code)]

mod error;
pub mod format;
pub mod limits;
mod many;
mod own;
mod pool;
pub mod probe;
mod real;
pub mod record;
mod sim;
mod sys;
mod whole;

pub use error::{DiskError, DiskErrorKind};
pub use format::{Format, NewerFormat, NumberPlace};
pub use many::ReadWay;
pub use own::{Change, OwnDir, OwnFile, Proof};
pub use real::RealDisk;
pub use sim::{Fault, SimDisk};
pub use sys::{MemoryBlocks, WipingAllocator, bound_free_memory, is_clock_synchronized, release_free_memory, wiping};
pub use whole::{is_zst, open_content, read_whole};

use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// The disk operations of a node.
pub trait Disk: Debug + Send + Sync {
    /// Whether the path is a file or a directory.
    fn kind(&self, path: &Path) -> Result<PathKind, DiskError>;

    /// Opens a regular file for reading.
    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>, DiskError>;

    /// The files and directories in a directory, sorted by name. Links to files count as files; links to directories
    /// are left out.
    fn list(&self, path: &Path) -> Result<Vec<(PathBuf, PathKind)>, DiskError>;

    /// Creates a directory and its parents, durable on return; an existing directory is not an error.
    fn create_dir(&self, path: &Path) -> Result<(), DiskError>;

    /// Writes a file under a temporary name, syncs it, renames it and syncs the directory: after a crash the path holds
    /// either its previous content or all of `bytes`.
    fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError>;

    /// Opens a file for appending and creates it if it does not exist. Its name is durable on return, its bytes once
    /// synced; every later [`open`](Disk::open) sees the bytes written.
    fn append_file(&self, path: &Path) -> Result<Box<dyn AppendFile>, DiskError>;

    /// Opens a file for reading and overwriting, creates it if it does not exist, and extends it by zeros to `size`
    /// bytes if it is shorter; its name and size are durable on return. The zeros need not occupy space on disk.
    fn fixed_file(&self, path: &Path, size: u64) -> Result<Box<dyn FixedFile>, DiskError>;

    /// Removes a file; durable once its directory is synced. Fails with [`DiskErrorKind::NotFound`] if it does not
    /// exist.
    fn remove_file(&self, path: &Path) -> Result<(), DiskError>;

    /// Shortens a file to `size` bytes; durable on return. Fails with [`DiskErrorKind::UnexpectedEnd`] if the file is
    /// shorter. No writer of the file may be open, because the size it stores would be wrong.
    fn truncate_file(&self, path: &Path, size: u64) -> Result<(), DiskError>;

    /// Returns when the names in a directory (files created, replaced, removed) are on disk.
    fn sync_dir(&self, path: &Path) -> Result<(), DiskError>;

    /// Locks a file exclusively for this process and creates it if it does not exist. Fails with
    /// [`DiskErrorKind::Locked`] if another process holds a lock, with `fcntl` (as Bitcoin Core does) or `flock`. The
    /// lock is held until the value is dropped or the process ends for any reason.
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError>;

    /// Returns the number of bytes that can still be written to the file system of a file or directory.
    fn free_bytes(&self, path: &Path) -> Result<u64, DiskError>;
}

/// A lock file, held until this value is dropped.
pub trait Lock: Debug + Send + Sync {}

/// The kind of a path. Anything else (a pipe, a socket, a device) is an error, because opening it may never return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    File,
    Directory,
}

/// A file open for reading at any offset.
pub trait ReadFile: Debug + Send + Sync {
    /// The size in bytes when the file was opened.
    fn size(&self) -> u64;

    /// Whether the path still names this file: it was not removed, renamed or replaced since it was opened.
    fn is_named(&self) -> bool;

    /// When the file was last changed, in seconds since 1970; `None` if the disk does not know.
    fn modified_seconds(&self) -> Option<i64> {
        None
    }

    /// Fills `buffer` from `offset`, or fails.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError>;

    /// Fills every buffer, or fails with the error of one of them; the content of the buffers is then unspecified. A
    /// real disk processes all reads at once.
    fn read_many(&self, reads: &mut [ReadRequest<'_>]) -> Result<(), DiskError> {
        reads.iter_mut().try_for_each(|read| self.read_at(read.offset, read.buffer))
    }

    /// Fills `buffer` from `offset` if that takes no time: what is in memory already. False if not, also where
    /// [`read_at`](ReadFile::read_at) fails.
    fn read_cached(&self, offset: u64, buffer: &mut [u8]) -> bool {
        self.read_at(offset, buffer).is_ok()
    }

    /// Announces that these bytes will be read soon. A hint: never an error, without guarantee.
    fn prefetch(&self, _offset: u64, _size: u64) {}
}

/// One of many reads; the length of the buffer is the number of bytes.
#[derive(Debug)]
pub struct ReadRequest<'a> {
    pub offset: u64,
    pub buffer: &'a mut [u8],
}

/// A file open for reading and overwriting at any offset.
///
/// After a power loss, bytes that were overwritten and not synced may have any content; all others keep theirs. After a
/// failed write, the same holds for its bytes; later writes may succeed. After a failed sync, only what is written
/// again and synced is durable.
pub trait FixedFile: ReadFile {
    /// Writes over the bytes from `offset` on. Fails with [`DiskErrorKind::UnexpectedEnd`] beyond the size.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError>;

    /// Returns when the bytes are on disk.
    fn sync(&self) -> Result<(), DiskError>;
}

/// A file open for appending.
///
/// After a failed write or sync every later one fails too: the content on disk is unknown until the file is opened
/// again.
pub trait AppendFile: Debug + Send {
    /// The size in bytes, including appended bytes.
    fn size(&self) -> u64;

    /// Whether the path still names this file: it was not removed, renamed or replaced since it was opened.
    fn is_named(&self) -> bool;

    fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError>;

    /// Lets the system begin to write the appended bytes to disk, so that [`sync`](AppendFile::sync) takes less time
    /// later. A hint: never an error, without guarantee. May wait while the disk has much to write.
    fn write_back(&mut self) {}

    /// Returns when the bytes are on disk.
    fn sync(&mut self) -> Result<(), DiskError>;
}
