//! What explorers ask: transactions with the outputs that they spend, pages of a script's transactions, sums, spenders.
//!
//! Cost: the bytes of each transaction that an answer names, and of those that it spends from; or, instead of the
//! latter, the undo data of its block, if they are not too large for that.

use crate::error::QueryError;
use crate::query::{Coin, Query, View, transactions_of};
use crate::source::{BlockPlace, Located, PoolRow, ScriptIndex, SpentOutput, Taken};
use crate::transactions::{input_of, spender};
use lydian_index::{OutputFate, ScriptHash};
use lydian_primitives::{BlockHash, OutPoint, Transaction, Txid};
use lydian_script::is_unspendable;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A transaction with what it spends.
#[derive(Clone, Debug)]
pub struct Detailed {
    pub tx: Arc<Transaction>,
    /// `None`: in the mempool, or in a block beside the active chain.
    pub block: Option<BlockPlace>,
    /// For each input; `None` for that of a coinbase, and for one that the active chain does not have.
    pub spent: Vec<Option<SpentOutput>>,
}

/// Which transactions of a script are asked for, the newest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Question<'a> {
    /// The most of the mempool.
    pub pool_max: usize,
    /// The most of the chain.
    pub chain_max: usize,
    /// Only what comes after this transaction.
    pub after: Option<&'a Txid>,
}

/// Transactions of a script, the newest first.
#[derive(Clone, Debug)]
pub struct Page {
    pub transactions: Vec<Detailed>,
    /// How many transactions the mempool and the chain have of the script.
    pub pool_total: usize,
    pub chain_total: usize,
}

/// Counts and sums of a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptStats {
    pub transactions: usize,
    pub funded_count: usize,
    /// In satoshis.
    pub funded_sum: i64,
    pub spent_count: usize,
    /// In satoshis.
    pub spent_sum: i64,
}

/// The input that spends an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spending {
    pub txid: Txid,
    pub vin: u32,
    /// `None`: in the mempool.
    pub block: Option<BlockPlace>,
}

/// A transaction, with its block if it is in the chain.
#[derive(Clone, Debug)]
pub struct Found {
    pub tx: Arc<Transaction>,
    pub block: Option<BlockPlace>,
    /// In the block, if that is known.
    position: Option<u32>,
}

impl Found {
    /// One of the mempool, or of a block whose undo data is not here.
    pub fn new(tx: Arc<Transaction>, block: Option<BlockPlace>) -> Found {
        Found { tx, block, position: None }
    }
}

impl From<Located> for Found {
    fn from(Located { block, position, tx, .. }: Located) -> Found {
        Found { tx: Arc::new(tx), block: Some(block), position }
    }
}

impl Query {
    /// The block of the active chain at a height.
    pub fn place(&self, height: u32) -> Result<BlockPlace, QueryError> {
        let header = self.header(height)?;
        Ok(BlockPlace { height, hash: header.hash(), time: header.time })
    }

    /// The block of a transaction of the chain, `None` for one of the mempool.
    pub fn place_of(&self, txid: &Txid) -> Result<Option<BlockPlace>, QueryError> {
        Ok(self.placed(txid)?.block)
    }

    /// A transaction of the mempool or of the chain, with its block.
    pub fn placed(&self, txid: &Txid) -> Result<Found, QueryError> {
        let in_pool = || self.pool().transaction(txid).map(|(tx, _)| Found::new(tx, None));
        if let Some(found) = in_pool() {
            return Ok(found);
        }
        // What left the mempool for a block meanwhile is found there, and the other way round.
        match self.locate(txid)? {
            Some(located) => Ok(located.into()),
            None => in_pool().ok_or(QueryError::NoTransaction(*txid)),
        }
    }

    /// A transaction of the mempool or of the chain, with what it spends.
    pub fn detailed(&self, txid: &Txid) -> Result<Detailed, QueryError> {
        let detailed = self.with_spent(vec![self.placed(txid)?])?.pop();
        detailed.ok_or(QueryError::NoTransaction(*txid))
    }

    /// Finds what transactions spend: in the undo data of their blocks, or by a look at each transaction that they
    /// spend from.
    pub fn with_spent(&self, found: Vec<Found>) -> Result<Vec<Detailed>, QueryError> {
        let mut known = self.spent_in_blocks(&found);
        let mut wanted: BTreeMap<Txid, Vec<(usize, usize, u32)>> = BTreeMap::new();
        for (at, Found { tx, .. }) in found.iter().enumerate().filter(|(at, _)| known[*at].is_none()) {
            for (input, spending) in tx.view().inputs().enumerate().filter(|(_, spending)| !spending.prevout.is_null())
            {
                let OutPoint { txid, vout } = spending.prevout;
                wanted.entry(txid).or_default().push((at, input, vout));
            }
        }
        // Inputs whose outputs are looked up are confirmed by many blocks, each of which may be pruned.
        self.check_fetches(wanted.keys())?;
        let mut all: Vec<Detailed> = found
            .into_iter()
            .zip(&mut known)
            .map(|(Found { tx, block, .. }, known)| Detailed {
                spent: known.take().unwrap_or_else(|| vec![None; tx.view().input_count()]),
                tx,
                block,
            })
            .collect();
        for (txid, inputs) in wanted {
            let parent = match self.transaction(&txid) {
                Ok(parent) => parent,
                // Spent beside the active chain.
                Err(QueryError::NoTransaction(_)) => continue,
                Err(error) => return Err(error),
            };
            let parent = parent.view();
            for (at, input, vout) in inputs.into_iter().filter(|(.., vout)| (*vout as usize) < parent.output_count()) {
                let output = parent.output(vout as usize);
                all[at].spent[input] =
                    Some(SpentOutput { value: output.value.0, script_pubkey: output.script_pubkey.into() });
            }
        }
        Ok(all)
    }

    /// What those of the transactions spend whose blocks have undo data that are worth reading.
    fn spent_in_blocks(&self, found: &[Found]) -> Vec<Option<Vec<Option<SpentOutput>>>> {
        let mut of_blocks: BTreeMap<BlockHash, Vec<(u32, usize)>> = BTreeMap::new();
        for (at, one) in found.iter().enumerate() {
            // The coinbase is the first.
            if let Some((block, position)) = one.block.zip(one.position.filter(|position| *position > 0)) {
                of_blocks.entry(block.hash).or_default().push((position, at));
            }
        }
        let mut all = vec![None; found.len()];
        for (hash, wanted) in of_blocks {
            let inputs = |(_, at): &(u32, usize)| found[*at].tx.view().inputs().map(|input| input.prevout.txid);
            let lookups: BTreeSet<Txid> = wanted.iter().flat_map(inputs).collect();
            let Some(undo) = self.kept.undos.get(self.chain(), &hash, lookups.len()) else { continue };
            for (position, at) in wanted {
                let Ok(Some(coins)) = undo.coins_of(position) else { continue };
                if coins.len() == found[at].tx.view().input_count() {
                    let spent = coins
                        .into_iter()
                        .map(|coin| SpentOutput { value: coin.value.0, script_pubkey: coin.script_pubkey });
                    all[at] = Some(spent.map(Some).collect());
                }
            }
        }
        all
    }

    /// Fails if the bytes of these transactions take more pruned blocks than the request may still have fetched.
    pub fn check_fetches<'a>(&self, txids: impl Iterator<Item = &'a Txid>) -> Result<(), QueryError> {
        let is_confirmed = |txid: &&Txid| self.pool().transaction(txid).is_none();
        let txids: Vec<Txid> = txids.filter(is_confirmed).copied().collect();
        if txids.is_empty() { Ok(()) } else { self.index()?.check_fetches_of(&txids) }
    }

    /// Transactions of a script: those of the mempool that came last, then those of the chain.
    pub fn page(&self, script: &ScriptHash, asked: Question<'_>) -> Result<Page, QueryError> {
        let (found, pool_total, chain_total) = self.with_view(script, |index, view| {
            let numbers = transactions_of(&view.outputs);
            let (pool_total, chain_total) = (view.pool.transactions.len(), numbers.len());
            let Some(found) = self.found(index, &view, &numbers, asked)? else { return Ok(None) };
            Ok(Some((found, pool_total, chain_total)))
        })?;
        Ok(Page { transactions: self.with_spent(found)?, pool_total, chain_total })
    }

    /// `None` if one of the transactions is no longer where it was.
    fn found(
        &self,
        index: &dyn ScriptIndex,
        view: &View,
        numbers: &[u32],
        asked: Question<'_>,
    ) -> Result<Option<Vec<Found>>, QueryError> {
        // The newest are the last.
        let (mut pool_end, mut chain_end) = (view.pool.transactions.len(), numbers.len());
        if let Some(after) = asked.after {
            match view.pool.transactions.iter().position(|(row, ..)| row.txid == *after) {
                Some(at) => pool_end = at,
                None => {
                    let number = index.locate(after)?.map(|found| found.number);
                    let at = number.and_then(|number| numbers.binary_search(&number).ok());
                    (pool_end, chain_end) = (0, at.unwrap_or(0));
                }
            }
        }
        let mut found: Vec<Found> = Vec::new();
        for (row, ..) in view.pool.transactions[..pool_end].iter().rev().take(asked.pool_max) {
            let Some((tx, _)) = self.pool().transaction(&row.txid) else { return Ok(None) };
            found.push(Found::new(tx, None));
        }
        let numbers: Vec<u32> = numbers[..chain_end].iter().rev().take(asked.chain_max).copied().collect();
        for one in index.located(&numbers)? {
            let Some(located) = one else { return Ok(None) };
            found.push(located.into());
        }
        Ok(Some(found))
    }

    /// The unspent outputs of a script, in the order of [`Query::coins`], with their blocks.
    pub fn placed_coins(&self, script: &ScriptHash) -> Result<Vec<(Coin, Option<BlockPlace>)>, QueryError> {
        self.steady(|_| {
            let mut places: BTreeMap<u32, BlockPlace> = BTreeMap::new();
            let mut place = |height: u32| match (height, places.get(&height)) {
                (0, _) => Ok(None),
                (_, Some(place)) => Ok(Some(*place)),
                (_, None) => self.place(height).map(|place| Some(*places.entry(height).or_insert(place))),
            };
            let coins = self.coins(script)?;
            let placed: Result<Vec<_>, QueryError> =
                coins.into_iter().map(|coin| Ok((coin, place(coin.height)?))).collect();
            match placed {
                // Its block has left meanwhile.
                Err(QueryError::NoHeight { .. }) => Ok(None),
                placed => placed.map(Some),
            }
        })
    }

    /// Counts and sums of a script in the chain, and what the mempool adds to them.
    pub fn stats(&self, script: &ScriptHash) -> Result<(ScriptStats, ScriptStats), QueryError> {
        self.with_view(script, |index, view| {
            let Some(chain) = self.chain_stats(index, script, &view)? else { return Ok(None) };
            let mut pool = ScriptStats { transactions: view.pool.transactions.len(), ..ScriptStats::default() };
            for row in view.pool.transactions.iter().flat_map(|(_, _, rows)| rows) {
                match *row {
                    PoolRow::Pays { value, .. } => {
                        pool.funded_count += 1;
                        pool.funded_sum += value;
                    }
                    PoolRow::Spends { value, .. } => {
                        pool.spent_count += 1;
                        pool.spent_sum += value;
                    }
                }
            }
            Ok(Some((chain, pool)))
        })
    }

    /// The input that spends each output of a transaction.
    pub fn spendings(&self, txid: &Txid) -> Result<Vec<Option<Spending>>, QueryError> {
        self.steady(|index| {
            let (number, tx) = match self.pool().transaction(txid) {
                Some((tx, _)) => (None, tx),
                None => match self.find(txid)? {
                    Some((number, _, tx)) => (Some(number), Arc::new(tx)),
                    None => return Err(QueryError::NoTransaction(*txid)),
                },
            };
            let outputs = 0..u32::try_from(tx.view().output_count()).unwrap_or(u32::MAX);
            let outpoints: Vec<OutPoint> = outputs.map(|vout| OutPoint { txid: *txid, vout }).collect();
            // The mempool first: what leaves it for a block meanwhile is found there.
            let Some(mut spendings) = self.in_pool(&outpoints) else { return Ok(None) };
            let Some(number) = number else { return Ok(Some(spendings)) };
            let mut scripts: BTreeMap<ScriptHash, Vec<u32>> = BTreeMap::new();
            for (vout, output) in (0..).zip(tx.view().outputs()) {
                if !is_unspendable(output.script_pubkey) {
                    scripts.entry(ScriptHash::of(output.script_pubkey)).or_default().push(vout);
                }
            }
            let mut spent: Vec<(u32, u32)> = Vec::new();
            for (script, vouts) in scripts {
                let places: Vec<(u32, u32)> = vouts.iter().map(|vout| (number, *vout)).collect();
                for (vout, fate) in vouts.into_iter().zip(index.fates(&script, &places)?) {
                    let Some(OutputFate::Spent(by)) = fate else { continue };
                    spent.push((by, vout));
                }
            }
            spent.sort_unstable();
            let numbers: Vec<u32> = spent.iter().map(|(by, _)| *by).collect();
            index.check_fetches(Taken::Bytes, &numbers)?;
            for (by, vout) in spent {
                let found = spender(index, by, &OutPoint { txid: *txid, vout })?;
                let place = spendings.get_mut(vout as usize);
                let Some(((found, vin), place)) = found.zip(place) else { return Ok(None) };
                *place = Some(Spending { txid: found.tx.view().txid(), vin, block: Some(found.block) });
            }
            index.check()?;
            Ok(Some(spendings))
        })
    }

    /// `None` if a transaction left the mempool meanwhile.
    fn in_pool(&self, outpoints: &[OutPoint]) -> Option<Vec<Option<Spending>>> {
        let one = |(outpoint, spender): (&OutPoint, Option<(Txid, bool)>)| {
            let Some((txid, _)) = spender else { return Some(None) };
            let (tx, _) = self.pool().transaction(&txid)?;
            Some(Some(Spending { txid, vin: input_of(&tx, outpoint)?, block: None }))
        };
        outpoints.iter().zip(self.pool().spenders(outpoints)).map(one).collect()
    }

    /// `None` if a transaction is no longer where it was.
    fn chain_stats(
        &self,
        index: &dyn ScriptIndex,
        script: &ScriptHash,
        view: &View,
    ) -> Result<Option<ScriptStats>, QueryError> {
        let transactions = transactions_of(&view.outputs).len();
        let mut stats = ScriptStats { transactions, ..ScriptStats::default() };
        for output in &view.outputs {
            match output.fate {
                OutputFate::Overwritten => continue,
                OutputFate::Unspent(value) => stats.funded_sum += i64::try_from(value).unwrap_or(i64::MAX),
                OutputFate::Spent(_) => stats.spent_count += 1,
            }
            stats.funded_count += 1;
        }
        let Some(spent) = self.kept.sums.spent(index, script, view.epoch, &view.outputs)? else { return Ok(None) };
        stats.spent_sum = spent;
        stats.funded_sum += spent;
        Ok(Some(stats))
    }
}
