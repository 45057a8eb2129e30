//! `lydian-lab sync --peer`: the first blocks of mainnet from a node that the lab did not start.

use crate::process::{program, scratch};
use lydian_chains::chain_files::ChainFiles;
use lydian_lab::runs::adapter::Adapter;
use lydian_lab::runs::adapters::Bitcoind;
use lydian_lab::sync::Server;
use lydian_lab::sync::server::Recipe;
use lydian_oracle::{Daemon, or_skip};
use lydian_report::results::{Outcome, Results, Settings, Validation};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;

/// Blocks 0 to 4,312.
fn mainnet(folder: &Path) -> ChainFiles {
    let packed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/blocks/runs/main_000000_004312.blk.zst");
    std::fs::create_dir_all(folder).unwrap();
    let blocks = zstd::stream::decode_all(&std::fs::read(packed).unwrap()[..]).unwrap();
    std::fs::write(folder.join("blk00000.dat"), blocks).unwrap();
    ChainFiles::open(folder, None).unwrap()
}

fn settings() -> Settings {
    Settings {
        runs: 1,
        threads: 2,
        cache_mib: 100,
        timeout_seconds: 120,
        memory_max_bytes: 1 << 40,
        disk_free_min_bytes: 0,
        from_height: None,
        validation: Validation::Full,
        cgroup_memory_bytes: None,
    }
}

struct Bench {
    folder: PathBuf,
    core: PathBuf,
    peer: String,
}

impl Bench {
    fn lab(&self, height: &str, nodes: &str, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lydian-lab"));
        command.args(["sync", "--network", "main", "--peer", &self.peer, "--stop-height", height, "--nodes", nodes]);
        for (name, path) in [("bitcoind", &self.core), ("lydian", &program())] {
            if nodes.split(',').any(|node| node == name) {
                command.arg(format!("--node-path={name}={}", path.display()));
            }
        }
        command.args(["--dbcache=100", "--no-validity", "--timeout-seconds=120"]).args(more);
        command.current_dir(&self.folder).env("XDG_CACHE_HOME", self.folder.join("cache"));
        command.env("XDG_CONFIG_HOME", self.folder.join("config")).stdin(Stdio::null()).output().unwrap()
    }

    fn results(&self, name: &str) -> Results {
        serde_json::from_slice(&std::fs::read(self.folder.join(name)).unwrap()).unwrap()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Core keeps blocks above the stop height, which it connects when it is started again to be queried; Lydian does not.
#[test]
fn the_first_blocks_of_mainnet_come_from_an_external_peer() {
    if or_skip("a sync from an external peer", Daemon::start(&[])).is_none() {
        return;
    }
    let scratch = scratch("peers-external");
    let chain = mainnet(&scratch.path().join("chain"));
    let core = Bitcoind::locate(None).unwrap();
    let interrupted = AtomicBool::new(false);
    let recipe = Recipe {
        name: "bitcoind",
        adapter: &core,
        chain: &chain,
        settings: &settings(),
        folder: &scratch.path().join("server"),
        interrupted: &interrupted,
    };
    let server = Server::start(&recipe).unwrap().unwrap();
    let bench = Bench {
        folder: scratch.path().to_owned(),
        core: core.program().to_owned(),
        peer: server.address().to_string(),
    };

    let first = bench.lab("4000", "bitcoind,lydian", &["--out", "r.json"]);
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    let results = bench.results("r.json");
    let tip = "00000000922e2aa9e84a474350a3555f49f06061fd49df50a9352f156692a842";
    for run in &results.runs {
        let answer = run.answer.as_ref().unwrap();
        assert_eq!((run.outcome, answer.height, answer.tip.as_str()), (Outcome::Counted, 4_000, tip), "{run:?}");
        // 4,000 blocks of more than 200 bytes each, and headers.
        assert!(run.network.unwrap().received > 800_000, "{:?}", run.network);
    }
    assert!(results.is_agreed && results.expected.unwrap().utxo_hash.is_some());
    assert_eq!((results.chain.network.as_str(), results.chain.height), ("main", 4_000));
    let text = said(&first);
    assert!(text.contains("| node | hours |") && text.contains("Every node checked every script."), "{text}");

    // Everything is in the file already; an older one gives the change.
    let again = bench.lab("4000", "bitcoind,lydian", &["--out", "r.json", "--resume", "--since", "r.json"]);
    assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    assert!(said(&again).contains("| +0.0 % |"), "{}", said(&again));
    assert_eq!(bench.results("r.json").runs, results.runs);

    let default = bench.lab("100", "bitcoind", &["--validation", "default", "--out", "d.json"]);
    assert_eq!(default.status.code(), Some(0), "{}", said(&default));
    let arguments = bench.results("d.json").nodes[0].arguments.clone();
    assert!(!arguments.iter().any(|argument| argument.starts_with("-assumevalid")), "{arguments:?}");

    let beyond = bench.lab("4313", "bitcoind", &[]);
    let text = said(&beyond);
    assert_eq!(beyond.status.code(), Some(2), "{text}");
    assert!(text.contains("serves headers of main only to height 4312, not to 4313"), "{text}");
    let wrong = bench.lab("1", "bitcoind", &["--network", "nonet"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", said(&wrong));
}
