//! Limits of reading files. Constants only.

/// Most bytes a file may have, once decompressed, that is read into memory whole. Core's block files have 128 MiB at most
/// (`MAX_BLOCKFILE_SIZE`); the spent outputs of one block have less than 244 MiB (24,390 inputs of 41 bytes fill 1 MB, scripts above
/// 10,000 bytes cannot be spent).
pub const WHOLE_FILE_SIZE_MAX: u64 = 256 << 20;
