//! Nodes that run only from a path, through the whole runner: the start, the tip, the stop and the query afterwards.
//!
//! Each is replaced by a program that records how it was started, and a server that answers as the node's RPC does.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its own files"
)]

mod fakes;

use fakes::{empty_chain, one_run, write_program};
use lydian_chains::chain_files::ChainFiles;
use lydian_lab::runs::adapters::adapter;
use lydian_lab::runs::{Comparison, Contender, More, Servers, Source};
use lydian_oracle::Scratch;
use lydian_report::results::{Cache, Experiment, Outcome, Results, Settings};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const HEIGHT: u32 = 3;

struct Bench {
    scratch: Scratch,
    chain: ChainFiles,
    has_ended: AtomicBool,
}

impl Bench {
    fn new(name: &str) -> Bench {
        let scratch = Scratch::new(&format!("by-path-{name}"));
        let chain = empty_chain(&scratch, HEIGHT);
        Bench { scratch, chain, has_ended: AtomicBool::new(false) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Records its arguments. Exits at once if it is to import, otherwise runs until it is stopped.
    fn program(&self, name: &str) -> PathBuf {
        let path = self.file(name);
        let folder = self.scratch.path().display();
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in *--version*) echo pbtc 0.1.0; exit 0;; esac\n\
             printf '%s\\n' \"$@\" >> {folder}/args.txt\n\
             case \"$*\" in *\" import \"*) exit 0;; esac\n\
             while [ ! -e {folder}/stop ]; do sleep 0.02; done\n"
        );
        write_program(&path, &script);
        path
    }

    fn args(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.file("args.txt")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until the program has been given a port, then answers on it until the run has ended.
    fn serve(&self, option: &str, answer: &(dyn Fn(&str, &Value) -> Value + Sync)) {
        let mut listener = None;
        while !self.has_ended.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
            if listener.is_none() {
                let port = self.args().iter().find_map(|one| one.strip_prefix(option)?.parse::<u16>().ok());
                listener = port.map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap());
                if let Some(listener) = &listener {
                    listener.set_nonblocking(true).unwrap();
                }
            }
            while let Some((mut stream, _)) = listener.as_ref().and_then(|listener| listener.accept().ok()) {
                stream.set_nonblocking(false).unwrap();
                let mut asked = [0; 4_096];
                let size = stream.read(&mut asked).unwrap();
                let text = String::from_utf8_lossy(&asked[..size]).into_owned();
                let body: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
                let said = answer(&text, &body).to_string();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", said.len());
                // The client may have given up.
                let _ = stream.write_all((head + &said).as_bytes());
            }
        }
    }

    fn run(&self, kind: &str, program: &Path, experiment: Experiment) -> Results {
        let peers = vec!["127.0.0.1:9".parse().unwrap()];
        let source = Source { name: "nobody".into(), peers, counter: None };
        let contenders = [Contender {
            name: kind.into(),
            adapter: adapter(kind, Some(program)).unwrap(),
            more: vec!["-more=1".into()],
            source: (experiment == Experiment::Sync).then_some(source),
        }];
        let work = self.file("work");
        std::fs::create_dir_all(&work).unwrap();
        let comparison = Comparison {
            experiment,
            servers: Servers::default(),
            chain: &self.chain,
            contenders: &contenders,
            caches: &[Cache::Warm],
            may_drop_caches: false,
            settings: Settings { cache_mib: 64, ..one_run(60) },
            floor: None,
            work: &work,
            command_line: vec!["test".into()],
            interrupted: &AtomicBool::new(false),
            more: More::default(),
        };
        comparison.run(&mut |_, _| Ok(())).unwrap()
    }

    fn with_server(
        &self,
        option: &str,
        answer: &(dyn Fn(&str, &Value) -> Value + Sync),
        run: impl FnOnce() -> Results,
    ) -> Results {
        std::thread::scope(|scope| {
            scope.spawn(|| self.serve(option, answer));
            // If the run panics, the server must still learn that it has ended.
            let results = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            self.has_ended.store(true, Ordering::Relaxed);
            results.unwrap()
        })
    }
}

/// Stratis and Blockcore: queried while they run, and stopped at the tip.
fn dotnet(kind: &str, own: &[&str]) {
    let bench = Bench::new(kind);
    let program = bench.program("Node.BitcoinD");
    std::fs::write(bench.file("Node.BitcoinD.deps.json"), r#"{"libraries":{"Node.BitcoinD/3.0.6":{}}}"#).unwrap();
    let tip = bench.chain.facts.tip.clone();
    let stop = bench.file("stop");
    let answer = |head: &str, body: &Value| {
        assert!(head.contains("Authorization: Basic bGFiOmxhYg==\r\n"), "{head}");
        let result = match body["method"].as_str().unwrap() {
            "getblockcount" => json!(HEIGHT),
            "getblockhash" => {
                assert_eq!(body["params"], json!([HEIGHT]));
                json!(tip)
            }
            "stop" => {
                std::fs::write(&stop, "").unwrap();
                Value::Null
            }
            other => panic!("{other}"),
        };
        json!({ "result": result, "error": null, "id": 0 })
    };
    let results = bench.with_server("-rpcport=", &answer, || bench.run(kind, &program, Experiment::Sync));
    let run = &results.runs[0];
    assert_eq!(run.outcome, Outcome::Counted, "{:?} {:?}", run.reason, run.log_end);
    assert_eq!(results.nodes[0].version, "Node.BitcoinD 3.0.6");
    assert!(results.nodes[0].notes.iter().any(|note| note.contains("taproot")), "{:?}", results.nodes[0].notes);
    let args = bench.args();
    let common = ["-regtest=1", "-connect=127.0.0.1:9", "-listen=0", "-checkpoints=0", "-rpcbind=127.0.0.1"];
    for wanted in common.iter().chain(own) {
        assert!(args.iter().any(|one| one == wanted), "{wanted} in {args:?}");
    }
    assert_eq!(args.last().map(String::as_str), Some("-more=1"));

    let reindex = bench.run(kind, &program, Experiment::Reindex);
    let cannot = reindex.nodes[0].cannot.as_deref().unwrap();
    assert!(reindex.runs.is_empty() && cannot.contains("database of its own"), "{cannot}");
}

#[test]
fn stratis() {
    dotnet("stratis", &[]);
}

#[test]
fn blockcore() {
    dotnet("blockcore", &["--chain=BTC", "-dbcache=64"]);
}

#[test]
fn parity_imports_and_is_asked_when_it_is_started_again() {
    let bench = Bench::new("parity");
    let program = bench.program("pbtc");
    let tip = bench.chain.facts.tip.clone();
    let answer = |_: &str, body: &Value| {
        assert_eq!(body["jsonrpc"], json!("2.0"));
        let result = match body["method"].as_str().unwrap() {
            "getbestblockhash" => json!(tip),
            "getblock" => json!({ "hash": tip, "height": HEIGHT }),
            other => panic!("{other}"),
        };
        json!({ "jsonrpc": "2.0", "result": result, "id": 0 })
    };
    let results = bench.with_server("--jsonrpc-port=", &answer, || bench.run("parity", &program, Experiment::Reindex));
    let run = &results.runs[0];
    assert_eq!(run.outcome, Outcome::Counted, "{:?} {:?}", run.reason, run.log_end);
    assert_eq!(results.nodes[0].version, "pbtc 0.1.0");
    let args = bench.args();
    let import = args.iter().position(|one| one == "import").unwrap();
    assert!(args[import + 1].ends_with("regtest/blocks"), "{args:?}");
    for wanted in ["--regtest", "--btc", "--db-cache=64", "--verification-level=full", "-more=1"] {
        assert!(args[..import].iter().any(|one| one == wanted), "{wanted} in {args:?}");
    }
    let again = &args[import + 2..];
    assert!(again.iter().any(|one| one == "--jsonrpc-interface=127.0.0.1"), "{again:?}");
    assert!(again.iter().any(|one| one == "--host=127.0.0.1"), "{again:?}");
}

#[test]
fn zebra_takes_part_in_nothing_and_says_why() {
    let bench = Bench::new("zebra");
    for experiment in [Experiment::Reindex, Experiment::Sync] {
        let results = bench.run("zebra", Path::new("/bin/false"), experiment);
        let cannot = results.nodes[0].cannot.as_deref().unwrap();
        assert!(results.runs.is_empty() && cannot.contains("no regtest"), "{cannot}");
    }
}
