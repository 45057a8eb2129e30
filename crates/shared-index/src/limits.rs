//! Limits of the shared index. Each has a test at the limit and above it.

/// Maximum bytes of values that a writer has under way.
pub const WRITE_BYTES_MAX: usize = 64 << 20;

/// Maximum writes that a writer has under way; halved when the store is too slow.
pub const WRITES_MAX: usize = 256;

/// Maximum bytes of filters of used scripts in memory: those of all scripts of mainnet are about as large.
pub const FILTER_BYTES_MAX: usize = 2 << 30;

/// Maximum bytes of a part of the lists of a page, unless a single page of a list is larger.
pub const PART_BYTES_MAX: usize = 64 << 10;

/// Maximum reads of values that a front end has under way, whatever the number of questions. The next ones wait in the
/// order in which they came.
pub const READS_MAX: usize = 1_024;

/// Maximum blocks whose bytes are in the store without a row that names them.
pub const BLOCKS_PER_COMMIT_MAX: u32 = 256;
