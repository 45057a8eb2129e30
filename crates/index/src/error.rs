//! [`IndexError`]: an error of the disk or of an index's files. Its text is one sentence that names the file.

use lydian_disk::{DiskError, DiskErrorKind, NewerFormat};
use lydian_engine::FollowerError;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why an index cannot be opened, written or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexError {
    Disk(DiskError),
    /// The file does not contain what was written to it.
    Damaged {
        path: PathBuf,
        offset: u64,
        what: &'static str,
    },
    /// The file was written by a later version of the program.
    NewerFormat(NewerFormat),
    /// The file is that of another index, of another chain, or of another program.
    OtherFile {
        path: PathBuf,
        what: &'static str,
    },
    /// A block of the chain cannot be read.
    Chain {
        reason: String,
    },
    /// A copy of the index in another store cannot be read: one sentence.
    Store {
        reason: String,
    },
    /// The index is being closed.
    Ended,
    /// The system gives no thread.
    Thread {
        reason: String,
    },
}

impl IndexError {
    pub(crate) fn damaged(path: &Path, offset: u64, what: &'static str) -> IndexError {
        IndexError::Damaged { path: path.to_owned(), offset, what }
    }

    /// Whether a file of the index is missing, or does not contain what was written to it.
    pub fn is_damage(&self) -> bool {
        let is_missing = |error: &DiskError| error.kind == DiskErrorKind::NotFound;
        matches!(self, IndexError::Damaged { .. }) || matches!(self, IndexError::Disk(error) if is_missing(error))
    }

    /// Whether the disk is full: the node ends, also if it could go on without the index.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, IndexError::Disk(DiskError { kind: DiskErrorKind::NoSpace, .. }))
    }
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexError::Disk(error) if error.kind == DiskErrorKind::NotFound => {
                let dir = error.path.parent().unwrap_or(&error.path).display();
                write!(f, "{error}; delete {dir} to build the index anew")
            }
            IndexError::Disk(error) if self.is_disk_full() => {
                write!(f, "{error}; free some space and start again: everything durable is kept")
            }
            IndexError::Disk(error) => error.fmt(f),
            IndexError::Damaged { path, offset, what } => {
                let dir = path.parent().unwrap_or(path).display();
                write!(f, "{}:{offset}: damaged: {what}; delete {dir} to build the index anew", path.display())
            }
            IndexError::NewerFormat(error) => error.fmt(f),
            IndexError::OtherFile { path, what } => write!(f, "{}: {what}", path.display()),
            IndexError::Chain { reason } | IndexError::Store { reason } => f.write_str(reason),
            IndexError::Ended => f.write_str("the index is being closed"),
            IndexError::Thread { reason } => write!(f, "cannot start a thread for an index: {reason}"),
        }
    }
}

impl std::error::Error for IndexError {}

impl From<DiskError> for IndexError {
    fn from(error: DiskError) -> IndexError {
        IndexError::Disk(error)
    }
}

impl From<IndexError> for FollowerError {
    fn from(error: IndexError) -> FollowerError {
        FollowerError { reason: error.to_string(), is_disk_full: error.is_disk_full() }
    }
}
