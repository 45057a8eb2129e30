//! Blocks for the embedded index, and what it must answer about them, found by going through them in order.

use lydian_chain::ChainTotals;
use lydian_consensus::Coin;
use lydian_disk::SimDisk;
use lydian_engine::{ConnectedBlock, Follower, Left};
use lydian_index::{Export, Identity, OutputFate, Profile, ScriptHash, ScriptOutput, TxIndex, TxIndexReader};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Block, BlockHash, Header, Height, OutPoint, RawBlock, Txid};
use lydian_stdx::SplitMix64;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, LazyLock};

pub(super) const GENESIS: BlockHash = BlockHash([1; 32]);

#[derive(Clone, Debug)]
struct Step {
    block: Block,
    height: u32,
    spent: Vec<Coin>,
}

/// A chain of blocks of which only the transactions matter.
#[derive(Debug)]
struct Chain {
    random: SplitMix64,
    active: Vec<Step>,
    all: HashMap<BlockHash, Step>,
    /// Outputs that can be spent, in the order of the chain.
    coins: Vec<(OutPoint, Coin)>,
}

fn input(number: u64, prevout: OutPoint) -> MutInput {
    MutInput { prevout, script_sig: number.to_le_bytes().to_vec(), sequence: 0, witness: Vec::new() }
}

impl Chain {
    fn new(seed: u64) -> Chain {
        Chain { random: SplitMix64::new(seed), active: Vec::new(), all: HashMap::new(), coins: Vec::new() }
    }

    fn script(&mut self) -> Vec<u8> {
        match self.random.below(8) {
            0 | 1 => vec![0x51],
            2 => vec![0x52, u8::try_from(self.random.below(9)).unwrap()],
            _ => [&[0x53][..], &self.random.next_u64().to_le_bytes()].concat(),
        }
    }

    fn tx(&mut self, inputs: usize, outputs: usize, spent: &mut Vec<Coin>) -> MutTx {
        let number = self.random.next_u64();
        let mut ins = Vec::new();
        for _ in 0..inputs.min(self.coins.len()) {
            // Mostly young coins.
            let back = self.random.below(self.coins.len()).min(self.random.below(self.coins.len()));
            let (outpoint, coin) = self.coins.remove(self.coins.len() - 1 - back);
            ins.push(input(number, outpoint));
            spent.push(coin);
        }
        if ins.is_empty() {
            ins.push(input(number, OutPoint { txid: Txid([0; 32]), vout: u32::MAX }));
        }
        let output = |chain: &mut Chain| {
            let script_pubkey = if outputs > 100 { vec![0x51] } else { chain.script() };
            MutOutput { value: Amount(i64::try_from(chain.random.below(1 << 40)).unwrap()), script_pubkey }
        };
        let outputs = (0..outputs).map(|_| output(self)).collect();
        MutTx { version: 2, inputs: ins, outputs, lock_time: 0 }
    }

    fn grow(&mut self, count: usize) {
        for _ in 0..count {
            let height = u32::try_from(self.active.len()).unwrap();
            let mut spent = Vec::new();
            let mut txs = vec![self.tx(0, 1, &mut spent)];
            for _ in 0..self.random.below(3) {
                let (inputs, outputs) = (1 + self.random.below(2), 1 + self.random.below(3));
                txs.push(self.tx(inputs, outputs, &mut spent));
            }
            // A script with tens of thousands of outputs.
            if height % 300 == 9 {
                txs.push(self.tx(1, 2_000, &mut spent));
            }
            let prev_block = self.active.last().map_or(BlockHash::ZERO, |step| step.block.hash());
            // Another hash on each branch.
            let nonce = u32::try_from(self.random.below(1 << 30)).unwrap();
            let header = Header { version: 1, prev_block, merkle_root: [0; 32], time: 0, bits: 0, nonce };
            let block: Block = RawBlock::new(MutBlock { header, txs }.encode()).parse().unwrap();
            self.add_coins(&block, height);
            let step = Step { block, height, spent };
            self.all.insert(step.block.hash(), step.clone());
            self.active.push(step);
        }
    }

    /// The outputs of the genesis block are not coins.
    fn add_coins(&mut self, block: &Block, height: u32) {
        for tx in block.txs().filter(|_| height > 0) {
            let txid = tx.txid();
            let coins = (0..)
                .zip(tx.outputs())
                .map(|(vout, output)| (OutPoint { txid, vout }, Coin::new(output, Height(height), tx.is_coinbase())));
            self.coins.extend(coins);
        }
    }

    fn cut(&mut self, left: usize) {
        self.active.truncate(left);
        self.coins.clear();
        for Step { block, height, .. } in self.active.clone() {
            self.add_coins(&block, height);
        }
        let is_spent: std::collections::HashSet<OutPoint> = self
            .active
            .iter()
            .flat_map(|step| step.block.txs())
            .filter(|tx| !tx.is_coinbase())
            .flat_map(|tx| tx.inputs().map(|input| input.prevout).collect::<Vec<_>>())
            .collect();
        self.coins.retain(|(outpoint, _)| !is_spent.contains(outpoint));
    }

    /// Brings an index to the chain, as the engine does.
    fn feed(&self, index: &mut TxIndex, reader: &TxIndexReader) {
        while let Some(tip) = reader.tip()
            && self.active.get(tip.height.0 as usize).is_none_or(|step| step.block.hash() != tip.hash)
        {
            if index.disconnect(&connected(&self.all[&tip.hash])).unwrap() == Left::ToDurableTip {
                assert_eq!(index.durable_tip(), reader.tip());
            }
        }
        let next = reader.tip().map_or(0, |tip| tip.height.0 + 1);
        self.active.iter().skip(next as usize).for_each(|step| index.connect(&connected(step), None).unwrap());
        index.settle().unwrap();
    }
}

fn connected(step: &Step) -> ConnectedBlock<'_> {
    let (height, below) = (Height(step.height), ChainTotals::default());
    ConnectedBlock { height, block: &step.block, spent: &step.spent, below }
}

/// An output with everything that happens to it on its chain.
#[derive(Clone, Copy, Debug)]
struct Row {
    number: u32,
    vout: u32,
    value: u64,
    spender: Option<u32>,
}

/// The right answers at every height of a chain.
#[derive(Debug)]
pub(super) struct Model {
    outputs: HashMap<ScriptHash, Vec<Row>>,
    /// All scripts, those with the most outputs first.
    pub(super) scripts: Vec<ScriptHash>,
    pub(super) txids: Vec<Txid>,
    /// The number of transactions below each height.
    firsts: Vec<u32>,
    pub(super) hashes: Vec<BlockHash>,
}

impl Model {
    fn new(chain: &Chain) -> Model {
        let mut outputs = HashMap::<ScriptHash, Vec<Row>>::new();
        let (mut places, mut txids, mut firsts) = (HashMap::new(), Vec::new(), vec![0]);
        for Step { block, height, .. } in &chain.active {
            for tx in block.txs() {
                let number = u32::try_from(txids.len()).unwrap();
                for input in tx.inputs().filter(|_| !tx.is_coinbase()) {
                    let (script, at): &(ScriptHash, usize) = &places[&input.prevout];
                    outputs.get_mut(script).unwrap()[*at].spender = Some(number);
                }
                for (vout, output) in (0..).zip(tx.outputs()).filter(|_| *height > 0) {
                    let script = ScriptHash::of(output.script_pubkey);
                    let rows = outputs.entry(script).or_default();
                    places.insert(OutPoint { txid: tx.txid(), vout }, (script, rows.len()));
                    let value = u64::try_from(output.value.0).unwrap();
                    rows.push(Row { number, vout, value, spender: None });
                }
                txids.push(tx.txid());
            }
            firsts.push(u32::try_from(txids.len()).unwrap());
        }
        let mut scripts: Vec<ScriptHash> = outputs.keys().copied().collect();
        scripts.sort_unstable_by_key(|script| (std::cmp::Reverse(outputs[script].len()), *script));
        let hashes = chain.active.iter().map(|step| step.block.hash()).collect();
        Model { outputs, scripts, txids, firsts, hashes }
    }

    /// The outputs of a script, once the chain ends at a height.
    pub(super) fn outputs(&self, script: &ScriptHash, tip: u32) -> Vec<ScriptOutput> {
        let end = self.firsts[tip as usize + 1];
        let rows = self.outputs.get(script).map(Vec::as_slice).unwrap_or_default();
        let fate = |row: &Row| match row.spender.filter(|spender| *spender < end) {
            Some(spender) => OutputFate::Spent(spender),
            None => OutputFate::Unspent(row.value),
        };
        let below = rows.iter().filter(|row| row.number < end);
        below.map(|row| ScriptOutput { number: row.number, vout: row.vout, fate: fate(row) }).collect()
    }

    pub(super) fn height_of(&self, number: u32) -> u32 {
        u32::try_from(self.firsts.partition_point(|first| *first <= number) - 1).unwrap()
    }

    /// The transactions of the blocks up to a height.
    pub(super) fn count(&self, tip: u32) -> u32 {
        self.firsts[tip as usize + 1]
    }
}

/// What the embedded index had at one moment, with the right answers.
#[derive(Debug)]
pub(super) struct State {
    pub(super) export: Export,
    pub(super) model: Arc<Model>,
}

/// An index through blocks and reorganisations.
#[derive(Debug)]
pub(super) struct Story {
    pub(super) states: Vec<State>,
    pub(super) identity: Identity,
    /// The chain and the height of each block that there ever was.
    pub(super) blocks: BTreeMap<BlockHash, (Arc<Model>, u32)>,
    /// The bytes of these blocks.
    pub(super) raw: HashMap<BlockHash, Block>,
    _index: TxIndex,
}

/// Blocks that leave, and blocks that come. The first group of 256 is written early and taken back by a reorganisation;
/// later, groups are sealed and merged; one reorganisation reaches sealed segments.
const STEPS: [(usize, usize); 18] = [
    (0, 3),
    (0, 90),
    (0, 170),
    (14, 20),
    (0, 6),
    (6, 7),
    (0, 250),
    (1, 2),
    (0, 900),
    (40, 41),
    (3, 1),
    (0, 600),
    (0, 1_210),
    (6, 9),
    (0, 300),
    (2_000, 100),
    (0, 1_700),
    (2, 40),
];

/// The same before anything is sealed. One reorganisation reaches all segments but the first.
const SHORT_STEPS: [(usize, usize); 12] =
    [(0, 3), (0, 90), (0, 170), (14, 20), (6, 7), (0, 250), (1, 2), (0, 300), (40, 41), (3, 1), (500, 40), (0, 260)];

impl Story {
    fn tell(seed: u64, profile: Profile, steps: &[(usize, usize)]) -> Story {
        let mut chain = Chain::new(seed);
        let disk = Arc::new(SimDisk::new(seed));
        let (mut index, reader) = TxIndex::open(disk, Path::new("tables"), GENESIS, profile, || [5, 6]).unwrap();
        let (mut states, mut blocks) = (Vec::new(), BTreeMap::new());
        for (left, come) in steps {
            chain.cut(chain.active.len() - left);
            chain.grow(*come);
            chain.feed(&mut index, &reader);
            let (export, model) = (reader.export().unwrap(), Arc::new(Model::new(&chain)));
            for (height, hash) in (0..).zip(&model.hashes) {
                blocks.insert(*hash, (Arc::clone(&model), height));
            }
            let tip = u32::try_from(model.hashes.len() - 1).unwrap();
            for script in model.scripts.iter().take(40) {
                assert_eq!(reader.outputs(script).unwrap().outputs, model.outputs(script, tip), "the embedded index");
            }
            states.push(State { export, model });
        }
        let raw = chain.all.into_iter().map(|(hash, step)| (hash, step.block)).collect();
        Story { states, identity: reader.identity(), blocks, raw, _index: index }
    }
}

/// The same for all tests: with the table of txids and without.
pub(super) static FULL: LazyLock<Story> = LazyLock::new(|| Story::tell(1, WITH_TXIDS, &STEPS));
pub(super) static COMPACT: LazyLock<Story> = LazyLock::new(|| Story::tell(2, WITHOUT_TXIDS, &STEPS));
/// Those of most seeds: a seed takes a fifth of the time.
pub(super) static SHORT: LazyLock<Story> = LazyLock::new(|| Story::tell(3, WITH_TXIDS, &SHORT_STEPS));
pub(super) static SHORT_COMPACT: LazyLock<Story> = LazyLock::new(|| Story::tell(4, WITHOUT_TXIDS, &SHORT_STEPS));

const WITH_TXIDS: Profile = Profile { has_scripts: true, has_txids: true };
const WITHOUT_TXIDS: Profile = Profile { has_scripts: true, has_txids: false };
