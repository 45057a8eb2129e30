//! The result of an Electrum comparison: the types of the JSON file.
//!
//! Input: builds and queries as they end. Output: one document. Figures of the many scripts are in columns parallel to
//! [`ElectrumResults::scripts`], so that a file of 3,000 scripts and four servers stays small. Invariant: every column
//! is as long as the list of scripts, or as [`Query::heights`]. Format: `docs/formats/lab-electrum.md`, whose example a
//! test reads and writes.

use crate::error::ReportError;
use crate::limits::ELECTRUM_RESULTS_BYTES_MAX;
use crate::results::{ChainFacts, Lab, LeftOut, Machine, MachineFacts, NetworkBytes, NodeFacts, Sample};
use lydian_disk::{RealDisk, read_whole};
use serde::{Deserialize, Serialize};
use serde_json::ser::Formatter;
use std::io;
use std::path::Path;

/// Changes when a field changes its meaning or is removed.
pub const FORMAT: u32 = 1;

/// The value of [`ElectrumResults::experiment`].
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
    /// In the order in which they were queried.
    pub scripts: Vec<ScriptFacts>,
    pub differences: Vec<Difference>,
    /// All answers of all servers are those that follow from the blocks; lists of coins may be in any order.
    pub is_agreed: bool,
    /// What `lydian-lab thin` removed; absent from a complete file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinned: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElectrumSettings {
    /// Passes after the first, cold one.
    pub passes: u32,
    /// Numbers of connections in the loads.
    pub connections: Vec<u32>,
    pub load_seconds: u32,
    /// Scripts in one batch of the wallet load.
    pub batch: u32,
    /// For one answer, or one batch.
    pub timeout_seconds: u64,
    /// All passes of one query of one server take at most about this long. Scripts and passes that do not fit are left
    /// out, and [`Query`] records it.
    pub query_seconds_max: u64,
    /// The newest protocol version that is requested from servers.
    pub protocol_max: String,
    /// Whether Esplora's REST API was measured too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub esplora: bool,
    /// How the page cache was emptied before the first pass: `drop_caches`, `posix_fadvise`, or not at all.
    pub cache_emptied_by: Option<String>,
}

/// A script and its use in the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptFacts {
    /// The protocol's name for the script: SHA-256 of the output script, reversed.
    pub scripthash: String,
    pub transactions: u32,
    pub utxos: u32,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerResults {
    pub facts: NodeFacts,
    /// As negotiated; `None` if the server never answered.
    pub protocol: Option<String>,
    /// Why there are no figures, or not all.
    pub failure: Option<String>,
    pub log_end: Option<String>,
    pub build: Option<Build>,
    /// The peak while it answered queries.
    pub serving_peak_rss_bytes: Option<u64>,
    pub queries: Vec<Query>,
    pub loads: Vec<Load>,
    pub wallet: Option<WalletLoad>,
    /// How the machine's time was used during the queries; the node's share is that of the server and the node below
    /// it.
    pub machine: Machine,
    /// The first error of each load and of the wallet, in words.
    pub notes: Vec<String>,
}

impl ServerResults {
    /// Results without any figures.
    pub fn new(facts: NodeFacts) -> ServerResults {
        ServerResults {
            facts,
            protocol: None,
            failure: None,
            log_end: None,
            build: None,
            serving_peak_rss_bytes: None,
            queries: Vec::new(),
            loads: Vec::new(),
            wallet: None,
            machine: Machine::default(),
            notes: Vec::new(),
        }
    }
}

/// The work from the server's start on an empty index to the tip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Build {
    pub wall_seconds: f64,
    /// User and system time of the server only.
    pub cpu_seconds: f64,
    /// CPU time of the node below, for the requests of this server.
    pub daemon_cpu_seconds: f64,
    pub peak_rss_bytes: u64,
    /// Size on disk after the build, when the server has ended.
    pub index_bytes: u64,
    /// Size of the node's own indexes that this server needs.
    pub daemon_index_bytes: u64,
    /// Pairs of script and transaction in the chain.
    pub postings: u64,
    pub network: Option<NetworkBytes>,
    pub is_disturbed: bool,
    pub samples: Vec<Sample>,
}

/// One query for every script, or for heights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// `balance`, `history`, `utxos`, `headers`, `merkle`, or one of Esplora's paths.
    pub name: String,
    /// The method: `blockchain.scripthash.get_balance`; or the path: `/scripthash/:hash/utxo`.
    pub method: String,
    /// What the columns refer to if not to the scripts: heights of first headers, or of blocks.
    pub heights: Vec<u32>,
    /// Milliseconds of the first pass, in the order of the scripts; `None` if not queried, without an answer, or with
    /// an error.
    pub cold_ms: Vec<Option<f64>>,
    /// The median of the other passes.
    pub warm_ms: Vec<Option<f64>>,
    /// Other passes over everything that was queried; fewer than in the settings if time was short.
    pub passes: u32,
    /// Scripts left out because time was short.
    pub not_asked: u32,
    /// Answers that differ from those that follow from the blocks.
    pub wrong: u32,
    /// Lists of coins with the right entries in another order than the protocol's.
    pub misordered: u32,
    /// SHA-256 over the SHA-256 of each answer, in the order of the scripts. Answers are in a form common to all
    /// servers, with lists of coins sorted. `None` if one is missing.
    pub answer_sha256: Option<String>,
    /// The first few errors, in the server's words.
    pub errors: Vec<String>,
}

/// Balance, history and UTXO lists of random scripts, over many connections at once.
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

/// Answers that differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    pub query: String,
    /// The script, or the height.
    pub what: String,
    /// Server and its answer, shortened.
    pub answers: Vec<(String, String)>,
}

impl Query {
    /// The number of queries that were sent but got no answer that could be compared.
    pub fn unanswered(&self) -> usize {
        let answered = self.cold_ms.iter().flatten().count() + usize::try_from(self.not_asked).unwrap_or(0);
        self.cold_ms.len().saturating_sub(answered)
    }
}

impl ServerResults {
    /// Whether the server answered everything correctly: single queries, loads and the wallet.
    pub fn is_right(&self) -> bool {
        let queries = self.queries.iter().all(|query| query.wrong == 0 && query.unanswered() == 0);
        let loads = self.loads.iter().all(|load| load.errors == 0);
        self.failure.is_none() && queries && loads && self.wallet.as_ref().is_some_and(|wallet| wallet.errors == 0)
    }
}

impl ElectrumResults {
    /// Writes one line per field, and lists on one line.
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        let mut writer = serde_json::Serializer::with_formatter(&mut out, ListsInline::default());
        // Writing to memory cannot fail.
        let _ = self.serialize(&mut writer);
        out.push(b'\n');
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Reads a file written by [`ElectrumResults::to_json`] of this version, or of an earlier one with the same format.
    pub fn read(path: &Path) -> Result<ElectrumResults, ReportError> {
        let bytes = read_whole(&RealDisk, path, ELECTRUM_RESULTS_BYTES_MAX)?;
        ElectrumResults::parse(&bytes).map_err(|reason| ReportError::Usage(format!("{}: {reason}", path.display())))
    }

    fn parse(bytes: &[u8]) -> Result<ElectrumResults, String> {
        let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| format!("not JSON: {error}"))?;
        let experiment = value.get("experiment").and_then(serde_json::Value::as_str).unwrap_or("none");
        if experiment != EXPERIMENT {
            return Err(format!("the results of another experiment ({experiment}), not of `lydian-lab electrum`"));
        }
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => return Err(format!("format {format}, this lab reads format {FORMAT}")),
            None => return Err("it has no format number".to_owned()),
        }
        let results: ElectrumResults = serde_json::from_value(value).map_err(|error| error.to_string())?;
        let scripts = results.scripts.len();
        for server in &results.servers {
            for query in &server.queries {
                let columns = if query.heights.is_empty() { scripts } else { query.heights.len() };
                if query.cold_ms.len() != columns || query.warm_ms.len() != columns {
                    let name = &server.facts.name;
                    return Err(format!("{name}, {}: the columns do not have {columns} entries", query.name));
                }
            }
        }
        Ok(results)
    }
}

/// Indents by two spaces per level, and writes a list of numbers on one line.
#[derive(Default)]
struct ListsInline {
    depth: usize,
    has_fields: bool,
}

impl ListsInline {
    fn line<W: ?Sized + io::Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for ListsInline {
    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.has_fields = false;
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        if self.has_fields {
            self.line(writer)?;
        }
        writer.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        if !is_first {
            writer.write_all(b",")?;
        }
        self.line(writer)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_fields = true;
        Ok(())
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        writer.write_all(if is_first { b"" } else { b", " })
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests read and write their own files")]
mod tests {
    use super::*;
    use crate::electrum::to_markdown;
    use crate::names_in;

    const DOCUMENT: &str = include_str!("../../../../docs/formats/lab-electrum.md");

    fn printed() -> &'static str {
        let (_, rest) = DOCUMENT.split_once("```json\n").unwrap();
        rest.split_once("```").unwrap().0
    }

    fn example() -> ElectrumResults {
        ElectrumResults::parse(printed().as_bytes()).unwrap()
    }

    #[test]
    fn a_server_is_right_when_everything_was_answered_rightly() {
        let server = || example().servers.into_iter().find(|server| server.facts.name == "electrs").unwrap();
        assert!(server().is_right());
        let broken: [fn(&mut ServerResults); 6] = [
            |server| server.failure = Some("it ended".into()),
            |server| server.queries[0].wrong = 1,
            |server| server.queries[0].cold_ms[0] = None,
            |server| server.loads[0].errors = 1,
            |server| server.wallet = None,
            |server| server.wallet.as_mut().unwrap().errors = 1,
        ];
        for (number, break_it) in broken.iter().enumerate() {
            let mut other = server();
            break_it(&mut other);
            assert!(!other.is_right(), "{number}");
        }
        let mut short_of_time = server();
        short_of_time.queries[0].cold_ms[0] = None;
        short_of_time.queries[0].not_asked = 1;
        assert!(short_of_time.is_right(), "what was not asked is not unanswered");
    }

    /// The example stays the same to the byte when it is read and written again, and every field is mentioned in its
    /// document or in that of the other experiments.
    #[test]
    fn the_example_of_the_document_round_trips() {
        assert_eq!(example().to_json(), printed(), "{}", example().to_json());
        let others = include_str!("../../../../docs/formats/lab-results.md");
        let mut names = Vec::new();
        names_in(&serde_json::from_str(printed()).unwrap(), &mut names);
        names.retain(|name| ![DOCUMENT, others].iter().any(|text| text.contains(&format!("`{name}`"))));
        assert!(names.is_empty(), "fields without a word about them: {names:?}");
    }

    #[test]
    fn the_table_of_the_document_is_that_of_its_example() {
        let (_, table) = DOCUMENT.split_once("```text\n").unwrap();
        let table = table.split_once("```").unwrap().0;
        assert_eq!(to_markdown(&example()), table, "{}", to_markdown(&example()));
    }

    #[test]
    fn a_file_of_another_kind_is_reported() {
        let change = |from: &str, to: &str| {
            let text = printed().replacen(from, to, 1);
            assert_ne!(text, printed(), "{from}");
            ElectrumResults::parse(text.as_bytes()).unwrap_err()
        };
        assert_eq!(change("\"format\": 1", "\"format\": 2"), "format 2, this lab reads format 1");
        assert!(
            change("\"experiment\": \"electrum\"", "\"experiment\": \"sync\"").contains("another experiment (sync)")
        );
        assert!(change("\"is_agreed\"", "\"is_greed\"").contains("is_agreed"));
        assert!(change("\"cold_ms\": [", "\"cold_ms\": [1.0, ").contains("electrs, balance: the columns"));
        assert!(ElectrumResults::parse(&printed().as_bytes()[..200]).unwrap_err().starts_with("not JSON"));
        assert!(ElectrumResults::parse(b"{}").unwrap_err().contains("another experiment (none)"));
    }

    /// limit: ELECTRUM_RESULTS_BYTES_MAX at
    /// limit: ELECTRUM_RESULTS_BYTES_MAX above
    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = std::env::temp_dir().join(format!("lydian-lab-electrum-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("results.json");
        std::fs::write(&path, printed()).unwrap();
        assert_eq!(ElectrumResults::read(&path).unwrap(), example());
        // The rest are zeros, which occupy no space on disk.
        let of_size = |size: u64| {
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(size).unwrap();
            ElectrumResults::read(&path).unwrap_err().to_string()
        };
        assert!(of_size(ELECTRUM_RESULTS_BYTES_MAX).contains("not JSON"));
        assert!(!of_size(ELECTRUM_RESULTS_BYTES_MAX + 1).contains("not JSON"));
        let missing = ElectrumResults::read(&folder.join("absent")).unwrap_err().to_string();
        assert!(missing.contains("absent"), "{missing}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
