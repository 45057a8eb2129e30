//! The topic `blocks`: a row for each of the last 2,016 blocks, by height.
//!
//! Figures that are not known are left out of a row: who sent a block and what its steps took before this start, what a
//! pruned block contains. The key `budget` has the budget of each stage of the benchmark and the time of a signature
//! check; `docs/benchmarks/engine.md` and `lanes.md` have them too, and a test compares them.

use crate::blocks::text::{coinbase, shown};
use crate::blocks::{Row, Source, Steps, pools};
use crate::page::PageNode;
use lydian_curve::Refereed;
use lydian_engine::Stage;
use serde_json::{Map, Value, json};

/// While the node catches up, only this many rows are sent: they all change each second.
const ROWS_CATCHING_UP: usize = 50;

/// The budgets in nanoseconds of CPU time for each input.
const BUDGET: &[(Stage, u32)] = &[
    (Stage::Read, 100),
    (Stage::Parse, 350),
    (Stage::Check, 150),
    (Stage::Link, 200),
    (Stage::Fund, 700),
    (Stage::Inputs, 250),
    (Stage::Capture, 900),
    (Stage::Rerun, 50),
    (Stage::Commit, 300),
    (Stage::Apply, 750),
];

/// Nanoseconds of CPU time for a signature check, by engine: 1,024 ECDSA checks at once in the benchmark, which has
/// not measured the other engines on that machine.
const SIGNATURE: &[(&str, u32)] = &[("reference", 24_300), ("ifma512", 2_710), ("ifma256", 5_170), ("avx2", 10_700)];

/// The steps that a row shows, each with the stages that it consists of.
const STEPS: &[(&str, &[Stage])] = &[
    ("read", &[Stage::Read]),
    ("parse", &[Stage::Parse]),
    ("check", &[Stage::Check]),
    ("fund", &[Stage::Link, Stage::Fund, Stage::Inputs]),
    ("verify", &[Stage::Capture, Stage::Rerun]),
    ("commit", &[Stage::Commit]),
    ("apply", &[Stage::Apply]),
];

pub(super) fn version(node: &PageNode) -> u64 {
    node.blocks.version()
}

pub(super) fn read(node: &PageNode) -> Map<String, Value> {
    let count_max = if node.initial_download.is_on() { ROWS_CATCHING_UP } else { usize::MAX };
    let rows = node.blocks.rows(count_max);
    let mut values: Map<String, Value> =
        rows.iter().map(|row| (row.height.to_string(), Value::Object(shown_row(row)))).collect();
    let mut budget = budget();
    put(&mut budget, "signature", node.engine().and_then(|engine| signature(engine.signatures())));
    values.insert("budget".to_owned(), budget.into());
    values
}

/// Nanoseconds for each input, by step.
fn budget() -> Map<String, Value> {
    let of = |stages: &[Stage]| -> u32 {
        BUDGET.iter().filter(|(stage, _)| stages.contains(stage)).map(|(_, budget)| *budget).sum()
    };
    STEPS.iter().map(|(step, stages)| ((*step).to_owned(), json!(of(stages)))).collect()
}

/// Nanoseconds for a check by the engine that decides now.
fn signature(engine: &Refereed) -> Option<u32> {
    let name = if engine.is_trusted() { engine.kernel().name() } else { "reference" };
    SIGNATURE.iter().find(|(known, _)| *known == name).map(|(_, time)| *time)
}

/// Sets a value, if it is known.
fn put(row: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        row.insert(key.to_owned(), value.into());
    }
}

fn shown_row(row: &Row) -> Map<String, Value> {
    let mut shown_row = Map::new();
    let out = &mut shown_row;
    put(out, "height", Some(row.height));
    put(out, "hash", Some(row.hash.to_string()));
    put(out, "time", Some(row.header.time));
    put(out, "version", Some(row.header.version));
    put(out, "bits", Some(format!("{:08x}", row.header.bits)));
    if let Some(facts) = &row.facts {
        put(out, "size", Some(facts.size));
        put(out, "weight", Some(facts.weight));
        put(out, "txs", Some(facts.txs));
        put(out, "ins", Some(facts.inputs));
        put(out, "outs", Some(facts.outputs));
        put(out, "total_size", Some(facts.total_size));
        put(out, "total_weight", Some(facts.total_weight));
        put(out, "totalfee", facts.fees.map(|fees| fees.0));
        put(out, "avgfeerate", facts.fee_rate());
        put(out, "text", Some(coinbase(&facts.coinbase)));
        put(out, "pool", pools::pool(&facts.coinbase));
    }
    if let Some(live) = &row.live {
        let source = match live.source {
            Source::Peer(_) => "peer",
            Source::Call => "RPC",
            Source::Disk => "disk",
        };
        put(out, "source", Some(source));
        if let Source::Peer(id) = live.source {
            put(out, "peer", Some(id));
        }
        put(out, "received", live.received.map(|micros| micros as f64 / 1e6));
        put(out, "tip", Some(live.is_at_tip));
        put(out, "checks", Some(live.checks));
        put(out, "ms", Some(steps(&live.steps, row)));
    }
    if let Some(sent) = &row.sent {
        put(out, "peer", Some(sent.peer.0));
        put(out, "address", Some(shown(&sent.name)));
        put(out, "agent", Some(shown(&sent.user_agent)));
        put(out, "missing", sent.missing);
        put(out, "copies", Some(sent.extra));
    }
    shown_row
}

/// Milliseconds, with three decimals.
fn steps(steps: &Steps, row: &Row) -> Map<String, Value> {
    let round = |ms: f64| (ms * 1_000.0).round() / 1_000.0;
    let download = row.sent.as_ref().and_then(|sent| sent.download).map(|time| time.as_secs_f64() * 1_000.0);
    let all = [
        ("download", download),
        ("queue", steps.queue),
        ("read", steps.read),
        ("parse", steps.parse),
        ("check", steps.check),
        ("store", steps.store),
        ("wait", steps.wait),
        ("fund", Some(steps.fund)),
        ("verify", Some(steps.verify)),
        ("commit", Some(steps.commit)),
        ("apply", Some(steps.apply)),
        ("total", Some(steps.total)),
    ];
    all.into_iter().filter_map(|(name, ms)| Some((name.to_owned(), json!(round(ms?))))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budgets are those of the benchmark.
    #[test]
    fn the_budgets_are_those_of_the_benchmark() {
        let document = include_str!("../../../../../docs/benchmarks/engine.md");
        for (stage, budget) in BUDGET {
            let start = format!("| {} | ", stage.name());
            let line = document.lines().find(|line| line.starts_with(&start) && line.matches('|').count() == 4);
            assert!(line.is_some_and(|line| line.ends_with(&format!(" | {budget} |"))), "{}: {line:?}", stage.name());
        }
        let lanes = include_str!("../../../../../docs/benchmarks/lanes.md");
        let head = lanes.lines().find(|line| line.starts_with("| checks |")).unwrap();
        let times = lanes.lines().find(|line| line.starts_with("| ECDSA, 1,024 |")).unwrap();
        for (name, time) in SIGNATURE {
            let column = head.split('|').position(|cell| cell.contains(&format!("`{name}`"))).unwrap();
            let words = times.split('|').nth(column).unwrap().trim();
            let micros: f64 = words.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(micros * 1_000.0, f64::from(*time), "{name}: {words}");
        }
        assert_eq!(budget()["fund"], 1_150);
        assert_eq!(budget()["verify"], 950);
    }
}
