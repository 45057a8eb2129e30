//! [`StoreRemark`]: what was found when the store was opened that a person may want to know. Its text is one sentence with file and offset.

use crate::scan::Remark;
use lydian_consensus::Rejected;
use lydian_primitives::BlockHash;
use std::fmt;
use std::path::PathBuf;

/// Something found when the store was opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreRemark {
    /// The end of the index log was torn by a crash, and cut off.
    TornIndex { path: PathBuf, offset: u64, size: u64 },
    /// A block that had come did not reach the disk.
    BlockLost { path: PathBuf, offset: u64, hash: BlockHash },
    /// Blocks were found that the index log did not have.
    BlocksFound { path: PathBuf, count: usize },
    /// A block was found whose header breaks a rule.
    HeaderRefused { path: PathBuf, offset: u64, hash: BlockHash, reason: Rejected },
    /// Blocks were found whose parent is not known.
    MissingParents { count: usize },
    /// A block file is shorter than what was known of it, or not there.
    FileShort { path: PathBuf, size: u64, known: u64 },
    /// A block or undo file of another program.
    NotOurs { path: PathBuf },
    /// Something in a block file that is no block.
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
                write!(f, "{count} blocks were left out because the block before them is not there")
            }
            StoreRemark::FileShort { path, size, known } => write!(
                f,
                "{}: the file has {size} bytes, and blocks are known up to byte {known}; they cannot be read",
                path.display()
            ),
            StoreRemark::NotOurs { path } => write!(
                f,
                "{}: the file was not written by this node and is left as it is; `lydian import` reads block files of others",
                path.display()
            ),
            StoreRemark::Scan(remark) => remark.fmt(f),
        }
    }
}
