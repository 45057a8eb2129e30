//! The heights from which the regtest of each implementation enforces its rules: an inactive rule is not a missing one.
//!
//! Input: the kind of a node. Output: the height, or that the rule is never active. Invariant: every rule that becomes
//! active does so before the groups of the chain. A kind that is not in the table has Core's heights: forks of Core
//! named in `lab.toml`. The table must never contain a guess; each line names its source.

use lydian_chains::presets::validity::Deployment;
use lydian_chains::regtest::VOTED_ACTIVATION_HEIGHT;

/// The regtest of one implementation.
#[derive(Debug)]
pub struct Regtest {
    /// As in `--nodes`.
    pub kind: &'static str,
    pub heights: &'static [(Deployment, From)],
    /// The source of the heights.
    pub source: &'static str,
}

/// The start of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Height(u32),
    /// Three periods of 144 blocks that all signal.
    Vote,
    Never,
    /// The implementation does not know the rule: its blocks are sent, and the result is reported.
    Unknown,
}

impl From {
    /// The height; `None` if never.
    pub fn height(self) -> Option<u32> {
        match self {
            From::Height(height) => Some(height),
            From::Vote => Some(VOTED_ACTIVATION_HEIGHT),
            From::Unknown => Some(0),
            From::Never => None,
        }
    }
}

use Deployment::{Bip34, Bip65, Bip66, Csv, Segwit, Taproot};

const AT_ONCE: &[(Deployment, From)] = &[
    (Bip34, From::Height(1)),
    (Bip65, From::Height(1)),
    (Bip66, From::Height(1)),
    (Csv, From::Height(1)),
    (Segwit, From::Height(0)),
    (Taproot, From::Height(0)),
];

/// Heights that Core had until 2021, and that other implementations copied.
const LATE_AND_NO_TAPROOT: &[(Deployment, From)] = &[
    (Bip34, From::Never),
    (Bip65, From::Height(1_351)),
    (Bip66, From::Height(1_251)),
    (Csv, From::Vote),
    (Segwit, From::Vote),
    (Taproot, From::Unknown),
];

/// The table.
pub const REGTESTS: &[Regtest] = &[
    Regtest {
        kind: "bitcoind",
        heights: AT_ONCE,
        source: "Bitcoin Core 31.99, src/kernel/chainparams.cpp, CRegTestParams",
    },
    Regtest {
        kind: "knots",
        heights: AT_ONCE,
        source: "Bitcoin Knots 29.4, src/kernel/chainparams.cpp, CRegTestParams",
    },
    Regtest { kind: "lydian", heights: AT_ONCE, source: "crates/consensus, the parameters of regtest" },
    Regtest {
        kind: "btcd",
        heights: &[
            (Bip34, From::Never),
            (Bip65, From::Height(1_351)),
            (Bip66, From::Height(1_251)),
            (Csv, From::Vote),
            (Segwit, From::Vote),
            (Taproot, From::Vote),
        ],
        source: "btcd 0.25.0, chaincfg/params.go, RegressionNetParams",
    },
    Regtest {
        kind: "bcoin",
        heights: LATE_AND_NO_TAPROOT,
        source: "bcoin 1.0.2, lib/protocol/networks.js, regtest.block",
    },
    Regtest {
        kind: "parity",
        heights: &[
            (Bip34, From::Never),
            (Bip65, From::Height(1_351)),
            (Bip66, From::Height(1_251)),
            (Csv, From::Height(0)),
            (Segwit, From::Vote),
            (Taproot, From::Unknown),
        ],
        source: "Parity Bitcoin, network/src/consensus.rs, ConsensusParams::new, Magic::Regtest",
    },
];

/// The height from which a node of this kind enforces the deployment; `None` if its regtest never does, according to
/// `source_of`.
pub fn active_from(kind: &str, deployment: Deployment) -> Option<u32> {
    let heights = REGTESTS.iter().find(|regtest| regtest.kind == kind).map_or(AT_ONCE, |regtest| regtest.heights);
    heights.iter().find(|(one, _)| *one == deployment).and_then(|(_, from)| from.height())
}

/// The source of the heights of this kind.
pub fn source_of(kind: &str) -> &'static str {
    REGTESTS.iter().find(|regtest| regtest.kind == kind).map_or("treated as a fork of Bitcoin Core", |one| one.source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_chains::presets::validity::TRUNK_HEIGHT;

    #[test]
    fn every_rule_has_begun_before_the_groups_or_never_will() {
        for regtest in REGTESTS {
            for deployment in [Bip34, Bip65, Bip66, Csv, Segwit, Taproot] {
                let found: Vec<_> = regtest.heights.iter().filter(|(one, _)| *one == deployment).collect();
                assert_eq!(found.len(), 1, "{} {deployment}", regtest.kind);
                assert!(
                    found[0].1.height().is_none_or(|height| height < TRUNK_HEIGHT),
                    "{} {deployment}",
                    regtest.kind
                );
            }
            assert!(!regtest.source.is_empty());
        }
        assert_eq!(active_from("btcd", Bip34), None);
        assert_eq!(active_from("a fork", Bip34), Some(1));
    }
}
