//! The answers that follow from the blocks of the preset `scale`.
//!
//! Input: the chain. Output: the long history, its coins, and the coin of each of the other scripts. Cost: one pass
//! over the blocks; some 150 bytes for each transaction of the long history.

use crate::error::LabError;
use lydian_chains::chain_files::ChainFiles;
use lydian_chains::presets::scale::{long_script, witness_script};
use lydian_chains::targets::scripthash;
use lydian_chains::walk::walk;
use lydian_chains::wallet::script::p2wsh;
use lydian_hash::Sha256;
use lydian_primitives::{OutPoint, Txid};
use serde_json::Value;
use std::collections::HashMap;

/// A coin of the long history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongCoin {
    pub height: u32,
    pub outpoint: OutPoint,
    pub value: i64,
}

#[derive(Debug)]
pub struct Expected {
    /// The protocol's name of the script with the long history.
    pub long: String,
    /// In the order of the chain.
    pub history: Vec<(u32, Txid)>,
    /// The same.
    pub coins: Vec<LongCoin>,
    /// The coin of each of the other scripts, with its height.
    pub others: Vec<(u32, OutPoint)>,
}

impl Expected {
    pub fn of(chain: &ChainFiles, scripts: u32) -> Result<Expected, LabError> {
        let long = long_script();
        let numbers: HashMap<Vec<u8>, usize> =
            (0..scripts).zip(0..).map(|(number, at)| (p2wsh(&witness_script(number)), at)).collect();
        let mut others: Vec<Option<(u32, OutPoint)>> = vec![None; numbers.len()];
        let mut history = Vec::new();
        let mut coins: Vec<Option<LongCoin>> = Vec::new();
        let mut places: HashMap<OutPoint, usize> = HashMap::new();
        walk(chain, &mut |block| {
            for tx in block.txs() {
                let spent: Vec<usize> = tx.inputs().filter_map(|input| places.remove(&input.prevout)).collect();
                let mut is_touched = !spent.is_empty();
                spent.iter().for_each(|&at| coins[at] = None);
                for (outpoint, output) in block.coins(&tx) {
                    if output.script_pubkey == long {
                        is_touched = true;
                        places.insert(outpoint, coins.len());
                        coins.push(Some(LongCoin { height: block.height, outpoint, value: output.value.0 }));
                    } else if let Some(&at) = numbers.get(output.script_pubkey) {
                        others[at] = Some((block.height, outpoint));
                    }
                }
                if is_touched {
                    history.push((block.height, tx.txid()));
                }
            }
            Ok(())
        })?;
        let others: Option<Vec<_>> = others.into_iter().collect();
        let others = others.ok_or_else(|| LabError::Usage("the chain lacks some of its scripts".to_owned()))?;
        Ok(Expected { long: scripthash(&long), history, coins: coins.into_iter().flatten().collect(), others })
    }

    /// A height in the middle of the long history.
    pub fn middle(&self) -> u32 {
        self.history.get(self.history.len() / 2).map_or(0, |(height, _)| *height)
    }
}

/// The protocol's status: SHA-256 of `txid:height:` of each transaction.
#[derive(Debug, Default)]
pub struct StatusText(Option<Sha256>);

impl StatusText {
    pub fn add(&mut self, txid: &Txid, height: i64) {
        self.0.get_or_insert_with(Sha256::new).update(format!("{txid}:{height}:").as_bytes());
    }

    /// `null` for a script without transactions.
    pub fn finish(self) -> Value {
        self.0.map_or(Value::Null, |hash| lydian_primitives::to_hex(&hash.finalize()).into())
    }
}
