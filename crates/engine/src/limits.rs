//! Limits of the engine. Constants only.

/// Inputs verified in one batch: a few milliseconds, so that a stop waits no longer, and enough for signature kernels that
/// work on many at once.
pub const BATCH_INPUTS: usize = 512;

/// Bytes of blocks on their way, whatever the number of workers: two of the largest blocks with all their tables.
pub const WINDOW_BYTES_BASE: usize = 24 << 20;

/// The same for each worker.
pub const WINDOW_BYTES_WORKER: usize = 12 << 20;
