//! The result of an Electrum comparison: the types of the JSON file.
//!
//! Input: builds and queries as they end. Output: one document. Figures of the many scripts stand in columns beside [`ElectrumResults::scripts`], so that
//! a file of 3,000 scripts and four servers stays below a megabyte. Invariant: every column is as long as the list of scripts. Format:
//! `docs/formats/lab-electrum.md`, whose example a test reads and writes.

use crate::runs::results::{ChainFacts, Lab, LeftOut, MachineFacts, NetworkBytes, NodeFacts, Sample};
use serde::{Deserialize, Serialize};

/// Changes when a field changes its meaning or goes.
pub const FORMAT: u32 = 1;

/// Of [`ElectrumResults::experiment`].
pub const EXPERIMENT: &str = "electrum";

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ElectrumResults {
    pub format: u32,
    pub lab: Lab,
    /// [`EXPERIMENT`].
    pub experiment: String,
    /// Seconds since 1970.
    pub started: f64,
    pub machine: MachineFacts,
    pub chain: ChainFacts,
    pub settings: ElectrumSettings,
    /// The node below all servers.
    pub daemon: NodeFacts,
    pub servers: Vec<ServerResults>,
    pub left_out: Vec<LeftOut>,
    /// In the order in which they were asked for.
    pub scripts: Vec<ScriptFacts>,
    pub differences: Vec<Difference>,
    /// All servers that answered gave the same answers.
    pub is_agreed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElectrumSettings {
    /// After the first, cold one.
    pub passes: u32,
    /// Of the load.
    pub connections: Vec<u32>,
    pub load_seconds: u32,
    /// Scripts in one batch of the wallet load.
    pub batch: u32,
    pub timeout_seconds: u64,
    /// How the page cache was emptied before the first pass: `drop_caches`, `posix_fadvise`, or not at all.
    pub cache_emptied_by: Option<String>,
}

/// A script and what the chain holds of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptFacts {
    /// As the protocol names it: SHA-256 of the output script, reversed.
    pub scripthash: String,
    pub transactions: u32,
    pub utxos: u32,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerResults {
    pub facts: NodeFacts,
    /// As negotiated; `None` when it never answered.
    pub protocol: Option<String>,
    /// Why it has no figures, or not all.
    pub failure: Option<String>,
    pub log_end: Option<String>,
    pub build: Option<Build>,
    pub queries: Vec<Query>,
    pub loads: Vec<Load>,
    pub wallet: Option<WalletLoad>,
}

/// From the server's start on an empty index to the tip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Build {
    pub wall_seconds: f64,
    /// Of the server alone, user and system.
    pub cpu_seconds: f64,
    /// Of the node below it, for this server's questions.
    pub daemon_cpu_seconds: f64,
    pub peak_rss_bytes: u64,
    /// On the disk when it is built and the server has ended.
    pub index_bytes: u64,
    /// Of the node's own indexes that this server needs.
    pub daemon_index_bytes: u64,
    /// Pairs of script and transaction in the chain.
    pub postings: u64,
    pub network: Option<NetworkBytes>,
    pub is_disturbed: bool,
    pub samples: Vec<Sample>,
}

/// One question asked of every script, or of heights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// `balance`, `history`, `utxos`, `headers`, `merkle`.
    pub name: String,
    /// The method: `blockchain.scripthash.get_balance`.
    pub method: String,
    /// Milliseconds of the first pass, in the order of the scripts; `None`: no answer, or an error.
    pub cold_ms: Vec<Option<f64>>,
    /// The median of the other passes.
    pub warm_ms: Vec<Option<f64>>,
    /// SHA-256 over the answers in the order of the scripts, written in one form for all servers.
    pub answer_sha256: Option<String>,
    /// The first few errors, in the server's words.
    pub errors: Vec<String>,
}

/// Balance, history and UTXO lists of random scripts by many connections at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    pub connections: u32,
    pub requests: u64,
    pub errors: u64,
    pub seconds: f64,
    pub per_second: f64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

/// A wallet that subscribes to all its scripts at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WalletLoad {
    pub scripts: u32,
    pub batch: u32,
    pub seconds: f64,
    pub errors: u64,
}

/// Answers that are not the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    pub query: String,
    /// Of the script, or the height.
    pub what: String,
    /// Server and its answer, shortened.
    pub answers: Vec<(String, String)>,
}
