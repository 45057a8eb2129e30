//! Limits of consensus, with Core's names and the file they stand in. Constants only.

/// Weight units of a block: `MAX_BLOCK_WEIGHT` (consensus/consensus.h, BIP-0141).
pub const MAX_BLOCK_WEIGHT: usize = 4_000_000;

/// Weight of a byte outside witnesses: `WITNESS_SCALE_FACTOR` (consensus/consensus.h, BIP-0141).
pub const WITNESS_SCALE_FACTOR: usize = 4;

/// Cost of the signature operations of a block: `MAX_BLOCK_SIGOPS_COST` (consensus/consensus.h, BIP-0141).
pub const MAX_BLOCK_SIGOPS_COST: usize = 80_000;

/// Blocks until the output of a coinbase can be spent: `COINBASE_MATURITY` (consensus/consensus.h).
pub const COINBASE_MATURITY: u32 = 100;

/// Fewest bytes of a coinbase's scriptSig (consensus/tx_check.cpp, `CheckTransaction`).
pub const COINBASE_SCRIPT_SIG_SIZE_MIN: usize = 2;

/// Most bytes of a coinbase's scriptSig (consensus/tx_check.cpp, `CheckTransaction`).
pub const COINBASE_SCRIPT_SIG_SIZE_MAX: usize = 100;

/// Seconds a block may be ahead of the clock: `MAX_FUTURE_BLOCK_TIME` (chain.h).
pub const MAX_FUTURE_BLOCK_TIME: i64 = 2 * 60 * 60;

/// Seconds the first block of a retarget period may be before the last of the period before: `MAX_TIMEWARP`
/// (consensus/consensus.h, BIP-0094).
pub const MAX_TIMEWARP: i64 = 600;

/// Ancestors whose times the median time past is taken of: `nMedianTimeSpan` (chain.h, BIP-0113).
pub const MEDIAN_TIME_SPAN: u32 = 11;

/// From this height on BIP-0030 is checked again, since coinbases of before BIP-0034 name such heights:
/// `BIP34_IMPLIES_BIP30_LIMIT` (validation.cpp, `ConnectBlock`).
pub const BIP34_IMPLIES_BIP30_LIMIT: u32 = 1_983_702;

/// Halvings after which there is no subsidy (validation.cpp, `GetBlockSubsidy`; BIP-0042).
pub const SUBSIDY_HALVINGS_MAX: u32 = 64;

/// Lock times below are heights, from here on seconds: `LOCKTIME_THRESHOLD` (script/script.h).
pub const LOCKTIME_THRESHOLD: u32 = 500_000_000;
