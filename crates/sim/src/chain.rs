//! Chains for the peers of the world: regtest blocks with real spends, made once and shared by all seeds.
//!
//! Input: a recipe. Output: [`Chain`]. Invariants: the bytes are always the same; chains that fork share the blocks
//! below the fork. Whether a block is valid is not decided here. Cost: some microseconds per block, and a tenth of a
//! millisecond per signature.

use lydian_chains::wallet::{Kind, Lock, Opened, Spending, Wallet, sign_input};
use lydian_consensus::{Chain as ChainName, Params, block_subsidy};
use lydian_primitives::block::WITNESS_COMMITMENT_HEADER;
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, BlockHash, Header, Height, OutPoint, RawBlock, Transaction};
use lydian_script::ScriptBuilder;
use lydian_wire::Locator;
use std::collections::HashMap;
use std::sync::Arc;

/// Base of the block times, in seconds since 1970: a block has the time `CHAIN_BEGIN + height * SPACING`.
pub const CHAIN_BEGIN: u32 = 1_700_000_000;

/// Seconds between two blocks.
pub const SPACING: u32 = 600;

/// Number of blocks after which the output of a coinbase may be spent.
pub const MATURITY: u32 = 100;

const BITS: u32 = 0x207f_ffff;

/// The output types in which coins are locked, in turn.
const KINDS: [Kind; 5] = [Kind::P2wpkh, Kind::P2trKey, Kind::P2pkh, Kind::P2shP2wpkh, Kind::P2wsh2of3];

/// A block, with what is known from making it.
#[derive(Clone, Debug)]
pub struct Made {
    pub hash: BlockHash,
    pub header: Header,
    pub height: u32,
    pub bytes: Vec<u8>,
    /// An output to spend.
    coinbase: Option<OutPoint>,
}

/// A chain that starts at the genesis block.
#[derive(Clone)]
pub struct Chain {
    blocks: Vec<Arc<Made>>,
    heights: HashMap<BlockHash, u32>,
    /// The time that block times count from, in seconds since 1970.
    begin: u32,
}

/// The defect of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A signature that commits to something else: found when scripts are run.
    Signature,
    /// A transaction spends more than its inputs have: found when coins are looked up.
    Amount,
    /// The coinbase claims more than subsidy and fees.
    Coinbase,
    /// An input spends a coin that does not exist.
    NoCoin,
    /// Two coinbases: found in the bytes of the block alone; the block hash commits to it.
    TwoCoinbases,
    /// The coinbase does not contain its height: found with the block and the headers.
    NoHeight,
}

impl Fault {
    pub const ALL: [Fault; 6] =
        [Fault::Signature, Fault::Amount, Fault::Coinbase, Fault::NoCoin, Fault::TwoCoinbases, Fault::NoHeight];
}

pub fn params() -> Params {
    Params::new(ChainName::Regtest)
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a chain to {}", self.tip().hash)
    }
}

impl Chain {
    pub fn genesis() -> Chain {
        Chain::beginning(CHAIN_BEGIN)
    }

    /// A chain with the genesis block only; the times of further blocks count from `begin`.
    pub fn beginning(begin: u32) -> Chain {
        let block = params().genesis_block().parse().unwrap();
        let bytes = params().genesis_block().as_bytes().to_vec();
        let made = Made { hash: block.hash(), header: *block.header(), height: 0, bytes, coinbase: None };
        Chain { heights: [(made.hash, 0)].into(), blocks: vec![Arc::new(made)], begin }
    }

    pub fn tip(&self) -> &Made {
        self.blocks.last().unwrap()
    }

    pub fn height(&self) -> u32 {
        self.tip().height
    }

    pub fn at(&self, height: u32) -> &Made {
        &self.blocks[usize::try_from(height).unwrap()]
    }

    pub fn find(&self, hash: &BlockHash) -> Option<&Made> {
        self.heights.get(hash).map(|height| self.at(*height))
    }

    pub fn blocks(&self) -> impl Iterator<Item = &Made> {
        self.blocks.iter().map(|made| &**made)
    }

    /// Returns the height of the last block that the locator and this chain, up to `height`, have in common.
    pub fn fork_height(&self, locator: &Locator, height: u32) -> u32 {
        let found = locator.hashes.iter().filter_map(|hash| self.heights.get(hash)).find(|found| **found <= height);
        found.copied().unwrap_or(0)
    }

    /// Returns a copy of the chain up to a height.
    pub fn cut(&self, height: u32) -> Chain {
        let blocks = self.blocks[..=usize::try_from(height).unwrap()].to_vec();
        Chain { heights: blocks.iter().map(|made| (made.hash, made.height)).collect(), blocks, begin: self.begin }
    }

    /// Adds `count` blocks; blocks with different tags differ. Once a coinbase is mature, each block has signed spends.
    pub fn extended(mut self, count: u32, tag: &[u8]) -> Chain {
        for _ in 0..count {
            let spends = self.spends();
            let block = self.block(spends, tag);
            self.push(block);
        }
        self
    }

    /// Like [`Chain::extended`] without spends, so that many blocks take almost no time.
    pub fn extended_empty(mut self, count: u32, tag: &[u8]) -> Chain {
        for _ in 0..count {
            let block = self.block(Vec::new(), tag);
            self.push(block);
        }
        self
    }

    /// Adds one block that breaks a rule; its header is valid.
    pub fn extended_badly(mut self, fault: Fault) -> Chain {
        let mut block = self.block(self.spends(), b"bad");
        match fault {
            Fault::Signature => {
                let input = &mut block.txs[1].inputs[0];
                let mended: MutInput = MutInput { sequence: 5, ..input.clone() };
                // The signature committed to another sequence.
                *input = mended;
            }
            Fault::Amount => block.txs[1].outputs[0].value = Amount(100 * 100_000_000),
            Fault::Coinbase => block.txs[0].outputs[0].value = Amount(51 * 100_000_000),
            Fault::NoCoin => block.txs[2].inputs[0].prevout.vout = 7,
            Fault::TwoCoinbases => {
                let second = block.txs[0].clone();
                block.txs.push(second);
            }
            Fault::NoHeight => block.txs[0].inputs[0].script_sig = vec![1, 1, 1, 1],
        }
        block.seal_on_regtest();
        self.push(block);
        self
    }

    fn push(&mut self, block: MutBlock) {
        let (hash, height) = (block.header.hash(), self.height() + 1);
        let coinbase = Some(OutPoint { txid: block.txs[0].txid(), vout: 0 });
        self.heights.insert(hash, height);
        self.blocks.push(Arc::new(Made { hash, header: block.header, height, bytes: block.encode(), coinbase }));
    }

    /// Makes a block on the tip.
    fn block(&self, txs: Vec<MutTx>, tag: &[u8]) -> MutBlock {
        let height = self.height() + 1;
        let value = block_subsidy(Height(height), &params());
        let script_sig = ScriptBuilder::new().push_int(i64::from(height)).push_slice(tag).into_bytes();
        let mut commitment = WITNESS_COMMITMENT_HEADER.to_vec();
        commitment.extend_from_slice(&[0; 32]);
        let coinbase = MutTx {
            version: 2,
            inputs: vec![MutInput {
                prevout: OutPoint::NULL,
                script_sig,
                sequence: u32::MAX,
                witness: vec![vec![0; 32]],
            }],
            outputs: vec![
                MutOutput { value, script_pubkey: lock(height).1.script_pubkey },
                MutOutput { value: Amount(0), script_pubkey: commitment },
            ],
            lock_time: 0,
        };
        let header = Header {
            version: 0x2000_0000,
            prev_block: self.tip().hash,
            merkle_root: [0; 32],
            time: self.begin + height * SPACING,
            bits: BITS,
            nonce: 0,
        };
        let mut block = MutBlock { header, txs: std::iter::once(coinbase).chain(txs).collect() };
        block.seal_on_regtest();
        block
    }

    /// Spends the coinbase that becomes mature, and then the output of that spend.
    fn spends(&self) -> Vec<MutTx> {
        let height = self.height() + 1;
        let Some(mature) = height.checked_sub(MATURITY).filter(|height| *height > 0) else { return Vec::new() };
        let Some(prevout) = self.at(mature).coinbase else { return Vec::new() };
        let value = block_subsidy(Height(mature), &params()).0;
        let first = spend(prevout, value, mature, height + 1);
        let second = spend(OutPoint { txid: first.txid(), vout: 0 }, first.outputs[0].value.0, height + 1, height + 2);
        vec![first, second]
    }
}

/// An output that can be spent.
#[derive(Clone, Debug)]
pub struct Coin {
    prevout: OutPoint,
    value: i64,
    /// The number of its lock.
    lock: u32,
}

impl Chain {
    /// The outputs of spends that are not spent in the chain.
    pub fn coins(&self) -> Vec<Coin> {
        let coin = |made: &Made| {
            let block = RawBlock::new(made.bytes.clone()).parse().unwrap();
            let tx = (block.tx_count() == 3).then(|| block.tx(2))?;
            let prevout = OutPoint { txid: tx.txid(), vout: 0 };
            Some(Coin { prevout, value: tx.output(0).value.0, lock: made.height + 2 })
        };
        self.blocks().filter_map(coin).collect()
    }
}

/// Spends a coin for this fee. Returns the transaction and its output.
pub fn pay(coin: &Coin, fee: i64) -> (Arc<Transaction>, Coin) {
    let (tx, mut coins) = pay_with(coin, fee, 2, 1);
    (tx, coins.remove(0))
}

/// Spends a coin for this fee, with a version and a number of equal outputs. Returns the transaction and its outputs.
pub fn pay_with(coin: &Coin, fee: i64, version: u32, outputs: u32) -> (Arc<Transaction>, Vec<Coin>) {
    let (value, next) = ((coin.value - fee) / i64::from(outputs), coin.lock + 1);
    let output = MutOutput { value: Amount(value), script_pubkey: lock(next).1.script_pubkey };
    let tx = sign(coin.prevout, coin.value, coin.lock, version, vec![output; outputs as usize]);
    let txid = tx.txid();
    let coins = (0..outputs).map(|vout| Coin { prevout: OutPoint { txid, vout }, value, lock: next });
    (Arc::new(tx.to_transaction().unwrap()), coins.collect())
}

fn lock(number: u32) -> (Lock, Opened) {
    let kind = KINDS[usize::try_from(number).unwrap() % KINDS.len()];
    let lock = Lock { kind, key: u64::from(number % 15) };
    (lock, Wallet::new(5).open(lock))
}

/// Spends an output that is locked by the lock with the number `from`, to the lock with the number `to`.
fn spend(prevout: OutPoint, value: i64, from: u32, to: u32) -> MutTx {
    let output = MutOutput { value: Amount(value - 1_000), script_pubkey: lock(to).1.script_pubkey };
    sign(prevout, value, from, 2, vec![output])
}

/// Spends an output that is locked by the lock with the number `from`.
fn sign(prevout: OutPoint, value: i64, from: u32, version: u32, outputs: Vec<MutOutput>) -> MutTx {
    let (lock_from, opened) = lock(from);
    let input = MutInput { prevout, script_sig: Vec::new(), sequence: u32::MAX, witness: Vec::new() };
    let mut tx = MutTx { version, inputs: vec![input], outputs, lock_time: 0 };
    let spent = [(value, opened.script_pubkey.clone())];
    sign_input(&mut tx, 0, lock_from, &opened, &mut Spending::new(&spent));
    tx
}
