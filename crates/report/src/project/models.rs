//! The models of one node: explanations of its times, and their projections to the target.
//!
//! Input: its chains, the target's counts. Output: models with their projections. A model is kept if its residual is at
//! most 1.5 times the best one, or within the noise of the runs (a chain whose runs spread weighs less). With one
//! chain: each kind of work alone; the checks at libsecp256k1's measured price with the rest by one kind of work, if
//! the node took at least that price; stages, if the node reports them.

use super::fit::{BYTE, CHECK, COLUMNS, Fit, INPUT, NAMES, OUTPUT, Row, fits};
use super::mainnet::{Range, TargetCounts};
use super::{Measured, Prices};
use serde::Serialize;

/// Unexplained shares below this are noise of the clock.
const RESIDUAL_NOISE: f64 = 0.005;
const RESIDUAL_FACTOR: f64 = 1.5;
/// Prefixes of the names of stages that do the checks.
const CHECK_STAGES: [&str; 5] = ["signature", "verify", "lane", "referee", "rerun"];
/// Prefixes of the names of stages that process the bytes.
const BYTE_STAGES: [&str; 3] = ["read", "parse", "hash"];

/// One explanation of the times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    /// How it was found: `least squares`, `one kind of work`, `checks at the reference's price`, `stages`.
    pub kind: &'static str,
    pub terms: Vec<Term>,
    /// The share of the measured times that the model leaves unexplained.
    pub residual: f64,
    /// The bounds come from the counts, widened by the unexplained share.
    pub cpu_seconds: Range,
    /// The same without the checks, if the model has a cost of checks.
    #[serde(skip)]
    pub(super) rest: Range,
}

/// One cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Term {
    /// `check`, `input`, `output`, `byte`, `block` or `start`.
    pub of: &'static str,
    pub nanoseconds: f64,
}

impl Model {
    /// For example `24,100 ns x checks + 7,000 ns x inputs`.
    pub fn formula(&self) -> String {
        let term = |term: &Term| match term.of {
            "start" => format!("{:.2} s", term.nanoseconds / 1e9),
            "byte" => format!("{:.3} ns x bytes", term.nanoseconds),
            of => format!("{:.1} ns x {of}s", term.nanoseconds),
        };
        self.terms.iter().map(term).collect::<Vec<_>>().join(" + ")
    }
}

/// The kept models, the one with the smallest residual first, and notes on how they were found.
pub(super) fn models(measured: &[Measured], counts: &TargetCounts) -> (Vec<Model>, Vec<String>) {
    let mut notes = Vec::new();
    let unknown = Prices { ecdsa_seconds: 0.0, schnorr: 1.0, tweak: 1.0 };
    let prices = measured.iter().find_map(|row| row.prices).unwrap_or(unknown);
    if measured.iter().all(|row| row.prices.is_none()) {
        notes.push("no measured price of a check: Schnorr and tweak checks are counted like ECDSA checks".to_owned());
    }
    let rows: Vec<Row> = measured.iter().map(|row| row_of(row, prices)).collect();
    if rows.iter().any(|row| row.counts.get(OUTPUT).copied().flatten().is_none()) {
        notes.push("results without the chain's outputs: no model has a cost of outputs".to_owned());
    }
    let target = target_of(counts, prices);
    let mut chains: Vec<&str> = measured.iter().map(|row| row.sha256.as_str()).collect();
    chains.sort_unstable();
    chains.dedup();
    let mut models: Vec<Model> = kept(fits(&rows))
        .iter()
        .map(|fit| model(if chains.len() > 1 { "least squares" } else { "one kind of work" }, fit, &target))
        .collect();
    if chains.len() == 1 {
        notes.push(
            "one chain alone cannot tell the kinds of work apart: the bounds hold what each of them alone would mean"
                .to_owned(),
        );
    }
    let Some(largest) = measured.iter().max_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds)) else {
        return (models, notes);
    };
    let by_stages = stages(largest, prices, &target);
    if by_stages.is_empty() {
        models.extend(at_price(largest, prices, &target, chains.len()));
    } else {
        notes.push(
            "the node tells its CPU by stage: signatures go with the checks, reading and parsing with the bytes, the rest with one kind of work".to_owned(),
        );
        models.retain(|model| model.kind == "least squares");
        models.extend(by_stages);
    }
    (models, notes)
}

/// The target's checks at the measured price of libsecp256k1; zero if no results have one.
pub(super) fn checks_at_price(measured: &[Measured], counts: &TargetCounts) -> Range {
    let Some(prices) = measured.iter().find_map(|row| row.prices) else { return Range::default() };
    target_of(counts, prices).get(CHECK).map(|checks| checks.times(prices.ecdsa_seconds)).unwrap_or_default()
}

fn row_of(row: &Measured, prices: Prices) -> Row {
    let counts = &row.counts;
    let checks = counts.ecdsa + counts.schnorr * prices.schnorr + counts.tweaks * prices.tweak;
    let counts =
        [Some(1.0), Some(counts.blocks), Some(checks), Some(counts.inputs), counts.outputs, Some(counts.bytes)];
    Row { counts, seconds: row.cpu_seconds, weight: RESIDUAL_NOISE / row.noise.max(RESIDUAL_NOISE) }
}

/// The target's counts in the columns of a row.
fn target_of(counts: &TargetCounts, prices: Prices) -> [Range; COLUMNS] {
    let (all, share, tweaks) =
        (counts.range("verifications"), counts.range("schnorr_share"), counts.range("tweak_checks"));
    let checks =
        |all: f64, share: f64, tweaks: f64| all * (1.0 - share + share * prices.schnorr) + tweaks * prices.tweak;
    let (dear, cheap) = if prices.schnorr > 1.0 { (share.high, share.low) } else { (share.low, share.high) };
    let checks = Range {
        low: checks(all.low, cheap, tweaks.low),
        middle: checks(all.middle, share.middle, tweaks.middle),
        high: checks(all.high, dear, tweaks.high),
    };
    let blocks = Range::exactly(f64::from(counts.target.height));
    [Range::exactly(1.0), blocks, checks, counts.range("inputs"), counts.range("outputs"), counts.range("bytes")]
}

fn kept(fits: Vec<Fit>) -> Vec<Fit> {
    let best = fits.first().map_or(0.0, |fit| fit.residual);
    fits.into_iter().filter(|fit| fit.residual <= (best * RESIDUAL_FACTOR).max(RESIDUAL_NOISE)).collect()
}

fn model(kind: &'static str, fit: &Fit, target: &[Range; COLUMNS]) -> Model {
    let (mut cpu_seconds, mut rest) = (Range::default(), Range::default());
    let mut terms = Vec::new();
    for ((cost, range), of) in fit.each.iter().zip(target).zip(NAMES) {
        if *cost > 0.0 {
            terms.push(Term { of, nanoseconds: cost * 1e9 });
            cpu_seconds = cpu_seconds.plus(range.times(*cost));
            rest = if of == NAMES[CHECK] { rest } else { rest.plus(range.times(*cost)) };
        }
    }
    let unexplained = fit.unexplained.min(1.0);
    let (cpu_seconds, rest) = (cpu_seconds.widened(unexplained), rest.widened(unexplained));
    Model { kind, terms, residual: fit.unexplained, cpu_seconds, rest }
}

/// Checks at the measured price of a single check, and the rest by one kind of work: for a node that took at least that
/// price.
fn at_price(row: &Measured, prices: Prices, target: &[Range; COLUMNS], chains: usize) -> Vec<Model> {
    let seconds = row_of(row, prices).counts.get(CHECK).copied().flatten().unwrap_or(0.0) * prices.ecdsa_seconds;
    if chains > 1 || seconds <= 0.0 || row.cpu_seconds < seconds {
        return Vec::new();
    }
    split("checks at the reference's price", row, prices, target, (seconds, 0.0))
}

/// Stages that check signatures by the checks, those that read by the bytes, all others by one kind of work.
fn stages(row: &Measured, prices: Prices, target: &[Range; COLUMNS]) -> Vec<Model> {
    let of = |starts: &[&str]| -> f64 {
        let is_it = |name: &str| starts.iter().any(|start| name.to_lowercase().starts_with(start));
        row.stages.iter().filter(|stage| is_it(&stage.name)).map(|stage| stage.cpu_seconds).sum()
    };
    let (checks, bytes) = (of(&CHECK_STAGES), of(&BYTE_STAGES));
    if checks <= 0.0 || checks + bytes > row.cpu_seconds {
        return Vec::new();
    }
    split("stages", row, prices, target, (checks, bytes))
}

/// Fixed seconds for the checks and for the bytes; the rest by inputs, outputs or bytes, in one model each.
fn split(
    kind: &'static str,
    row: &Measured,
    prices: Prices,
    target: &[Range; COLUMNS],
    (checks, bytes): (f64, f64),
) -> Vec<Model> {
    let counts = row_of(row, prices).counts;
    let count = |column: usize| counts.get(column).copied().flatten().filter(|&count| count > 0.0);
    let rest = row.cpu_seconds - checks - bytes;
    let one = |column: usize| {
        let mut each = [0.0; COLUMNS];
        for (column, seconds) in [(CHECK, checks), (BYTE, bytes), (column, rest)] {
            *each.get_mut(column)? += seconds / count(column)?;
        }
        Some(model(kind, &Fit { each, residual: 0.0, unexplained: 0.0 }, target))
    };
    [INPUT, OUTPUT, BYTE].into_iter().filter_map(one).collect()
}
