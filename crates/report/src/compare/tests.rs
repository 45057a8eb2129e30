use super::*;
use crate::made_up::{self, Took};
use crate::results::Answer;

const CHAIN: [u64; 6] = [524_297, 147_582, 25_427, 586_370, 1_100_000, 158_599_228];

fn results(took: &[Took]) -> Results {
    made_up::results("mainnet-mix", 550, CHAIN, took)
}

/// Three runs that differ by one percent.
fn around(node: &'static str, wall: f64, cpu: f64) -> Vec<Took> {
    [1.0, 0.99, 1.01].map(|factor| Took::new(node, wall * factor, cpu * factor)).to_vec()
}

fn verdict(comparison: &Comparison, figure: Figure) -> Verdict {
    comparison.lines.iter().find(|line| line.figure == figure).unwrap().verdict
}

#[test]
fn the_same_results_show_no_difference() {
    let same = results(&around("lydian", 2.0, 4.0));
    let comparison = compare(&same, &same, 0.05);
    assert_eq!((comparison.exit_code(), comparison.warnings.len()), (0, 0));
    let figures: Vec<Figure> = comparison.lines.iter().map(|line| line.figure).collect();
    assert_eq!(figures.len(), 5, "{figures:?}");
    assert!(comparison.lines.iter().all(|line| line.verdict == Verdict::NoDifference));
    assert!(comparison.to_markdown().contains("| lydian | wall s | 2.00 [1.98-2.02], 3 |"));
}

#[test]
fn a_slower_node_is_a_regression_and_a_faster_one_is_none() {
    let old = results(&[around("lydian", 2.0, 4.0), around("bitcoind", 14.0, 24.0)].concat());
    let new = results(&[around("lydian", 2.4, 4.0), around("bitcoind", 12.0, 20.0)].concat());
    let comparison = compare(&old, &new, 0.05);
    assert_eq!(comparison.exit_code(), 1);
    assert_eq!(verdict(&comparison, Figure::WallSeconds), Verdict::Worse);
    assert_eq!(verdict(&comparison, Figure::CpuSeconds), Verdict::NoDifference);
    assert!(comparison.to_markdown().contains("| +20.0 % | **slower** |"));
    assert_eq!(compare(&new, &old, 0.25).exit_code(), 0, "a fourth is allowed");
    let json: serde_json::Value = serde_json::from_str(&comparison.to_json()).unwrap();
    assert_eq!(json["lines"][0]["verdict"], "worse");
}

#[test]
fn disturbed_runs_count_for_cpu_time_alone() {
    let old = results(&around("lydian", 2.0, 4.0));
    let mut took = around("lydian", 6.0, 4.0);
    took.iter_mut().for_each(|took| took.is_disturbed = true);
    let comparison = compare(&old, &results(&took), 0.05);
    assert_eq!(comparison.exit_code(), 0);
    assert_eq!(verdict(&comparison, Figure::WallSeconds), Verdict::CannotTell);
    assert_eq!(verdict(&comparison, Figure::CpuSeconds), Verdict::NoDifference);
    // One undisturbed run is left, as fast as before; higher CPU time shows in spite of the disturbance.
    took[0] = Took::new("lydian", 2.0, 4.0);
    took[1].cpu_seconds = 5.0;
    took[2].cpu_seconds = 5.1;
    took[0].cpu_seconds = 4.9;
    let comparison = compare(&old, &results(&took), 0.05);
    assert_eq!(verdict(&comparison, Figure::CpuSeconds), Verdict::Worse);
    assert_eq!(comparison.lines[0].runs_new, 1);
}

#[test]
fn a_node_whose_runs_do_not_count_any_more_is_a_regression() {
    let old = results(&around("lydian", 2.0, 4.0));
    let mut took = around("lydian", 2.0, 4.0);
    took.iter_mut().for_each(|took| took.outcome = Outcome::WrongAnswer);
    let failed = results(&took);
    let comparison = compare(&old, &failed, 0.05);
    assert_eq!((comparison.exit_code(), comparison.lines.len()), (1, 2));
    assert!(comparison.to_markdown().contains("**FAILS** | no run counts any more"));
    assert!(comparison.warnings.iter().any(|line| line.contains("3 of 3 runs of the new comparison do not count")));
    let back = compare(&failed, &old, 0.05);
    assert_eq!((back.exit_code(), back.lines[0].verdict), (0, Verdict::CannotTell));
}

/// Regression: a new file without runs, or with runs of another cache state, gave an empty table and exit code 0.
#[test]
fn runs_that_are_not_there_any_more_are_a_regression() {
    let old = results(&around("lydian", 2.0, 4.0));
    let mut none = old.clone();
    none.runs.clear();
    assert_eq!(compare(&old, &none, 0.05).exit_code(), 1);
    let mut cold = old.clone();
    cold.runs.iter_mut().for_each(|run| run.cache = Cache::Cold);
    let comparison = compare(&old, &cold, 0.05);
    assert_eq!((comparison.exit_code(), comparison.lines[0].figure), (1, Figure::Runs));
    assert!(comparison.to_markdown().contains("it was not run in this state of the cache"));
    let nothing = compare(&none, &old, 0.05);
    assert_eq!((nothing.exit_code(), nothing.lines.len()), (2, 0));
    assert!(nothing.to_markdown().starts_with("NOT COMPARABLE"));
}

/// As fast as before, but wrong once: the two runs that count hid it.
#[test]
fn a_wrong_answer_or_fewer_runs_that_count_are_a_regression() {
    let old = results(&around("lydian", 2.0, 4.0));
    for (outcome, reason) in [
        (Outcome::WrongAnswer, "1 of 3 new runs gave a wrong answer"),
        (Outcome::Failed, "2 of 3 runs count, before 3 of 3"),
    ] {
        let mut took = around("lydian", 2.0, 4.0);
        took[1].outcome = outcome;
        let new = results(&took);
        let comparison = compare(&old, &new, 0.05);
        assert_eq!((comparison.exit_code(), comparison.lines[0].reason.as_str()), (1, reason));
        assert_eq!(compare(&new, &new, 0.05).exit_code(), u8::from(outcome == Outcome::WrongAnswer));
    }
}

#[test]
fn what_cannot_be_compared_is_refused_with_both_values() {
    let old = results(&around("lydian", 2.0, 4.0));
    let refused = |change: fn(&mut Results)| {
        let mut new = old.clone();
        change(&mut new);
        let comparison = compare(&old, &new, 0.05);
        assert_eq!((comparison.exit_code(), comparison.lines.len(), comparison.refusals.len()), (2, 0, 1));
        assert!(comparison.to_markdown().starts_with("NOT COMPARABLE:"));
        comparison.refusals[0].clone()
    };
    assert_eq!(
        refused(|new| new.experiment = crate::results::Experiment::Sync),
        "different experiments: old reindex, new sync"
    );
    assert!(refused(|new| new.chain.sha256 = "other".into()).contains("old mainnet-mix, new other"));
    assert!(refused(|new| new.machine.cpu = "other".into()).contains("different processors"));
    assert!(refused(|new| new.machine.cores = 64).contains("old 2, new 64"));
    assert!(refused(|new| new.settings.threads = 1).contains("threads"));
    assert!(refused(|new| new.settings.cache_mib = 450).contains("old 4000, new 450"));
    assert!(refused(|new| new.settings.from_height = Some(9)).contains("old 0, new 9"));
    assert_eq!(refused(|new| new.nodes[0].name = "knots".into()), "no node in common: old lydian, new knots");
}

#[test]
fn other_versions_arguments_and_machines_are_reported() {
    let old = results(&[around("lydian", 2.0, 4.0), around("knots", 14.0, 24.0)].concat());
    let mut new = results(&[around("lydian", 2.0, 4.0), around("btcd", 14.0, 24.0)].concat());
    new.nodes[0].version = "2".into();
    new.nodes[0].arguments = vec!["-dbcache=450".into()];
    new.machine.kernel = "other".into();
    new.floor.as_mut().unwrap().ecdsa_ns = 30_000.0;
    let warnings = compare(&old, &new, 0.05).warnings.join("\n");
    for words in [
        "lydian: version 1, now 2",
        "old [-dbcache=4000], new [-dbcache=450]",
        "different kernels",
        "25.0 us, and now takes 30.0 us (+20.0 %)",
        "knots took part in the old comparison alone",
        "btcd took part in the new comparison alone",
    ] {
        assert!(warnings.contains(words), "{words} not in\n{warnings}");
    }
    assert_eq!(without_port("-connect=127.0.0.1:37245"), "-connect=127.0.0.1:0");
    assert_eq!(without_port("-par=2"), "-par=2");
}

/// A fork that mined its own chain is compared with the same number of blocks only.
#[test]
fn a_chain_of_its_own_is_compared_at_the_same_height() {
    let with = |height: Option<u32>, wall: f64| {
        let mut results = results(&around("b3chaind", wall, 4.0));
        results.nodes[0].own_chain =
            height.map(|height| Answer { height, tip: format!("{wall}"), coins: None, utxo_hash: None });
        results
    };
    assert_eq!(compare(&with(Some(120), 2.0), &with(Some(120), 3.0), 0.05).exit_code(), 1, "slower on the same blocks");
    for other in [Some(2_016), None] {
        let comparison = compare(&with(Some(120), 2.0), &with(other, 3.0), 0.05);
        assert!(comparison.lines.is_empty(), "{other:?}");
        assert!(comparison.warnings[0].contains("it validated 120 blocks of its own chain, and now"), "{other:?}");
    }
    let mut failed = with(None, 3.0);
    failed.runs.iter_mut().for_each(|run| run.outcome = Outcome::Failed);
    assert_eq!(compare(&with(Some(120), 2.0), &failed, 0.05).exit_code(), 1, "it did not mine");
}
