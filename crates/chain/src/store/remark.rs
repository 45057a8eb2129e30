//! [`StoreRemark`]: findings for the user from opening the store. Its text is one sentence with file and offset.

use crate::scan::Remark;
use lydian_consensus::Rejected;
use lydian_primitives::BlockHash;
use std::fmt;
use std::path::PathBuf;

/// Something found when the store was opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreRemark {
    /// The end of the index log was torn by a crash and is cut off.
    TornIndex { path: PathBuf, offset: u64, size: u64 },
    /// A block was received but did not reach the disk.
    BlockLost { path: PathBuf, offset: u64, hash: BlockHash },
    /// Blocks were found that the index log did not have.
    BlocksFound { path: PathBuf, count: usize },
    /// A block was found whose header breaks a rule.
    HeaderRefused { path: PathBuf, offset: u64, hash: BlockHash, reason: Rejected },
    /// Blocks were found with an unknown parent.
    MissingParents { count: usize },
    /// Block files with such blocks only, which a reindex removed because blocks may be pruned.
    UselessFiles { count: usize },
    /// A block file is shorter than the indexed blocks require, or missing.
    FileShort { path: PathBuf, size: u64, known: u64 },
    /// A block or undo file of another program.
    NotOurs { path: PathBuf },
    /// Something in a block file that is not a block.
    Scan(Remark),
}

impl fmt::Display for StoreRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreRemark::TornIndex { path, offset, size } => {
                write!(f, "{}:{offset}: the last {size} bytes were torn by a crash and are cut off", path.display())
            }
            StoreRemark::BlockLost { path, offset, hash } => {
                write!(f, "{}:{offset}: block {hash} did not reach the disk before a crash", path.display())
            }
            StoreRemark::BlocksFound { path, count } => {
                write!(f, "{}: {count} blocks were found that the index did not have", path.display())
            }
            StoreRemark::HeaderRefused { path, offset, hash, reason } => {
                write!(f, "{}:{offset}: block {hash} was left out: {reason}", path.display())
            }
            StoreRemark::MissingParents { count } => {
                write!(f, "{count} blocks were left out because their parent is missing")
            }
            StoreRemark::UselessFiles { count } => {
                write!(f, "{count} block files with such blocks only were removed; their blocks are downloaded again")
            }
            StoreRemark::FileShort { path, size, known } => write!(
                f,
                "{}: the file has {size} bytes, but the index has blocks up to byte {known}; they cannot be read",
                path.display()
            ),
            StoreRemark::NotOurs { path } => write!(
                f,
                "{}: the file was not written by this node and is left unchanged; `lydian import` reads foreign block files",
                path.display()
            ),
            StoreRemark::Scan(remark) => remark.fmt(f),
        }
    }
}
