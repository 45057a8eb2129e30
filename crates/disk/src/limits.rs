//! Limits of reading files. Constants only.

/// Most bytes a file may have, once decompressed, that is read into memory whole. Core's block files have 128 MiB at most
/// (`MAX_BLOCKFILE_SIZE`); the spent outputs of one block have less than 244 MiB (24,390 inputs of 41 bytes fill 1 MB, scripts above
/// 10,000 bytes cannot be spent).
pub const WHOLE_FILE_SIZE_MAX: u64 = 256 << 20;

/// Most bytes in the payload of one record of a log: far above what one block or one checkpoint has to say, small enough to be held in memory
/// several times.
pub const RECORD_PAYLOAD_SIZE_MAX: usize = 64 << 20;

/// Most reads of one caller that are under way at once through io_uring; a longer batch goes through in turn. Beyond it no disk of today
/// gets faster.
pub const RING_DEPTH: usize = 256;

/// Most threads that read where the kernel has no io_uring. They wait for the disk nearly all the time.
pub const READER_THREADS_MAX: usize = 8;
