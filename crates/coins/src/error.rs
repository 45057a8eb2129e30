//! [`CoinsError`]: what went wrong in the store, with file and offset. Its text is one sentence.
//!
//! An operating error or a bug of ours; never a verdict on a block.

use lydian_disk::DiskError;
use lydian_primitives::OutPoint;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why the store could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoinsError {
    /// The disk failed.
    Disk(DiskError),
    /// A file of the store does not hold what was written to it.
    Damaged { path: PathBuf, offset: u64, what: &'static str },
    /// There are files of coins and no manifest that names them.
    ManifestMissing { path: PathBuf },
    /// A manifest of another program or of something else.
    NotAManifest { path: PathBuf },
    /// A later version of the program wrote the store.
    NewerFormat { path: PathBuf, version: u32, known: u32 },
    /// A coin was to be spent that is not there.
    Missing { outpoint: OutPoint },
    /// All locations for records are taken.
    Full { path: PathBuf },
    /// An earlier write or sync failed: what is in memory is no longer what is on disk.
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
                write!(f, "{}: there are coins but no manifest that names their files", path.display())
            }
            CoinsError::NotAManifest { path } => write!(f, "{}: this is no manifest of a coin store", path.display()),
            CoinsError::NewerFormat { path, version, known } => {
                write!(
                    f,
                    "{}: a newer program wrote this, in format {version}; this one knows formats up to {known}",
                    path.display()
                )
            }
            CoinsError::Missing { outpoint } => write!(f, "the coin {outpoint} is to be spent and is not in the store"),
            CoinsError::Full { path } => write!(f, "{}: no room for more coins in the index", path.display()),
            CoinsError::Poisoned => f.write_str("an earlier write to the coin store failed; it must be opened again"),
        }
    }
}

impl std::error::Error for CoinsError {}
