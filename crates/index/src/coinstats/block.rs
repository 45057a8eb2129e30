//! What one block changes in the coin statistics: Core's `CoinStatsIndex::CustomAppend`. Pure.
//!
//! Input: a block with the coins it spent. Output: the sums of this block alone, and a MuHash of the coins it created
//! and spent. All of it can be added for a block that joins the chain and subtracted for one that leaves it.

use lydian_consensus::deployment::is_bip30_unspendable;
use lydian_consensus::utxo_hash::{bogosize, write_coin};
use lydian_consensus::{CoinRef, Params, block_subsidy};
use lydian_engine::BlockWithSpent;
use lydian_hash::{Elements, MuHash3072};
use lydian_primitives::{Height, OutPoint};
use lydian_script::is_unspendable;
use std::collections::HashSet;

/// What a block changes.
#[derive(Clone, Debug)]
pub(super) struct BlockStats {
    pub(super) sums: Sums,
    pub(super) muhash: MuHash3072,
}

/// The sums, of a block or of a chain. The outputs of one block can be more than 2^63 satoshis together, if its
/// transactions spend each other's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) coins: i64,
    pub(super) bogosize: i64,
    pub(super) total: i128,
    pub(super) subsidy: i128,
    pub(super) prevouts_spent: i128,
    pub(super) new_outputs_ex_coinbase: i128,
    pub(super) coinbase: i128,
    pub(super) genesis: i128,
    pub(super) bip30: i128,
    pub(super) scripts: i128,
    pub(super) unclaimed: i128,
}

impl Sums {
    pub(super) fn add(&mut self, other: &Sums) {
        self.coins += other.coins;
        self.bogosize += other.bogosize;
        self.amounts_mut().into_iter().zip(other.amounts()).for_each(|(sum, more)| *sum += more);
    }

    pub(super) fn subtract(&mut self, other: &Sums) {
        self.coins -= other.coins;
        self.bogosize -= other.bogosize;
        self.amounts_mut().into_iter().zip(other.amounts()).for_each(|(sum, less)| *sum -= less);
    }

    /// The amounts, in the order of the files.
    pub(super) fn amounts(&self) -> [i128; AMOUNTS] {
        [
            self.total,
            self.subsidy,
            self.prevouts_spent,
            self.new_outputs_ex_coinbase,
            self.coinbase,
            self.genesis,
            self.bip30,
            self.scripts,
            self.unclaimed,
        ]
    }

    pub(super) fn amounts_mut(&mut self) -> [&mut i128; AMOUNTS] {
        [
            &mut self.total,
            &mut self.subsidy,
            &mut self.prevouts_spent,
            &mut self.new_outputs_ex_coinbase,
            &mut self.coinbase,
            &mut self.genesis,
            &mut self.bip30,
            &mut self.scripts,
            &mut self.unclaimed,
        ]
    }

    /// A coin more or less (`sign` 1 or -1).
    fn count(&mut self, coin: CoinRef<'_>, sign: i64) {
        self.coins += sign;
        self.bogosize += sign * i64::try_from(bogosize(coin)).unwrap_or(i64::MAX);
        self.total += i128::from(sign) * i128::from(coin.value.0);
    }
}

/// The number of amounts in [`Sums`].
pub(super) const AMOUNTS: usize = 9;

/// The changes of a block.
pub(super) fn block_stats(block: &BlockWithSpent<'_>, params: &Params) -> BlockStats {
    let (height, hash) = (block.height, block.block.hash());
    let subsidy = i128::from(block_subsidy(height, params).0);
    let mut sums = Sums { subsidy, ..Sums::default() };
    let mut muhash = MuHash3072::new();
    if height == Height(0) {
        sums.genesis = subsidy;
        return BlockStats { sums, muhash };
    }
    // A coin that is created and spent in the same block changes nothing in the MuHash.
    let inputs = || block.block.txs().filter(|tx| !tx.is_coinbase()).flat_map(|tx| tx.inputs());
    let own = inputs().zip(block.spent).filter(|(_, coin)| coin.height == height);
    let own: HashSet<OutPoint> = own.map(|(input, _)| input.prevout).collect();
    let (mut bytes, mut inserted, mut removed) = (Vec::new(), Elements::new(), Elements::new());
    let mut spent = block.spent.iter();
    for tx in block.block.txs() {
        let is_coinbase = tx.is_coinbase();
        if is_coinbase && is_bip30_unspendable(height, &hash) {
            // As Core, whatever the outputs are.
            sums.bip30 += subsidy;
            continue;
        }
        for (vout, output) in (0..).zip(tx.outputs()) {
            let value = i128::from(output.value.0);
            if is_unspendable(output.script_pubkey) {
                sums.scripts += value;
                continue;
            }
            let coin = CoinRef { value: output.value, script_pubkey: output.script_pubkey, height, is_coinbase };
            let outpoint = OutPoint { txid: tx.txid(), vout };
            if own.is_empty() || !own.contains(&outpoint) {
                bytes.clear();
                write_coin(&outpoint, coin, &mut bytes);
                inserted.push(&[&bytes]);
            }
            sums.count(coin, 1);
            *if is_coinbase { &mut sums.coinbase } else { &mut sums.new_outputs_ex_coinbase } += value;
        }
        for input in tx.inputs().filter(|_| !is_coinbase) {
            let Some(coin) = spent.next() else { panic!("a block comes with the coins it spent") };
            if coin.height < height {
                bytes.clear();
                write_coin(&input.prevout, coin.as_ref(), &mut bytes);
                removed.push(&[&bytes]);
            }
            sums.count(coin.as_ref(), -1);
            sums.prevouts_spent += i128::from(coin.value.0);
        }
    }
    muhash.insert_many(&inserted).remove_many(&removed);
    // What the miner could have taken and did not: neither in outputs nor unspendable by the rules above.
    let taken = sums.new_outputs_ex_coinbase + sums.coinbase + sums.bip30 + sums.scripts;
    sums.unclaimed = sums.prevouts_spent + subsidy - taken;
    BlockStats { sums, muhash }
}
