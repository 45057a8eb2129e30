//! Checkpoints by time: made in the middle of a run, which continues. A process that dies loses the changes after the
//! last one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test file uses its part")]
#[path = "../../../testdata/locate.rs"]
mod locate;

use locate::{read, testdata};
use lydian_consensus::{Chain, Params};
use lydian_curve::Refereed;
use lydian_disk::{Disk, SimDisk};
use lydian_engine::limits::CHECKPOINT_SECONDS;
use lydian_engine::{Cancel, Engine, EngineError, Event, Layout, Observer, Settings, Stage, StageClock, Unobserved};
use lydian_primitives::{Block, RawBlock, Reader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const NOW: i64 = 1_800_000_000;
const BLOCKS: usize = 400;
const SECOND: u64 = 1_000_000_000;

/// A clock that the test moves.
#[derive(Clone, Debug, Default)]
struct Clock(Arc<AtomicU64>);

impl StageClock for Clock {
    fn wall_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn thread_cpu_ns(&self) -> u64 {
        0
    }
}

/// Moves the clock by a number of nanoseconds with each block, and records the checkpoints.
struct Passing {
    clock: Clock,
    each_block_ns: u64,
    tip: AtomicU64,
    checkpoints: Mutex<Vec<u64>>,
}

impl Observer for Passing {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::UpdateTip(tip) => {
                self.clock.0.fetch_add(self.each_block_ns, Ordering::Relaxed);
                self.tip.store(u64::from(tip.height.0), Ordering::Relaxed);
            }
            Event::Checkpoint { height, .. } => {
                assert_eq!(u64::from(height.0), self.tip.load(Ordering::Relaxed), "no block is in the pipeline");
                self.checkpoints.lock().unwrap().push(u64::from(height.0));
            }
            _ => {}
        }
    }
}

/// The first blocks of testnet3 above genesis.
fn blocks() -> Vec<Block> {
    let bytes = read(&testdata("blocks/runs/test3_000000_004000.blk.zst"));
    let mut reader = Reader::new(&bytes);
    let mut blocks = Vec::new();
    while blocks.len() <= BLOCKS {
        reader.array::<4>().unwrap();
        let size = reader.u32().unwrap() as usize;
        blocks.push(RawBlock::new(reader.take(size).unwrap()).parse().unwrap());
    }
    blocks.split_off(1)
}

fn layout() -> Layout {
    Layout { blocks: PathBuf::from("/node/blocks"), index: "/node/index".into(), coins: "/node/chainstate".into() }
}

fn open(disk: &SimDisk, clock: &Clock) -> Engine {
    // Few blocks in the pipeline, so that a checkpoint, which waits for them, is not always that of the last block.
    let settings = Settings { clock: Box::new(clock.clone()), window_blocks: 16, ..Settings::new(2) };
    Engine::open(Arc::new(disk.clone()), &layout(), Params::new(Chain::Test), settings, Vec::new()).unwrap().engine
}

/// Validates all blocks in one run; returns the heights of the checkpoints.
fn validate(each_block_ns: u64) -> (SimDisk, Vec<u64>) {
    let (disk, clock) = (SimDisk::new(7), Clock::default());
    let engine = open(&disk, &clock);
    for block in blocks() {
        engine.store_block(block, NOW).unwrap().unwrap();
    }
    let passing = Passing { clock, each_block_ns, tip: AtomicU64::new(0), checkpoints: Mutex::default() };
    let advance = engine.advance(&Cancel::new(), &passing).unwrap();
    assert_eq!(advance.connected, BLOCKS as u64, "one run");
    (disk, passing.checkpoints.into_inner().unwrap())
}

/// limit: CHECKPOINT_SECONDS at
/// limit: CHECKPOINT_SECONDS below
#[test]
fn a_checkpoint_is_made_when_its_time_has_come() {
    // The time passes when the first block is committed; its coins are applied after that.
    assert!(!validate(CHECKPOINT_SECONDS * SECOND).1.is_empty());
    // All blocks together take less than the interval.
    let blocks = BLOCKS as u64;
    let last = CHECKPOINT_SECONDS * SECOND / blocks;
    assert_eq!(validate(last - 1).1, [0_u64; 0]);
}

/// The tip after a restart is that of the last checkpoint; the blocks above it are stored and validated again, to the
/// same coins.
#[test]
fn a_kill_loses_what_came_after_the_last_checkpoint() {
    let (disk, checkpoints) = validate(CHECKPOINT_SECONDS * SECOND / 100);
    assert!(checkpoints.len() > 1 && checkpoints.len() < 10, "{checkpoints:?}");
    let engine = open(&disk, &Clock::default());
    let found = engine.tip().height.0;
    assert_eq!(Some(&u64::from(found)), checkpoints.last());
    assert!(found > 100, "a run of 400 blocks, of which 100 take as long as the interval");
    engine.advance(&Cancel::new(), &Unobserved).unwrap();
    assert_eq!(engine.tip().height.0 as usize, BLOCKS);
    let settled = engine.progress();
    assert_eq!(settled.blocks_trusted, u64::from(400 - found), "no script is run again");
    let undisturbed = validate(0);
    let other = open(&undisturbed.0, &Clock::default());
    other.advance(&Cancel::new(), &Unobserved).unwrap();
    assert_eq!(engine.utxo_hashes().unwrap(), other.utxo_hashes().unwrap());
}

/// A node makes a checkpoint when its blocks are loaded and another one when it ends; often nothing happens in between.
#[test]
fn what_has_not_changed_is_not_written_again() {
    let disk = SimDisk::new(7);
    let engine = open(&disk, &Clock::default());
    let mut blocks = blocks().into_iter();
    let mut connect = || {
        engine.store_block(blocks.next().unwrap(), NOW).unwrap().unwrap();
        engine.advance(&Cancel::new(), &Unobserved).unwrap();
    };
    let operations = || {
        let before = disk.operation_count();
        engine.checkpoint(&Unobserved).unwrap();
        disk.operation_count() - before
    };
    for _ in 0..3 {
        connect();
        assert!(operations() > 0);
        assert_eq!((operations(), engine.durable_tip()), (0, Some(engine.tip())));
    }
    // The same tip, and coins that were changed and changed back.
    let tip = engine.tip();
    let id = engine.with_tree(|tree| tree.find(&tip.hash)).unwrap();
    engine.invalidate_block(id, &Unobserved).unwrap();
    engine.reconsider_block(id, &Unobserved).unwrap();
    assert_eq!(engine.tip(), tip);
    assert!(operations() > 0);
    assert_eq!(operations(), 0);
}

/// The verifier is asked for once the stores are open; without one there is no engine, and the next start finds the
/// stores as they were.
#[test]
fn the_verifier_may_come_after_the_stores() {
    #[derive(Debug)]
    enum Failure {
        NoVerifier,
        Engine,
    }
    impl From<EngineError> for Failure {
        fn from(_: EngineError) -> Failure {
            Failure::Engine
        }
    }
    let disk = SimDisk::new(7);
    let open = |signatures: Result<Arc<Refereed>, Failure>| {
        let disk = disk.clone();
        let (files, progress) = (disk.clone(), &mut |_: &Path, _| {});
        let get = || {
            assert!(
                files.list(Path::new("/node/chainstate")).is_ok_and(|files| !files.is_empty()),
                "the stores are open"
            );
            signatures
        };
        let (params, settings) = (Params::new(Chain::Test), Settings::new(1));
        Engine::open_with_signatures(Arc::new(disk), &layout(), params, settings, Vec::new(), progress, get)
    };
    assert!(matches!(open(Err(Failure::NoVerifier)), Err(Failure::NoVerifier)));
    let verifier = Arc::new(Refereed::reference());
    let engine = open(Ok(Arc::clone(&verifier))).unwrap().engine;
    assert!(Arc::ptr_eq(engine.signatures(), &verifier));
}

/// A wait for blocks with known headers counts as a stage of all workers; any other wait does not.
#[test]
fn the_wait_for_blocks_is_a_stage() {
    let (disk, clock) = (SimDisk::new(8), Clock::default());
    let engine = open(&disk, &clock);
    let wait = || engine.await_blocks(|| clock.0.fetch_add(SECOND, Ordering::Relaxed));
    let waited = || engine.progress().stages[Stage::Blocks as usize].wall_ns;
    assert_eq!(wait(), 0);
    assert_eq!(waited(), 0, "nothing is known to wait for");
    let blocks = blocks();
    engine.accept_header(blocks[0].header(), NOW).unwrap().unwrap();
    wait();
    assert_eq!(waited(), 2 * SECOND, "of two workers");
    engine.store_block(blocks[0].clone(), NOW).unwrap().unwrap();
    engine.advance(&Cancel::new(), &Unobserved).unwrap();
    wait();
    assert_eq!(waited(), 2 * SECOND, "in step");
}
