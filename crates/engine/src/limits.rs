//! Limits of the engine. Constants only.

/// The most inputs verified in one batch: some 12 ms of a kernel, 100 ms of the reference, so that a stop waits no
/// longer. Enough for the signatures that one equation can decide (2,000 for Schnorr).
pub const BATCH_INPUTS: usize = 4_096;

/// The fewest inputs of a batch, if that many are waiting and more blocks follow: enough to fill the lanes of a kernel
/// many times.
pub const BATCH_INPUTS_MIN: usize = 256;

/// Bytes of blocks in the pipeline, whatever the number of workers: two of the largest blocks with all their tables.
pub const WINDOW_BYTES_BASE: usize = 24 << 20;

/// Further bytes of blocks in the pipeline for each worker.
pub const WINDOW_BYTES_WORKER: usize = 12 << 20;

/// Bytes of blocks, with their tables, that were checked when they arrived and wait for their run: any block at the
/// tip, or the next ones while the download is not faster than the run. If it is, most blocks wait longer, and a larger
/// bound takes memory without saving time.
pub const CHECKED_BYTES: usize = 8 << 20;

/// A run is at the tip, and the reference reviews its blocks, if the best header is at most this number of blocks above
/// its end.
pub const REVIEW_DEPTH_MAX: u32 = 6;

/// The most blocks of a run at the tip: a node that catches up after a longer pause relies on the sample.
pub const REVIEW_RUN_BLOCKS_MAX: usize = 12;

/// The most blocks that wait for their review; beyond that the oldest is covered by the sample only. With their coins
/// this number of blocks takes some 70 MB at usual sizes, 200 MB at worst.
pub const REVIEW_QUEUE_BLOCKS_MAX: usize = 12;

/// Seconds after which the state in memory is made durable, however small it is. Blocks lost in a kill are connected
/// again without running their scripts, in a fraction of that time. A checkpoint takes some seconds at most, during
/// which the next blocks are read. (Core writes every 50 to 70 minutes.)
pub const CHECKPOINT_SECONDS: u64 = 600;

/// Headers entered under one lock of the tree: a fraction of a millisecond, in which no validating thread can query it.
pub const HEADERS_AT_ONCE: usize = 512;

/// Bytes of blocks, spent coins and rows that the catch-up of followers holds: a few of the largest blocks.
pub const CATCH_UP_BYTES: usize = 32 << 20;

/// Memory of the blocks that are kept for snapshots older than the settled block; beyond that the oldest snapshots
/// expire. About 20 full blocks.
pub const JOURNAL_BYTES: usize = 64 << 20;

/// The most blocks up to the settled one that are kept for snapshots, so that a reader searches few.
pub const JOURNAL_CHANGES: u64 = 1_000;

/// The latest blocks whose source and times are remembered until they are validated: more than arrive at once at the
/// tip.
pub const ARRIVALS: usize = 64;

/// The most blocks that a follower leaves one by one: after more, for instance because the coins were deleted
/// (`-reindex-chainstate`), it begins anew, which is faster.
pub const LEAVE_BLOCKS_MAX: u32 = 1_000;

/// The most branches of the header tree that a reader gets at once: a picture cannot show more, and headers
/// cost an attacker little work at the start of the chain.
pub const BRANCHES_MAX: usize = 50;
