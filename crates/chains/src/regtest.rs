//! Limits that the generator keeps on regtest. Constants only; the rules themselves are the node's.

/// The maximum weight of a block: Core's `MAX_BLOCK_WEIGHT` (consensus/consensus.h).
pub const BLOCK_WEIGHT_MAX: u64 = 4_000_000;

/// The minimum weight of a block that counts as full.
pub const FULL_BLOCK_WEIGHT_MIN: u64 = 3_990_000;

/// Height from which older nodes enforce CSV, segwit and taproot when every block signals: three periods of 144.
pub const VOTED_ACTIVATION_HEIGHT: u32 = 432;

/// Blocks until a coinbase output is mature: Core's `COINBASE_MATURITY`.
pub const COINBASE_MATURITY: u32 = 100;

/// Minimum value of an output of the generator, in satoshis: above every dust limit.
pub const OUTPUT_VALUE_MIN: i64 = 1_000;
