//! The coin store: all unspent outputs, by outpoint.
//!
//! Input: batches of keys to look up, batches of spends and creations to apply, and a tip to checkpoint at. Output:
//! coins, and a directory that holds exactly the coins of the last checkpoint when it is reopened.
//!
//! The workload is 3.4 bn creations and nearly as many deletions of uniformly random keys. Each key is written once and
//! deleted once, usually soon after. So the store keeps no order that it does not need:
//!
//! * **index**: 8 bytes for each coin in memory or on disk (`entry`, `table`): 41 bits of its hash and its location.
//!   Absent keys are answered from the index. With 25 million coins or more, it and the coins in memory are in huge
//!   pages where the system has them.
//! * **young coins** are in memory (`arena`, `partition`). A coin that is spent before a checkpoint never reaches the
//!   disk. A coin that has been written stays in memory while there is room, the youngest longest, and is dropped
//!   without I/O.
//! * **old coins** are in segments (`segment`, `record`, `writer`), which checkpoints write in index order and never
//!   change afterwards. A record contains the whole key. Spends of old coins are logged in death files. Segments that
//!   are mostly dead are rewritten (`rewrite`).
//! * **checkpoint** (`checkpoint`): writes and syncs segments, sidecars and deaths, then atomically replaces the
//!   `manifest` that names them. `open` rebuilds the index from the sidecars minus the deaths. Coins can be looked up
//!   while a checkpoint is made (`gate`).
//! * **little memory** (`old`, `filter`, `moved`): with [`Settings::low_memory`], coins on disk have no entries in the
//!   index; filters, fences and a bit for each death say which records to read. The files are the same.
//! * **pin** (`pinned`, `live`, `export`): keeps the files of a checkpoint open, so that all its coins can be read
//!   while blocks are applied and further checkpoints are made.
//!
//! The store contains only committed blocks and knows no rules. It is split into [`PARTITIONS`] by a keyed hash of the
//! outpoint. Different partitions may be used by different threads at the same time; within a partition the caller
//! applies blocks in height order. Correctness does not depend on anything applied after the last checkpoint: after a
//! kill the caller applies those blocks again. After a failed write or sync every later call fails until the store is
//! reopened. The size of a block, a script or a batch must never decide whether an operation succeeds.
//!
//! Under `cfg(fuzzing)` checksum mismatches are ignored, so that the fuzzer reaches the code after the checks.
//!
//! # The sketch
//!
//! | | per coin |
//! |---|---|
//! | index | 8 bytes at a load of 3/5 to 5/6: 9.6 to 13.4 bytes of memory; 180 M coins: 1.7 to 2.4 GB |
//! | young | 41 bytes and the coin (about 29), in steps of 8: 72 bytes of memory |
//! | segment, sidecar, death | 72, 8 and 8 bytes of disk; at most as many dead as live: 180 M coins: 15 to 31 GB |
//! | written | 80 bytes once if it survives until a checkpoint, again if its segment is rewritten (about once) |
//! | look up, spend or create in memory | 2 cache misses (index, record), overlapped in groups of 32: 60 to 120 ns |
//! | look up on disk | the index, and one read of 128 bytes; one in 12,000 lookups reads a second record |
//! | spend on disk | the index only: 50 ns; the unit is logged |
//! | opening | 8 bytes read, 20 to 40 ns: 180 M coins in 4 s on two threads; records are not read |
//! | checkpoint | one pass over the index: 1 to 2 ns for each skipped slot; plus the new bytes |
//! | scan of a pin | 80 bytes read; 0.13 us in the order of the files; ordered 0.5 us, and 65 bytes written and read |
//!
//! With little memory: about 2.1 bytes of memory for each coin on disk, 0.37 GB for 180 M; a lookup on disk reads
//! 4.6 KB and takes 5 us of CPU, and one in 50 (at 180 M coins) reads another group in vain; opening takes 80 ns for
//! each coin, and a checkpoint 30 ns.
//!
//! A scan of 180 M coins takes 6 MB of memory, an ordered one 80 MB. Its pin has 100 to 150 files open.

#![forbid(unsafe_code)]

mod arena;
mod checkpoint;
mod coin;
mod entry;
mod error;
mod export;
mod filter;
mod gate;
mod key;
mod live;
mod manifest;
mod moved;
mod old;
mod open;
mod partition;
mod pinned;
mod record;
mod rewrite;
mod sample;
mod sections;
mod segment;
mod store;
mod table;
mod writer;

pub use error::CoinsError;
pub use key::Key;
pub use manifest::COINS_FORMAT;
pub use open::COINS_FILES;
pub use pinned::PinnedCoins;
pub use sample::sample;

pub use store::Coins;

use lydian_primitives::{BlockHash, Height};

/// Number of partitions, which different threads may use at the same time. Selected by the top bits of a key's hash.
pub const PARTITIONS: usize = 16;

/// The block up to which coins have been applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    pub height: Height,
    pub hash: BlockHash,
}

/// The user's settings of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Memory for the coins themselves. The index of all coins is additional, at most 16 bytes per coin.
    pub cache_bytes: u64,
    /// Number of bytes not yet on disk at which [`Coins::needs_checkpoint`] asks for a checkpoint.
    pub pending_bytes_max: u64,
    /// Whether coins on disk have no entries in an index in memory: about 2.1 bytes per coin instead of 9.6 to 13.4,
    /// and more work for each coin that is read. The files are the same.
    pub is_low_memory: bool,
}

impl Settings {
    /// The default limit for bytes not yet on disk: 1 GB, or half the cache if that is less.
    pub fn new(cache_bytes: u64) -> Settings {
        Settings { cache_bytes, pending_bytes_max: (cache_bytes / 2).min(1 << 30), is_low_memory: false }
    }

    /// The same with little memory: all of the cache is for coins that are not yet on disk, at most 1 GB.
    pub fn low_memory(cache_bytes: u64) -> Settings {
        Settings { cache_bytes, pending_bytes_max: cache_bytes.min(1 << 30), is_low_memory: true }
    }

    /// Bytes of coins that stay in memory after a checkpoint has written them. At most three quarters of the address
    /// space.
    fn kept_bytes_max(&self) -> u64 {
        self.cache_bytes.saturating_sub(self.pending_bytes_max).min(96 << 30)
    }
}

/// The result of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointReport {
    /// Bytes written to files.
    pub bytes_written: u64,
    pub coins_written: u64,
    /// Coins that were moved out of old segments.
    pub coins_rewritten: u64,
}

/// The content of the store, and counters since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoinsStats {
    pub coins: u64,
    /// Bytes of coins and deaths that are not yet on disk.
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
