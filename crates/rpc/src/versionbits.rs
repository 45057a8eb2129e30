//! Deployments by the bits of versions (BIP-0009): Core's versionbits.cpp. Input: the header tree and a block. Output: the state of Core's one test
//! deployment, which regtest alone has; every real one is buried; and rules that most miners signal and this node does
//! not know. Cost: one look at every header of the block's chain.

use lydian_chain::HeaderTree;
use lydian_consensus::Chain;
use lydian_engine::NodeId;
use lydian_primitives::{BlockHash, Height};
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

/// Bits that a version has for deployments: Core's `VERSIONBITS_NUM_BITS`.
const BITS: u32 = 29;

/// Rules that have become active by the bits of versions, and that no deployment of this node names: Core's
/// `CheckUnknownActivations`.
#[derive(Clone, Debug, Default)]
pub struct UnknownRules {
    /// The last block of the period that was looked at last, and what was found.
    seen: Option<(BlockHash, Vec<u32>)>,
}

impl UnknownRules {
    /// Their bits, for the block after the tip. Looks at headers only if a period has ended since the last call.
    pub fn activated(&mut self, tree: &HeaderTree, chain: Chain) -> Vec<u32> {
        let rule = Unknown::of(chain);
        let periods = (tree.height(tree.tip()).0 + 1) / rule.period;
        let end = periods.checked_mul(rule.period).and_then(|end| end.checked_sub(1));
        let Some(end) = end.and_then(|end| tree.active(Height(end))) else { return Vec::new() };
        let hash = *tree.hash(end);
        if let Some((_, found)) = self.seen.as_ref().filter(|(seen, _)| *seen == hash) {
            return found.clone();
        }
        let version = |height| tree.active(Height(height)).map_or(0, |id| tree.header(id).version);
        let found = rule.activated(periods, chain, version);
        self.seen = Some((hash, found.clone()));
        found
    }
}

/// How unknown rules are recognised: Core's `WarningBitsConditionChecker`.
#[derive(Clone, Copy, Debug)]
struct Unknown {
    period: u32,
    threshold: u32,
    /// Core's `MinBIP9WarningHeight`.
    height_min: u32,
}

impl Unknown {
    fn of(chain: Chain) -> Unknown {
        // 90 % on the main network, 75 % of the period on the others.
        let (period, threshold, height_min) = match chain {
            Chain::Main => (2016, 1815, 711_648),
            Chain::Test => (2016, 1512, 2_013_984),
            Chain::Testnet4 | Chain::Signet => (2016, 1512, 0),
            Chain::Regtest => (PERIOD, THRESHOLD, 0),
        };
        Unknown { period, threshold, height_min }
    }

    /// The bits that are active after so many whole periods, by the version of each height.
    fn activated(self, periods: u32, chain: Chain, version: impl Fn(u32) -> i32) -> Vec<u32> {
        // In the first period nothing has started, and what is locked in by the last becomes active with the end of the
        // next.
        let first = (self.height_min / self.period).max(1);
        let mut signals = Vec::new();
        let mut active = [false; BITS as usize];
        if chain == Chain::Regtest {
            signals = (0..periods * self.period).map(|height| is_signal(version(height))).collect();
        }
        for period in first..periods.saturating_sub(1) {
            let mut counts = [0; BITS as usize];
            let start = period * self.period;
            // A deployment of this node explains its bit while it is not decided.
            let is_explained =
                chain == Chain::Regtest && matches!(state_of(&signals, start).0, State::Started | State::LockedIn);
            for height in start.max(self.height_min)..start + self.period {
                let bits = version(height).cast_unsigned();
                if bits >> BITS != 1 {
                    continue;
                }
                for bit in (0..BITS).filter(|bit| bits >> bit & 1 == 1 && !(is_explained && *bit == BIT)) {
                    counts[bit as usize] += 1;
                }
            }
            active.iter_mut().zip(counts).for_each(|(active, count)| *active |= count >= self.threshold);
        }
        (0..BITS).filter(|bit| active[*bit as usize]).collect()
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

    /// A bit that most blocks of a period signal is active one period later, unless a deployment explains it; the first
    /// period and the heights below the least do not count.
    #[test]
    fn unknown_rules_are_recognised() {
        let rule = Unknown::of(Chain::Regtest);
        let signalling = |from: u32, count: u32, bit: u32| {
            move |height: u32| if (from..from + count).contains(&height) { 0x2000_0000 | 1 << bit } else { 0x2000_0000 }
        };
        let active = |periods, version: &dyn Fn(u32) -> i32| rule.activated(periods, Chain::Regtest, version);
        let enough = signalling(PERIOD, THRESHOLD, 3);
        assert_eq!(active(2, &enough), [0; 0], "locked in");
        assert_eq!(active(3, &enough), [3]);
        assert_eq!(active(9, &enough), [3]);
        assert_eq!(active(9, &signalling(PERIOD, THRESHOLD - 1, 3)), [0; 0], "too few");
        assert_eq!(active(9, &signalling(0, PERIOD, 3)), [0; 0], "the first period");
        assert_eq!(active(9, &signalling(PERIOD, 2 * PERIOD, BIT)), [0; 0], "started, then locked in");
        assert_eq!(active(9, &signalling(PERIOD, 3 * PERIOD, BIT)), [BIT], "active, and still signalled");
        assert_eq!(active(9, &|_| 0x4000_0008), [0; 0], "other top bits");
        let high = Unknown { height_min: 3 * PERIOD, ..rule };
        assert_eq!(high.activated(9, Chain::Main, enough), [0; 0]);
        assert_eq!(high.activated(9, Chain::Main, signalling(3 * PERIOD, THRESHOLD, 28)), [28]);
    }

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
