//! What the fee bands cost in a mempool of 300 MB, while transactions come, are prioritised, and are mined.
//!
//! Input: the chain and the transactions of the preset `mempool-mix`, and an engine and a mempool that accept them.
//! Output: how often a change moves a transaction between bands, the time of one such move, and their product for a
//! flow of transactions. A move is timed as the pool makes it, over all of its transactions: those that are just being
//! changed are in the cache, so the real time is shorter.

use lydian_chains::files::read_blocks;
use lydian_chains::presets::mempool_mix::{self, MempoolSettings, Waiting};
use lydian_consensus::{Chain, Params};
use lydian_disk::SimDisk;
use lydian_engine::{Engine, Layout, Settings as EngineSettings, Unobserved};
use lydian_mempool::policy::Settings;
use lydian_mempool::pool::{BAND_COUNT, Band, Member, band_of};
use lydian_mempool::{Clock, Mempool, Secrets};
use lydian_oracle::Scratch;
use lydian_primitives::{Block, RawBlock, Transaction, Txid};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Transactions whose memory is 300 MB as Core counts it.
const TRANSACTIONS: u32 = 170_000;

/// Of these, how many come one after another while the rest is there.
const FLOW: usize = 10_000;

/// Transactions of a block.
const PER_BLOCK: u32 = 2_600;

/// Transactions a second of the flow that is looked at: on mainnet, some ten a second come on most days.
const RATE: f64 = 1_000.0;

/// The time of the bands may be this long in each second (issue).
const TARGET: Duration = Duration::from_millis(20);

#[derive(Debug)]
struct Fixed(i64);

impl Clock for Fixed {
    fn unix_seconds(&self) -> i64 {
        self.0
    }
}

/// The node that is measured.
struct World {
    engine: Arc<Engine>,
    pool: Mempool,
    now: i64,
}

impl World {
    /// An engine with a chain, and an empty mempool above it.
    fn new(chain: Vec<Vec<u8>>) -> World {
        let blocks: Vec<Block> = chain.into_iter().map(|bytes| RawBlock::new(bytes).parse().unwrap()).collect();
        let now = i64::from(blocks.last().unwrap().header().time) + 7_200;
        let settings = Settings { mempool_bytes_max: 2_000_000_000, ..Settings::default() };
        let pool = Mempool::new(settings, Arc::new(Fixed(now)), Secrets { salt: [1; 32], seed: 2 });
        let engine_settings = EngineSettings { known_scripts: Some(pool.known_scripts()), ..EngineSettings::new(2) };
        let layout = Layout { blocks: "blocks".into(), index: "index".into(), coins: "coins".into() };
        let (disk, params) = (Arc::new(SimDisk::new(1)), Params::new(Chain::Regtest));
        let opened = Engine::open(disk, &layout, params, engine_settings, vec![pool.follower()]).unwrap();
        let world = World { engine: Arc::new(opened.engine), pool, now };
        world.pool.start(Arc::clone(&world.engine), 2).unwrap();
        world.pool.set_loaded();
        // The first one is the genesis block, which the engine has.
        blocks.into_iter().skip(1).for_each(|block| world.connect(block));
        world
    }

    fn connect(&self, block: Block) {
        self.engine.accept_block(block, self.now, &Unobserved).unwrap().unwrap();
        self.pool.settle();
    }

    fn moves(&self) -> u64 {
        self.pool.snapshot().bands().moves()
    }

    /// Transactions enter one after another. Returns how many, the moves for all and the most for one.
    fn submit(&self, txs: &[Vec<u8>]) -> (u64, u64, u64) {
        let (mut count, mut all, mut most) = (0, 0, 0);
        for tx in txs {
            let before = self.moves();
            // Some lose: their parents did, or their clusters are full.
            if self.pool.submit(Arc::new(Transaction::parse(tx.as_slice()).unwrap()), false).is_ok() {
                let moved = self.moves() - before;
                (count, all, most) = (count + 1, all + moved, most.max(moved));
            }
        }
        (count, all, most)
    }
}

/// The CPU nanoseconds of a move of each transaction, and the sums that all of them give. Other work on the machine
/// interrupts the passes, and is not part of them.
fn time_moves<'a>(members: impl Iterator<Item = &'a Member>) -> (f64, [Band; BAND_COUNT]) {
    let members: Vec<&Member> = members.collect();
    let mut bands = [Band::default(); BAND_COUNT];
    let start = cpu_nanos();
    for member in &members {
        let feerate = member.cluster().chunk_of(black_box(member.position())).unwrap().feerate;
        let (band, entry) = (&mut bands[band_of(feerate)], member.entry());
        band.count += 1;
        band.vsize += u64::from(entry.vsize().unsigned_abs());
        band.fees += entry.fee().0;
    }
    (cpu_nanos().saturating_sub(start) as f64 / members.len() as f64, black_box(bands))
}

/// The CPU time of this thread.
fn cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
}

pub(crate) fn run(is_full: bool) {
    let (transactions, flow, per_block) = if is_full { (TRANSACTIONS, FLOW, PER_BLOCK) } else { (300, 100, 100) };
    let folder = Scratch::new("bands-bench");
    let settings = MempoolSettings { transactions, full: 0, seed: 3, per_block };
    mempool_mix::write(settings, 2, folder.path()).unwrap();
    let Waiting { blocks, txs, .. } = mempool_mix::read(folder.path()).unwrap();
    let world = World::new(read_blocks(folder.path(), "blk").unwrap());
    let (first, last) = txs.split_at(txs.len() - flow);
    world.submit(first);
    let start = Instant::now();
    let (came, moves, most) = world.submit(last);
    let whole = start.elapsed().as_secs_f64();
    let snapshot = world.pool.snapshot();
    println!("\nFee bands: {} transactions, usage {}", snapshot.len(), snapshot.info().usage);
    assert!(snapshot.len() * 100 > txs.len() * 99, "{} of {}", snapshot.len(), txs.len());
    let mut nanos: Vec<f64> = (0..9)
        .map(|_| time_moves(snapshot.members()))
        .map(|(nanos, bands)| {
            assert_eq!(bands, *snapshot.bands().all());
            nanos
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    let (nanos, slowest) = (nanos[nanos.len() / 2], nanos[nanos.len() - 1]);
    let mean = moves as f64 / came as f64;
    println!("a move: {nanos:.0} ns (the slowest of 9 passes over all: {slowest:.0} ns)");
    println!("moves for each of {came} transactions that come: {mean:.2} on average, at most {most}");
    println!("their acceptance: {:.0} us each, of which bands {:.3} us", whole * 1e6 / came as f64, mean * nanos / 1e3);
    let millis = mean * nanos * RATE / 1e6;
    println!("{RATE} transactions a second: {millis:.3} ms a second in bands, target {} ms", TARGET.as_millis());
    prioritise(&world, snapshot.members().map(|member| member.entry().txid()).take(flow).collect(), nanos);
    let before = world.moves();
    let block = RawBlock::new(blocks.into_iter().next().unwrap()).parse().unwrap();
    let mined = block.txs().len() - 1;
    world.connect(block);
    let moves = world.moves() - before;
    println!("a block of {mined} transactions: {moves} moves, {:.3} ms", moves as f64 * nanos / 1e6);
    world.pool.end();
}

/// Each transaction gets another fee, which orders its cluster anew.
fn prioritise(world: &World, txids: Vec<Txid>, nanos: f64) {
    let (before, count) = (world.moves(), txids.len() as f64);
    for txid in txids {
        world.pool.prioritise(&txid, 1_000);
    }
    let mean = (world.moves() - before) as f64 / count;
    println!("a fee delta: {mean:.2} moves on average, {:.3} ms for {RATE}", mean * nanos * RATE / 1e6);
}
