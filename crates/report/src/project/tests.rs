use super::*;
use crate::made_up::{self, Took};

const ECDSA_NS: f64 = 25_000.0;
const SCHNORR_NS: f64 = 25_500.0;
const TWEAK_NS: f64 = 18_000.0;

/// Name, height, and counts: ECDSA, Schnorr, tweaks, inputs, outputs, bytes.
type Chain = (&'static str, u32, [u64; 6]);

const CHAINS: [Chain; 7] = [
    ("empty", 2016, [0, 0, 0, 0, 2016, 460_000]),
    ("mainnet-mix", 550, [524_297, 147_582, 25_427, 586_370, 1_100_000, 158_599_228]),
    ("worst", 460, [2_100_000, 5_000, 300_000, 60_000, 200_000, 50_000_000]),
    ("reuse", 2190, [600_000, 10_000, 1_000, 700_000, 1_900_000, 138_000_000]),
    ("one", 700, [10_000, 500_000, 0, 510_000, 90_000, 90_000_000]),
    ("two", 4000, [20_000, 10_000, 0, 30_000, 1_000_000, 40_000_000]),
    ("three", 100, [300_000, 0, 0, 900_000, 100_000, 400_000_000]),
];

/// The costs of a made-up node.
#[derive(Clone, Copy)]
struct Node {
    start: f64,
    check: f64,
    input: f64,
    output: f64,
    byte: f64,
}

impl Node {
    fn seconds(&self, [ecdsa, schnorr, tweaks, inputs, outputs, bytes]: [f64; 6]) -> f64 {
        let checks = ecdsa + schnorr * SCHNORR_NS / ECDSA_NS + tweaks * TWEAK_NS / ECDSA_NS;
        self.start + self.check * checks + self.input * inputs + self.output * outputs + self.byte * bytes
    }
}

const NODE: Node = Node { start: 0.05, check: 26e-6, input: 6e-6, output: 2e-6, byte: 4e-9 };

/// CPU time to the microsecond, as in a results file.
fn results((preset, height, counts): Chain, node: &Node) -> Results {
    let seconds = node.seconds(counts.map(as_f64));
    made_up::results(preset, height, counts, &[Took::new("made-up", seconds * 0.55, seconds)])
}

fn target() -> Target {
    Target::parse("mainnet@928000").unwrap()
}

/// The time that the node really takes at the middle counts of the target.
fn truth(node: &Node) -> f64 {
    let counts = TargetCounts::of(&target());
    let all = counts.range("verifications").middle;
    let schnorr = all * counts.range("schnorr_share").middle;
    let middle = |name: &str| counts.range(name).middle;
    node.seconds([all - schnorr, schnorr, middle("tweak_checks"), middle("inputs"), middle("outputs"), middle("bytes")])
}

fn projected(chains: &[Chain], node: &Node, cores: Option<usize>) -> NodeProjection {
    let all: Vec<Results> = chains.iter().map(|chain| results(*chain, node)).collect();
    let projection = project(&all, &target(), &Options { cores }).unwrap();
    assert_eq!(projection.refused, []);
    projection.nodes.into_iter().next().unwrap()
}

#[test]
fn a_made_up_node_with_known_costs_is_recovered() {
    let node = projected(&CHAINS, &NODE, None);
    let (best, truth) = (&node.models[0], truth(&NODE));
    assert!(best.residual < 1e-6, "{best:?}");
    assert!((best.cpu_seconds.middle / truth - 1.0).abs() < 1e-3, "{} {truth}", best.cpu_seconds.middle);
    assert!((node.cpu_seconds.middle / truth - 1.0).abs() < 0.05, "{:?} {truth}", node.cpu_seconds);
    assert!(node.cpu_seconds.low < truth && truth < node.cpu_seconds.high);
    let check = best.terms.iter().find(|term| term.of == "check").unwrap();
    assert!((check.nanoseconds - 26_000.0).abs() < 30.0, "{check:?}");
}

#[test]
fn one_chain_gives_bounds_instead_of_precision() {
    let node = projected(&CHAINS[1..2], &NODE, None);
    let truth = truth(&NODE);
    assert!(node.cpu_seconds.low < truth && truth < node.cpu_seconds.high, "{:?} {truth}", node.cpu_seconds);
    assert!(node.cpu_seconds.high / node.cpu_seconds.low > 1.3, "{:?}", node.cpu_seconds);
    assert!(node.models.iter().any(|model| model.kind == "one kind of work"));
    assert!(node.models.iter().any(|model| model.kind == "checks at the reference's price"));
    assert!(node.notes.iter().any(|note| note.contains("one chain alone")));
    // A node with lanes took less than the reference's price: that model does not apply.
    let lanes = projected(&CHAINS[1..2], &Node { check: 4e-6, ..NODE }, None);
    assert!(lanes.models.iter().all(|model| model.kind == "one kind of work"));
}

#[test]
fn more_chains_narrow_the_bounds() {
    let width = |node: &NodeProjection| node.cpu_seconds.high / node.cpu_seconds.low;
    let (one, all) = (projected(&CHAINS[1..2], &NODE, None), projected(&CHAINS, &NODE, None));
    assert!(width(&all) < width(&one), "{:?} {:?}", all.cpu_seconds, one.cpu_seconds);
}

#[test]
fn stages_that_a_node_reports_separate_the_checks() {
    let mut with_stages = results(CHAINS[1], &NODE);
    let counts = CHAINS[1].2.map(as_f64);
    let signatures = Node { start: 0.0, input: 0.0, output: 0.0, byte: 0.0, ..NODE }.seconds(counts);
    let stage = |name: &str, cpu_seconds: f64| Stage { name: name.into(), cpu_seconds, wall_seconds: None };
    with_stages.runs[0].stages = vec![stage("Signatures", signatures), stage("parse", 0.6), stage("apply", 1.0)];
    let projection = project(&[with_stages], &target(), &Options::default()).unwrap();
    let node = &projection.nodes[0];
    assert_eq!(node.models.len(), 3);
    assert!(node.models.iter().all(|model| model.kind == "stages"));
    let check = &node.models[0].terms[0];
    assert!((check.nanoseconds - 26_000.0).abs() < 1e-6, "{check:?}");
    let truth = truth(&NODE);
    assert!(node.cpu_seconds.low < truth && truth < node.cpu_seconds.high);
}

#[test]
fn the_number_of_cores_is_marked_as_an_assumption() {
    let measured = projected(&CHAINS, &NODE, None);
    assert_eq!((measured.cores, measured.notes.iter().any(|note| note.contains("assumed"))), (2, false));
    assert!((measured.wall_seconds.middle / measured.cpu_seconds.middle - 0.55).abs() < 1e-9);
    let many = projected(&CHAINS, &NODE, Some(16));
    assert!(many.notes.iter().any(|note| note.contains("assumed") && note.contains("2 cores to 16")));
    // 0.55 of the CPU time on two cores: a tenth is serial. On 16 cores as busy as those: 0.06875; by Amdahl 0.15625.
    assert!((many.wall_seconds.low / many.cpu_seconds.low - 0.06875).abs() < 1e-9);
    assert!((many.wall_seconds.high / many.cpu_seconds.high - 0.15625).abs() < 1e-9);
}

#[test]
fn what_cannot_be_projected_is_refused_with_the_reason() {
    assert!(project(&[], &target(), &Options::default()).unwrap_err().to_string().contains("no results"));
    let mut other = results(CHAINS[0], &NODE);
    other.machine.cpu = "another".into();
    let error = project(&[results(CHAINS[1], &NODE), other], &target(), &Options::default()).unwrap_err();
    assert!(error.to_string().contains("results of two machines, made up (2) and another (2)"), "{error}");
    let refused = |result: Results| {
        let projection = project(&[result], &target(), &Options::default()).unwrap();
        assert_eq!(projection.nodes, []);
        projection.refused[0].reason.clone()
    };
    let mut failed = results(CHAINS[1], &NODE);
    failed.summary[0].figures = None;
    assert!(refused(failed).contains("no run on mainnet-mix counts"));
    let mut unknown = results(CHAINS[1], &NODE);
    unknown.chain.preset = None;
    unknown.chain.inputs = None;
    assert!(refused(unknown).contains("the results on files do not say how many inputs"));
    assert!(refused(results(CHAINS[0], &NODE)).contains("no chain with inputs"));
    let mut part = results(CHAINS[1], &NODE);
    part.settings.from_height = Some(400);
    assert!(refused(part).contains("the results from height 400 on"));
}

#[test]
fn the_text_says_that_nothing_in_it_was_measured() {
    let all: Vec<Results> = CHAINS.iter().map(|chain| results(*chain, &NODE)).collect();
    let projection = project(&all, &target(), &Options { cores: Some(6) }).unwrap();
    let text = projection.to_markdown();
    assert!(text.starts_with("PROJECTION, not a measurement: mainnet up to height 928000"));
    for words in [
        "| made-up | reindex on empty, mainnet-mix,",
        "ns x checks",
        "Not in it:",
        "173 million coins",
        "schnorr_share",
    ] {
        assert!(text.contains(words), "{words} not in\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&projection.to_json()).unwrap();
    assert_eq!(json["kind"], "projection");
    assert!(json["nodes"][0]["cpu_seconds"]["low"].as_f64().unwrap() > 0.0);
}

/// Runs of the empty chain take hundredths of a second and spread by a quarter, which must not spread to the
/// projection.
#[test]
fn a_short_chain_whose_runs_spread_hardly_widens_the_bounds() {
    let quiet: Vec<Results> = CHAINS.iter().map(|chain| results(*chain, &NODE)).collect();
    let mut noisy = quiet.clone();
    let spread = &mut noisy[0].summary[0].figures.as_mut().unwrap().cpu_seconds;
    (spread.min, spread.max) = (spread.median * 0.75, spread.median * 1.25);
    let of = |all: &[Results]| project(all, &target(), &Options::default()).unwrap().nodes[0].cpu_seconds;
    let (quiet, noisy) = (of(&quiet), of(&noisy));
    assert!((noisy.high / quiet.high - 1.0).abs() < 0.02, "{quiet:?} {noisy:?}");
    assert!((noisy.low / quiet.low - 1.0).abs() < 0.02, "{quiet:?} {noisy:?}");
}

/// Times that no sum of costs explains: every second chain takes `factor` times what the others predict.
fn contradicted(factor: f64) -> Projection {
    let mut all: Vec<Results> = CHAINS.iter().map(|chain| results(*chain, &NODE)).collect();
    for result in all.iter_mut().step_by(2) {
        let spread = &mut result.summary[0].figures.as_mut().unwrap().cpu_seconds;
        (spread.min, spread.median, spread.max) = (spread.min * factor, spread.median * factor, spread.max * factor);
    }
    project(&all, &target(), &Options::default()).unwrap()
}

#[test]
fn what_is_unexplained_widens_the_bounds_and_is_warned_of() {
    let node = |projection: Projection| projection.nodes.into_iter().next().unwrap();
    let (sure, unsure) = (node(contradicted(1.0)), node(contradicted(4.0)));
    let residual = unsure.models[0].residual;
    assert!(residual > UNEXPLAINED_WARNED && residual < UNEXPLAINED_MAX, "{residual}");
    let best = unsure.models[0].cpu_seconds;
    assert!(best.high / best.middle > 1.0 + residual && best.low / best.middle < 1.0 - residual, "{best:?}");
    let is_warned = |node: &NodeProjection| node.notes.iter().any(|note| note.starts_with("WARNING: the best model"));
    assert!(is_warned(&unsure) && !is_warned(&sure));
    let refused = contradicted(40.0);
    assert!(refused.nodes.is_empty() && refused.refused[0].reason.contains("% unexplained"), "{:?}", refused.refused);
}

/// Core and a node with lanes on the same chain: every machine has bounds and a formula, Core its published time.
#[test]
fn other_machines_are_printed_with_formula_and_bounds() {
    let took = [Took::new("lydian", 2.05, 3.86), Took::new("bitcoind", 14.05, 24.3)];
    let measured = made_up::results("mainnet-mix", 550, CHAINS[1].2, &took);
    let projection = project(&[measured], &target(), &Options::default()).unwrap();
    let [lydian, core] = [0, 1].map(|at| &projection.nodes[at]);
    assert_eq!((lydian.machines.len(), core.machines.len()), (4, 4));
    for on in lydian.machines.iter().chain(&core.machines) {
        let Range { low, middle, high } = on.wall_seconds;
        assert!(0.0 < low && low <= middle && middle <= high && !on.formula.is_empty(), "{on:?}");
    }
    let hours = |node: &NodeProjection, at: usize| node.machines[at].wall_seconds.middle;
    assert!(hours(lydian, 1) < hours(lydian, 0) && hours(lydian, 0) < lydian.wall_seconds.middle);
    assert!(hours(lydian, 2) > lydian.wall_seconds.middle, "a slower processor without these lanes");
    assert_eq!(core.machines[3].wall_seconds, Range::exactly(727.0 * 60.0));
    assert!(hours(lydian, 3) < 727.0 * 60.0);
    // Eight cores as busy as two: a quarter of the wall time at most.
    assert!((lydian.machines[0].wall_seconds.low / lydian.cpu_seconds.low - 2.05 / 3.86 / 4.0).abs() < 1e-9);
    let text = projection.to_markdown();
    for words in [
        "| lydian | 8 cores of this processor |",
        "| lydian | 16 cores of this processor |",
        "| bitcoind | Raspberry Pi 5, 4 cores |",
        "Bitcoin Core 30.0 as published",
        "12.12 h, published for Bitcoin Core 30.0, x (",
    ] {
        assert!(text.contains(words), "{words} not in\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&projection.to_json()).unwrap();
    assert_eq!(json["nodes"][1]["machines"][3]["published_seconds"], 43_620.0);
}
