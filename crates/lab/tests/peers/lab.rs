//! `lydian-lab sync` with the program and Bitcoin Core: each syncs from each, btcd too if it is installed, and Lydian
//! from four peers of which one is good.

use crate::process::{program, scratch};
use lydian_chains::chain_files::ChainFiles;
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::mainnet_mix;
use lydian_lab::runs::adapter::Adapter;
use lydian_lab::runs::adapters::{Bitcoind, Btcd, Lydian};
use lydian_lab::runs::{Comparison, Contender, More, Servers, Source};
use lydian_lab::sync::server::Recipe;
use lydian_lab::sync::{Proxy, Server, Shape};
use lydian_oracle::{Daemon, or_skip};
use lydian_report::results::{Cache, Experiment, Outcome, Settings, Validation};
use lydian_report::summary::to_markdown;
use std::sync::atomic::AtomicBool;

fn contender(name: &str, adapter: Box<dyn Adapter>, server: &Server) -> Contender {
    let source = Source { name: server.facts().name.clone(), peers: vec![server.address()], counter: None };
    Contender { name: name.to_owned(), adapter, more: Vec::new(), source: Some(source) }
}

fn lydian() -> Box<dyn Adapter> {
    Box::new(Lydian::locate(Some(&program())).unwrap())
}

#[test]
fn a_comparison_of_syncs() {
    // The lab's Core is the same program; if it is not built, this test reports that.
    if or_skip("a comparison of syncs", Daemon::start(&[])).is_none() {
        return;
    }
    let scratch = scratch("peers-lab");
    let folder = scratch.path().join("chain");
    let mix = MixSettings { blocks: 437, full: 2, seed: 7, reuse_per_mille: 0 };
    let _ = mainnet_mix::write(mix, 2, &folder).unwrap();
    let chain = ChainFiles::open(&folder, None).unwrap();
    let settings = Settings {
        runs: 1,
        threads: 2,
        cache_mib: 100,
        timeout_seconds: 60,
        memory_max_bytes: 1 << 40,
        disk_free_min_bytes: 0,
        from_height: None,
        validation: Validation::Full,
        cgroup_memory_bytes: None,
    };
    let interrupted = AtomicBool::new(false);
    let serve = |name: &str, adapter: &dyn Adapter| {
        let folder = scratch.path().join(name);
        let recipe =
            Recipe { name, adapter, chain: &chain, settings: &settings, folder: &folder, interrupted: &interrupted };
        Server::start(&recipe).unwrap().unwrap()
    };
    let core = || Box::new(Bitcoind::locate(None).unwrap());
    let (from_core, from_lydian) = (serve("bitcoind", core().as_ref()), serve("lydian", lydian().as_ref()));
    let shapes = ["stall@100000", "1MBps", "200ms", "good"].map(|shape| shape.parse::<Shape>().unwrap());
    let proxies = shapes.map(|shape| Proxy::start(from_core.address().into(), shape).unwrap());
    let mut four = contender("lydian:four", lydian(), &from_core);
    four.source =
        Some(Source { name: "four".into(), peers: proxies.iter().map(Proxy::address).collect(), counter: None });
    let mut broken = contender("bitcoind:broken", core(), &from_core);
    broken.more.push("-nosuchoption=1".into());
    let mut contenders = vec![
        contender("lydian", lydian(), &from_core),
        contender("bitcoind", core(), &from_core),
        contender("lydian:from-lydian", lydian(), &from_lydian),
        contender("bitcoind:from-lydian", core(), &from_lydian),
        four,
        broken,
    ];
    if let Ok(btcd) = Btcd::locate(None) {
        contenders.push(contender("btcd", Box::new(btcd), &from_core));
    }
    let work = scratch.path().join("work");
    std::fs::create_dir_all(&work).unwrap();
    let comparison = Comparison {
        experiment: Experiment::Sync,
        servers: Servers {
            facts: vec![from_core.facts().clone(), from_lydian.facts().clone()],
            pids: vec![from_core.pid(), from_lydian.pid()],
        },
        chain: &chain,
        contenders: &contenders,
        caches: &[Cache::Warm],
        may_drop_caches: false,
        settings: settings.clone(),
        floor: None,
        work: &work,
        command_line: Vec::new(),
        interrupted: &interrupted,
        more: More::default(),
    };
    let results = comparison.run(&mut |_, _| Ok(())).unwrap();
    let text = to_markdown(&results);
    for run in &results.runs {
        let expected = if run.node == "bitcoind:broken" { Outcome::Failed } else { Outcome::Counted };
        assert_eq!(run.outcome, expected, "{}: {text}", run.node);
        assert!(expected == Outcome::Failed || run.tip_seconds.unwrap() <= run.wall_seconds, "{}", run.node);
        let reports_coins = run.answer.as_ref().is_some_and(|answer| answer.utxo_hash.is_some());
        assert_eq!(reports_coins, expected == Outcome::Counted && run.node != "btcd", "{}", run.node);
    }
    assert_eq!(results.runs.len(), contenders.len());
}
