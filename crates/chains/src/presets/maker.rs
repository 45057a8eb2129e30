//! Builds a chain block by block, for the presets in which every block is a case of its own.
//!
//! Input: transactions. Output: sealed blocks on top of the tip. Invariants: coinbases pay the subsidy to `OP_TRUE`, so
//! that ordinary transactions need no signatures and can have any size; only an accepted block moves the tip and spends
//! its coins. It must never decide whether a block is valid.

use crate::assemble::{BLOCK_VERSION, REGTEST_BITS, coinbase, commit, regtest_genesis};
use crate::plan::{FIRST_TIME, subsidy};
use crate::regtest::{COINBASE_MATURITY, VOTED_ACTIVATION_HEIGHT};
use crate::wallet::script::{OP_1, OP_RETURN};
use lydian_hash::sha256d;
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, BlockHash, Header, OutPoint};
use std::collections::HashSet;

/// The script that anyone can spend.
pub const TRUE_SCRIPT: [u8; 1] = [OP_1];

/// Larger output scripts are unspendable: Core's `MAX_SCRIPT_SIZE`.
const SCRIPT_SIZE_MAX: usize = 10_000;

/// Half of all hashes meet regtest's target: those whose last byte is at most this.
const TARGET_TOP_BYTE: u8 = 0x7f;

/// An unspent output that pays [`TRUE_SCRIPT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeCoin {
    pub outpoint: OutPoint,
    pub value: i64,
    /// Height of the block that created it, if it is a coinbase output.
    pub coinbase_height: Option<u32>,
}

/// The tip and the coins that can be spent on top of it.
#[derive(Clone, Debug)]
pub struct Maker {
    pub tip: BlockHash,
    pub height: u32,
    /// Times of the blocks by height.
    pub times: Vec<u32>,
    /// Entries of the UTXO set: outputs for which `CScript::IsUnspendable` is false.
    pub coin_count: usize,
    /// Free coins, including those of coinbases, the oldest first.
    coins: Vec<FreeCoin>,
}

impl Maker {
    /// Starts with the genesis block of regtest as the tip.
    pub fn new() -> Maker {
        let genesis = regtest_genesis();
        let tip = BlockHash(sha256d(&genesis[..80]));
        Maker { tip, height: 0, times: vec![1_296_688_602], coin_count: 0, coins: Vec::new() }
    }

    /// Starts on a block of another preset. The coins of its chain are not known.
    pub fn on(tip: BlockHash, height: u32) -> Maker {
        let times = (0..=height).map(|height| FIRST_TIME + 600 * height).collect();
        Maker { tip, height, times, coin_count: 0, coins: Vec::new() }
    }

    /// Default time of the next block: ten minutes per block.
    pub fn next_time(&self) -> u32 {
        FIRST_TIME + 600 * (self.height + 1)
    }

    /// Median of the last 11 times, which a lock time of the next block is compared with (BIP-0113).
    pub fn median_time_past(&self) -> u32 {
        self.median_time_past_at(self.height)
    }

    pub fn median_time_past_at(&self, height: u32) -> u32 {
        let end = height as usize + 1;
        let mut last = self.times[end.saturating_sub(11)..end].to_vec();
        last.sort_unstable();
        last[last.len() / 2]
    }

    /// A block on the tip, with a place for the commitment if it has witnesses; to be sealed after the last change.
    pub fn template(&self, txs: Vec<MutTx>) -> MutBlock {
        let height = self.height + 1;
        let value = Amount(subsidy(height));
        let mut first = coinbase(height, vec![MutOutput { value, script_pubkey: TRUE_SCRIPT.to_vec() }]);
        if txs.iter().any(MutTx::has_witness) || height >= VOTED_ACTIVATION_HEIGHT {
            commit(&mut first, [0; 32]);
        }
        MutBlock {
            header: Header {
                version: BLOCK_VERSION,
                prev_block: self.tip,
                merkle_root: [0; 32],
                time: self.next_time(),
                bits: REGTEST_BITS,
                nonce: 0,
            },
            txs: std::iter::once(first).chain(txs).collect(),
        }
    }

    /// A sealed block on the tip.
    pub fn block(&self, txs: Vec<MutTx>) -> MutBlock {
        let mut block = self.template(txs);
        seal(&mut block);
        block
    }

    /// Makes a valid block the new tip.
    pub fn advance(&mut self, block: &MutBlock) {
        self.tip = block.header.hash();
        self.height += 1;
        self.times.push(block.header.time);
        let spent: HashSet<OutPoint> = block.txs.iter().flat_map(|tx| tx.inputs.iter().map(|i| i.prevout)).collect();
        let is_coin = |script: &[u8]| !script.starts_with(&[OP_RETURN]) && script.len() <= SCRIPT_SIZE_MAX;
        for (index, tx) in block.txs.iter().enumerate() {
            self.coin_count += tx.outputs.iter().filter(|output| is_coin(&output.script_pubkey)).count();
            self.coin_count -= if index == 0 { 0 } else { tx.inputs.len() };
            let txid = tx.txid();
            for (vout, output) in (0..).zip(&tx.outputs) {
                let coinbase_height = (index == 0).then_some(self.height);
                if output.script_pubkey == TRUE_SCRIPT && output.value.0 > 0 {
                    let outpoint = OutPoint { txid, vout };
                    self.coins.push(FreeCoin { outpoint, value: output.value.0, coinbase_height });
                }
            }
        }
        self.coins.retain(|coin| !spent.contains(&coin.outpoint));
    }

    /// Makes `count` empty blocks and passes each to `sink`.
    pub fn grow<E>(&mut self, count: u32, mut sink: impl FnMut(&Maker, &MutBlock) -> Result<(), E>) -> Result<(), E> {
        (0..count).try_for_each(|_| {
            let block = self.block(Vec::new());
            sink(self, &block)?;
            self.advance(&block);
            Ok(())
        })
    }

    /// Free coins that the next block may spend, those of coinbases last.
    pub fn spendable(&self) -> Vec<FreeCoin> {
        let matures =
            |coin: &&FreeCoin| coin.coinbase_height.is_none_or(|height| height + COINBASE_MATURITY <= self.height + 1);
        let mut coins: Vec<FreeCoin> = self.coins.iter().filter(matures).copied().collect();
        coins.sort_by_key(|coin| coin.coinbase_height);
        coins
    }

    /// All free coins, including immature ones.
    pub fn coins(&self) -> &[FreeCoin] {
        &self.coins
    }

    /// The coinbase coin with the highest value that the next block may spend: enough for many outputs.
    pub fn rich_coin(&self) -> Option<FreeCoin> {
        self.spendable().into_iter().filter(|coin| coin.coinbase_height.is_some()).max_by_key(|coin| coin.value)
    }
}

impl Default for Maker {
    fn default() -> Maker {
        Maker::new()
    }
}

/// An input that spends a free coin.
pub fn free_input(outpoint: OutPoint) -> MutInput {
    MutInput { prevout: outpoint, script_sig: Vec::new(), sequence: u32::MAX, witness: Vec::new() }
}

/// An output.
pub fn output(value: i64, script_pubkey: &[u8]) -> MutOutput {
    MutOutput { value: Amount(value), script_pubkey: script_pubkey.to_vec() }
}

/// A transaction that spends free coins.
pub fn free_tx(coins: &[FreeCoin], outputs: Vec<MutOutput>) -> MutTx {
    let inputs = coins.iter().map(|coin| free_input(coin.outpoint)).collect();
    MutTx { version: 2, inputs, outputs, lock_time: 0 }
}

/// Updates witness commitment, merkle root and proof of work after a change.
pub fn seal(block: &mut MutBlock) {
    block.seal_witness_commitment();
    block.seal_merkle_root();
    seal_work(block, true);
}

/// Tries nonces until the hash meets regtest's target, or misses it.
pub fn seal_work(block: &mut MutBlock, meets: bool) {
    while (block.header.hash().0[31] <= TARGET_TOP_BYTE) != meets {
        block.header.nonce = block.header.nonce.wrapping_add(1);
    }
}
