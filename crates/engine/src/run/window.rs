//! The window over one partition of the coins: the changes of blocks that are funded but not yet applied.
//!
//! Input: blocks in height order, to fund and, once they are committed, to apply. Output: the coin of each input, as of
//! that block: from the window, else from the store, which has applied blocks only. Invariants: an outpoint has one
//! entry, its latest change; the entry of a block that is applied counts no more. If a block fails, the whole window is
//! dropped once all blocks below are applied; nothing else needs to be undone. Cost: one lookup in memory per outpoint,
//! and a pass over all entries whenever the table is full, which removes those that count no more: looking each of them
//! up takes longer. An entry has 16 bytes and points into its block for the outpoint and the coin, so that the table of
//! a partition fits in a core's cache.

use super::job::{Answers, Job};
use hashbrown::HashTable;
use lydian_coins::{Coins, CoinsError, Key};
use lydian_consensus::Coin;
use std::collections::VecDeque;
use std::sync::Arc;

/// One partition of the window. Used by one task at a time.
#[derive(Debug)]
pub(crate) struct Window {
    partition: usize,
    /// Those made by blocks below `first` count no more.
    entries: HashTable<Entry>,
    /// Blocks funded and not applied, in height order.
    jobs: VecDeque<Arc<Job>>,
    /// Index in the run of the first block that is not applied.
    first: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    /// Index in the run of the block that made the entry.
    job: u32,
    change: Change,
}

/// A change of a coin: an index among those that its block creates or spends in this partition, with [`SPENT`] for the
/// latter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Change(u32);

/// No index has this bit: a block has at most 32 MB.
const SPENT: u32 = 1 << 31;

impl Change {
    fn spent(index: u32) -> Change {
        Change(index | SPENT)
    }

    /// The index of the created coin, unless it is spent.
    fn created(self) -> Option<usize> {
        (self.0 & SPENT == 0).then_some(self.0 as usize)
    }
}

/// The lookup of an input that only the store can answer.
struct Open {
    /// Index among the blocks of the task.
    job: usize,
    flat: u32,
}

/// A lookup for BIP-0030 that only the store can answer.
struct OpenRepeat {
    job: usize,
    tx: u32,
}

impl Window {
    pub(crate) fn new(partition: usize) -> Window {
        Window { partition, entries: HashTable::new(), jobs: VecDeque::new(), first: 0 }
    }

    /// Finds the coins that blocks spend in this partition. The store is queried once for all of them.
    pub(crate) fn fund(&mut self, jobs: &[Arc<Job>], coins: &Coins) -> Result<(), CoinsError> {
        let mut answers: Vec<Answers> = jobs.iter().map(|_| Answers::default()).collect();
        let spends = || jobs.iter().map(|job| job.links.spends(self.partition).len());
        let count = spends().sum();
        let (mut keys, mut open) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (answers, count) in answers.iter_mut().zip(spends()) {
            answers.coins.reserve(count);
        }
        let kept = jobs.iter().map(|job| job.links.creates(self.partition).len());
        self.make_room(count + kept.sum::<usize>());
        let (mut repeat_keys, mut open_repeats) = (Vec::new(), Vec::new());
        for (index, job) in jobs.iter().enumerate() {
            self.jobs.push_back(Arc::clone(job));
            if job.links.is_bip30_checked {
                for create in job.links.creates(self.partition) {
                    let key = create.key();
                    match self.find(&key) {
                        Some(entry) if entry.change.created().is_some() => answers[index].repeats(create.tx),
                        Some(_) => {}
                        None => {
                            repeat_keys.push(key);
                            open_repeats.push(OpenRepeat { job: index, tx: create.tx });
                        }
                    }
                }
            }
            for (change, spend) in (0..).map(Change::spent).zip(job.links.spends(self.partition)) {
                let key = spend.key();
                match self.enter(&key, number(job), change) {
                    Some(entry) => answers[index].coins.push((spend.flat, self.coin(&entry))),
                    None => {
                        keys.push(key);
                        open.push(Open { job: index, flat: spend.flat });
                    }
                }
            }
            let creates = (0..).map(Change).zip(job.links.creates(self.partition));
            for (change, create) in creates.filter(|(_, create)| create.is_kept) {
                self.enter(&create.key(), number(job), change);
            }
        }
        let mut found = Vec::with_capacity(keys.len());
        coins.get(self.partition, &keys, &mut found)?;
        assert_eq!(found.len(), keys.len(), "the store answers every lookup");
        for (open, coin) in open.into_iter().zip(found) {
            answers[open.job].coins.push((open.flat, coin));
        }
        let mut is_there = Vec::with_capacity(repeat_keys.len());
        coins.contains(self.partition, &repeat_keys, &mut is_there)?;
        assert_eq!(is_there.len(), repeat_keys.len(), "the store answers every lookup");
        for (open, _) in open_repeats.into_iter().zip(is_there).filter(|(_, is_there)| *is_there) {
            answers[open.job].repeats(open.tx);
        }
        jobs.iter().zip(answers).for_each(|(job, answers)| job.answer(answers));
        Ok(())
    }

    /// Applies committed blocks, the lowest of the window, to the store.
    pub(crate) fn apply(&mut self, count: usize, coins: &Coins) -> Result<(), CoinsError> {
        for _ in 0..count {
            let Some(job) = self.jobs.pop_front() else { panic!("only what was funded is applied") };
            let (block, height) = (job.checked.block(), job.checked.height());
            let spends = job.links.spends(self.partition);
            let creates = job.links.creates(self.partition).iter().filter(|create| create.is_kept);
            let coin = |create| job.links.coin(self.partition, create, block, height);
            let created = creates.map(|create| (create.key(), coin(create)));
            coins.apply(self.partition, spends.iter().map(|spend| spend.key()), created)?;
            self.first = number(&job) + 1;
        }
        Ok(())
    }

    fn find(&self, key: &Key) -> Option<&Entry> {
        self.entries.find(key.hash, |entry| is_latest(entry, key, &self.jobs, (self.partition, self.first)))
    }

    /// Enters a change. Returns the one before it, if that is not applied. An entry that counts no more stays as it is,
    /// because the block that has its outpoint is gone.
    fn enter(&mut self, key: &Key, job: u32, change: Change) -> Option<Entry> {
        let new = Entry { hash: key.hash, job, change };
        let Window { partition, entries, jobs, first } = self;
        let is_same = |entry: &Entry| is_latest(entry, key, jobs, (*partition, *first));
        match entries.entry(key.hash, is_same, |entry| entry.hash) {
            hashbrown::hash_table::Entry::Occupied(mut entry) => Some(std::mem::replace(entry.get_mut(), new)),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                entry.insert(new);
                None
            }
        }
    }

    /// Makes room for a number of entries, at first by removing those that count no more.
    fn make_room(&mut self, count: usize) {
        if self.entries.capacity() - self.entries.len() >= count {
            return;
        }
        let first = self.first;
        self.entries.retain(|entry| entry.job >= first);
        // Half of the table is free then, so that passes over it stay rare.
        self.entries.reserve(self.entries.len() + count, |entry| entry.hash);
    }

    /// The coin of an entry, if a block of the window created it and none has spent it.
    fn coin(&self, entry: &Entry) -> Option<Coin> {
        let create = entry.change.created()?;
        let job = job_of(&self.jobs, entry);
        let create = &job.links.creates(self.partition)[create];
        Some(job.links.coin(self.partition, create, job.checked.block(), job.checked.height()).to_coin())
    }
}

/// Whether an entry counts and is that of a key.
#[inline]
fn is_latest(entry: &Entry, key: &Key, jobs: &VecDeque<Arc<Job>>, (partition, first): (usize, u32)) -> bool {
    if entry.hash != key.hash || entry.job < first {
        return false;
    }
    let links = &job_of(jobs, entry).links;
    let outpoint = match entry.change.created() {
        Some(create) => links.creates(partition)[create].key().outpoint,
        None => links.spends(partition)[(entry.change.0 & !SPENT) as usize].key().outpoint,
    };
    outpoint == key.outpoint
}

/// The block that made an entry which counts.
fn job_of<'a>(jobs: &'a VecDeque<Arc<Job>>, entry: &Entry) -> &'a Job {
    let Some(first) = jobs.front() else { panic!("an entry's block is in the window") };
    &jobs[entry.job as usize - first.index]
}

/// A block's index in the run; heights have 32 bits, so it fits.
fn number(job: &Job) -> u32 {
    match u32::try_from(job.index) {
        Ok(number) => number,
        Err(_) => panic!("a run has fewer than 2^32 blocks"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
