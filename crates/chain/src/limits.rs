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

/// Largest block file that is written: Core's `MAX_BLOCKFILE_SIZE` (node/blockstorage.h).
pub const BLOCK_FILE_SIZE_MAX: u64 = 0x800_0000;

/// Largest block file with `-fastprune`, unless one block alone is larger: that of Core's `FindNextBlockPos`
/// (node/blockstorage.cpp).
pub const FAST_PRUNE_FILE_SIZE_MAX: u64 = 0x1_0000;

/// Largest undo file that is written. Offsets in it are kept as `u32`.
pub const UNDO_FILE_SIZE_MAX: u64 = 1 << 30;

/// Largest undo data of one block that is read: every input of a block spends an output of the longest script that can be spent (24,390 inputs
/// of 41 bytes fill 1 MB; 10,000 bytes and a few each).
pub const UNDO_SIZE_MAX: u32 = 256 << 20;

/// Blocks below the tip that are never pruned: Core's `MIN_BLOCKS_TO_KEEP` (validation.h).
pub const BLOCKS_TO_KEEP_MIN: u32 = 288;

/// Files of the store kept open for reading.
pub const OPEN_READERS_MAX: usize = 64;

/// Undo files kept open for appending. One that is closed is synced first.
pub const OPEN_UNDO_WRITERS_MAX: usize = 8;

/// Bytes of entries in one record of the index log.
pub const INDEX_RECORD_SIZE_MAX: usize = 64 << 10;

/// Bytes of the index log that wait to be written; more are written at once.
pub const INDEX_PENDING_SIZE_MAX: usize = 1 << 20;

/// Entries recorded that wait for the index log while it is being synced; who records more waits too. About 1 MB.
pub const INDEX_QUEUE_ENTRIES_MAX: usize = 8192;

/// Bytes of the path of a file that blocks are read from in place.
pub const PATH_SIZE_MAX: usize = 4096;

/// Largest number of a file of the store.
pub const FILE_NUMBER_MAX: u32 = 99_999_999;
