//! Limits of the estimator and of its file.

/// The fewest feerate buckets of a file.
pub const BUCKETS_MIN: usize = 2;

/// The most feerate buckets of a file.
pub const BUCKETS_MAX: usize = 1_000;

/// The most blocks for which a file, and so any estimate, tracks confirmations: one week.
pub const CONFIRMS_MAX: u64 = 6 * 24 * 7;

/// Bytes of a file that are read. What Core accepts has at most 48.5 MB before the bytes that it ignores.
pub const FILE_SIZE_MAX: u64 = 64 << 20;

/// Events and transactions of blocks that wait for the estimator. The thread that adds more applies them itself.
pub const QUEUE_MAX: usize = 1 << 15;
