//! Limits of the lab. Constants only.

/// A block file is closed before it passes this size: Core's `MAX_BLOCKFILE_SIZE` (node/blockstorage.h).
pub const BLOCK_FILE_SIZE_MAX: u64 = 0x0800_0000;

/// Blocks of one chain: the time of the last must not lie in the future when a node reads it (10 minutes a block).
pub const CHAIN_BLOCKS_MAX: u32 = 90_000;

/// Full blocks lie above this height: older nodes enforce CSV, segwit and taproot on regtest after three periods of 144
/// blocks that all signal.
pub const FULL_BLOCK_HEIGHT_MIN: u32 = crate::regtest::VOTED_ACTIVATION_HEIGHT + 1;
