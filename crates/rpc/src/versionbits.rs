//! Version bits deployments (BIP-0009): Core's versionbits.cpp.
//!
//! Input: the header tree, a block and the deployment. Output: its state for the block and for the next one. Core has
//! one deployment, for tests; all real ones are buried. Cost: reads every header of the block's chain if the deployment
//! is enabled.

mod unknown;

pub use unknown::{UnknownRule, UnknownRules};

use crate::result::{Time, result};
use lydian_chain::HeaderTree;
use lydian_consensus::{HeaderView, VersionBits};
use lydian_engine::HeaderId;
use lydian_primitives::Height;

result! {
    /// A deployment in the answer of `getdeploymentinfo`.
    pub(crate) struct Bip9 {
        /// the bit (0-28) in the block version field used to signal this softfork (only for "started" and "locked_in"
        /// status)
        bit: Option<u32>,
        /// the minimum median time past of a block at which the bit gains its meaning
        start_time: Time<i64>,
        /// the median time past of a block at which the deployment is considered failed if not yet locked in
        timeout: Time<i64>,
        /// minimum height of blocks for which the rules may be enforced
        min_activation_height: i32,
        /// status of deployment at specified block (one of "defined", "started", "locked_in", "active", "failed")
        status: &'static str,
        /// height of the first block to which the status applies
        since: u32,
        /// status of deployment at the next block
        status_next: &'static str,
        /// numeric statistics about signalling for a softfork (only for "started" and "locked_in" status)
        statistics: Option<Statistics>,
        /// indicates blocks that signalled with a # and blocks that did not with a -
        signalling: Option<String>,
    }
}

result! {
    struct Statistics {
        /// the length in blocks of the signalling period
        period: u32,
        /// the number of blocks elapsed since the beginning of the current period
        elapsed: u32,
        /// the number of blocks with the version bit set in the current period
        count: u32,
        /// the number of blocks with the version bit set required to activate the feature (only for "started" status)
        threshold: Option<u32>,
        /// returns false if there are not enough blocks left in this period to pass activation threshold (only for
        /// "started" status)
        possible: Option<bool>,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Defined,
    Started,
    LockedIn,
    Active,
    Failed,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Defined => "defined",
            State::Started => "started",
            State::LockedIn => "locked_in",
            State::Active => "active",
            State::Failed => "failed",
        }
    }
}

/// The inputs of the state machine: the headers of a chain, by height.
struct Signals {
    /// Whether each block signals.
    flags: Vec<bool>,
    /// Median time past of the last block of each period.
    times: Vec<i64>,
}

impl Signals {
    fn new(tree: &HeaderTree, id: HeaderId, deployment: &VersionBits) -> Signals {
        let branch = tree.branch(id);
        let last = tree.height(id).0;
        let ids = (0..=last).filter_map(|height| tree.ancestor(id, Height(height)));
        let ends = (deployment.period..=last.saturating_add(1)).step_by(deployment.period as usize);
        Signals {
            flags: ids.map(|id| is_signal(tree.header(id).version, deployment.bit)).collect(),
            times: ends.map(|end| branch.median_time_past(Height(end - 1)).unwrap_or(0)).collect(),
        }
    }

    /// The state for the block at a height, and the height since which it has been in that state.
    fn state(&self, deployment: &VersionBits, height: u32) -> (State, u32) {
        let VersionBits { start_time, timeout, min_activation_height, threshold, period, .. } = *deployment;
        match start_time {
            VersionBits::ALWAYS_ACTIVE => return (State::Active, 0),
            VersionBits::NEVER_ACTIVE => return (State::Failed, 0),
            _ => {}
        }
        let (mut state, mut since) = (State::Defined, 0);
        // Decided at the end of each period, for the next one.
        let ends = (period..=height).step_by(period as usize);
        for (end, time) in ends.zip(&self.times) {
            let signals = &self.flags[(end - period) as usize..end as usize];
            let count = signals.iter().filter(|signal| **signal).count();
            let next = match state {
                State::Defined if *time >= start_time => State::Started,
                State::Started if count >= threshold as usize => State::LockedIn,
                State::Started if *time >= timeout => State::Failed,
                State::LockedIn if i64::from(end) >= i64::from(min_activation_height) => State::Active,
                same => same,
            };
            if next != state {
                (state, since) = (next, end);
            }
        }
        (state, since)
    }
}

/// The state of the test deployment for the block, and the height from which it is active, if known. `None` if it can
/// never be active.
pub(crate) fn testdummy(tree: &HeaderTree, id: HeaderId, deployment: &VersionBits) -> Option<(Bip9, Option<u32>)> {
    if !deployment.is_enabled() {
        return None;
    }
    let VersionBits { bit, start_time, timeout, min_activation_height, threshold, period } = *deployment;
    let height = tree.height(id).0;
    let signals = Signals::new(tree, id, deployment);
    let (status, since) = signals.state(deployment, height);
    let (next, _) = signals.state(deployment, height.saturating_add(1));
    let has_statistics = matches!(status, State::Started | State::LockedIn);
    let signalling = &signals.flags[(height - height % period) as usize..];
    let count = u32::try_from(signalling.iter().filter(|signal| **signal).count()).unwrap_or(0);
    let elapsed = u32::try_from(signalling.len()).unwrap_or(0);
    let is_open = status == State::Started;
    let bip9 = Bip9 {
        bit: has_statistics.then_some(bit),
        start_time: Time(start_time),
        timeout: Time(timeout),
        min_activation_height,
        status: status.name(),
        since,
        status_next: next.name(),
        statistics: has_statistics.then(|| Statistics {
            period,
            elapsed,
            count,
            threshold: is_open.then_some(threshold),
            possible: is_open.then_some(period - threshold >= elapsed - count),
        }),
        signalling: has_statistics.then(|| signalling.iter().map(|signal| if *signal { '#' } else { '-' }).collect()),
    };
    let active_since = match (status, next) {
        (State::Active, _) => Some(since),
        (_, State::Active) => Some(height + 1),
        _ => None,
    };
    Some((bip9, active_since))
}

/// What the test deployment means for the block after another: Core's `ComputeBlockVersion` and `GBTStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signalling {
    /// The bit that signals, while the deployment is started or locked in.
    pub(crate) bit: Option<u32>,
    pub(crate) is_locked_in: bool,
    pub(crate) is_active: bool,
}

impl Signalling {
    pub(crate) fn after(tree: &HeaderTree, id: HeaderId, deployment: &VersionBits) -> Signalling {
        let none = Signalling { bit: None, is_locked_in: false, is_active: false };
        if !deployment.is_enabled() {
            return none;
        }
        match Signals::new(tree, id, deployment).state(deployment, tree.height(id).0.saturating_add(1)).0 {
            State::Started => Signalling { bit: Some(deployment.bit), ..none },
            State::LockedIn => Signalling { bit: Some(deployment.bit), is_locked_in: true, ..none },
            State::Active => Signalling { is_active: true, ..none },
            State::Defined | State::Failed => none,
        }
    }

    /// The bits of the version that signal.
    pub(crate) fn mask(self) -> i32 {
        self.bit.map_or(0, |bit| 1 << bit)
    }

    /// The version of the block.
    pub(crate) fn version(self) -> i32 {
        const TOP_BITS: i32 = 0x2000_0000;
        TOP_BITS | self.mask()
    }
}

/// Whether the top three bits are 001 and the deployment's bit is set.
fn is_signal(version: i32, bit: u32) -> bool {
    let bits = version.cast_unsigned();
    bits >> 29 == 1 && bits >> bit & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_consensus::{Chain, Params};

    const TIME: i64 = 1_000;

    fn deployment(setting: &str) -> VersionBits {
        Params::new(Chain::Regtest).with_version_bits(setting).unwrap().testdummy
    }

    #[test]
    fn a_deployment_starts_locks_in_and_is_active() {
        let regtest = Params::new(Chain::Regtest).testdummy;
        let (period, threshold) = (regtest.period as usize, regtest.threshold as usize);
        let enough = [vec![true; threshold], vec![false; period - threshold]].concat();
        let few = [vec![true; threshold - 1], vec![false; period + 1 - threshold]].concat();
        let flags = [vec![true; period], few, enough, vec![false; 2 * period]].concat();
        let signals = Signals { times: vec![TIME; flags.len() / period], flags };
        let check = |deployment: &VersionBits, expected: &[(u32, State, u32)]| {
            for (height, state, since) in expected {
                assert_eq!(signals.state(deployment, *height), (*state, *since), "{height}");
            }
        };
        check(
            &regtest,
            &[
                (143, State::Defined, 0),
                (144, State::Started, 144),
                (431, State::Started, 144),
                (432, State::LockedIn, 432),
                (576, State::Active, 576),
                (719, State::Active, 576),
            ],
        );
        check(
            &deployment("testdummy:0:9999:700"),
            &[(432, State::LockedIn, 432), (576, State::LockedIn, 432), (720, State::Active, 720)],
        );
        check(&deployment("testdummy:1000:1000"), &[(144, State::Started, 144), (288, State::Failed, 288)]);
        check(&deployment("testdummy:1001:9999"), &[(720, State::Defined, 0)]);
        check(&deployment("testdummy:-1:0"), &[(0, State::Active, 0), (720, State::Active, 0)]);
        check(&deployment("testdummy:-2:0"), &[(720, State::Failed, 0)]);
        assert!(is_signal(0x3000_0000, 28) && !is_signal(0x2000_0000, 28) && !is_signal(0x7000_0000, 28));
        assert!(!is_signal(-1, 28));
    }
}
