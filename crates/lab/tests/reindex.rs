//! The runner, with small nodes made of shell scripts that misbehave, and with Bitcoin Core on a small chain.
//!
//! The scripts hang, die, lie, grow or leave children behind. Each misbehaviour must be caught, and must not affect the
//! figures of the others.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its own files"
)]

mod fakes;

use fakes::{empty_chain, one_run};
use lydian_chains::chain_files::ChainFiles;
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::mainnet_mix;
use lydian_lab::LabError;
use lydian_lab::runs::adapter::{Adapter, Job};
use lydian_lab::runs::adapters::Bitcoind;
use lydian_lab::runs::{Comparison, Contender, More, Servers, system};
use lydian_oracle::{Daemon, Scratch, or_skip};
use lydian_report::results::{Answer, Cache, Experiment, Outcome, Results, Settings};
use lydian_report::summary::to_markdown;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Runs its script, then exits cleanly and gives the right answer.
#[derive(Debug)]
struct Fake {
    script: String,
    answer: Answer,
}

impl Adapter for Fake {
    fn program(&self) -> &Path {
        Path::new("sh")
    }

    fn version(&self) -> Result<String, LabError> {
        Ok("fake 1".into())
    }

    /// `$1` is the data directory, `$2` the log.
    fn reindex(&self, job: &Job) -> Command {
        let mut command = job.command("sh");
        command.args(["-c", &self.script, "sh"]).arg(&job.data).arg(job.log());
        command
    }

    fn sync(&self, job: &Job) -> Command {
        self.reindex(job)
    }

    fn answer(&self, job: &Job) -> Result<Answer, LabError> {
        assert!(job.chain_folder().join("blocks/blk00000.dat").is_file(), "the node has its own block files");
        Ok(self.answer.clone())
    }
}

/// A chain of three empty blocks, fakes on it, and the results.
struct Bench {
    scratch: Scratch,
    chain: ChainFiles,
    settings: Settings,
    interrupted: Arc<AtomicBool>,
}

impl Bench {
    fn new(name: &str) -> Bench {
        let scratch = Scratch::new(&format!("reindex-{name}"));
        let chain = empty_chain(&scratch, 3);
        let settings = one_run(60);
        Bench { scratch, chain, settings, interrupted: Arc::new(AtomicBool::new(false)) }
    }

    fn good(&self, script: &str) -> Fake {
        Fake { script: script.into(), answer: lydian_lab::runs::chain::answer(&self.chain).unwrap() }
    }

    fn run(&self, fakes: Vec<(&str, Fake)>, caches: &[Cache]) -> Results {
        let contenders: Vec<Contender> = fakes
            .into_iter()
            .map(|(name, fake)| Contender {
                name: name.into(),
                adapter: Box::new(fake),
                more: Vec::new(),
                source: None,
            })
            .collect();
        let work = self.scratch.path().join("work");
        std::fs::create_dir_all(&work).unwrap();
        let comparison = Comparison {
            experiment: Experiment::Reindex,
            servers: Servers::default(),
            chain: &self.chain,
            contenders: &contenders,
            caches,
            may_drop_caches: false,
            settings: self.settings.clone(),
            floor: None,
            work: &work,
            command_line: vec!["test".into()],
            interrupted: &self.interrupted,
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

/// The number of processes with this mark in their arguments.
fn processes_with(mark: &str) -> usize {
    let ours = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let others = entries.filter(|entry| entry.file_name().to_string_lossy() != ours.as_str());
    others
        .filter(|entry| {
            let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&arguments).contains(mark)
        })
        .count()
}

#[test]
fn runs_alternate_and_only_good_ones_count() {
    let mut bench = Bench::new("alternate");
    bench.settings.runs = 2;
    let fakes =
        vec![("a", bench.good("exit 0")), ("dies", bench.good("echo no room >&2; exit 3")), ("b", bench.good(":"))];
    let results = bench.run(fakes, &[Cache::Warm]);
    let good = Outcome::Counted;
    let round = [("a", good), ("dies", Outcome::Failed), ("b", good)];
    assert_eq!(outcomes(&results), [round, round].concat());
    assert!(results.is_agreed, "a node that died did not disagree");
    let died = &results.runs[1];
    assert_eq!(died.reason.as_deref(), Some("it ended with exit code 3"));
    assert_eq!(died.log_end.as_deref(), Some("no room"), "what it said is kept");
    assert_eq!(results.runs[0].log_end, None);
    let counted: Vec<usize> = results.summary.iter().map(|summary| summary.runs_counted).collect();
    assert_eq!(counted, [2, 0, 2]);
    assert!(results.summary[1].figures.is_none());
    let text = to_markdown(&results);
    assert!(text.contains("| dies | 0 of 2 | - |") && text.contains("NOT COUNTED: dies run 2"), "{text}");
    assert!(text.contains("    no room"), "{text}");
}

#[test]
fn a_wrong_answer_is_loud() {
    let bench = Bench::new("wrong");
    let mut wrong = bench.good(":");
    wrong.answer.utxo_hash = Some("00".repeat(32));
    let mut early = bench.good(":");
    early.answer.height = 2;
    let results = bench.run(vec![("wrong", wrong), ("right", bench.good(":")), ("early", early)], &[Cache::Warm]);
    let bad = Outcome::WrongAnswer;
    assert_eq!(outcomes(&results), [("wrong", bad), ("right", Outcome::Counted), ("early", bad)]);
    assert!(!results.is_agreed);
    assert!(to_markdown(&results).contains("THE NODES DO NOT AGREE"));
    assert!(results.runs[2].reason.as_ref().unwrap().contains("ends with height 2"));
}

/// If no answer was computed beforehand, two nodes must agree.
#[test]
fn without_an_expected_answer_two_nodes_decide() {
    let mut bench = Bench::new("agree");
    let right = bench.good(":");
    bench.chain.answer = None;
    let fake = |answer: &Answer| Fake { script: ":".into(), answer: answer.clone() };
    let other = Answer { utxo_hash: Some("11".repeat(32)), ..right.answer.clone() };
    let names = |hashes: [&Answer; 3]| vec![("a", fake(hashes[0])), ("b", fake(hashes[1])), ("c", fake(hashes[2]))];
    let results = bench.run(names([&other, &right.answer, &right.answer]), &[Cache::Warm]);
    assert_eq!(results.expected, Some(right.answer.clone()));
    assert_eq!(outcomes(&results)[0], ("a", Outcome::WrongAnswer));
    let third = Answer { utxo_hash: Some("22".repeat(32)), ..other.clone() };
    let results = bench.run(names([&other, &right.answer, &third]), &[Cache::Warm]);
    assert!(results.expected.is_none() && !results.is_agreed);
    assert!(outcomes(&results).iter().all(|(_, outcome)| *outcome == Outcome::WrongAnswer));
}

#[test]
fn a_node_that_hangs_is_ended_with_its_children() {
    let mut bench = Bench::new("hang");
    bench.settings.timeout_seconds = 1;
    let mark = format!("1000.{}", std::process::id());
    // A child that survives a plain kill of its parent, and one that outlives a parent that exits cleanly.
    let hangs = bench.good(&format!("sleep {mark} & sleep {mark}; wait"));
    let leaves = bench.good(&format!("sleep {mark} & exit 0"));
    let results = bench.run(vec![("hangs", hangs)], &[Cache::Warm]);
    assert_eq!(outcomes(&results), [("hangs", Outcome::TimedOut)]);
    assert!((1.0..60.0).contains(&results.runs[0].wall_seconds), "{}", results.runs[0].wall_seconds);
    // With time enough for one that ends by itself, however busy the computer is.
    bench.settings.timeout_seconds = 60;
    assert_eq!(outcomes(&bench.run(vec![("leaves", leaves)], &[Cache::Warm])), [("leaves", Outcome::Counted)]);
    // A killed process disappears once its new parent has reaped it.
    let gone = (0..1_200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        processes_with(&mark) == 0
    });
    assert!(gone, "a child is still there");
}

/// A string of 40 MB in the shell's memory, for so long that it is seen even if the computer stops for a moment.
const GROWS: &str = "x=$(head -c 40000000 /dev/zero | tr '\\0' x); sleep 5; ";

#[test]
fn growing_memory_is_seen_and_stopped() {
    let mut bench = Bench::new("grows");
    let results = bench.run(vec![("grows", bench.good(GROWS)), ("small", bench.good("sleep 5"))], &[Cache::Warm]);
    let peaks: Vec<u64> = results.runs.iter().map(|run| run.peak_rss_bytes).collect();
    assert!(peaks[0] > 40_000_000, "{peaks:?}");
    assert!(peaks[1] > 100_000 && peaks[1] < 20_000_000, "{peaks:?}");
    bench.settings.memory_max_bytes = 30_000_000;
    let script = format!("{GROWS} sleep 50");
    let results = bench.run(vec![("grows", bench.good(&script))], &[Cache::Warm]);
    assert_eq!(outcomes(&results), [("grows", Outcome::MemoryExceeded)]);
    assert!(results.runs[0].wall_seconds < 40.0);
}

/// bcoin asks its workers to exit but does not wait for them: a third of its CPU time was missing from all totals.
#[test]
fn work_of_children_left_behind_is_counted() {
    let bench = Bench::new("orphans");
    // It leaves once the child has worked, not after a time in which a busy computer may not let it.
    let script = "(i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; : > \"$1/worked\"; while :; do :; done) & \
                  while [ ! -e \"$1/worked\" ]; do sleep 0.05; done";
    let results = bench.run(vec![("leaves", bench.good(script))], &[Cache::Warm]);
    let run = &results.runs[0];
    assert_eq!(run.outcome, Outcome::Counted);
    assert!(run.user_seconds > 0.1, "{run:?}");
}

/// Children count: what the shell's `head` and `gzip` use counts as used by the node.
#[test]
fn work_of_children_and_bytes_are_counted() {
    let bench = Bench::new("counts");
    let script = "head -c 30000000 /dev/urandom > \"$1/file\"; gzip -c \"$1/file\" > /dev/null";
    let results = bench.run(vec![("works", bench.good(script))], &[Cache::Cold]);
    let run = &results.runs[0];
    assert_eq!(run.outcome, Outcome::Counted);
    assert!(run.user_seconds + run.system_seconds > 0.3, "{run:?}");
    assert!(run.io.write_bytes >= 30_000_000 && run.io.wchar >= 30_000_000, "{:?}", run.io);
    assert!(run.io.rchar >= 60_000_000, "{:?}", run.io);
    assert!(run.disk_bytes >= 30_000_000, "{}", run.disk_bytes);
    assert_eq!(run.cache_emptied_by.as_deref(), Some("posix_fadvise"));
    assert!(run.machine.node_share.unwrap() > 0.0 && run.machine.idle_share.is_some());
    let last = run.samples.last().unwrap();
    assert!(run.samples.len() >= 2 && last.rss_bytes > 0 && last.cpu_seconds > 0.0, "{:?}", run.samples);
}

#[test]
fn the_log_shows_heights_and_the_time_of_the_tip() {
    let bench = Bench::new("heights");
    let tip = bench.chain.facts.tip.clone();
    let line = |height: u32, hash: &str| {
        format!("date -u '+%Y-%m-%dT%H:%M:%S.%6NZ UpdateTip: new best={hash} height={height} version=0x1' >> \"$2\"; ")
    };
    // Each height is there for so long that it is seen even if the computer stops for a moment.
    let script = format!("{}sleep 5; {}sleep 5", line(1, "aa"), line(3, &tip));
    let results = bench.run(vec![("logs", bench.good(&script))], &[Cache::Warm]);
    let run = &results.runs[0];
    let seconds = run.tip_seconds.unwrap();
    assert!(seconds > 4.5 && seconds < run.wall_seconds - 4.5, "{seconds} of {}", run.wall_seconds);
    let heights: Vec<Option<u32>> = run.samples.iter().map(|sample| sample.height).collect();
    assert!(heights.contains(&Some(1)) && heights.contains(&Some(3)), "{heights:?}");
}

#[test]
fn an_interruption_keeps_what_has_ended() {
    let mut bench = Bench::new("interrupt");
    bench.settings.runs = 2;
    let flag = Arc::clone(&bench.interrupted);
    let first = bench.good(":");
    let mark = bench.scratch.path().join("started");
    let second = bench.good(&format!("touch {}; sleep 100", mark.display()));
    let handle = std::thread::spawn(move || {
        while !mark.is_file() {
            std::thread::sleep(Duration::from_millis(20));
        }
        flag.store(true, Ordering::Relaxed);
    });
    let start = system::now();
    let results = bench.run(vec![("quick", first), ("slow", second)], &[Cache::Warm]);
    handle.join().unwrap();
    assert!(start.elapsed() < Duration::from_secs(90), "the node slept on");
    assert_eq!(outcomes(&results), [("quick", Outcome::Counted)]);
    assert_eq!(results.summary.len(), 1);
}

#[test]
fn core_rebuilds_a_small_chain_and_counts() {
    // The judge of the tests is the same program; if it is not built, this test says so.
    if or_skip("reindex comparison", Daemon::start(&[])).is_none() {
        return;
    }
    let scratch = Scratch::new("reindex-core");
    let folder = scratch.path().join("chain");
    let settings = MixSettings { blocks: 436, full: 1, seed: 7, reuse_per_mille: 100 };
    let stats = mainnet_mix::write(settings, 2, &folder).unwrap();
    let chain = ChainFiles::open(&folder, None).unwrap();
    let core = |name: &str| Contender {
        name: name.into(),
        adapter: Box::new(Bitcoind::locate(None).unwrap()),
        more: Vec::new(),
        source: None,
    };
    let mut broken = core("bitcoind:broken");
    broken.more.push("-nosuchoption=1".into());
    let work = scratch.path().join("work");
    let comparison = Comparison {
        experiment: Experiment::Reindex,
        servers: Servers::default(),
        chain: &chain,
        contenders: &[core("bitcoind"), broken],
        caches: &[Cache::Warm, Cache::Cold],
        may_drop_caches: false,
        settings: Settings { cache_mib: 100, ..one_run(300) },
        floor: None,
        work: &work,
        command_line: Vec::new(),
        interrupted: &AtomicBool::new(false),
        more: More::default(),
    };
    let results = comparison.run(&mut |_, _| Ok(())).unwrap();
    let expected = [Outcome::Counted, Outcome::Failed, Outcome::Counted, Outcome::Failed];
    assert_eq!(results.runs.iter().map(|run| run.outcome).collect::<Vec<_>>(), expected, "{}", to_markdown(&results));
    let run = &results.runs[0];
    assert_eq!(run.answer.as_ref().unwrap().coins, Some(stats.coins));
    assert!(run.tip_seconds.unwrap() < run.wall_seconds);
    assert!(run.peak_rss_bytes > 20 << 20 && run.io.write_bytes > 0, "{run:?}");
    assert!(results.runs[1].log_end.as_ref().unwrap().contains("nosuchoption"), "{:?}", results.runs[1].log_end);
    assert!(results.nodes[0].version.contains("31.99"), "{}", results.nodes[0].version);
    from_a_prepared_set(&work, core("bitcoind"), scratch.path());
}

/// The clock starts above coins that Core has on disk already; a node that cannot go on is left out.
fn from_a_prepared_set(work: &Path, core: Contender, scratch: &Path) {
    let folder = scratch.join("prepared");
    let settings = MixSettings { blocks: 438, full: 2, seed: 7, reuse_per_mille: 0 };
    let stats = mainnet_mix::write_prepared(settings, 20_000, 2, &folder).unwrap();
    assert!(stats.coins > 20_000, "{}", stats.coins);
    let chain = ChainFiles::open(&folder, None).unwrap();
    let fake = Fake { script: ":".into(), answer: lydian_lab::runs::chain::answer(&chain).unwrap() };
    let fake = Contender { name: "fake".into(), adapter: Box::new(fake), more: Vec::new(), source: None };
    let comparison = Comparison {
        experiment: Experiment::Reindex,
        servers: Servers::default(),
        chain: &chain,
        contenders: &[core, fake],
        caches: &[Cache::Cold],
        may_drop_caches: false,
        settings: Settings { cache_mib: 100, from_height: Some(436), ..one_run(300) },
        floor: None,
        work,
        command_line: Vec::new(),
        interrupted: &AtomicBool::new(false),
        more: More::default(),
    };
    let results = comparison.run(&mut |_, _| Ok(())).unwrap();
    let [run, left_out] = &results.runs[..] else { panic!("{:?}", results.runs) };
    assert_eq!(run.outcome, Outcome::Counted, "{}", to_markdown(&results));
    assert_eq!(run.answer.as_ref().unwrap().coins, Some(stats.coins));
    let arguments = results.nodes[0].arguments.join(" ");
    assert!(arguments.contains("-stopatheight=438") && !arguments.contains("reindex"), "{arguments}");
    assert!(left_out.reason.as_ref().unwrap().contains("cannot go on from a height"), "{left_out:?}");
}
