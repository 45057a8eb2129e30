//! [`EngineError`]: an error of the disk or of the data on it. Never a verdict on a block: a full disk does not make a
//! block invalid.

use lydian_chain::{ChainError, TreeInconsistency};
use lydian_coins::CoinsError;
use lydian_disk::DiskError;
use lydian_primitives::{BlockHash, Height};
use std::fmt;

/// The engine cannot continue, unless the variant says otherwise. It must be opened again.
#[derive(Debug)]
pub enum EngineError {
    Chain(ChainError),
    Coins(CoinsError),
    Disk(DiskError),
    Follower {
        name: String,
        reason: String,
    },
    /// A follower needs blocks that were pruned.
    BeyondPruned {
        name: String,
    },
    /// The coins belong to a block that is not in the block index.
    UnknownCoinsTip {
        hash: BlockHash,
        height: Height,
    },
    /// A block of the active chain, or its undo data, is missing; it is needed to disconnect the block.
    MissingBlock {
        hash: BlockHash,
        height: Height,
        what: &'static str,
    },
    /// `-checkblockindex` found the header tree inconsistent.
    Tree(TreeInconsistency),
    /// The review thread could not be started.
    Thread {
        reason: String,
    },
    /// The coins of a snapshot at this block are no longer known. A new one can be taken; the engine is well.
    SnapshotExpired {
        hash: BlockHash,
        height: Height,
    },
    /// An earlier error, with its message.
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
            // Core's words.
            EngineError::BeyondPruned { name } => write!(
                f,
                "{name} best block of the index goes beyond pruned data (including undo data). Please disable the index or reindex (which will \
                 download the whole blockchain again)"
            ),
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
            EngineError::SnapshotExpired { hash, height } => {
                write!(f, "the coins at block {hash} at height {height} are no longer known; ask again")
            }
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
