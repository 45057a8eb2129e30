//! A chain of the generator with real scripts, an engine and its index; and a front end that reads the store.

use super::hooked::Hooked;
use super::seeds::world_row;
use super::sim::{Faults, SimStore, World};
use crate::{
    BlockHeight, BlockKey, Bucket, Compared, DeltaHeight, DeltaKey, EngineBlocks, Key, PageKey, SharedIndex, Step,
    Table, Writer, WriterId, compare,
};
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::mainnet_mix;
use lydian_consensus::{Chain as Network, Params};
use lydian_disk::SimDisk;
use lydian_engine::{Cancel, Engine, Layout, Settings as EngineSettings, Unobserved};
use lydian_index::{Profile, ScriptHash, TxIndex, TxIndexReader};
use lydian_mempool::policy::Settings as Policy;
use lydian_mempool::{Clock, Mempool, Secrets, StepwiseDisconnect};
use lydian_primitives::{Block, Height, RawBlock, Txid};
use lydian_query::{Chain, NodeChain, NodeIndex, NodePool, Query, ScriptIndex, Settings};
use lydian_stdx::{SplitMix64, lock};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Later than every block.
const NOW: i64 = 4_000_000_000;

#[derive(Debug)]
struct TestClock;

impl Clock for TestClock {
    fn unix_seconds(&self) -> i64 {
        NOW
    }
}

/// A node without sockets.
struct Node {
    engine: Arc<Engine>,
    mempool: Arc<Mempool>,
    reader: TxIndexReader,
    scripts: BTreeSet<ScriptHash>,
    /// Those of the outputs of each block.
    by_block: Vec<Vec<ScriptHash>>,
    txids: Vec<Txid>,
}

impl Node {
    fn new(profile: Profile) -> Node {
        let params = Params::new(Network::Regtest);
        let disk = Arc::new(SimDisk::new(1));
        let policy = Policy { require_standard: false, ..Policy::default() };
        let mempool = Arc::new(Mempool::new(policy, Arc::new(TestClock), Secrets { salt: [1; 32], seed: 2 }));
        let (index, reader) =
            TxIndex::open(disk.clone(), Path::new("tables"), params.genesis_hash, profile, || [5, 6]).unwrap();
        let layout = Layout { blocks: "blocks".into(), index: "index".into(), coins: "coins".into() };
        let settings = EngineSettings { known_scripts: Some(mempool.known_scripts()), ..EngineSettings::new(2) };
        let followers = vec![Box::new(index) as Box<_>, mempool.follower()];
        let engine = Arc::new(Engine::open(disk, &layout, params, settings, followers).unwrap().engine);
        mempool.start(Arc::clone(&engine), 1).unwrap();
        mempool.set_loaded();
        Node { engine, mempool, reader, scripts: BTreeSet::new(), by_block: Vec::new(), txids: Vec::new() }
    }

    fn grow(&mut self, settings: MixSettings) {
        mainnet_mix::generate(settings, 2, |bytes| {
            let block: Block = RawBlock::new(bytes.to_vec()).parse().unwrap();
            let mut scripts = Vec::new();
            for tx in block.txs() {
                self.txids.push(tx.txid());
                scripts.extend(tx.outputs().map(|output| ScriptHash::of(output.script_pubkey)));
            }
            self.scripts.extend(&scripts);
            self.by_block.push(scripts);
            // The genesis block is there already.
            if self.txids.len() > 1 {
                self.engine.store_block(block, NOW).unwrap().unwrap();
            }
            Ok(())
        })
        .unwrap();
        self.engine.advance(&Cancel::new(), &Unobserved).unwrap();
        self.engine.checkpoint(&Unobserved).unwrap();
        self.engine.finish_catch_up();
        // A thread of the index writes the segment of the first 256 blocks.
        while self.reader.export().unwrap().written() < 256 {
            std::thread::yield_now();
        }
    }

    fn query(&self, index: Arc<dyn ScriptIndex>, chain: Arc<dyn Chain>) -> Query {
        let pool = Arc::new(NodePool::new(&self.mempool, &self.engine));
        Query::new(Settings { chain, index: Ok(index), pool })
    }
}

fn spoilt_values_are_different(world: &Arc<Mutex<World>>, compare: &dyn Fn() -> Compared) {
    let commit = world_row(world);
    let bucket = Bucket { generation: commit.content.segments[0].generation, table: Table::Numbers, page: 0 };
    let at = DeltaHeight { series: commit.series, height: 400 };
    let hash = commit.delta_hash(400).unwrap();
    let of_block = BlockHeight { series: commit.blocks[0].series, height: 400 };
    let part = |part| Key::Block(BlockKey { at: of_block, hash, part });
    for key in [Key::Page(PageKey { bucket, part: 0 }), Key::Delta(DeltaKey { at, hash }), part(0), part(1)] {
        let kept = RefCell::new(None);
        lock(world).spoil(&key, &[0, 1, 2], |value| *kept.borrow_mut() = value.take());
        assert_eq!(compare().difference, Some(format!("{key} is missing on a quorum of replicas")));
        lock(world).spoil(&key, &[0, 1, 2], |value| *value = Some(vec![1, 2, 3]));
        assert_eq!(compare().difference, Some(format!("{key} differs from the index of this node")));
        lock(world).spoil(&key, &[0, 1, 2], |value| value.clone_from(&kept.borrow()));
    }
}

#[test]
fn every_script_of_a_chain_has_the_answers_of_the_embedded_index() {
    for has_txids in [true, false] {
        let mut node = Node::new(Profile { has_scripts: true, has_txids });
        node.grow(MixSettings { blocks: 432, full: 0, seed: 5, reuse_per_mille: 300 });
        let world = World::new(1, Faults::default());
        let store = SimStore::new(&world, usize::MAX);
        let writer = Writer::open(store.clone(), Box::new(node.reader.clone()), WriterId([1; 16])).unwrap();
        let blocks = EngineBlocks::new(&node.engine);
        let mut writer = writer.with_blocks(Box::new(EngineBlocks::new(&node.engine)));
        while writer.step(0).unwrap() != Step::Idle {}
        let commit = world_row(&world);
        assert_eq!((commit.content.segments.len(), commit.content.hashes.len()), (1, 177));
        let values = lock(&world).values_count();
        let compare = || compare(store.as_ref(), &node.reader, &blocks, &mut |_| true).unwrap().unwrap();
        let found = compare();
        assert_eq!((found.difference, found.height, found.values), (None, Some(432), values as u64));
        assert_eq!((found.blocks, found.other_blocks), (433, 0));
        spoilt_values_are_different(&world, &compare);
        let shared = Arc::new(SharedIndex::open(store.clone(), &node.reader.identity().genesis).unwrap());
        let chain: Arc<dyn Chain> = Arc::new(NodeChain::new(&node.engine));
        let own_index = Arc::new(NodeIndex::new(node.reader.clone(), Arc::clone(&chain), &node.engine));
        let other_index = Arc::new(shared.scripts(Arc::clone(&chain)));
        let own = node.query(own_index.clone(), Arc::clone(&chain));
        let other = node.query(other_index.clone(), chain);
        assert_eq!(other.tip().unwrap(), own.tip().unwrap());
        // Without the table of txids, every transaction is read for an answer.
        let step = if has_txids { 1 } else { 9 };
        for script in node.scripts.iter().step_by(step) {
            assert_eq!(other.history(script, 0..u32::MAX).unwrap(), own.history(script, 0..u32::MAX).unwrap());
            assert_eq!(other.balance(script).unwrap(), own.balance(script).unwrap());
            assert_eq!(other.coins(script).unwrap(), own.coins(script).unwrap());
            assert_eq!(other.status(script).unwrap(), own.status(script).unwrap());
        }
        for (height, hash) in (0..).zip(shared.hashes(0, usize::MAX)) {
            let info = node.engine.header_info(&hash).unwrap();
            let block = node.engine.raw_block(&info).unwrap().unwrap();
            assert_eq!(shared.stored_block(height, &hash).unwrap().as_deref(), Some(block.as_bytes()));
        }
        for txid in &node.txids {
            let located = |index: &NodeIndex| index.locate(txid).unwrap().map(|found| (found.number, found.block));
            assert_eq!(located(&other_index), located(&own_index));
            assert!(located(&own_index).is_some());
        }
        node.mempool.end();
    }
}

/// A kind of question about a script, with an answer that can be compared.
fn answer(query: &Query, kind: usize, script: &ScriptHash) -> String {
    match kind % 4 {
        0 => format!("{:?}", query.history(script, 0..u32::MAX).unwrap()),
        1 => format!("{:?}", query.balance(script).unwrap()),
        2 => format!("{:?}", query.coins(script).unwrap()),
        _ => format!("{:?}", query.status(script).unwrap()),
    }
}

/// What servers ask, while blocks leave and come back and the reader takes the rows about it: every answer is that of
/// the embedded index at some one moment between the question and the answer.
#[test]
fn an_answer_while_blocks_come_and_leave_is_that_of_one_moment() {
    for has_txids in [true, false] {
        let mut node = Node::new(Profile { has_scripts: true, has_txids });
        node.grow(MixSettings { blocks: 420, full: 0, seed: 6, reuse_per_mille: 300 });
        let world = World::new(2, Faults::default());
        let index = Box::new(node.reader.clone());
        let mut writer = Writer::open(SimStore::new(&world, usize::MAX), index, WriterId([1; 16])).unwrap();
        while writer.step(0).unwrap() != Step::Idle {}
        let store = Hooked::new(SimStore::new(&world, usize::MAX));
        let shared = Arc::new(SharedIndex::open(store.clone(), &node.reader.identity().genesis).unwrap());
        let chain: Arc<dyn Chain> = Arc::new(NodeChain::new(&node.engine));
        let own_index = Arc::new(NodeIndex::new(node.reader.clone(), Arc::clone(&chain), &node.engine));
        let own = Arc::new(node.query(own_index, Arc::clone(&chain)));
        let other = node.query(Arc::new(shared.scripts(Arc::clone(&chain))), chain);
        // The question, how often the chain may still move, and the answers since it was asked.
        let asked = Arc::new(Mutex::new((0, ScriptHash([0; 32]), 0, Vec::<String>::new())));
        let (state, query, reader) = (Arc::clone(&asked), Arc::clone(&own), node.reader.clone());
        let (engine, mempool, weak) = (Arc::clone(&node.engine), Arc::clone(&node.mempool), Arc::downgrade(&shared));
        let (mut random, mut left) = (SplitMix64::new(3), None);
        store.set(move |_| {
            let mut guard = lock(&state);
            let (kind, script, moves, _) = &mut *guard;
            if *moves == 0 || random.below(2) == 0 {
                return Ok(());
            }
            *moves -= 1;
            let (kind, script) = (*kind, *script);
            drop(guard);
            match left.take() {
                Some(id) => drop(engine.reconsider_block(id, &Unobserved).unwrap()),
                None => {
                    let height = Height(engine.tip().height.0 - u32::try_from(random.below(6)).unwrap());
                    let id = engine.header_info(&query.chain().hashes(height, 1).unwrap()[0]).unwrap().id;
                    let observer = StepwiseDisconnect::new(&mempool, &Unobserved);
                    engine.invalidate_block(id, &observer).unwrap();
                    left = Some(id);
                }
            }
            engine.finish_catch_up();
            mempool.settle();
            assert_eq!(reader.tip(), Some(engine.settled_tip()));
            while writer.step(0).unwrap() != Step::Idle {}
            weak.upgrade().unwrap().refresh().unwrap();
            let answer = answer(&query, kind, &script);
            lock(&state).3.push(answer);
            Ok(())
        });
        let (mut moved, mut differed) = (0, 0);
        // Those of the last blocks, which leave and come back, and some others.
        let last = node.by_block.iter().rev().take(7).flatten().take(100);
        let questions = last.chain(node.scripts.iter().step_by(node.scripts.len() / 100));
        for (kind, script) in questions.enumerate() {
            let first = answer(&own, kind, script);
            *lock(&asked) = (kind, *script, 3, vec![first]);
            let found = answer(&other, kind, script);
            let answers = lock(&asked).3.clone();
            assert!(answers.contains(&found), "{script:?}: {found} is none of {answers:?}");
            moved += usize::from(answers.len() > 1);
            differed += usize::from(answers.iter().any(|answer| *answer != answers[0]));
        }
        assert!(moved > 50 && differed > 20, "{moved} answers while the chain moved, {differed} that differ");
        store.set(|_| Ok(()));
        node.mempool.end();
    }
}
