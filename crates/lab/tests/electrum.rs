//! `lydian-lab electrum` with a real node below it.
//!
//! The servers are not installed, die, or are those that registries provide.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "electrum/scale.rs"]
mod scale;

use lydian_chains::chain_files::ChainFiles;
use lydian_chains::presets::reuse::{self, ReuseSettings};
use lydian_chains::targets::Targets;
use lydian_lab::electrum::adapters::server;
use lydian_lab::electrum::{Comparison, Contender, left_out};
use lydian_lab::runs::adapters::Bitcoind;
use lydian_oracle::Scratch;
use lydian_report::electrum::results::{ElectrumResults, ElectrumSettings};
use lydian_report::electrum::to_markdown;
use std::path::Path;
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
        cache_emptied_by: None,
    }
}

/// The comparison on a small chain; `None` without Bitcoin Core.
fn run(test: &str, contenders: &[Contender], settings: ElectrumSettings) -> Option<ElectrumResults> {
    let judge = lydian_oracle::or_skip(test, lydian_oracle::build::locate())?;
    let scratch = Scratch::new(test);
    let folder = scratch.path().join("chain");
    reuse::write(SETTINGS, 2, &folder).unwrap();
    let chain = ChainFiles::open(&folder, None).unwrap();
    let targets = Targets::of_chain(&folder).unwrap();
    let names: Vec<String> = contenders.iter().map(|contender| contender.name.clone()).collect();
    let comparison = Comparison {
        chain: &chain,
        targets: &targets,
        daemon: &Bitcoind::locate(Some(&judge.bitcoind)).unwrap(),
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
    Some(results)
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

#[test]
#[ignore = "needs `lydian-lab peers install electrs electrumx`; then: cargo test -p lydian-lab --test electrum -- --ignored, which make test-peers runs"]
fn the_servers_answer_what_follows_from_the_blocks() {
    // `make test-peers` builds it.
    let tests = std::env::current_exe().unwrap();
    let lydian = tests.parent().and_then(Path::parent).unwrap().join("lydian");
    let contenders = [contender("electrs", None), contender("electrumx", None), contender("lydian", lydian.to_str())];
    let results = run("electrum-live", &contenders, settings(&[1, 4], 60)).unwrap();
    assert!(results.is_agreed, "{}", to_markdown(&results));
    for server in &results.servers {
        let name = &server.facts.name;
        assert_eq!(server.failure, None, "{name}");
        let build = server.build.as_ref().unwrap();
        assert!(build.wall_seconds > 0.0 && build.index_bytes > 0 && build.postings > 0, "{name}: {build:?}");
        assert_eq!(server.queries.len(), 5, "{name}");
        for query in &server.queries {
            let asked = query.cold_ms.len() - usize::try_from(query.not_asked).unwrap();
            assert_eq!(query.cold_ms.iter().flatten().count(), asked, "{name} {query:?}");
            assert_eq!((query.wrong, query.errors.len()), (0, 0), "{name} {query:?}");
            assert!(query.warm_ms.iter().flatten().count() == asked && query.passes > 0, "{name} {query:?}");
        }
        let balances = &server.queries[0];
        assert_eq!(balances.not_asked, 0, "{name}");
        let loads: Vec<(u32, u64)> = server.loads.iter().map(|load| (load.connections, load.errors)).collect();
        assert_eq!(loads, [(1, 0), (4, 0)], "{name} {:?}", server.notes);
        let wallet = server.wallet.as_ref().unwrap();
        assert_eq!((wallet.scripts, wallet.errors), (13, 0), "{name} {:?}", server.notes);
    }
    let hashes = |query: usize| results.servers.iter().map(move |server| server.queries[query].answer_sha256.clone());
    for query in 0..5 {
        let hashes: Vec<_> = hashes(query).collect();
        assert!(hashes[0].is_some() && hashes[0] == hashes[1], "query {query}: {hashes:?}");
    }
}
