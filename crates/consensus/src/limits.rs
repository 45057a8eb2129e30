//! Consensus limits, with Core's names and the files that define them. Constants only.

/// Maximum weight of a block: `MAX_BLOCK_WEIGHT` (consensus/consensus.h, BIP-0141).
pub const MAX_BLOCK_WEIGHT: usize = 4_000_000;

/// Weight of a byte that is not part of a witness: `WITNESS_SCALE_FACTOR` (consensus/consensus.h, BIP-0141).
pub const WITNESS_SCALE_FACTOR: usize = 4;

/// Maximum signature operation cost of a block: `MAX_BLOCK_SIGOPS_COST` (consensus/consensus.h, BIP-0141).
pub const MAX_BLOCK_SIGOPS_COST: usize = 80_000;

/// Number of blocks until a coinbase output can be spent: `COINBASE_MATURITY` (consensus/consensus.h).
pub const COINBASE_MATURITY: u32 = 100;

/// Minimum size of a coinbase's scriptSig in bytes (consensus/tx_check.cpp, `CheckTransaction`).
pub const COINBASE_SCRIPT_SIG_SIZE_MIN: usize = 2;

/// Maximum size of a coinbase's scriptSig in bytes (consensus/tx_check.cpp, `CheckTransaction`).
pub const COINBASE_SCRIPT_SIG_SIZE_MAX: usize = 100;

/// Maximum number of seconds that a block's time may be ahead of the clock: `MAX_FUTURE_BLOCK_TIME` (chain.h).
pub const MAX_FUTURE_BLOCK_TIME: i64 = 2 * 60 * 60;

/// Maximum number of seconds that the first block of a retarget period may be earlier than the last block of the
/// previous period: `MAX_TIMEWARP` (consensus/consensus.h, BIP-0094).
pub const MAX_TIMEWARP: i64 = 600;

/// Number of headers in the median time past: `nMedianTimeSpan` (chain.h, BIP-0113).
pub const MEDIAN_TIME_SPAN: u32 = 11;

/// From this height on BIP-0030 is checked again, because coinbases from before BIP-0034 contain such heights:
/// `BIP34_IMPLIES_BIP30_LIMIT` (validation.cpp, `ConnectBlock`).
pub const BIP34_IMPLIES_BIP30_LIMIT: u32 = 1_983_702;

/// Number of halvings after which the subsidy is zero (validation.cpp, `GetBlockSubsidy`; BIP-0042).
pub const SUBSIDY_HALVINGS_MAX: u32 = 64;

/// Lock times below this value are heights, the others are times in seconds: `LOCKTIME_THRESHOLD` (script/script.h).
pub const LOCKTIME_THRESHOLD: u32 = 500_000_000;
