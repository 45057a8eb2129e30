//! [`ChainError`]: the reason why an operation on the block store failed. Its text is one sentence with file and
//! offset.

use crate::error::ReadError;
use crate::owner::OwnerError;
use lydian_disk::{DiskError, NewerFormat};
use lydian_primitives::{ParseError, to_hex};
use std::fmt;
use std::path::PathBuf;

/// An operational error of the block store, never a verdict on a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainError {
    Disk(DiskError),
    Read(ReadError),
    /// An earlier write or sync failed; the store must be reopened.
    Poisoned {
        first: Box<ChainError>,
    },
    /// The blocks directory belongs to another program.
    Owner(OwnerError),
    /// Block files of ours exist, but the index log is missing.
    IndexMissing {
        path: PathBuf,
    },
    /// `xor.dat` is missing, and the block files are obfuscated.
    KeyMissing {
        path: PathBuf,
    },
    /// With the key in `xor.dat` no block is found at its indexed position.
    KeyDiffers {
        path: PathBuf,
    },
    /// A reindex found blocks, but not the first ones of the chain, and blocks are not pruned.
    FirstBlocksMissing {
        path: PathBuf,
    },
    /// A record of the index log is damaged although a later record shows that it was durable.
    IndexDamaged {
        path: PathBuf,
        offset: u64,
    },
    /// A record of the index log has a correct checksum but contradictory content.
    IndexContradiction {
        path: PathBuf,
        offset: u64,
        reason: &'static str,
    },
    /// The index log was written by a later version.
    NewerFormat(NewerFormat),
    /// The index log, or a block file, belongs to another network.
    OtherNetwork {
        path: PathBuf,
        found: String,
        expected: &'static str,
    },
    /// A position names an unknown file.
    UnknownFile {
        file: u32,
    },
    /// The undo data at a position is not what was written there.
    UndoDamaged {
        path: PathBuf,
        offset: u64,
        fault: UndoFault,
    },
    /// The undo file of a position is missing.
    UndoMissing {
        path: PathBuf,
        offset: u64,
    },
    /// The path is too long for the index log.
    PathTooLong {
        path: PathBuf,
    },
}

/// The fault of damaged undo data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoFault {
    /// The bytes before it are not the magic of this chain and the size of this record.
    Frame,
    Checksum,
    Parse(ParseError),
    /// It does not have one coin for each input of the block.
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
                "{}: the file is missing; restore it from a copy: without it the blocks in this directory cannot be read",
                path.display()
            ),
            ChainError::KeyDiffers { path } => write!(
                f,
                "{}: the block files cannot be read with this key; restore the file from a copy, or remove the block files to download them again",
                path.display()
            ),
            ChainError::FirstBlocksMissing { path } => write!(
                f,
                "{}: the files with the first blocks of the chain are missing; restore them from a copy, or remove the other block files to download all blocks again (-reindex with -prune removes them)",
                path.display()
            ),
            ChainError::Poisoned { first } => write!(f, "the block store is unusable after an error: {first}"),
            ChainError::IndexDamaged { path, offset } => {
                write!(f, "{}:{offset}: the block index is damaged here; -reindex rebuilds it", path.display())
            }
            ChainError::IndexContradiction { path, offset, reason } => {
                write!(f, "{}:{offset}: the block index {reason}; -reindex rebuilds it", path.display())
            }
            ChainError::NewerFormat(error) => error.fmt(f),
            ChainError::OtherNetwork { path, found, expected } => {
                write!(f, "{}: belongs to another network: {found}, not {expected}", path.display())
            }
            ChainError::UnknownFile { file } => write!(f, "the block index names the unknown file {file}"),
            ChainError::UndoDamaged { path, offset, fault } => {
                write!(f, "{}:{offset}: the undo data is damaged: ", path.display())?;
                match fault {
                    UndoFault::Frame => f.write_str("no record of this chain and size"),
                    UndoFault::Checksum => f.write_str("wrong checksum"),
                    UndoFault::Parse(error) => write!(f, "{error}"),
                    UndoFault::OtherBlock => f.write_str("it does not match the inputs of its block"),
                }
            }
            ChainError::UndoMissing { path, offset } => {
                write!(f, "{}:{offset}: the undo data is missing: no such file", path.display())
            }
            ChainError::PathTooLong { path } => {
                let size = crate::limits::PATH_SIZE_MAX;
                write!(f, "{}: the path has more than {size} bytes", path.display())
            }
        }
    }
}

impl std::error::Error for ChainError {}

/// The name of a network by its magic, for messages.
pub(super) fn network_name(magic: [u8; 4]) -> String {
    crate::magic_name(magic).map_or_else(|| format!("magic {}", to_hex(&magic)), str::to_owned)
}
