//! Compares two results of the same experiment, an old one and a new one: what became slower or larger.
//!
//! Input: two results. Output: one verdict per node and figure, with the reason. Invariants: only results of the same
//! experiment on the same block files and the same kind of machine are compared; a difference counts only if it exceeds
//! the threshold and the noise of the runs; disturbed runs count for CPU time, memory and bytes, never for wall time.
//! It must never call noise a regression, or hide a "cannot tell".

mod markdown;
mod verdict;

pub use verdict::{Decision, Verdict};

use self::verdict::Noise;

use crate::results::{Cache, NodeFacts, Outcome, Results, Run, Spread};
use serde::Serialize;

/// Incremented when a field is removed or changes its meaning.
pub const FORMAT: u32 = 1;
pub const THRESHOLD_DEFAULT: f64 = 0.05;
const EXIT_REGRESSION: u8 = 1;
/// Also the exit code for a file that cannot be read.
pub const EXIT_NOT_COMPARABLE: u8 = 2;

/// A whole comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub format: u32,
    pub kind: &'static str,
    /// A change of this share or less counts as no difference.
    pub threshold: f64,
    /// Why the two cannot be compared; if there is a reason, there are no lines.
    pub refusals: Vec<String>,
    pub warnings: Vec<String>,
    pub lines: Vec<Line>,
}

/// One figure of one node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    pub node: String,
    pub cache: Cache,
    pub figure: Figure,
    pub old: Option<Spread>,
    pub new: Option<Spread>,
    pub runs_old: usize,
    pub runs_new: usize,
    /// Relative change of the medians: 0.1 is a tenth more.
    pub change: Option<f64>,
    pub verdict: Verdict,
    pub reason: String,
}

/// A figure that is compared. Less is better, except for `Runs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// The share of runs that count: more is better.
    Runs,
    WallSeconds,
    CpuSeconds,
    PeakRssBytes,
    /// In cold runs only; in warm runs it depends on the page cache.
    ReadBytes,
    WriteBytes,
    DiskBytes,
    ReceivedBytes,
}

impl Figure {
    const ALL: [Figure; 7] = [
        Figure::WallSeconds,
        Figure::CpuSeconds,
        Figure::PeakRssBytes,
        Figure::ReadBytes,
        Figure::WriteBytes,
        Figure::DiskBytes,
        Figure::ReceivedBytes,
    ];

    fn of(self, run: &Run) -> Option<f64> {
        match self {
            Figure::Runs => Some(f64::from(u8::from(run.outcome == Outcome::Counted))),
            Figure::WallSeconds => (!run.is_disturbed).then_some(run.wall_seconds),
            Figure::CpuSeconds => Some(run.user_seconds + run.system_seconds),
            Figure::PeakRssBytes => Some(as_f64(run.peak_rss_bytes)),
            Figure::ReadBytes => (run.cache == Cache::Cold).then_some(as_f64(run.io.read_bytes)),
            Figure::WriteBytes => Some(as_f64(run.io.write_bytes)),
            Figure::DiskBytes => Some(as_f64(run.disk_bytes)),
            Figure::ReceivedBytes => run.network.map(|network| as_f64(network.received)),
        }
    }

    /// Differences up to `nothing` come from the resolution of clocks and pages.
    fn noise(self) -> Noise {
        match self {
            Figure::WallSeconds | Figure::CpuSeconds => Noise { nothing: 0.02, one_run: verdict::ONE_RUN_SPREAD },
            Figure::PeakRssBytes => Noise { nothing: 2e6, one_run: verdict::ONE_RUN_SPREAD },
            Figure::Runs | Figure::ReadBytes | Figure::WriteBytes | Figure::DiskBytes | Figure::ReceivedBytes => {
                Noise { nothing: 1e6, one_run: verdict::ONE_RUN_SPREAD_BYTES }
            }
        }
    }
}

impl Comparison {
    /// 0: no regression; 1: at least one; 2: not comparable.
    pub fn exit_code(&self) -> u8 {
        if !self.refusals.is_empty() {
            return EXIT_NOT_COMPARABLE;
        }
        if self.lines.iter().any(|line| line.verdict == Verdict::Worse) { EXIT_REGRESSION } else { 0 }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    pub fn to_markdown(&self) -> String {
        markdown::to_markdown(self)
    }
}

/// Compares node by node. `threshold` is a share, such as 0.05.
pub fn compare(old: &Results, new: &Results, threshold: f64) -> Comparison {
    let refusals = refusals(old, new);
    let mut comparison =
        Comparison { format: FORMAT, kind: "comparison", threshold, refusals, warnings: Vec::new(), lines: Vec::new() };
    if !comparison.refusals.is_empty() {
        return comparison;
    }
    comparison.warnings = warnings(old, new, threshold);
    for node in &old.nodes {
        let Some(now) = new.nodes.iter().find(|now| now.name == node.name) else {
            comparison.warnings.push(format!("{} took part in the old comparison alone", node.name));
            continue;
        };
        comparison.warnings.extend(node_warnings(node, now));
        if let Some(warning) = other_blocks(old, new, &node.name) {
            comparison.warnings.push(warning);
            continue;
        }
        for cache in [Cache::Warm, Cache::Cold] {
            comparison.lines.extend(of_node(old, new, &node.name, cache, threshold));
        }
    }
    if comparison.lines.is_empty() {
        comparison.refusals.push("no node has runs in the old comparison that the new one could have, too".to_owned());
    }
    for node in new.nodes.iter().filter(|node| old.nodes.iter().all(|before| before.name != node.name)) {
        comparison.warnings.push(format!("{} took part in the new comparison alone", node.name));
    }
    comparison
}

/// A node that validated a chain of its own of another length, or only once: its times cannot be compared. If no run
/// counts, its lines say so.
fn other_blocks(old: &Results, new: &Results, name: &str) -> Option<String> {
    let counts = |results: &Results| results.runs.iter().any(|run| run.node == name && run.outcome == Outcome::Counted);
    let blocks = |results: &Results| match results.own_chain(name) {
        Some(own) => format!("{} blocks of its own chain", own.height),
        None => "the chain of the comparison".to_owned(),
    };
    let (before, now) = (blocks(old), blocks(new));
    (before != now && counts(old) && counts(new))
        .then(|| format!("{name} is not compared: it validated {before}, and now {now}"))
}

fn of_node(old: &Results, new: &Results, name: &str, cache: Cache, threshold: f64) -> Vec<Line> {
    let of = |results: &Results| -> Vec<Run> {
        results.runs.iter().filter(|run| run.node == name && run.cache == cache).cloned().collect()
    };
    let (old, new) = (of(old), of(new));
    // Something not measured before cannot have become worse.
    if old.is_empty() {
        return Vec::new();
    }
    let counted =
        |runs: &[Run]| -> Vec<Run> { runs.iter().filter(|run| run.outcome == Outcome::Counted).cloned().collect() };
    let (before, now) = (counted(&old), counted(&new));
    let line = |figure, old: Vec<f64>, new: Vec<f64>, decision: Decision| Line {
        node: name.to_owned(),
        cache,
        figure,
        runs_old: old.len(),
        runs_new: new.len(),
        old: Spread::of(old),
        new: Spread::of(new),
        change: decision.change,
        verdict: decision.verdict,
        reason: decision.reason,
    };
    let mut lines = Vec::new();
    if let Some(decision) = verdict::endings((before.len(), old.len()), &new) {
        let values = |runs: &[Run]| runs.iter().filter_map(|run| Figure::Runs.of(run)).collect();
        lines.push(line(Figure::Runs, values(&old), values(&new), decision));
    }
    if before.is_empty() || now.is_empty() {
        let decision = verdict::without_runs(before.is_empty(), now.is_empty());
        let walls = |runs: &[Run]| runs.iter().filter_map(|run| Figure::WallSeconds.of(run)).collect();
        lines.push(line(Figure::WallSeconds, walls(&before), walls(&now), decision));
        return lines;
    }
    for figure in Figure::ALL {
        let values = |runs: &[Run]| -> Vec<f64> { runs.iter().filter_map(|run| figure.of(run)).collect() };
        let (old, new) = (values(&before), values(&now));
        let is_wall = figure == Figure::WallSeconds;
        if is_wall || !(old.is_empty() || new.is_empty()) {
            let decision = verdict::decide(&old, &new, threshold, figure.noise());
            lines.push(line(figure, old, new, decision));
        }
    }
    lines
}

/// The reasons why two results cannot be compared.
fn refusals(old: &Results, new: &Results) -> Vec<String> {
    let mut found = Vec::new();
    let mut differ = |what: &str, old: &dyn std::fmt::Display, new: &dyn std::fmt::Display| {
        if old.to_string() != new.to_string() {
            found.push(format!("{what}: old {old}, new {new}"));
        }
    };
    let experiment = |results: &Results| format!("{:?}", results.experiment).to_lowercase();
    differ("different experiments", &experiment(old), &experiment(new));
    differ("different block files, by their SHA-256", &old.chain.sha256, &new.chain.sha256);
    // Block files of an external peer have no hash.
    differ("different heights", &old.chain.height, &new.chain.height);
    differ("different processors", &old.machine.cpu, &new.machine.cpu);
    differ("different numbers of cores", &old.machine.cores, &new.machine.cores);
    differ("different numbers of threads", &old.settings.threads, &new.settings.threads);
    differ("different caches, in MiB", &old.settings.cache_mib, &new.settings.cache_mib);
    let from = |results: &Results| results.settings.from_height.unwrap_or(0);
    differ("measured from different heights", &from(old), &from(new));
    let names = |results: &Results| results.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
    let (before, now) = (names(old), names(new));
    if !before.iter().any(|name| now.contains(name)) {
        found.push(format!("no node in common: old {}, new {}", before.join(", "), now.join(", ")));
    }
    found
}

fn warnings(old: &Results, new: &Results, threshold: f64) -> Vec<String> {
    let mut found = Vec::new();
    if old.machine.kernel != new.machine.kernel {
        found.push(format!("different kernels: old {}, new {}", old.machine.kernel, new.machine.kernel));
    }
    if old.machine.filesystem != new.machine.filesystem {
        let name = |results: &Results| results.machine.filesystem.clone().unwrap_or_else(|| "unknown".into());
        found.push(format!("different file systems: old {}, new {}", name(old), name(new)));
    }
    if let (Some(before), Some(now)) = (&old.floor, &new.floor) {
        let change = now.ecdsa_ns / before.ecdsa_ns - 1.0;
        if change.abs() > threshold {
            found.push(format!(
                "the machine itself was not the same: an ECDSA check took {:.1} us, and now takes {:.1} us ({:+.1} %)",
                before.ecdsa_ns / 1e3,
                now.ecdsa_ns / 1e3,
                change * 100.0
            ));
        }
    }
    for (which, results) in [("old", old), ("new", new)] {
        if !results.is_agreed {
            found.push(format!("in the {which} comparison the nodes do not agree"));
        }
        let lost = results.runs.iter().filter(|run| run.outcome != Outcome::Counted).count();
        if lost > 0 {
            found.push(format!("{lost} of {} runs of the {which} comparison do not count", results.runs.len()));
        }
    }
    found
}

fn node_warnings(old: &NodeFacts, new: &NodeFacts) -> Vec<String> {
    let mut found = Vec::new();
    if old.version != new.version {
        found.push(format!("{}: version {}, now {}", old.name, old.version, new.version));
    }
    let arguments = |node: &NodeFacts| node.arguments.iter().map(|text| without_port(text)).collect::<Vec<_>>();
    let (before, now) = (arguments(old), arguments(new));
    if before != now {
        let only = |these: &[String], those: &[String]| {
            these.iter().filter(|text| !those.contains(text)).cloned().collect::<Vec<_>>().join(" ")
        };
        found.push(format!(
            "{}: other arguments: old [{}], new [{}]",
            old.name,
            only(&before, &now),
            only(&now, &before)
        ));
    }
    if old.source != new.source {
        let name = |node: &NodeFacts| node.source.clone().unwrap_or_else(|| "files".into());
        found.push(format!("{}: has the chain from {}, now from {}", old.name, name(old), name(new)));
    }
    found
}

/// Replaces a port with 0: the system assigns ports anew in every run.
fn without_port(argument: &str) -> String {
    match argument.rsplit_once(':') {
        Some((head, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => format!("{head}:0"),
        _ => argument.to_owned(),
    }
}

#[allow(clippy::cast_precision_loss, reason = "bytes of a run lie below 2^52")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
