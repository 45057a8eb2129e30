//! Deployments by the bits of versions (BIP-0009): Core's versionbits.cpp. Input: the header tree and a block. Output: the state of Core's one test
//! deployment, which regtest alone has; every real one is buried. Cost: one look at every header of the block's chain.

use lydian_chain::HeaderTree;
use lydian_consensus::Chain;
use lydian_engine::NodeId;
use lydian_primitives::Height;
use serde::Serialize;

/// What `getdeploymentinfo` tells of a deployment.
#[derive(Debug, Serialize)]
pub(crate) struct Bip9 {
    #[serde(skip_serializing_if = "Option::is_none")]
    bit: Option<u32>,
    start_time: i64,
    timeout: i64,
    min_activation_height: u32,
    status: &'static str,
    since: u32,
    status_next: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    statistics: Option<Statistics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signalling: Option<String>,
}

#[derive(Debug, Serialize)]
struct Statistics {
    period: u32,
    elapsed: u32,
    count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    possible: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Defined,
    Started,
    LockedIn,
    Active,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Defined => "defined",
            State::Started => "started",
            State::LockedIn => "locked_in",
            State::Active => "active",
        }
    }
}

/// Core's `DEPLOYMENT_TESTDUMMY` of regtest.
const BIT: u32 = 28;
const PERIOD: u32 = 144;
const THRESHOLD: u32 = 108;
/// Core's `NO_TIMEOUT`.
const TIMEOUT: i64 = i64::MAX;

/// Its state for the block, and the height from which on it is active, if that is known. `None` on other chains.
pub(crate) fn testdummy(tree: &HeaderTree, id: NodeId, chain: Chain) -> Option<(Bip9, Option<u32>)> {
    if chain != Chain::Regtest {
        return None;
    }
    let height = tree.height(id).0;
    let signals: Vec<bool> = versions(tree, id).into_iter().map(is_signal).collect();
    let (status, since) = state_of(&signals, height);
    let (next, _) = state_of(&signals, height + 1);
    let has_statistics = matches!(status, State::Started | State::LockedIn);
    let period = &signals[(height - height % PERIOD) as usize..];
    let count = u32::try_from(period.iter().filter(|signal| **signal).count()).unwrap_or(0);
    let elapsed = u32::try_from(period.len()).unwrap_or(0);
    let is_open = status == State::Started;
    let bip9 = Bip9 {
        bit: has_statistics.then_some(BIT),
        start_time: 0,
        timeout: TIMEOUT,
        min_activation_height: 0,
        status: status.name(),
        since,
        status_next: next.name(),
        statistics: has_statistics.then(|| Statistics {
            period: PERIOD,
            elapsed,
            count,
            threshold: is_open.then_some(THRESHOLD),
            possible: is_open.then_some(PERIOD - THRESHOLD >= elapsed - count),
        }),
        signalling: has_statistics.then(|| period.iter().map(|signal| if *signal { '#' } else { '-' }).collect()),
    };
    let active_since = match (status, next) {
        (State::Active, _) => Some(since),
        (_, State::Active) => Some(height + 1),
        _ => None,
    };
    Some((bip9, active_since))
}

/// The version of the block after this one: Core's `ComputeBlockVersion`.
pub(crate) fn next_version(tree: &HeaderTree, id: NodeId, chain: Chain) -> i32 {
    const TOP_BITS: i32 = 0x2000_0000;
    if chain != Chain::Regtest {
        return TOP_BITS;
    }
    let signals: Vec<bool> = versions(tree, id).into_iter().map(is_signal).collect();
    match state_of(&signals, tree.height(id).0 + 1) {
        (State::Started | State::LockedIn, _) => TOP_BITS | 1 << BIT,
        _ => TOP_BITS,
    }
}

/// The versions of a block's chain, by height.
fn versions(tree: &HeaderTree, id: NodeId) -> Vec<i32> {
    let all = (0..=tree.height(id).0).filter_map(|height| tree.ancestor(id, Height(height)));
    all.map(|id| tree.header(id).version).collect()
}

/// The three top bits are 001, and the deployment's is set.
fn is_signal(version: i32) -> bool {
    let bits = version.cast_unsigned();
    bits >> 29 == 1 && bits >> BIT & 1 == 1
}

/// The state for the block of a height, and the height from which on it is that. Its start was before every block.
fn state_of(signals: &[bool], height: u32) -> (State, u32) {
    let (mut state, mut since) = (State::Defined, 0);
    // Decided at the end of each period, for the next.
    for end in (PERIOD..=height).step_by(PERIOD as usize) {
        let period = &signals[(end - PERIOD) as usize..end as usize];
        let count = period.iter().filter(|signal| **signal).count();
        let next = match state {
            State::Defined => State::Started,
            State::Started if count >= THRESHOLD as usize => State::LockedIn,
            State::Started => State::Started,
            State::LockedIn | State::Active => State::Active,
        };
        if next != state {
            (state, since) = (next, end);
        }
    }
    (state, since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_starts_locks_in_and_is_active() {
        let period = PERIOD as usize;
        let enough = [vec![true; THRESHOLD as usize], vec![false; period - THRESHOLD as usize]].concat();
        let few = [vec![true; THRESHOLD as usize - 1], vec![false; period + 1 - THRESHOLD as usize]].concat();
        let signals = [vec![true; period], few, enough, vec![false; 2 * period]].concat();
        for (height, state, since) in [
            (143, State::Defined, 0),
            (144, State::Started, 144),
            (431, State::Started, 144),
            (432, State::LockedIn, 432),
            (576, State::Active, 576),
            (719, State::Active, 576),
        ] {
            assert_eq!(state_of(&signals, height), (state, since), "{height}");
        }
        assert!(is_signal(0x3000_0000) && !is_signal(0x2000_0000) && !is_signal(0x7000_0000) && !is_signal(-1));
    }
}
