//! Limits of the indexes. Each has a test at the limit and above it.

/// Maximum blocks, beside the 1,088 that are not sealed, whose rows are in memory: a further block waits for the thread
/// that writes segments.
pub const WAITING_BLOCKS_MAX: u32 = 768;

/// Maximum blocks in segments, beside the 1,088, that are not sealed: a further block waits for the thread that merges.
pub const UNMERGED_BLOCKS_MAX: u32 = 65_536;
