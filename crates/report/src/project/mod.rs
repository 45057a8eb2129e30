//! Projects a node's measured costs to mainnet: a projection, never a measurement.
//!
//! Input: results of `reindex` or `sync` on one or more chains, a target. Output: CPU and wall seconds with bounds, and
//! the formula. If several chains of different mixes were measured, the costs come from non-negative least squares over
//! them (`fit`); with a single chain, each kind of work alone explains the time, and the bounds are the range of these
//! models. A node that reports its CPU time by stage is projected stage by stage.
//!
//! Invariants: the bounds cover the differences between models, their unexplained remainder, the uncertainty of the
//! target's counts and the spread of the runs; what the formula leaves out is listed. It must never write into a
//! document of measured figures.

mod builds;
mod fit;
mod machines;
mod mainnet;
mod markdown;
mod models;

pub use builds::{Mixed, mixed_builds};
pub use machines::OnMachine;
pub use mainnet::{Quantity, Range, Target, TargetCounts};
pub use models::{Model, Term};

use crate::ReportError;
use crate::results::{Cache, Experiment, Figures, Outcome, Results, Stage};
use serde::Serialize;

/// Incremented when a field is removed or changes its meaning.
pub const FORMAT: u32 = 1;

/// Costs that are not part of any formula.
pub const NOT_INCLUDED: &[&str] = &[
    "a UTXO set larger than the cache: mainnet's has about 173 million coins, those of the measured chains fit into memory",
    "the network, and a disk slower than the one of the runs",
    "reorganisations, and blocks that are downloaded twice",
    "legacy signature hashes, whose cost grows with the size of a transaction, beyond their share in the measured chains",
    "blocks' age: early blocks hold other kinds of scripts than the measured chains",
    "indexes, pruning, flushes of a full cache",
];

/// If the best model leaves more than this share of the measured times unexplained, a warning is given.
const UNEXPLAINED_WARNED: f64 = 0.2;
/// With more than this share, nothing is projected from it.
const UNEXPLAINED_MAX: f64 = 0.5;

/// Options of a projection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Cores of the target machine; those of the runs if `None`.
    pub cores: Option<usize>,
}

/// A whole projection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Projection {
    pub format: u32,
    /// Always `projection`, so that it is never mistaken for a result.
    pub kind: &'static str,
    pub counts: TargetCounts,
    /// The processor of the runs, for which the costs hold.
    pub cpu: String,
    pub nodes: Vec<NodeProjection>,
    /// Nodes that could not be projected, with the reason.
    pub refused: Vec<Refused>,
    pub not_included: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    pub node: String,
    pub reason: String,
}

/// One node, from one kind of experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeProjection {
    pub node: String,
    pub version: String,
    pub experiment: Experiment,
    pub measured: Vec<Measured>,
    /// The models that determine the bounds, the best first.
    pub models: Vec<Model>,
    pub cpu_seconds: Range,
    /// With `cores`: the low bound as busy as the measured cores were, the high one with the serial share that their
    /// idleness suggests (Amdahl), or the other way round.
    pub wall_seconds: Range,
    pub cores: usize,
    pub notes: Vec<String>,
    pub machines: Vec<OnMachine>,
    #[serde(skip)]
    parts: machines::Parts,
}

/// The measurements behind a projection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    pub chain: String,
    pub sha256: String,
    pub runs: usize,
    pub cpu_seconds: f64,
    pub wall_seconds: f64,
    /// Half of the distance between the minimum and maximum CPU time, as a share.
    pub noise: f64,
    pub threads: usize,
    #[serde(skip)]
    counts: Counts,
    #[serde(skip)]
    stages: Vec<Stage>,
    /// Schnorr and tweak checks in units of ECDSA checks, and seconds of an ECDSA check.
    #[serde(skip)]
    prices: Option<Prices>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    blocks: f64,
    ecdsa: f64,
    schnorr: f64,
    tweaks: f64,
    inputs: f64,
    outputs: Option<f64>,
    bytes: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Prices {
    ecdsa_seconds: f64,
    schnorr: f64,
    tweak: f64,
}

/// Projects every node of the results. Fails if there are no results, or if they are from different machines.
pub fn project(results: &[Results], target: &Target, options: &Options) -> Result<Projection, ReportError> {
    let first = results.first().ok_or_else(|| ReportError::Usage("project: no results".into()))?;
    for other in results {
        let (a, b) = (&first.machine, &other.machine);
        if (&a.cpu, a.cores) != (&b.cpu, b.cores) {
            let text = format!("project: results of two machines, {} ({}) and {} ({})", a.cpu, a.cores, b.cpu, b.cores);
            return Err(ReportError::Usage(text));
        }
    }
    let counts = TargetCounts::of(target);
    let (mut nodes, mut refused) = (Vec::new(), Vec::new());
    for (name, experiment) in names(results) {
        let (measured, notes) = measured(results, &name, experiment);
        match of_node(&measured, &counts, options) {
            Ok(mut node) => {
                node.version = version(results, &name);
                node.experiment = experiment;
                node.notes.extend(notes);
                nodes.push(NodeProjection { node: name, measured, ..node });
            }
            Err(reason) => {
                let reason = notes.into_iter().fold(reason, |reason, note| format!("{reason}; {note}"));
                refused.push(Refused { node: name, reason });
            }
        }
    }
    let mut projection = Projection {
        format: FORMAT,
        kind: "projection",
        counts,
        cpu: first.machine.cpu.clone(),
        nodes,
        refused,
        not_included: NOT_INCLUDED.iter().map(|line| (*line).to_owned()).collect(),
    };
    machines::add(&mut projection);
    Ok(projection)
}

impl Projection {
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Headline, table, formulas, counts, and a list of what is left out.
    pub fn to_markdown(&self) -> String {
        markdown::to_markdown(self)
    }
}

/// Every node with its experiment, in the order of the files.
fn names(results: &[Results]) -> Vec<(String, Experiment)> {
    let mut names: Vec<(String, Experiment)> = Vec::new();
    for result in results {
        for node in &result.nodes {
            let name = (node.name.clone(), result.experiment);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

fn version(results: &[Results], name: &str) -> String {
    let mut versions: Vec<&str> = results
        .iter()
        .flat_map(|result| &result.nodes)
        .filter(|node| node.name == name)
        .map(|node| node.version.as_str())
        .collect();
    versions.dedup();
    versions.join(", ")
}

/// The node's measurements by chain, and notes on those left out.
fn measured(results: &[Results], name: &str, experiment: Experiment) -> (Vec<Measured>, Vec<String>) {
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    for result in results.iter().filter(|result| result.experiment == experiment) {
        let chain = result.chain.preset.as_deref().unwrap_or("files").to_owned();
        let figures = |cache| {
            let is_it = |summary: &&crate::results::Summary| summary.node == name && summary.cache == cache;
            result
                .summary
                .iter()
                .find(is_it)
                .and_then(|summary| Some((summary.runs_counted, summary.figures.as_ref()?)))
        };
        let Some((runs, figures)) = figures(Cache::Warm).or_else(|| figures(Cache::Cold)) else {
            if result.nodes.iter().any(|node| node.name == name) {
                notes.push(format!("no run on {chain} counts"));
            }
            continue;
        };
        if result.own_chain(name).is_some() {
            notes.push("a chain that it mined itself does not count".to_owned());
            continue;
        }
        match counts_of(result) {
            Ok(counts) => rows.push(row(result, name, chain, runs, figures, counts)),
            Err(reason) => notes.push(reason),
        }
    }
    (rows, notes)
}

fn row(result: &Results, name: &str, chain: String, runs: usize, figures: &Figures, counts: Counts) -> Measured {
    let cpu = figures.cpu_seconds;
    let stages = result.runs.iter().filter(|run| run.node == name && run.outcome == Outcome::Counted);
    Measured {
        chain,
        sha256: result.chain.sha256.clone(),
        runs,
        cpu_seconds: cpu.median,
        wall_seconds: figures.wall_seconds.median,
        noise: (cpu.max - cpu.min) / 2.0 / cpu.median,
        threads: result.settings.threads,
        counts,
        stages: stages.map(|run| run.stages.clone()).find(|stages| !stages.is_empty()).unwrap_or_default(),
        prices: result.floor.as_ref().map(|floor| Prices {
            ecdsa_seconds: floor.ecdsa_ns / 1e9,
            schnorr: floor.schnorr_ns / floor.ecdsa_ns,
            tweak: floor.tweak_ns / floor.ecdsa_ns,
        }),
    }
}

/// The statistics of a chain of only coinbases have no counts: they are known anyway.
fn counts_of(result: &Results) -> Result<Counts, String> {
    let chain = &result.chain;
    let blocks = f64::from(chain.height);
    let bytes = as_f64(chain.file_bytes);
    if let Some(height) = result.settings.from_height {
        return Err(format!("the results from height {height} on are those of a part of the chain"));
    }
    if chain.preset.as_deref() == Some("empty") {
        return Ok(Counts { blocks, bytes, outputs: Some(blocks), ..Counts::default() });
    }
    let (Some(inputs), Some(ecdsa), Some(schnorr), Some(tweaks)) =
        (chain.inputs, chain.ecdsa_verifications, chain.schnorr_verifications, chain.tweak_checks)
    else {
        let name = chain.preset.as_deref().unwrap_or("files");
        return Err(format!("the results on {name} do not say how many inputs and checks the chain has"));
    };
    let outputs = chain.outputs.map(as_f64);
    let (ecdsa, schnorr, tweaks) = (as_f64(ecdsa), as_f64(schnorr), as_f64(tweaks));
    Ok(Counts { blocks, ecdsa, schnorr, tweaks, inputs: as_f64(inputs), outputs, bytes })
}

fn of_node(measured: &[Measured], counts: &TargetCounts, options: &Options) -> Result<NodeProjection, String> {
    // The chain with the most work determines how busy the cores are.
    let largest = measured
        .iter()
        .max_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds))
        .ok_or_else(|| "no chain that it was measured on can be used".to_owned())?;
    if measured.iter().all(|row| row.counts.inputs == 0.0) {
        return Err("no chain with inputs among those measured: nothing says what they cost".to_owned());
    }
    let (models, mut notes) = models::models(measured, counts);
    if models.is_empty() {
        return Err("no sum of costs explains the measured times".to_owned());
    }
    let unexplained = models.iter().map(|model| model.residual).fold(f64::INFINITY, f64::min);
    let percent = unexplained * 100.0;
    if unexplained > UNEXPLAINED_MAX {
        return Err(format!("no sum of costs explains the measured times: the best leaves {percent:.0} % unexplained"));
    }
    if unexplained > UNEXPLAINED_WARNED {
        notes.push(format!("WARNING: the best model leaves {percent:.0} % of the measured times unexplained"));
    }
    // Weighted by seconds: a short chain's runs may spread widely and mean little.
    let seconds: f64 = measured.iter().map(|row| row.cpu_seconds).sum();
    let noise = measured.iter().map(|row| row.noise * row.cpu_seconds).sum::<f64>() / seconds;
    let low = models.iter().map(|model| model.cpu_seconds.low).fold(f64::INFINITY, f64::min);
    let high = models.iter().map(|model| model.cpu_seconds.high).fold(0.0, f64::max);
    let cpu_seconds = Range { low, middle: middle(&models), high }.widened(noise);
    let cores = options.cores.unwrap_or(largest.threads).max(1);
    if cores != largest.threads {
        notes.push(format!(
            "assumed, not measured: how it scales from {} cores to {cores}; the processor's own speed with all of them busy",
            largest.threads
        ));
    }
    let wall_seconds = wall(cpu_seconds, largest, cores);
    let rests = |of: fn(&Range) -> f64| models.iter().map(move |model| of(&model.rest));
    let rest = Range {
        low: rests(|rest| rest.low).fold(f64::INFINITY, f64::min),
        middle: median(rests(|rest| rest.middle).collect()),
        high: rests(|rest| rest.high).fold(0.0, f64::max),
    };
    let parts = machines::Parts { all: cpu_seconds, rest, checks: models::checks_at_price(measured, counts) };
    let (node, version) = (String::new(), String::new());
    let experiment = Experiment::Reindex;
    Ok(NodeProjection {
        node,
        version,
        experiment,
        measured: Vec::new(),
        models,
        cpu_seconds,
        wall_seconds,
        cores,
        notes,
        machines: Vec::new(),
        parts,
    })
}

/// The median of the models' middle values.
fn middle(models: &[Model]) -> f64 {
    median(models.iter().map(|model| model.cpu_seconds.middle).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let at = |index: usize| values.get(index).copied().unwrap_or(0.0);
    if values.len().is_multiple_of(2) { f64::midpoint(at(half.saturating_sub(1)), at(half)) } else { at(half) }
}

/// The time that `cpu` takes on `cores`.
fn wall(cpu: Range, measured: &Measured, cores: usize) -> Range {
    let (fast, slow) = wall_share(measured, cores);
    Range { low: cpu.low * fast, middle: cpu.middle * f64::midpoint(fast, slow), high: cpu.high * slow }
}

/// Wall time as a share of CPU time: with cores as busy as the measured ones, and with the serial share that their
/// idleness suggests; the lower share first.
fn wall_share(measured: &Measured, cores: usize) -> (f64, f64) {
    let (threads, cores) = (as_f64(measured.threads.max(1) as u64), as_f64(cores as u64));
    let taken = (measured.wall_seconds / measured.cpu_seconds).max(1.0 / threads);
    let busy = taken * threads / cores;
    let serial = if threads > 1.0 { ((taken - 1.0 / threads) / (1.0 - 1.0 / threads)).min(1.0) } else { 0.0 };
    let amdahl = if threads > 1.0 { serial + (1.0 - serial) / cores } else { taken / cores };
    (busy.min(amdahl), busy.max(amdahl))
}

#[allow(clippy::cast_precision_loss, reason = "counts of a chain lie below 2^52")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
