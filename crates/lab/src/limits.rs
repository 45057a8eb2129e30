//! Limits of the lab. Constants only.

/// A block file is closed before it passes this size: Core's `MAX_BLOCKFILE_SIZE` (node/blockstorage.h).
pub const BLOCK_FILE_SIZE_MAX: u64 = 0x0800_0000;

/// Blocks of one chain: the time of the last must not lie in the future when a node reads it (10 minutes a block).
pub const CHAIN_BLOCKS_MAX: u32 = 90_000;

/// Full blocks lie above this height: older nodes enforce CSV, segwit and taproot on regtest after three periods of 144
/// blocks that all signal.
pub const FULL_BLOCK_HEIGHT_MIN: u32 = crate::regtest::VOTED_ACTIVATION_HEIGHT + 1;

/// Scripts of the preset `reuse`: more would lock up what the subsidies of regtest pay for.
pub const REUSE_SCRIPTS_MAX: u32 = 10_000;

/// Transactions of a fat script of the preset `reuse`.
pub const REUSE_FAT_MIN: u32 = 100;
pub const REUSE_FAT_MAX: u32 = 200_000;

/// Samples kept of one run; when they are full, every second one goes.
pub const SAMPLES_MAX: usize = 2_400;

/// A longer line of a node's log is cut.
pub const LOG_LINE_BYTES_MAX: u64 = 4_096;

/// A block file of a chain to be measured, and each file beside it: Core's own are at most 128 MiB and what it allocates ahead.
pub const CHAIN_FILE_SIZE_MAX: u64 = 256 << 20;

/// Files of results on one page.
pub const REPORT_FILES_MAX: usize = 64;

/// An answer of a node's RPC server.
pub const RPC_ANSWER_BYTES_MAX: u64 = 1 << 20;

/// A line of an Electrum server: a history of 47,000 transactions takes 5 MB.
pub const ELECTRUM_LINE_BYTES_MAX: usize = 32 << 20;

/// A result file of `lydian-lab electrum` that is read again.
pub const ELECTRUM_RESULTS_BYTES_MAX: u64 = 256 << 20;

/// What is read at once of a log that a node is writing, to tell its height.
pub const TAIL_BYTES_MAX: u64 = 64 << 10;

/// A file of results: thirty runs with all their samples have some 15 MB.
pub const RESULTS_BYTES_MAX: u64 = 64 << 20;

/// Bytes of a `lab.toml`.
pub const LAB_TOML_BYTES_MAX: u64 = 1 << 20;

/// What a node said of one broken block; the rest is cut.
pub const SAID_CHARS_MAX: usize = 1_000;
