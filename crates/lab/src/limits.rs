//! Limits of the lab and the constants of regtest that the generator keeps to. Constants only.

/// Weight no block may pass: Core's `MAX_BLOCK_WEIGHT` (consensus/consensus.h).
pub const BLOCK_WEIGHT_MAX: u64 = 4_000_000;

/// Weight every block called full reaches.
pub const FULL_BLOCK_WEIGHT_MIN: u64 = 3_990_000;

/// Height from which older nodes enforce CSV, segwit and taproot on regtest when every block signals: three periods of 144.
pub const VOTED_ACTIVATION_HEIGHT: u32 = 432;

/// Blocks a coinbase output waits: Core's `COINBASE_MATURITY`.
pub const COINBASE_MATURITY: u32 = 100;

/// A block file is closed before it passes this size: Core's `MAX_BLOCKFILE_SIZE` (node/blockstorage.h).
pub const BLOCK_FILE_SIZE_MAX: u64 = 0x0800_0000;

/// Blocks of one chain: the time of the last must not lie in the future when a node reads it (10 minutes a block).
pub const CHAIN_BLOCKS_MAX: u32 = 90_000;

/// Least value of an output the generator makes, in satoshi: above every dust limit.
pub const OUTPUT_VALUE_MIN: i64 = 1_000;
