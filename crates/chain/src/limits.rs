//! Limits of block files and of the block store. Constants only.

/// Minimum length of a record: a header. Core's `LoadExternalBlockFile` (validation.cpp) accepts nothing shorter.
pub const RECORD_SIZE_MIN: u32 = 80;

/// Maximum length of a record: Core's `MAX_BLOCK_SERIALIZED_SIZE` (consensus/consensus.h).
pub const RECORD_SIZE_MAX: u32 = 4_000_000;

/// Number of remarks kept for one set of files; others are only counted, so that a file of noise does not fill the
/// memory or the screen.
pub const REMARKS_MAX: usize = 1_000;

/// Number of files kept open between reads of blocks. A `.zst` file is in memory while it is open.
pub const OPEN_FILES_MAX: usize = 4;

/// Number of bytes searched for the magic of a known chain if the file's chain is not given.
pub const DETECT_SIZE_MAX: u64 = 16 << 20;

/// Maximum size of a block file that is written: Core's `MAX_BLOCKFILE_SIZE` (node/blockstorage.h).
pub const BLOCK_FILE_SIZE_MAX: u64 = 0x800_0000;

/// Maximum size of a block file with `-fastprune`, unless a single block is larger: as in Core's `FindNextBlockPos`
/// (node/blockstorage.cpp).
pub const FAST_PRUNE_FILE_SIZE_MAX: u64 = 0x1_0000;

/// Size at which an undo file is full. Offsets in it are stored as `u32`.
pub const UNDO_FILE_SIZE_MAX: u64 = 1 << 30;

/// Maximum size of one block's undo data that is read: if every input of a block spends an output with the longest
/// spendable script (24,390 inputs of 41 bytes fill 1 MB; 10,000 bytes and a few more each).
pub const UNDO_SIZE_MAX: u32 = 256 << 20;

/// Number of blocks below the tip that are never pruned: Core's `MIN_BLOCKS_TO_KEEP` (validation.h).
pub const BLOCKS_TO_KEEP_MIN: u32 = 288;

/// Number of store files kept open for reading.
pub const OPEN_READERS_MAX: usize = 64;

/// Number of undo files kept open for appending. A file is synced before it is closed.
pub const OPEN_UNDO_WRITERS_MAX: usize = 8;

/// Size in bytes at which a record of the index log is closed.
pub const INDEX_RECORD_SIZE_MAX: usize = 64 << 10;

/// Number of bytes of the index log that wait to be written, beyond which they are written at once.
pub const INDEX_PENDING_SIZE_MAX: usize = 1 << 20;

/// Number of recorded entries that may wait while the index log is being synced; beyond it `record` blocks. About 1 MB.
pub const INDEX_QUEUE_ENTRIES_MAX: usize = 8192;

/// Maximum length in bytes of the path of an adopted block file.
pub const PATH_SIZE_MAX: usize = 4096;

/// Maximum number of a store file.
pub const FILE_NUMBER_MAX: u32 = 99_999_999;
