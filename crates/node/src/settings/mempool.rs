//! Settings of the mempool that depend on other options or are invalid for some values. Input: [`Given`]. Output: the
//! policy's settings, or the first error in Core's words and order (node/mempool_args.cpp, `CTxMemPool`'s `Flatten`).
//! The entries of the table store the others.

use super::error::SettingsError;
use super::given::Given;
use super::values::money;
use lydian_consensus::Chain;
use lydian_mempool::limits::CLUSTER_COUNT_MAX;
use lydian_mempool::policy::{BLOCKSONLY_MEMPOOL_BYTES, FeeRate, Settings as Policy};
use lydian_options::Notice;
use std::fmt;
use std::time::Duration;

/// The least memory of the mempool, in sizes of a cluster: Core's `Flatten`.
const MEMPOOL_CLUSTERS_MIN: u64 = 40;

/// Core's upper limit of `-checkmempool`.
const CHECK_INTERVAL_MAX: i64 = 1_000_000;

/// Errors in these options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MempoolProblem {
    Amount { option: &'static str, text: String },
    NonStandard { chain: &'static str },
    ClusterCount,
    TooSmall { min_mb: u64 },
}

impl fmt::Display for MempoolProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Amount { option, text } => write!(f, "Invalid amount for -{option}=<amount>: '{text}'"),
            Self::NonStandard { chain } => write!(f, "acceptnonstdtxn is not currently supported for {chain} chain"),
            Self::ClusterCount => write!(f, "limitclustercount must be less than or equal to {CLUSTER_COUNT_MAX}"),
            Self::TooSmall { min_mb } => write!(f, "-maxmempool must be at least {min_mb} MB"),
        }
    }
}

/// What `-blocksonly` changes: Core's `InitParameterInteraction`.
pub(super) fn blocks_only(is_on: bool, given: &Given<'_>, policy: &mut Policy, notes: &mut Vec<String>) {
    policy.blocks_only = is_on;
    if is_on && !given.is_set("maxmempool") {
        policy.mempool_bytes_max = BLOCKSONLY_MEMPOOL_BYTES;
        let mb = BLOCKSONLY_MEMPOOL_BYTES / 1_000_000;
        notes.push(format!("parameter interaction: -blocksonly=1 -> setting -maxmempool={mb}"));
    }
}

/// Core's `ApplyArgsManOptions` for the mempool.
pub(super) fn read(
    chain: Chain,
    given: &Given<'_>,
    policy: &mut Policy,
    notices: &mut Vec<Notice>,
) -> Result<(), SettingsError> {
    if chain == Chain::Regtest {
        policy.check_interval = 1;
    }
    let incremental = amount(given, "incrementalrelayfee")?;
    let min = amount(given, "minrelaytxfee")?;
    let default_min = policy.min_relay_fee;
    policy.set_relay_fees(min, incremental);
    if min.is_none() && policy.min_relay_fee > default_min {
        let fee = policy.min_relay_fee.to_btc_per_kvb();
        notices.push(Notice::LogInfo(format!("Increasing minrelaytxfee to {fee} to match incrementalrelayfee")));
    }
    if let Some(fee) = amount(given, "dustrelayfee")? {
        policy.dust_relay_fee = fee;
    }
    if !given.switch("datacarrier").unwrap_or(true) {
        policy.datacarrier_bytes_max = None;
    } else if let Some(size) = given.integer("datacarriersize") {
        policy.datacarrier_bytes_max = Some(wrapped(size));
    }
    policy.require_standard = !given.switch("acceptnonstdtxn").unwrap_or(false);
    if chain == Chain::Main && !policy.require_standard {
        return Err(MempoolProblem::NonStandard { chain: chain.name() }.into());
    }
    if let Some(count) = given.integer("limitclustercount") {
        policy.cluster_count_max = wrapped(count);
        if policy.cluster_count_max as usize > CLUSTER_COUNT_MAX {
            return Err(MempoolProblem::ClusterCount.into());
        }
    }
    Ok(())
}

/// The memory of the mempool: Core checks it when it makes the mempool, after all other options.
pub(super) fn check_size(given: &Given<'_>, policy: &mut Policy) -> Result<(), SettingsError> {
    let cluster_kvb = given.integer("limitclustersize").unwrap_or(policy.cluster_vbytes_max / 1_000);
    let cluster_bytes = u64::try_from(cluster_kvb).unwrap_or(0).saturating_mul(1_000);
    let mempool_mb = given.integer("maxmempool");
    let mempool_bytes = match mempool_mb.map(u64::try_from) {
        Some(Ok(mb)) => mb.saturating_mul(1_000_000),
        Some(Err(_)) => 0,
        None => policy.mempool_bytes_max,
    };
    let least = cluster_bytes.saturating_mul(MEMPOOL_CLUSTERS_MIN);
    let is_negative = mempool_mb.is_some_and(|mb| mb < 0);
    if is_negative || (mempool_bytes > 0 && mempool_bytes < least) {
        return Err(MempoolProblem::TooSmall { min_mb: least.div_ceil(1_000_000) }.into());
    }
    policy.mempool_bytes_max = mempool_bytes;
    Ok(())
}

fn amount(given: &Given<'_>, option: &'static str) -> Result<Option<FeeRate>, SettingsError> {
    let Some(text) = given.text(option) else { return Ok(None) };
    match money(&text) {
        Some(satoshi) => Ok(Some(FeeRate::per_kvb(satoshi))),
        None => Err(MempoolProblem::Amount { option, text }.into()),
    }
}

/// An unsigned number where Core assigns the option to it: the remainder modulo 2^32, so that -1 is the highest number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as in Core")]
pub(super) fn wrapped(value: i64) -> u32 {
    value as u32
}

/// An unsigned number where Core limits the option to its range.
pub(super) fn clamped(value: i64) -> u32 {
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}

/// Of `-mempoolexpiry`.
pub(super) fn hours(hours: i64) -> Duration {
    Duration::from_secs(u64::try_from(hours).unwrap_or(0).saturating_mul(60 * 60))
}

/// Of `-checkmempool`, which Core assigns to an `int` and then limits.
#[allow(clippy::cast_possible_truncation, reason = "as in Core")]
pub(super) fn check_interval(every: i64) -> u32 {
    clamped(i64::from(every as i32).min(CHECK_INTERVAL_MAX))
}
