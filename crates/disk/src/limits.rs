//! Limits of reading files. Constants only.

/// Maximum size in bytes, after decompression, of a file that is read into memory whole. Core's block files have at
/// most 128 MiB (`MAX_BLOCKFILE_SIZE`); the spent outputs of one block have less than 244 MiB (24,390 inputs of 41
/// bytes fill 1 MB, scripts above 10,000 bytes cannot be spent).
pub const WHOLE_FILE_SIZE_MAX: u64 = 256 << 20;

/// Maximum size in bytes of the payload of one log record: far above what one block or one checkpoint needs, small
/// enough to be held in memory several times.
pub const RECORD_PAYLOAD_SIZE_MAX: usize = 64 << 20;

/// Maximum number of reads of one caller in flight at once through io_uring; the reads of a longer batch are submitted
/// as others complete. No current disk gets faster with more.
pub const RING_DEPTH: usize = 256;

/// Maximum number of reader threads if the kernel has no io_uring. They wait for the disk nearly all the time.
pub const READER_THREADS_MAX: usize = 8;
