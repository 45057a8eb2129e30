//! Reads random records of a store with their checksums, for a report about a directory. Input: a directory, and where
//! random numbers come from. Output: the number of records that were read, or the first damage with file and offset.
//!
//! Takes no lock and changes nothing; another process may use the store and remove files meanwhile. Cost for each
//! record: the sidecar's blocks of its partition up to the record (4 MB at most for a full segment) and one read of the
//! segment; a file of deaths is read in the same way.

use crate::PARTITIONS;
use crate::entry::index;
use crate::error::CoinsError;
use crate::manifest::{DeathsInfo, Manifest, SegmentInfo};
use crate::open::find_manifest;
use crate::sections::{FileId, Kind, Sections};
use crate::segment::Segment;
use crate::writer::SidecarEntry;
use lydian_disk::{Disk, DiskErrorKind};
use std::path::Path;

/// Reads up to `count` records. `random` returns a number below its argument, which is not 0. `None` if there is no
/// store.
pub fn sample(
    disk: &dyn Disk,
    dir: &Path,
    count: usize,
    random: &mut dyn FnMut(u64) -> u64,
) -> Result<Option<usize>, CoinsError> {
    let Some(manifest) = find_manifest(disk, dir)? else { return Ok(None) };
    match read(disk, dir, &manifest, count, random) {
        // The process that uses the store has made a checkpoint and removed a file.
        Err(CoinsError::Disk(error)) if error.kind == DiskErrorKind::NotFound => match find_manifest(disk, dir)? {
            Some(newer) if newer != manifest => read(disk, dir, &newer, count, random).map(Some),
            _ => Err(error.into()),
        },
        read => read.map(Some),
    }
}

fn read(
    disk: &dyn Disk,
    dir: &Path,
    manifest: &Manifest,
    count: usize,
    random: &mut dyn FnMut(u64) -> u64,
) -> Result<usize, CoinsError> {
    let segments: Vec<&SegmentInfo> = manifest.segments.iter().filter(|info| info.records > 0).collect();
    if segments.is_empty() {
        return Ok(0);
    }
    for _ in 0..count {
        let info = segments[index(random(segments.len() as u64))];
        read_record(disk, dir, manifest.store_id(), info, random)?;
    }
    if !manifest.deaths.is_empty() {
        let info = &manifest.deaths[index(random(manifest.deaths.len() as u64))];
        read_death(disk, dir, manifest.store_id(), info, random)?;
    }
    Ok(count)
}

/// Finds a random record by its sidecar, and reads it.
fn read_record(
    disk: &dyn Disk,
    dir: &Path,
    store: u64,
    info: &SegmentInfo,
    random: &mut dyn FnMut(u64) -> u64,
) -> Result<(), CoinsError> {
    let sidecar = Sections::open(disk, dir, FileId { store, kind: Kind::Sidecar, number: info.number }, info.sidecar)?;
    let Some(partition) = pick_section(&sidecar, random) else { return Ok(()) };
    let section = sidecar.section(partition);
    let mut numbers = sidecar.numbers(partition);
    let mut unit = section.first;
    for _ in 0..random(section.count) {
        let Some(bits) = numbers.next()? else { break };
        unit = unit.saturating_add(SidecarEntry::decode(bits).units);
    }
    if unit < info.base || unit >= info.end() {
        return Err(numbers.damaged("an entry beyond its segment"));
    }
    let segment = Segment::open(disk, dir, store, *info)?;
    segment.with_record(unit, &[], |_| ())
}

/// Reads numbers of a file of deaths up to a random one.
fn read_death(
    disk: &dyn Disk,
    dir: &Path,
    store: u64,
    info: &DeathsInfo,
    random: &mut dyn FnMut(u64) -> u64,
) -> Result<(), CoinsError> {
    let deaths = Sections::open(disk, dir, FileId { store, kind: Kind::Deaths, number: info.number }, info.file)?;
    let Some(partition) = pick_section(&deaths, random) else { return Ok(()) };
    let mut numbers = deaths.numbers(partition);
    for _ in 0..=random(deaths.section(partition).count) {
        numbers.next()?;
    }
    Ok(())
}

/// A section that has numbers; `None` if none has.
fn pick_section(sections: &Sections, random: &mut dyn FnMut(u64) -> u64) -> Option<usize> {
    let filled: Vec<usize> = (0..PARTITIONS).filter(|section| sections.section(*section).count > 0).collect();
    let count = filled.len() as u64;
    filled.get(if count == 0 { 0 } else { index(random(count)) }).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Coins, Settings, Tip};
    use lydian_consensus::CoinRef;
    use lydian_disk::{FixedFile, SimDisk};
    use lydian_primitives::{Amount, BlockHash, Height, OutPoint, Txid};
    use lydian_stdx::SplitMix64;
    use std::sync::Arc;

    const DIR: &str = "/c";

    /// A store of 500 coins, of which some were spent after a checkpoint.
    fn store() -> SimDisk {
        let disk = SimDisk::new(1);
        let coins = Coins::open(Arc::new(disk.clone()), Path::new(DIR), Settings::new(1 << 12), [1; 16], 1).unwrap();
        let keys: Vec<_> = (0..500_u32)
            .map(|vout| coins.key(OutPoint { txid: Txid(lydian_hash::sha256(&vout.to_le_bytes())), vout }))
            .collect();
        let coin = CoinRef { value: Amount(7), script_pubkey: &[9; 50], height: Height(1), is_coinbase: false };
        for key in &keys {
            coins.apply(Coins::partition(key), [].into_iter(), [(*key, coin)].into_iter()).unwrap();
        }
        coins.checkpoint(Tip { height: Height(1), hash: BlockHash::ZERO }, 1).unwrap();
        for key in &keys[..100] {
            coins.apply(Coins::partition(key), [*key].into_iter(), [].into_iter()).unwrap();
        }
        coins.checkpoint(Tip { height: Height(2), hash: BlockHash::ZERO }, 1).unwrap();
        disk
    }

    fn sampled(disk: &SimDisk, count: usize) -> Result<Option<usize>, CoinsError> {
        let mut numbers = SplitMix64::new(1);
        sample(disk, Path::new(DIR), count, &mut |below| numbers.next_u64() % below)
    }

    #[test]
    fn a_whole_store_is_read_and_damage_is_found() {
        let disk = SimDisk::new(1);
        disk.create_dir(Path::new(DIR)).unwrap();
        assert!(matches!(sampled(&disk, 5), Ok(None)), "no store");
        let disk = store();
        assert_eq!(sampled(&disk, 300).unwrap(), Some(300));
        for ending in ["coins", "index", "deaths"] {
            let disk = store();
            let files = disk.list(Path::new(DIR)).unwrap();
            let (path, _) = files.iter().find(|(path, _)| path.extension().is_some_and(|last| last == ending)).unwrap();
            let size = disk.open(path).unwrap().size();
            let file: Box<dyn FixedFile> = disk.fixed_file(path, size).unwrap();
            // The second half, so that the header stays as it is.
            let half = size / 2;
            file.write_at(half, &vec![0x5a; index(size - half)]).unwrap();
            let error = sampled(&disk, 300).unwrap_err();
            assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        }
    }
}
