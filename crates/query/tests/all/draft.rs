//! Makes random blocks and transactions: outputs spent in their own block, unspendable outputs, several outputs to one
//! script, hundreds of outputs to one, coinbases and transactions that are repeated under the same txid. Input: the
//! chain to build on, the mempool, chance. Output: valid blocks; transactions of which the mempool accepts most.

use crate::world::START;
use lydian_consensus::{Params, block_subsidy};
use lydian_hash::sha256;
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Block, BlockHash, Header, Height, OutPoint, RawBlock, Transaction, Txid};
use lydian_stdx::SplitMix64;
use std::sync::Arc;

const REGTEST_BITS: u32 = 0x207f_ffff;

/// Blocks until a coinbase's outputs are mature.
const MATURITY: u32 = 100;

/// Coinbases that are repeated.
pub const REPEATED: u8 = 3;

/// What they pay, so that a later subsidy suffices.
const REPEATED_VALUE: i64 = 1_000;

/// The script that is paid by what spends them, and by nothing else.
const REPEATED_SPEND: u32 = 9;

/// An output that can be spent.
#[derive(Clone, Debug)]
struct Coin {
    outpoint: OutPoint,
    value: i64,
    script: Vec<u8>,
    height: u32,
    is_coinbase: bool,
}

/// The coins of a chain, in the order in which they were made.
#[derive(Clone, Debug)]
struct Purse {
    tip: BlockHash,
    coins: Vec<Coin>,
}

impl Purse {
    fn add(&mut self, tx: &MutTx, height: u32) {
        let txid = tx.txid();
        let is_coinbase = tx.inputs[0].prevout.is_null();
        for (vout, output) in (0..).zip(&tx.outputs).filter(|(_, output)| is_coin(&output.script_pubkey)) {
            let (outpoint, script) = (OutPoint { txid, vout }, output.script_pubkey.clone());
            self.coins.push(Coin { outpoint, value: output.value.0, script, height, is_coinbase });
        }
    }

    fn spend(&mut self, tx: &MutTx) {
        self.coins.retain(|coin| tx.inputs.iter().all(|input| input.prevout != coin.outpoint));
    }

    fn apply(&mut self, block: &Block, height: u32) {
        for tx in block.txs() {
            let tx = MutTx::from(tx);
            self.spend(&tx);
            self.add(&tx, height);
        }
        self.tip = block.hash();
    }

    fn has_any_of(&self, txid: &Txid) -> bool {
        self.coins.iter().any(|coin| coin.outpoint.txid == *txid)
    }

    fn has(&self, outpoint: &OutPoint) -> bool {
        self.coins.iter().any(|coin| coin.outpoint == *outpoint)
    }
}

fn is_coin(script: &[u8]) -> bool {
    script.first() != Some(&0x6a) && script.len() <= 10_000
}

/// An anyone-can-spend script, one for each number.
fn numbered(number: u32) -> Vec<u8> {
    let mut script = vec![4];
    script.extend_from_slice(&(number | 1 << 30).to_be_bytes());
    script.extend_from_slice(&[0x75, 0x51]);
    script
}

fn witness_script() -> Vec<u8> {
    [&[0x00, 0x20][..], &sha256(&[0x51])].concat()
}

fn input(coin: &Coin) -> MutInput {
    let witness = if coin.script == witness_script() { vec![vec![0x51]] } else { Vec::new() };
    MutInput { prevout: coin.outpoint, script_sig: Vec::new(), sequence: 0xffff_fffd, witness }
}

fn output(value: i64, script_pubkey: Vec<u8>) -> MutOutput {
    MutOutput { value: Amount(value), script_pubkey }
}

/// A coinbase that several blocks have.
fn repeated(number: u8) -> MutTx {
    let script_sig = vec![4, b'a', b'g', b'n', number];
    let coinbase = MutInput { prevout: OutPoint::NULL, script_sig, sequence: u32::MAX, witness: Vec::new() };
    let outputs = match number {
        // Without coins, so that any block may repeat it.
        0 => vec![output(0, vec![0x6a, 2, 7, 7])],
        1 => vec![output(REPEATED_VALUE, numbered(1))],
        // Several outputs to one script, one of them unspendable.
        _ => vec![
            output(REPEATED_VALUE, numbered(2)),
            output(REPEATED_VALUE, numbered(2)),
            output(0, vec![0x6a]),
            output(REPEATED_VALUE, numbered(u32::from(number))),
        ],
    };
    MutTx { version: 1, inputs: vec![coinbase], outputs, lock_time: 0 }
}

/// The transaction that spends one, and is repeated with it.
fn repeated_spend(coins: &[Coin]) -> MutTx {
    let total: i64 = coins.iter().map(|coin| coin.value).sum();
    let outputs = vec![output(total - 300, numbered(REPEATED_SPEND)), output(0, vec![0x6a, 1, 9])];
    MutTx { version: 1, inputs: coins.iter().map(input).collect(), outputs, lock_time: 0 }
}

/// How many transactions and outputs blocks have.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The most transactions of a block beside those of the mempool.
    pub txs: usize,
    /// The share of outputs to a script of which there is only one, in percent.
    pub fresh_percent: usize,
    /// Blocks in a hundred with a transaction of hundreds of outputs to one script.
    pub fan_percent: usize,
    pub has_witness: bool,
}

/// Makes blocks and transactions.
#[derive(Debug)]
pub struct Maker {
    pub random: SplitMix64,
    shape: Shape,
    params: Params,
    purse: Purse,
    /// Makes coinbases and fresh scripts differ.
    nonce: u32,
}

impl Maker {
    pub fn new(seed: u64, shape: Shape, params: Params) -> Maker {
        let purse = Purse { tip: params.genesis_hash, coins: Vec::new() };
        Maker { random: SplitMix64::new(seed), shape, params, purse, nonce: 1_000 }
    }

    pub fn below(&mut self, count: usize) -> usize {
        self.random.below(count)
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// The coins after a chain.
    fn coins(&mut self, chain: &[Block]) -> Purse {
        let tip = chain.last().unwrap();
        if self.purse.tip != tip.hash() {
            let is_next = self.purse.tip == tip.header().prev_block;
            let from = if is_next { chain.len() - 1 } else { 1 };
            if !is_next {
                self.purse = Purse { tip: self.params.genesis_hash, coins: Vec::new() };
            }
            for (height, block) in (0..).zip(chain).skip(from) {
                self.purse.apply(block, height);
            }
        }
        self.purse.clone()
    }

    fn script(&mut self) -> Vec<u8> {
        match self.below(100) {
            0..=2 => vec![0x6a, 1, u8::try_from(self.below(100)).unwrap()],
            3 => vec![0x51; 10_001],
            4 if self.shape.has_witness => witness_script(),
            // Never spent.
            5 => vec![0x00],
            percent if percent > 99 - self.shape.fresh_percent => {
                self.nonce += 1;
                numbered(self.nonce)
            }
            // A few scripts get most, and some a little.
            percent if percent % 2 == 0 => numbered(u32::try_from(self.below(4)).unwrap()),
            _ => numbered(10 + u32::try_from(self.below(40)).unwrap()),
        }
    }

    /// Takes coins that the next block may spend, more likely young ones.
    fn pick(&mut self, purse: &Purse, height: u32, count: usize) -> Vec<Coin> {
        let mut picked: Vec<Coin> = Vec::new();
        for _ in 0..count * 4 {
            if picked.len() == count || purse.coins.is_empty() {
                break;
            }
            let all = purse.coins.len();
            let reach = if self.chance(40) { all.min(12) } else { all };
            let mut coin = purse.coins[all - 1 - self.random.below(reach)].clone();
            // So that the transactions that made these may be repeated.
            let mut repeatable = purse.coins.iter().filter(|coin| coin.script == numbered(REPEATED_SPEND));
            if let Some(other) = repeatable.next().filter(|_| self.chance(20)) {
                coin = other.clone();
            }
            let is_mature = !coin.is_coinbase || height >= coin.height + MATURITY;
            let is_usable = is_mature && coin.value >= 400 && coin.script != [0x00];
            if is_usable && picked.iter().all(|other| other.outpoint != coin.outpoint) {
                picked.push(coin);
            }
        }
        picked
    }

    /// A transaction that spends coins and pays this many satoshis.
    fn spend(&mut self, coins: &[Coin], fee: i64) -> MutTx {
        let total: i64 = coins.iter().map(|coin| coin.value).sum::<i64>() - fee;
        let count = [1, 1, 2, 2, 3, 6][self.below(6)];
        let value = total / count;
        let same = self.chance(25).then(|| self.script());
        let mut outputs: Vec<MutOutput> = Vec::new();
        for left in (0..count).rev() {
            let value = if left == 0 { total - value * (count - 1) } else { value };
            let script = same.clone().unwrap_or_else(|| self.script());
            outputs.push(output(value, script));
        }
        MutTx { version: 2, inputs: coins.iter().map(input).collect(), outputs, lock_time: 0 }
    }

    fn fan(&mut self, coins: &[Coin]) -> MutTx {
        let total: i64 = coins.iter().map(|coin| coin.value).sum::<i64>() - 20_000;
        let count = 200 + i64::try_from(self.below(150)).unwrap();
        let script = numbered(u32::try_from(self.below(2)).unwrap());
        let outputs = (0..count).map(|_| output(total / count, script.clone())).collect();
        MutTx { version: 2, inputs: coins.iter().map(input).collect(), outputs, lock_time: 0 }
    }

    /// A transaction on the chain and the mempool: sometimes chained, sometimes in the place of others.
    pub fn unconfirmed(&mut self, chain: &[Block], pool: &[Arc<Transaction>]) -> Option<Transaction> {
        let height = u32::try_from(chain.len()).unwrap();
        let mut purse = self.coins(chain);
        let spent = purse.coins.clone();
        for tx in pool {
            let tx = MutTx::from(tx.view());
            purse.spend(&tx);
            purse.add(&tx, height);
        }
        if self.chance(30)
            && let Some(tx) = self.repeated_spends(&purse, height).pop()
        {
            return tx.to_transaction();
        }
        let count = 1 + self.below(3);
        let mut coins = self.pick(&purse, height, count);
        let is_replacement = self.chance(20) && !pool.is_empty();
        if is_replacement {
            let tx = MutTx::from(pool[self.below(pool.len())].view());
            let replaced = &tx.inputs[0].prevout;
            coins.retain(|coin| spent.iter().any(|other| other.outpoint == coin.outpoint));
            coins.extend(spent.iter().find(|coin| coin.outpoint == *replaced).cloned());
        }
        if coins.is_empty() {
            return None;
        }
        let total: i64 = coins.iter().map(|coin| coin.value).sum();
        let fee = i64::try_from(200 + self.below(2_000)).unwrap() * if is_replacement { 20 } else { 1 };
        self.spend(&coins, fee.min(total / 2)).to_transaction()
    }

    /// The transactions that may be repeated now: all coins of a repeated coinbase are mature and unspent.
    fn repeated_spends(&mut self, purse: &Purse, height: u32) -> Vec<MutTx> {
        let mut all = Vec::new();
        for number in 1..=REPEATED {
            let coinbase = repeated(number);
            let txid = coinbase.txid();
            let coins: Vec<Coin> = purse.coins.iter().filter(|coin| coin.outpoint.txid == txid).cloned().collect();
            let expected = coinbase.outputs.iter().filter(|output| is_coin(&output.script_pubkey)).count();
            if coins.len() == expected && coins.iter().all(|coin| height >= coin.height + MATURITY) {
                let tx = repeated_spend(&coins);
                // BIP-0030.
                if !purse.has_any_of(&tx.txid()) {
                    all.push(tx);
                }
            }
        }
        all
    }

    /// A block on a chain, with some of the mempool's transactions and others.
    pub fn block(&mut self, chain: &[Block], pool: &[Arc<Transaction>], pool_percent: usize) -> Block {
        let height = u32::try_from(chain.len()).unwrap();
        let before = self.coins(chain);
        let mut purse = before.clone();
        let mut txs: Vec<MutTx> = Vec::new();
        let mut fees = 0;
        let mut push = |purse: &mut Purse, tx: MutTx| {
            let spent = purse.coins.iter().filter(|coin| tx.inputs.iter().any(|input| input.prevout == coin.outpoint));
            fees += spent.map(|coin| coin.value).sum::<i64>();
            fees -= tx.outputs.iter().map(|output| output.value.0).sum::<i64>();
            purse.spend(&tx);
            purse.add(&tx, height);
            txs.push(tx);
        };
        for tx in pool {
            let tx = MutTx::from(tx.view());
            let is_funded = tx.inputs.iter().all(|input| purse.has(&input.prevout));
            // On another branch a coinbase may be younger, and a txid may still have coins.
            let is_mature = purse.coins.iter().all(|coin| {
                let is_young = coin.is_coinbase && height < coin.height + MATURITY;
                !is_young || tx.inputs.iter().all(|input| input.prevout != coin.outpoint)
            });
            if is_funded && is_mature && !before.has_any_of(&tx.txid()) && self.chance(pool_percent) {
                push(&mut purse, tx);
            }
        }
        for tx in self.repeated_spends(&purse, height) {
            if !before.has_any_of(&tx.txid()) && self.chance(50) {
                push(&mut purse, tx);
            }
        }
        let count = self.below(self.shape.txs + 1);
        for _ in 0..count {
            let inputs = 1 + self.below(3);
            let coins = self.pick(&purse, height, inputs);
            if !coins.is_empty() {
                let fee = i64::try_from(self.below(300)).unwrap();
                let tx = self.spend(&coins, fee);
                push(&mut purse, tx);
            }
        }
        if self.chance(self.shape.fan_percent) {
            let mut coins = self.pick(&purse, height, 1);
            coins.retain(|coin| coin.value > 1_000_000);
            if !coins.is_empty() {
                let tx = self.fan(&coins);
                push(&mut purse, tx);
            }
        }
        self.seal(chain, &before, txs, fees)
    }

    fn seal(&mut self, chain: &[Block], before: &Purse, txs: Vec<MutTx>, fees: i64) -> Block {
        let height = u32::try_from(chain.len()).unwrap();
        let has_witness = txs.iter().any(MutTx::has_witness);
        let mut coinbase = self.coinbase(height, fees);
        let again = repeated(u8::try_from(self.below(usize::from(REPEATED) + 1)).unwrap());
        let percent = if height <= 8 { 90 } else { 25 };
        if !has_witness && !before.has_any_of(&again.txid()) && self.chance(percent) {
            coinbase = again;
        }
        if has_witness {
            let script_pubkey = [&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed][..], &[0; 32]].concat();
            coinbase.outputs.push(output(0, script_pubkey));
            coinbase.inputs[0].witness = vec![vec![0; 32]];
        }
        let prev_block = chain.last().unwrap().hash();
        let time = START + height * 600 + u32::try_from(self.below(500)).unwrap();
        let header =
            Header { version: 0x2000_0000, prev_block, merkle_root: [0; 32], time, bits: REGTEST_BITS, nonce: 0 };
        let mut block = MutBlock { header, txs: std::iter::once(coinbase).chain(txs).collect() };
        block.seal_on_regtest();
        RawBlock::new(block.encode()).parse().unwrap()
    }

    fn coinbase(&mut self, height: u32, fees: i64) -> MutTx {
        self.nonce += 1;
        let script_sig = [&[4][..], &self.nonce.to_be_bytes()].concat();
        let coinbase = MutInput { prevout: OutPoint::NULL, script_sig, sequence: u32::MAX, witness: Vec::new() };
        let total = block_subsidy(Height(height), &self.params).0 + fees;
        let count = 1 + i64::try_from(self.below(4)).unwrap();
        let outputs = (0..count).map(|_| {
            let script = self.script();
            output(total / count, script)
        });
        MutTx { version: 2, inputs: vec![coinbase], outputs: outputs.collect(), lock_time: 0 }
    }
}
