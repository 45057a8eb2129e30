//! [`Coins`]: the public interface of the store. Input and output are described in the crate documentation.
//!
//! One lock for each partition, held while a batch is looked up or applied, but not while records are read from disk.
//! During a checkpoint coins can be looked up, pinned and counted, but not changed. Invariants: the manifest changes
//! only at the end of a checkpoint; the list of segments has every unit of the index at any moment, and is cloned under
//! the lock of the partition whose units are read; after a failed checkpoint only statistics can be queried.

use crate::checkpoint::Manner;
use crate::entry::Place;
use crate::gate::Gate;
use crate::key::partition_of;
use crate::manifest::Manifest;
use crate::old::Spot;
use crate::partition::{Candidates, GROUP, Partition, in_memory, parse_in_memory};
use crate::pinned::{PinnedCoins, Visit};
use crate::record::outpoint_of;
use crate::rewrite::Mover;
use crate::segment::Segments;
use crate::writer::Sizes;
use crate::{CheckpointReport, CoinsError, CoinsStats, Key, PARTITIONS, Settings, Tip, checkpoint, open};
use lydian_consensus::{Coin, CoinRef};
use lydian_disk::{Disk, MemoryBlocks};
use lydian_primitives::OutPoint;
use lydian_stdx::{IgnorePoison, lock};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

/// All unspent outputs.
#[derive(Debug)]
pub struct Coins {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    pub(crate) settings: Settings,
    pub(crate) partitions: [Gate<Partition>; PARTITIONS],
    /// The last checkpoint.
    manifest: Mutex<Manifest>,
    secret: crate::key::Secret,
    /// The segments of the manifest, and those that a checkpoint is writing.
    pub(crate) segments: RwLock<Segments>,
    /// Number of exports started, for the names of their files.
    pub(crate) exports: Arc<AtomicU64>,
    /// The bytes that each partition would write, readable without a lock.
    pending_bytes: [AtomicU64; PARTITIONS],
    /// Number of coins of each partition.
    lens: [AtomicU64; PARTITIONS],
    disk_reads: AtomicU64,
    bytes_written: AtomicU64,
    checkpoints: AtomicU64,
    /// Whether anything was applied since the last checkpoint.
    is_changed: AtomicBool,
    /// Held during a checkpoint.
    checkpointing: Mutex<()>,
    state: AtomicU8,
}

/// The states of a store.
mod state {
    pub(super) const READY: u8 = 0;
    /// A checkpoint is being made: the state in memory differs from the disk, and must not be changed.
    pub(super) const CHECKPOINT: u8 = 1;
    /// A checkpoint or a batch failed.
    pub(super) const FAILED: u8 = 2;
}

/// A checkpoint in progress. If it is dropped, the checkpoint failed.
struct Attempt<'a>(&'a AtomicU8);

impl Attempt<'_> {
    fn succeed(self) {
        self.0.store(state::READY, Ordering::SeqCst);
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let _ = self.0.compare_exchange(state::CHECKPOINT, state::FAILED, Ordering::SeqCst, Ordering::SeqCst);
    }
}

impl Coins {
    /// Opens the store in a directory, or creates it; `seed` is the secret of a new store. Builds the index with
    /// `threads` threads.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: Settings,
        seed: [u8; 16],
        threads: usize,
    ) -> Result<Coins, CoinsError> {
        let opened = open::run(disk.as_ref(), dir, seed, threads, settings.is_low_memory)?;
        let lens = std::array::from_fn(|number| AtomicU64::new(opened.partitions[number].lock().len));
        Ok(Coins {
            disk,
            dir: dir.to_owned(),
            settings,
            partitions: opened.partitions,
            secret: opened.manifest.secret,
            manifest: Mutex::new(opened.manifest),
            segments: RwLock::new(opened.segments),
            exports: Arc::default(),
            pending_bytes: Default::default(),
            lens,
            disk_reads: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            checkpoints: AtomicU64::new(0),
            is_changed: AtomicBool::new(false),
            checkpointing: Mutex::default(),
            state: AtomicU8::new(state::READY),
        })
    }

    /// The tip of the last checkpoint, or `None` if there was none.
    pub fn tip(&self) -> Option<Tip> {
        lock(&self.manifest).tip
    }

    pub fn key(&self, outpoint: OutPoint) -> Key {
        self.secret.key(outpoint)
    }

    /// The partition of a key, less than [`PARTITIONS`].
    pub fn partition(key: &Key) -> usize {
        partition_of(key.hash)
    }

    /// Looks up keys of one partition and appends one result for each. During a checkpoint too; it then waits for the
    /// work on two shards at most, about a millisecond each.
    pub fn get(&self, partition: usize, keys: &[Key], found: &mut Vec<Option<Coin>>) -> Result<(), CoinsError> {
        let start = found.len();
        found.resize(start + keys.len(), None);
        let (mut on_disk, segments) = self.look_up(partition, keys, &mut |place, coin| {
            found[start + place] = Some(parse_in_memory(coin).to_coin());
        })?;
        self.read(segments, &mut on_disk, keys, &mut |place, record, _| {
            found[start + place] = Some(record.coin.to_coin());
        })
    }

    /// Checks whether keys of one partition exist and appends one result for each.
    pub fn contains(&self, partition: usize, keys: &[Key], found: &mut Vec<bool>) -> Result<(), CoinsError> {
        let start = found.len();
        found.resize(start + keys.len(), false);
        let (mut on_disk, segments) = self.look_up(partition, keys, &mut |place, _| found[start + place] = true)?;
        self.read(segments, &mut on_disk, keys, &mut |place, _, _| found[start + place] = true)
    }

    /// Spends and then creates coins of one partition. Spent coins must exist; created coins replace existing ones.
    /// After an error the store is unusable, because a part of the changes may have been applied. No checkpoint may run
    /// at the same time.
    pub fn apply<'a>(
        &self,
        partition: usize,
        spends: impl Iterator<Item = Key>,
        creates: impl Iterator<Item = (Key, CoinRef<'a>)>,
    ) -> Result<(), CoinsError> {
        self.check_writable()?;
        if self.settings.is_low_memory {
            return self.apply_low_memory(partition, &spends.collect::<Vec<_>>(), &creates.collect::<Vec<_>>());
        }
        let mut coins = self.partitions[partition].lock();
        let result = self.apply_to(&mut coins, spends, creates);
        self.end_apply(partition, &coins, result)
    }

    /// [`Coins::apply`] in a store with little memory. First finds all coins that are on disk, without the lock while
    /// they are read: nothing else changes the partition meanwhile.
    fn apply_low_memory(
        &self,
        partition: usize,
        spends: &[Key],
        creates: &[(Key, CoinRef<'_>)],
    ) -> Result<(), CoinsError> {
        let keys: Vec<Key> = spends.iter().chain(creates.iter().map(|(key, _)| key)).copied().collect();
        let spots = self.find_spots(partition, &keys);
        let mut coins = self.partitions[partition].lock();
        let result = spots.and_then(|spots| {
            let (of_spends, of_creates) = spots.split_at(spends.len());
            for (key, spot) in spends.iter().zip(of_spends) {
                coins.spend_spot(key, spot.as_ref())?;
            }
            for ((key, coin), spot) in creates.iter().zip(of_creates) {
                let full = || CoinsError::Full { path: self.dir.clone() };
                coins.create_at(key, *coin, spot.as_ref()).ok_or_else(full)?;
            }
            Ok(())
        });
        self.end_apply(partition, &coins, result)
    }

    /// Where the coins of keys are on disk. Those that are in memory are not searched.
    fn find_spots(&self, partition: usize, keys: &[Key]) -> Result<Vec<Option<Spot>>, CoinsError> {
        let mut spots = vec![None; keys.len()];
        let (mut on_disk, segments) = self.look_up(partition, keys, &mut |_, _| ())?;
        self.read(segments, &mut on_disk, keys, &mut |place, _, spot| spots[place] = spot)?;
        Ok(spots)
    }

    fn end_apply(&self, partition: usize, coins: &Partition, result: Result<(), CoinsError>) -> Result<(), CoinsError> {
        if result.is_err() {
            self.state.store(state::FAILED, Ordering::SeqCst);
        }
        self.is_changed.store(true, Ordering::Relaxed);
        self.pending_bytes[partition].store(coins.pending_bytes(), Ordering::Relaxed);
        self.lens[partition].store(coins.len, Ordering::Relaxed);
        result
    }

    /// Whether the coins are durable as the state at `tip`, so that a checkpoint would write nothing new. As for a
    /// checkpoint, nothing may be applied at the same time.
    pub fn is_durable(&self, tip: Tip) -> bool {
        self.check_writable().is_ok() && !self.is_changed.load(Ordering::Relaxed) && self.tip() == Some(tip)
    }

    /// Makes everything applied so far durable, as the state at `tip`. Coins can be looked up meanwhile.
    pub fn checkpoint(&self, tip: Tip, threads: usize) -> Result<CheckpointReport, CoinsError> {
        self.checkpoint_in(tip, threads, Manner { sizes: Sizes::default(), after_shard: &|| () })
    }

    pub(crate) fn checkpoint_in(
        &self,
        tip: Tip,
        threads: usize,
        manner: Manner<'_>,
    ) -> Result<CheckpointReport, CoinsError> {
        let _one_at_a_time = lock(&self.checkpointing);
        self.check_writable()?;
        self.state.store(state::CHECKPOINT, Ordering::SeqCst);
        let attempt = Attempt(&self.state);
        let old = lock(&self.manifest).clone();
        let (next, segments, report) = checkpoint::run(self, &old, &self.segments(), tip, threads, manner)?;
        {
            // A pin has either all of the old files or all of the new ones.
            let mut manifest = lock(&self.manifest);
            *self.segments.write().ignore_poison() = segments;
            *manifest = next;
            checkpoint::remove_unnamed(self, &old, &manifest);
        }
        self.pending_bytes.iter().for_each(|bytes| bytes.store(0, Ordering::Relaxed));
        self.bytes_written.fetch_add(report.bytes_written, Ordering::Relaxed);
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
        self.is_changed.store(false, Ordering::Relaxed);
        attempt.succeed();
        self.move_to_huge_pages();
        Ok(report)
    }

    /// Moves index and coins to huge pages: tables that have grown are in small ones, as is the memory of new coins.
    fn move_to_huge_pages(&self) {
        let mut blocks = MemoryBlocks::default();
        self.partitions.iter().for_each(|gate| gate.lock_after_others().add_large_blocks(&mut blocks));
        blocks.move_to_huge_pages();
    }

    /// Whether enough data is not yet on disk that a checkpoint is due.
    pub fn needs_checkpoint(&self) -> bool {
        self.pending() >= self.settings.pending_bytes_max.max(1)
    }

    /// The number of coins.
    pub fn len(&self) -> u64 {
        self.lens.iter().map(|len| len.load(Ordering::Relaxed)).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory of index, coins and deaths in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.lock().memory_bytes()).sum()
    }

    pub fn stats(&self) -> CoinsStats {
        let manifest = lock(&self.manifest);
        CoinsStats {
            coins: self.len(),
            pending_bytes: self.pending(),
            memory_bytes: self.memory_bytes(),
            disk_bytes: manifest.disk_bytes(),
            segments: manifest.segments.len() as u64,
            disk_reads: self.disk_reads.load(Ordering::Relaxed),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
            checkpoints: self.checkpoints.load(Ordering::Relaxed),
        }
    }

    /// Pins the coins of the last checkpoint: they stay readable whatever is applied, written and removed afterwards.
    /// Opens the files that list them, without reading their content.
    pub fn pin(&self) -> Result<PinnedCoins, CoinsError> {
        let manifest = lock(&self.manifest);
        self.check_readable()?;
        PinnedCoins::new(self, &manifest)
    }

    /// Visits all coins as they are now, those that are not yet on disk included, in the order of the index, until a
    /// visit breaks. No call that changes the store may run at the same time. [`Coins::pin`] has no such condition.
    pub fn each<B>(
        &self,
        visit: &mut dyn FnMut(&OutPoint, &Coin) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, CoinsError> {
        self.check_readable()?;
        for partition in &self.partitions {
            let visited = self.each_of(&partition.lock(), visit)?;
            if visited.is_break() {
                return Ok(visited);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn each_of<B>(&self, partition: &Partition, visit: Visit<'_, B>) -> Result<ControlFlow<B>, CoinsError> {
        let segments = self.segments();
        let mut mover = Mover::new(&segments);
        for entry in partition.tables.iter().flat_map(|table| table.slots()).filter(|entry| !entry.is_empty()) {
            let visited = match entry.place() {
                Place::Memory { address, .. } => {
                    let record = in_memory(partition.arena.bytes(address));
                    visit(&outpoint_of(record.outpoint), &parse_in_memory(record.coin_bytes).to_coin())
                }
                Place::Disk { unit } => {
                    mover.take(unit, |record| visit(&outpoint_of(record.outpoint), &record.coin.to_coin()))?
                }
            };
            if visited.is_break() {
                return Ok(visited);
            }
        }
        let mut visited = ControlFlow::Continue(());
        for group in partition.old.iter().flat_map(|old| old.groups()) {
            segments.read_groups(&[group], &mut |group, _, number, record| {
                if group.dead >> number & 1 == 0 {
                    visited = visit(&outpoint_of(record.outpoint), &record.coin.to_coin());
                }
                visited.is_break()
            })?;
            if visited.is_break() {
                break;
            }
        }
        Ok(visited)
    }

    pub(crate) fn segments(&self) -> Segments {
        self.segments.read().ignore_poison().clone()
    }

    fn pending(&self) -> u64 {
        self.pending_bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }

    fn check_readable(&self) -> Result<(), CoinsError> {
        if self.state.load(Ordering::SeqCst) == state::FAILED { Err(CoinsError::Poisoned) } else { Ok(()) }
    }

    fn check_writable(&self) -> Result<(), CoinsError> {
        if self.state.load(Ordering::SeqCst) == state::READY { Ok(()) } else { Err(CoinsError::Poisoned) }
    }

    /// Looks up keys. Calls `found` for those in memory; returns the candidate records of the others, and the list of
    /// segments that has them, unless there are none.
    fn look_up(
        &self,
        partition: usize,
        keys: &[Key],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(Candidates, Option<Segments>), CoinsError> {
        let mut candidates = Candidates::default();
        let partition = self.partitions[partition].lock();
        self.check_readable()?;
        partition.look_up(keys, &mut candidates, found);
        let is_any = !candidates.records.is_empty() || !candidates.groups.is_empty();
        let segments = is_any.then(|| self.segments());
        Ok((candidates, segments))
    }

    /// Reads the candidate records of keys. Calls `found` for those that match, with the spot of the record in a store
    /// with little memory.
    fn read(
        &self,
        segments: Option<Segments>,
        candidates: &mut Candidates,
        keys: &[Key],
        found: &mut dyn FnMut(usize, crate::record::Record<'_>, Option<Spot>),
    ) -> Result<(), CoinsError> {
        let Some(segments) = segments else { return Ok(()) };
        let Candidates { records, groups } = candidates;
        self.disk_reads.fetch_add((records.len() + groups.len()) as u64, Ordering::Relaxed);
        records.sort_unstable();
        segments.read_many(records, &mut |place, record| {
            if outpoint_of(record.outpoint) == keys[*place].outpoint {
                found(*place, record, None);
            }
        })?;
        groups.sort_unstable_by_key(|group| group.start);
        segments.read_groups(groups, &mut |group, unit, number, record| {
            let is_found = group.dead >> number & 1 == 0 && outpoint_of(record.outpoint) == keys[group.place].outpoint;
            if is_found {
                found(group.place, record, Some(group.spot(unit, number)));
            }
            is_found
        })
    }

    fn apply_to<'a>(
        &self,
        coins: &mut Partition,
        mut spends: impl Iterator<Item = Key>,
        mut creates: impl Iterator<Item = (Key, CoinRef<'a>)>,
    ) -> Result<(), CoinsError> {
        let read = |unit| self.segments().read(unit, |record| outpoint_of(record.outpoint));
        let mut keys = Vec::with_capacity(GROUP);
        loop {
            keys.clear();
            keys.extend(spends.by_ref().take(GROUP));
            if keys.is_empty() {
                break;
            }
            coins.spend(&keys, &read)?;
        }
        let mut group = Vec::with_capacity(GROUP);
        loop {
            group.clear();
            group.extend(creates.by_ref().take(GROUP));
            if group.is_empty() {
                return Ok(());
            }
            coins.create(&group, &read)?.ok_or_else(|| CoinsError::Full { path: self.dir.clone() })?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::{Fault, SimDisk};
    use lydian_primitives::{Amount, BlockHash, Height, Txid};
    use lydian_stdx::SplitMix64;
    use std::collections::BTreeMap;

    type Model = BTreeMap<OutPoint, Coin>;

    /// So small that every checkpoint writes several segments, empties the buffer many times, and has three writers.
    const SMALL: Sizes =
        Sizes { segment_units_max: 700, buffer_bytes: 600, writer_bytes_min: 1, second_writer_bytes_min: 1 };

    /// A store and what it must contain.
    struct World {
        disk: SimDisk,
        coins: Coins,
        collides: bool,
        model: Model,
        /// The coins of the last checkpoint.
        durable: Model,
        random: SplitMix64,
    }

    fn outpoint(number: u64) -> OutPoint {
        OutPoint { txid: Txid([number.to_le_bytes()[0]; 32]), vout: u32::from(number.to_le_bytes()[1]) }
    }

    fn tip(height: u32) -> Tip {
        Tip { height: Height(height), hash: BlockHash::ZERO }
    }

    impl World {
        fn new(seed: u64, settings: Settings, collides: bool) -> World {
            let disk = SimDisk::new(seed);
            let coins = Coins::open(Arc::new(disk.clone()), Path::new("/c"), settings, [1; 16], 1).unwrap();
            let random = SplitMix64::new(seed);
            World { disk, coins, collides, model: Model::new(), durable: Model::new(), random }
        }

        fn numbers(&self) -> u64 {
            if self.collides { 100 } else { 900 }
        }

        fn key(&self, outpoint: OutPoint) -> Key {
            let key = self.coins.key(outpoint);
            if self.collides { Key { hash: key.hash & 0x8010_00c0_0000_0000, ..key } } else { key }
        }

        /// Spends and creates random coins.
        fn apply(&mut self, height: u32) {
            for _ in 0..self.numbers() / 3 {
                let outpoint = outpoint(self.random.next_u64() % self.numbers());
                let key = self.key(outpoint);
                let mut spent = None;
                let mut created = None;
                if self.model.remove(&outpoint).is_some() {
                    spent = Some(key);
                } else {
                    let size = [20, 20, 20, 90, 1500][self.random.below(5)];
                    let coin = Coin {
                        value: Amount(i64::from(height)),
                        script_pubkey: vec![7; size].into(),
                        height: Height(height),
                        is_coinbase: false,
                    };
                    self.model.insert(outpoint, coin.clone());
                    created = Some(coin);
                }
                let creates = created.iter().map(|coin| (key, coin.as_ref()));
                self.coins.apply(Coins::partition(&key), spent.into_iter(), creates).unwrap();
            }
        }

        fn check(&self, number: u64) {
            let outpoint = outpoint(number);
            let key = self.key(outpoint);
            let (mut found, mut exists) = (Vec::new(), Vec::new());
            self.coins.get(Coins::partition(&key), &[key], &mut found).unwrap();
            self.coins.contains(Coins::partition(&key), &[key], &mut exists).unwrap();
            assert_eq!(found, [self.model.get(&outpoint).cloned()], "{outpoint}");
            assert_eq!(exists, [self.model.contains_key(&outpoint)], "{outpoint}");
        }

        /// A checkpoint after each of whose shards some coins are looked up, and now and then all of them. Also pins
        /// then, and compares the pin with the last checkpoint.
        fn checkpoint(&self, height: u32) -> Result<CheckpointReport, CoinsError> {
            let state = Mutex::new((SplitMix64::new(height.into()), 0));
            let after_shard = || {
                let (numbers, step) = {
                    let (random, step) = &mut *lock(&state);
                    *step += 1;
                    ([(); 3].map(|()| random.next_u64() % self.numbers()), *step)
                };
                numbers.iter().for_each(|number| self.check(*number));
                if step % 401 == 0 {
                    (0..self.numbers()).for_each(|number| self.check(number));
                    let mut pinned = Model::new();
                    let visited: ControlFlow<()> = self
                        .coins
                        .pin()
                        .unwrap()
                        .each(&mut |outpoint, coin| {
                            pinned.insert(*outpoint, coin.clone());
                            ControlFlow::Continue(())
                        })
                        .unwrap();
                    assert!(visited.is_continue() && pinned == self.durable);
                }
            };
            self.coins.checkpoint_in(tip(height), 3, Manner { sizes: SMALL, after_shard: &after_shard })
        }
    }

    #[test]
    fn coins_are_looked_up_at_every_step_of_a_checkpoint() {
        for (seed, settings, collides) in [
            (1, Settings::new(0), false),
            (2, Settings::new(1 << 14), false),
            (3, Settings::new(1 << 20), false),
            (4, Settings::new(1 << 13), true),
            (5, Settings::low_memory(1 << 14), false),
            (6, Settings::low_memory(1 << 13), true),
        ] {
            let mut world = World::new(seed, settings, collides);
            let mut report = CheckpointReport::default();
            for height in 1..=14 {
                world.apply(height);
                let one = world.checkpoint(height).unwrap();
                report.coins_rewritten += one.coins_rewritten;
                world.durable = world.model.clone();
                (0..world.numbers()).for_each(|number| world.check(number));
            }
            assert!(report.coins_rewritten > 0, "segments were rewritten");
            assert!(world.coins.stats().segments > 3, "{:?}", world.coins.stats());
            // What was written is what is read after a restart.
            world.coins =
                Coins::open(Arc::new(world.disk.kill()), Path::new("/c"), Settings::new(0), [1; 16], 1).unwrap();
            (0..world.numbers()).for_each(|number| world.check(number));
        }
    }

    /// Until the checkpoint has failed, every coin is found; afterwards the store refuses everything.
    #[test]
    fn coins_are_looked_up_until_a_checkpoint_fails() {
        let mut failures = 0;
        for seed in 0..40 {
            let of = if seed % 3 == 0 { Settings::low_memory } else { Settings::new };
            let mut world = World::new(seed, of(1 << (seed % 20)), false);
            for height in 1..=4 {
                world.apply(height);
                if height == 4 {
                    let operation = world.disk.operation_count() + world.random.next_u64() % 700;
                    world.disk.fail_at(operation, [Fault::Io, Fault::NoSpace][world.random.below(2)]);
                }
                if world.checkpoint(height).is_ok() {
                    world.durable = world.model.clone();
                    continue;
                }
                failures += 1;
                let key = world.key(outpoint(1));
                let read = world.coins.get(Coins::partition(&key), &[key], &mut Vec::new());
                assert_eq!(read, Err(CoinsError::Poisoned));
                assert_eq!(world.coins.pin().map(drop), Err(CoinsError::Poisoned));
                assert_eq!(world.checkpoint(5), Err(CoinsError::Poisoned));
                assert_eq!(world.coins.apply(0, [].into_iter(), [].into_iter()), Err(CoinsError::Poisoned));
            }
        }
        assert!(failures > 20, "{failures}");
    }
}
