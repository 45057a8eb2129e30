//! Opens a store. Input: a directory. Output: its manifest, segments and index.
//!
//! The index is built from the sidecars minus the deaths (`live`). Each thread loads one partition at a time: it adds
//! the entries to their tables in the order of the files, and then arranges each table, which the cache holds. Files
//! that the manifest does not name are removed: they are remains of an export, or of a checkpoint that did not complete
//! or could not remove them. Cost: 8 bytes read for each record and death, 20 to 40 ns for each coin; records are not
//! read. Every count is compared with the manifest, and an error names the damaged file.

use crate::PARTITIONS;
use crate::entry::{Entry, SHARDS, index};
use crate::error::CoinsError;
use crate::gate::Gate;
use crate::key::Secret;
use crate::live::Live;
use crate::manifest::{self, Manifest, SegmentInfo};
use crate::old::{Added, Old};
use crate::partition::Partition;
use crate::sections::{FileId, Kind};
use crate::segment::{Segment, Segments};
use crate::table::Table;
use crate::writer::SidecarEntry;
use lydian_disk::{Disk, DiskErrorKind, MemoryBlocks, OwnDir, OwnFile, PathKind, Proof};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of threads that open a store with little memory: each one takes 8 bytes for each coin of a partition, 90 MB
/// for 180 million coins.
const LOW_MEMORY_THREADS: usize = 2;

/// The files that the store writes.
pub const COINS_FILES: &[OwnFile] = &[
    OwnFile { name: manifest::NAME, proof: Proof::Directory },
    OwnFile { name: "#.coins", proof: Proof::Directory },
    OwnFile { name: "#.index", proof: Proof::Directory },
    OwnFile { name: "#.deaths", proof: Proof::Directory },
    OwnFile { name: "export-*.scratch", proof: Proof::Directory },
    OwnFile { name: "manifest.new", proof: Proof::Directory },
];

/// The directory of a store. No other program uses these file names.
pub(crate) fn own(dir: &Path) -> OwnDir {
    OwnDir::new(dir, COINS_FILES)
}

/// A store as it is on disk.
pub(crate) struct Opened {
    pub(crate) manifest: Manifest,
    pub(crate) segments: Segments,
    pub(crate) partitions: [Gate<Partition>; PARTITIONS],
}

pub(crate) fn run(
    disk: &dyn Disk,
    dir: &Path,
    seed: [u8; 16],
    threads: usize,
    is_low_memory: bool,
) -> Result<Opened, CoinsError> {
    disk.create_dir(dir)?;
    let manifest = read_manifest(disk, dir, seed)?;
    remove_unnamed(disk, dir, &manifest)?;
    let segments = open_segments(disk, dir, &manifest)?;
    let live = Live::open(disk, dir, &manifest)?;
    let partitions = std::array::from_fn(|_| Gate::new(Partition::new()));
    let load = |number, partition: &mut Partition| match is_low_memory {
        false => load(&live, manifest.coins, number, partition),
        true => load_low_memory(&live, &manifest, dir, number, partition),
    };
    build(&load, &partitions, if is_low_memory { threads.min(LOW_MEMORY_THREADS) } else { threads })?;
    let coins: u64 = partitions.iter().map(|partition| partition.lock().len).sum();
    if coins != manifest.coins {
        return Err(CoinsError::damaged(&dir.join(manifest::NAME), 0, "the number of coins differs from the files"));
    }
    Ok(Opened { segments, partitions, manifest })
}

pub(crate) fn open_segments(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<Segments, CoinsError> {
    let store = manifest.store_id();
    let open = |info: &SegmentInfo| Ok(Arc::new(Segment::open(disk, dir, store, *info)?));
    Ok(Segments::new(manifest.segments.iter().map(open).collect::<Result<_, CoinsError>>()?))
}

/// The manifest of a store; none if there is no such file.
pub(crate) fn find_manifest(disk: &dyn Disk, dir: &Path) -> Result<Option<Manifest>, CoinsError> {
    let path = dir.join(manifest::NAME);
    match lydian_disk::read_whole(disk, &path, manifest::SIZE_MAX) {
        Ok(bytes) => Manifest::decode(&path, &bytes).map(Some),
        Err(error) if error.kind == DiskErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn read_manifest(disk: &dyn Disk, dir: &Path, seed: [u8; 16]) -> Result<Manifest, CoinsError> {
    let path = dir.join(manifest::NAME);
    match find_manifest(disk, dir)? {
        Some(manifest) => Ok(manifest),
        None => {
            // The first manifest is written before any other file, so without it these files are remains of a damaged
            // store.
            let own = own(dir);
            if disk.list(dir)?.iter().any(|(path, _)| own.has(path) && !is_temporary(path)) {
                return Err(CoinsError::ManifestMissing { path: dir.to_owned() });
            }
            let manifest = Manifest::new(Secret::from_bytes(seed));
            own.replace(disk, &path, &manifest.encode())?;
            Ok(manifest)
        }
    }
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|ending| endings.iter().any(|one| ending == *one))
}

fn is_temporary(path: &Path) -> bool {
    has_ending(path, &["new", "scratch"])
}

fn remove_unnamed(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<(), CoinsError> {
    let store = manifest.store_id();
    let path = |kind, number| FileId { store, kind, number }.path(dir);
    let mut named: Vec<PathBuf> = Vec::new();
    for info in &manifest.segments {
        named.extend([path(Kind::Segment, info.number), path(Kind::Sidecar, info.number)]);
    }
    named.extend(manifest.deaths.iter().map(|info| path(Kind::Deaths, info.number)));
    let (found, own) = (disk.list(dir)?, own(dir));
    named.push(dir.join(manifest::NAME));
    let is_unnamed = |path: &PathBuf, kind| kind == PathKind::File && own.has(path) && !named.contains(path);
    let unnamed: Vec<_> = found.into_iter().filter(|(path, kind)| is_unnamed(path, *kind)).collect();
    if !unnamed.is_empty() {
        // A process that died may have renamed the manifest without making this durable; then the previous manifest
        // still needs these files.
        disk.sync_dir(dir)?;
    }
    unnamed.iter().try_for_each(|(path, _)| Ok(own.remove(disk, path).map(|_| ())?))
}

fn build(
    load: &(dyn Fn(usize, &mut Partition) -> Result<(), CoinsError> + Sync),
    partitions: &[Gate<Partition>; PARTITIONS],
    threads: usize,
) -> Result<(), CoinsError> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), CoinsError> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(partition) = partitions.get(number) else { return Ok(()) };
            load(number, &mut partition.lock())?;
        }
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (1..threads.min(PARTITIONS)).map(|_| scope.spawn(work)).collect();
        let mine = work();
        handles.into_iter().fold(mine, |result, handle| match handle.join() {
            Ok(other) => result.and(other),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

fn load(live: &Live, coins: u64, number: usize, partition: &mut Partition) -> Result<(), CoinsError> {
    let share = coins / (PARTITIONS * SHARDS) as u64;
    partition.tables = (0..SHARDS).map(|_| Table::with_capacity(share)).collect();
    let tables = &mut partition.tables;
    let _: ControlFlow<()> = live.each(number, |_, unit, entry| {
        tables[entry.shard].push(Entry::disk(entry.fingerprint, unit));
        Ok(ControlFlow::Continue(()))
    })?;
    let mut scratch = Vec::new();
    tables.iter_mut().for_each(|table| table.arrange(&mut scratch));
    partition.len = partition.tables.iter().map(Table::len).sum();
    let mut blocks = MemoryBlocks::default();
    partition.add_large_blocks(&mut blocks);
    blocks.move_to_huge_pages();
    Ok(())
}

/// Like [`load`], for a store with little memory: fences and deaths of all records, and the filters of the live ones.
/// Takes 8 bytes for each coin of the partition meanwhile.
fn load_low_memory(
    live: &Live,
    manifest: &Manifest,
    dir: &Path,
    number: usize,
    partition: &mut Partition,
) -> Result<(), CoinsError> {
    let share = index(manifest.coins / (PARTITIONS * SHARDS) as u64);
    let mut entries: Vec<Vec<u64>> = (0..SHARDS).map(|_| Vec::with_capacity(share + share / 16)).collect();
    let mut old = Old::new();
    let _: ControlFlow<()> = live.each_record(number, |place, unit, entry, is_dead| {
        let SidecarEntry { shard, fingerprint, units } = entry;
        let record = Added { shard, fingerprint, unit, end: unit + units, is_dead };
        let added = old.append(manifest.segments[place].number, &record);
        let added = added.ok_or_else(|| CoinsError::Full { path: dir.to_owned() })?;
        if !is_dead {
            entries[shard].push(added);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    partition.len = entries.iter().map(|entries| entries.len() as u64).sum();
    for (shard, entries) in entries.into_iter().enumerate() {
        old.set(shard, entries);
    }
    old.end_checkpoint(&|_| false);
    partition.old = Some(Box::new(old));
    Ok(())
}
