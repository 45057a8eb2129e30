//! [`Coins`]: the public interface of the store. Input and output are described in the crate documentation.
//!
//! One lock for each partition, held while a batch is looked up or applied, but not while records are read from disk.
//! Invariants: the manifest and the segments change only in a checkpoint; after a failed one only statistics can be
//! queried.

use crate::export;
use crate::key::partition_of;
use crate::manifest::Manifest;
use crate::partition::{GROUP, Partition, parse_in_memory};
use crate::record::{UNIT_BYTES, outpoint_of};
use crate::segment::Segments;
use crate::{CheckpointReport, CoinsError, CoinsStats, Key, PARTITIONS, Settings, Tip, checkpoint, open};
use lydian_consensus::{Coin, CoinRef};
use lydian_disk::Disk;
use lydian_primitives::OutPoint;
use lydian_stdx::{IgnorePoison, lock};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

/// All unspent outputs.
#[derive(Debug)]
pub struct Coins {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    pub(crate) settings: Settings,
    pub(crate) partitions: [Mutex<Partition>; PARTITIONS],
    manifest: Mutex<Manifest>,
    secret: crate::key::Secret,
    segments: RwLock<Segments>,
    /// The bytes that each partition would write, readable without a lock.
    pending_bytes: [AtomicU64; PARTITIONS],
    /// Number of coins of each partition.
    lens: [AtomicU64; PARTITIONS],
    disk_reads: AtomicU64,
    bytes_written: AtomicU64,
    checkpoints: AtomicU64,
    is_poisoned: AtomicBool,
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
        let opened = open::run(disk.as_ref(), dir, seed, threads)?;
        let lens = std::array::from_fn(|number| AtomicU64::new(lock(&opened.partitions[number]).len));
        Ok(Coins {
            disk,
            dir: dir.to_owned(),
            settings,
            partitions: opened.partitions,
            secret: opened.manifest.secret,
            manifest: Mutex::new(opened.manifest),
            segments: RwLock::new(opened.segments),
            pending_bytes: Default::default(),
            lens,
            disk_reads: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            checkpoints: AtomicU64::new(0),
            is_poisoned: AtomicBool::new(false),
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

    /// Looks up keys of one partition and appends one result for each.
    pub fn get(&self, partition: usize, keys: &[Key], found: &mut Vec<Option<Coin>>) -> Result<(), CoinsError> {
        self.check_poison()?;
        let start = found.len();
        found.resize(start + keys.len(), None);
        let mut on_disk = Vec::new();
        lock(&self.partitions[partition]).look_up(keys, &mut on_disk, &mut |place, coin| {
            found[start + place] = Some(parse_in_memory(coin).to_coin());
        });
        self.read(&mut on_disk, keys, &mut |place, record| {
            found[start + place] = Some(record.coin.to_coin());
        })
    }

    /// Checks whether keys of one partition exist and appends one result for each.
    pub fn contains(&self, partition: usize, keys: &[Key], found: &mut Vec<bool>) -> Result<(), CoinsError> {
        self.check_poison()?;
        let start = found.len();
        found.resize(start + keys.len(), false);
        let mut on_disk = Vec::new();
        lock(&self.partitions[partition]).look_up(keys, &mut on_disk, &mut |place, _| found[start + place] = true);
        self.read(&mut on_disk, keys, &mut |place, _| found[start + place] = true)
    }

    /// Spends and then creates coins of one partition. Spent coins must exist; created coins replace existing ones.
    /// After an error the store is unusable, because a part of the changes may have been applied.
    pub fn apply<'a>(
        &self,
        partition: usize,
        spends: impl Iterator<Item = Key>,
        creates: impl Iterator<Item = (Key, CoinRef<'a>)>,
    ) -> Result<(), CoinsError> {
        self.check_poison()?;
        let mut coins = lock(&self.partitions[partition]);
        let result = self.apply_to(&mut coins, spends, creates);
        if result.is_err() {
            self.is_poisoned.store(true, Ordering::Relaxed);
        }
        self.pending_bytes[partition].store(coins.pending_bytes(), Ordering::Relaxed);
        self.lens[partition].store(coins.len, Ordering::Relaxed);
        result
    }

    /// Makes everything applied so far durable, as the state at `tip`. No other call may run at the same time.
    pub fn checkpoint(&self, tip: Tip, threads: usize) -> Result<CheckpointReport, CoinsError> {
        self.check_poison()?;
        let mut manifest = lock(&self.manifest);
        let segments = self.segments();
        // Until the checkpoint is complete, the state in memory differs from the disk.
        self.is_poisoned.store(true, Ordering::Relaxed);
        let (next, segments, report) = checkpoint::run(self, &manifest, &segments, tip, threads)?;
        *self.segments.write().ignore_poison() = segments;
        let old = std::mem::replace(&mut *manifest, next);
        checkpoint::remove_unnamed(self, &old, &manifest);
        self.pending_bytes.iter().for_each(|bytes| bytes.store(0, Ordering::Relaxed));
        self.bytes_written.fetch_add(report.bytes_written, Ordering::Relaxed);
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
        self.is_poisoned.store(false, Ordering::Relaxed);
        Ok(report)
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
        self.partitions.iter().map(|partition| lock(partition).memory_bytes()).sum()
    }

    pub fn stats(&self) -> CoinsStats {
        let segments = self.segments();
        let manifest = lock(&self.manifest);
        let sidecars = manifest.segments.iter().map(|info| info.units * UNIT_BYTES as u64 + info.sidecar.bytes);
        CoinsStats {
            coins: self.len(),
            pending_bytes: self.pending(),
            memory_bytes: self.memory_bytes(),
            disk_bytes: sidecars.sum::<u64>() + manifest.deaths.iter().map(|info| info.file.bytes).sum::<u64>(),
            segments: segments.len() as u64,
            disk_reads: self.disk_reads.load(Ordering::Relaxed),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
            checkpoints: self.checkpoints.load(Ordering::Relaxed),
        }
    }

    /// Visits all coins in order of txid bytes and output index. No call that changes the store may run at the same
    /// time.
    pub fn export<E: From<CoinsError>>(
        &self,
        visit: &mut dyn FnMut(&OutPoint, &Coin) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check_poison()?;
        export::run(self, export::SORTED_BYTES_MAX, visit)
    }

    pub(crate) fn segments(&self) -> Segments {
        self.segments.read().ignore_poison().clone()
    }

    fn pending(&self) -> u64 {
        self.pending_bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }

    fn check_poison(&self) -> Result<(), CoinsError> {
        if self.is_poisoned.load(Ordering::Relaxed) { Err(CoinsError::Poisoned) } else { Ok(()) }
    }

    /// Reads the candidate records of keys. Calls `found` for those that match.
    fn read(
        &self,
        on_disk: &mut [(u64, usize)],
        keys: &[Key],
        found: &mut dyn FnMut(usize, crate::record::Record<'_>),
    ) -> Result<(), CoinsError> {
        if on_disk.is_empty() {
            return Ok(());
        }
        on_disk.sort_unstable();
        self.disk_reads.fetch_add(on_disk.len() as u64, Ordering::Relaxed);
        self.segments().read_many(on_disk, &mut |place, record| {
            if outpoint_of(record.outpoint) == keys[*place].outpoint {
                found(*place, record);
            }
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
