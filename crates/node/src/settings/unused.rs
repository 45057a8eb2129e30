//! Options that Bitcoin Core checks and that have no effect here: those of indexes, I2P and Tor; and those of mining
//! and the ports of the notifications, which Core checks at the same places. Input: [`Given`]. Output: the options of
//! mining, or the first error in Core's words, so that a start script fails here if it fails with Core.

use super::error::SettingsError;
use super::given::Given;
use super::mining;
use super::net::{NetProblem, has_good_port};
use lydian_consensus::Chain;
use lydian_mempool::pool::BlockOptions;
use lydian_options::{atoi, switch};
use std::fmt;

/// Errors in such options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnusedProblem {
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

/// The checks before those of the mempool's options, in Core's order: `AppInitParameterInteraction`.
pub(super) fn check(given: &Given<'_>, listens: bool, block: &mut BlockOptions) -> Result<(), SettingsError> {
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
    mining::read(given, block)?;
    if let Some(count) = number("prevoutfetchthreads").filter(|count| *count < 0) {
        return Err(UnusedProblem::FetchThreads { count: count.max(i64::from(i32::MIN)) }.into());
    }
    Ok(())
}

/// The checks after them: `CheckHostPortOptions` and what follows it.
pub(super) fn check_later(chain: Chain, given: &Given<'_>) -> Result<(), SettingsError> {
    ports(given)?;
    // As in Core, a node that accepts no transactions of peers does not look at it.
    let is_on = |name| given.switch(name).unwrap_or(false);
    if chain != Chain::Regtest && is_on("acceptstalefeeestimates") && !is_on("blocksonly") {
        return Err(UnusedProblem::StaleEstimates { chain: chain.name() }.into());
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
