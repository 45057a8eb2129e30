//! The coin store: all unspent outputs, by outpoint. Input: batches of keys to look up, of spends and creations to apply, and a tip to
//! checkpoint at. Output: coins; and a directory that, opened again, holds exactly the coins of the last checkpoint.
//!
//! The workload is 3.4 bn creations and nearly as many deletions of uniformly random keys, each written once and deleted once, most of them soon. So
//! nothing is kept in order but what must be:
//!
//! * **index**: 8 bytes for each coin, wherever it lies (`entry`, `table`): 41 bits of its hash and its place. Absent keys are answered from it.
//! * **young coins** lie in memory (`arena`, `partition`). One that is spent before a checkpoint never reaches the disk; one that has been written stays in
//!   memory while there is room, the youngest longest, and is dropped without I/O.
//! * **old coins** lie in segments (`segment`, `record`, `writer`), written by checkpoints, in the order of the index, and never changed. The record has the whole
//!   key. What dies there is noted in files of deaths; segments that are mostly dead are given up (`rewrite`).
//! * **checkpoint** (`checkpoint`): segments, sidecars, deaths, each synced, then the `manifest` that names them, replaced at once. `open` rebuilds the
//!   index from sidecars less deaths.
//!
//! The store knows committed blocks only, and no rule. It is cut into [`PARTITIONS`] by a keyed hash of the outpoint; different partitions may be used
//! from different threads at once, and inside one the caller keeps the order of heights. Nothing that is not checkpointed is needed for
//! correctness: whoever applied blocks applies them again after a kill. After a failed write or sync every later call fails until the
//! store is opened again. It must never make the size of a block, a script or a batch decide anything.
//!
//! Under `cfg(fuzzing)` checksums are computed and not believed, so that the fuzzer gets behind them.
//!
//! # The sketch
//!
//! | | per coin |
//! |---|---|
//! | index | 8 bytes at a load of 3/5 to 5/6: 9.6 to 13.4 bytes of memory; 180 M coins: 1.7 to 2.4 GB |
//! | young | 41 bytes and the coin (about 29), in steps of 8: 72 bytes of memory |
//! | segment, sidecar, death | 72, 8 and 8 bytes of disk; at most as many dead as live: 180 M coins: 15 to 31 GB |
//! | written | 80 bytes once if it lives to see a checkpoint, again when its segment is given up (about once) |
//! | look up, spend or create in memory | 2 cache misses (index, record), overlapped in groups of 32: 60 to 120 ns |
//! | look up on disk | the index, and one read of 128 bytes; of 12,000 lookups one reads a second record |
//! | spend on disk | the index alone: 50 ns; the unit is noted |
//! | opening | 8 bytes read, 20 ns: 180 M coins in 4 s on one thread; records are not read |
//! | checkpoint | the index once: 0.1 ns for each slot that is passed over; its new bytes |

#![forbid(unsafe_code)]

mod arena;
mod checkpoint;
mod coin;
mod entry;
mod error;
mod export;
mod key;
mod manifest;
mod open;
mod partition;
mod record;
mod rewrite;
mod sections;
mod segment;
mod store;
mod table;
mod writer;

pub use error::CoinsError;
pub use key::Key;
pub use open::COINS_FILES;

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

    /// Coins that stay in memory when a checkpoint has written them. No more than three quarters of the addresses that there are.
    fn kept_bytes_max(&self) -> u64 {
        self.cache_bytes.saturating_sub(self.pending_bytes_max).min(96 << 30)
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
