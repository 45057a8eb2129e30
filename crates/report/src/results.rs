//! The result of a comparison: the types of the JSON file, and which runs count.
//!
//! Input: runs as they end. Output: one document. Invariant: a run counts only with the right answer; the summary is
//! made of the runs that count and nothing else. Format: `docs/formats/lab-results.md`, whose example a test reads and
//! writes.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Changes when a field changes its meaning or is removed.
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
    /// Sync only: the nodes that served the chain.
    pub servers: Vec<NodeFacts>,
    /// Systems of the published benchmarks that did not take part, so that no table silently omits them.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// The answer that every run had to end with; `None` if none was known and no two nodes agreed.
    pub expected: Option<Answer>,
    /// There was an expected answer, and all runs that gave an answer gave that one.
    pub is_agreed: bool,
    pub runs: Vec<Run>,
    pub summary: Vec<Summary>,
    /// What `lydian-lab thin` removed; `None` in a file as measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinned: Option<String>,
}

/// Where the nodes get the chain from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Experiment {
    /// Their own copies of the block files.
    Reindex,
    /// One or more peers on loopback.
    Sync,
}

/// A system that did not take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its usual name: `Gocoin`.
    pub name: String,
    /// One sentence: why it cannot take part, or what is missing on this machine.
    pub reason: String,
    /// The source of the reason; `None` if the reason is this machine.
    pub source: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lab {
    pub version: String,
    /// Commit of the checkout that contains the program, with `-dirty` if it has changes; `None` outside a checkout.
    pub commit: Option<String>,
    pub command_line: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineFacts {
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: Option<u64>,
    pub kernel: String,
    /// The file system of the folder in which the nodes work.
    pub filesystem: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainFacts {
    /// `None` for files that the lab did not generate.
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
    /// A node that leaves less of the disk free is killed.
    #[serde(default)]
    pub disk_free_min_bytes: u64,
    /// The height at which the clock starts: the blocks up to it were validated by a run before that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_height: Option<u32>,
    #[serde(default, skip_serializing_if = "Validation::is_full")]
    pub validation: Validation,
    /// Limit of a node's memory with its page cache, enforced by the kernel; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_memory_bytes: Option<u64>,
}

/// Which scripts the nodes check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validation {
    /// Every one.
    #[default]
    Full,
    /// All but those below the block that each node assumes valid by default.
    Default,
}

impl Validation {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
    fn is_full(&self) -> bool {
        *self == Validation::Full
    }
}

/// The time that no node can beat if it checks signatures one at a time: (verifications + tweak checks) x measured time
/// / threads.
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
    /// SHA-256 of the file `program`: two builds may report the same version. `None` if the file could not be read, or
    /// in a results file older than this field.
    #[serde(default)]
    pub program_sha256: Option<String>,
    #[serde(default)]
    pub program_bytes: Option<u64>,
    /// Arguments of every run; `DATADIR` stands for the data directory, port 0 for a free port.
    pub arguments: Vec<String>,
    /// Sync only: the name of the server, and the shapes of the connections to it, if any.
    pub source: Option<String>,
    /// Why the node by design does not take part; not what is missing on this machine.
    pub cannot: Option<String>,
    /// What a reader of the node's figures must know: no taproot, no UTXO hash, settings with a different meaning.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Which broken rules the node accepts; `None` if it was not tested.
    #[serde(default)]
    pub validity: Option<Validity>,
    /// For a node that mined its own chain: the answer that it has to give instead of the expected one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_chain: Option<Answer>,
}

impl NodeFacts {
    /// The version that the program reports, and its file. Figures under one name belong together only if this is the
    /// same.
    pub fn build(&self) -> (&str, Option<&str>, Option<u64>) {
        (&self.version, self.program_sha256.as_deref(), self.program_bytes)
    }
}

/// How a node treated blocks that each break one rule, above the heights at which its regtest enforces the rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    /// SHA-256 over the blocks in the order in which they were submitted.
    pub sha256: String,
    pub cases: Vec<Case>,
    /// Rules that its regtest enforces but that were not tested, because the node died, hung or ended on the wrong
    /// branch before.
    #[serde(default)]
    pub unasked: usize,
    /// Why there are no cases, or not all.
    pub reason: Option<String>,
}

/// One broken block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The name in the chain's expectations: `taproot-key-path-false-signature`.
    pub name: String,
    /// The rule that it breaks, for people; also the column of a table: `Schnorr key path`.
    pub rule: String,
    pub height: u32,
    /// `true` if the node accepted the block.
    pub is_accepted: bool,
    /// What the node answered.
    pub said: String,
}

impl Validity {
    /// Whether the node was tested with every rule that its regtest enforces.
    pub fn is_whole(&self) -> bool {
        !self.cases.is_empty() && self.unasked == 0
    }

    /// The rules whose broken blocks the node accepted, for a table: `not validating: Schnorr key path, tapscript`.
    pub fn not_validated(&self) -> Vec<&str> {
        self.cases.iter().filter(|case| case.is_accepted).map(|case| case.rule.as_str()).collect()
    }
}

/// The final state that a node reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub height: u32,
    pub tip: String,
    pub coins: Option<u64>,
    /// Core's `hash_serialized_3`, as displayed; `None` if the node does not provide it.
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
    /// Exited by itself at the tip, with the expected answer.
    Counted,
    WrongAnswer,
    /// Ended before the tip or with an error, or gave no answer.
    Failed,
    TimedOut,
    MemoryExceeded,
    /// Left too little of the disk free.
    DiskFull,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub node: String,
    /// Counts from 1, per node and cache state.
    pub number: u32,
    pub cache: Cache,
    /// How the cache was emptied: `drop_caches` (the whole system cache) or `posix_fadvise` (the files of the run).
    pub cache_emptied_by: Option<String>,
    pub outcome: Outcome,
    /// Why the run does not count.
    pub reason: Option<String>,
    /// `None` if a signal or the lab ended it.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The end of its log, if the run does not count.
    pub log_end: Option<String>,
    /// Time until the log line with the tip, or until the node reported it; `None` if neither happened.
    pub tip_seconds: Option<f64>,
    /// Time until the end of the process.
    pub wall_seconds: f64,
    pub user_seconds: f64,
    pub system_seconds: f64,
    pub peak_rss_bytes: u64,
    pub io: Io,
    /// Size of the data directory at the end, including block files.
    pub disk_bytes: u64,
    /// Sync only, if the server counts the bytes that it sends.
    #[serde(default)]
    pub network: Option<NetworkBytes>,
    /// CPU time by stage, if the node reports it.
    #[serde(default)]
    pub stages: Vec<Stage>,
    pub machine: Machine,
    /// Others used more than 5 % of the machine, or their share is unknown.
    pub is_disturbed: bool,
    pub answer: Option<Answer>,
    pub samples: Vec<Sample>,
}

impl Run {
    /// A run that could not begin.
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

/// What a process read and wrote, as `/proc/PID/io` reports it: totals of all threads, including ended threads and
/// children that were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Io {
    /// Bytes that system calls requested and received, from any source.
    pub rchar: u64,
    pub wchar: u64,
    /// Bytes fetched from storage.
    pub read_bytes: u64,
    /// Bytes that must reach storage: pages made dirty.
    pub write_bytes: u64,
    /// The part of them that need not be written, because the file was removed first.
    pub cancelled_write_bytes: u64,
}

impl AddAssign for Io {
    fn add_assign(&mut self, other: Io) {
        self.rchar += other.rchar;
        self.wchar += other.wchar;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.cancelled_write_bytes += other.cancelled_write_bytes;
    }
}

/// The traffic of one run, as its server counted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkBytes {
    /// Bytes from the server to the node.
    pub received: u64,
    pub sent: u64,
}

/// The time of one stage of a node's pipeline, of all its workers together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    pub name: String,
    pub cpu_seconds: f64,
    /// Results before November 2026 lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<f64>,
}

/// How the machine's time was used during a run; `None` where the system does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub idle_share: Option<f64>,
    pub node_share: Option<f64>,
    /// Used by neither the node nor the lab, and not idle; includes steal.
    pub others_share: Option<f64>,
    /// Time taken by the host for other virtual machines.
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
    /// Present in every fourth sample.
    pub disk_bytes: Option<u64>,
}

/// A median with its minimum and maximum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// With an even number of values the median is the midpoint of the two middle ones. `None` without values.
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let lower = if values.len().is_multiple_of(2) { *values.get(middle - 1)? } else { upper };
        let median = rounded(f64::midpoint(lower, upper));
        Some(Spread { median, min: rounded(*values.first()?), max: rounded(*values.last()?) })
    }
}

/// Rounds to a millionth: finer than anything measured here, and every reader of the file gets exactly the same number.
pub fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// The runs that count of one node in one cache state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub node: String,
    pub cache: Cache,
    pub runs_counted: usize,
    pub runs_disturbed: usize,
    pub runs_not_counted: usize,
    pub figures: Option<Figures>,
}

/// Figures over the runs that count. Wall time is the time until the end of the process.
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
    /// Median wall time relative to the first node in the same cache state.
    pub wall_ratio: Option<f64>,
    pub cpu_ratio: Option<f64>,
    pub floor_ratio: Option<f64>,
}

impl Results {
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Takes over what an earlier part of the same comparison found out, so that it need not be found again.
    pub fn take_over(&mut self, earlier: &Results) {
        self.started = earlier.started;
        self.floor = earlier.floor.clone().or_else(|| self.floor.take());
        for (node, was) in self.nodes.iter_mut().zip(&earlier.nodes).filter(|(node, was)| node.build() == was.build()) {
            node.validity = was.validity.clone();
        }
    }

    /// The end of the chain that this node mined for itself; `None` if it validates that of the comparison.
    pub fn own_chain(&self, name: &str) -> Option<&Answer> {
        self.nodes.iter().find(|node| node.name == name)?.own_chain.as_ref()
    }

    /// The height of the chain that this node validates.
    pub fn height_of(&self, name: &str) -> u32 {
        self.own_chain(name).map_or(self.chain.height, |own| own.height)
    }

    /// Whether times of the two nodes can be compared: both validate the same chain, or chains of the same number of
    /// blocks that have only coinbases.
    pub fn is_same_work(&self, one: &str, other: &str) -> bool {
        let coinbases = |name: &str| match self.own_chain(name) {
            Some(own) => Some(own.height),
            None => (self.chain.preset.as_deref() == Some("empty")).then_some(self.chain.height),
        };
        let is_shared = |name: &str| self.own_chain(name).is_none();
        (is_shared(one) && is_shared(other)) || (coinbases(one).is_some() && coinbases(one) == coinbases(other))
    }

    /// Determines the expected answer if none was computed beforehand, decides which runs count, and makes the summary.
    pub fn settle(&mut self, expected: Option<&Answer>) {
        let shared: Vec<&Run> = self.runs.iter().filter(|run| self.own_chain(&run.node).is_none()).collect();
        let agreed = agreed(&shared, self.nodes.iter().filter(|node| node.own_chain.is_none()).count());
        // A chain from an external peer has a known tip, and a UTXO hash only where the nodes agree on one.
        let with_hash =
            |known: &Answer| agreed.clone().filter(|agreed| known.utxo_hash.is_none() && known.matches(agreed));
        self.expected = match expected {
            Some(known) => with_hash(known).or_else(|| Some(known.clone())),
            None => agreed,
        };
        for run in &mut self.runs {
            let Some(answer) = &run.answer else { continue };
            let own = self.nodes.iter().find(|node| node.name == run.node).and_then(|node| node.own_chain.as_ref());
            let expected = own.or(self.expected.as_ref());
            let is_right = expected.is_some_and(|expected| expected.matches(answer));
            run.outcome = if is_right { Outcome::Counted } else { Outcome::WrongAnswer };
            run.reason = (!is_right).then(|| match expected {
                Some(expected) => format!("it ends with {answer}, expected {expected}"),
                None => format!("it ends with {answer}, and no two nodes agree"),
            });
            run.log_end = run.log_end.take().filter(|_| !is_right);
        }
        let is_known = self.expected.is_some() || self.nodes.iter().all(|node| node.own_chain.is_some());
        self.is_agreed = is_known && self.runs.iter().all(|run| run.outcome != Outcome::WrongAnswer);
        self.summary = crate::summary::summarise(self);
    }
}

impl Answer {
    /// Equal in everything that both have.
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

/// The first answer that two different nodes gave; with a single node, its first answer. Answers with a UTXO hash are
/// preferred.
fn agreed(runs: &[&Run], nodes: usize) -> Option<Answer> {
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
    use crate::made_up::{self, Took};
    use crate::names_in;
    use crate::summary::to_markdown;

    const DOCUMENT: &str = include_str!("../../../docs/formats/lab-results.md");

    fn example() -> Results {
        let (_, rest) = DOCUMENT.split_once("```json\n").unwrap();
        serde_json::from_str(rest.split_once("```").unwrap().0).unwrap()
    }

    /// The example stays the same when it is read and written again, and the document mentions every field.
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

    /// The summary printed in the document is the one that its runs yield.
    #[test]
    fn the_example_is_what_its_runs_give() {
        let mut again = example();
        again.settle(example().expected.as_ref());
        assert_eq!(again, example());
        let (table, _) = to_markdown(&again).split_once("\n\n").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert!(DOCUMENT.contains(&table), "{table}");
    }

    /// A fork that mined its own chain must end with that chain. Ratios to it need the same number of coinbase blocks.
    #[test]
    fn a_node_with_its_own_chain_is_judged_by_it() {
        let took = [Took::new("lydian", 2.0, 2.0), Took::new("fork", 4.0, 4.0)];
        let answer = |tip: &str, height| Answer { height, tip: tip.into(), coins: None, utxo_hash: None };
        let settled = |preset: &str, own_height, fork_ends_with: &str| {
            let mut results = made_up::results(preset, 550, [1; 6], &took);
            results.nodes[1].own_chain = Some(answer("bb", own_height));
            results.runs[0].answer = Some(answer("aa", 550));
            results.runs[1].answer = Some(answer(fork_ends_with, own_height));
            results.settle(Some(&answer("aa", 550)));
            results
        };
        let right = settled("empty", 550, "bb");
        assert!(right.is_agreed && right.runs.iter().all(|run| run.outcome == Outcome::Counted));
        let figures = |results: &Results| results.summary[1].figures.clone().unwrap();
        assert_eq!((figures(&right).wall_ratio, figures(&right).blocks_per_second), (Some(2.0), 137.5));
        let wrong = settled("empty", 550, "aa");
        assert!(!wrong.is_agreed && wrong.runs[1].outcome == Outcome::WrongAnswer);
        assert!(wrong.runs[1].reason.as_ref().unwrap().contains("tip aa, expected height 550, tip bb"));
        for other in [settled("empty", 120, "bb"), settled("mainnet-mix", 550, "bb")] {
            let figures = figures(&other);
            assert!(other.is_agreed && figures.wall_ratio.is_none() && figures.cpu_ratio.is_none());
            assert!(figures.inputs_per_second.is_none() && figures.floor_ratio.is_none());
        }
    }

    #[test]
    fn a_median_is_between_the_middle_values() {
        let of = |values: &[f64]| Spread::of(values.to_vec());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3.0, 1.0, 9.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
        assert_eq!(of(&[4.0, 1.0, 2.0, 9.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
    }

    #[test]
    fn a_run_is_disturbed_above_the_share() {
        let of = |others_share| Machine { others_share, ..Machine::default() }.is_disturbed();
        assert!(!of(Some(OTHERS_SHARE_MAX)) && of(Some(OTHERS_SHARE_MAX + 0.001)));
        assert!(of(None), "an unknown load does not pass as quiet");
    }
}
