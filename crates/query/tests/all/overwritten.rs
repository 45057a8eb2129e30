//! The two coinbases of 2010 that were repeated while their coins were unspent (BIP-0030). Only the four blocks of
//! mainnet are excepted from the rule, so the chain has their headers, and the index gets its blocks without an engine.

use crate::compare::compare_script;
use crate::details::{compare_pages, compare_transaction};
use crate::model::Model;
use crate::world::{COMPACT, FULL, params};
use lydian_chain::ChainTotals;
use lydian_consensus::Coin;
use lydian_disk::SimDisk;
use lydian_engine::{ConnectedBlock, Engine, Follower, Layout, Settings as EngineSettings, Tip};
use lydian_index::{Place, Profile, ScriptHash, TxIndex};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Block, BlockHash, Header, Height, OutPoint, RawBlock, Transaction, Txid, hex};
use lydian_query::{
    BlockInfo, Chain, FeeRow, NodeIndex, Pool, PoolFees, PoolScript, PoolTotals, PoolTouched, Query, QueryError,
    ScriptIndex, Settings, SpentOutput,
};
use lydian_stdx::{SplitMix64, lock};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The blocks with the coinbases that are repeated, then those that repeat them, with their headers.
const BLOCKS: [(u32, u8, &str); 4] = [
    (
        91_722,
        1,
        "0100000042ba7629c32525ff7c74ca323fdc4c6d5b5c4410901aeb4f04300a000000000068b45f58b674e94eb881cd67b04c2cba\
         07fe5552dbf1d5385637b0d4073dbfe3c89fdf4c56720e1ba67373ee",
    ),
    (
        91_812,
        2,
        "010000000f362bdc16f2f880097c71fd3296c01b835c8b034e4d2939e8af02000000000065a62f2f6b9102d6eb5eee95be5ec3fc\
         dfa27cf2117deeebefc6be53761d99499423e04c56720e1bb4518a45",
    ),
    (
        91_842,
        2,
        "0100000020114beba985ecbf1351bf5f4d5495105dc2ca94f5bdbcac921e0a00000000009985d82954e10f2233a08905dc7b490e\
         b444660c8759e324c7dfa3d28779d2d5f34ee04c56720e1b021838e1",
    ),
    (
        91_880,
        1,
        "01000000f3f32d77f94d5e971e202afa4a633056b2b14dda3f4abf569609040000000000e90f74856c0ed42ab7eea359487079e3\
         f76e4076f91250fab8431f6241f56b2f8380e04c56720e1b1c467e89",
    ),
];

/// The block that spends an output of each of the two.
const SPENDING: u32 = 91_990;

fn coinbase(script_sig: Vec<u8>, scripts: &[Vec<u8>]) -> MutTx {
    let input = MutInput { prevout: OutPoint::NULL, script_sig, sequence: u32::MAX, witness: Vec::new() };
    let output = |script: &Vec<u8>| MutOutput { value: Amount(50), script_pubkey: script.clone() };
    MutTx { version: 1, inputs: vec![input], outputs: scripts.iter().map(output).collect(), lock_time: 0 }
}

/// A repeated coinbase: two outputs to one script, and one to a script that others pay, too.
fn repeated(number: u8) -> MutTx {
    coinbase(vec![0, number], &[vec![0x51, number], vec![0x51, number], b"busy".to_vec()])
}

/// A block, with the coins that it spends.
fn block(height: u32) -> (Block, Vec<Coin>) {
    let time = 1_230_000_000 + height * 600;
    let mut header =
        Header { version: 1, prev_block: BlockHash::ZERO, merkle_root: [0; 32], time, bits: 0, nonce: height };
    let script = if height % 4_000 == 3 { b"busy".to_vec() } else { height.to_le_bytes().to_vec() };
    let (mut txs, mut spent) = (vec![coinbase(height.to_le_bytes().to_vec(), &[script])], Vec::new());
    if let Some((_, number, bytes)) = BLOCKS.iter().find(|(at, ..)| *at == height) {
        header = Header::parse(hex(bytes).unwrap().as_slice().try_into().unwrap());
        txs = vec![repeated(*number)];
    }
    if height == SPENDING {
        for (height, number, _) in &BLOCKS[2..] {
            let coinbase = repeated(*number);
            let prevout = OutPoint { txid: coinbase.txid(), vout: 1 };
            let input = MutInput { prevout, script_sig: Vec::new(), sequence: 0, witness: Vec::new() };
            let output = MutOutput { value: Amount(49), script_pubkey: b"after".to_vec() };
            txs.push(MutTx { version: 1, inputs: vec![input], outputs: vec![output], lock_time: 0 });
            let script_pubkey = coinbase.outputs[1].script_pubkey.as_slice().into();
            spent.push(Coin { value: Amount(50), script_pubkey, height: Height(*height), is_coinbase: true });
        }
    }
    (RawBlock::new(MutBlock { header, txs }.encode()).parse().unwrap(), spent)
}

/// A list of blocks as the chain.
#[derive(Debug, Default)]
struct Blocks(Mutex<Vec<Block>>);

impl Blocks {
    fn tip(&self) -> Tip {
        let blocks = lock(&self.0);
        let hash = blocks.last().unwrap().hash();
        Tip { height: Height(u32::try_from(blocks.len() - 1).unwrap()), hash }
    }

    fn map<T>(&self, from: Height, count: usize, look: impl Fn(&Block) -> T) -> Vec<T> {
        lock(&self.0).iter().skip(from.0 as usize).take(count).map(look).collect()
    }
}

impl Chain for Blocks {
    fn tip(&self) -> Result<Tip, QueryError> {
        Ok(Blocks::tip(self))
    }

    fn headers(&self, from: Height, count: usize) -> Result<Vec<Header>, QueryError> {
        Ok(self.map(from, count, |block| *block.header()))
    }

    fn hashes(&self, from: Height, count: usize) -> Result<Vec<BlockHash>, QueryError> {
        Ok(self.map(from, count, Block::hash))
    }

    fn txids(&self, height: Height) -> Result<Option<(BlockHash, Vec<Txid>)>, QueryError> {
        Ok(self.map(height, 1, |block| (block.hash(), block.txs().map(|tx| tx.txid()).collect())).pop())
    }

    fn block_info(&self, _: &BlockHash) -> Result<Option<BlockInfo>, QueryError> {
        Ok(None)
    }

    fn block(&self, _: &BlockHash) -> Result<Option<Block>, QueryError> {
        Ok(None)
    }

    fn spent(&self, _: &BlockHash, _: &Block) -> Result<Option<Vec<SpentOutput>>, QueryError> {
        Ok(None)
    }

    fn transaction(&self, place: Place) -> Result<Option<Transaction>, QueryError> {
        let block = self.map(place.height, 1, Block::clone).pop();
        let (from, to) = (place.offset as usize, (place.offset + place.size) as usize);
        Ok(block.map(|block| Transaction::parse(&block.as_bytes()[from..to]).unwrap()))
    }
}

/// An empty mempool on the tip of the list.
#[derive(Debug)]
struct Empty(Arc<Blocks>);

impl Pool for Empty {
    fn of_script(&self, _: &ScriptHash) -> Result<PoolScript, QueryError> {
        Ok(PoolScript { tip: Some(self.0.tip()), transactions: Vec::new() })
    }

    fn spenders(&self, outpoints: &[OutPoint]) -> Vec<Option<(Txid, bool)>> {
        vec![None; outpoints.len()]
    }

    fn transaction(&self, _: &Txid) -> Option<(Arc<Transaction>, bool)> {
        None
    }

    fn fees(&self) -> PoolFees {
        PoolFees { min: 0, relay: 0, incremental: 0 }
    }

    fn estimate(&self, _: u32, _: bool) -> Option<i64> {
        None
    }

    fn totals(&self) -> PoolTotals {
        PoolTotals::default()
    }

    fn txids(&self) -> Vec<Txid> {
        Vec::new()
    }

    fn chunks(&self) -> Vec<(i64, i64)> {
        Vec::new()
    }

    fn recent(&self, _: usize) -> Vec<FeeRow> {
        Vec::new()
    }

    fn take_touched(&self) -> Result<PoolTouched, QueryError> {
        Ok(PoolTouched::All)
    }

    fn wait(&self, _: Duration) {}

    fn wait_for(&self, _: &BlockHash) {}
}

fn compare(query: &Query, blocks: &[Block]) {
    let model = Model::new(blocks, &[]);
    let mut random = SplitMix64::new(1);
    let scripts = [vec![0x51, 1], vec![0x51, 2], b"busy".to_vec(), b"after".to_vec()];
    for script in &scripts {
        assert!(blocks.len() <= SPENDING as usize || model.stats(script).0.funded_count > 1);
        compare_script(query, &model, script, &mut random);
        compare_pages(query, &model, script, &mut random);
    }
    for (height, number, _) in BLOCKS {
        let txid = repeated(number).txid();
        compare_transaction(query, &model, &txid);
        // The block of the first one has it, too.
        assert_eq!(query.merkle(&txid, height).unwrap(), model.merkle(height, 0));
    }
    for tx in model.rows.iter().rev().take(5) {
        compare_transaction(query, &model, &tx.txid);
    }
}

#[test]
fn overwritten_coins_are_those_of_the_repeats() {
    [COMPACT, FULL].into_iter().for_each(overwrite);
}

fn overwrite(profile: Profile) {
    let disk = SimDisk::new(1);
    let shared: Arc<dyn lydian_disk::Disk> = Arc::new(disk);
    let genesis = params().genesis_hash;
    let (mut index, reader) =
        TxIndex::open(Arc::clone(&shared), Path::new("tables"), genesis, profile, || [5, 6]).unwrap();
    let layout = Layout { blocks: "blocks".into(), index: "index".into(), coins: "coins".into() };
    let engine = Engine::open(shared, &layout, params(), EngineSettings::new(1), Vec::new()).unwrap().engine;
    let engine = Arc::new(engine);
    let chain = Arc::new(Blocks::default());
    let reader = NodeIndex::new(reader, Arc::clone(&chain) as Arc<dyn Chain>, &engine);
    let settings = Settings {
        chain: Arc::clone(&chain) as Arc<dyn Chain>,
        index: Ok(Arc::new(reader) as Arc<dyn ScriptIndex>),
        pool: Arc::new(Empty(Arc::clone(&chain))),
    };
    let query = Query::new(settings);
    // At first nothing of it is sealed, then all blocks but the one that spends, then that one.
    for end in [91_883, 92_000, 93_000, 93_400] {
        let from = u32::try_from(lock(&chain.0).len()).unwrap();
        for height in from..end {
            let (block, spent) = block(height);
            let (height, below) = (Height(height), ChainTotals::default());
            index.connect(&ConnectedBlock { height, block: &block, spent: &spent, below }, None).unwrap();
            lock(&chain.0).push(block);
        }
        index.wait_until_idle();
        let blocks = lock(&chain.0).clone();
        compare(&query, &blocks);
    }
}
