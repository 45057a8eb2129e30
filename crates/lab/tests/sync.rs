//! The runner in a sync, with small nodes made of shell scripts.
//!
//! They do not exit by themselves, never reach the tip, or die, and a server goes away. Each is recorded with its
//! reason, and the others continue.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its own files"
)]

mod fakes;

use fakes::{empty_chain, one_run};
use lydian_chains::chain_files::ChainFiles;
use lydian_lab::LabError;
use lydian_lab::runs::adapter::{Adapter, Job};
use lydian_lab::runs::adapters::Absent;
use lydian_lab::runs::{Comparison, Contender, More, Servers, Source};
use lydian_oracle::Scratch;
use lydian_report::results::{Answer, Cache, Experiment, Outcome, Results};
use lydian_report::summary::to_markdown;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Its script is the node. The script writes the tip it would report into the data directory, and exits once a file
/// `stop` exists there.
#[derive(Debug)]
struct Asked {
    script: String,
}

/// A shell loop that ends once the file `stop` exists.
const UNTIL_STOPPED: &str = "while [ ! -f \"$1/stop\" ]; do sleep 0.05; done";

impl Adapter for Asked {
    fn program(&self) -> &Path {
        Path::new("sh")
    }

    fn version(&self) -> Result<String, LabError> {
        Ok("asked 1".into())
    }

    fn reindex(&self, job: &Job) -> Command {
        job.command("false")
    }

    /// `$1` is the data directory, `$2` the first peer.
    fn sync(&self, job: &Job) -> Command {
        let mut command = job.command("sh");
        command.args(["-c", &self.script, "sh"]).arg(&job.data).arg(job.peers[0].to_string());
        command
    }

    fn tip(&self, job: &Job) -> Option<Result<Answer, LabError>> {
        let told = std::fs::read_to_string(job.data.join("tip"));
        Some(told.map_err(|error| LabError::Usage(error.to_string())).and_then(|told| {
            let (height, tip) = told.trim().split_once(' ').ok_or(LabError::Usage("half written".into()))?;
            Ok(Answer { height: height.parse().unwrap(), tip: tip.into(), coins: None, utxo_hash: None })
        }))
    }

    fn stop(&self, job: &Job) -> Result<(), LabError> {
        std::fs::write(job.data.join("stop"), "").unwrap();
        Ok(())
    }

    fn answer(&self, _: &Job) -> Result<Answer, LabError> {
        panic!("it was asked while it ran");
    }
}

struct Bench {
    scratch: Scratch,
    chain: ChainFiles,
}

impl Bench {
    fn new(name: &str) -> Bench {
        let scratch = Scratch::new(&format!("sync-{name}"));
        let chain = empty_chain(&scratch, 3);
        Bench { scratch, chain }
    }

    /// Runs its script, then reports this height and tip.
    fn reaches(&self, before: &str, height: u32, tip: &str) -> Box<dyn Adapter> {
        let said = format!("echo '{height} {tip}' > \"$1/new\"; mv \"$1/new\" \"$1/tip\"");
        Box::new(Asked { script: format!("{before}; {said}; {UNTIL_STOPPED}") })
    }

    fn tip(&self) -> &str {
        &self.chain.facts.tip
    }

    /// The timeout is far above what a node takes that reaches the tip.
    fn run(&self, nodes: Vec<(&str, Box<dyn Adapter>)>, pids: Vec<u32>, timeout_seconds: u64) -> Results {
        let source = Source { name: "here".into(), peers: vec!["127.0.0.1:7".parse().unwrap()], counter: None };
        let contenders: Vec<Contender> = nodes
            .into_iter()
            .map(|(name, adapter)| Contender {
                name: name.into(),
                adapter,
                more: Vec::new(),
                source: Some(source.clone()),
            })
            .collect();
        let work = self.scratch.path().join("work");
        std::fs::create_dir_all(&work).unwrap();
        let comparison = Comparison {
            experiment: Experiment::Sync,
            servers: Servers { facts: Vec::new(), pids },
            chain: &self.chain,
            contenders: &contenders,
            caches: &[Cache::Warm],
            may_drop_caches: false,
            settings: one_run(timeout_seconds),
            floor: None,
            work: &work,
            command_line: vec!["test".into()],
            interrupted: &AtomicBool::new(false),
            more: More::default(),
        };
        let results = comparison.run(&mut |_, _| Ok(())).unwrap();
        assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0, "the folder of a run is removed");
        results
    }
}

fn outcomes(results: &Results) -> Vec<(&str, Outcome)> {
    results.runs.iter().map(|run| (run.node.as_str(), run.outcome)).collect()
}

#[test]
fn what_fails_is_recorded_and_the_others_go_on() {
    let bench = Bench::new("fails");
    let nodes = vec![
        ("good", bench.reaches("sleep 0.4", 3, bench.tip())),
        ("dies", Box::new(Asked { script: "echo '1 aa' > \"$1/tip\"; echo no room >&2; exit 3".into() }) as Box<_>),
        ("leaves", Box::new(Asked { script: "exit 0".into() })),
        ("hangs", Box::new(Asked { script: "sleep 60".into() })),
        ("stays below", bench.reaches(":", 2, bench.tip())),
        ("lies", bench.reaches(":", 3, &"00".repeat(32))),
        ("absent", Box::new(Absent::new("there is none here".into()))),
        ("again", bench.reaches(":", 3, bench.tip())),
    ];
    let results = bench.run(nodes, Vec::new(), 8);
    let expected = [
        ("good", Outcome::Counted),
        ("dies", Outcome::Failed),
        ("leaves", Outcome::Failed),
        ("hangs", Outcome::TimedOut),
        ("stays below", Outcome::TimedOut),
        ("lies", Outcome::WrongAnswer),
        ("absent", Outcome::Failed),
        ("again", Outcome::Counted),
    ];
    let text = to_markdown(&results);
    assert_eq!(outcomes(&results), expected, "{text}");
    let reason = |index: usize| results.runs[index].reason.as_deref().unwrap_or_default();
    assert_eq!(reason(1), "it ended with exit code 3");
    assert_eq!(results.runs[1].log_end.as_deref(), Some("no room"));
    assert_eq!(reason(2), "it ended before the tip");
    assert_eq!(reason(6), "there is none here");
    assert!(text.contains("good tells no UTXO hash") && text.contains("good has the chain from here."), "{text}");
    let good = &results.runs[0];
    assert!(good.tip_seconds.unwrap() >= 0.4 && good.tip_seconds.unwrap() <= good.wall_seconds, "{good:?}");
    assert!(results.nodes[0].arguments.contains(&"127.0.0.1:7".into()), "{:?}", results.nodes[0].arguments);
}

/// The server's use does not count as use by others; once the server has ended, no run waits for it.
#[test]
fn a_server_counts_as_ours_and_its_end_ends_the_runs() {
    let bench = Bench::new("server");
    let busy = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let mut server = busy();
    let with = vec![server.id()];
    let share = |results: &Results| results.runs[0].machine.others_share.unwrap();
    let slow = || vec![("slow", bench.reaches("sleep 1.5", 3, bench.tip()))];
    // Other processes may also be busy on this machine, and more so in one run than in the other: only the difference
    // between two runs of a quiet time is certain.
    let is_clear = |[ours, others]: &[f64; 2]| *others > ours + 0.1;
    let mut shares = Vec::new();
    while shares.len() < 10 && !shares.last().is_some_and(is_clear) {
        shares.push([with.clone(), Vec::new()].map(|pids| share(&bench.run(slow(), pids, 60))));
    }
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(shares.last().is_some_and(is_clear), "{shares:?}");
    let began = lydian_lab::runs::system::now();
    let results = bench.run(vec![("waits", Box::new(Asked { script: "sleep 60".into() }))], with, 60);
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    assert_eq!(results.runs[0].reason.as_deref(), Some("the server of the chain ended"));
}
