//! [`ChainError`]: why the block store could not do what it was asked. Its text is one sentence with file and offset.

use crate::error::ReadError;
use crate::owner::OwnerError;
use lydian_disk::DiskError;
use lydian_primitives::{ParseError, to_hex};
use std::fmt;
use std::path::PathBuf;

/// An operating error of the block store; never a verdict on a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainError {
    Disk(DiskError),
    Read(ReadError),
    /// An earlier write or sync failed; the store must be opened again.
    Poisoned {
        first: Box<ChainError>,
    },
    /// The directory of blocks is another program's.
    Owner(OwnerError),
    /// There are block files of ours and no index log.
    IndexMissing {
        path: PathBuf,
    },
    /// There is no `xor.dat`, and the block files are not those of a directory without one.
    KeyMissing {
        path: PathBuf,
    },
    /// With the key in `xor.dat` no block is where the index has it.
    KeyDiffers {
        path: PathBuf,
    },
    /// A record of the index log is damaged, and later ones that were safe on the disk are not.
    IndexDamaged {
        path: PathBuf,
        offset: u64,
    },
    /// A whole record of the index log says what cannot be.
    IndexContradiction {
        path: PathBuf,
        offset: u64,
        reason: &'static str,
    },
    /// The index log was written by a later version.
    NewerVersion {
        path: PathBuf,
        found: u32,
        known: u32,
    },
    /// The index log, or a block file, is of another network.
    OtherNetwork {
        path: PathBuf,
        found: String,
        expected: &'static str,
    },
    /// A position names a file that the store does not know.
    UnknownFile {
        file: u32,
    },
    /// The undo data at a position is not what was written there.
    UndoDamaged {
        path: PathBuf,
        offset: u64,
        fault: UndoFault,
    },
    /// The undo file of a position is not there.
    UndoMissing {
        path: PathBuf,
        offset: u64,
    },
    /// A path too long for the index log.
    PathTooLong {
        path: PathBuf,
    },
}

/// What is wrong with undo data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoFault {
    /// No magic and size of this chain and record in front of it.
    Frame,
    Checksum,
    Parse(ParseError),
    /// It has not a coin for each input of the block.
    OtherBlock,
}

impl From<DiskError> for ChainError {
    fn from(error: DiskError) -> ChainError {
        ChainError::Disk(error)
    }
}

impl From<OwnerError> for ChainError {
    fn from(error: OwnerError) -> ChainError {
        ChainError::Owner(error)
    }
}

impl From<ReadError> for ChainError {
    fn from(error: ReadError) -> ChainError {
        match error {
            ReadError::Disk(error) => ChainError::Disk(error),
            other => ChainError::Read(other),
        }
    }
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainError::Disk(error) => error.fmt(f),
            ChainError::Read(error) => error.fmt(f),
            ChainError::Owner(error) => error.fmt(f),
            ChainError::IndexMissing { path } => write!(
                f,
                "Error initializing block database: the block index {} is missing.\nPlease restart with -reindex to recover.",
                path.display()
            ),
            ChainError::KeyMissing { path } => write!(
                f,
                "{}: there is no such file; restore it from a copy: without it the blocks in this directory cannot be read",
                path.display()
            ),
            ChainError::KeyDiffers { path } => write!(
                f,
                "{}: the block files cannot be read with this key; restore the file from a copy, or remove the block files to download them again",
                path.display()
            ),
            ChainError::Poisoned { first } => write!(f, "the block store takes no more after an error: {first}"),
            ChainError::IndexDamaged { path, offset } => {
                write!(f, "{}:{offset}: the block index is damaged here; -reindex builds it anew", path.display())
            }
            ChainError::IndexContradiction { path, offset, reason } => {
                write!(f, "{}:{offset}: the block index {reason}; -reindex builds it anew", path.display())
            }
            ChainError::NewerVersion { path, found, known } => write!(
                f,
                "{}: this data directory was written by a later version (format {found}; this one knows up to {known})",
                path.display()
            ),
            ChainError::OtherNetwork { path, found, expected } => {
                write!(f, "{}: this is of another network: {found}, not {expected}", path.display())
            }
            ChainError::UnknownFile { file } => write!(f, "the block index names file {file}, which is not known"),
            ChainError::UndoDamaged { path, offset, fault } => {
                write!(f, "{}:{offset}: the undo data is damaged: ", path.display())?;
                match fault {
                    UndoFault::Frame => f.write_str("there is no record of this chain and size"),
                    UndoFault::Checksum => f.write_str("its checksum differs"),
                    UndoFault::Parse(error) => write!(f, "{error}"),
                    UndoFault::OtherBlock => f.write_str("it does not fit the inputs of its block"),
                }
            }
            ChainError::UndoMissing { path, offset } => {
                write!(f, "{}:{offset}: the undo data is missing: there is no such file", path.display())
            }
            ChainError::PathTooLong { path } => {
                let size = crate::limits::PATH_SIZE_MAX;
                write!(f, "{}: a path of more than {size} bytes", path.display())
            }
        }
    }
}

impl std::error::Error for ChainError {}

/// A network by its magic, for a message.
pub(super) fn network_name(magic: [u8; 4]) -> String {
    crate::magic_name(magic).map_or_else(|| format!("magic {}", to_hex(&magic)), str::to_owned)
}
