//! What the page costs the node: a sync with a page open beside one without, twenty open pages, `/metrics`, and the fee
//! bands.
//!
//! Input: a generated chain. Output: a table. `cargo bench -p lydian-node --bench page` measures; `cargo test` makes
//! the same runs with few of them. A page is a reader of the stream of live data, which is all that an open page asks
//! of the node by itself; what it costs the browser is measured by the tests in `tests/page/weight.rs`.
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
#[path = "../../tests/rpc/server.rs"]
mod server;

use lydian_chains::plan::MixSettings;
use lydian_chains::presets::mainnet_mix;
use lydian_mempool::graph::FeeSize;
use lydian_mempool::pool::band_of;
use lydian_oracle::{Scratch, free_port};
use server::Server;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Pages of the second measurement.
const PAGES: usize = 20;

/// The time for all pairs of syncs; a slow machine makes fewer of them, at least this many.
const PAIRS_TIME: Duration = Duration::from_secs(110);
const PAIRS_MIN: usize = 3;

/// One sync takes less on any machine.
const SYNC_TIME_MAX: Duration = Duration::from_secs(600);

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (full, pairs, seconds, times) = if is_bench { (100, 9, 15, 500) } else { (1, 1, 1, 3) };
    let chain = Scratch::new("page-bench");
    let blocks = 441 + full;
    mainnet_mix::write(MixSettings { blocks, full, seed: 7, reuse_per_mille: 0 }, 2, chain.path()).unwrap();
    let files = (0..).map(|number| chain.path().join(format!("blk{number:05}.dat"))).take_while(|path| path.is_file());
    let files: Vec<String> = files.map(|path| format!("-loadblock={}", path.display())).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let run = |pages| sync(&files, blocks, pages);
    // The first run reads the files into memory.
    run(0);
    let mut runs: [Vec<Cost>; 2] = [Vec::new(), Vec::new()];
    let began = Instant::now();
    for pair in 0..pairs {
        if pair >= PAIRS_MIN && began.elapsed() > PAIRS_TIME {
            break;
        }
        let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
        for pages in order {
            runs[pages].push(run(pages));
        }
    }
    println!(
        "{:44} {:>10} {:>10}",
        format!("sync of {blocks} blocks, {full} full; medians of {}", runs[0].len()),
        "wall, s",
        "CPU, s"
    );
    let medians = runs.each_ref().map(|runs| {
        let of = |pick: fn(&Cost) -> f64| median(runs.iter().map(pick).collect());
        Cost { wall: of(|cost| cost.wall), cpu: of(|cost| cost.cpu) }
    });
    for (name, cost) in ["without a page", "with a page open"].into_iter().zip(&medians) {
        println!("{name:44} {:10.3} {:10.3}", cost.wall, cost.cpu);
    }
    let [without, with] = medians;
    let more = |a: f64, b: f64| (b / a - 1.0) * 100.0;
    println!("{:44} {:9.1} % {:8.1} %", "more", more(without.wall, with.wall), more(without.cpu, with.cpu));

    let port = free_port().unwrap();
    let server = page(&files, port);
    wait_for(&server, blocks);
    let idle = share(&server, seconds);
    let received = Arc::<AtomicU64>::default();
    for _ in 0..PAGES {
        open(port, &received);
    }
    thread::sleep(Duration::from_secs(1));
    let before = received.load(Ordering::Relaxed);
    let busy = share(&server, seconds);
    let bytes = received.load(Ordering::Relaxed) - before;
    println!("\n{PAGES} pages, {seconds} s in step with the chain");
    println!("{:44} {:9.2} %", "share of a core without pages", idle * 100.0);
    println!("{:44} {:9.2} %", "share of a core with pages", busy * 100.0);
    println!("{:44} {:9.2} %", "more (at most 3 %)", (busy - idle) * 100.0);
    println!("{:44} {:10.0}", "bytes a second to each page", bytes as f64 / seconds as f64 / PAGES as f64);
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {}\r\nConnection: close\r\n\r\n",
        server.authorization()
    );
    let mut millis: Vec<f64> = (0..times).map(|_| ask(port, &request)).collect();
    millis.sort_by(f64::total_cmp);
    println!("{:44} {:10.2} {:10.2}", "/metrics, ms p50, p99", millis[times / 2], millis[times * 99 / 100]);
    let nanos = band_nanos(times * 2_000);
    println!("\n{:44} {:10.1}", "a transaction moves between fee bands, ns", nanos);
    // A change moves its cluster out of the bands and back (`fee_bands_are_kept_by_moving_what_changed`), however large
    // the mempool is.
    println!("{:44} {:10.2}", "1,000 changes of 64 transactions, ms", nanos * 2.0 * 64.0 * 1_000.0 / 1e6);
}

/// The nanoseconds for finding the band of a feerate, which is the work of a move.
fn band_nanos(count: usize) -> f64 {
    let feerates: Vec<FeeSize> =
        (0..1_024).map(|place: i32| FeeSize::new(i64::from(place * place % 90_001), 400 + place % 3_001)).collect();
    let start = Instant::now();
    let found: usize = feerates.iter().cycle().take(count).map(|feerate| band_of(black_box(*feerate))).sum();
    let nanos = start.elapsed().as_secs_f64() * 1e9 / count as f64;
    assert!(black_box(found) > 0);
    nanos
}

/// Wall time of a sync, and the processor time of the node.
struct Cost {
    wall: f64,
    cpu: f64,
}

/// A node whose page may be read by everyone.
fn page(options: &[&str], port: u16) -> Server {
    let port = format!("-pageport={port}");
    Server::lydian("page-bench", &[&["-page", &port, "-pageopen"], options].concat())
}

/// Validates the chain with this number of open pages.
fn sync(files: &[&str], blocks: u32, pages: usize) -> Cost {
    let port = free_port().unwrap();
    let start = Instant::now();
    let server = page(files, port);
    for _ in 0..pages {
        open(port, &Arc::default());
    }
    wait_for(&server, blocks);
    Cost { wall: start.elapsed().as_secs_f64(), cpu: cpu_seconds(&server) }
}

fn wait_for(server: &Server, blocks: u32) {
    // A call is shorter than what the client waits for an answer.
    let began = Instant::now();
    while server.result("waitforblockheight", &format!("[{blocks},10000]"))["height"] != blocks {
        assert!(began.elapsed() < SYNC_TIME_MAX, "the node does not reach height {blocks}");
    }
}

/// Reads the stream of live data until the node ends.
fn open(port: u16, received: &Arc<AtomicU64>) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.write_all(b"GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let received = Arc::clone(received);
    thread::spawn(move || {
        let mut bytes = [0; 1 << 16];
        while let Ok(size) = stream.read(&mut bytes) {
            if size == 0 {
                return;
            }
            received.fetch_add(size as u64, Ordering::Relaxed);
        }
    });
}

/// The milliseconds until a whole answer is there.
fn ask(port: u16, request: &str) -> f64 {
    let start = Instant::now();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    start.elapsed().as_secs_f64() * 1e3
}

/// The share of a core that the node uses.
fn share(server: &Server, seconds: u64) -> f64 {
    let before = cpu_seconds(server);
    thread::sleep(Duration::from_secs(seconds));
    (cpu_seconds(server) - before) / seconds as f64
}

/// CPU time used by the server's process, in hundredths of a second.
fn cpu_seconds(server: &Server) -> f64 {
    let stat = server.proc("stat");
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
