//! Settings of the blocks that the node makes. Input: [`Given`]. Output: [`BlockOptions`], or the first error in Core's
//! words and order (node/mining_args.cpp).

use super::error::SettingsError;
use super::given::Given;
use super::values::money;
use lydian_consensus::limits::MAX_BLOCK_WEIGHT;
use lydian_mempool::policy::FeeRate;
use lydian_mempool::pool::BlockOptions;
use std::fmt;

/// Core's `MINIMUM_BLOCK_RESERVED_WEIGHT`.
const RESERVED_WEIGHT_MIN: usize = 2_000;

const MIN_FEE: &str = "blockmintxfee";
const RESERVED: &str = "blockreservedweight";
const MAX: &str = "blockmaxweight";

/// Errors in these options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MiningProblem {
    Amount { text: String },
    ReservedLow { weight: usize },
    High { option: &'static str, weight: usize },
    ReservedAboveMax { reserved: usize, max: usize },
}

impl fmt::Display for MiningProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Amount { text } => write!(f, "Invalid amount for -{MIN_FEE}=<amount>: '{text}'"),
            Self::ReservedLow { weight } => {
                write!(f, "-{RESERVED} ({weight}) is lower than minimum safety value of ({RESERVED_WEIGHT_MIN})")
            }
            Self::High { option, weight } => {
                write!(f, "-{option} ({weight}) exceeds consensus maximum block weight ({MAX_BLOCK_WEIGHT})")
            }
            Self::ReservedAboveMax { reserved, max } => write!(f, "-{RESERVED} ({reserved}) exceeds -{MAX} ({max})"),
        }
    }
}

/// Core's `ReadMiningArgs` and `CheckMiningOptions`.
pub(super) fn read(given: &Given<'_>, options: &mut BlockOptions) -> Result<(), SettingsError> {
    if let Some(text) = given.text(MIN_FEE) {
        let Some(satoshi) = money(&text) else { return Err(MiningProblem::Amount { text }.into()) };
        options.min_feerate = FeeRate::per_kvb(satoshi);
    }
    // Core reads these as unsigned numbers: a negative number is 0.
    let weight = |name| given.integer(name).map(|weight| usize::try_from(weight).unwrap_or(0));
    let reserved = weight(RESERVED).unwrap_or(options.reserved_weight);
    let max = weight(MAX).unwrap_or(options.weight_max);
    let problem = match () {
        () if reserved < RESERVED_WEIGHT_MIN => MiningProblem::ReservedLow { weight: reserved },
        () if reserved > MAX_BLOCK_WEIGHT => MiningProblem::High { option: RESERVED, weight: reserved },
        () if max > MAX_BLOCK_WEIGHT => MiningProblem::High { option: MAX, weight: max },
        () if reserved > max => MiningProblem::ReservedAboveMax { reserved, max },
        () => {
            (options.reserved_weight, options.weight_max) = (reserved, max);
            return Ok(());
        }
    };
    Err(problem.into())
}
