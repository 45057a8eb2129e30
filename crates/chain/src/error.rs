//! [`ReadError`]: the reason why a block file, or a block in it, could not be read. Its text is one sentence with file
//! and offset.

use lydian_disk::DiskError;
use lydian_primitives::{BlockHash, ParseError, to_hex};
use std::fmt;
use std::path::PathBuf;

/// An operational error of reading blocks, never a verdict on a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    Disk(DiskError),
    /// The directory contains no file with the name of a block file.
    NoBlockFiles {
        path: PathBuf,
    },
    /// The key file does not have Core's length of eight bytes.
    XorKeySize {
        path: PathBuf,
        size: u64,
    },
    /// The file is empty.
    Empty {
        path: PathBuf,
    },
    /// No magic of a known chain at the start of the file.
    NoMagic {
        path: PathBuf,
        first: Vec<u8>,
        searched: u64,
    },
    /// The bytes of a record are not a block.
    Parse {
        path: PathBuf,
        offset: u64,
        hash: BlockHash,
        error: ParseError,
    },
    /// The file has changed since it was scanned.
    Changed {
        path: PathBuf,
        offset: u64,
        hash: BlockHash,
    },
}

impl From<DiskError> for ReadError {
    fn from(error: DiskError) -> ReadError {
        ReadError::Disk(error)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Disk(error) => error.fmt(f),
            ReadError::NoBlockFiles { path } => {
                write!(f, "{}: no block files found (blk*.dat, *.blk, *.blk.zst)", path.display())
            }
            ReadError::XorKeySize { path, size } => {
                write!(f, "{}: the key has {size} bytes, not {}", path.display(), crate::Obfuscation::SIZE)
            }
            ReadError::Empty { path } => write!(f, "{}: the file is empty", path.display()),
            ReadError::NoMagic { path, first, searched } => write!(
                f,
                "{}:0: the file begins with {} and no block of a known chain follows in its first {searched} bytes",
                path.display(),
                to_hex(first)
            ),
            ReadError::Parse { path, offset, hash, error } => {
                write!(f, "{}:{offset}: block {hash} does not parse: {error} of the block", path.display())
            }
            ReadError::Changed { path, offset, hash } => {
                write!(
                    f,
                    "{}:{offset}: the file has changed since it was scanned: block {hash} was here",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for ReadError {}
