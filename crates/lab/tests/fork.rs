//! A fork of Bitcoin Core added by one entry in `lab.toml`.
//!
//! Core's own program under another name validates a small chain through the command line. Another test covers where
//! `lab.toml` is looked for.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its own files"
)]

use lydian_chains::presets::empty;
use lydian_lab::runs::adapter::Adapter;
use lydian_lab::runs::adapters::Bitcoind;
use lydian_oracle::{Daemon, Scratch, or_skip};
use lydian_report::results::{Outcome, Results};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// For a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(300);

/// The lab in a folder, with its own caches and settings.
fn lab_command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lydian-lab"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env("XDG_CACHE_HOME", folder.join("cache")).env("XDG_CONFIG_HOME", folder.join("config"));
    command
}

fn lab(folder: &Path, arguments: &[&str]) -> Output {
    lab_command(folder, arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const ENTRY: &str =
    "[[fork]]\nname = \"b3chaind\"\nbase = \"core\"\npath = \"bin/b3chaind\"\nargs = [\"-uacomment=b3chain\"]\n";

#[test]
fn a_fork_of_core_by_one_entry() {
    if or_skip("fork of Core", Daemon::start(&[])).is_none() {
        return;
    }
    let scratch = Scratch::new("fork-core");
    let folder = scratch.path();
    empty::write(20, &folder.join("chain")).unwrap();
    std::fs::create_dir_all(folder.join("bin")).unwrap();
    let core = Bitcoind::locate(None).unwrap();
    std::os::unix::fs::symlink(core.program(), folder.join("bin/b3chaind")).unwrap();
    std::fs::write(folder.join("lab.toml"), ENTRY).unwrap();

    let run = ["reindex", "--chain", "chain", "--nodes", "b3chaind", "--runs", "1", "--out", "results.json"];
    let output = lab(folder, &run);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("b3chaind"), "{}", text(&output.stdout));
    let results: Results = serde_json::from_slice(&std::fs::read(folder.join("results.json")).unwrap()).unwrap();
    let node = &results.nodes[0];
    assert_eq!(node.name, "b3chaind");
    assert!(node.program.ends_with("bin/b3chaind") && node.version.contains("version"), "{node:?}");
    assert!(node.arguments.contains(&"-uacomment=b3chain".to_owned()), "{:?}", node.arguments);
    assert_eq!(results.runs[0].outcome, Outcome::Counted);
    assert!(results.runs[0].answer.as_ref().unwrap().utxo_hash.is_some());

    let list = lab(folder, &["peers", "list"]);
    assert!(text(&list.stdout).contains("b3chaind"), "{}", text(&list.stdout));
}

/// A folder with a chain of coinbases, and Core under another name, which mines its own chain.
fn with_own_chain(name: &str, blocks: u32, entry: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let folder = scratch.path();
    empty::write(blocks, &folder.join("chain")).unwrap();
    std::fs::create_dir_all(folder.join("bin")).unwrap();
    let core = Bitcoind::locate(None).unwrap();
    std::os::unix::fs::symlink(core.program(), folder.join("bin/b3chaind")).unwrap();
    std::fs::write(folder.join("lab.toml"), format!("{ENTRY}chain = \"own\"\n{entry}\n")).unwrap();
    scratch
}

fn results_in(folder: &Path) -> Results {
    serde_json::from_slice(&std::fs::read(folder.join("results.json")).unwrap()).unwrap()
}

fn judge() -> String {
    format!("bitcoind={}", Bitcoind::locate(None).unwrap().program().display())
}

/// Core under another name mines its own chain and reindexes it, beside Core on the lab's chain.
#[test]
fn a_fork_with_its_own_chain() {
    if or_skip("fork with its own chain", Daemon::start(&[])).is_none() {
        return;
    }
    let scratch = with_own_chain("fork-own", 120, "blocks = 120");
    let (folder, judge) = (scratch.path(), judge());
    let run = ["reindex", "--chain", "chain", "--nodes", "b3chaind,bitcoind", "--node-path", &judge, "--runs", "2"];
    let output = lab(folder, &[&run[..], &["--out", "results.json"]].concat());
    let (table, progress) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{table}{progress}");
    assert!(progress.contains("b3chaind mines 120 blocks of its own chain"), "{progress}");
    let results = results_in(folder);
    let own = results.nodes[0].own_chain.clone().unwrap();
    assert!(own.height == 120 && own.tip != results.chain.tip && own.coins == Some(120), "{own:?}");
    assert!(results.nodes[0].arguments.contains(&"-stopatheight=120".to_owned()), "{:?}", results.nodes[0].arguments);
    assert_eq!(results.runs.len(), 4);
    for run in &results.runs {
        let tip = if run.node == "b3chaind" { &own.tip } else { &results.chain.tip };
        assert_eq!((run.outcome, &run.answer.as_ref().unwrap().tip), (Outcome::Counted, tip), "{run:?}");
        assert!(run.tip_seconds.is_some(), "its own log has its own tip: {run:?}");
    }
    // The broken blocks are those of regtest, so that only Core is asked.
    assert!(results.nodes[0].validity.is_none() && results.nodes[1].validity.is_some());
    assert!(table.contains("b3chaind: validates its own chain, which ends with height 120, tip "), "{table}");
    assert!(table.contains("Every run on the chain of the comparison that counts ends with height 120"), "{table}");
    let refused = |more: &[&str]| {
        let output = lab(folder, &[&run[..], more].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        text(&output.stderr)
    };
    let said = refused(&["--resume", "results.json"]);
    assert!(said.contains("--resume: b3chaind mines another chain each time; run all nodes again"), "{said}");
    let said = refused(&["--from-height", "60"]);
    assert!(said.contains("--from-height: b3chaind has its own chain with heights of its own"), "{said}");
}

/// Whatever keeps it from mining is the reason of its runs, and the other nodes go on.
#[test]
fn a_fork_that_does_not_mine() {
    if or_skip("fork that does not mine", Daemon::start(&[])).is_none() {
        return;
    }
    let scratch = with_own_chain("fork-unmined", 20, "");
    let (folder, judge) = (scratch.path(), judge());
    let run = ["reindex", "--chain", "chain", "--nodes", "b3chaind,bitcoind", "--node-path", &judge, "--runs", "1"];
    let reason = |more: &[&str]| {
        let output = lab(folder, &[&run[..], &["--no-validity", "--out", "results.json"], more].concat());
        assert_eq!(output.status.code(), Some(1), "{}{}", text(&output.stdout), text(&output.stderr));
        let results = results_in(folder);
        let outcomes: Vec<(&str, Outcome)> = results.runs.iter().map(|run| (run.node.as_str(), run.outcome)).collect();
        assert_eq!(outcomes, [("b3chaind", Outcome::Failed), ("bitcoind", Outcome::Counted)]);
        let failed = &results.runs[0];
        (failed.reason.clone().unwrap(), failed.log_end.clone().unwrap_or_default())
    };
    let (why, _) = reason(&["--node-arg", "b3chaind=-rpcwhitelist=__cookie__:getblockcount"]);
    assert_eq!(
        why,
        "it did not mine its own chain: RPC generatetodescriptor: unexpected answer: HTTP/1.0 403 Forbidden"
    );
    let (why, log) = reason(&["--node-arg", "b3chaind=-nosuchoption"]);
    assert!(
        why.starts_with("it did not mine its own chain: ") && why.ends_with(": it ended before it answered"),
        "{why}"
    );
    assert!(log.contains("nosuchoption"), "{log}");
    let sync = ["sync", "--chain", "chain", "--nodes", "b3chaind", "--runs", "1", "--server-path", &judge];
    let sync = text(&lab(folder, &sync).stdout);
    assert!(sync.contains("it accepts no chain but its own; `reindex` measures it"), "{sync}");
}

/// A Ctrl-C ends the mining; nothing is recorded as failed, and the node does not go on.
#[test]
fn mining_is_interrupted() {
    if or_skip("mining is interrupted", Daemon::start(&[])).is_none() {
        return;
    }
    // Hours of mining.
    let scratch = with_own_chain("fork-interrupted", 20, "blocks = 100000000");
    let folder = scratch.path();
    let mut command = lab_command(folder, &["reindex", "--chain", "chain", "--nodes", "b3chaind", "--out", "r.json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let data = folder.join("cache/lydian/work/own-0/data");
    let has_mined = || {
        let log = std::fs::read_to_string(data.join("regtest/debug.log")).unwrap_or_default();
        log.contains(" height=300 ")
    };
    let started = Instant::now();
    while !has_mined() && started.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    let is_mining = has_mined();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(is_mining, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("Interrupted while a fork mined its own chain: nothing was measured."), "{said}");
    assert!(!folder.join("r.json").exists() && !data.exists());
}

#[test]
fn the_file_is_found_in_three_places_and_its_errors_are_reported() {
    let scratch = Scratch::new("fork-places");
    let folder = scratch.path();
    std::fs::create_dir_all(folder.join("config/lydian")).unwrap();
    let refusal = |arguments: &[&str]| {
        let output = lab(folder, arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        text(&output.stderr)
    };
    // Each of these places takes precedence over the previous one.
    std::fs::write(folder.join("config/lydian/lab.toml"), "\nuser = 1\n").unwrap();
    let said = refusal(&["peers", "list"]);
    assert!(said.contains("config/lydian/lab.toml:2: unknown field `user`"), "{said}");
    std::fs::write(folder.join("lab.toml"), "[paths]\nhere = \"x\"\n").unwrap();
    let said = refusal(&["peers", "list"]);
    assert!(said.contains("lab.toml:2: here is none of bitcoind") && !said.contains("config/"), "{said}");
    std::fs::write(folder.join("given.toml"), ENTRY).unwrap();
    std::fs::write(folder.join("given.toml"), ENTRY.replace("base", "bas")).unwrap();
    let said = refusal(&["peers", "list", "--config", "given.toml"]);
    assert!(said.contains("given.toml:3: unknown field `bas`"), "{said}");
    // A program that is not built yet ends no command that does not need it.
    std::fs::write(folder.join("given.toml"), ENTRY).unwrap();
    let list = lab(folder, &["peers", "list", "--config", "given.toml"]);
    let said = text(&list.stdout).split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("given.toml:4: there is no such file: bin/b3chaind"), "{said}{}", text(&list.stderr));
    let said = refusal(&["--config", "none.toml", "peers", "list"]);
    assert!(said.contains("--config none.toml: there is no such file"), "{said}");
}
