//! `lydian-lab electrum` with a real node below it, Bitcoin Core or Lydian.
//!
//! The servers are not installed, die, or are those that registries provide.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "electrum/copies.rs"]
mod copies;
#[path = "electrum/fronts.rs"]
mod fronts;
#[path = "electrum/scale.rs"]
mod scale;

use lydian_chains::chain_files::ChainFiles;
use lydian_chains::presets::reuse::{self, ReuseSettings};
use lydian_chains::targets::Targets;
use lydian_lab::electrum::adapters::server;
use lydian_lab::electrum::daemon::{Below, BelowKind};
use lydian_lab::electrum::{Comparison, Contender, left_out};
use lydian_lab::runs::adapters::{Bitcoind, Lydian};
use lydian_oracle::Scratch;
use lydian_report::electrum::results::{ElectrumResults, ElectrumSettings, ServerResults};
use lydian_report::electrum::{ESPLORA, to_markdown};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const SETTINGS: ReuseSettings = ReuseSettings { seed: 1, scripts: 12, fat_spent: 0, fat_kept: 1_100 };

fn settings(connections: &[u32], query_seconds_max: u64) -> ElectrumSettings {
    ElectrumSettings {
        passes: 2,
        connections: connections.to_vec(),
        load_seconds: 1,
        batch: 5,
        timeout_seconds: 60,
        query_seconds_max,
        protocol_max: "1.6".into(),
        esplora: false,
        cache_emptied_by: None,
    }
}

/// The comparison on a small chain above Bitcoin Core; `None` without it.
fn run(test: &str, contenders: &[Contender], settings: ElectrumSettings) -> Option<ElectrumResults> {
    let judge = lydian_oracle::or_skip(test, lydian_oracle::build::locate())?;
    let node = Bitcoind::locate(Some(&judge.bitcoind)).unwrap();
    Some(run_above(test, Below { kind: BelowKind::Core, adapter: &node }, contenders, settings))
}

/// The same above Lydian.
fn run_above_lydian(test: &str, contenders: &[Contender], settings: ElectrumSettings) -> ElectrumResults {
    let node = Lydian::locate(Some(&lydian())).unwrap();
    run_above(test, Below { kind: BelowKind::Lydian, adapter: &node }, contenders, settings)
}

/// The program `lydian` beside `lydian-lab`. `cargo test --workspace` builds both; before `-p lydian-lab`, build it.
fn lydian() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_lydian-lab")).with_file_name("lydian");
    assert!(program.is_file(), "{}: run `cargo build --profile test -p lydian-node --bin lydian`", program.display());
    program
}

fn run_above(test: &str, below: Below<'_>, contenders: &[Contender], settings: ElectrumSettings) -> ElectrumResults {
    let scratch = Scratch::new(test);
    let folder = scratch.path().join("chain");
    reuse::write(SETTINGS, 2, &folder).unwrap();
    let chain = ChainFiles::open(&folder, None).unwrap();
    let targets = Targets::of_chain(&folder).unwrap();
    let names: Vec<String> = contenders.iter().map(|contender| contender.name.clone()).collect();
    let comparison = Comparison {
        chain: &chain,
        targets: &targets,
        below,
        contenders,
        left_out: left_out(&names),
        settings,
        seed: 1,
        threads: 2,
        build_timeout: Duration::from_secs(300),
        may_drop_caches: false,
        work: scratch.path(),
        command_line: Vec::new(),
        earlier: None,
        interrupted: &AtomicBool::new(false),
    };
    let mut saved = 0;
    let results = comparison.run(&mut |_| (), &mut |results| {
        saved += 1;
        assert_eq!(results.servers.len(), saved, "saved after each server");
        Ok(())
    });
    assert_eq!(saved, contenders.len());
    let results = results.unwrap();
    assert!(!scratch.path().join("electrum").exists(), "its folder is gone");
    results
}

fn contender(name: &str, path: Option<&str>) -> Contender {
    Contender { name: name.into(), server: server(name, path.map(Path::new)).unwrap(), more: Vec::new() }
}

/// Servers that are not installed, do not exist, or die are recorded with their reasons, and the others continue.
#[test]
fn a_failing_server_is_recorded_and_the_others_continue() {
    let contenders = [
        contender("electrs:dies", Some("/bin/false")),
        contender("fulcrum", None),
        contender("electrumx:gone", Some("/nowhere/electrumx_server")),
        contender("lydian", Some("/bin/false")),
    ];
    let Some(results) = run("electrum-fails", &contenders, settings(&[1], 60)) else { return };
    let failure = |index: usize| results.servers[index].failure.clone().unwrap();
    assert_eq!(failure(0), "it ended before its index was built");
    assert!(failure(1).contains("no package registry has it"), "{}", failure(1));
    assert!(failure(2).contains("there is no such file"), "{}", failure(2));
    assert_eq!(failure(3), "it ended before its index was built");
    assert!(!results.is_agreed, "no server answered");
    assert_eq!(results.scripts.len(), 13);
    let left: Vec<&str> = results.left_out.iter().map(|left| left.name.as_str()).collect();
    assert_eq!(left, ["Esplora's electrs"]);
    assert!(results.daemon.arguments.contains(&"-rest=1".to_owned()), "{:?}", results.daemon.arguments);
    let table = to_markdown(&results);
    assert!(table.contains("lydian: no figures: it ended before its index was built"), "{table}");
}

/// A server that dies is recorded above Lydian too, and Lydian's own syncs from the node below. With Esplora's REST
/// API, whose answers are those that follow from the blocks too.
#[test]
fn above_lydian_its_own_server_answers_what_follows_from_the_blocks() {
    let contenders = [contender("electrs", Some("/bin/false")), contender("lydian", lydian().to_str())];
    let settings = ElectrumSettings { esplora: true, ..settings(&[1], 60) };
    let results = run_above_lydian("electrum-above-lydian", &contenders, settings);
    assert_eq!(results.servers[0].failure.as_deref(), Some("it ended before its index was built"));
    assert_eq!(results.daemon.name, "lydian");
    assert!(results.daemon.version.starts_with("Lydian"), "{}", results.daemon.version);
    assert!(results.daemon.arguments.contains(&"-rest=1".to_owned()), "{:?}", results.daemon.arguments);
    assert!(results.is_agreed, "{}", to_markdown(&results));
    check_answers(&results.servers[1], &[1]);
    let names: Vec<&str> = results.servers[1].queries.iter().map(|query| query.name.as_str()).collect();
    assert_eq!(names[5..], ESPLORA);
    assert!(results.servers[1].queries[5..].iter().all(|query| query.not_asked == 0 && query.answer_sha256.is_some()));
    let table = to_markdown(&results);
    assert!(table.contains("| esplora-outspends 10-29 txs | - | "), "{table}");
}

#[test]
#[ignore = "needs `lydian-lab peers install electrs`; then: cargo test -p lydian-lab --test electrum -- --ignored above_lydian_electrs, which make test-peers runs"]
fn above_lydian_electrs_answers_what_follows_from_the_blocks() {
    let contenders = [contender("electrs", None), contender("lydian", lydian().to_str())];
    let results = run_above_lydian("electrs-above-lydian", &contenders, settings(&[1, 4], 60));
    assert!(results.is_agreed, "{}", to_markdown(&results));
    assert!(results.daemon.arguments.contains(&"-rest=1".to_owned()), "{:?}", results.daemon.arguments);
    results.servers.iter().for_each(|server| check_answers(server, &[1, 4]));
    check_hashes(&results.servers);
}

#[test]
#[ignore = "needs ElectrumX from pip: `lydian-lab peers install electrumx`; then: cargo test -p lydian-lab --test electrum -- --ignored above_lydian_electrumx, which make test-peers runs"]
fn above_lydian_electrumx_answers_what_follows_from_the_blocks() {
    let contenders = [contender("electrumx", None), contender("lydian", lydian().to_str())];
    let results = run_above_lydian("electrumx-above-lydian", &contenders, settings(&[1, 4], 60));
    assert!(results.is_agreed, "{}", to_markdown(&results));
    for needed in ["-txindex=1", "-txospenderindex=1"] {
        assert!(results.daemon.arguments.contains(&needed.to_owned()), "{:?}", results.daemon.arguments);
    }
    results.servers.iter().for_each(|server| check_answers(server, &[1, 4]));
    let below: Vec<u64> =
        results.servers.iter().map(|server| server.build.as_ref().unwrap().daemon_index_bytes).collect();
    assert!(below[0] > 0 && below[1] == 0, "only ElectrumX needs the node's indexes: {below:?}");
    check_hashes(&results.servers);
}

#[test]
#[ignore = "needs `lydian-lab peers install electrs electrumx`; then: cargo test -p lydian-lab --test electrum -- --ignored, which make test-peers runs"]
fn the_servers_answer_what_follows_from_the_blocks() {
    let contenders = [contender("electrs", None), contender("electrumx", None), contender("lydian", lydian().to_str())];
    let results = run("electrum-live", &contenders, settings(&[1, 4], 60)).unwrap();
    assert!(results.is_agreed, "{}", to_markdown(&results));
    results.servers.iter().for_each(|server| check_answers(server, &[1, 4]));
    check_hashes(&results.servers);
}

/// The server gave every answer, each of them right, in every query, load and batch.
fn check_answers(server: &ServerResults, connections: &[u32]) {
    let name = &server.facts.name;
    assert_eq!(server.failure, None, "{name}");
    let build = server.build.as_ref().unwrap();
    assert!(build.wall_seconds > 0.0 && build.index_bytes > 0 && build.postings > 0, "{name}: {build:?}");
    assert!(server.queries.len() >= 5, "{name}");
    for query in &server.queries {
        let asked = query.cold_ms.len() - usize::try_from(query.not_asked).unwrap();
        assert_eq!(query.cold_ms.iter().flatten().count(), asked, "{name} {query:?}");
        assert_eq!((query.wrong, query.errors.len()), (0, 0), "{name} {query:?}");
        assert!(query.warm_ms.iter().flatten().count() == asked && query.passes > 0, "{name} {query:?}");
    }
    let balances = &server.queries[0];
    assert_eq!(balances.not_asked, 0, "{name}");
    let loads: Vec<(u32, u64)> = server.loads.iter().map(|load| (load.connections, load.errors)).collect();
    let expected: Vec<(u32, u64)> = connections.iter().map(|&connections| (connections, 0)).collect();
    assert_eq!(loads, expected, "{name} {:?}", server.notes);
    let wallet = server.wallet.as_ref().unwrap();
    assert_eq!((wallet.scripts, wallet.errors), (13, 0), "{name} {:?}", server.notes);
}

/// The first two servers gave the same answers.
fn check_hashes(servers: &[ServerResults]) {
    for query in 0..5 {
        let hashes: Vec<_> = servers.iter().map(|server| server.queries[query].answer_sha256.clone()).collect();
        assert!(hashes[0].is_some() && hashes[0] == hashes[1], "query {query}: {hashes:?}");
    }
}
