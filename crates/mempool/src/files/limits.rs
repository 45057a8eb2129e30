//! Limits of the mempool's files. Constants only.

/// The largest transaction in `mempool.dat`, in bytes: one of the greatest weight that a block can have, all of it
/// witness. Core would read a larger one and refuse it.
pub const FILE_TRANSACTION_SIZE_MAX: usize = 4_000_000;
