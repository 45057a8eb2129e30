//! What readers wait for, and what waits for readers: coins of a snapshot, at rest and while blocks are connected; and
//! blocks while all coins are scanned.
//!
//! Data: a directory of block files (`--chain DIR`; in the small mode that `cargo test` runs: blocks made here). All
//! blocks but the last 48 are validated without signatures first. Then each call looks up 10,000 random coins at once:
//! young ones, in memory; old ones, read from the page cache after the engine is opened again; and while 24 blocks are
//! connected, fully verified, one after another. The last 24 blocks are connected in turn with and without a scan of
//! all coins beside them. Each block begins when the review of the one before is over. Output: the median, the 99th of
//! a hundred and the greatest time of each, in milliseconds of wall time, and the processor time of the process for
//! each call. Every coin that is looked up at rest must be there.
//!
//! `cargo bench -p lydian-engine --bench readers -- --chain DIR [--workers N] [--scratch DIR]`. One core is left for
//! the reader by default.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark fails at once, and prints")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod common;

use lydian_chains::chain_files::ChainFiles;
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::mainnet_mix;
use lydian_consensus::{Chain, Params};
use lydian_curve::{Refereed, Sampling};
use lydian_disk::RealDisk;
use lydian_engine::{Cancel, Engine, Layout, Settings, Unobserved};
use lydian_primitives::{Block, OutPoint, RawBlock};
use lydian_stdx::SplitMix64;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Blocks that are left for the tip.
const LEFT: usize = 48;
const COINS: usize = 10_000;
const CALLS: usize = 100;

struct Options {
    chain: Option<PathBuf>,
    workers: usize,
    scratch: PathBuf,
}

fn options() -> Options {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options {
        chain: None,
        workers: (cores - 1).max(1),
        scratch: std::env::temp_dir().join(format!("lydian-readers-{}", std::process::id())),
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--chain" => options.chain = args.next().map(PathBuf::from),
            "--workers" => options.workers = args.next().unwrap().parse().unwrap(),
            "--scratch" => options.scratch = args.next().unwrap().into(),
            _ => {}
        }
    }
    options
}

fn open(scratch: &Path, workers: usize, signatures: Refereed) -> Engine {
    let layout = Layout {
        blocks: scratch.join("blocks"),
        index: scratch.join("blocks/index"),
        coins: scratch.join("chainstate"),
    };
    // A checkpoint leaves 1 GiB of coins in memory.
    let settings = Settings { signatures: Arc::new(signatures), cache_bytes: 2 << 30, ..Settings::new(workers) };
    Engine::open(Arc::new(RealDisk), &layout, Params::new(Chain::Regtest), settings, Vec::new()).unwrap().engine
}

fn blocks_of(folder: &Path) -> Vec<Block> {
    let mut blocks = Vec::new();
    let visit = &mut |bytes: &[u8]| {
        blocks.push(RawBlock::new(bytes.to_vec()).parse().unwrap());
        Ok(())
    };
    ChainFiles::open(folder, None).unwrap().each_block(visit).unwrap();
    blocks
}

/// Times of calls in milliseconds.
#[derive(Default)]
struct Times(Vec<f64>);

impl Times {
    fn add<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = call();
        self.0.push(start.elapsed().as_secs_f64() * 1e3);
        result
    }

    fn print(mut self, what: &str, cpu_ms: Option<f64>) {
        self.0.sort_by(f64::total_cmp);
        let at = |share: usize| self.0[(self.0.len() - 1) * share / 100];
        let cpu = cpu_ms.map_or(String::new(), |cpu| format!("{cpu:.2}"));
        println!("{what:48} {:6} {:9.2} {:9.2} {:9.2} {cpu:>9}", self.0.len(), at(50), at(99), at(100));
    }
}

fn cpu_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// A sample of all coins.
fn sample(engine: &Engine, random: &mut SplitMix64) -> Vec<OutPoint> {
    let (_, pinned) = engine.pin_coins().unwrap();
    let mut coins = Vec::new();
    let visited = pinned.each(&mut |outpoint, _| -> ControlFlow<()> {
        coins.push(*outpoint);
        ControlFlow::Continue(())
    });
    assert!(visited.unwrap().is_continue());
    coins.sort_unstable();
    for index in 0..coins.len() {
        let other = index + random.below(coins.len() - index);
        coins.swap(index, other);
    }
    coins
}

/// One call for the coins of a snapshot.
fn look_up(engine: &Engine, coins: &[OutPoint], call: usize) -> usize {
    let count = COINS.min(coins.len());
    let from = call * count % (coins.len() - count + 1);
    let found = engine.snapshot().coins(&coins[from..from + count]).unwrap();
    found.iter().filter(|coin| coin.is_some()).count()
}

fn at_rest(engine: &Engine, coins: &[OutPoint], what: &str) {
    let mut times = Times::default();
    let (cpu, reads) = (cpu_ms(), engine.coins_stats().disk_reads);
    for call in 0..CALLS {
        let found = times.add(|| look_up(engine, coins, call));
        assert_eq!(found, COINS.min(coins.len()));
    }
    times.print(what, Some((cpu_ms() - cpu) / CALLS as f64));
    println!("    {} records read from files", engine.coins_stats().disk_reads - reads);
}

fn main() {
    let options = options();
    let made = options.scratch.join("chain");
    let chain = options.chain.clone().unwrap_or_else(|| {
        let settings = MixSettings { blocks: 460, full: 2, seed: 1, reuse_per_mille: 0 };
        mainnet_mix::write(settings, options.workers, &made).unwrap();
        made
    });
    let mut blocks = blocks_of(&chain);
    let left = blocks.split_off(blocks.len() - LEFT);
    let scratch = options.scratch.join("node");
    // What an interrupted benchmark left.
    let _ = std::fs::remove_dir_all(&scratch);
    let mut random = SplitMix64::new(1);
    println!("{:48} {:>6} {:>9} {:>9} {:>9} {:>9}", "", "calls", "median ms", "p99 ms", "most ms", "CPU ms");
    let coins = {
        let engine = open(&scratch, options.workers, common::free());
        for block in blocks.into_iter().skip(1) {
            engine.store_block(block, i64::MAX / 2).unwrap().unwrap();
        }
        engine.advance(&Cancel::new(), &Unobserved).unwrap();
        let coins = sample(&engine, &mut random);
        println!("{} coins", coins.len());
        at_rest(&engine, &coins, "10,000 young coins, one call");
        engine.checkpoint(&Unobserved).unwrap();
        coins
    };
    let kernel = lydian_curve::choose("auto").unwrap().engine;
    let engine = open(
        &scratch,
        options.workers,
        Refereed::new(kernel, Sampling::new([7; 32]), Box::new(|case| panic!("{case:?}"))),
    );
    at_rest(&engine, &coins, "10,000 old coins, page cache, one call");
    let (first, second) = left.split_at(LEFT / 2);
    while_connecting(&engine, &coins, first);
    beside_scans(&engine, second);
    drop(engine);
    std::fs::remove_dir_all(&options.scratch).unwrap();
}

/// Connects a block, once the review of the one before is over.
fn accept(engine: &Engine, block: &Block, times: &mut Times) {
    engine.finish_reviews().unwrap();
    let block = block.clone();
    times.add(|| engine.accept_block(block, i64::MAX / 2, &Unobserved)).unwrap().unwrap();
}

fn while_connecting(engine: &Engine, coins: &[OutPoint], blocks: &[Block]) {
    let is_over = AtomicBool::new(false);
    let mut connected = Times::default();
    let calls = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut times = Times::default();
            while !is_over.load(Ordering::Acquire) {
                let call = times.0.len();
                times.add(|| look_up(engine, coins, call));
            }
            times
        });
        blocks.iter().for_each(|block| accept(engine, block, &mut connected));
        is_over.store(true, Ordering::Release);
        reader.join().unwrap()
    });
    calls.print("10,000 coins, one call, while blocks connect", None);
    connected.print("a block meanwhile", None);
}

/// Connects blocks, every second pair of them beside a scan that begins with the first of the two.
fn beside_scans(engine: &Engine, blocks: &[Block]) {
    let (mut alone, mut beside, mut pins) = (Times::default(), Times::default(), Times::default());
    let scanned = AtomicU64::new(0);
    for (turn, pair) in blocks.chunks(2).enumerate() {
        if turn % 2 == 0 {
            pair.iter().for_each(|block| accept(engine, block, &mut alone));
            continue;
        }
        let (_, pinned) = pins.add(|| engine.pin_coins()).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    let visited = pinned.each(&mut |_, _| {
                        scanned.fetch_add(1, Ordering::Relaxed);
                        if is_over.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    });
                    assert!(visited.unwrap().is_continue() || is_over.load(Ordering::Acquire));
                }
            });
            pair.iter().for_each(|block| accept(engine, block, &mut beside));
            is_over.store(true, Ordering::Release);
        });
    }
    assert!(scanned.into_inner() > 0);
    pins.print("a pin of all coins, with its checkpoint", None);
    alone.print("a block without a scan", None);
    beside.print("a block beside a scan of all coins", None);
}
