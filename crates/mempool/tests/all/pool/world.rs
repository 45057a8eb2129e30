//! A chain of Core and an engine with a pool that follow each other. Core makes the blocks.

use lydian_consensus::{Chain, Params};
use lydian_disk::SimDisk;
use lydian_engine::{Engine, Follower, Layout, Settings as EngineSettings, Unobserved};
use lydian_mempool::policy::Settings;
use lydian_mempool::{Clock, Mempool, Secrets, StepwiseDisconnect};
use lydian_oracle::{Daemon, or_skip};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Block, Header, Height, OutPoint, RawBlock, Transaction, hex};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The time at which a world begins.
const START: i64 = 1_750_000_000;
/// Blocks at the start; those below the last hundred can be spent.
pub(crate) const BLOCKS: u64 = 160;

#[derive(Debug)]
pub(crate) struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn unix_seconds(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) struct World {
    pub core: Daemon,
    pub engine: Arc<Engine>,
    pub pool: Mempool,
    clock: Arc<TestClock>,
}

/// A pool without Core, on a chain of its own.
pub(crate) struct Alone {
    pub(crate) pool: Mempool,
    pub(crate) engine: Arc<Engine>,
    blocks: Vec<Block>,
}

impl Alone {
    pub(crate) fn new(settings: Settings) -> Alone {
        let clock = Arc::new(TestClock(AtomicI64::new(START)));
        let (engine, pool) = open(&clock, settings);
        let mut blocks = Vec::new();
        for _ in 0..BLOCKS {
            let block = next_block(&engine, Vec::new());
            engine.accept_block(block.clone(), START + 7200, &Unobserved).unwrap().unwrap();
            blocks.push(block);
        }
        Alone { pool, engine, blocks }
    }

    /// Gives the engine a block with these transactions, valid or not.
    pub(crate) fn connect(&self, txs: Vec<MutTx>) {
        let block = next_block(&self.engine, txs);
        let _ = self.engine.accept_block(block, START + 7200, &Unobserved).unwrap();
    }

    /// The outputs that can be spent but the first, with their values.
    pub(crate) fn coins(&self) -> Vec<(OutPoint, i64)> {
        let coin = |block: &Block| {
            let tx = block.tx(0);
            (OutPoint { txid: tx.txid(), vout: 0 }, tx.output(0).value.0)
        };
        self.blocks[1..self.blocks.len() - 100].iter().map(coin).collect()
    }

    /// A transaction that spends the first output.
    pub(crate) fn funding(&self) -> Arc<Transaction> {
        let tx = self.blocks[0].tx(0);
        let prevout = OutPoint { txid: tx.txid(), vout: 0 };
        let input = MutInput { prevout, script_sig: Vec::new(), sequence: u32::MAX, witness: witness() };
        let output = MutOutput { value: Amount(tx.output(0).value.0 - 10_000), script_pubkey: script() };
        let tx = MutTx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 };
        Arc::new(tx.to_transaction().unwrap())
    }
}

/// A chain that no block follows, on which any number of pools begin.
pub(crate) struct Fixed {
    engine: Arc<Engine>,
    clock: Arc<TestClock>,
    coins: Vec<(OutPoint, i64)>,
}

impl Fixed {
    pub(crate) fn new() -> Fixed {
        let clock = Arc::new(TestClock(AtomicI64::new(START)));
        let engine = open_engine(EngineSettings::new(1), Vec::new());
        let mut coins = Vec::new();
        for height in 1..=BLOCKS {
            let block = next_block(&engine, Vec::new());
            if height <= BLOCKS - 100 {
                let tx = block.tx(0);
                coins.push((OutPoint { txid: tx.txid(), vout: 0 }, tx.output(0).value.0));
            }
            engine.accept_block(block, START + 7200, &Unobserved).unwrap().unwrap();
        }
        Fixed { engine, clock, coins }
    }

    /// The outputs that can be spent, with their values.
    pub(crate) fn coins(&self) -> &[(OutPoint, i64)] {
        &self.coins
    }

    /// An empty pool.
    pub(crate) fn pool(&self, settings: Settings) -> Mempool {
        let pool = Mempool::new(settings, Arc::<TestClock>::clone(&self.clock), Secrets { salt: [1; 32], seed: 2 });
        pool.start(Arc::clone(&self.engine), 1).unwrap();
        pool.set_loaded();
        pool
    }
}

/// A block on the tip that pays to the script of every world.
fn next_block(engine: &Engine, txs: Vec<MutTx>) -> Block {
    let tip = engine.tip_info();
    let height = tip.node.height.0 + 1;
    let bytes = height.to_le_bytes();
    // BIP-0034, and the two bytes that a coinbase must have.
    let mut coinbase = match height {
        0..=16 => vec![0x50 + bytes[0]],
        17..=127 => vec![1, bytes[0]],
        _ => vec![2, bytes[0], bytes[1]],
    };
    coinbase.push(0);
    let input = MutInput { prevout: OutPoint::NULL, script_sig: coinbase, sequence: u32::MAX, witness: Vec::new() };
    let value = lydian_consensus::block_subsidy(Height(height), engine.params());
    let output = MutOutput { value, script_pubkey: script() };
    let tx = MutTx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 };
    let time = u32::try_from(START).unwrap() - u32::try_from(BLOCKS).unwrap() * 600 + height * 600;
    let header = Header {
        version: 0x2000_0000,
        prev_block: tip.node.hash,
        merkle_root: [0; 32],
        time,
        bits: tip.node.header.bits,
        nonce: 0,
    };
    let mut block = MutBlock { header, txs: [vec![tx], txs].concat() };
    if block.txs.len() > 1 {
        // BIP-0141: where the block's witnesses are committed to. Sealing fills it in.
        let script_pubkey = [&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed][..], &[0; 32]].concat();
        block.txs[0].outputs.push(MutOutput { value: Amount(0), script_pubkey });
        block.txs[0].inputs[0].witness = vec![vec![0; 32]];
    }
    block.seal_on_regtest();
    RawBlock::new(block.encode()).parse().unwrap()
}

fn open(clock: &Arc<TestClock>, settings: Settings) -> (Arc<Engine>, Mempool) {
    let secrets = Secrets { salt: [1; 32], seed: 2 };
    // A mistake ends the test's process.
    let settings = Settings { check_interval: 7, ..settings };
    let pool = Mempool::new(settings, Arc::<TestClock>::clone(clock), secrets);
    let engine_settings = EngineSettings { known_scripts: Some(pool.known_scripts()), ..EngineSettings::new(2) };
    let engine = open_engine(engine_settings, vec![pool.follower()]);
    pool.start(Arc::clone(&engine), 2).unwrap();
    pool.set_loaded();
    (engine, pool)
}

fn open_engine(settings: EngineSettings, followers: Vec<Box<dyn Follower>>) -> Arc<Engine> {
    let layout = Layout { blocks: "blocks".into(), index: "index".into(), coins: "coins".into() };
    let (disk, params) = (Arc::new(SimDisk::new(1)), Params::new(Chain::Regtest));
    Arc::new(Engine::open(disk, &layout, params, settings, followers).unwrap().engine)
}

/// P2WSH of OP_TRUE, which every world pays to.
pub(crate) fn script() -> Vec<u8> {
    [&[0x00, 0x20][..], &lydian_hash::sha256(&[0x51])].concat()
}

/// What spends it.
pub(crate) fn witness() -> Vec<Vec<u8>> {
    vec![vec![0x51]]
}

impl World {
    /// `None` if there is no Core. The options of Core must mean `settings`.
    pub(crate) fn new(test: &str, options: &[&str], settings: Settings) -> Option<World> {
        let core = or_skip(test, Daemon::start(&[options, &["-acceptnonstdtxn=0", "-checkmempool=0"]].concat()))?;
        let clock = Arc::new(TestClock(AtomicI64::new(START)));
        let (engine, pool) = open(&clock, settings);
        let mut world = World { core, engine, pool, clock };
        world.pass(0);
        world.generate(BLOCKS);
        Some(world)
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.unix_seconds()
    }

    /// Lets time pass for both.
    pub(crate) fn pass(&mut self, seconds: i64) {
        let now = self.now() + seconds;
        self.clock.0.store(now, Ordering::Relaxed);
        self.core.set_mock_time(u64::try_from(now).unwrap()).unwrap();
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.core.call(method, &params).unwrap_or_else(|error| panic!("{method} {params}: {error}"))
    }

    /// Core mines blocks with the best of its pool, and the engine gets them.
    pub(crate) fn generate(&mut self, count: u64) {
        let descriptor = format!("raw({})", to_hex(&script()));
        let hashes = self.ask("generatetodescriptor", json!([count, descriptor]));
        for hash in hashes.as_array().unwrap() {
            self.bring(hash.as_str().unwrap());
        }
    }

    /// Core mines a block with these transactions, if they make one, and the engine gets it.
    pub(crate) fn generate_with(&mut self, txs: &[String]) -> bool {
        let descriptor = format!("raw({})", to_hex(&script()));
        match self.core.call("generateblock", &json!([descriptor, txs])) {
            Ok(made) => {
                self.bring(made["hash"].as_str().unwrap());
                true
            }
            Err(_) => false,
        }
    }

    fn bring(&mut self, hash: &str) {
        let bytes = self.ask("getblock", json!([hash, 0]));
        let block: Block = RawBlock::new(hex(bytes.as_str().unwrap()).unwrap()).parse().unwrap();
        let _ = self.engine.accept_block(block, self.now() + 7200, &Unobserved).unwrap().unwrap();
    }

    /// Both leave the last blocks.
    pub(crate) fn leave(&mut self, depth: u64) {
        let height = self.engine.tip().height.0 - u32::try_from(depth).unwrap() + 1;
        let info = self.engine.header_info_at(Height(height)).unwrap();
        self.ask("invalidateblock", json!([info.node.hash.to_string()]));
        let observer = StepwiseDisconnect::new(&self.pool, &Unobserved);
        self.engine.invalidate_block(info.id, &observer).unwrap();
        self.pool.settle();
    }

    /// The coinbase output of a block.
    pub(crate) fn coinbase(&mut self, height: u64) -> (OutPoint, i64) {
        let info = self.engine.header_info_at(Height(u32::try_from(height).unwrap())).unwrap();
        let block = self.engine.block(&info).unwrap().unwrap();
        let tx = block.tx(0);
        (OutPoint { txid: tx.txid(), vout: 0 }, tx.output(0).value.0)
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    lydian_primitives::to_hex(bytes)
}
