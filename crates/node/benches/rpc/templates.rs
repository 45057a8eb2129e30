//! `getblocktemplate` with a large mempool, beside Core, and the time from a new tip to its template.
//!
//! Input: a generated chain and the transactions of a mempool of 300 MB as Core counts it. Output: the median and the
//! 99th percentile of calls while the mempool changes, and of the first call after a block, beside the mining of the
//! block itself.

use crate::server::Server;
use crate::{Ask, cpu_seconds, median, read, read_bytes};
use lydian_chains::presets::mempool_mix::{self, MempoolSettings};
use lydian_oracle::{Scratch, build};
use serde_json::{Value, json};
use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Transactions whose memory is 300 MB as Core counts it.
const TRANSACTIONS: u32 = 170_000;

/// The programs, in the order of the servers.
const NAMES: [&str; 2] = ["lydian", "bitcoind"];

/// Pause between calls: a miner's program asks more rarely.
const PAUSE: Duration = Duration::from_millis(100);

/// Calls between two changes of the mempool.
const CALLS_PER_CHANGE: usize = 5;

/// A connection that stays open.
struct Client<'a> {
    server: &'a Server,
    reader: BufReader<TcpStream>,
}

impl<'a> Client<'a> {
    fn new(server: &'a Server) -> Client<'a> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { server, reader: BufReader::with_capacity(1 << 16, stream) }
    }

    /// The answer to a template's request and its time in microseconds.
    fn template(&mut self) -> (String, f64) {
        let body = json!({"method": "getblocktemplate", "params": [{"rules": ["segwit"]}], "id": 1}).to_string();
        let request = Ask::Call(body).request(self.server);
        let start = Instant::now();
        self.reader.get_mut().write_all(&request).unwrap();
        let (_, _, answer) = read_bytes(&mut self.reader).unwrap();
        let micros = start.elapsed().as_secs_f64() * 1e6;
        (String::from_utf8(answer).unwrap(), micros)
    }
}

fn percentile_99(mut micros: Vec<f64>) -> f64 {
    micros.sort_by(f64::total_cmp);
    micros[(micros.len() * 99 / 100).min(micros.len() - 1)]
}

/// The contents of a `mempool.dat` of the first version with these transactions.
fn mempool_dat(txs: &[Vec<u8>], now: u64) -> Vec<u8> {
    let mut bytes = 1_u64.to_le_bytes().to_vec();
    bytes.extend((txs.len() as u64).to_le_bytes());
    for tx in txs {
        bytes.extend_from_slice(tx);
        bytes.extend(now.to_le_bytes());
        bytes.extend(0_i64.to_le_bytes());
    }
    bytes.extend([0, 0]);
    bytes
}

/// Gives a server the mempool; returns the number of its transactions.
fn load(server: &Server, height: u64, file: &Path) -> u64 {
    let tip = server.result("waitforblockheight", &format!("[{height},600000]"));
    assert_eq!(tip["height"], height);
    // The client of the tests waits for a minute.
    let body = json!({"method": "importmempool", "params": [file.display().to_string()], "id": 1}).to_string();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
    stream.write_all(&server.request(&body)).unwrap();
    read(&mut BufReader::new(stream)).unwrap();
    server.result("getmempoolinfo", "[]")["size"].as_u64().unwrap()
}

/// Calls while the mempool changes. Each tenth of a second, one asks, and another fee is given to a transaction.
fn steady(name: &str, server: &Server, txids: &[Value], calls: usize) {
    let mut client = Client::new(server);
    let bytes = client.template().0.len();
    let cpu = cpu_seconds(server);
    let mut micros = Vec::new();
    for call in 0..calls {
        if call % CALLS_PER_CHANGE == 0 {
            let txid = &txids[call * 7 % txids.len()];
            server.result("prioritisetransaction", &json!([txid, 0, 10]).to_string());
        }
        std::thread::sleep(PAUSE);
        micros.push(client.template().1);
    }
    let cpu = (cpu_seconds(server) - cpu) * 1e6 / calls as f64;
    let p99 = percentile_99(micros.clone());
    println!(
        "getblocktemplate, {name:10} {bytes:10} bytes: median {:10.0} us, p99 {p99:10.0} us, cpu {cpu:10.0} us",
        median(micros)
    );
}

/// The first call after a block of the mempool's best. The block is submitted in one piece; its answer comes when the
/// mempool has followed.
fn after_blocks(servers: &[Server; 2], rounds: usize) {
    let mut clients = servers.each_ref().map(Client::new);
    let mut micros: [Vec<f64>; 2] = Default::default();
    for _ in 0..rounds {
        // The template of either is of the old tip, and the builder knows that it is wanted.
        let [_, cores] = clients.each_mut().map(|client| client.template().0);
        let cores: Value = serde_json::from_str(&cores).unwrap();
        let txs = cores["result"]["transactions"].as_array().unwrap();
        let txids: Vec<&Value> = txs.iter().map(|tx| &tx["txid"]).collect();
        let block = servers[1].result("generateblock", &json!(["raw(51)", txids, false]).to_string());
        for ((server, client), micros) in servers.iter().zip(&mut clients).zip(&mut micros) {
            let submitted = server.result("submitblock", &json!([block["hex"]]).to_string());
            assert_eq!(submitted, Value::Null);
            let (answer, time) = client.template();
            assert!(answer.contains(block["hash"].as_str().unwrap()), "the template follows the block");
            micros.push(time);
        }
        std::thread::sleep(PAUSE);
    }
    for (name, micros) in NAMES.iter().zip(micros) {
        let most = micros.iter().copied().fold(0.0, f64::max);
        println!("tip change to new template, {:10} median {:10.0} us, maximum {most:10.0} us", name, median(micros));
    }
}

pub(crate) fn run(built: &build::Built, is_bench: bool) {
    let folder = Scratch::new("template-bench");
    let transactions = if is_bench { TRANSACTIONS } else { 200 };
    let settings = MempoolSettings { transactions, full: 0, seed: 3, per_block: 100 };
    let stats = mempool_mix::write(settings, 2, folder.path()).unwrap();
    let waiting = mempool_mix::read(folder.path()).unwrap();
    let file = folder.path().join("import.dat");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    std::fs::write(&file, mempool_dat(&waiting.txs, now)).unwrap();
    let chain = format!("-loadblock={}", folder.path().join("blk00000.dat").display());
    let options = [&chain[..], "-maxmempool=2000", "-checkmempool=0", "-maxtipage=100000000000", "-rpcdoccheck=0"];
    let servers = [Server::lydian("template", &options), Server::core(&built.bitcoind, "template", &options)];
    let height = u64::from(stats.height);
    let [ours, cores] = servers.each_ref().map(|server| load(server, height, &file));
    assert!(ours == cores && ours * 100 > waiting.txs.len() as u64 * 99, "{ours} and {cores} transactions");
    let info = servers[1].result("getmempoolinfo", "[]");
    println!("mempool of {} transactions, usage {}", info["size"], info["usage"]);
    let txids = servers[0].result("getrawmempool", "[]");
    let txids = txids.as_array().unwrap();
    let calls = if is_bench { 300 } else { 3 };
    NAMES.iter().zip(&servers).for_each(|(name, server)| steady(name, server, txids, calls));
    after_blocks(&servers, if is_bench { 20 } else { 2 });
}
