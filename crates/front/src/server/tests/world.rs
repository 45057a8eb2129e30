//! A node without sockets: engine, mempool, chain and pool on a simulated disk, and a wallet that can always spend.

use crate::server::FeedSource;
use lydian_consensus::{Chain as Network, Params, block_subsidy};
use lydian_disk::SimDisk;
use lydian_engine::{Engine, Layout, Settings as EngineSettings, Unobserved};
use lydian_mempool::policy::Settings as Policy;
use lydian_mempool::{Clock, Mempool, Secrets};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Block, BlockHash, Header, Height, OutPoint, RawBlock, Transaction, Txid};
use lydian_query::{CallError, Calls, Chain, NodeChain, NodePool, Pool};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

const START: u32 = 1_600_000_000;

/// Later than every block.
const NOW: i64 = 4_000_000_000;

#[derive(Debug)]
struct TestClock;

impl Clock for TestClock {
    fn unix_seconds(&self) -> i64 {
        i64::from(START)
    }
}

/// Answers with what is called, or refuses `testmempoolaccept`.
#[derive(Debug, Default)]
pub(super) struct Called(pub(super) Mutex<Vec<String>>);

impl Calls for Called {
    fn call(&self, method: &str, params: &str) -> Result<String, CallError> {
        self.0.lock().unwrap().push(method.to_owned());
        match method {
            "testmempoolaccept" => Err(CallError { code: -22, message: "a \"reason\"".to_owned() }),
            _ => Ok(params.to_owned()),
        }
    }
}

pub(super) struct World {
    params: Params,
    pub(super) engine: Arc<Engine>,
    pub(super) mempool: Arc<Mempool>,
    pub(super) chain: Arc<dyn Chain>,
    pub(super) pool: Arc<dyn Pool>,
    pub(super) calls: Arc<Called>,
    /// The active chain, from the genesis block on.
    pub(super) blocks: Vec<Block>,
    /// Value and script of every output that there ever was.
    pub(super) outputs: HashMap<OutPoint, (i64, Vec<u8>)>,
    nonce: u32,
}

fn numbered(number: u32) -> Vec<u8> {
    let mut script = vec![4];
    script.extend_from_slice(&(number | 1 << 30).to_be_bytes());
    script.extend_from_slice(&[0x75, 0x51]);
    script
}

impl World {
    /// With coins to spend.
    pub(super) fn new() -> World {
        let params = Params::new(Network::Regtest).with_activation_height("bip34@100000").unwrap();
        let disk = Arc::new(SimDisk::new(1));
        // Nothing but consensus and the limits of clusters.
        let policy = Policy { require_standard: false, check_interval: 0, ..Policy::default() };
        let mempool = Arc::new(Mempool::new(policy, Arc::new(TestClock), Secrets { salt: [1; 32], seed: 2 }));
        let layout = Layout { blocks: "blocks".into(), index: "index".into(), coins: "coins".into() };
        let settings = EngineSettings { known_scripts: Some(mempool.known_scripts()), ..EngineSettings::new(2) };
        let engine = Engine::open(disk, &layout, params.clone(), settings, vec![mempool.follower()]).unwrap().engine;
        let engine = Arc::new(engine);
        mempool.start(Arc::clone(&engine), 1).unwrap();
        mempool.set_loaded();
        let genesis: Block = params.genesis_block().parse().unwrap();
        let mut world = World {
            chain: Arc::new(NodeChain::new(&engine)),
            pool: Arc::new(NodePool::new(&mempool, &engine)),
            params,
            engine,
            mempool,
            calls: Arc::default(),
            blocks: vec![genesis],
            outputs: HashMap::new(),
            nonce: 0,
        };
        for _ in 0..110 {
            world.mine(&[]);
        }
        world
    }

    pub(super) fn source(&self) -> FeedSource {
        FeedSource {
            engine: Arc::clone(&self.engine),
            mempool: Arc::clone(&self.mempool),
            chain: Arc::clone(&self.chain),
            pool: Arc::clone(&self.pool),
            calls: Arc::clone(&self.calls) as Arc<dyn Calls>,
            genesis: self.params.genesis_hash,
        }
    }

    fn note(&mut self, block: &Block) {
        for tx in block.txs() {
            self.note_tx(&MutTx::from(tx));
        }
    }

    fn note_tx(&mut self, tx: &MutTx) {
        let txid = tx.txid();
        for (vout, output) in (0..).zip(&tx.outputs) {
            self.outputs.insert(OutPoint { txid, vout }, (output.value.0, output.script_pubkey.clone()));
        }
    }

    /// A block on another one, which is at this height, with these transactions.
    pub(super) fn block_on(&mut self, parent: &BlockHash, height: u32, txs: &[Arc<Transaction>]) -> Block {
        self.nonce += 1;
        let script_sig = [&[4][..], &self.nonce.to_be_bytes()].concat();
        let coinbase = MutInput { prevout: OutPoint::NULL, script_sig, sequence: u32::MAX, witness: Vec::new() };
        let value = block_subsidy(Height(height), &self.params).0 / 4;
        let output = |number| MutOutput { value: Amount(value), script_pubkey: numbered(number) };
        let outputs = (0..4).map(output).collect();
        let coinbase = MutTx { version: 2, inputs: vec![coinbase], outputs, lock_time: 0 };
        let txs = txs.iter().map(|tx| MutTx::from(tx.view()));
        let header = Header {
            version: 0x2000_0000,
            prev_block: *parent,
            merkle_root: [0; 32],
            time: START + height,
            bits: 0x207f_ffff,
            nonce: 0,
        };
        let mut block = MutBlock { header, txs: std::iter::once(coinbase).chain(txs).collect() };
        block.seal_on_regtest();
        RawBlock::new(block.encode()).parse().unwrap()
    }

    fn accept(&mut self, block: &Block) {
        self.note(block);
        let answer = self.engine.accept_block(block.clone(), NOW, &Unobserved).unwrap();
        assert!(answer.is_ok(), "a valid block: {answer:?}");
    }

    /// Adds a block with these transactions to the tip.
    pub(super) fn mine(&mut self, txs: &[Arc<Transaction>]) {
        let (parent, height) = (self.blocks.last().unwrap().hash(), u32::try_from(self.blocks.len()).unwrap());
        let block = self.block_on(&parent, height, txs);
        self.accept(&block);
        self.blocks.push(block);
        self.settle();
    }

    /// Replaces the last blocks by a branch of one more block, without transactions.
    pub(super) fn reorganise(&mut self, depth: usize) {
        self.blocks.truncate(self.blocks.len() - depth);
        for _ in 0..=depth {
            let (parent, height) = (self.blocks.last().unwrap().hash(), u32::try_from(self.blocks.len()).unwrap());
            let block = self.block_on(&parent, height, &[]);
            self.accept(&block);
            self.blocks.push(block);
        }
        self.settle();
    }

    /// Adds a block of another world, which has the same tip.
    pub(super) fn take(&mut self, block: &Block) {
        self.accept(block);
        self.blocks.push(block.clone());
        self.settle();
    }

    fn settle(&self) {
        self.engine.finish_catch_up();
        self.mempool.settle();
        assert_eq!(self.engine.settled_tip().hash, self.tip(), "the chain with the most work");
    }

    pub(super) fn tip(&self) -> BlockHash {
        self.blocks.last().unwrap().hash()
    }

    /// An output of the coinbase at a height.
    pub(super) fn coin(&self, height: usize, vout: u32) -> OutPoint {
        OutPoint { txid: self.blocks[height].tx(0).txid(), vout }
    }

    /// A transaction that spends these outputs, with so many bytes of an output that cannot be spent.
    pub(super) fn pay(&mut self, coins: &[OutPoint], fee: i64, bytes: usize) -> Arc<Transaction> {
        let inputs = coins.iter().map(|prevout| MutInput {
            prevout: *prevout,
            script_sig: Vec::new(),
            sequence: 0xffff_fffd,
            witness: Vec::new(),
        });
        let total: i64 = coins.iter().map(|coin| self.outputs[coin].0).sum();
        self.nonce += 1;
        let half = (total - fee) / 2;
        let output = |value, script_pubkey| MutOutput { value: Amount(value), script_pubkey };
        let mut outputs =
            vec![output(half, numbered(self.nonce)), output(total - fee - half, numbered(self.nonce % 3))];
        if bytes > 0 {
            outputs.push(output(0, vec![0x6a; bytes]));
        }
        let tx = MutTx { version: 2, inputs: inputs.collect(), outputs, lock_time: 0 };
        self.note_tx(&tx);
        Arc::new(tx.to_transaction().unwrap())
    }

    /// Offers a transaction to the mempool.
    pub(super) fn submit(&self, tx: &Arc<Transaction>) {
        self.mempool.submit(Arc::clone(tx), false).unwrap();
    }

    pub(super) fn members(&self) -> BTreeSet<Txid> {
        self.mempool.snapshot().members().map(|member| member.entry().txid()).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.mempool.end();
    }
}
