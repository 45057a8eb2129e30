//! [`EngineError`]: the disk, or what lies on it. Never a verdict on a block: a block is not invalid because a disk is full.

use lydian_chain::{ChainError, TreeInconsistency};
use lydian_coins::CoinsError;
use lydian_disk::DiskError;
use lydian_primitives::{BlockHash, Height};
use std::fmt;

/// The engine cannot go on. It has to be opened again.
#[derive(Debug)]
pub enum EngineError {
    Chain(ChainError),
    Coins(CoinsError),
    Disk(DiskError),
    Follower {
        name: String,
        reason: String,
    },
    /// The coins are those of a block that the index of blocks does not know.
    UnknownCoinsTip {
        hash: BlockHash,
        height: Height,
    },
    /// A block of the active chain, or its undo data, is gone; it would be needed to leave the chain.
    MissingBlock {
        hash: BlockHash,
        height: Height,
        what: &'static str,
    },
    /// `-checkblockindex` found the header tree inconsistent.
    Tree(TreeInconsistency),
    /// The thread of the reviews could not be started.
    Thread {
        reason: String,
    },
    /// An earlier error; the words are its.
    Poisoned {
        reason: String,
    },
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Chain(error) => error.fmt(f),
            EngineError::Coins(error) => error.fmt(f),
            EngineError::Disk(error) => error.fmt(f),
            EngineError::Follower { name, reason } => write!(f, "{name}: {reason}"),
            EngineError::UnknownCoinsTip { hash, height } => write!(
                f,
                "the coins are those of block {hash} at height {height}, which the block index does not know; \
                 -reindex-chainstate makes the coins anew from the blocks that are here"
            ),
            EngineError::MissingBlock { hash, height, what } => {
                write!(f, "{what} of block {hash} at height {height} is needed and not here; -reindex makes it anew")
            }
            EngineError::Tree(error) => error.fmt(f),
            EngineError::Thread { reason } => write!(f, "a thread could not be started: {reason}"),
            EngineError::Poisoned { reason } => write!(f, "stopped by an earlier error: {reason}"),
        }
    }
}

impl std::error::Error for EngineError {}

impl From<ChainError> for EngineError {
    fn from(error: ChainError) -> EngineError {
        EngineError::Chain(error)
    }
}

impl From<CoinsError> for EngineError {
    fn from(error: CoinsError) -> EngineError {
        EngineError::Coins(error)
    }
}

impl From<DiskError> for EngineError {
    fn from(error: DiskError) -> EngineError {
        EngineError::Disk(error)
    }
}
