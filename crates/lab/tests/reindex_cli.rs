//! `lydian-lab reindex` as a process, with a shell script in place of a node.
//!
//! The tests cover exit codes, the results file, the lock, and a Ctrl-C.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its own files"
)]

mod fakes;

use fakes::write_program;
use lydian_chains::chain_files::ChainFiles;
use lydian_chains::presets::empty;
use lydian_oracle::Scratch;
use lydian_report::results::{Outcome, Results};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A cache folder, a chain of five blocks, and programs that answer as `lydian` does.
struct Bench(Scratch);

impl Bench {
    fn new(name: &str) -> Bench {
        let bench = Bench(Scratch::new(&format!("reindex-cli-{name}")));
        empty::write(5, &bench.chain()).unwrap();
        bench
    }

    fn chain(&self) -> PathBuf {
        self.0.path().join("chain")
    }

    fn results(&self) -> Results {
        serde_json::from_slice(&std::fs::read(self.0.path().join("results.json")).unwrap()).unwrap()
    }

    /// A program that does `work` when it is started as a node, and reports `height` as its tip.
    fn node(&self, name: &str, work: &str, height: u32) -> String {
        let answer = ChainFiles::open(&self.chain(), None).unwrap().answer.unwrap();
        let path = self.0.path().join(name);
        let info = format!(r#"{{"height":{height},"tip":"{}"}}"#, answer.tip);
        let set = format!(
            r#"{{"height":{height},"bestblock":"{}","coins":5,"hash_serialized_3":"{}"}}"#,
            answer.tip,
            answer.utxo_hash.unwrap()
        );
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in\n*--version*) echo lydian fake;;\n*utxohash*) echo '{set}';;\n*info*) echo '{info}';;\n\
             *) {work};;\nesac\n"
        );
        write_program(&path, &script);
        path.display().to_string()
    }

    fn lab(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lydian-lab"));
        command.arg("reindex").args(arguments).arg("--out").arg(self.0.path().join("results.json"));
        command.env("XDG_CACHE_HOME", self.0.path().join("cache")).env("XDG_CONFIG_HOME", self.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn compare(&self, arguments: &[&str]) -> Output {
        let chain = self.chain();
        self.lab(&[&["--chain", chain.to_str().unwrap()], arguments].concat()).output().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn good_runs_give_a_table_and_a_file() {
    let bench = Bench::new("good");
    let (new, old) = (bench.node("new", ":", 5), bench.node("old", ":", 5));
    let paths = [format!("lydian={new}"), format!("lydian:old={old}")];
    let nodes = ["--nodes", "lydian,lydian:old", "--node-path", &paths[0], "--node-path", &paths[1]];
    let more = ["--node-arg", "lydian:old=-checkblocks=7", "--runs", "2", "--cache", "both", "--keep-system-cache"];
    let output = bench.compare(&[&nodes[..], &more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("| lydian:old (cold), validity not asked | 2"), "{}", text(&output.stdout));
    let results = bench.results();
    assert_eq!(results.runs.len(), 8);
    assert!(results.is_agreed && results.runs.iter().all(|run| run.outcome == Outcome::Counted));
    assert_eq!(results.nodes[0].version, "lydian fake");
    let has_argument = [0, 1].map(|node| results.nodes[node].arguments.contains(&"-checkblocks=7".into()));
    assert_eq!(has_argument, [false, true]);
    assert!(results.nodes[0].arguments.contains(&"-stopatheight=5".into()));
}

/// One run with each number of workers that this machine has.
#[test]
fn workers_are_compared_and_fitted() {
    let bench = Bench::new("workers");
    let node = format!("lydian={}", bench.node("node", "sleep 0.1", 5));
    let nodes = ["--nodes", "lydian", "--node-path", &node, "--runs", "1", "--no-validity"];
    let output = bench.compare(&[&nodes[..], &["--workers", "1,4096"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("left out [4096]"), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("| lydian | 1 |") && table.contains("lydian: no fit"), "{table}");
    let results = bench.results();
    assert_eq!((results.runs.len(), results.nodes[0].name.as_str()), (1, "lydian:par1"));
    assert_eq!(results.nodes[0].arguments.last().map(String::as_str), Some("-par=1"));
    for (workers, node, word) in [("0", "lydian", "numbers from 1"), ("1", "parity", "parity has no -par")] {
        let refused =
            bench.compare(&["--workers", workers, "--nodes", node, "--node-path", &format!("{node}=/bin/sh")]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(word), "{}", text(&refused.stderr));
    }
}

#[test]
fn a_comparison_is_repeated_from_its_file() {
    let bench = Bench::new("rerun");
    let node = format!("lydian={}", bench.node("node", ":", 5));
    let first = bench.compare(&["--nodes", "lydian", "--node-path", &node, "--runs", "2", "--no-validity"]);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let file = bench.0.path().join("results.json");
    let before = std::fs::read(&file).unwrap();
    let rerun = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lydian-lab"));
        command.arg("rerun").arg(&file).args(more).env("XDG_CACHE_HOME", bench.0.path().join("cache"));
        command.env("XDG_CONFIG_HOME", bench.0.path()).stdin(Stdio::null()).output().unwrap()
    };
    let again = rerun(&[]);
    // 1 if this machine was slower the second time.
    assert!(matches!(again.status.code(), Some(0 | 1)), "{}", text(&again.stderr));
    assert!(text(&again.stdout).contains("wall"), "{}", text(&again.stdout));
    let new: Results =
        serde_json::from_slice(&std::fs::read(bench.0.path().join("results.rerun.json")).unwrap()).unwrap();
    let old = bench.results();
    let arguments = |results: &Results| results.nodes[0].arguments.clone();
    assert_eq!((new.runs.len(), arguments(&new), &new.chain), (2, arguments(&old), &old.chain));
    assert_eq!((&new.lab.command_line, std::fs::read(&file).unwrap()), (&old.lab.command_line, before));

    let refused = rerun(&["--out", file.to_str().unwrap()]);
    assert!(text(&refused.stderr).contains("that is the file to be repeated"), "{}", text(&refused.stderr));
    // Another chain in the same place.
    std::fs::remove_dir_all(bench.0.path().join("chain")).unwrap();
    lydian_chains::presets::empty::write(6, &bench.0.path().join("chain")).unwrap();
    let refused = rerun(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("another chain: its block files have SHA-256"), "{}", text(&refused.stderr));
    // A file of another command.
    let mut other = old;
    other.lab.command_line = ["lydian-lab", "limits"].map(str::to_owned).into();
    std::fs::write(&file, other.to_json()).unwrap();
    assert!(text(&rerun(&[]).stderr).contains("only results of reindex and sync can be repeated"));
}

#[test]
fn a_chain_by_name_is_kept() {
    let bench = Bench::new("kept");
    let node = format!("lydian={}", bench.node("node", ":", 5));
    let arguments = ["--preset", "empty", "--blocks", "5", "--nodes", "lydian", "--runs", "1", "--node-path", &node];
    let first = bench.lab(&arguments).output().unwrap();
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    assert!(text(&first.stderr).contains("making the chain empty-5-v"));
    let again = bench.lab(&arguments).output().unwrap();
    assert_eq!(again.status.code(), Some(0));
    assert!(!text(&again.stderr).contains("making the chain"), "{}", text(&again.stderr));
}

#[test]
fn a_run_that_does_not_count_changes_the_exit_code() {
    let bench = Bench::new("bad");
    let (lies, dies) = (bench.node("lies", ":", 4), bench.node("dies", "echo no such option >&2; exit 1", 5));
    let paths = [format!("lydian={lies}"), format!("lydian:dies={dies}")];
    let nodes = ["--nodes", "lydian,lydian:dies", "--node-path", &paths[0], "--node-path", &paths[1], "--runs", "1"];
    let output = bench.compare(&nodes);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("THE NODES DO NOT AGREE") && said.contains("    no such option"), "{said}");
    let outcomes: Vec<Outcome> = bench.results().runs.iter().map(|run| run.outcome).collect();
    assert_eq!(outcomes, [Outcome::WrongAnswer, Outcome::Failed]);
}

#[test]
fn what_cannot_be_is_one_sentence() {
    let bench = Bench::new("usage");
    let node = format!("lydian={}", bench.node("node", ":", 5));
    let cases: &[(&[&str], &str)] = &[
        (&["--nodes", "bitcion"], "--nodes: bitcion is none of bitcoind, knots, btcd, bcoin"),
        (&["--nodes", "lydian,lydian", "--node-path", &node], "lydian twice"),
        (&["--nodes", "lydian", "--node-path", "lydian=absent"], "there is no such file"),
        (&["--nodes", "lydian", "--node-path", "bitcoind=x"], "expected NAME=VALUE with a name of --nodes"),
        (&["--nodes", "lydian", "--node-path", &node, "--runs", "0"], "must be at least 1"),
    ];
    for (arguments, sentence) in cases {
        let output = bench.compare(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(sentence), "{arguments:?}: {}", text(&output.stderr));
    }
    let damaged = bench.0.path().join("damaged.json");
    std::fs::write(&damaged, "{").unwrap();
    for (path, sentence) in
        [("absent.json", "absent.json: there is no such file"), (damaged.to_str().unwrap(), "cut off")]
    {
        let output = bench.compare(&["--nodes", "lydian", "--node-path", &node, "--resume", path]);
        assert_eq!(output.status.code(), Some(2), "{path}");
        assert!(text(&output.stderr).contains(sentence), "{path}: {}", text(&output.stderr));
    }
    let reorg = bench.lab(&["--preset", "reorg", "--nodes", "lydian", "--node-path", &node]).output().unwrap();
    assert!(text(&reorg.stderr).contains("chains with branches"), "{}", text(&reorg.stderr));
}

/// The others continue; a node that cannot take part is in the table too.
#[test]
fn what_is_not_here_is_recorded() {
    let bench = Bench::new("absent");
    let node = format!("lydian={}", bench.node("node", ":", 5));
    let nodes = ["--nodes", "lydian,knots,btcd,bitcoind", "--node-path", &node, "--runs", "1"];
    let output = bench.compare(&[&nodes[..], &["--node-path", "btcd=/bin/true"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    for line in [
        "| lydian, validity not asked | 1",
        "| knots | 0 of 1 |",
        "lydian-lab peers install knots",
        "make judge",
        "| btcd | cannot |",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let results = bench.results();
    let outcomes: Vec<(&str, Outcome)> = results.runs.iter().map(|run| (run.node.as_str(), run.outcome)).collect();
    let expected = [("lydian", Outcome::Counted), ("knots", Outcome::Failed), ("bitcoind", Outcome::Failed)];
    assert_eq!(outcomes, expected);
    assert!(results.nodes[2].cannot.as_ref().unwrap().contains("regtest database"));
}

/// A running lab; killed if the test fails before it ends.
struct Started(Option<Child>);

impl Started {
    fn interrupt(self, signal: &str) -> Output {
        self.send(signal);
        self.output()
    }

    fn send(&self, signal: &str) {
        let id = self.0.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// What it said until its end.
    fn output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2_400 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{what}");
}

#[test]
fn a_second_lab_is_refused_and_an_interrupted_one_keeps_its_runs() {
    let bench = Bench::new("interrupt");
    let mark = bench.0.path().join("started");
    let quick = format!("lydian={}", bench.node("quick", ":", 5));
    let slow = format!("lydian:slow={}", bench.node("slow", &format!("touch {}; sleep 300", mark.display()), 5));
    let chain = bench.chain();
    let nodes = ["--nodes", "lydian,lydian:slow", "--node-path", &quick, "--node-path", &slow];
    let arguments = [&["--chain", chain.to_str().unwrap()], &nodes[..]].concat();
    let first = Started(Some(bench.lab(&arguments).spawn().unwrap()));
    wait_until("the slow node was not started", || mark.is_file());
    let second = bench.compare(&nodes);
    assert_eq!(second.status.code(), Some(2));
    assert!(text(&second.stderr).contains("another lydian-lab is measuring"), "{}", text(&second.stderr));
    let output = first.interrupt("-INT");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("Interrupted"), "{}", text(&output.stdout));
    let runs = bench.results().runs;
    assert_eq!(runs.iter().map(|run| run.node.as_str()).collect::<Vec<_>>(), ["lydian"]);
    let work: &Path = &bench.0.path().join("cache/lydian/work");
    assert_eq!(std::fs::read_dir(work).unwrap().count(), 0, "the folder of the run is gone");
    let said = text(&output.stdout);
    assert!(said.contains("--resume") && said.contains("results.json goes on with them"), "{said}");
    let kept = runs[0].clone();
    // The slow node is now quick; only the missing runs are made, in turn.
    bench.node("slow", ":", 5);
    let other = bench.compare(&[&nodes[..], &["--resume", "--runs", "2"]].concat());
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("--resume: not the same settings: before 3 runs"), "{}", text(&other.stderr));
    let resumed = bench.compare(&[&nodes[..], &["--resume"]].concat());
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed.stderr));
    let said = text(&resumed.stderr);
    assert!(said.contains("lydian:slow run 1 of 3 begins (1 of 5 to be made)"), "{said}");
    let runs = bench.results().runs;
    let numbers: Vec<(&str, u32)> = runs.iter().map(|run| (run.node.as_str(), run.number)).collect();
    let round = |number| [("lydian", number), ("lydian:slow", number)];
    assert_eq!(numbers, [round(1), round(2), round(3)].concat());
    assert_eq!(runs[0], kept);
    // The lock was released with the process.
    let after = bench.compare(&["--nodes", "lydian", "--node-path", &quick, "--runs", "1"]);
    assert_eq!(after.status.code(), Some(0), "{}", text(&after.stderr));
}

/// Also for the signal of a closed terminal. A node that is being queried when the signal comes is not recorded as
/// failed.
#[test]
fn whatever_signal_ends_it_no_node_stays_and_no_run_fails() {
    let bench = Bench::new("signals");
    let (mark, pid) = (bench.0.path().join("started"), bench.0.path().join("pid"));
    let wait = format!("echo $$ > {}; touch {}; exec sleep 300", pid.display(), mark.display());
    let chain = bench.chain();
    let path = format!("lydian={}", bench.node("node", &wait, 5));
    let arguments = ["--chain", chain.to_str().unwrap(), "--nodes", "lydian", "--node-path", &path];
    for signal in ["-HUP", "-QUIT", "-TERM"] {
        let lab = bench.lab(&arguments);
        // The process that runs the tests may ignore the signal.
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP,QUIT").arg(lab.get_program()).args(lab.get_args());
        command.envs(lab.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let lab = Started(Some(command.spawn().unwrap()));
        wait_until("the node was not started", || mark.is_file());
        let output = lab.interrupt(signal);
        assert_eq!(output.status.code(), Some(130), "{signal}: {}", text(&output.stderr));
        let node = std::fs::read_to_string(&pid).unwrap();
        assert!(!Path::new("/proc").join(node.trim()).exists(), "{signal}: the node runs on");
        assert!(bench.results().runs.is_empty());
        std::fs::remove_file(&mark).unwrap();
    }
}

#[test]
fn a_run_that_is_asked_about_when_the_signal_comes_does_not_fail() {
    let bench = Bench::new("asked");
    let mark = bench.0.path().join("asked");
    let path = bench.node("node", ":", 5);
    // The query takes until some time after the signal, and then fails.
    let script = std::fs::read_to_string(&path).unwrap();
    let sent = bench.0.path().join("sent");
    let wait = format!("touch {}; while [ ! -e {} ]; do sleep 0.1; done", mark.display(), sent.display());
    let mute = format!("*utxohash*) {wait}; exit 1;;\n*utxohash*)");
    write_program(Path::new(&path), &script.replacen("*utxohash*)", &mute, 1));
    let (chain, path) = (bench.chain(), format!("lydian={path}"));
    let arguments = ["--chain", chain.to_str().unwrap(), "--nodes", "lydian", "--node-path", &path];
    let lab = Started(Some(bench.lab(&arguments).spawn().unwrap()));
    wait_until("the node was not asked", || mark.is_file());
    lab.send("-INT");
    std::thread::sleep(Duration::from_secs(1));
    std::fs::write(&sent, "").unwrap();
    let output = lab.output();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(bench.results().runs.is_empty(), "{:?}", bench.results().runs);
}
