//! Finds rules that most miners signal with version bits and that this node does not know: Core's
//! `CheckUnknownActivations`.
//!
//! Input: the header tree. Output: their bits. Cost: reads every header of the active chain after the end of each
//! period.

use super::{Signals, State, is_signal};
use lydian_chain::HeaderTree;
use lydian_consensus::{Chain, Params};
use lydian_primitives::{BlockHash, Height};

/// Core's `DEPLOYMENT_TESTDUMMY` of regtest.
const BIT: u32 = 28;
const PERIOD: u32 = 144;
const THRESHOLD: u32 = 108;

/// Number of version bits for deployments: Core's `VERSIONBITS_NUM_BITS`.
const BITS: u32 = 29;

/// Rules that are locked in or active by version bits and belong to no deployment of this node: Core's
/// `CheckUnknownActivations`.
#[derive(Clone, Debug, Default)]
pub struct UnknownRules {
    /// The last block of the last period that was examined, and the result.
    seen: Option<(BlockHash, Vec<UnknownRule>)>,
}

/// An unknown rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRule {
    pub bit: u32,
    /// If false, it is locked in: active after the next period.
    pub is_active: bool,
}

impl UnknownRules {
    /// Returns the unknown rules for the block after the tip. Reads headers only if a period has ended since the last
    /// call.
    pub fn find(&mut self, tree: &HeaderTree, chain: Chain) -> Vec<UnknownRule> {
        let rule = Unknown::of(chain);
        let periods = (tree.height(tree.tip()).0 + 1) / rule.period;
        let end = periods.checked_mul(rule.period).and_then(|end| end.checked_sub(1));
        let Some(end) = end.and_then(|end| tree.active(Height(end))) else { return Vec::new() };
        let hash = *tree.hash(end);
        if let Some((_, found)) = self.seen.as_ref().filter(|(seen, _)| *seen == hash) {
            return found.clone();
        }
        let version = |height| tree.active(Height(height)).map_or(0, |id| tree.header(id).version);
        let found = rule.find(periods, chain, version);
        self.seen = Some((hash, found.clone()));
        found
    }
}

/// Parameters for recognising unknown rules: Core's `WarningBitsConditionChecker`.
#[derive(Clone, Copy, Debug)]
struct Unknown {
    period: u32,
    threshold: u32,
    /// Core's `MinBIP9WarningHeight`.
    height_min: u32,
}

impl Unknown {
    fn of(chain: Chain) -> Unknown {
        // 90 % on mainnet, 75 % of the period on the other chains.
        let (period, threshold, height_min) = match chain {
            Chain::Main => (2016, 1815, 711_648),
            Chain::Test => (2016, 1512, 2_013_984),
            Chain::Testnet4 | Chain::Signet => (2016, 1512, 0),
            Chain::Regtest => (PERIOD, THRESHOLD, 0),
        };
        Unknown { period, threshold, height_min }
    }

    /// Returns the rules that are locked in or active after `periods` whole periods, given the version at each height.
    fn find(self, periods: u32, chain: Chain, version: impl Fn(u32) -> i32) -> Vec<UnknownRule> {
        // Nothing has started in the first period, and a rule that the last period locks in becomes active at the end
        // of the next one.
        let first = (self.height_min / self.period).max(1);
        let mut flags = Vec::new();
        let mut found = [None::<bool>; BITS as usize];
        if chain == Chain::Regtest {
            flags = (0..periods * self.period).map(|height| is_signal(version(height), BIT)).collect();
        }
        // The deployment starts with the chain, so the times do not matter.
        let known = Params::new(chain).testdummy;
        let signals = Signals { flags, times: vec![known.start_time; periods as usize] };
        for period in first..periods {
            let mut counts = [0; BITS as usize];
            let start = period * self.period;
            // A deployment of this node explains its bit while it is started or locked in.
            let is_explained =
                chain == Chain::Regtest && matches!(signals.state(&known, start).0, State::Started | State::LockedIn);
            for height in start.max(self.height_min)..start + self.period {
                let bits = version(height).cast_unsigned();
                if bits >> BITS != 1 {
                    continue;
                }
                for bit in (0..BITS).filter(|bit| bits >> bit & 1 == 1 && !(is_explained && *bit == BIT)) {
                    counts[bit as usize] += 1;
                }
            }
            let is_active = period + 1 < periods;
            for (found, _) in found.iter_mut().zip(counts).filter(|(_, count)| *count >= self.threshold) {
                found.get_or_insert(is_active);
            }
        }
        let rules = (0..BITS).zip(found);
        rules.filter_map(|(bit, is_active)| Some(UnknownRule { bit, is_active: is_active? })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bit that most blocks of a period signal is active one period later, unless a deployment explains it. The first
    /// period and heights below the minimum do not count.
    #[test]
    fn unknown_rules_are_recognised() {
        let rule = Unknown::of(Chain::Regtest);
        let signalling = |from: u32, count: u32, bit: u32| {
            move |height: u32| if (from..from + count).contains(&height) { 0x2000_0000 | 1 << bit } else { 0x2000_0000 }
        };
        let bits = |rules: Vec<UnknownRule>, is_active: bool| -> Vec<u32> {
            rules.into_iter().filter(|rule| rule.is_active == is_active).map(|rule| rule.bit).collect()
        };
        let find = |periods, version: &dyn Fn(u32) -> i32| rule.find(periods, Chain::Regtest, version);
        let active = |periods, version: &dyn Fn(u32) -> i32| bits(find(periods, version), true);
        let enough = signalling(PERIOD, THRESHOLD, 3);
        assert_eq!(active(2, &enough), [0; 0]);
        assert_eq!(bits(find(2, &enough), false), [3], "locked in");
        assert_eq!(bits(find(3, &enough), false), [0; 0], "active");
        assert_eq!(active(3, &enough), [3]);
        assert_eq!(active(9, &enough), [3]);
        assert_eq!(active(9, &signalling(PERIOD, THRESHOLD - 1, 3)), [0; 0], "too few");
        assert_eq!(active(9, &signalling(0, PERIOD, 3)), [0; 0], "the first period");
        assert_eq!(active(9, &signalling(PERIOD, 2 * PERIOD, BIT)), [0; 0], "started, then locked in");
        assert_eq!(active(9, &signalling(PERIOD, 3 * PERIOD, BIT)), [BIT], "active, and still signalled");
        assert_eq!(active(9, &|_| 0x4000_0008), [0; 0], "other top bits");
        let high = Unknown { height_min: 3 * PERIOD, ..rule };
        assert_eq!(bits(high.find(9, Chain::Main, enough), true), [0; 0]);
        assert_eq!(bits(high.find(9, Chain::Main, signalling(3 * PERIOD, THRESHOLD, 28)), true), [28]);
    }
}
