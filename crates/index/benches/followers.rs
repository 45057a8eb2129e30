//! What followers cost: full validation of a chain without a follower, with one that counts inputs in `prepare`, and
//! with each index; and the catch-up of a follower that does nothing, and of each index, from files.
//!
//! Data: a directory of block files (`--chain DIR`; in the small mode that `cargo test` runs: blocks made here). Each
//! round validates the chain once for each contender, in turn, into a scratch directory, and then catches up. Output: a
//! table of wall time and processor time (user and system, all threads), with the median of the rounds, its ratio to
//! the same without an index, what it adds to that for each input, and how much of it the thread that connects blocks
//! spends in the followers. The statistics must be those of the coins, and the last coinbase must be found by its txid.
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
use rustix::time::ClockId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

/// What followers take of the thread that connects blocks.
#[derive(Debug, Default)]
struct InOrder {
    /// Processor time.
    nanoseconds: AtomicU64,
    /// Inputs of the blocks, by the last follower.
    inputs: AtomicU64,
}

/// Measures it.
#[derive(Debug)]
struct Timed {
    follower: Box<dyn Follower>,
    taken: Arc<InOrder>,
    inputs: u64,
}

impl Timed {
    fn call<T>(&mut self, call: impl FnOnce(&mut dyn Follower) -> T) -> T {
        let before = clock(ClockId::ThreadCPUTime);
        let result = call(self.follower.as_mut());
        let spent = clock(ClockId::ThreadCPUTime).saturating_sub(before);
        self.taken.nanoseconds.fetch_add(u64::try_from(spent.as_nanos()).unwrap(), Ordering::Relaxed);
        result
    }
}

impl Follower for Timed {
    fn name(&self) -> &str {
        self.follower.name()
    }

    fn has_files(&self) -> bool {
        self.follower.has_files()
    }

    fn durable_tip(&self) -> Option<Tip> {
        self.follower.durable_tip()
    }

    fn preparer(&self) -> Option<Arc<dyn Prepare>> {
        self.follower.preparer()
    }

    fn connect(&mut self, block: &ConnectedBlock<'_>, rows: Option<Rows>) -> Result<(), FollowerError> {
        self.inputs += block.spent.len() as u64;
        self.taken.inputs.store(self.inputs, Ordering::Relaxed);
        self.call(|follower| follower.connect(block, rows))
    }

    fn disconnect(&mut self, block: &ConnectedBlock<'_>) -> Result<Left, FollowerError> {
        self.call(|follower| follower.disconnect(block))
    }

    fn checkpoint(&mut self, tip: Tip) -> Result<(), FollowerError> {
        self.call(|follower| follower.checkpoint(tip))
    }

    fn clear(&mut self) -> Result<(), FollowerError> {
        self.follower.clear()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum With {
    Nothing,
    Counting,
    CoinStats,
    Transactions,
    Scripts,
    Full,
    Filters,
    FullAndFilters,
    CatchUpIdle,
    CatchUpCoinStats,
    CatchUpTransactions,
    CatchUpScripts,
    CatchUpFull,
    CatchUpFilters,
}

/// What answers after a run.
enum Reader {
    CoinStats(CoinStatsReader),
    Transactions(TxIndexReader),
    Filters(FilterReader),
}

impl With {
    const ALL: [(With, &str); 14] = [
        (With::Nothing, "validation, no follower"),
        (With::Counting, "validation, a follower that counts inputs in prepare"),
        (With::CoinStats, "validation, coin statistics"),
        (With::Transactions, "validation, tables of transactions"),
        (With::Scripts, "validation, address index, compact"),
        (With::Full, "validation, address index, full"),
        (With::Filters, "validation, block filters"),
        (With::FullAndFilters, "validation, address index, full, and block filters"),
        (With::CatchUpIdle, "catch-up, a follower that does nothing"),
        (With::CatchUpCoinStats, "catch-up, coin statistics"),
        (With::CatchUpTransactions, "catch-up, tables of transactions"),
        (With::CatchUpScripts, "catch-up, address index, compact"),
        (With::CatchUpFull, "catch-up, address index, full"),
        (With::CatchUpFilters, "catch-up, block filters"),
    ];

    fn is_catch_up(self) -> bool {
        self == With::CatchUpIdle || self.is_catch_up_of_an_index()
    }

    fn is_catch_up_of_an_index(self) -> bool {
        use With::{CatchUpCoinStats, CatchUpFilters, CatchUpFull, CatchUpScripts, CatchUpTransactions};
        matches!(self, CatchUpCoinStats | CatchUpTransactions | CatchUpScripts | CatchUpFull | CatchUpFilters)
    }

    /// What the tables keep; `None` without tables.
    fn profile(self) -> Option<Profile> {
        let (has_scripts, has_txids) = match self {
            With::Transactions | With::CatchUpTransactions => (false, false),
            With::Scripts | With::CatchUpScripts => (true, false),
            With::Full | With::FullAndFilters | With::CatchUpFull => (true, true),
            With::Nothing | With::Counting | With::CatchUpIdle => return None,
            With::CoinStats | With::CatchUpCoinStats | With::Filters | With::CatchUpFilters => return None,
        };
        Some(Profile { has_scripts, has_txids })
    }

    fn followers(self, scratch: &Path, params: &Params) -> (Vec<Box<dyn Follower>>, Vec<Reader>) {
        let dir = scratch.join(format!("{self:?}"));
        let (mut followers, mut readers): (Vec<Box<dyn Follower>>, _) = (Vec::new(), Vec::new());
        if matches!(self, With::Counting | With::CatchUpIdle) {
            followers.push(Box::new(Counting { has_preparer: self == With::Counting, inputs: 0 }));
        }
        if matches!(self, With::CoinStats | With::CatchUpCoinStats) {
            let (index, reader) = CoinStatsIndex::open(Arc::new(RealDisk), &dir, params).unwrap();
            followers.push(Box::new(index));
            readers.push(Reader::CoinStats(reader));
        }
        if let Some(profile) = self.profile() {
            let dir = dir.join("tables");
            let (index, reader) =
                TxIndex::open(Arc::new(RealDisk), &dir, params.genesis_hash, profile, || [1, 2]).unwrap();
            followers.push(Box::new(index));
            readers.push(Reader::Transactions(reader));
        }
        if matches!(self, With::Filters | With::FullAndFilters | With::CatchUpFilters) {
            let dir = dir.join("filters");
            let (index, reader) = FilterIndex::open(Arc::new(RealDisk), &dir, params.genesis_hash).unwrap();
            followers.push(Box::new(index));
            readers.push(Reader::Filters(reader));
        }
        (followers, readers)
    }
}

/// Wall time and processor time in seconds.
#[derive(Clone, Copy, Debug)]
struct Cost {
    wall: f64,
    cpu: f64,
    /// Of the calls to the followers: see [`Timed`].
    in_order: f64,
    inputs: u64,
}

fn clock(id: ClockId) -> Duration {
    let time = rustix::time::clock_gettime(id);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let cpu = || clock(ClockId::ProcessCPUTime);
    let (start, before) = (Instant::now(), cpu());
    let result = work();
    let cpu = (cpu() - before).as_secs_f64();
    (result, Cost { wall: start.elapsed().as_secs_f64(), cpu, in_order: 0.0, inputs: 0 })
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
    let (followers, readers) = with.followers(scratch, &params);
    let taken = Arc::new(InOrder::default());
    let timed_one = |follower| Box::new(Timed { follower, taken: Arc::clone(&taken), inputs: 0 }) as Box<dyn Follower>;
    let followers = followers.into_iter().map(timed_one).collect();
    let open = |followers| {
        let opened = Engine::open(Arc::new(RealDisk), &layout, params.clone(), settings(options.workers), followers);
        opened.unwrap().engine
    };
    let (engine, mut cost) = if with.is_catch_up() {
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
    cost.in_order = Duration::from_nanos(taken.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
    cost.inputs = taken.inputs.load(Ordering::Relaxed);
    assert!(engine.followers().iter().all(|follower| follower.standing == Standing::InStep));
    engine.checkpoint(&Unobserved).unwrap();
    let tip = engine.tip();
    readers.iter().for_each(|reader| check(reader, &engine, tip));
    cost
}

/// Whether an index knows the block at the tip.
fn check(reader: &Reader, engine: &Engine, tip: Tip) {
    let block = engine.block(&engine.tip_info()).unwrap().unwrap();
    match reader {
        Reader::CoinStats(reader) => {
            let stats = reader.at(tip.height, &tip.hash).unwrap().unwrap();
            let summary = engine.coins_summary(UtxoHash::Muhash).unwrap();
            assert_eq!((stats.coins, Some(stats.muhash)), (summary.coins, summary.hash));
        }
        Reader::Filters(reader) => {
            let (filter, _) = reader.filter(tip.height, &tip.hash).unwrap().unwrap();
            let output = block.tx(0).outputs().next().unwrap();
            assert_eq!(lydian_index::match_any(&filter, &tip.hash, [output.script_pubkey]), Ok(true));
        }
        Reader::Transactions(reader) => {
            let places = reader.candidates(&block.tx(0).txid()).unwrap();
            assert!(places.iter().any(|(_, place)| (place.height, place.offset) == (tip.height, block.tx(0).offset())));
        }
    }
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
            if with.is_catch_up_of_an_index() {
                std::fs::remove_dir_all(scratch.join(format!("{with:?}"))).unwrap();
            }
        }
    }
    print_table(&costs);
    std::fs::remove_dir_all(&options.scratch).unwrap();
}

fn print_table(costs: &[Vec<Cost>]) {
    let median = |costs: &[Cost], part: fn(&Cost) -> f64| {
        let mut values: Vec<f64> = costs.iter().map(part).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let inputs = costs.iter().flatten().map(|cost| cost.inputs).max().unwrap();
    println!("{inputs} inputs; nanoseconds are for each");
    println!(
        "{:55} {:>9} {:>9} {:>7} {:>9} {:>9}",
        "median of rounds", "wall s", "CPU s", "ratio", "more ns", "in order"
    );
    let of_row = |row: With| &costs[With::ALL.iter().position(|(with, _)| *with == row).unwrap()];
    let per_input = |seconds: f64| seconds * 1e9 / f64::from(u32::try_from(inputs).unwrap());
    for ((with, name), costs) in With::ALL.into_iter().zip(costs) {
        let (wall, cpu) = (median(costs, |cost| cost.wall), median(costs, |cost| cost.cpu));
        let base = of_row(if with.is_catch_up() { With::CatchUpIdle } else { With::Nothing });
        let base = median(base, |cost| cost.cpu);
        let (more, in_order) = (per_input(cpu - base), per_input(median(costs, |cost| cost.in_order)));
        println!("{name:55} {wall:9.3} {cpu:9.3} {:7.3} {more:9.0} {in_order:9.0}", cpu / base);
    }
}
