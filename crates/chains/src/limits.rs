//! Limits of generated chains and of the block files that are read. Constants only.

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

/// Size of a block file of a chain to be measured, and of each file next to it: Core's block files are at most 128 MiB
/// plus preallocated space.
pub const CHAIN_FILE_SIZE_MAX: u64 = 256 << 20;

/// Waiting transactions of the preset `mempool-mix`: more would need more coins than its chain spreads.
pub const MEMPOOL_TRANSACTIONS_MAX: u32 = 500_000;

/// Transactions of the long history of the preset `scale`, and its other scripts: the coinbases fund no more.
pub const SCALE_TRANSACTIONS_MAX: u32 = 4_000_000;
pub const SCALE_SCRIPTS_MAX: u32 = 400_000;

/// Coins that a block before the full ones creates, if their number is given: their outputs weigh 143 units on average,
/// 3.7 M together.
pub const PREPARED_COINS_PER_BLOCK_MAX: u64 = 26_000;
