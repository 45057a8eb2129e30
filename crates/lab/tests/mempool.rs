//! `lydian-lab mempool` with a real node: every row on a small mempool, and a node that does not accept everything.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use lydian_chains::presets::mempool_mix;
use lydian_lab::LabError;
use lydian_lab::mempool::{Comparison, Data, Row};
use lydian_lab::runs::Contender;
use lydian_lab::runs::adapters::Bitcoind;
use lydian_oracle::build::Built;
use lydian_oracle::{Scratch, or_skip};
use lydian_report::mempool::{MempoolResults, MempoolSettings, to_markdown};
use std::process::Command;
use std::sync::atomic::AtomicBool;

const TRANSACTIONS: u32 = 240;

/// A scratch folder, the data and Bitcoin Core; `None` without it.
struct Bench {
    scratch: Scratch,
    data: Data,
    judge: Built,
}

impl Bench {
    fn new(name: &str) -> Option<Bench> {
        let judge = or_skip(name, lydian_oracle::build::locate())?;
        let scratch = Scratch::new(name);
        let settings = mempool_mix::MempoolSettings { transactions: TRANSACTIONS, full: 0, seed: 1, per_block: 30 };
        let data = Data::ensure(settings, &scratch.path().join("cache"), 2, &mut |_| ()).unwrap();
        Some(Bench { scratch, data, judge })
    }

    fn node(&self, name: &str, more: &[&str]) -> Contender {
        Contender {
            name: name.into(),
            adapter: Box::new(Bitcoind::locate(Some(&self.judge.bitcoind)).unwrap()),
            more: more.iter().map(|argument| (*argument).to_owned()).collect(),
            source: None,
        }
    }

    fn run(&self, contenders: &[Contender], rows: &[Row], runs: u32, interrupted: bool) -> MempoolResults {
        let settings = MempoolSettings {
            runs,
            threads: 2,
            cache_mib: 100,
            timeout_seconds: 120,
            rows: rows.iter().map(|row| row.name().to_owned()).collect(),
            peers_seconds: 1,
        };
        let interrupted = AtomicBool::new(interrupted);
        let work = self.scratch.path().join("work");
        let comparison = Comparison {
            data: &self.data,
            contenders,
            rows,
            settings,
            work: &work,
            command_line: Vec::new(),
            interrupted: &interrupted,
        };
        let mut saved = 0;
        let mut done = |results: &MempoolResults| -> Result<(), LabError> {
            saved += 1;
            assert_eq!(results.sessions.len(), saved, "saved after each session");
            Ok(())
        };
        let results = comparison.run(&mut |_| (), &mut done).unwrap();
        assert!(!work.join("mempool").exists(), "its folder is gone");
        results
    }
}

#[test]
fn core_gives_a_figure_in_every_row() {
    let Some(bench) = Bench::new("lab-mempool-rows") else { return };
    let results = bench.run(&[bench.node("bitcoind", &[])], &Row::ALL, 1, false);
    let text = to_markdown(&results);
    assert!(results.is_agreed, "{text}");
    let names: Vec<&str> = results.sessions.iter().map(|session| session.session.as_str()).collect();
    assert_eq!(names, ["loaded", "tx", "peers", "pairs", "cluster"], "the reference engine is Lydian's");
    let values = |row: &str, what: &str| {
        let found = results.figures.iter().find(|figure| (&*figure.row, &*figure.what) == (row, what));
        found.unwrap_or_else(|| panic!("no {row}: {what}\n{text}")).values.clone()
    };
    for row in Row::ALL.into_iter().filter(|row| *row != Row::ImportReference) {
        let of_row = results.figures.iter().filter(|figure| figure.row == row.name());
        assert!(of_row.flat_map(|figure| &figure.values).any(|value| *value > 0.0), "{}\n{text}", row.name());
    }
    assert_eq!(results.content.unwrap().size, u64::from(TRANSACTIONS));
    assert_eq!(values("peers", "accepted"), [f64::from(TRANSACTIONS)]);
    assert_eq!(values("compact-block", "transactions requested"), [0.0, 0.0], "every transaction is known");
    assert_eq!((values("block", "wall").len(), values("forward", "wall").len()), (2, 2));
    assert!(values("getrawmempool", "answer").iter().all(|bytes| *bytes > 240.0 * 300.0));
}

/// A node without clusters accepts no child of a waiting transaction; then its figures would be those of less work.
#[test]
fn a_node_with_another_mempool_fails_and_the_others_continue() {
    let Some(bench) = Bench::new("lab-mempool-fails") else { return };
    let contenders = [bench.node("bitcoind:single", &["-limitclustercount=1"]), bench.node("bitcoind", &[])];
    let results = bench.run(&contenders, &[Row::Import, Row::Memory], 2, false);
    let failures: Vec<Option<&str>> = results.sessions.iter().map(|session| session.failure.as_deref()).collect();
    let [Some(first), None, Some(second), None] = failures.as_slice() else { panic!("{failures:?}") };
    assert!(first.contains("after the import the mempool has") && first == second, "{first} {second}");
    assert!(!results.is_agreed && results.sessions[0].log_end.is_some());
    let nodes: Vec<&str> = results.figures.iter().map(|figure| figure.node.as_str()).collect();
    assert_eq!(nodes, ["bitcoind"; 5]);
    assert!(results.figures.iter().all(|figure| figure.values.len() == 2));
    assert!(to_markdown(&results).contains("bitcoind:single loaded, run 1: mempool: after the import"));
}

#[test]
fn an_unknown_row_and_a_number_out_of_bounds_are_refused() {
    let scratch = Scratch::new("lab-mempool-usage");
    let refused = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lydian-lab"));
        command.arg("mempool").args(arguments).args(["--nodes", "bitcoind", "--node-path", "bitcoind=/bin/true"]);
        command.env("XDG_CACHE_HOME", scratch.path()).env("XDG_CONFIG_HOME", scratch.path());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["--only", "import,nothing"]).contains("--only: nothing is none of import"));
    assert!(refused(&["--runs", "0"]).contains("must be at least 1"));
    assert!(refused(&["--transactions", "0"]).contains("--transactions must lie between 1 and"));
    assert!(refused(&["--transactions", "500001"]).contains("--transactions must lie between 1 and"));
}
