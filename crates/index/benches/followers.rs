//! What followers cost: full validation of a chain without a follower, with one that counts inputs in `prepare`, and
//! with the coin statistics, and with the tables of transactions; and the catch-up of a follower that does nothing, and
//! of both indexes, from files.
//!
//! Data: a directory of block files (`--chain DIR`; in the small mode that `cargo test` runs: blocks made here). Each
//! round validates the chain once for each contender, in turn, into a scratch directory, and then catches up. Output: a
//! table of wall time and processor time (user and system, all threads), with the median of the rounds and its ratio to
//! the first row. The statistics must be those of the coins, and the last coinbase must be found by its txid.
//! `cargo bench -p lydian-index --bench followers -- --chain DIR [--rounds N] [--workers N] [--scratch DIR]`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark fails at once, and prints")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use lydian_chain::find_block_files;
use lydian_consensus::{Chain, Params};
use lydian_curve::{Refereed, Sampling};
use lydian_disk::RealDisk;
use lydian_engine::{
    BlockWithSpent, Cancel, ConnectedBlock, Engine, Follower, FollowerError, ImportFiles, Layout, Left, Prepare, Rows,
    Settings, Standing, Tip, Unobserved, UtxoHash,
};
use lydian_index::{CoinStatsIndex, CoinStatsReader, FilterIndex, FilterReader, Profile, TxIndex, TxIndexReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

struct Options {
    chain: Option<PathBuf>,
    rounds: usize,
    workers: usize,
    scratch: PathBuf,
}

fn options() -> Options {
    let mut options = Options {
        chain: None,
        rounds: 3,
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        scratch: std::env::temp_dir().join(format!("lydian-followers-{}", std::process::id())),
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--chain" => options.chain = args.next().map(PathBuf::from),
            "--rounds" => options.rounds = args.next().unwrap().parse().unwrap(),
            "--workers" => options.workers = args.next().unwrap().parse().unwrap(),
            "--scratch" => options.scratch = args.next().unwrap().into(),
            _ => {}
        }
    }
    options
}

/// Counts inputs: the least that a follower with a preparer does.
#[derive(Debug, Default)]
struct Counting {
    has_preparer: bool,
    inputs: usize,
}

#[derive(Debug)]
struct CountInputs;

impl Prepare for CountInputs {
    fn prepare(&self, block: &BlockWithSpent<'_>) -> Rows {
        Rows::new(block.block.txs().map(|tx| tx.input_count()).sum::<usize>(), 8)
    }
}

impl Follower for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn durable_tip(&self) -> Option<Tip> {
        None
    }

    fn preparer(&self) -> Option<Arc<dyn Prepare>> {
        self.has_preparer.then(|| Arc::new(CountInputs) as Arc<dyn Prepare>)
    }

    fn connect(&mut self, _: &ConnectedBlock<'_>, rows: Option<Rows>) -> Result<(), FollowerError> {
        self.inputs += rows.map_or(0, Rows::take::<usize>);
        Ok(())
    }

    fn disconnect(&mut self, _: &ConnectedBlock<'_>) -> Result<Left, FollowerError> {
        Ok(Left::Block)
    }

    fn checkpoint(&mut self, _: Tip) -> Result<(), FollowerError> {
        Ok(())
    }

    fn clear(&mut self) -> Result<(), FollowerError> {
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum With {
    Nothing,
    Counting,
    CoinStats,
    Transactions,
    Scripts,
    Filters,
    CatchUpIdle,
    CatchUpCoinStats,
    CatchUpTransactions,
    CatchUpScripts,
    CatchUpFilters,
}

/// What answers after a run.
enum Reader {
    CoinStats(CoinStatsReader),
    Transactions(TxIndexReader),
    Filters(FilterReader),
}

impl With {
    const ALL: [(With, &str); 11] = [
        (With::Nothing, "validation, no follower"),
        (With::Counting, "validation, a follower that counts inputs in prepare"),
        (With::CoinStats, "validation, coin statistics"),
        (With::Transactions, "validation, tables of transactions"),
        (With::Scripts, "validation, tables of transactions and scripts"),
        (With::Filters, "validation, block filters"),
        (With::CatchUpIdle, "catch-up, a follower that does nothing"),
        (With::CatchUpCoinStats, "catch-up, coin statistics"),
        (With::CatchUpTransactions, "catch-up, tables of transactions"),
        (With::CatchUpScripts, "catch-up, tables of transactions and scripts"),
        (With::CatchUpFilters, "catch-up, block filters"),
    ];

    fn is_catch_up(self) -> bool {
        matches!(
            self,
            With::CatchUpIdle
                | With::CatchUpCoinStats
                | With::CatchUpTransactions
                | With::CatchUpScripts
                | With::CatchUpFilters
        )
    }

    fn followers(self, scratch: &Path, params: &Params) -> (Vec<Box<dyn Follower>>, Option<Reader>) {
        match self {
            With::Nothing => (Vec::new(), None),
            With::Counting => (vec![Box::new(Counting { has_preparer: true, inputs: 0 })], None),
            With::CatchUpIdle => (vec![Box::new(Counting::default())], None),
            With::CoinStats | With::CatchUpCoinStats => {
                let dir = scratch.join(format!("{self:?}"));
                let (index, reader) = CoinStatsIndex::open(Arc::new(RealDisk), &dir, params).unwrap();
                (vec![Box::new(index)], Some(Reader::CoinStats(reader)))
            }
            With::Filters | With::CatchUpFilters => {
                let dir = scratch.join(format!("{self:?}"));
                let (index, reader) = FilterIndex::open(Arc::new(RealDisk), &dir, params.genesis_hash).unwrap();
                (vec![Box::new(index)], Some(Reader::Filters(reader)))
            }
            With::Transactions | With::CatchUpTransactions | With::Scripts | With::CatchUpScripts => {
                let dir = scratch.join(format!("{self:?}"));
                let profile =
                    Profile { has_scripts: matches!(self, With::Scripts | With::CatchUpScripts), has_txids: false };
                let (index, reader) =
                    TxIndex::open(Arc::new(RealDisk), &dir, params.genesis_hash, profile, || [1, 2]).unwrap();
                (vec![Box::new(index)], Some(Reader::Transactions(reader)))
            }
        }
    }
}

/// Wall time and processor time in seconds.
#[derive(Clone, Copy, Debug)]
struct Cost {
    wall: f64,
    cpu: f64,
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let cpu = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        std::time::Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap()).as_secs_f64()
    };
    let (start, cpu_before) = (Instant::now(), cpu());
    let result = work();
    (result, Cost { wall: start.elapsed().as_secs_f64(), cpu: cpu() - cpu_before })
}

fn settings(workers: usize) -> Settings {
    let kernel = lydian_curve::choose("auto").unwrap().engine;
    let sampling = Sampling::new([7; 32]);
    let signatures = Refereed::new(kernel, sampling, Box::new(|case| panic!("{case:?}")));
    Settings { signatures: Arc::new(signatures), ..Settings::new(workers) }
}

fn run(with: With, chain: &Path, options: &Options, scratch: &Path) -> Cost {
    let layout = Layout {
        blocks: scratch.join("blocks"),
        index: scratch.join("blocks/index"),
        coins: scratch.join("chainstate"),
    };
    let params = Params::new(Chain::Regtest);
    let (followers, reader) = with.followers(scratch, &params);
    let open = |followers| {
        let opened = Engine::open(Arc::new(RealDisk), &layout, params.clone(), settings(options.workers), followers);
        opened.unwrap().engine
    };
    let (engine, cost) = if with.is_catch_up() {
        timed(|| {
            let engine = open(followers);
            engine.finish_catch_up();
            engine
        })
    } else {
        let engine = open(followers);
        let files = find_block_files(&RealDisk, chain).unwrap();
        engine.import(ImportFiles { files, is_copied: false }, i64::MAX / 2, &mut |_, _| {}).unwrap();
        let (advance, cost) = timed(|| engine.advance(&Cancel::new(), &Unobserved).unwrap());
        assert!(advance.invalid.is_empty() && advance.unreadable.is_empty(), "{advance:?}");
        (engine, cost)
    };
    assert!(engine.followers().iter().all(|follower| follower.standing == Standing::InStep));
    engine.checkpoint(&Unobserved).unwrap();
    let tip = engine.tip();
    match reader {
        Some(Reader::CoinStats(reader)) => {
            let stats = reader.at(tip.height, &tip.hash).unwrap().unwrap();
            let summary = engine.coins_summary(UtxoHash::Muhash).unwrap();
            assert_eq!((stats.coins, Some(stats.muhash)), (summary.coins, summary.hash));
        }
        Some(Reader::Filters(reader)) => {
            let (filter, _) = reader.filter(tip.height, &tip.hash).unwrap().unwrap();
            let block = engine.block(&engine.tip_info()).unwrap().unwrap();
            let output = block.tx(0).outputs().next().unwrap();
            assert_eq!(lydian_index::match_any(&filter, &tip.hash, [output.script_pubkey]), Ok(true));
        }
        Some(Reader::Transactions(reader)) => {
            let block = engine.block(&engine.tip_info()).unwrap().unwrap();
            let places = reader.candidates(&block.tx(0).txid()).unwrap();
            assert!(places.iter().any(|(_, place)| (place.height, place.offset) == (tip.height, block.tx(0).offset())));
        }
        None => {}
    }
    cost
}

fn main() {
    let options = options();
    let made = options.scratch.join("chain");
    let (chain, rounds) = match &options.chain {
        Some(chain) => (chain.clone(), options.rounds),
        None => {
            let settings = lydian_chains::plan::MixSettings { blocks: 460, full: 2, seed: 1, reuse_per_mille: 0 };
            lydian_chains::presets::mainnet_mix::write(settings, options.workers, &made).unwrap();
            (made, 1)
        }
    };
    let mut costs: Vec<Vec<Cost>> = vec![Vec::new(); With::ALL.len()];
    for round in 0..rounds {
        for (place, (with, _)) in With::ALL.into_iter().enumerate() {
            let scratch =
                options.scratch.join(if with.is_catch_up() { "Nothing".to_owned() } else { format!("{with:?}") });
            if !with.is_catch_up() {
                // What the round before left.
                let _ = std::fs::remove_dir_all(&scratch);
            }
            let cost = run(with, &chain, &options, &scratch);
            println!("round {round}: {with:?}: {:.3} s wall, {:.3} s CPU", cost.wall, cost.cpu);
            costs[place].push(cost);
            if matches!(
                with,
                With::CatchUpCoinStats | With::CatchUpTransactions | With::CatchUpScripts | With::CatchUpFilters
            ) {
                std::fs::remove_dir_all(scratch.join(format!("{with:?}"))).unwrap();
            }
        }
    }
    println!("{:55} {:>9} {:>9} {:>7}", "median of rounds", "wall s", "CPU s", "ratio");
    let median = |costs: &[Cost], part: fn(&Cost) -> f64| {
        let mut values: Vec<f64> = costs.iter().map(part).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let first = median(&costs[0], |cost| cost.cpu);
    for ((_, name), costs) in With::ALL.into_iter().zip(&costs) {
        let (wall, cpu) = (median(costs, |cost| cost.wall), median(costs, |cost| cost.cpu));
        println!("{name:55} {wall:9.3} {cpu:9.3} {:7.3}", cpu / first);
    }
    std::fs::remove_dir_all(&options.scratch).unwrap();
}
