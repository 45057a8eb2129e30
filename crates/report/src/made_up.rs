//! Invented results for tests: a node's times on a chain with known counts.
//!
//! Made from JSON, as a file would be, so that a new optional field of the results needs no change here.

use crate::results::{Outcome, Results, Run};
use crate::summary::summarise;
use serde_json::{Value, json};

/// One run of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) node: &'static str,
    pub(crate) wall_seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) is_disturbed: bool,
    pub(crate) outcome: Outcome,
}

impl Took {
    pub(crate) fn new(node: &'static str, wall_seconds: f64, cpu_seconds: f64) -> Took {
        Took { node, wall_seconds, cpu_seconds, is_disturbed: false, outcome: Outcome::Counted }
    }
}

/// `counts`: ECDSA, Schnorr, tweaks, inputs, outputs, bytes. The chain `empty` has only its bytes, as in the lab.
pub(crate) fn results(preset: &str, height: u32, counts: [u64; 6], took: &[Took]) -> Results {
    let [ecdsa, schnorr, tweaks, inputs, outputs, bytes] = counts;
    let known = |count: u64| if preset == "empty" { Value::Null } else { json!(count) };
    let mut names: Vec<&str> = took.iter().map(|took| took.node).collect();
    names.dedup();
    let node = |name: &&str| json!({"name": name, "program": name, "version": "1", "arguments": ["-dbcache=4000"]});
    let floor =
        json!({"ecdsa_ns": 25_000.0, "schnorr_ns": 25_500.0, "tweak_ns": 18_000.0, "threads": 2, "seconds": 8.0});
    let document = json!({
        "format": 1,
        "lab": {"version": "0", "commit": null, "command_line": []},
        "experiment": "reindex",
        "started": 0.0,
        "machine": {"cpu": "made up", "cores": 2, "memory_bytes": null, "kernel": "-", "filesystem": null},
        "chain": {
            "preset": preset, "network": "regtest", "sha256": preset, "file_bytes": bytes, "height": height, "tip": "00",
            "transactions": known(1), "inputs": known(inputs), "outputs": known(outputs), "ecdsa_verifications": known(ecdsa),
            "schnorr_verifications": known(schnorr), "tweak_checks": known(tweaks)
        },
        "settings": {"runs": 3, "threads": 2, "cache_mib": 4000, "timeout_seconds": 1, "memory_max_bytes": 1},
        "floor": if preset == "empty" { Value::Null } else { floor },
        "nodes": names.iter().map(node).collect::<Vec<Value>>(),
        "servers": [],
        "expected": null,
        "is_agreed": true,
        "runs": took.iter().enumerate().map(|(index, took)| run(index, took)).collect::<Vec<Value>>(),
        "summary": []
    });
    let mut results: Results = serde_json::from_value(document).expect("the JSON of a test");
    results.summary = summarise(&results);
    results
}

fn run(index: usize, took: &Took) -> Value {
    json!({
        "node": took.node, "number": index + 1, "cache": "warm", "cache_emptied_by": null, "outcome": took.outcome, "reason": null,
        "log_end": null, "tip_seconds": took.wall_seconds, "wall_seconds": took.wall_seconds, "user_seconds": took.cpu_seconds,
        "system_seconds": 0.0, "peak_rss_bytes": 150_000_000, "io": crate::results::Io::default(), "disk_bytes": 1,
        "machine": {"idle_share": 0.0, "node_share": 1.0, "others_share": 0.0, "steal_share": 0.0},
        "is_disturbed": took.is_disturbed, "answer": null, "samples": []
    })
}

#[test]
fn made_up_runs_are_summed_up_like_measured_ones() {
    let results = results("mainnet-mix", 550, [1; 6], &[Took::new("a", 2.0, 4.0), Took::new("a", 4.0, 6.0)]);
    let figures = results.summary[0].figures.as_ref().unwrap();
    assert_eq!((figures.wall_seconds.median, figures.cpu_seconds.median), (3.0, 5.0));
    assert!(results.runs.iter().all(|run: &Run| run.outcome == Outcome::Counted));
}
