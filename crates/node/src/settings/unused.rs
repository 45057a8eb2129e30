//! Options that Bitcoin Core checks and that have no effect here: those of the mempool, mining, indexes, I2P and
//! Tor; and the ports of the notifications, which Core checks at the same place. Input: [`Given`]. Output: nothing, or
//! the first error in Core's words, so that a start script fails here if it fails with Core.

use super::error::SettingsError;
use super::given::Given;
use super::net::{NetProblem, has_good_port};
use lydian_consensus::Chain;
use lydian_options::{atoi, switch};
use std::fmt;

/// Core's `MAX_MONEY`.
const MONEY_MAX: i64 = 21_000_000 * COIN;
const COIN: i64 = 100_000_000;

/// Core's `MINIMUM_BLOCK_RESERVED_WEIGHT`, `DEFAULT_BLOCK_RESERVED_WEIGHT`, `MAX_BLOCK_WEIGHT`.
const RESERVED_WEIGHT_MIN: u64 = 2_000;
const RESERVED_WEIGHT: u64 = 8_000;
const WEIGHT_MAX: u64 = 4_000_000;

/// Core's `MAX_CLUSTER_COUNT_LIMIT` and `DEFAULT_CLUSTER_SIZE_LIMIT_KVB`.
const CLUSTER_COUNT_MAX: i64 = 64;
const CLUSTER_KVB: i64 = 101;

/// Core's `DEFAULT_MAX_MEMPOOL_SIZE_MB`.
const MEMPOOL_MB: i64 = 300;

/// Errors in such options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnusedProblem {
    Amount { option: &'static str, text: String },
    ReservedWeightLow { weight: u64 },
    WeightHigh { option: &'static str, weight: u64 },
    ReservedAboveMax { reserved: u64, weight: u64 },
    NonStandard { chain: &'static str },
    ClusterCount,
    MaxMempool { min_mb: i64 },
    StaleEstimates { chain: &'static str },
    FetchThreads { count: i64 },
    PruneWithTxIndex,
    PruneWithSpenderIndex,
    UnknownFilter { text: String },
    FiltersWithoutIndex,
    OnionWithoutListen,
}

impl fmt::Display for UnusedProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Amount { option, text } => write!(f, "Invalid amount for -{option}=<amount>: '{text}'"),
            Self::ReservedWeightLow { weight } => write!(
                f,
                "-blockreservedweight ({weight}) is lower than minimum safety value of ({RESERVED_WEIGHT_MIN})"
            ),
            Self::WeightHigh { option, weight } => {
                write!(f, "-{option} ({weight}) exceeds consensus maximum block weight ({WEIGHT_MAX})")
            }
            Self::ReservedAboveMax { reserved, weight } => {
                write!(f, "-blockreservedweight ({reserved}) exceeds -blockmaxweight ({weight})")
            }
            Self::NonStandard { chain } => {
                write!(f, "acceptnonstdtxn is not currently supported for {chain} chain")
            }
            Self::ClusterCount => {
                write!(f, "limitclustercount must be less than or equal to {CLUSTER_COUNT_MAX}")
            }
            Self::MaxMempool { min_mb } => write!(f, "-maxmempool must be at least {min_mb} MB"),
            Self::StaleEstimates { chain } => {
                write!(f, "acceptstalefeeestimates is not supported on {chain} chain.")
            }
            Self::FetchThreads { count } => write!(
                f,
                "-prevoutfetchthreads must be non-negative (got {count}). Use 0 to disable parallel input fetching."
            ),
            Self::PruneWithTxIndex => f.write_str("Prune mode is incompatible with -txindex."),
            Self::PruneWithSpenderIndex => f.write_str("Prune mode is incompatible with -txospenderindex."),
            Self::UnknownFilter { text } => write!(f, "Unknown -blockfilterindex value {text}."),
            Self::FiltersWithoutIndex => f.write_str("Cannot set -peerblockfilters without -blockfilterindex."),
            Self::OnionWithoutListen => f.write_str("Cannot set -listen=0 together with -listenonion=1"),
        }
    }
}

/// Checks in Core's order: `AppInitParameterInteraction`, then `CheckHostPortOptions` and what follows it.
pub(super) fn check(chain: Chain, given: &Given<'_>, listens: bool) -> Result<(), SettingsError> {
    let number = |name| given.core(name).map(atoi);
    let switch = |name| given.core(name).is_some_and(switch);
    filters(given, &switch)?;
    if given.integer("prune").is_some_and(|prune| prune != 0) {
        if switch("txindex") {
            return Err(UnusedProblem::PruneWithTxIndex.into());
        }
        if switch("txospenderindex") {
            return Err(UnusedProblem::PruneWithSpenderIndex.into());
        }
    }
    if !listens && switch("listenonion") {
        return Err(UnusedProblem::OnionWithoutListen.into());
    }
    block_creation(given)?;
    if let Some(count) = number("prevoutfetchthreads").filter(|count| *count < 0) {
        return Err(UnusedProblem::FetchThreads { count: count.max(i64::from(i32::MIN)) }.into());
    }
    for option in ["incrementalrelayfee", "minrelaytxfee", "dustrelayfee"] {
        amount(given, option)?;
    }
    if chain == Chain::Main && switch("acceptnonstdtxn") {
        return Err(UnusedProblem::NonStandard { chain: chain.name() }.into());
    }
    if number("limitclustercount").is_some_and(|count| count > CLUSTER_COUNT_MAX) {
        return Err(UnusedProblem::ClusterCount.into());
    }
    ports(given)?;
    if chain != Chain::Regtest && switch("acceptstalefeeestimates") {
        return Err(UnusedProblem::StaleEstimates { chain: chain.name() }.into());
    }
    let cluster_bytes = number("limitclustersize").unwrap_or(CLUSTER_KVB).saturating_mul(1_000 * 40);
    let mempool_mb = number("maxmempool").unwrap_or(MEMPOOL_MB);
    let mempool_bytes = mempool_mb.saturating_mul(1_000_000);
    if mempool_bytes < 0 || (mempool_bytes > 0 && mempool_bytes < cluster_bytes) {
        let min_mb = cluster_bytes.saturating_add(999_999) / 1_000_000;
        return Err(UnusedProblem::MaxMempool { min_mb }.into());
    }
    Ok(())
}

fn filters(given: &Given<'_>, switch: &dyn Fn(&'static str) -> bool) -> Result<(), SettingsError> {
    let value = given.core("blockfilterindex").unwrap_or("0");
    if !["", "0", "1"].contains(&value)
        && let Some(text) = given.core_all("blockfilterindex").into_iter().find(|text| *text != "basic")
    {
        return Err(UnusedProblem::UnknownFilter { text: text.to_owned() }.into());
    }
    match value == "0" && switch("peerblockfilters") {
        true => Err(UnusedProblem::FiltersWithoutIndex.into()),
        false => Ok(()),
    }
}

/// Core's `ReadMiningArgs` and `CheckMiningOptions`.
fn block_creation(given: &Given<'_>) -> Result<(), SettingsError> {
    amount(given, "blockmintxfee")?;
    // Core reads these as unsigned numbers: a negative number is 0.
    let weight = |name| given.core(name).map(|text| u64::try_from(atoi(text)).unwrap_or(0));
    let reserved = weight("blockreservedweight").unwrap_or(RESERVED_WEIGHT);
    let max = weight("blockmaxweight").unwrap_or(WEIGHT_MAX);
    let problem = match () {
        () if reserved < RESERVED_WEIGHT_MIN => UnusedProblem::ReservedWeightLow { weight: reserved },
        () if reserved > WEIGHT_MAX => UnusedProblem::WeightHigh { option: "blockreservedweight", weight: reserved },
        () if max > WEIGHT_MAX => UnusedProblem::WeightHigh { option: "blockmaxweight", weight: max },
        () if reserved > max => UnusedProblem::ReservedAboveMax { reserved, weight: max },
        () => return Ok(()),
    };
    Err(problem.into())
}

fn amount(given: &Given<'_>, option: &'static str) -> Result<(), SettingsError> {
    match given.core(option) {
        Some(text) if !is_money(text) => Err(UnusedProblem::Amount { option, text: text.to_owned() }.into()),
        _ => Ok(()),
    }
}

/// Core's `ParseMoney`: coins with at most eight decimals.
fn is_money(text: &str) -> bool {
    let text = text.trim_matches([' ', '\u{c}', '\n', '\r', '\t', '\u{b}']);
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if text.is_empty() || !is_number(whole) || !is_number(decimals) || whole.len() > 10 || decimals.len() > 8 {
        return false;
    }
    let part = |text: &str| text.parse::<i64>().unwrap_or(0);
    part(whole) * COIN + part(&format!("{decimals:0<8}")) <= MONEY_MAX
}

/// The part of Core's `CheckHostPortOptions` for options without effect here, and for the notifications.
fn ports(given: &Given<'_>) -> Result<(), SettingsError> {
    const PUBLISHERS: [&str; 5] =
        ["zmqpubhashblock", "zmqpubhashtx", "zmqpubrawblock", "zmqpubrawtx", "zmqpubsequence"];
    let options = [("i2psam", false), ("torcontrol", false)].into_iter();
    for (option, may_be_unix) in options.chain(PUBLISHERS.map(|option| (option, true))) {
        for text in given.core_all(option) {
            if !(has_good_port(text) || may_be_unix && text.starts_with("unix:")) {
                return Err(NetProblem::Port { option, text: text.to_owned() }.into());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_money;

    /// Values of Core's util_tests: `util_ParseMoney`.
    #[test]
    fn amounts_are_cores() {
        for good in
            ["12345.", "1", "   1", "1   ", "  0.1", "0.00000001", "0.00000001 ", "20999999.99999999", "21000000", "."]
        {
            assert!(is_money(good), "{good}");
        }
        for bad in ["", " ", "0.000000001", "1 2", "100000000000.00", "-1", "(1)", "5x", "21000000.00000001", "1e3"] {
            assert!(!is_money(bad), "{bad}");
        }
    }
}
