//! The coin store: all unspent outputs, by outpoint. Input: batches of keys to look up, of spends and creations to apply, and a tip to
//! checkpoint at. Output: coins; and a directory that, opened again, holds exactly the coins of the last checkpoint.
//!
//! The store knows committed blocks only, and no rule. It is cut into [`PARTITIONS`] by a keyed hash of the outpoint; different
//! partitions may be used from different threads at once, and inside one the caller keeps the order of heights. Nothing that is
//! not checkpointed is needed for correctness: whoever applied blocks applies them again after a kill. After a failed write or sync every
//! later call fails until the store is opened again.

#![forbid(unsafe_code)]

mod coin;
mod error;
mod key;
mod store;

pub use error::CoinsError;
pub use key::Key;

pub use store::Coins;

use lydian_primitives::{BlockHash, Height};

/// Parts of the store that may be used by different threads at once; by the top bits of a key's hash.
pub const PARTITIONS: usize = 16;

/// The block up to which coins were applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    pub height: Height,
    pub hash: BlockHash,
}

/// What the user decides about a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Memory for coins themselves. The index of all coins comes on top, at most 16 bytes for each.
    pub cache_bytes: u64,
    /// Bytes not yet on disk from which on [`Coins::needs_checkpoint`] asks for a checkpoint.
    pub pending_bytes_max: u64,
}

impl Settings {
    /// The usual bound of what is not yet on disk: 1 GB, or half the cache if that is less.
    pub fn new(cache_bytes: u64) -> Settings {
        Settings { cache_bytes, pending_bytes_max: (cache_bytes / 2).min(1 << 30) }
    }
}

/// What a checkpoint did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointReport {
    /// Bytes written to files.
    pub bytes_written: u64,
    pub coins_written: u64,
    /// Coins that lay in old files and were moved.
    pub coins_rewritten: u64,
}

/// What the store holds and did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoinsStats {
    pub coins: u64,
    /// Coins and deaths that are not yet on disk, in bytes.
    pub pending_bytes: u64,
    pub memory_bytes: u64,
    pub disk_bytes: u64,
    pub segments: u64,
    /// Records read from disk.
    pub disk_reads: u64,
    /// Bytes written by all checkpoints.
    pub bytes_written: u64,
    pub checkpoints: u64,
}
