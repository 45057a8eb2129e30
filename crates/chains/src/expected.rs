//! Computes what every Electrum server must answer, from nothing but the blocks.
//!
//! Input: a chain and the scripts to query. Output: balance, history and UTXO list of each in the protocol's form,
//! merkle proofs, headers. Invariants: confirmed transactions only; lists in blockchain order (height, then position in
//! the block, then position in the transaction); the output of the genesis block does not exist. Cost: one pass over
//! the blocks; 32 bytes per transaction, 8 bytes per pair of script and transaction, 60 bytes per coin of the scripts.
//! Must never: query a server.

mod esplora;

pub use esplora::Outspends;

use super::targets::Targets;
use super::walk::{Placed, walk};
use crate::chain_files::ChainFiles;
use crate::error::ChainsError;
use lydian_hash::sha256d;
use lydian_primitives::{OutPoint, Txid, to_hex};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The answers of one chain.
#[derive(Debug, Default)]
pub struct Expected {
    headers: Vec<[u8; 80]>,
    /// Number of each block's first transaction.
    first_txs: Vec<usize>,
    /// Txids of the whole chain, by transaction number.
    txids: Vec<Txid>,
    /// In the order of the targets.
    scripts: Vec<Answers>,
}

/// The answers for one script.
#[derive(Clone, Debug, Default)]
struct Answers {
    /// Transaction numbers.
    history: Vec<usize>,
    utxos: Vec<Utxo>,
    /// The number of all outputs that paid the script, and their sum in satoshis.
    funded: (usize, i64),
}

/// Ordered as in the protocol's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Utxo {
    tx: usize,
    vout: u32,
    value: i64,
}

/// Unspent coins of the scripts, each with the index of its script.
type Coins = HashMap<OutPoint, (usize, Utxo)>;

impl Expected {
    pub fn of(chain: &ChainFiles, targets: &Targets) -> Result<Expected, ChainsError> {
        let by_script: HashMap<&[u8], usize> =
            targets.scripts.iter().enumerate().map(|(at, target)| (target.script.as_slice(), at)).collect();
        let mut coins = Coins::new();
        let mut expected = Expected { scripts: vec![Answers::default(); targets.scripts.len()], ..Expected::default() };
        walk(chain, &mut |block| {
            expected.connect(block, &by_script, &mut coins);
            Ok(())
        })?;
        coins.into_values().for_each(|(at, utxo)| expected.scripts[at].utxos.push(utxo));
        expected.scripts.iter_mut().for_each(|answers| answers.utxos.sort_unstable());
        Ok(expected)
    }

    /// `blockchain.scripthash.get_balance` of the script at this index.
    pub fn balance(&self, at: usize) -> Value {
        let confirmed: i64 = self.scripts[at].utxos.iter().map(|utxo| utxo.value).sum();
        json!({ "confirmed": confirmed, "unconfirmed": 0 })
    }

    /// `blockchain.scripthash.get_history`.
    pub fn history(&self, at: usize) -> Value {
        let entry = |&tx: &usize| json!({ "height": self.height_of(tx), "tx_hash": self.txids[tx].to_string() });
        self.scripts[at].history.iter().map(entry).collect()
    }

    /// `blockchain.scripthash.listunspent`.
    pub fn utxos(&self, at: usize) -> Value {
        let entry = |utxo: &Utxo| {
            json!({
                "height": self.height_of(utxo.tx),
                "tx_hash": self.txids[utxo.tx].to_string(),
                "tx_pos": utxo.vout,
                "value": utxo.value,
            })
        };
        self.scripts[at].utxos.iter().map(entry).collect()
    }

    /// The number of transactions and of coins of a script.
    pub fn counts(&self, at: usize) -> (usize, usize) {
        (self.scripts[at].history.len(), self.scripts[at].utxos.len())
    }

    /// Height of the last block.
    pub fn tip_height(&self) -> u32 {
        u32::try_from(self.headers.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// The 80 bytes of a header in hexadecimal, `blockchain.block.header`; `None` above the tip.
    pub fn header(&self, height: u32) -> Option<String> {
        self.headers.get(height as usize).map(|header| to_hex(header))
    }

    /// `count` headers from `start` on, concatenated: `hex` of `blockchain.block.headers`. Fewer at the tip.
    pub fn headers(&self, start: u32, count: u32) -> String {
        self.headers.iter().skip(start as usize).take(count as usize).map(|header| to_hex(header)).collect()
    }

    /// Txids of a block in order, as displayed; none above the tip.
    pub fn block_txids(&self, height: u32) -> Vec<String> {
        self.block(height).iter().map(Txid::to_string).collect()
    }

    /// The height of the block with the most transactions.
    pub fn largest_block(&self) -> u32 {
        let sizes = (0..=self.tip_height()).map(|height| (self.block(height).len(), std::cmp::Reverse(height)));
        sizes.max().map_or(0, |(_, height)| height.0)
    }

    /// `blockchain.transaction.get_merkle`; `None` if the block at this height does not contain the transaction.
    pub fn merkle(&self, tx_hash: &str, height: u32) -> Option<Value> {
        let block = self.block(height);
        let pos = block.iter().position(|txid| txid.to_string() == tx_hash)?;
        let branch: Vec<String> = merkle_branch(block, pos).into_iter().map(|hash| Txid(hash).to_string()).collect();
        Some(json!({ "block_height": height, "merkle": branch, "pos": pos }))
    }

    fn connect(&mut self, placed: &Placed, by_script: &HashMap<&[u8], usize>, coins: &mut Coins) {
        self.headers.push(placed.block.header().to_bytes());
        self.first_txs.push(placed.first_tx);
        for (index, tx) in placed.txs().enumerate() {
            let number = placed.first_tx + index;
            self.txids.push(tx.txid());
            let spent = tx.inputs().filter(|_| index > 0).filter_map(|input| coins.remove(&input.prevout));
            spent.for_each(|(at, _)| self.scripts[at].touch(number));
            for (outpoint, output) in placed.coins(&tx) {
                let Some(&at) = by_script.get(output.script_pubkey) else { continue };
                self.scripts[at].touch(number);
                self.scripts[at].funded.0 += 1;
                self.scripts[at].funded.1 += output.value.0;
                coins.insert(outpoint, (at, Utxo { tx: number, vout: outpoint.vout, value: output.value.0 }));
            }
        }
    }

    fn block(&self, height: u32) -> &[Txid] {
        let start = self.first_txs.get(height as usize).copied().unwrap_or(self.txids.len());
        let end = self.first_txs.get(height as usize + 1).copied().unwrap_or(self.txids.len());
        &self.txids[start..end]
    }

    fn height_of(&self, tx: usize) -> usize {
        self.first_txs.partition_point(|&first| first <= tx) - 1
    }
}

impl Answers {
    fn touch(&mut self, tx: usize) {
        if self.history.last() != Some(&tx) {
            self.history.push(tx);
        }
    }
}

/// The sibling hashes on the path from a transaction to the root, lowest first; a last hash without a sibling is its
/// own.
fn merkle_branch(txids: &[Txid], pos: usize) -> Vec<[u8; 32]> {
    let mut level: Vec<[u8; 32]> = txids.iter().map(|txid| txid.0).collect();
    let mut at = pos;
    let mut branch = Vec::new();
    while level.len() > 1 {
        branch.push(level.get(at ^ 1).copied().unwrap_or(level[at]));
        level = level.chunks(2).map(|pair| sha256d(&[pair[0], pair[pair.len() - 1]].concat())).collect();
        at /= 2;
    }
    branch
}
