//! What the generator keeps to on regtest. Constants only; the rules themselves are the node's.

/// Weight no block may pass: Core's `MAX_BLOCK_WEIGHT` (consensus/consensus.h).
pub const BLOCK_WEIGHT_MAX: u64 = 4_000_000;

/// Weight every block called full reaches.
pub const FULL_BLOCK_WEIGHT_MIN: u64 = 3_990_000;

/// Height from which older nodes enforce CSV, segwit and taproot when every block signals: three periods of 144.
pub const VOTED_ACTIVATION_HEIGHT: u32 = 432;

/// Blocks a coinbase output waits: Core's `COINBASE_MATURITY`.
pub const COINBASE_MATURITY: u32 = 100;

/// Least value of an output the generator makes, in satoshi: above every dust limit.
pub const OUTPUT_VALUE_MIN: i64 = 1_000;
