//! History and coins of a script; in parts for one with very many transactions.
//!
//! Input: the numbers of a script's transactions, from one view. Output: the answer, [`PART`] entries at a time, so
//! that memory holds the numbers (4 bytes each; 16 for a coin) and one part. What the last blocks have is looked up at
//! the start. Blocks below it do not leave the chain in an ordinary reorganisation: each part checks that they did
//! not, and an answer whose blocks left ends with [`QueryError::Moving`].

use crate::error::QueryError;
use crate::limits::FETCHES_PER_REQUEST_MAX;
use crate::query::{Coin, Confirmed, PoolEntry, Query, View, all_of, coins_of_pool, entries_of, transactions_of};
use crate::source::{PoolRow, ScriptIndex, Taken};
use crate::txids::PLACES;
use lydian_index::{OutputFate, ScriptHash, UNSEALED_BLOCKS};
use lydian_primitives::{BlockHash, Height, OutPoint};
use std::collections::HashSet;
use std::ops::Range;

/// Transactions of a part.
pub const PART: usize = 2_048;

/// The txids of a longer list are not kept if they are found fast without: an eighth of those that are kept.
const KEPT_OF_LIST_MAX: usize = PLACES / 8;

/// What a part is made of: a transaction of the history, or an output of it.
#[derive(Clone, Copy, Debug)]
struct Item {
    number: u32,
    vout: u32,
    value: u64,
}

/// The chain up to a block: numbers of its transactions mean the same as long as the block is in the chain.
#[derive(Clone, Copy, Debug)]
struct Ground {
    height: u32,
    hash: BlockHash,
}

/// Entries of the chain, to be looked up in parts.
#[derive(Debug)]
struct Entries<T> {
    items: Vec<T>,
    next: usize,
    /// Items from here on are those of the last blocks; they were looked up.
    known_from: usize,
    known: Vec<Confirmed>,
    ground: Option<Ground>,
}

/// The transactions of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// In the order of the chain.
    pub confirmed: Vec<Confirmed>,
    /// Those without unconfirmed inputs first, then by txid as it is written.
    pub pool: Vec<PoolEntry>,
}

/// A history in parts.
#[derive(Debug)]
pub struct HistoryParts {
    entries: Entries<u32>,
    /// The transactions of the mempool, in the protocol's order.
    pub pool: Vec<PoolEntry>,
}

/// The coins of a script in parts.
#[derive(Debug)]
pub struct CoinParts {
    entries: Entries<Item>,
    /// What the mempool spends.
    spent: HashSet<OutPoint>,
    /// Those of the mempool.
    pub pool: Vec<Coin>,
}

trait Numbered {
    fn number(&self) -> u32;
}

impl Numbered for u32 {
    fn number(&self) -> u32 {
        *self
    }
}

impl Numbered for Item {
    fn number(&self) -> u32 {
        self.number
    }
}

impl<T: Numbered + Copy> Entries<T> {
    /// `None` if the chain moved. An error if all parts together need too many pruned blocks.
    fn new(query: &Query, index: &dyn ScriptIndex, items: Vec<T>) -> Result<Option<Entries<T>>, QueryError> {
        if items.len() > FETCHES_PER_REQUEST_MAX {
            let numbers: Vec<u32> = items.iter().map(Numbered::number).collect();
            index.check_fetches(Taken::Txids, &numbers)?;
        }
        if items.len() <= PART {
            let known = look_up(index, &items, items.len())?;
            return Ok(known.map(|known| Entries { items, next: 0, known_from: 0, known, ground: None }));
        }
        let tip = query.chain().tip()?.height.0;
        let ground = match tip.checked_sub(UNSEALED_BLOCKS) {
            Some(height) => {
                let Some(hash) = query.chain().hashes(Height(height), 1)?.pop() else { return Ok(None) };
                Some(Ground { height, hash })
            }
            None => None,
        };
        let is_deep = |item: &T| {
            let height = index.height_of(item.number());
            ground.as_ref().is_some_and(|ground| height.is_some_and(|height| height <= ground.height))
        };
        let known_from = items.partition_point(is_deep);
        let known = look_up(index, &items[known_from..], items.len())?;
        Ok(known.map(|known| Entries { items, next: 0, known_from, known, ground }))
    }

    /// The next entries with their transactions; none at the end.
    fn part(&mut self, query: &Query) -> Result<Vec<(T, Confirmed)>, QueryError> {
        let end = match self.next < self.known_from {
            true => (self.next + PART).min(self.known_from),
            false => (self.next + PART).min(self.items.len()),
        };
        let range = self.next..end;
        let Some(items) = self.items.get(range.clone()) else { return Ok(Vec::new()) };
        let found = match range.start.checked_sub(self.known_from) {
            Some(first) => self.known.get(first..first + range.len()).map(<[Confirmed]>::to_vec),
            None => {
                let found = look_up(query.index()?, items, self.items.len())?;
                found.filter(|_| self.ground.is_some())
            }
        };
        let Some(found) = found else { return Err(QueryError::Moving) };
        if let Some(ground) = self.ground.filter(|_| range.start < self.known_from)
            && query.chain().hashes(Height(ground.height), 1)?.first() != Some(&ground.hash)
        {
            return Err(QueryError::Moving);
        }
        let part = items.iter().copied().zip(found).collect();
        self.next = end;
        Ok(part)
    }
}

/// The transactions of items in ascending order of their numbers, which may repeat. `all` is the length of their list.
fn look_up<T: Numbered>(
    index: &dyn ScriptIndex,
    items: &[T],
    all: usize,
) -> Result<Option<Vec<Confirmed>>, QueryError> {
    let mut numbers: Vec<u32> = items.iter().map(Numbered::number).collect();
    numbers.dedup();
    let found = if all > KEPT_OF_LIST_MAX { index.numbered_once(&numbers)? } else { index.numbered(&numbers)? };
    let Some(found) = all_of(found) else { return Ok(None) };
    let mut by_number = numbers.iter().zip(found).peekable();
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        while by_number.next_if(|(number, _)| **number < item.number()).is_some() {}
        let Some((_, tx)) = by_number.peek() else { return Ok(None) };
        all.push(*tx);
    }
    Ok(Some(all))
}

impl HistoryParts {
    /// Transactions of the chain in ascending order of their numbers. `None` if the chain moved.
    pub(crate) fn new(
        query: &Query,
        index: &dyn ScriptIndex,
        numbers: Vec<u32>,
        pool: Vec<PoolEntry>,
    ) -> Result<Option<HistoryParts>, QueryError> {
        Ok(Entries::new(query, index, numbers)?.map(|entries| HistoryParts { entries, pool }))
    }

    /// The number of all entries.
    pub fn count(&self) -> usize {
        self.entries.items.len() + self.pool.len()
    }

    /// The next transactions of the chain; none at the end.
    pub fn part(&mut self, query: &Query) -> Result<Vec<Confirmed>, QueryError> {
        Ok(self.entries.part(query)?.into_iter().map(|(_, tx)| tx).collect())
    }
}

impl CoinParts {
    /// The number of coins at most.
    pub fn count(&self) -> usize {
        self.entries.items.len() + self.pool.len()
    }

    /// The next coins of the chain, without those that the mempool spends; `None` at the end.
    pub fn part(&mut self, query: &Query) -> Result<Option<Vec<Coin>>, QueryError> {
        let part = self.entries.part(query)?;
        if part.is_empty() {
            return Ok(None);
        }
        let coin = |(item, tx): (Item, Confirmed)| Coin {
            txid: tx.txid,
            vout: item.vout,
            value: i64::try_from(item.value).unwrap_or(i64::MAX),
            height: tx.height,
        };
        let is_left = |coin: &Coin| !self.spent.contains(&OutPoint { txid: coin.txid, vout: coin.vout });
        Ok(Some(part.into_iter().map(coin).filter(is_left).collect()))
    }
}

impl Query {
    /// The transactions that pay to a script or spend from it, at these heights of the chain, and those of the mempool.
    pub fn history_parts(&self, script: &ScriptHash, heights: Range<u32>) -> Result<HistoryParts, QueryError> {
        self.with_view(script, |index, View { outputs, pool, .. }| {
            let mut numbers = transactions_of(&outputs);
            drop(outputs);
            if heights.start > 0 || heights.end < u32::MAX {
                numbers.retain(|number| index.height_of(*number).is_some_and(|height| heights.contains(&height)));
            }
            HistoryParts::new(self, index, numbers, entries_of(&pool))
        })
    }

    /// The same, whole.
    pub fn history(&self, script: &ScriptHash, heights: Range<u32>) -> Result<History, QueryError> {
        let mut parts = self.history_parts(script, heights)?;
        let mut confirmed = Vec::with_capacity(parts.entries.items.len());
        loop {
            let part = parts.part(self)?;
            if part.is_empty() {
                return Ok(History { confirmed, pool: parts.pool });
            }
            confirmed.extend(part);
        }
    }

    /// The unspent outputs of a script in the order of the chain, then those of the mempool. What the mempool spends is
    /// spent.
    pub fn coins(&self, script: &ScriptHash) -> Result<Vec<Coin>, QueryError> {
        let mut parts = self.coin_parts(script)?;
        let mut coins = Vec::with_capacity(parts.count());
        while let Some(part) = parts.part(self)? {
            coins.extend(part);
        }
        coins.append(&mut parts.pool);
        Ok(coins)
    }

    /// The same as [`Query::coins`], in parts.
    pub fn coin_parts(&self, script: &ScriptHash) -> Result<CoinParts, QueryError> {
        self.with_view(script, |index, View { outputs, pool, .. }| {
            let unspent = outputs.iter().filter_map(|output| match output.fate {
                OutputFate::Unspent(value) => Some(Item { number: output.number, vout: output.vout, value }),
                OutputFate::Spent(_) | OutputFate::Overwritten => None,
            });
            let items: Vec<Item> = unspent.collect();
            let spent = pool.transactions.iter().flat_map(|(_, _, rows)| rows).filter_map(|row| match row {
                PoolRow::Spends { prevout, .. } => Some(*prevout),
                PoolRow::Pays { .. } => None,
            });
            let spent: HashSet<OutPoint> = spent.collect();
            let entries = Entries::new(self, index, items)?;
            Ok(entries.map(|entries| CoinParts { entries, pool: coins_of_pool(&pool, &spent), spent }))
        })
    }
}
