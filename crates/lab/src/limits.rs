//! Limits of the lab. Constants only.

/// A block file is closed before it passes this size: Core's `MAX_BLOCKFILE_SIZE` (node/blockstorage.h).
pub const BLOCK_FILE_SIZE_MAX: u64 = 0x0800_0000;

/// Blocks of one chain: the time of the last must not be in the future when a node reads it (10 minutes per block).
pub const CHAIN_BLOCKS_MAX: u32 = 90_000;

/// Full blocks are above this height: older nodes enforce CSV, segwit and taproot on regtest after three periods of 144
/// blocks that all signal.
pub const FULL_BLOCK_HEIGHT_MIN: u32 = crate::regtest::VOTED_ACTIVATION_HEIGHT + 1;

/// Scripts of the preset `reuse`: more would lock more coins than the subsidies of regtest provide.
pub const REUSE_SCRIPTS_MAX: u32 = 10_000;

/// Transactions of a fat script of the preset `reuse`.
pub const REUSE_FAT_MIN: u32 = 100;
pub const REUSE_FAT_MAX: u32 = 200_000;

/// Samples kept of one run; when the limit is reached, every second one is dropped.
pub const SAMPLES_MAX: usize = 2_400;

/// A longer line of a node's log is cut.
pub const LOG_LINE_BYTES_MAX: u64 = 4_096;

/// Size of a block file of a chain to be measured, and of each file next to it: Core's block files are at most 128 MiB
/// plus preallocated space.
pub const CHAIN_FILE_SIZE_MAX: u64 = 256 << 20;

/// Results files on one page.
pub const REPORT_FILES_MAX: usize = 64;

/// An answer of a node's RPC server.
pub const RPC_ANSWER_BYTES_MAX: u64 = 1 << 20;

/// A line of an Electrum server: a history of 47,000 transactions takes 5 MB.
pub const ELECTRUM_LINE_BYTES_MAX: usize = 32 << 20;

/// A results file of `lydian-lab electrum`.
pub const ELECTRUM_RESULTS_BYTES_MAX: u64 = 256 << 20;

/// Bytes read at once of a node's log, while it is written, to determine the node's height.
pub const TAIL_BYTES_MAX: u64 = 64 << 10;

/// A results file: thirty runs with all their samples take some 15 MB.
pub const RESULTS_BYTES_MAX: u64 = 64 << 20;

/// Bytes of a `lab.toml`.
pub const LAB_TOML_BYTES_MAX: u64 = 1 << 20;

/// A node's answer to one broken block; the rest is cut off.
pub const SAID_CHARS_MAX: usize = 1_000;
