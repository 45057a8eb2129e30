//! Limits of the engine. Constants only.

/// Inputs verified in one batch at most: some 12 ms of a kernel, 100 ms of the reference, so that a stop waits no longer. Enough for the
/// signatures among them that one equation can decide (2,000 of Schnorr's).
pub const BATCH_INPUTS: usize = 4_096;

/// Inputs of a batch at least, where there are that many and more blocks come: what fills the lanes of a kernel many times.
pub const BATCH_INPUTS_MIN: usize = 256;

/// Bytes of blocks on their way, whatever the number of workers: two of the largest blocks with all their tables.
pub const WINDOW_BYTES_BASE: usize = 24 << 20;

/// The same for each worker.
pub const WINDOW_BYTES_WORKER: usize = 12 << 20;

/// A run is at the tip, and its blocks are reviewed by the reference, if the best header is at most so many blocks above its end.
pub const REVIEW_DEPTH_MAX: u32 = 6;

/// The same if it is at most so long: who catches up after a longer pause has the sample.
pub const REVIEW_RUN_BLOCKS_MAX: usize = 12;

/// Blocks that wait for their review at most; the oldest has to be content with the sample. With their coins so many are some 70 MB as
/// blocks are, 200 MB as they may be.
pub const REVIEW_QUEUE_BLOCKS_MAX: usize = 12;

/// Seconds after which what is in memory is made durable, however little it is: what a kill costs is to be done again without its scripts, which takes
/// a fraction of that. A checkpoint takes some seconds at most, in which the next blocks are read. (Core writes every 50 to 70 minutes.)
pub const CHECKPOINT_SECONDS: u64 = 600;

/// Headers entered under one lock of the tree: a fraction of a millisecond, in which no validating thread can ask it anything.
pub const HEADERS_AT_ONCE: usize = 512;
