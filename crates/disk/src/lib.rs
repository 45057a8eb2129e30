//! The only opener of files. Input: paths. Output: bytes at offsets, names in a directory, whole files written atomically, appended
//! bytes; or a [`DiskError`] that is one sentence with path and offset.
//!
//! Everything goes through the trait [`Disk`], so that tests may put a simulated disk in its place; [`RealDisk`] is the operating system's.
//! Invariants: a read gives all the bytes asked for or an error; a file written whole is there complete or not at all; a writer that failed
//! once stays failed. Nothing here knows Bitcoin, reads a clock, or buffers more than it says.

#![deny(unsafe_code)]

mod error;
pub mod limits;
mod real;
mod whole;

pub use error::{DiskError, DiskErrorKind};
pub use real::RealDisk;
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

    /// Makes a directory and its parents; one that is there already is fine.
    fn create_dir(&self, path: &Path) -> Result<(), DiskError>;

    /// Writes a file under another name, syncs it, renames it and syncs the directory: after a crash the path holds either what it held
    /// before or all of `bytes`.
    fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError>;

    /// Opens a file for appending; makes it if it is not there.
    fn append(&self, path: &Path) -> Result<Box<dyn AppendFile>, DiskError>;
}

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

    /// Fills `buffer` from `offset`, or fails.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError>;
}

/// A file open for appending. After a write or sync that failed, every later one fails as well: what lies on the disk is then unknown
/// until the file is opened again.
pub trait AppendFile: Debug + Send {
    /// Bytes in the file, with those appended.
    fn size(&self) -> u64;

    fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError>;

    /// Returns when the bytes are on the disk.
    fn sync(&mut self) -> Result<(), DiskError>;
}
