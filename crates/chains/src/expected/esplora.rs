//! Computes what a server of Esplora's REST API must answer about the same scripts, from nothing but the blocks.
//!
//! Input: the chain, and the answers for its scripts. Output: sums, newest transactions and coins of each script, and
//! the spenders of one transaction's outputs, in Esplora's form. Of a transaction in a list there is only what the
//! history says: its txid and its block. Cost: for the spenders one more pass over the blocks; 24 bytes per output of
//! the transactions that are asked about. Must never: query a server.

use super::Expected;
use crate::chain_files::ChainFiles;
use crate::error::ChainsError;
use crate::walk::walk;
use lydian_hash::sha256d;
use lydian_primitives::{BlockHash, Txid};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Transactions of the chain in the first answer about a script.
const TXS_PER_PAGE: usize = 25;
/// Where the time of a block is in its header.
const TIME: std::ops::Range<usize> = 68..72;

/// An input that spends an output.
#[derive(Clone, Copy, Debug)]
struct Spend {
    tx: usize,
    vin: usize,
}

/// The spenders of all outputs of the transactions in the middle of the scripts' histories.
#[derive(Debug, Default)]
pub struct Outspends(HashMap<Txid, Vec<Option<Spend>>>);

impl Outspends {
    pub fn of(chain: &ChainFiles, expected: &Expected) -> Result<Outspends, ChainsError> {
        let middle = (0..expected.scripts.len()).filter_map(|at| expected.middle(at));
        let mut spends: HashMap<Txid, Vec<Option<Spend>>> = middle.map(|txid| (txid, Vec::new())).collect();
        walk(chain, &mut |placed| {
            for (index, tx) in placed.txs().enumerate() {
                if let Some(outputs) = spends.get_mut(&tx.txid()) {
                    outputs.resize(tx.outputs().count(), None);
                }
                for (vin, input) in tx.inputs().enumerate().filter(|_| index > 0) {
                    let Some(outputs) = spends.get_mut(&input.prevout.txid) else { continue };
                    let output = usize::try_from(input.prevout.vout).ok().and_then(|vout| outputs.get_mut(vout));
                    output.into_iter().for_each(|spend| *spend = Some(Spend { tx: placed.first_tx + index, vin }));
                }
            }
            Ok(())
        })?;
        Ok(Outspends(spends))
    }
}

impl Expected {
    /// `/scripthash/:hash`, without the name of the script.
    pub fn esplora_script(&self, at: usize) -> Value {
        let answers = &self.scripts[at];
        let (coins, unspent) = (answers.utxos.len(), answers.utxos.iter().map(|utxo| utxo.value).sum::<i64>());
        let stats = |transactions: usize, funded: (usize, i64), spent: (usize, i64)| {
            json!({
                "funded_txo_count": funded.0,
                "funded_txo_sum": funded.1,
                "spent_txo_count": spent.0,
                "spent_txo_sum": spent.1,
                "tx_count": transactions,
            })
        };
        let funded = answers.funded;
        let chain = stats(answers.history.len(), funded, (funded.0 - coins, funded.1 - unspent));
        json!({ "chain_stats": chain, "mempool_stats": stats(0, (0, 0), (0, 0)) })
    }

    /// `/scripthash/:hash/txs`: the newest transactions, each with its txid and its block.
    pub fn esplora_txs(&self, at: usize) -> Value {
        let entry = |&tx: &usize| json!({ "status": self.status(tx), "txid": self.txids[tx].to_string() });
        self.scripts[at].history.iter().rev().take(TXS_PER_PAGE).map(entry).collect()
    }

    /// `/scripthash/:hash/utxo`, in blockchain order.
    pub fn esplora_utxo(&self, at: usize) -> Value {
        let entry = |utxo: &super::Utxo| {
            json!({
                "status": self.status(utxo.tx),
                "txid": self.txids[utxo.tx].to_string(),
                "value": utxo.value,
                "vout": utxo.vout,
            })
        };
        self.scripts[at].utxos.iter().map(entry).collect()
    }

    /// The transaction in the middle of a script's history, as displayed, and `/tx/:txid/outspends` of it; `None`
    /// without transactions.
    pub fn esplora_outspends(&self, at: usize, outspends: &Outspends) -> Option<(String, Value)> {
        let txid = self.middle(at)?;
        let entry = |spend: &Option<Spend>| match spend {
            None => json!({ "spent": false }),
            Some(Spend { tx, vin }) => {
                json!({ "spent": true, "status": self.status(*tx), "txid": self.txids[*tx].to_string(), "vin": vin })
            }
        };
        Some((txid.to_string(), outspends.0.get(&txid)?.iter().map(entry).collect()))
    }

    fn middle(&self, at: usize) -> Option<Txid> {
        let history = &self.scripts.get(at)?.history;
        history.get(history.len() / 2).map(|&tx| self.txids[tx])
    }

    /// The block of a transaction.
    fn status(&self, tx: usize) -> Value {
        let height = self.height_of(tx);
        let header = &self.headers[height];
        let mut time = [0; 4];
        time.copy_from_slice(&header[TIME]);
        json!({
            "block_hash": BlockHash(sha256d(header)).to_string(),
            "block_height": height,
            "block_time": u32::from_le_bytes(time),
            "confirmed": true,
        })
    }
}
