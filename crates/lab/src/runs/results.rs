//! The result of a comparison: the types of the JSON file, and which runs count.
//!
//! Input: runs as they end. Output: one document. Invariant: a run counts only with the right answer; the summary is made of runs that count
//! and nothing else. Format: `docs/formats/lab-results.md`, whose example a test reads and writes.

use super::procfs::Io;
use serde::{Deserialize, Serialize};

/// Changes when a field changes its meaning or goes.
pub const FORMAT: u32 = 1;

/// A run is disturbed when others used more than this share of the machine.
pub const OTHERS_SHARE_MAX: f64 = 0.05;

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    pub format: u32,
    pub lab: Lab,
    pub experiment: Experiment,
    /// Seconds since 1970.
    pub started: f64,
    pub machine: MachineFacts,
    pub chain: ChainFacts,
    pub settings: Settings,
    pub floor: Option<Floor>,
    pub nodes: Vec<NodeFacts>,
    /// Who gave the chain; of a sync.
    pub servers: Vec<NodeFacts>,
    /// Systems of the published benchmarks that took no part, so that no table is silent about them.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// What every run had to end with; `None` when nothing told and no two nodes agreed.
    pub expected: Option<Answer>,
    /// All runs that ended gave the expected answer, and there was one.
    pub is_agreed: bool,
    pub runs: Vec<Run>,
    pub summary: Vec<Summary>,
    /// What `lydian-lab thin` left out; `None` in a file as it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinned: Option<String>,
}

/// Where the nodes have the chain from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Experiment {
    /// Block files of their own.
    Reindex,
    /// A peer on loopback, or several.
    Sync,
}

/// A system that took no part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// As people call it: `Gocoin`.
    pub name: String,
    /// What it is or what is missing here: one sentence.
    pub reason: String,
    /// Where that is written; `None` when the reason is this machine.
    pub source: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lab {
    pub version: String,
    /// Of the checkout around the program, with `-dirty` when it has changes; `None` outside one.
    pub commit: Option<String>,
    pub command_line: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineFacts {
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: Option<u64>,
    pub kernel: String,
    /// Of the folder in which the nodes work.
    pub filesystem: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainFacts {
    /// `None` for files that the lab did not make.
    pub preset: Option<String>,
    pub network: String,
    /// SHA-256 over the names, sizes and contents of the block files, in the order of their names.
    pub sha256: String,
    pub file_bytes: u64,
    pub height: u32,
    pub tip: String,
    pub transactions: Option<u64>,
    pub inputs: Option<u64>,
    #[serde(default)]
    pub outputs: Option<u64>,
    pub ecdsa_verifications: Option<u64>,
    pub schnorr_verifications: Option<u64>,
    pub tweak_checks: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub runs: u32,
    pub threads: usize,
    pub cache_mib: u64,
    pub timeout_seconds: u64,
    pub memory_max_bytes: u64,
    /// A node that leaves less of the disk free is ended.
    #[serde(default)]
    pub disk_free_min_bytes: u64,
}

/// What no node that checks signatures one at a time can go below: (verifications + tweak checks) x measured time / threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    pub ecdsa_ns: f64,
    pub schnorr_ns: f64,
    pub tweak_ns: f64,
    pub threads: usize,
    pub seconds: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeFacts {
    pub name: String,
    pub program: String,
    pub version: String,
    /// Of the file `program`: two builds may tell the same version. `None` where it could not be read, or in a file from before it was told.
    #[serde(default)]
    pub program_sha256: Option<String>,
    #[serde(default)]
    pub program_bytes: Option<u64>,
    /// Of every run; `DATADIR` stands for its data directory, port 0 for a free one.
    pub arguments: Vec<String>,
    /// In a sync: the server's name, and the shapes of the connections to it where there are any.
    pub source: Option<String>,
    /// Why it takes no part: what the node is, not what is missing here.
    pub cannot: Option<String>,
    /// What a reader of its figures must know: no taproot, no UTXO hash, settings that mean something else.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Which broken rules it accepts; `None` where nobody asked it.
    #[serde(default)]
    pub validity: Option<Validity>,
}

impl NodeFacts {
    /// Figures of one name belong together only if this is the same: the version that the program tells, and its file.
    pub fn build(&self) -> (&str, Option<&str>, Option<u64>) {
        (&self.version, self.program_sha256.as_deref(), self.program_bytes)
    }
}

/// What a node did with blocks that each break one rule, above the heights at which its regtest enforces them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    /// Over the blocks in the order in which they were given.
    pub sha256: String,
    pub cases: Vec<Case>,
    /// Rules that its regtest enforces and that it was not asked for, since it died, hung or got lost before.
    #[serde(default)]
    pub unasked: usize,
    /// Why there are no cases, or not all.
    pub reason: Option<String>,
}

/// One broken block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// As in the chain's expectations: `taproot-key-path-false-signature`.
    pub name: String,
    /// What it breaks, for people, also the column of a table: `Schnorr key path`.
    pub rule: String,
    pub height: u32,
    /// `true`: the node took the block.
    pub is_accepted: bool,
    /// What it said of the block.
    pub said: String,
}

impl Validity {
    /// It was asked for every rule that its regtest enforces.
    pub fn is_whole(&self) -> bool {
        !self.cases.is_empty() && self.unasked == 0
    }

    /// The rules whose broken blocks it took, for a table: `not validating: Schnorr key path, tapscript`.
    pub fn not_validated(&self) -> Vec<&str> {
        self.cases.iter().filter(|case| case.is_accepted).map(|case| case.rule.as_str()).collect()
    }
}

/// What a node says after the measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub height: u32,
    pub tip: String,
    pub coins: Option<u64>,
    /// Core's `hash_serialized_3`, as shown; `None` from a node that cannot tell it.
    pub utxo_hash: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    Warm,
    Cold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Ended by itself at the tip, with the expected answer.
    Counted,
    WrongAnswer,
    /// Ended before the tip, or with an error, or gave no answer.
    Failed,
    TimedOut,
    MemoryExceeded,
    /// It left too little of the disk free.
    DiskFull,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub node: String,
    /// From 1, of this node and this state of the cache.
    pub number: u32,
    pub cache: Cache,
    /// How the cache was emptied: `drop_caches` (all of the system's) or `posix_fadvise` (the files of the run).
    pub cache_emptied_by: Option<String>,
    pub outcome: Outcome,
    /// Why it does not count.
    pub reason: Option<String>,
    /// `None` when a signal ended it, or the lab.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The end of its log, where it does not count.
    pub log_end: Option<String>,
    /// To the log line with the tip, where the node has such lines.
    pub tip_seconds: Option<f64>,
    /// To the end of the process.
    pub wall_seconds: f64,
    pub user_seconds: f64,
    pub system_seconds: f64,
    pub peak_rss_bytes: u64,
    pub io: Io,
    /// The data directory at the end, block files included.
    pub disk_bytes: u64,
    /// Of a sync whose server counts what it sends.
    #[serde(default)]
    pub network: Option<NetworkBytes>,
    /// CPU by stage, of a node that tells it.
    #[serde(default)]
    pub stages: Vec<Stage>,
    pub machine: Machine,
    /// Others used more than 5 % of the machine, or nobody could tell.
    pub is_disturbed: bool,
    pub answer: Option<Answer>,
    pub samples: Vec<Sample>,
}

impl Run {
    /// One that could not begin.
    pub fn not_started(node: &str, number: u32, cache: Cache, reason: String) -> Run {
        Run {
            node: node.to_owned(),
            number,
            cache,
            cache_emptied_by: None,
            outcome: Outcome::Failed,
            reason: Some(reason),
            exit_code: None,
            log_end: None,
            tip_seconds: None,
            wall_seconds: 0.0,
            user_seconds: 0.0,
            system_seconds: 0.0,
            peak_rss_bytes: 0,
            io: Io::default(),
            disk_bytes: 0,
            network: None,
            stages: Vec::new(),
            machine: Machine::default(),
            is_disturbed: false,
            answer: None,
            samples: Vec::new(),
        }
    }
}

/// Of one run, as its server counted them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkBytes {
    /// From the server to the node.
    pub received: u64,
    pub sent: u64,
}

/// What one stage of a node's pipeline cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    pub name: String,
    pub cpu_seconds: f64,
}

/// How the machine's time went during a run; `None` where the system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub idle_share: Option<f64>,
    pub node_share: Option<f64>,
    /// Neither idle, nor the node, nor the lab; steal included.
    pub others_share: Option<f64>,
    /// Taken by the host for other machines.
    pub steal_share: Option<f64>,
}

impl Machine {
    pub fn is_disturbed(&self) -> bool {
        self.others_share.is_none_or(|share| share > OTHERS_SHARE_MAX)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub seconds: f64,
    pub height: Option<u32>,
    pub rss_bytes: u64,
    pub cpu_seconds: f64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// Every fourth sample has it.
    pub disk_bytes: Option<u64>,
}

/// A median with its least and largest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Between the two middle values of an even number. `None` of nothing.
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let lower = if values.len().is_multiple_of(2) { *values.get(middle - 1)? } else { upper };
        let median = rounded(f64::midpoint(lower, upper));
        Some(Spread { median, min: rounded(*values.first()?), max: rounded(*values.last()?) })
    }
}

/// To a millionth: finer than anything measured here, and every reader of the file gets the very same number.
pub fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// The runs of one node in one state of the cache that count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub node: String,
    pub cache: Cache,
    pub runs_counted: usize,
    pub runs_disturbed: usize,
    pub runs_not_counted: usize,
    pub figures: Option<Figures>,
}

/// Over the runs that count. Wall time is that to the end of the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub wall_seconds: Spread,
    pub tip_seconds: Option<Spread>,
    pub cpu_seconds: Spread,
    pub peak_rss_bytes: Spread,
    pub read_bytes: Spread,
    pub write_bytes: Spread,
    pub disk_bytes: Spread,
    #[serde(default)]
    pub received_bytes: Option<Spread>,
    pub idle_share: Option<Spread>,
    pub blocks_per_second: f64,
    pub inputs_per_second: Option<f64>,
    /// Median wall time against that of the first node in the same state of the cache.
    pub wall_ratio: Option<f64>,
    pub cpu_ratio: Option<f64>,
    pub floor_ratio: Option<f64>,
}

impl Results {
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// What an earlier part of the same comparison knows and this one need not find again.
    pub(super) fn take_over(&mut self, earlier: &Results) {
        self.started = earlier.started;
        self.floor = earlier.floor.clone().or_else(|| self.floor.take());
        for (node, was) in self.nodes.iter_mut().zip(&earlier.nodes).filter(|(node, was)| node.build() == was.build()) {
            node.validity = was.validity.clone();
        }
    }

    /// Decides what was expected if nobody foretold it, which runs count, and makes the summary.
    pub fn settle(&mut self, foretold: Option<&Answer>) {
        self.expected = foretold.cloned().or_else(|| agreed(&self.runs, self.nodes.len()));
        for run in &mut self.runs {
            let Some(answer) = &run.answer else { continue };
            let is_right = self.expected.as_ref().is_some_and(|expected| expected.matches(answer));
            run.outcome = if is_right { Outcome::Counted } else { Outcome::WrongAnswer };
            run.reason = (!is_right).then(|| match &self.expected {
                Some(expected) => format!("it ends with {answer}, expected was {expected}"),
                None => format!("it ends with {answer}, and no two nodes agree"),
            });
            run.log_end = run.log_end.take().filter(|_| !is_right);
        }
        self.is_agreed = self.expected.is_some() && self.runs.iter().all(|run| run.outcome != Outcome::WrongAnswer);
        self.summary = super::summary::summarise(self);
    }
}

impl Answer {
    /// Equal in what both know.
    pub fn matches(&self, other: &Answer) -> bool {
        let coins_differ = matches!((self.coins, other.coins), (Some(mine), Some(yours)) if mine != yours);
        let sets_differ = matches!((&self.utxo_hash, &other.utxo_hash), (Some(mine), Some(yours)) if mine != yours);
        !coins_differ && !sets_differ && (self.height, &self.tip) == (other.height, &other.tip)
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "height {}, tip {}", self.height, self.tip)?;
        if let Some(hash) = &self.utxo_hash {
            write!(f, ", UTXO hash {hash}")?;
        }
        self.coins.map_or(Ok(()), |coins| write!(f, ", {coins} coins"))
    }
}

/// The first answer that two different nodes gave; of a single node the first it gave. One with a UTXO hash before one without.
fn agreed(runs: &[Run], nodes: usize) -> Option<Answer> {
    let answers = || runs.iter().filter_map(|run| Some((&run.node, run.answer.as_ref()?)));
    let whole = answers().filter(|(_, answer)| answer.utxo_hash.is_some());
    whole
        .chain(answers())
        .find(|(node, answer)| nodes == 1 || answers().any(|(other, given)| other != *node && given.matches(answer)))
        .map(|(_, answer)| answer.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::to_markdown;

    const DOCUMENT: &str = include_str!("../../../../docs/formats/lab-results.md");

    fn example() -> Results {
        let (_, rest) = DOCUMENT.split_once("```json\n").unwrap();
        serde_json::from_str(rest.split_once("```").unwrap().0).unwrap()
    }

    /// Read and written again the example is the same, and it names every field that there is.
    #[test]
    fn the_example_of_the_document_round_trips() {
        let (_, rest) = DOCUMENT.split_once("```json\n").unwrap();
        let printed: serde_json::Value = serde_json::from_str(rest.split_once("```").unwrap().0).unwrap();
        let written: serde_json::Value = serde_json::from_str(&example().to_json()).unwrap();
        assert_eq!(written, printed);
        assert_eq!(example().format, FORMAT);
        let mut names = Vec::new();
        names_in(&written, &mut names);
        names.retain(|name| !DOCUMENT.contains(&format!("`{name}`")));
        assert!(names.is_empty(), "fields without a word about them: {names:?}");
    }

    fn names_in(value: &serde_json::Value, names: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    names.push(name.clone());
                    names_in(value, names);
                }
            }
            serde_json::Value::Array(values) => values.iter().for_each(|value| names_in(value, names)),
            _ => {}
        }
    }

    /// The summary printed in the document is the one of its runs.
    #[test]
    fn the_example_is_what_its_runs_give() {
        let mut again = example();
        again.settle(example().expected.as_ref());
        assert_eq!(again, example());
        let (table, _) = to_markdown(&again).split_once("\n\n").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert!(DOCUMENT.contains(&table), "{table}");
    }

    #[test]
    fn a_median_lies_between_the_middle_values() {
        let of = |values: &[f64]| Spread::of(values.to_vec());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3.0, 1.0, 9.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
        assert_eq!(of(&[4.0, 1.0, 2.0, 9.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
    }

    #[test]
    fn a_run_is_disturbed_above_the_share() {
        let of = |others_share| Machine { others_share, ..Machine::default() }.is_disturbed();
        assert!(!of(Some(OTHERS_SHARE_MAX)) && of(Some(OTHERS_SHARE_MAX + 0.001)));
        assert!(of(None), "what nobody could tell does not pass as quiet");
    }
}
