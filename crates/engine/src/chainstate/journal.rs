//! [`Journal`]: the blocks that were applied to the coins, for snapshots that see the coins as they were before.
//!
//! Input: each change of the coins (a block connected or disconnected), before any of it is applied; the progress of
//! each partition; the settled block; snapshots, taken and released. Output: the coins that outpoints had at the moment
//! of a snapshot.
//!
//! A reader looks the outpoints up in the store first and then here, in the changes since its snapshot, the oldest
//! first. The first change of an outpoint says which coin was there before it, and so at the snapshot. If there is
//! none, the store's answer holds: a change is published before it is applied, so none was applied when the store was
//! read. So a reader needs no lock of the writer, and the writer never waits for a reader.
//!
//! Positions count the changes: a snapshot at position 5 has the first five. Invariants: changes are published in
//! their order; those above the settled block, or above the oldest snapshot, are kept; those kept for snapshots only
//! have [`JOURNAL_BYTES`] and [`JOURNAL_CHANGES`] at most, and the oldest snapshots expire beyond that. (Those above
//! the settled block are in the pipeline, whose memory is bounded.) Cost: a lock and a pointer for each block; for a
//! reader, a pass over the outpoints of each block since its snapshot, and none if there is no such block.

use super::sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use crate::event::SettledBlock;
use crate::limits::{JOURNAL_BYTES, JOURNAL_CHANGES};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as TableEntry;
use lydian_coins::{Key, PARTITIONS};
use lydian_consensus::Coin;
use lydian_stdx::IgnorePoison;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;

/// The most changes that a reader takes under one lock.
const CHANGES_AT_ONCE: usize = 256;

/// A block, connected or disconnected.
pub(crate) trait Change: Debug + Send + Sync {
    /// Decides those of the wanted outpoints that the change creates or spends in a partition.
    fn decide(&self, partition: usize, wanted: &mut Wanted);

    /// Memory that it takes, roughly.
    fn bytes(&self) -> usize;

    /// The block and when it went through each step, if it was connected.
    fn connected(&self) -> Option<SettledBlock<'_>> {
        None
    }

    /// Whether [`Change::decide`] can tell the coins before it. It cannot if it overwrites a coin.
    fn is_exact(&self) -> bool {
        true
    }
}

/// The keys that a reader asks for in one partition, and what the store has for each.
#[derive(Debug)]
pub(crate) struct StoredCoins<'a> {
    pub(crate) partition: usize,
    pub(crate) keys: &'a [Key],
    pub(crate) found: Vec<Option<Coin>>,
}

/// The outpoints that a reader asks for in one partition, and their coins.
#[derive(Debug)]
pub(crate) struct Wanted {
    partition: usize,
    /// Those that are not decided, each with its index in `found`.
    open: HashTable<(Key, usize)>,
    /// Keys that are asked for again: their index, and that of the first.
    again: Vec<(usize, usize)>,
    found: Vec<Option<Coin>>,
}

impl Wanted {
    fn new(stored: &mut StoredCoins<'_>) -> Wanted {
        let StoredCoins { partition, keys, found } = stored;
        let mut open = HashTable::with_capacity(keys.len());
        let mut again = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            match open.entry(key.hash, |(known, _)| known == key, |(key, _): &(Key, usize)| key.hash) {
                TableEntry::Occupied(first) => again.push((index, first.get().1)),
                TableEntry::Vacant(entry) => {
                    entry.insert((*key, index));
                }
            }
        }
        Wanted { partition: *partition, open, again, found: std::mem::take(found) }
    }

    /// Takes the coins from changes, the oldest first.
    fn decide_by<C: Change + ?Sized>(&mut self, changes: &[Arc<C>]) {
        let partition = self.partition;
        for change in changes {
            if self.is_decided() {
                break;
            }
            change.decide(partition, self);
        }
    }

    /// Sets the coin of an outpoint, if it is wanted.
    pub(crate) fn decide(&mut self, key: &Key, coin: impl FnOnce() -> Option<Coin>) {
        if let Ok(entry) = self.open.find_entry(key.hash, |(open, _)| open == key) {
            let ((_, index), _) = entry.remove();
            self.found[index] = coin();
        }
    }

    fn is_decided(&self) -> bool {
        self.open.is_empty()
    }

    /// The coins, in the order of the keys.
    fn finish(mut self) -> Vec<Option<Coin>> {
        for (index, first) in self.again {
            self.found[index] = self.found[first].clone();
        }
        self.found
    }
}

/// A snapshot is older than the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Expired;

/// The settled block: its place in the journal, and how often it has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled<T> {
    pub(crate) id: T,
    pub(crate) position: u64,
    pub(crate) sequence: u64,
}

/// The changes that snapshots may need. `T` names a block.
#[derive(Debug)]
pub(crate) struct Journal<T, C: ?Sized> {
    /// The number of changes applied to each partition.
    applied: [AtomicU64; PARTITIONS],
    state: Mutex<State<T, C>>,
}

#[derive(Debug)]
struct State<T, C: ?Sized> {
    /// The changes after the first `floor` ones.
    entries: VecDeque<Entry<T, C>>,
    floor: u64,
    /// Snapshots before this position cannot be read.
    exact_from: u64,
    settled: Settled<T>,
    /// The positions of the snapshots that are not expired, each with their number.
    held: BTreeMap<u64, usize>,
    /// Memory of the entries up to the settled block.
    held_bytes: usize,
}

#[derive(Debug)]
struct Entry<T, C: ?Sized> {
    /// The tip after the change.
    tip: T,
    bytes: usize,
    change: Arc<C>,
}

impl<T: Copy + PartialEq, C: Change + ?Sized> Journal<T, C> {
    /// All partitions stand at `tip`.
    pub(crate) fn new(tip: T) -> Journal<T, C> {
        Journal {
            applied: std::array::from_fn(|_| AtomicU64::new(0)),
            state: Mutex::new(State {
                entries: VecDeque::new(),
                floor: 0,
                exact_from: 0,
                settled: Settled { id: tip, position: 0, sequence: 0 },
                held: BTreeMap::new(),
                held_bytes: 0,
            }),
        }
    }

    /// Enters a change, which is then applied to every partition. `tip` is the tip after it.
    pub(crate) fn publish(&self, tip: T, change: Arc<C>) {
        let (bytes, is_exact) = (change.bytes(), change.is_exact());
        let mut state = self.lock();
        state.entries.push_back(Entry { tip, bytes, change });
        if !is_exact {
            state.exact_from = state.position();
        }
    }

    /// The next `count` changes are applied to a partition.
    pub(crate) fn applied(&self, partition: usize, count: usize) {
        self.applied[partition].fetch_add(count as u64, Ordering::SeqCst);
    }

    /// Whether every partition is above the settled block, so that it may move.
    pub(crate) fn may_settle(&self) -> bool {
        let settled = self.settled().position;
        self.lowest_applied() > settled
    }

    fn lowest_applied(&self) -> u64 {
        self.applied.iter().map(|applied| applied.load(Ordering::SeqCst)).min().unwrap_or(0)
    }

    /// The tip up to which every partition is applied.
    pub(crate) fn applied_tip(&self) -> T {
        let lowest = self.lowest_applied();
        let state = self.lock();
        state.at(lowest).map_or(state.settled.id, |entry| entry.tip)
    }

    pub(crate) fn settled(&self) -> Settled<T> {
        self.lock().settled
    }

    /// Moves the settled block to the next change that every partition has and after which `id` is the tip. Returns the
    /// settled block and the changes between, or `None` if there is no such change. (A block that is connected twice is
    /// settled before the second time, because a disconnection settles at once.)
    pub(crate) fn settle(&self, id: T) -> Option<(Settled<T>, Vec<Arc<C>>)> {
        let lowest = self.lowest_applied();
        let (moved, dropped) = {
            let mut state = self.lock();
            let from = state.settled.position;
            let to = (from + 1..=lowest).find(|at| state.at(*at).is_some_and(|entry| entry.tip == id))?;
            let between: Vec<Arc<C>> =
                (from + 1..=to).filter_map(|at| state.at(at).map(|entry| Arc::clone(&entry.change))).collect();
            let bytes: usize = (from + 1..=to).filter_map(|at| state.at(at).map(|entry| entry.bytes)).sum();
            state.settled = Settled { id, position: to, sequence: state.settled.sequence + 1 };
            state.held_bytes += bytes;
            ((state.settled, between), state.trim())
        };
        // Freeing a block takes long, so it is done outside the lock.
        drop(dropped);
        Some(moved)
    }

    /// Takes a snapshot at the settled block.
    pub(crate) fn hold(&self) -> Settled<T> {
        let mut state = self.lock();
        let settled = state.settled;
        *state.held.entry(settled.position).or_default() += 1;
        settled
    }

    /// Releases a snapshot.
    pub(crate) fn release(&self, position: u64) {
        let mut state = self.lock();
        if let Some(count) = state.held.get_mut(&position) {
            *count -= 1;
            if *count == 0 {
                state.held.remove(&position);
            }
        }
        let dropped = state.trim();
        drop(state);
        drop(dropped);
    }

    /// Whether a snapshot can be read.
    #[cfg(test)]
    pub(crate) fn check(&self, position: u64) -> Result<(), Expired> {
        self.lock().check(position)
    }

    /// Replaces the coins that were changed since a snapshot. `coins` has what the store had for the keys of each
    /// partition, which was read before this call.
    pub(crate) fn decide<'a>(
        &self,
        snapshot: u64,
        mut coins: Vec<StoredCoins<'a>>,
    ) -> Result<Vec<StoredCoins<'a>>, Expired> {
        let mut changes = self.since(snapshot)?;
        if changes.is_empty() {
            return Ok(coins);
        }
        let mut position = snapshot;
        let mut wanted: Vec<Wanted> = coins.iter_mut().map(Wanted::new).collect();
        while !changes.is_empty() && !wanted.iter().all(Wanted::is_decided) {
            for wanted in &mut wanted {
                wanted.decide_by(&changes);
            }
            position += changes.len() as u64;
            changes = self.since(position)?;
        }
        for (coins, wanted) in coins.iter_mut().zip(wanted) {
            coins.found = wanted.finish();
        }
        Ok(coins)
    }

    /// The changes since a position, the oldest first, as many as are read at once.
    fn since(&self, position: u64) -> Result<Vec<Arc<C>>, Expired> {
        let state = self.lock();
        state.check(position)?;
        let known = usize::try_from(position - state.floor).unwrap_or(usize::MAX);
        let changes = state.entries.iter().skip(known).take(CHANGES_AT_ONCE);
        Ok(changes.map(|entry| Arc::clone(&entry.change)).collect())
    }

    /// The number of changes that are kept.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.lock().entries.len()
    }

    fn lock(&self) -> MutexGuard<'_, State<T, C>> {
        self.state.lock().ignore_poison()
    }
}

impl<T, C: ?Sized> State<T, C> {
    /// The number of changes so far.
    fn position(&self) -> u64 {
        self.floor + self.entries.len() as u64
    }

    /// The change that leads to a position.
    fn at(&self, position: u64) -> Option<&Entry<T, C>> {
        let index = position.checked_sub(self.floor + 1)?;
        self.entries.get(usize::try_from(index).ok()?)
    }

    fn check(&self, position: u64) -> Result<(), Expired> {
        if position < self.floor.max(self.exact_from) { Err(Expired) } else { Ok(()) }
    }

    /// Removes the entries that no snapshot needs, and those beyond the limits, whose snapshots expire.
    fn trim(&mut self) -> Vec<Arc<C>> {
        let mut dropped = Vec::new();
        loop {
            let settled = self.settled.position;
            let needed = self.held.first_key_value().map_or(settled, |(position, _)| *position);
            let kept = settled.saturating_sub(self.floor);
            let is_too_much = self.held_bytes > JOURNAL_BYTES || kept > JOURNAL_CHANGES;
            if self.floor >= settled || self.floor >= needed && !is_too_much {
                return dropped;
            }
            let Some(entry) = self.entries.pop_front() else { return dropped };
            self.floor += 1;
            self.held_bytes -= entry.bytes;
            self.held = self.held.split_off(&self.floor);
            dropped.push(entry.change);
        }
    }
}
