//! Limits of block files. Constants only.

/// Least length of a record: a header. Core's `LoadExternalBlockFile` (validation.cpp) takes nothing shorter.
pub const RECORD_SIZE_MIN: u32 = 80;

/// Largest length of a record: Core's `MAX_BLOCK_SERIALIZED_SIZE` (consensus/consensus.h).
pub const RECORD_SIZE_MAX: u32 = 4_000_000;

/// Remarks kept for one set of files; the rest are counted. A file of noise shall not fill the memory or the screen.
pub const REMARKS_MAX: usize = 1_000;

/// Files kept open between two reads of blocks. A `.zst` file is in memory as long as it is open.
pub const OPEN_FILES_MAX: usize = 4;

/// Bytes in which a magic of any chain is looked for when nobody said which chain the file is of.
pub const DETECT_SIZE_MAX: u64 = 16 << 20;
