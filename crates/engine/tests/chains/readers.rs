//! Readers beside a writer: whatever is connected and disconnected meanwhile, a snapshot has the coins of its tip, and
//! every answer of it belongs to that one tip.

use crate::expected::{Expected, Order, parse};
use crate::lydian::{How, Lydian, Place};
use crate::seeds::for_seeds;
use crate::story::{NOW, Story};
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::mainnet_mix;
use lydian_chains::rng::Random;
use lydian_consensus::{Chain, Coin, Params, is_block_mutated};
use lydian_engine::{
    Arrival, BlockSource, BlockTimes, Cancel, ChainSnapshot, EngineError, Event, Observer, Origin, StageClock,
    Standing, Tip,
};
use lydian_primitives::{Block, BlockHash, Height, OutPoint};
use lydian_script::is_unspendable;
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The coins after each block of a story, by its hash, and every outpoint there ever was.
struct History {
    coins: HashMap<BlockHash, BTreeMap<OutPoint, Coin>>,
    outpoints: Vec<OutPoint>,
}

fn created(block: &Block, height: Height) -> Vec<(OutPoint, Coin)> {
    let mut all = Vec::new();
    for tx in block.txs() {
        for (vout, output) in (0..).zip(tx.outputs()).filter(|(_, output)| !is_unspendable(output.script_pubkey)) {
            all.push((OutPoint { txid: tx.txid(), vout }, Coin::new(output, height, tx.is_coinbase())));
        }
    }
    all
}

impl History {
    fn new(story: &Story, expected: &Expected) -> History {
        let mut coins = HashMap::from([(story.params.genesis_hash, (0, BTreeMap::new()))]);
        let mut outpoints = Vec::new();
        for block in expected.fed.iter().map(|fed| parse(&fed.block)).filter(|block| !is_block_mutated(block, true)) {
            let Some((below, before)) = coins.get(&block.header().prev_block) else { continue };
            let (height, mut after) = (below + 1, before.clone());
            let made = created(&block, Height(height));
            outpoints.extend(made.iter().map(|(outpoint, _)| *outpoint));
            after.extend(made);
            for input in block.txs().skip(1).flat_map(|tx| tx.inputs().collect::<Vec<_>>()) {
                after.remove(&input.prevout);
            }
            coins.insert(block.hash(), (height, after));
        }
        outpoints.sort_unstable();
        outpoints.dedup();
        History { coins: coins.into_iter().map(|(hash, (_, coins))| (hash, coins)).collect(), outpoints }
    }

    /// Some outpoints, in any order, a few of them twice.
    fn some(&self, random: &mut Random) -> Vec<OutPoint> {
        let count = random.index(2 * self.outpoints.len().min(40) + 1);
        (0..count).map(|_| self.outpoints[random.index(self.outpoints.len())]).collect()
    }

    fn check(&self, snapshot: &ChainSnapshot, outpoints: &[OutPoint], when: &str) {
        let coins = snapshot.coins(outpoints).unwrap();
        let expected = &self.coins[&snapshot.tip().hash];
        assert_eq!(coins.len(), outpoints.len());
        for (outpoint, coin) in outpoints.iter().zip(coins) {
            assert_eq!(coin.as_ref(), expected.get(outpoint), "{outpoint:?} at {:?} {when}", snapshot.tip());
        }
    }
}

/// Three threads read, each with its own snapshots, some of which it keeps, while another submits all blocks.
#[test]
fn snapshots_have_the_coins_of_their_tip() {
    let (moves, kept) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for_seeds("readers::snapshots_have_the_coins_of_their_tip", 40, |seed| {
        let mut random = Random::new(seed, "readers");
        let story = Story::new(seed);
        let expected = Expected::new(&story, Order::File, &mut random);
        let history = History::new(&story, &expected);
        let how = How { pending_bytes_max: [300, 3_000, 1 << 30][random.index(3)], ..How::random(&mut random) };
        let place = Place::new(&how, &format!("readers-{seed}"));
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        let at_once = random.chance(500);
        let first = lydian.engine.snapshot();
        let is_fed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for reader in 0..3 {
                let (lydian, history, is_fed, moves, kept) = (&lydian, &history, &is_fed, &moves, &kept);
                scope.spawn(move || {
                    let mut random = Random::new(seed, &format!("reader {reader}"));
                    let (mut held, mut last) = (Vec::new(), None);
                    while !is_fed.load(Ordering::Acquire) {
                        let snapshot = lydian.engine.snapshot();
                        let sequence = snapshot.sequence();
                        assert!(last.is_none_or(|last| last <= sequence), "{last:?}, then {sequence}");
                        moves.fetch_add(usize::from(last != Some(sequence)), Ordering::Relaxed);
                        last = Some(sequence);
                        history.check(&snapshot, &history.some(&mut random), &format!("under {how:?}"));
                        for info in snapshot.followers().iter().filter(|info| info.standing == Standing::InStep) {
                            // It may have been disconnected meanwhile, but one that is in step had the tip.
                            assert!(info.tip.is_some(), "{info:?}");
                        }
                        if random.chance(300) {
                            held.push(snapshot);
                        }
                        if !held.is_empty() {
                            let one = random.index(held.len());
                            let is_over = random.chance(400);
                            history.check(&held[one], &history.some(&mut random), &format!("later, under {how:?}"));
                            kept.fetch_add(1, Ordering::Relaxed);
                            if is_over {
                                held.swap_remove(one);
                            }
                        }
                    }
                });
            }
            for fed in &expected.fed {
                if at_once {
                    let _ = lydian.engine.store_block(parse(&fed.block), i64::from(NOW)).unwrap();
                } else {
                    let _ = lydian.accept(&fed.block).unwrap();
                }
            }
            lydian.advance().unwrap();
            is_fed.store(true, Ordering::Release);
        });
        history.check(&first, &history.outpoints, "in a snapshot from before the first block");
        lydian.engine.finish_reviews().unwrap();
        let last = lydian.engine.snapshot();
        assert_eq!(last.tip(), lydian.engine.tip());
        history.check(&last, &history.outpoints, "in the end");
    });
    let (moves, kept) = (moves.into_inner(), kept.into_inner());
    assert!(moves > 100 && kept > 100, "{moves} snapshots of a new tip, {kept} reads of older ones");
}

/// 64 threads read while 550 blocks are validated in one run.
#[test]
fn readers_under_load() {
    const READERS: usize = 64;
    const BLOCKS: u32 = 550;
    let params = Params::new(Chain::Regtest);
    let mut blocks = Vec::new();
    let settings = MixSettings { blocks: BLOCKS, full: 2, seed: 11, reuse_per_mille: 0 };
    mainnet_mix::generate(settings, 2, |bytes| {
        blocks.push(parse(bytes));
        Ok(())
    })
    .unwrap();
    // Each outpoint with its coin and the height at which it is spent.
    let mut lives: HashMap<OutPoint, (Coin, u32)> = HashMap::new();
    for (height, block) in (0..).zip(&blocks).skip(1) {
        lives.extend(created(block, Height(height)).into_iter().map(|(outpoint, coin)| (outpoint, (coin, u32::MAX))));
        for input in block.txs().skip(1).flat_map(|tx| tx.inputs().collect::<Vec<_>>()) {
            if let Some((_, spent)) = lives.get_mut(&input.prevout) {
                *spent = height;
            }
        }
    }
    let outpoints: Vec<OutPoint> = lives.keys().copied().collect();
    let how = How {
        workers: 2,
        window_blocks: usize::MAX,
        window_bytes: 40 << 20,
        cache_bytes: 1 << 30,
        // Several checkpoints on the way.
        pending_bytes_max: 300_000,
        followers: 1,
        fails_at: None,
        is_real: false,
        ..How::random(&mut Random::new(1, "load"))
    };
    let place = Place::new(&how, "load");
    let lydian = Lydian::open(&place, &params, &how).unwrap();
    for block in &blocks[1..] {
        lydian.engine.store_block(block.clone(), i64::from(u32::MAX)).unwrap().unwrap();
    }
    let (is_over, reads, tips) = (AtomicBool::new(false), AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for reader in 0..READERS {
            let (lydian, lives, outpoints, blocks) = (&lydian, &lives, &outpoints, &blocks);
            let (is_over, reads, tips) = (&is_over, &reads, &tips);
            scope.spawn(move || {
                let mut random = Random::new(3, &format!("load {reader}"));
                while !is_over.load(Ordering::Acquire) {
                    let asked: Vec<OutPoint> = (0..50).map(|_| outpoints[random.index(outpoints.len())]).collect();
                    let snapshot = lydian.engine.snapshot();
                    let Tip { height, hash } = snapshot.tip();
                    assert_eq!(blocks[height.0 as usize].hash(), hash);
                    for _ in 0..2 {
                        match snapshot.coins(&asked) {
                            Ok(found) => {
                                for (outpoint, coin) in asked.iter().zip(found) {
                                    let (life, spent) = &lives[outpoint];
                                    let expected = (life.height <= height && height.0 < *spent).then_some(life);
                                    assert_eq!(coin.as_ref(), expected, "{outpoint:?} at height {}", height.0);
                                }
                                reads.fetch_add(1, Ordering::Relaxed);
                                *tips.lock().unwrap().entry(height.0).or_insert(0) += 1;
                            }
                            Err(EngineError::SnapshotExpired { .. }) => break,
                            Err(error) => panic!("{error}"),
                        }
                        // So many readers would leave the workers no time.
                        std::thread::sleep(Duration::from_millis(random.below(20)));
                    }
                }
            });
        }
        lydian.advance().unwrap();
        is_over.store(true, Ordering::Release);
    });
    assert_eq!(lydian.engine.settled_tip().height.0, BLOCKS);
    let (reads, tips) = (reads.into_inner(), tips.into_inner().unwrap());
    eprintln!("{reads} reads at {} tips", tips.len());
    assert!(reads > 500 && tips.len() > 20, "{reads} reads at {} tips", tips.len());
}

/// A clock that goes on with each reading.
#[derive(Debug, Default)]
struct Ticks(AtomicU64);

impl StageClock for Ticks {
    fn wall_ns(&self) -> u64 {
        1_000_000 + self.0.fetch_add(1, Ordering::SeqCst)
    }

    fn thread_cpu_ns(&self) -> u64 {
        0
    }
}

/// The times of blocks at the tip, and the tips announced.
#[derive(Debug, Default)]
struct Timed(Mutex<Vec<(Option<BlockTimes>, Option<Tip>)>>);

impl Observer for Timed {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::BlockSettled(block) => self.0.lock().unwrap().push((Some(block.times), None)),
            Event::Settled { tip, .. } => self.0.lock().unwrap().push((None, Some(*tip))),
            _ => {}
        }
    }
}

/// Each block at the tip comes with its source and the times of its steps, in their order, before it is announced.
#[test]
fn blocks_at_the_tip_have_their_times() {
    let params = Params::new(Chain::Regtest);
    let how = How { followers: 1, stop_at: None, ..How::random(&mut Random::new(2, "times")) };
    let place = Place::new(&how, "times");
    let settings = lydian_engine::Settings { clock: Box::new(Ticks::default()), ..how.settings() };
    let lydian = Lydian::open_with(&place, &params, &how, settings).unwrap();
    let mut tip = params.genesis_hash;
    for height in 1..=9_u32 {
        let block = parse(&crate::story::sealed(tip, height - 1, b"times", Vec::new()).encode());
        tip = block.hash();
        let timed = Timed::default();
        let source = match height % 3 {
            0 => {
                lydian.engine.accept_block(block, i64::from(NOW), &timed).unwrap().unwrap();
                Some(BlockSource::Call)
            }
            1 => {
                let origin = Origin { received: 500, ..Origin::at_once(BlockSource::Peer(u64::from(height)), 600) };
                lydian.engine.store_block_from(block, i64::from(NOW), origin).unwrap().unwrap();
                lydian.engine.advance(&Cancel::new(), &timed).unwrap();
                Some(origin.source)
            }
            _ => {
                lydian.engine.store_block(block, i64::from(NOW)).unwrap().unwrap();
                lydian.engine.advance(&Cancel::new(), &timed).unwrap();
                None
            }
        };
        let events = timed.0.into_inner().unwrap();
        let [(Some(times), None), (None, Some(announced))] = events[..] else { panic!("{events:?}") };
        assert_eq!((times.height.0, times.hash), (height, tip));
        assert_eq!(announced, Tip { height: Height(height), hash: tip });
        let BlockTimes { funded, verified, committed, settled, .. } = times;
        assert!(
            times.begun > 1_000_000
                && times.begun < funded
                && funded <= verified
                && verified <= committed
                && committed < settled,
            "{times:?}"
        );
        match (times.arrival, source) {
            (Some(Arrival { source, received, begun, parsed, checked, stored }), Some(expected)) => {
                assert_eq!((source, received == 500), (expected, height % 3 == 1), "{times:?}");
                assert!(received <= begun && begun <= parsed && parsed < checked, "{times:?}");
                assert!(checked < stored && stored < times.begun && times.reading.is_none(), "{times:?}");
            }
            (None, None) => {}
            _ => panic!("{times:?}"),
        }
    }
    assert_eq!(lydian.engine.snapshot().sequence(), 9);
}
