//! Nodes that go wrong in every way that a run must survive.
//!
//! They are killed, missing, on another network, growing, filling the disk, or lying. Each is recorded with its reason
//! and the end of its log, and the others continue. Other tests cover what a run reports besides its figures: progress,
//! stages, bytes, and what it resumes from.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test fails by panicking, reads its own files, and says what it lacks"
)]

mod fakes;

use fakes::{Fake, Gullible, empty_chain, one_run, serve};
use lydian_chains::chain_files::{ChainFiles, network};
use lydian_chains::presets::validity::make;
use lydian_lab::LabError;
use lydian_lab::runs::adapter::Adapter;
use lydian_lab::runs::cgroup::Group;
use lydian_lab::runs::progress::{Moment, Progress};
use lydian_lab::runs::rpc::Server;
use lydian_lab::runs::{Comparison, Contender, Counter, More, Servers, Source, system};
use lydian_lab::validity::{Patience, Terms, examine};
use lydian_oracle::Scratch;
use lydian_report::results::{
    Answer, Cache, Experiment, LeftOut, NetworkBytes, Outcome, Results, Run, Settings, Stage,
};
use lydian_report::summary::to_markdown;
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// A chain of three empty blocks.
struct Bench {
    scratch: Scratch,
    chain: ChainFiles,
    settings: Settings,
    experiment: Experiment,
}

impl Bench {
    fn new(name: &str) -> Bench {
        let scratch = Scratch::new(&format!("guards-{name}"));
        let chain = empty_chain(&scratch, 3);
        let settings = one_run(120);
        Bench { scratch, chain, settings, experiment: Experiment::Reindex }
    }

    fn answer(&self) -> Answer {
        lydian_lab::runs::chain::answer(&self.chain).unwrap()
    }

    fn good(&self, script: &str) -> Box<Fake> {
        Box::new(Fake::new(script, &self.answer()))
    }

    fn run(&self, nodes: Vec<(&str, Box<dyn Adapter>)>) -> Results {
        self.run_with(nodes, More::default(), None).unwrap()
    }

    fn run_with(
        &self,
        nodes: Vec<(&str, Box<dyn Adapter>)>,
        more: More<'_>,
        source: Option<Source>,
    ) -> Result<Results, LabError> {
        let contender = |(name, adapter): (&str, Box<dyn Adapter>)| Contender {
            name: name.into(),
            adapter,
            more: Vec::new(),
            source: source.clone(),
        };
        let contenders: Vec<Contender> = nodes.into_iter().map(contender).collect();
        let work = self.scratch.path().join("work");
        std::fs::create_dir_all(&work).unwrap();
        let comparison = Comparison {
            experiment: self.experiment,
            servers: Servers::default(),
            chain: &self.chain,
            contenders: &contenders,
            caches: &[Cache::Warm],
            may_drop_caches: false,
            settings: self.settings.clone(),
            floor: None,
            work: &work,
            command_line: vec!["test".into()],
            interrupted: &AtomicBool::new(false),
            more,
        };
        let results = comparison.run(&mut |_, _| Ok(()));
        assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0, "the folder of a run is removed");
        results
    }
}

fn outcomes(results: &Results) -> Vec<(&str, Outcome)> {
    results.runs.iter().map(|run| (run.node.as_str(), run.outcome)).collect()
}

fn reason(run: &Run) -> &str {
    run.reason.as_deref().unwrap_or_default()
}

#[test]
fn a_killed_and_a_missing_program_are_failed_runs() {
    let bench = Bench::new("killed");
    let mut missing = bench.good(":");
    missing.shell = "/no/such/program";
    let killed = bench.good("echo 'at height 2' > \"$2\"; kill -9 $$");
    let crashed = bench.good("echo no room left >&2; kill -SEGV $$");
    let good = bench.good(":");
    let results = bench.run(vec![("killed", killed), ("missing", missing), ("crashed", crashed), ("good", good)]);
    let failed = Outcome::Failed;
    let expected = [("killed", failed), ("missing", failed), ("crashed", failed), ("good", Outcome::Counted)];
    assert_eq!(outcomes(&results), expected, "{}", to_markdown(&results));
    assert_eq!(reason(&results.runs[0]), "it was killed by signal 9");
    assert_eq!(results.runs[0].log_end.as_deref(), Some("at height 2"));
    assert_eq!(results.runs[0].exit_code, None);
    assert!(reason(&results.runs[1]).contains("/no/such/program"), "{}", reason(&results.runs[1]));
    assert_eq!(reason(&results.runs[2]), "it was killed by signal 11");
    assert_eq!(results.runs[2].log_end.as_deref(), Some("no room left"));
    assert_eq!(results.runs[3].exit_code, Some(0));
    assert!(to_markdown(&results).contains("NOT COUNTED: killed run 1: it was killed by signal 9\n    at height 2"));
}

/// The node is killed once it has taken 16 MiB of the free space; it would write 4 GB at most.
#[test]
fn a_node_that_fills_the_disk_is_ended() {
    let mut bench = Bench::new("disk");
    let free = system::disk_free_bytes(bench.scratch.path()).unwrap();
    bench.settings.disk_free_min_bytes = free.saturating_sub(16 << 20);
    let script = "echo writing > \"$2\"; i=0; while [ $i -lt 80 ]; do head -c 50000000 /dev/zero >> \"$1/fill\"; i=$((i+1)); \
                  sleep 0.2; done; sleep 100";
    let results = bench.run(vec![("fills", bench.good(script))]);
    assert_eq!(outcomes(&results), [("fills", Outcome::DiskFull)], "{}", to_markdown(&results));
    assert!(reason(&results.runs[0]).contains("bytes of the disk free"), "{}", reason(&results.runs[0]));
    assert_eq!(results.runs[0].log_end.as_deref(), Some("writing"));
    // With enough space no node is killed.
    bench.settings.disk_free_min_bytes = 1;
    assert_eq!(outcomes(&bench.run(vec![("good", bench.good("sleep 0.4"))])), [("good", Outcome::Counted)]);
}

/// The kernel kills what needs more, with the page cache counted in.
#[test]
fn a_control_group_limits_memory() {
    let mut bench = Bench::new("cgroup");
    if let Err(reason) = Group::with_memory(1 << 30) {
        eprintln!("SKIPPED a_control_group_limits_memory: {reason}");
        return;
    }
    bench.settings.cgroup_memory_bytes = Some(64 << 20);
    // A line without end is kept in memory.
    let eats = bench.good("exec tail /dev/zero");
    // More than the limit goes through the page cache, which the kernel empties.
    let writes = bench.good("head -c 200000000 /dev/zero > \"$1/file\"");
    let results = bench.run(vec![("eats", eats), ("writes", writes)]);
    let expected = [("eats", Outcome::MemoryExceeded), ("writes", Outcome::Counted)];
    assert_eq!(outcomes(&results), expected, "{}", to_markdown(&results));
    assert_eq!(
        reason(&results.runs[0]),
        "the kernel killed it: it needed more than 67108864 bytes with its page cache"
    );
    assert_eq!(results.settings.cgroup_memory_bytes, Some(64 << 20));
}

#[test]
fn a_chain_of_another_network_is_reported_before_the_run() {
    let mut bench = Bench::new("network");
    bench.chain.network = network("signet").unwrap();
    let mark = bench.scratch.path().join("started");
    let mut knows = bench.good(":");
    knows.networks = &["signet"];
    let knows_not = bench.good(&format!("touch {}", mark.display()));
    let results = bench.run(vec![("knows not", knows_not), ("knows", knows)]);
    assert_eq!(outcomes(&results), [("knows not", Outcome::Failed), ("knows", Outcome::Counted)]);
    assert_eq!(reason(&results.runs[0]), "it knows nothing of signet");
    assert!(!mark.exists(), "it was started");
}

#[test]
fn without_block_files_a_run_fails_and_says_so() {
    let bench = Bench::new("gone");
    std::fs::remove_dir_all(bench.scratch.path().join("chain")).unwrap();
    let results = bench.run(vec![("good", bench.good(":"))]);
    assert_eq!(outcomes(&results), [("good", Outcome::Failed)]);
    assert!(reason(&results.runs[0]).starts_with("cannot make its data directory: cannot copy"));
}

/// The runner believes the node, so only the broken blocks of the validity chain can reveal it; the finding is shown
/// beside its time.
#[test]
fn a_node_that_skips_scripts_counts_and_is_found_by_the_broken_blocks() {
    let bench = Bench::new("gullible");
    let gullible = Box::new(Gullible(Fake::new(":", &bench.answer())));
    let (suite, interrupted) = (make(1), AtomicBool::new(false));
    let folder = bench.scratch.path().join("node");
    let terms =
        Terms { suite: &suite, folder: &folder, threads: 2, patience: Patience::default(), interrupted: &interrupted };
    let examine = |contender: &Contender| examine(contender, &terms);
    let more = More { examine: Some(&examine), ..More::default() };
    let nodes: Vec<(&str, Box<dyn Adapter>)> = vec![("gullible", gullible), ("honest", bench.good(":"))];
    let results = bench.run_with(nodes, more, None).unwrap();
    assert_eq!(outcomes(&results), [("gullible", Outcome::Counted), ("honest", Outcome::Counted)]);
    let validity = |index: usize| results.nodes[index].validity.as_ref().unwrap();
    assert_eq!(validity(0).reason, None);
    assert_eq!(validity(0).not_validated().len(), suite.groups.len(), "it takes a broken block of every rule");
    // The other node accepts no blocks by RPC, and this is recorded too.
    assert!(validity(1).cases.is_empty() && validity(1).reason.is_some(), "{:?}", validity(1));
}

#[test]
fn stages_notes_and_who_is_left_out_are_in_the_table() {
    let bench = Bench::new("table");
    let mut staged = bench.good(":");
    let stage = |name: &str, cpu_seconds: f64| Stage { name: name.into(), cpu_seconds, wall_seconds: None };
    staged.stages = vec![stage("fund", 1.0), stage("signatures", 12.5), stage("rerun", 0.001)];
    let left_out =
        vec![LeftOut { name: "Gocoin".into(), reason: "no regtest".into(), source: Some("its code".into()) }];
    let more = More { left_out, ..More::default() };
    let results = bench.run_with(vec![("staged", staged), ("plain", bench.good("exit 1"))], more, None).unwrap();
    assert_eq!(results.runs[0].stages.len(), 3);
    assert!(results.runs[1].stages.is_empty(), "of a run that failed nothing is asked");
    let text = to_markdown(&results);
    assert!(text.contains("staged's CPU by stage: signatures 12.50 s, fund 1.00 s.\n"), "{text}");
    assert!(text.contains("| Gocoin | left out |") && text.contains(" no regtest (its code) |"), "{text}");
    let columns: Vec<usize> = text.lines().take(5).map(|line| line.matches('|').count()).collect();
    assert_eq!(columns, [17; 5], "{text}");
}

/// Each answer counts 1,000 more bytes received and 50,000 more bytes sent.
#[test]
fn network_bytes_are_what_the_server_counted_between() {
    let mut bench = Bench::new("bytes");
    bench.experiment = Experiment::Sync;
    let mut asked = 0_u64;
    let port = serve(0, move |method, _| {
        assert_eq!(method, "getnettotals");
        asked += 1;
        json!({ "totalbytesrecv": 1_000 * asked, "totalbytessent": 50_000 * asked, "timemillis": 1 })
    });
    let counter = Some(Server { port, credentials: "a:b".into() });
    let source =
        Source { name: "here".into(), peers: vec!["127.0.0.1:7".parse().unwrap()], counter: counter.map(Counter::Rpc) };
    let results = bench.run_with(vec![("a", bench.good(":"))], More::default(), Some(source)).unwrap();
    assert_eq!(results.runs[0].network, Some(NetworkBytes { received: 50_000, sent: 1_000 }));
    let figures = results.summary[0].figures.as_ref().unwrap();
    assert!((figures.received_bytes.unwrap().median - 50_000.0).abs() < 1e-9);
    // A server that does not report them.
    let deaf = Source { name: "here".into(), peers: vec!["127.0.0.1:7".parse().unwrap()], counter: None };
    let results = bench.run_with(vec![("a", bench.good(":"))], More::default(), Some(deaf)).unwrap();
    assert_eq!(results.runs[0].network, None);
}

/// Records the progress reports in words.
#[derive(Default)]
struct Listener {
    told: Mutex<Vec<String>>,
    heights: Mutex<Vec<Option<u32>>>,
}

impl Progress for Listener {
    fn begins(&self, at: &Moment<'_>) {
        let text = format!("{} {} of {} ({}/{})", at.step.node, at.step.number, at.step.of, at.position, at.steps);
        self.told.lock().unwrap().push(text);
    }

    fn is_watched(&self) -> bool {
        true
    }

    fn goes(&self, at: &Moment<'_>) {
        assert_eq!(at.height_end, 3);
        self.heights.lock().unwrap().push(at.height);
    }

    fn ends(&self) {
        self.told.lock().unwrap().push("ends".into());
    }
}

/// Logs a line for a height, then gives the listener so much time to see it that it does even if the computer stops for
/// a moment.
fn logs(height: u32) -> String {
    format!("date -u '+%Y-%m-%dT%H:%M:%S.%6NZ UpdateTip: new best=aa height={height} x' >> \"$2\"; sleep 5; ")
}

#[test]
fn progress_is_reported_during_a_run() {
    let mut bench = Bench::new("progress");
    bench.settings.runs = 2;
    let listener = Listener::default();
    let more = More { progress: Some(&listener), ..More::default() };
    let slow = bench.good(&format!("{}{}", logs(1), logs(2)));
    bench.run_with(vec![("slow", slow), ("quick", bench.good(":"))], more, None).unwrap();
    let told = listener.told.into_inner().unwrap();
    let expected = [
        "slow 1 of 2 (1/4)",
        "ends",
        "quick 1 of 2 (2/4)",
        "ends",
        "slow 2 of 2 (3/4)",
        "ends",
        "quick 2 of 2 (4/4)",
        "ends",
    ];
    assert_eq!(told, expected);
    let heights = listener.heights.into_inner().unwrap();
    assert!(heights.contains(&Some(1)) && heights.contains(&Some(2)), "{heights:?}");
}

#[test]
fn a_comparison_goes_on_with_what_counts() {
    let mut bench = Bench::new("resume");
    bench.settings.runs = 2;
    let nodes = |script: &str| -> Vec<(&str, Box<dyn Adapter>)> {
        // The script is an argument and must be the same the second time, so its behaviour depends on a file.
        vec![("a", bench.good("sleep 0.2")), ("b", bench.good(script))]
    };
    let mark = bench.scratch.path().join("mended");
    let script = format!("[ -f {} ] || exit 3", mark.display());
    let before = bench.run(nodes(&script));
    let (good, failed) = (Outcome::Counted, Outcome::Failed);
    assert_eq!(outcomes(&before), [("a", good), ("b", failed), ("a", good), ("b", failed)]);
    std::fs::write(&mark, "").unwrap();
    let listener = Listener::default();
    let more = More { earlier: Some(&before), progress: Some(&listener), ..More::default() };
    let after = bench.run_with(nodes(&script), more.clone(), None).unwrap();
    assert_eq!(outcomes(&after), [("a", good), ("a", good), ("b", good), ("b", good)]);
    assert_eq!((&after.runs[0], &after.runs[1]), (&before.runs[0], &before.runs[2]), "kept as they were");
    assert_eq!(after.runs[3].number, 2);
    assert!((after.started - before.started).abs() < 1e-9);
    assert_eq!(listener.told.lock().unwrap()[0], "b 1 of 2 (1/2)");
    let summary: Vec<usize> = after.summary.iter().map(|summary| summary.runs_counted).collect();
    assert_eq!(summary, [2, 2]);
    // All runs exist: none is made.
    let whole = bench.run_with(nodes(&script), More { earlier: Some(&after), ..More::default() }, None).unwrap();
    assert_eq!(whole.runs, after.runs);
    // Under other conditions.
    let mut other = Bench::new("resume-other");
    other.settings = Settings { runs: 2, cache_mib: 5, ..bench.settings.clone() };
    let error = other.run_with(nodes(&script), more, None).unwrap_err();
    assert!(matches!(error, LabError::Resume(_)), "{error}");
}
