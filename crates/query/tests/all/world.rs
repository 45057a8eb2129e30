//! A node without sockets: engine, mempool, index and query on a simulated disk, with a record of what was done. Input:
//! blocks and transactions. Output: the state as lists, and the queries that answer about it.

use crate::model::Model;
use lydian_consensus::{Chain as Network, Params};
use lydian_disk::SimDisk;
use lydian_engine::{Cancel, Engine, Layout, Settings as EngineSettings, Unobserved};
use lydian_index::{Profile, TxIndex, TxIndexReader};
use lydian_mempool::policy::Settings as Policy;
use lydian_mempool::pool::{ChangeKind, RemovalReason};
use lydian_mempool::{Clock, Mempool, Secrets, StepwiseDisconnect, SubmitError};
use lydian_primitives::{Block, BlockHash, Transaction, Txid};
use lydian_query::{Chain, NodeChain, NodeIndex, NodePool, Query, ScriptIndex, Settings};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

/// The time of the mempool's clock, and of the first block.
pub const START: u32 = 1_600_000_000;

/// What `-addressindex=compact` has, and `-addressindex=full`.
pub const COMPACT: Profile = Profile { has_scripts: true, has_txids: false };
pub const FULL: Profile = Profile { has_scripts: true, has_txids: true };

/// Later than every block.
const NOW: i64 = 4_000_000_000;

#[derive(Debug)]
struct TestClock;

impl Clock for TestClock {
    fn unix_seconds(&self) -> i64 {
        i64::from(START)
    }
}

/// What runs; all of it is gone when a node stops.
#[derive(Debug)]
struct Running {
    engine: Arc<Engine>,
    mempool: Arc<Mempool>,
    reader: TxIndexReader,
    query: Query,
    /// The number of the mempool's next change.
    next_change: u64,
}

#[derive(Debug)]
pub struct World {
    disk: SimDisk,
    pub params: Params,
    profile: Profile,
    running: Option<Running>,
    /// The active chain, from the genesis block on.
    pub chain: Vec<Block>,
    /// All blocks that there ever were.
    known: HashMap<BlockHash, Block>,
    /// The mempool, in the order in which its transactions came.
    pub pool: Vec<Arc<Transaction>>,
    /// How often things happened.
    pub counts: BTreeMap<String, u64>,
}

/// Regtest without BIP-0034, so that coinbases may be repeated.
pub fn params() -> Params {
    Params::new(Network::Regtest).with_activation_height("bip34@100000").unwrap()
}

impl World {
    pub fn new(seed: u64, profile: Profile) -> World {
        let params = params();
        let genesis: Block = params.genesis_block().parse().unwrap();
        let mut world = World {
            disk: SimDisk::new(seed),
            params,
            profile,
            running: None,
            known: HashMap::from([(genesis.hash(), genesis.clone())]),
            chain: vec![genesis],
            pool: Vec::new(),
            counts: BTreeMap::new(),
        };
        world.start();
        world
    }

    fn start(&mut self) {
        let disk = Arc::new(self.disk.clone());
        // Nothing but consensus and the limits of clusters; mistakes of the pool end the test.
        let policy = Policy { require_standard: false, check_interval: 1, ..Policy::default() };
        let mempool = Arc::new(Mempool::new(policy, Arc::new(TestClock), Secrets { salt: [1; 32], seed: 2 }));
        let genesis = self.params.genesis_hash;
        let (index, reader) =
            TxIndex::open(disk.clone(), Path::new("tables"), genesis, self.profile, || [5, 6]).unwrap();
        let layout = Layout { blocks: "blocks".into(), index: "index".into(), coins: "coins".into() };
        let settings = EngineSettings { known_scripts: Some(mempool.known_scripts()), ..EngineSettings::new(2) };
        let followers = vec![Box::new(index) as Box<_>, mempool.follower()];
        let engine = Engine::open(disk, &layout, self.params.clone(), settings, followers).unwrap().engine;
        let engine = Arc::new(engine);
        mempool.start(Arc::clone(&engine), 1).unwrap();
        mempool.set_loaded();
        let chain: Arc<dyn Chain> = Arc::new(NodeChain::new(&engine));
        let index = Arc::new(NodeIndex::new(reader.clone(), Arc::clone(&chain), &engine)) as Arc<dyn ScriptIndex>;
        let pool = Arc::new(NodePool::new(&mempool, &engine));
        let query = Query::new(Settings { chain, index: Ok(index), pool });
        let next_change = mempool.feed().next();
        self.running = Some(Running { engine, mempool, reader, query, next_change });
    }

    fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    pub fn engine(&self) -> &Engine {
        &self.running().engine
    }

    pub fn query(&self) -> &Query {
        &self.running().query
    }

    /// What a server is made from.
    #[allow(dead_code, reason = "the tests of front ends use it")]
    pub fn parts(&self) -> (Arc<Engine>, Arc<Mempool>, TxIndexReader) {
        let Running { engine, mempool, reader, .. } = self.running();
        (Arc::clone(engine), Arc::clone(mempool), reader.clone())
    }

    pub fn files(&self) -> BTreeSet<String> {
        self.disk.files().keys().map(|path| path.display().to_string()).collect()
    }

    /// A query whose rows of the mempool are made anew.
    pub fn fresh_query(&self) -> Query {
        let Running { engine, mempool, reader, .. } = self.running();
        let chain: Arc<dyn Chain> = Arc::new(NodeChain::new(engine));
        let index = Arc::new(NodeIndex::new(reader.clone(), Arc::clone(&chain), engine)) as Arc<dyn ScriptIndex>;
        let pool = Arc::new(NodePool::new(mempool, engine));
        Query::new(Settings { chain, index: Ok(index), pool })
    }

    /// The number of a transaction of the mempool in the order in which they came; 0 if it returned from a block.
    pub fn sequence(&self, txid: &Txid) -> u64 {
        self.running().mempool.snapshot().get(txid).unwrap().entry().sequence()
    }

    pub fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    /// Stops the node and starts it again: after a kill without a last checkpoint, if `is_kill`. The mempool is empty.
    pub fn restart(&mut self, is_kill: bool) {
        if !is_kill {
            self.engine().checkpoint(&Unobserved).unwrap();
        }
        let Running { engine, mempool, reader, query, .. } = self.running.take().unwrap();
        let after = self.disk.kill();
        mempool.end();
        drop((query, reader, mempool));
        assert_eq!(Arc::strong_count(&engine), 1, "nothing but the node has the engine");
        drop(engine);
        if is_kill {
            self.disk = after;
        }
        self.pool.clear();
        self.start();
        self.engine().advance(&Cancel::new(), &Unobserved).unwrap();
        // What was not durable comes again.
        let blocks = self.chain.clone();
        let is_active = |block: &Block| self.engine().header_info(&block.hash()).is_some_and(|info| info.is_active);
        let lost = blocks.iter().skip_while(|block| is_active(block)).count();
        let is_stored = |world: &World, hash: &BlockHash| {
            world.engine().header_info(hash).is_some_and(|info| info.node.block.is_some())
        };
        for block in &blocks[blocks.len() - lost..] {
            let hash = block.hash();
            if !is_stored(self, &hash) {
                self.accept(block);
            }
        }
        if lost > 0 {
            self.count("blocks lost");
        }
        // Of two branches of the same length, another one may be the chain now; and blocks that were left by hand may
        // be found in the files again.
        self.take_chain();
        assert!(self.chain.len() >= blocks.len());
        self.settle();
        self.count(if is_kill { "killed" } else { "restarted" });
    }

    fn accept(&mut self, block: &Block) {
        self.known.insert(block.hash(), block.clone());
        let answer = self.engine().accept_block(block.clone(), NOW, &Unobserved).unwrap();
        assert!(answer.is_ok(), "a valid block: {answer:?}");
    }

    /// Takes over the engine's choice among the branches, after blocks were left or restored by hand.
    fn take_chain(&mut self) {
        let mut hash = self.engine().tip().hash;
        let mut chain = Vec::new();
        while let Some(block) = self.known.get(&hash) {
            hash = block.header().prev_block;
            chain.push(block.clone());
        }
        chain.reverse();
        assert_eq!(chain[0].hash(), self.params.genesis_hash);
        self.chain = chain;
    }

    /// Waits until every part has what happened.
    fn settle(&mut self) {
        self.engine().finish_catch_up();
        self.running().mempool.settle();
        assert_eq!(self.engine().tip().hash, self.chain.last().unwrap().hash(), "the chain with the most work");
        assert_eq!(self.engine().settled_tip(), self.engine().tip());
        self.follow_pool();
    }

    /// Brings the list of the mempool to what its feed says.
    fn follow_pool(&mut self) {
        let Running { mempool, next_change, .. } = self.running.as_mut().unwrap();
        let changes = mempool.feed().read(*next_change, usize::MAX).unwrap();
        let mempool = Arc::clone(mempool);
        *next_change += changes.len() as u64;
        for change in changes {
            let txid = change.entry.txid();
            match change.kind {
                ChangeKind::Added { .. } => self.pool.push(Arc::clone(change.entry.tx())),
                ChangeKind::Removed { reason } => {
                    let at = self.pool.iter().position(|tx| tx.view().txid() == txid).unwrap();
                    self.pool.remove(at);
                    self.count(match reason {
                        RemovalReason::Block => "mined from the mempool",
                        RemovalReason::Conflict => "left for a conflict",
                        RemovalReason::Replaced => "replaced",
                        _ => "left otherwise",
                    });
                }
            }
        }
        let snapshot = mempool.snapshot();
        let members: BTreeSet<Txid> = snapshot.members().map(|member| member.entry().txid()).collect();
        let listed: BTreeSet<Txid> = self.pool.iter().map(|tx| tx.view().txid()).collect();
        assert_eq!(members, listed, "the feed has every change");
    }

    /// Adds a block to the tip.
    pub fn connect(&mut self, block: Block) {
        self.accept(&block);
        self.chain.push(block);
        self.settle();
    }

    /// Adds many blocks at once.
    pub fn connect_all(&mut self, fork: usize, blocks: Vec<Block>) {
        for block in &blocks {
            self.known.insert(block.hash(), block.clone());
            self.engine().store_block(block.clone(), NOW).unwrap().unwrap();
        }
        let before = self.chain.len() - 1 - fork;
        self.engine().advance(&Cancel::new(), &Unobserved).unwrap();
        self.chain.truncate(fork + 1);
        self.chain.extend(blocks);
        self.settle();
        self.left(before);
    }

    /// Adds a branch, block by block, which begins above the height `fork`; it becomes the chain if it is longer.
    pub fn branch(&mut self, fork: usize, blocks: Vec<Block>) {
        let is_longer = fork + 1 + blocks.len() > self.chain.len();
        for block in &blocks {
            self.accept(block);
        }
        if is_longer {
            let before = self.chain.len() - 1 - fork;
            let pool = self.pool.len();
            self.chain.truncate(fork + 1);
            self.chain.extend(blocks);
            self.settle();
            self.left(before);
            if self.pool.len() > pool {
                self.count("returned to the mempool");
            }
        } else {
            self.settle();
            self.count("branches beside");
        }
    }

    fn left(&mut self, depth: usize) {
        if depth > 0 {
            self.count("reorganised");
        }
    }

    /// Leaves all blocks from a height on, by hand. Returns them.
    pub fn invalidate(&mut self, height: usize) -> Vec<Block> {
        let info = self.engine().header_info(&self.chain[height].hash()).unwrap();
        let mempool = Arc::clone(&self.running().mempool);
        let observer = StepwiseDisconnect::new(&mempool, &Unobserved);
        self.engine().invalidate_block(info.id, &observer).unwrap();
        drop(observer);
        drop(mempool);
        let left = self.chain.split_off(height);
        self.take_chain();
        assert!(self.chain.len() >= height && !self.chain.iter().any(|block| block.hash() == left[0].hash()));
        self.settle();
        self.count("invalidated");
        left
    }

    /// Comes back to blocks that were left by hand.
    pub fn reconsider(&mut self, blocks: Vec<Block>) {
        let info = self.engine().header_info(&blocks[0].hash()).unwrap();
        self.engine().reconsider_block(info.id, &Unobserved).unwrap();
        self.take_chain();
        // What was left above them may be back, too.
        assert!(self.chain.iter().any(|block| block.hash() == blocks[0].hash()));
        self.settle();
        self.count("back again");
    }

    /// Offers a transaction to the mempool. Returns whether it was accepted.
    pub fn submit(&mut self, tx: Transaction) -> bool {
        let accepted = self.running().mempool.submit(Arc::new(tx), false);
        self.follow_pool();
        let what = match &accepted {
            Ok(_) => "accepted".to_owned(),
            Err(SubmitError::Rejected(rejection)) => format!("refused: {}", rejection.reject_reason()),
            Err(error) => panic!("{error}"),
        };
        self.count(&what);
        accepted.is_ok()
    }

    pub fn model(&self) -> Model {
        Model::new(&self.chain, &self.pool)
    }

    pub fn tip_hash(&self) -> BlockHash {
        self.chain.last().unwrap().hash()
    }
}
