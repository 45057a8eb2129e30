//! [`CoinsError`]: an error of the store, with file and offset. Its text is one sentence.
//!
//! An operational error or a bug, never a verdict on a block.

use lydian_disk::{DiskError, NewerFormat};
use lydian_primitives::OutPoint;
use std::fmt;
use std::path::{Path, PathBuf};

/// The reason why an operation on the store failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoinsError {
    /// The disk failed.
    Disk(DiskError),
    /// A file of the store does not contain what was written to it.
    Damaged { path: PathBuf, offset: u64, what: &'static str },
    /// Coin files exist, but the manifest is missing.
    ManifestMissing { path: PathBuf },
    /// The manifest is a file of another program or of another kind.
    NotAManifest { path: PathBuf },
    /// The store was written by a later version of the program.
    NewerFormat(NewerFormat),
    /// A coin to be spent is not in the store.
    Missing { outpoint: OutPoint },
    /// No room is left for records.
    Full { path: PathBuf },
    /// An earlier write or sync failed: the state in memory no longer matches the disk.
    Poisoned,
}

impl CoinsError {
    pub(crate) fn damaged(path: &Path, offset: u64, what: &'static str) -> CoinsError {
        CoinsError::Damaged { path: path.to_owned(), offset, what }
    }
}

impl From<DiskError> for CoinsError {
    fn from(error: DiskError) -> CoinsError {
        CoinsError::Disk(error)
    }
}

impl fmt::Display for CoinsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CoinsError::Disk(error) => error.fmt(f),
            CoinsError::Damaged { path, offset, what } => write!(f, "{}:{offset}: damaged: {what}", path.display()),
            CoinsError::ManifestMissing { path } => {
                write!(f, "{}: coin files exist but their manifest is missing", path.display())
            }
            CoinsError::NotAManifest { path } => write!(f, "{}: not the manifest of a coin store", path.display()),
            CoinsError::NewerFormat(error) => error.fmt(f),
            CoinsError::Missing { outpoint } => write!(f, "the coin {outpoint} to be spent is not in the store"),
            CoinsError::Full { path } => write!(f, "{}: no room for more coins in the index", path.display()),
            CoinsError::Poisoned => f.write_str("an earlier write to the coin store failed; it must be opened again"),
        }
    }
}

impl std::error::Error for CoinsError {}
