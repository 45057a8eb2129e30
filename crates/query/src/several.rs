//! Transactions of several scripts together, and what each changes in their balance.
//!
//! Cost: the lists of one script after the other are in memory; of each, the transactions that may be on the page are
//! kept. A summary takes the values of outputs that are spent by now, from the transactions that created them.

use crate::details::{Detailed, Found};
use crate::error::QueryError;
use crate::query::{Query, TRIES_MAX, View, transactions_of};
use crate::source::{BlockPlace, Located, PoolScript, ScriptIndex, Taken};
use lydian_engine::Tip;
use lydian_index::{OutputFate, ScriptHash, ScriptOutput};
use lydian_primitives::{BlockHash, Txid};
use std::collections::{BTreeMap, HashSet};

/// What a transaction of the chain changes in the balance of some scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryEntry {
    pub txid: Txid,
    pub block: BlockPlace,
    /// Its position in the block.
    pub position: u32,
    /// In satoshis.
    pub value: i64,
}

/// Transactions of scripts, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub entries: Vec<SummaryEntry>,
    /// How many transactions the chain has of the scripts, those of two scripts counted twice.
    pub total: usize,
}

/// How often scripts are asked for that were not on the same block. During a sync they never may be.
const SAME_TIP_TRIES_MAX: u32 = 3;

/// Where a page begins.
#[derive(Clone, Copy, Debug)]
enum Start {
    /// With the newest.
    All,
    /// After a transaction of the mempool.
    InPool(Txid),
    /// Below a number.
    Below(u32),
}

impl Start {
    fn below(self) -> u32 {
        match self {
            Start::Below(number) => number,
            Start::All | Start::InPool(_) => u32::MAX,
        }
    }
}

/// What one moment has of several scripts.
#[derive(Debug)]
struct Gathered<T> {
    of_scripts: Vec<T>,
    /// For each script.
    pools: Vec<PoolScript>,
    epoch: u64,
    /// `None`: every script is on the same block. Otherwise only blocks up to this height are on all.
    up_to: Option<u32>,
}

/// A change of a balance.
#[derive(Clone, Copy, Debug)]
struct Change {
    number: u32,
    is_spent: bool,
    worth: Worth,
}

/// The value of an output.
#[derive(Clone, Copy, Debug)]
enum Worth {
    Known(i64),
    /// That of the output at this place: number and vout.
    At(u32, u32),
}

impl Query {
    /// Where a page after a transaction begins.
    fn start(&self, after: Option<&Txid>) -> Result<Start, QueryError> {
        let Some(txid) = after else { return Ok(Start::All) };
        if self.pool().transaction(txid).is_some() {
            return Ok(Start::InPool(*txid));
        }
        let found = self.locate(txid)?;
        found.map(|found| Start::Below(found.number)).ok_or(QueryError::NoTransaction(*txid))
    }

    /// Asks for scripts, one at a time. `None` if blocks left the index meanwhile.
    fn gather<T>(
        &self,
        scripts: &[ScriptHash],
        make: impl Fn(&[ScriptOutput]) -> T,
    ) -> Result<Option<Gathered<T>>, QueryError> {
        let mut tries = 1;
        loop {
            let (mut of_scripts, mut pools, mut tips, mut epochs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            for script in scripts {
                let (of_script, pool, tip, epoch) = self
                    .with_view(script, |_, View { outputs, pool, tip, epoch }| {
                        Ok(Some((make(&outputs), pool, tip, epoch)))
                    })?;
                of_scripts.push(of_script);
                pools.push(pool);
                tips.push(tip);
                epochs.push(epoch);
            }
            let is_same = |tips: &[Option<Tip>]| tips.windows(2).all(|pair| pair[0] == pair[1]);
            let epoch = epochs.first().copied().unwrap_or(self.index()?.epoch());
            if epochs.iter().any(|other| *other != epoch) {
                return Ok(None);
            }
            if is_same(&tips) {
                return Ok(Some(Gathered { of_scripts, pools, epoch, up_to: None }));
            }
            if tries == SAME_TIP_TRIES_MAX {
                // No block has left, so that what is below the lowest tip is that of one moment.
                let lowest = tips.iter().map(|tip| tip.map_or(0, |tip| tip.height.0)).min();
                return Ok(Some(Gathered { of_scripts, pools: Vec::new(), epoch, up_to: lowest }));
            }
            tries += 1;
        }
    }

    /// Transactions of scripts, each once: those of the mempool, script by script, then those of the chain. `count`:
    /// the most of both together.
    pub fn page_of_several(
        &self,
        scripts: &[ScriptHash],
        count: usize,
        after: Option<&Txid>,
    ) -> Result<Vec<Detailed>, QueryError> {
        let index = self.index()?;
        for _ in 0..TRIES_MAX {
            let start = self.start(after)?;
            let make = |outputs: &[ScriptOutput]| newest(&transactions_of(outputs), start.below(), count);
            let Some(gathered) = self.gather(scripts, make)? else { continue };
            let Some(mut found) = self.pooled(&gathered.pools, start, count) else { continue };
            let numbers = newest_of(index, gathered.of_scripts, gathered.up_to, count - found.len());
            let located: Option<Vec<Located>> = index.located(&numbers)?.into_iter().collect();
            let Some(located) = located.filter(|_| index.epoch() == gathered.epoch) else { continue };
            found.extend(located.into_iter().map(Found::from));
            return self.with_spent(found);
        }
        Err(QueryError::Moving)
    }

    /// `None` if one of them left the mempool.
    fn pooled(&self, pools: &[PoolScript], start: Start, count: usize) -> Option<Vec<Found>> {
        let rows = pools.iter().flat_map(|pool| pool.transactions.iter().rev());
        let mut seen: HashSet<Txid> = HashSet::new();
        let txids = rows.map(|(row, ..)| row.txid).filter(|txid| seen.insert(*txid));
        let txids: Vec<Txid> = match start {
            Start::All => txids.take(count).collect(),
            Start::InPool(after) => txids.skip_while(|txid| *txid != after).skip(1).take(count).collect(),
            Start::Below(_) => Vec::new(),
        };
        txids.iter().map(|txid| self.pool().transaction(txid).map(|(tx, _)| Found::new(tx, None))).collect()
    }

    /// What the transactions of the chain change in the balance of scripts together. After one of the mempool, it
    /// begins with the newest.
    pub fn summary(&self, scripts: &[ScriptHash], count: usize, after: Option<&Txid>) -> Result<Summary, QueryError> {
        let index = self.index()?;
        for _ in 0..TRIES_MAX {
            let below = self.start(after)?.below();
            let Some(gathered) = self.gather(scripts, |outputs| changes_of(outputs, below, count))? else { continue };
            let total = gathered.of_scripts.iter().map(|(.., total)| total).sum();
            let (mut numbers, mut changes) = (Vec::new(), Vec::new());
            for (of_script, more, _) in gathered.of_scripts {
                numbers.push(of_script);
                changes.extend(more);
            }
            let numbers = newest_of(index, numbers, gathered.up_to, count);
            match self.entries(index, &numbers, changes) {
                // Its block has left meanwhile.
                Ok(None) | Err(QueryError::NoHeight { .. }) => continue,
                Err(error) => return Err(error),
                Ok(Some(entries)) if index.epoch() == gathered.epoch => return Ok(Summary { entries, total }),
                Ok(Some(_)) => continue,
            }
        }
        Err(QueryError::Moving)
    }

    /// `None` if one of the transactions is no longer where it was.
    fn entries(
        &self,
        index: &dyn ScriptIndex,
        numbers: &[u32],
        mut changes: Vec<Change>,
    ) -> Result<Option<Vec<SummaryEntry>>, QueryError> {
        let Some(least) = numbers.last() else { return Ok(Some(Vec::new())) };
        changes.retain(|change| change.number >= *least);
        let mut places: Vec<(u32, u32)> = changes
            .iter()
            .filter_map(|change| match change.worth {
                Worth::At(number, vout) => Some((number, vout)),
                Worth::Known(_) => None,
            })
            .collect();
        places.sort_unstable();
        places.dedup();
        let Some(values) = self.kept.sums.values(index, &places)? else { return Ok(None) };
        let value_of = |worth: Worth| match worth {
            Worth::Known(value) => value,
            Worth::At(number, vout) => {
                places.binary_search(&(number, vout)).ok().and_then(|at| values.get(at)).copied().unwrap_or(0)
            }
        };
        let mut sums: BTreeMap<u32, i64> = BTreeMap::new();
        for change in changes {
            let value = value_of(change.worth);
            *sums.entry(change.number).or_default() += if change.is_spent { -value } else { value };
        }
        let mut blocks: BTreeMap<u32, (BlockHash, u32)> = BTreeMap::new();
        let mut entries = Vec::with_capacity(numbers.len());
        let ascending: Vec<u32> = numbers.iter().rev().copied().collect();
        index.check_fetches(Taken::Txids, &ascending)?;
        for (number, found) in numbers.iter().zip(index.numbered(&ascending)?.into_iter().rev()) {
            let Some((found, position)) = found.zip(index.position_of(*number)) else { return Ok(None) };
            let height = found.height;
            let (hash, time) = match blocks.get(&height) {
                Some(block) => *block,
                None => {
                    let block = self.place(height)?;
                    *blocks.entry(height).or_insert((block.hash, block.time))
                }
            };
            let value = sums.get(number).copied().unwrap_or(0);
            entries.push(SummaryEntry { txid: found.txid, block: BlockPlace { height, hash, time }, position, value });
        }
        Ok(Some(entries))
    }
}

/// The last of these numbers that are below one, in their order.
fn newest(numbers: &[u32], below: u32, count: usize) -> Vec<u32> {
    let end = numbers.partition_point(|number| *number < below);
    numbers[end.saturating_sub(count)..end].to_vec()
}

/// The last numbers of several lists, the newest first.
fn newest_of(index: &dyn ScriptIndex, lists: Vec<Vec<u32>>, up_to: Option<u32>, count: usize) -> Vec<u32> {
    let mut numbers: Vec<u32> = lists.into_iter().flatten().collect();
    if let Some(up_to) = up_to {
        numbers.retain(|number| index.height_of(*number).is_some_and(|height| height <= up_to));
    }
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    numbers.dedup();
    numbers.truncate(count);
    numbers
}

/// The last transactions of a script below a number, what they change, and how many the script has.
fn changes_of(outputs: &[ScriptOutput], below: u32, count: usize) -> (Vec<u32>, Vec<Change>, usize) {
    let all = transactions_of(outputs);
    let numbers = newest(&all, below, count);
    let Some(least) = numbers.first().copied() else { return (numbers, Vec::new(), all.len()) };
    let is_asked = |number: u32| (least..below).contains(&number);
    let mut changes = Vec::new();
    for output in outputs {
        let (worth, spender) = match output.fate {
            OutputFate::Overwritten => continue,
            OutputFate::Unspent(value) => (Worth::Known(i64::try_from(value).unwrap_or(i64::MAX)), None),
            OutputFate::Spent(by) => (Worth::At(output.number, output.vout), Some(by)),
        };
        if is_asked(output.number) {
            changes.push(Change { number: output.number, is_spent: false, worth });
        }
        if let Some(number) = spender.filter(|by| is_asked(*by)) {
            changes.push(Change { number, is_spent: true, worth });
        }
    }
    (numbers, changes, all.len())
}
