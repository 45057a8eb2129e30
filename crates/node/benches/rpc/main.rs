//! RPC benchmark against Bitcoin Core: simple calls, batches, full blocks at every verbosity and over REST,
//! signatures, PSBTs of 1,000 inputs, and block templates.
//!
//! Input: a generated chain whose last block is full, and transactions of 1,000 inputs. Output: a table with the median
//! time and the server's CPU time for each call; then the time for a full block that is not in the page cache, beside a
//! plain read of the same bytes from disk.
//!
//! `cargo bench -p lydian-node --bench rpc` measures (with `-- templates` the templates alone, with another word the
//! calls whose names contain it); `cargo test` makes the
//! same runs with a few calls each. One connection sends a request and waits for the answer, as most programs do.
//! Answers must be equal. CPU time has a resolution of 10 ms.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a measurement: it prints, fails by panicking, and reads the clock"
)]
#![allow(dead_code, reason = "the client is that of the tests, which use more of it")]

#[path = "../../tests/rpc/http.rs"]
mod http;
mod psbt;
#[path = "../../tests/rpc/server.rs"]
mod server;
mod templates;

use http::{read, read_bytes};
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::mainnet_mix;
use lydian_oracle::{Scratch, build, or_skip};
use server::Server;
use std::fs;
use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Instant;

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let Some(built) = or_skip("rpc", build::locate()) else { return };
    if std::env::args().any(|argument| argument == "templates") {
        return templates::run(&built, is_bench);
    }
    let chain = Scratch::new("rpc-bench");
    let blocks = 442;
    let settings = MixSettings { blocks, full: 2, seed: 5, reuse_per_mille: 0 };
    mainnet_mix::write(settings, 2, chain.path()).unwrap();
    let file = format!("-loadblock={}", chain.path().join("blk00000.dat").display());
    // The tests compare every answer with its description, which takes longer than the answer.
    let options = [&file[..], "-rest", "-rpcdoccheck=0"];
    let servers = [Server::lydian("bench", &options), Server::core(&built.bitcoind, "bench", &options)];
    for server in &servers {
        let height = server.result("waitforblockheight", &format!("[{blocks},120000]"));
        assert_eq!(height["height"], blocks);
    }
    let tip = servers[0].result("getbestblockhash", "[]");
    let call = |method: &str, params: &str| format!("{{\"method\":\"{method}\",\"params\":{params},\"id\":1}}");
    let batch: Vec<String> = (0..100).map(|height| call("getblockhash", &format!("[{height}]"))).collect();
    let mut calls = vec![
        ("getblockcount".to_owned(), call("getblockcount", "[]"), 20_000),
        ("100 getblockhash in a batch".to_owned(), format!("[{}]", batch.join(",")), 500),
        ("getblockheader".to_owned(), call("getblockheader", &format!("[{tip}]")), 10_000),
    ];
    for (verbosity, count) in [(0, 200), (1, 200), (2, 40), (3, 40)] {
        let body = call("getblock", &format!("[{tip},{verbosity}]"));
        calls.push((format!("getblock {verbosity}"), body, count));
    }
    for (name, script) in SIGNED {
        let (tx, spent) = unsigned(&servers[0], script);
        let params = format!("[{tx},[\"{SECRET}\"],[{spent}]]");
        let name = format!("signrawtransactionwithkey, {INPUTS} {name}");
        calls.push((name, call("signrawtransactionwithkey", &params), 10));
    }
    let signed = servers[0].result("signmessagewithprivkey", &format!("[\"{SECRET}\",\"message\"]"));
    let params = format!("[\"{SECRET}\",\"message\"]");
    calls.push(("signmessagewithprivkey".to_owned(), call("signmessagewithprivkey", &params), 5_000));
    let params = format!("[\"mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r\",{signed},\"message\"]");
    calls.push(("verifymessage".to_owned(), call("verifymessage", &params), 5_000));
    calls.extend(psbt::calls(&servers[1], call));
    let mut asked: Vec<(String, Ask, u32)> =
        calls.into_iter().map(|(name, body, count)| (name, Ask::Call(body), count)).collect();
    let hash = tip.as_str().unwrap();
    for (path, count) in [
        (format!("block/{hash}.bin"), 200),
        (format!("block/{hash}.hex"), 200),
        (format!("block/{hash}.json"), 40),
        (format!("spenttxouts/{hash}.bin"), 200),
        (format!("blockpart/{hash}.bin?offset=1000&size=300"), 10_000),
        (format!("headers/{hash}.bin"), 10_000),
    ] {
        asked.push((format!("REST {}", path.replace(hash, "HASH")), Ask::Path(path), count));
    }
    println!("{:45} {:>10} {:>12} {:>12} {:>12} {:>12}", "", "bytes", "ours, us", "cpu, us", "Core's, us", "cpu, us");
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    for (name, ask, count) in asked {
        if filter.as_ref().is_some_and(|filter| !name.contains(filter)) {
            continue;
        }
        let count = if is_bench { count } else { 3 };
        let [ours, cores] = servers.each_ref().map(|server| measure(server, &ask, count));
        assert!(ours.answer == cores.answer, "{name}");
        let bytes = ours.answer.len();
        println!(
            "{name:45} {bytes:10} {:12.0} {:12.0} {:12.0} {:12.0}",
            ours.wall_us, ours.cpu_us, cores.wall_us, cores.cpu_us
        );
    }
    if filter.is_some() {
        return;
    }
    let path = chain.path().join("blk00000.dat");
    let size = servers[0].result("getblock", &format!("[{tip}]"))["size"].as_u64().unwrap();
    let times = if is_bench { 50 } else { 3 };
    println!("{:45} {size:10} {:12.0}", "reading it from memory", read_micros(&path, size, times, &|| {}));
    // The file was imported in place, so it is the only one to drop from the page cache.
    let forget = || forget(&path);
    println!("{:45} {size:10} {:12.0}", "reading it from the disk", read_micros(&path, size, times, &forget));
    let ask = Ask::Call(call("getblock", &format!("[{tip},0]")));
    println!(
        "{:45} {size:10} {:12.0}",
        "getblock 0 from the disk",
        measure_after(&servers[0], &ask, times, &forget).wall_us
    );
    drop(servers);
    templates::run(&built, is_bench);
}

/// Inputs of the transactions that are signed.
const INPUTS: u32 = 1_000;

/// The private key 1.
const SECRET: &str = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA";

/// Output scripts of its public key.
const SIGNED: [(&str, &str); 3] = [
    ("P2WPKH", "0014751e76e8199196d454941c45d1b3a323f1433bd6"),
    ("P2TR", "512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"),
    ("P2PKH", "76a914751e76e8199196d454941c45d1b3a323f1433bd688ac"),
];

/// A transaction that spends outputs with this script, and the outputs, as JSON.
fn unsigned(server: &Server, script: &str) -> (serde_json::Value, String) {
    let txid = "11".repeat(32);
    let list = |more: &str| {
        let output = |index| format!("{{\"txid\":\"{txid}\",\"vout\":{index}{more}}}");
        (0..INPUTS).map(output).collect::<Vec<_>>().join(",")
    };
    let tx = server.result("createrawtransaction", &format!("[[{}],[{{\"data\":\"00\"}}]]", list("")));
    (tx, list(&format!(",\"scriptPubKey\":\"{script}\",\"amount\":1")))
}

/// Drops a file from the system's page cache.
fn forget(path: &std::path::Path) {
    let file = fs::File::open(path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

fn median(mut micros: Vec<f64>) -> f64 {
    micros.sort_by(f64::total_cmp);
    micros[micros.len() / 2]
}

/// What is asked: a body of JSON-RPC, or a path of REST.
enum Ask {
    Call(String),
    Path(String),
}

impl Ask {
    fn request(&self, server: &Server) -> Vec<u8> {
        match self {
            Ask::Call(body) => server.request(body),
            Ask::Path(path) => format!("GET /rest/{path} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes(),
        }
    }
}

struct Measured {
    answer: Vec<u8>,
    wall_us: f64,
    cpu_us: f64,
}

fn measure(server: &Server, ask: &Ask, count: u32) -> Measured {
    measure_after(server, ask, count, &|| {})
}

/// The same, with `prepare` called before each request, outside the measured time.
fn measure_after(server: &Server, ask: &Ask, count: u32, prepare: &dyn Fn()) -> Measured {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::with_capacity(1 << 16, &stream);
    let request = ask.request(server);
    let mut ask = || {
        (&stream).write_all(&request).unwrap();
        // The bytes alone: to turn 1.5 MB of a block into text took longer than the answer.
        read_bytes(&mut reader).unwrap().2
    };
    let answer = ask();
    let cpu = cpu_seconds(server);
    let mut micros = Vec::new();
    for _ in 0..count {
        prepare();
        let start = Instant::now();
        assert_eq!(ask().len(), answer.len());
        micros.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let cpu = cpu_seconds(server) - cpu;
    Measured { answer, wall_us: median(micros), cpu_us: cpu * 1e6 / f64::from(count) }
}

/// CPU time used by the server's process.
fn cpu_seconds(server: &Server) -> f64 {
    let stat = server.proc("stat");
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // User and system time, in hundredths of a second.
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// Reads the last `size` bytes of a file in one read; returns the median time in microseconds.
fn read_micros(path: &std::path::Path, size: u64, times: u32, prepare: &dyn Fn()) -> f64 {
    use std::os::unix::fs::FileExt;
    let file = fs::File::open(path).unwrap();
    let end = file.metadata().unwrap().len();
    let read = |_| {
        prepare();
        let start = Instant::now();
        let mut bytes = vec![0; usize::try_from(size).unwrap()];
        file.read_exact_at(&mut bytes, end.saturating_sub(size)).unwrap();
        std::hint::black_box(&bytes);
        start.elapsed().as_secs_f64() * 1e6
    };
    median((0..times).map(read).collect())
}
