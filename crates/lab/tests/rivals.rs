//! Adapters of nodes made by others: how each is started, checked with a program that records it; and bcoin itself.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use lydian_chains::chain_files::network;
use lydian_lab::runs::adapter::{Adapter, Job};
use lydian_lab::runs::adapters::adapter;
use lydian_oracle::Scratch;
use lydian_report::results::{Experiment, Results, Validation};
use lydian_stdx::lock;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

/// A program that records its arguments, one per line, and its environment variables.
const RECORDS: &str = "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$0.args\"\nenv > \"$0.env\"\n[ \"$1\" = -version ] && echo 0.0.0\n[ \"$1\" = --version ] && echo 9.9\nexit 0\n";

/// Starting a program fails as busy while it is still open for writing, and a child that another test starts meanwhile
/// inherits the open file.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Bench {
    _alone: MutexGuard<'static, ()>,
    scratch: Scratch,
    program: PathBuf,
}

impl Bench {
    fn new(name: &str) -> Bench {
        let alone = lock(&ONE_AT_A_TIME);
        let scratch = Scratch::new(&format!("lab-rivals-{name}"));
        std::fs::create_dir_all(scratch.path()).unwrap();
        let program = scratch.path().join("program");
        lydian_disk::Disk::write_whole(&lydian_disk::RealDisk, &program, RECORDS.as_bytes()).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        Bench { _alone: alone, scratch, program }
    }

    fn node(&self, kind: &str) -> Box<dyn Adapter> {
        adapter(kind, Some(&self.program)).unwrap()
    }

    fn job(&self, rpc_port: u16) -> Job {
        let data = self.scratch.path().join("data");
        std::fs::create_dir_all(&data).unwrap();
        Job {
            data,
            network: network("regtest").unwrap(),
            height: 440,
            threads: 2,
            cache_mib: 4_000,
            peers: vec!["127.0.0.1:29811".parse().unwrap()],
            time: None,
            validation: Validation::Full,
            next_block: None,
            rpc_port,
            more: vec!["--added-by-the-user".into()],
        }
    }

    /// Returns the arguments that the program was given.
    fn given(&self, mut command: Command) -> Vec<String> {
        assert!(command.status().unwrap().success());
        self.written("args").lines().map(str::to_owned).collect()
    }

    fn written(&self, end: &str) -> String {
        read(&self.program.with_extension(end))
    }
}

fn read(path: &Path) -> String {
    lydian_lab::runs::system::read_proc(&path.to_string_lossy()).unwrap()
}

fn holds(given: &[String], expected: &[&str]) {
    for option in expected {
        assert!(given.iter().any(|one| one == option), "{option} is not in {given:?}");
    }
}

#[test]
fn bcoin_checks_every_script_and_meets_its_peer_alone() {
    let bench = Bench::new("bcoin");
    let (node, job) = (bench.node("bcoin"), bench.job(18_443));
    let given = bench.given(node.sync(&job));
    let prefix = format!("--prefix={}", job.data.display());
    let every = ["--checkpoints=false", "--network=regtest", &prefix, "--listen=false", "--no-wallet=true"];
    holds(&given, &every);
    holds(&given, &["--only=127.0.0.1:29811", "--http-host=127.0.0.1", "--http-port=18443", "--api-key=lab"]);
    holds(&given, &["--workers=true", "--workers-size=2", "--added-by-the-user"]);
    holds(&given, &["--coin-cache=3500", "--cache-size=500"]);
    assert!(bench.written("env").lines().any(|line| line == "NODE_OPTIONS=--max-old-space-size=5548"));
    let names: Vec<String> = bench.written("env").lines().map(|line| line.split('=').next().unwrap().into()).collect();
    assert!(!names.iter().any(|name| name == "HOME" || name.starts_with("BCOIN")), "{names:?}");
    let offline = bench.given(node.offline(&job).unwrap());
    holds(&offline, &["--only=127.0.0.1:1"]);
    assert!(!offline.iter().any(|one| one.contains("29811")), "{offline:?}");
    // A larger value would not be accepted: bcoin counts the bytes in 32 bits.
    holds(
        &bench.given(node.sync(&Job { cache_mib: 16_000, ..job.clone() })),
        &["--coin-cache=4095", "--cache-size=11905"],
    );
    assert!(node.rpc(&job).is_some(), "the caller decides how long to wait");
    assert_eq!(node.version().unwrap(), "bcoin 9.9");
    assert!(node.cannot(Experiment::Reindex).is_some() && node.cannot(Experiment::Sync).is_none());
    assert!(node.notes().iter().any(|note| note.contains("taproot")), "{:?}", node.notes());
}

/// Regression: without the option, runs on the first blocks of mainnet waited for a longer chain until their limit.
#[test]
fn a_short_chain_of_a_real_network_is_enough() {
    let bench = Bench::new("work");
    let given = |node: &dyn Adapter, network_name: &str| -> Vec<Vec<String>> {
        let job = Job { network: network(network_name).unwrap(), ..bench.job(18_443) };
        let commands = [Some(node.reindex(&job)), Some(node.sync(&job)), node.serve(&job, 18_444), node.offline(&job)];
        commands.into_iter().map(|command| bench.given(command.unwrap())).collect()
    };
    for kind in ["bitcoind", "knots", "lydian"] {
        let node = bench.node(kind);
        for real in ["main", "test", "testnet4", "signet"] {
            given(node.as_ref(), real).iter().for_each(|given| holds(given, &["-minimumchainwork=0"]));
        }
        let names_it = |given: &Vec<String>| given.iter().any(|one| one.starts_with("-minimumchainwork"));
        assert!(!given(node.as_ref(), "regtest").iter().any(names_it), "{kind}");
    }
}

#[test]
fn btcd_makes_no_filters_beside() {
    let bench = Bench::new("btcd");
    let (node, job) = (bench.node("btcd"), bench.job(18_443));
    let given = bench.given(node.sync(&job));
    holds(&given, &["--regtest", "--nocheckpoints", "--nocfilters", "--nolisten", "--utxocachemaxsize=4000"]);
    holds(&given, &["--connect=127.0.0.1:29811", "--added-by-the-user"]);
    holds(&bench.given(node.offline(&job).unwrap()), &["--nocheckpoints", "--nocfilters"]);
    assert!(node.cannot(Experiment::Reindex).is_some() && node.cannot(Experiment::Sync).is_none());
}

#[test]
fn mako_gets_no_value_that_would_end_it() {
    let bench = Bench::new("mako");
    let node = bench.node("mako");
    let mut job = bench.job(18_443);
    job.threads = 64;
    let given = bench.given(node.sync(&job));
    let data = format!("-datadir={}", job.data.display());
    holds(&given, &[&data, "-chain=regtest", "-checkpoints=0", "-listen=0", "-connect=127.0.0.1:29811"]);
    holds(&given, &["-dbcache=2048", "-par=15", "-rpcport=18443", "-rpcbind=127.0.0.1:18443", "--added-by-the-user"]);
    assert_eq!(node.version().unwrap(), "Mako 0.0.0");
    assert!(node.offline(&job).is_none(), "its submitblock does nothing");
    let refusal = node.refuses(network("main").unwrap()).unwrap();
    assert!(refusal.contains("DNS seeds of main") && node.refuses(job.network).is_none(), "{refusal}");
}

#[test]
fn libbitcoin_becomes_the_program_after_its_settings_are_written() {
    let bench = Bench::new("libbitcoin");
    let (node, job) = (bench.node("libbitcoin"), bench.job(18_443));
    let given = bench.given(node.sync(&job));
    let file = job.data.join("lab.cfg");
    assert_eq!(given, ["--config".to_owned(), file.display().to_string(), "--added-by-the-user".to_owned()]);
    let settings = read(&file);
    let genesis = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
    for line in [
        &format!("milestone = {genesis}:0"),
        "identifier = 3669344250",
        "peer = 127.0.0.1:29811",
        "bind = 127.0.0.1:18443",
        "threads = 2",
        "retarget = false",
    ] {
        assert!(settings.lines().any(|one| one == line), "{line} is not in\n{settings}");
    }
    let block = settings.lines().find_map(|line| line.strip_prefix("genesis_block = ")).unwrap();
    assert_eq!(block_hash(block), genesis);
    assert!(node.refuses(network("signet").unwrap()).is_some() && node.refuses(job.network).is_none());
}

#[test]
fn libbitcoin_on_mainnet_keeps_the_programs_own_network() {
    let bench = Bench::new("libbitcoin-main");
    let (node, job) = (bench.node("libbitcoin"), bench.job(18_443));
    let settings = |validation: Validation| {
        let job = Job { network: network("main").unwrap(), validation, ..job.clone() };
        bench.given(node.sync(&job));
        read(&job.data.join("lab.cfg"))
    };
    let full = settings(Validation::Full);
    let milestone = "milestone = 000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f:0";
    assert!(full.lines().any(|line| line == milestone) && full.contains("identifier = 3652501241"), "{full}");
    assert!(!full.contains("retarget") && !full.contains("_buckets"), "{full}");
    assert!(!settings(Validation::Default).contains("milestone"));
    assert!(node.refuses(network("main").unwrap()).is_none() && node.refuses(network("test").unwrap()).is_some());
}

#[test]
fn gocoin_trusts_no_block_but_the_first() {
    let bench = Bench::new("gocoin");
    let node = bench.node("gocoin");
    let job = Job { network: network("main").unwrap(), ..bench.job(18_443) };
    let given = bench.given(node.sync(&job));
    let (file, data) = (job.data.join("lab.json"), job.data.join("gocoin"));
    assert_eq!(given[..2], ["-cfg".to_owned(), file.display().to_string()]);
    assert_eq!(
        read(&file),
        r#"{"LastTrustedBlock":"000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"}"#
    );
    holds(&given, &["-d", &data.display().to_string(), "-c", "127.0.0.1:29811", "-l=false", "-nowallet"]);
    holds(&given, &["-webui=127.0.0.1:18443", "--added-by-the-user"]);
    assert!(bench.written("env").lines().any(|line| line == "GOMAXPROCS=2"));
    let test = bench.given(node.sync(&Job { network: network("test").unwrap(), ..job.clone() }));
    assert!(test.iter().any(|one| one == "-t") && !given.iter().any(|one| one == "-t"));
    // By default it trusts a recent block: that is what its own file says.
    let other = Job { data: job.data.join("other"), validation: Validation::Default, ..job.clone() };
    std::fs::create_dir_all(&other.data).unwrap();
    bench.given(node.sync(&other));
    assert!(!other.data.join("lab.json").exists());
    assert!(node.refuses(network("regtest").unwrap()).unwrap().contains("regtest"));
    assert!(node.refuses(job.network).is_none() && node.cannot(Experiment::Reindex).is_some());
}

/// The hash of a block in hexadecimal, as displayed.
fn block_hash(digits: &str) -> String {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    let header: Vec<u8> = (0..160).step_by(2).map(byte).collect();
    let mut hash = lydian_hash::sha256d(&header);
    hash.reverse();
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// They say so without a program, and none is started.
#[test]
fn those_that_cannot_say_why() {
    for (kind, word) in [("zebra", "regtest"), ("floresta", "utreexo")] {
        let node = adapter(kind, None).unwrap();
        assert!(node.cannot(Experiment::Sync).unwrap().contains(word), "{kind}");
        assert!(node.cannot(Experiment::Reindex).is_some() && node.version().is_err(), "{kind}");
    }
}

/// Mako keeps a connection open for the next query, although it is asked not to.
#[test]
fn a_tip_comes_over_a_connection_that_stays_open() {
    let bench = Bench::new("tip");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let job = bench.job(listener.local_addr().unwrap().port());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = vec![0; 4_096];
        let size = stream.read(&mut asked).unwrap();
        let body = r#"{"result":{"blocks":440,"bestblockhash":"aa"},"error":null,"id":0}"#;
        let head = format!("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        // Until the client closes the connection.
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
        String::from_utf8_lossy(&asked[..size]).into_owned()
    });
    let answer = bench.node("mako").tip(&job).unwrap().unwrap();
    assert_eq!((answer.height, answer.tip.as_str()), (440, "aa"));
    assert!(server.join().unwrap().contains("getblockchaininfo"));
}

/// The real bcoin, syncing from Core, through the command that users run.
#[test]
#[ignore = "needs bcoin and Core: `lydian-lab peers install bcoin`, `make judge`, then cargo test -p lydian-lab --test rivals -- --ignored"]
fn bcoin_reaches_the_tip() {
    let scratch = Scratch::new("lab-bcoin");
    std::fs::create_dir_all(scratch.path()).unwrap();
    let out = scratch.path().join("results.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lydian-lab"));
    command.args(["sync", "--preset", "mainnet-mix", "--blocks", "440", "--full", "2", "--nodes", "bcoin"]);
    command.args(["--server", "bitcoind", "--runs", "1", "--out"]).arg(&out);
    assert!(command.status().unwrap().success());
    let results: Results = serde_json::from_str(&read(&out)).unwrap();
    let run = &results.runs[0];
    assert_eq!(run.outcome, lydian_report::results::Outcome::Counted, "{run:?}");
    assert_eq!((run.exit_code, results.nodes[0].version.as_str()), (Some(0), "bcoin 1.0.2"));
    let seen = run.samples.last().map_or(0.0, |sample| sample.cpu_seconds);
    let counted = run.user_seconds + run.system_seconds;
    assert!(counted > 0.9 * seen, "{counted} s of CPU counted, {seen} s seen: its workers count too");
}
