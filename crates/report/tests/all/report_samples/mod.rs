//! Results for the tests of the report: recorded ones, and MADE UP additions for what no recording contains.
//!
//! The additions are failures, validity, stages and Electrum servers.

use lydian_report::electrum::results::{
    Build, Difference, ElectrumResults, ElectrumSettings, FORMAT, Load, Query, ScriptFacts, ServerResults, WalletLoad,
};
use lydian_report::page::Input;
use lydian_report::results::{Cache, Case, LeftOut, NetworkBytes, NodeFacts, Outcome, Results, Run, Stage, Validity};
use std::path::Path;

/// Lydian and Core, three runs each.
pub(crate) fn reindex() -> Results {
    recorded("reindex.json")
}

/// Lydian, Core, Knots and btcd, one run each.
pub(crate) fn sync() -> Results {
    recorded("sync.json")
}

fn recorded(name: &str) -> Results {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/lab").join(name);
    match Input::read(&path).unwrap() {
        Input::Runs(results) => *results,
        Input::Electrum(_) => panic!("{name} holds no runs"),
    }
}

/// Log lines that would be markup if they were not escaped.
pub(crate) const HOSTILE: &str = "<script>alert('x')</script> & \u{1b}[31mred | *bold*";

/// The recorded sync with MADE UP stages, validity, a node that fails, one that is disturbed, one that cannot take
/// part, and systems that are left out.
pub(crate) fn sync_with_everything() -> Results {
    let mut results = sync();
    let stages =
        [("signatures", 3.1), ("apply", 0.31), ("scripts", 0.22), ("fund", 0.14), ("check", 0.09), ("read", 0.05)];
    for run in &mut results.runs {
        if run.node == "lydian" {
            run.stages =
                stages.map(|(name, cpu_seconds)| Stage { name: name.into(), cpu_seconds, wall_seconds: None }).to_vec();
        }
        run.is_disturbed = run.node == "knots";
        run.network = Some(NetworkBytes { received: 159_000_000, sent: 40_000 });
    }
    for (node, accepts) in results.nodes.iter_mut().zip([None, None, None, Some("tapscript")]) {
        node.validity = Some(validity(accepts));
    }
    results.nodes.push(facts("bcoin", "bcoin 1.0.2"));
    results.runs.push(Run {
        outcome: Outcome::TimedOut,
        log_end: Some(format!("height=431\n{HOSTILE}")),
        wall_seconds: 600.0,
        ..Run::not_started("bcoin", 1, Cache::Warm, "it was not at the tip after 600 seconds".into())
    });
    results.nodes.push(NodeFacts { cannot: Some("Floresta needs utreexo peers".into()), ..facts("floresta", "") });
    results.left_out = left_out();
    let expected = results.expected.clone();
    results.settle(expected.as_ref());
    results
}

fn left_out() -> Vec<LeftOut> {
    let of = |name: &str, reason: &str, source: Option<&str>| LeftOut {
        name: name.into(),
        reason: reason.into(),
        source: source.map(str::to_owned),
    };
    vec![
        of("Gocoin", "knows no regtest", Some("https://github.com/piotrnar/gocoin")),
        of("Stratis", "dead since 2023", Some("an article, not an address")),
        of("libbitcoin", "is not installed here: give its path in lab.toml", None),
    ]
}

fn validity(accepts: Option<&str>) -> Validity {
    let rules = ["ECDSA signature", "Schnorr key path", "tapscript", "overspend", "sigops"];
    let case = |(rule, height): (&str, u32)| Case {
        name: rule.replace(' ', "-"),
        rule: rule.into(),
        height,
        is_accepted: accepts == Some(rule),
        said: "bad-txns".into(),
    };
    Validity {
        sha256: "00".repeat(32),
        cases: rules.into_iter().zip(460..).map(case).collect(),
        unasked: 0,
        reason: None,
    }
}

fn facts(name: &str, version: &str) -> NodeFacts {
    NodeFacts {
        name: name.into(),
        program: name.into(),
        version: version.into(),
        program_sha256: None,
        program_bytes: None,
        arguments: vec!["--network=regtest".into()],
        source: None,
        cannot: None,
        notes: Vec::new(),
        validity: None,
        own_chain: None,
    }
}

/// MADE UP: the results of three Electrum servers, of one that failed, and of Lydian as a server that takes no part.
pub(crate) fn electrum() -> ElectrumResults {
    let base = sync();
    let scripts: Vec<ScriptFacts> = (0..600u32).map(script).collect();
    let servers = [("fulcrum", 0.2, 0.002), ("electrumx", 0.5, 0.006), ("electrs", 2.0, 0.1)];
    let mut servers: Vec<ServerResults> =
        servers.into_iter().map(|(name, each, per)| server(name, each, per, &scripts)).collect();
    servers.push(ServerResults {
        failure: Some("it ended with exit code 1 before it answered".into()),
        log_end: Some(HOSTILE.into()),
        ..ServerResults::new(facts("esplora", "electrs 0.4.1"))
    });
    let no_server =
        NodeFacts { cannot: Some("it takes no part in this example".into()), ..facts("lydian", "lydian 0.1.0") };
    servers.push(ServerResults { facts: no_server, failure: None, log_end: None, ..servers[3].clone() });
    ElectrumResults {
        format: FORMAT,
        lab: base.lab,
        experiment: "electrum".into(),
        started: base.started,
        machine: base.machine,
        chain: base.chain,
        settings: ElectrumSettings {
            passes: 9,
            connections: vec![1, 8, 64, 512],
            load_seconds: 10,
            batch: 100,
            timeout_seconds: 60,
            query_seconds_max: 600,
            protocol_max: "1.6".into(),
            esplora: false,
            cache_emptied_by: None,
        },
        daemon: base.nodes[1].clone(),
        servers,
        left_out: left_out(),
        scripts,
        differences: vec![Difference {
            query: "utxos".into(),
            what: "ab".repeat(32),
            answers: vec![("electrs".into(), "[]".into()), ("fulcrum".into(), HOSTILE.into())],
        }],
        is_agreed: false,
        thinned: None,
    }
}

fn script(index: u32) -> ScriptFacts {
    let transactions = match index {
        598 => 20_000,
        599 => 47_000,
        index => 10 + (index * index) / 365,
    };
    let utxos = if index.is_multiple_of(7) { 0 } else { 1 + transactions * (index % 10) / 10 };
    ScriptFacts { scripthash: format!("{index:064x}"), transactions, utxos }
}

fn server(name: &str, each: f64, per: f64, scripts: &[ScriptFacts]) -> ServerResults {
    let time = |script: &ScriptFacts, factor: f64| {
        let jitter = f64::from(script.transactions * 7 % 13) / 26.0 + 0.75;
        // Few digits, so that reading a file returns exactly the same values.
        Some(((each + per * f64::from(script.transactions)) * jitter * factor * 1e3).round() / 1e3)
    };
    let query = |query: &str, method: &str, factor: f64| Query {
        name: query.into(),
        method: method.into(),
        heights: Vec::new(),
        cold_ms: scripts.iter().map(|script| time(script, factor * 3.0)).collect(),
        warm_ms: scripts.iter().map(|script| time(script, factor).filter(|ms| *ms < 4_500.0)).collect(),
        passes: 9,
        not_asked: 0,
        wrong: 0,
        misordered: 0,
        answer_sha256: Some("5d".repeat(32)),
        errors: Vec::new(),
    };
    let load = |connections: u32| Load {
        connections,
        requests: 10_000,
        errors: 0,
        seconds: 10.0,
        per_second: (2_000.0 / each * f64::from(connections).sqrt()).round(),
        p50_ms: each,
        p90_ms: each * 2.0,
        p99_ms: each * 9.0,
        max_ms: each * 40.0,
    };
    ServerResults {
        facts: facts(name, &format!("{name} 1.2.3")),
        protocol: Some("1.4".into()),
        failure: None,
        log_end: None,
        build: Some(Build {
            wall_seconds: 30.0 * each,
            cpu_seconds: 40.0 * each,
            daemon_cpu_seconds: 11.0,
            peak_rss_bytes: 400_000_000,
            index_bytes: 90_000_000,
            daemon_index_bytes: 12_000_000,
            postings: 1_100_000,
            network: None,
            is_disturbed: name == "electrumx",
            samples: Vec::new(),
        }),
        serving_peak_rss_bytes: Some(310_000_000),
        queries: vec![
            query("balance", "blockchain.scripthash.get_balance", 0.6),
            query("history", "blockchain.scripthash.get_history", 1.0),
            query("utxos", "blockchain.scripthash.listunspent", 0.8),
        ],
        loads: [1, 8, 64, 512].map(load).to_vec(),
        wallet: Some(WalletLoad { scripts: 3_000, batch: 100, seconds: each * 2.0, errors: 0 }),
        ..ServerResults::new(facts(name, ""))
    }
}
