//! [`ReadError`]: why a block file, or a block in it, could not be read. Its text is one sentence with file and offset.

use lydian_disk::DiskError;
use lydian_primitives::{BlockHash, ParseError, to_hex};
use std::fmt;
use std::path::PathBuf;

/// An operating error of reading blocks; never a verdict on a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    Disk(DiskError),
    /// A directory in which no file has the name of a block file.
    NoBlockFiles {
        path: PathBuf,
    },
    /// A key file of another length than Core's eight bytes.
    XorKeySize {
        path: PathBuf,
        size: u64,
    },
    /// A file without any byte.
    Empty {
        path: PathBuf,
    },
    /// No magic of any known chain at the begin of the file.
    NoMagic {
        path: PathBuf,
        first: Vec<u8>,
        searched: u64,
    },
    /// The bytes of a record are no block.
    Parse {
        path: PathBuf,
        offset: u64,
        hash: BlockHash,
        error: ParseError,
    },
    /// The file is not what it was when it was scanned.
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
                write!(f, "{}: there are no block files here (blk*.dat, *.blk, *.blk.zst)", path.display())
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
