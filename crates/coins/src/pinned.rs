//! [`PinnedCoins`]: all coins of one checkpoint. Input: none. Output: each coin, in the order of the files or ordered
//! by outpoint.
//!
//! The files of the checkpoint stay open, so that they are readable after later checkpoints have removed their names;
//! their space is free once the pin is dropped or the process ends. A pin holds no lock of the store: blocks are
//! applied and checkpoints are made while it is read, and any number of pins may exist at the same time. Cost: one file
//! descriptor for each segment, sidecar and death file. Reading works partition by partition and takes at most about 6
//! MB of memory for any number of coins, and what the ordered export adds (`export`).

use crate::error::CoinsError;
use crate::export::{self, Sorter};
use crate::live::Live;
use crate::manifest::Manifest;
use crate::open;
use crate::record::{Record, outpoint_of};
use crate::rewrite::Window;
use crate::segment::Segments;
use crate::{Coins, PARTITIONS, Tip};
use lydian_consensus::Coin;
use lydian_disk::{Disk, DiskErrorKind};
use lydian_primitives::OutPoint;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A callback for a coin, which may break the scan with a value.
pub(crate) type Visit<'a, B> = &'a mut dyn FnMut(&OutPoint, &Coin) -> ControlFlow<B>;

/// All coins of a checkpoint, readable as long as this value exists. If the store is opened again meanwhile, an export
/// in files fails: opening removes the temporary files of [`PinnedCoins::export`].
#[derive(Debug)]
pub struct PinnedCoins {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    tip: Option<Tip>,
    coins: u64,
    disk_bytes: u64,
    live_bytes: u64,
    segments: Segments,
    live: Live,
    /// The number of exports that were started on the store, for the names of their files.
    exports: Arc<AtomicU64>,
}

impl PinnedCoins {
    pub(crate) fn new(coins: &Coins, manifest: &Manifest) -> Result<PinnedCoins, CoinsError> {
        let (disk, dir, exports) = (Arc::clone(&coins.disk), coins.dir.clone(), Arc::clone(&coins.exports));
        PinnedCoins::with(disk, dir, manifest, coins.segments().of(manifest), exports)
    }

    /// Pins the last checkpoint of a store that another process has open, without its lock; `None` if the directory has
    /// no store. That process may replace the checkpoint and remove its files at any moment: while a file is missing
    /// and the manifest is a new one, it begins again. `exports` is the number of the first export, which must differ
    /// from those of the other process.
    pub fn of_directory(disk: Arc<dyn Disk>, dir: &Path, exports: u64) -> Result<Option<PinnedCoins>, CoinsError> {
        let exports = Arc::new(AtomicU64::new(exports));
        let mut last = None;
        while let Some(manifest) = open::find_manifest(disk.as_ref(), dir)? {
            let pinned = open::open_segments(disk.as_ref(), dir, &manifest).and_then(|segments| {
                PinnedCoins::with(Arc::clone(&disk), dir.to_owned(), &manifest, segments, Arc::clone(&exports))
            });
            match pinned {
                Err(CoinsError::Disk(error))
                    if error.kind == DiskErrorKind::NotFound && last.as_ref() != Some(&manifest) =>
                {
                    last = Some(manifest);
                }
                pinned => return pinned.map(Some),
            }
        }
        Ok(None)
    }

    fn with(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        manifest: &Manifest,
        segments: Segments,
        exports: Arc<AtomicU64>,
    ) -> Result<PinnedCoins, CoinsError> {
        Ok(PinnedCoins {
            tip: manifest.tip,
            coins: manifest.coins,
            disk_bytes: manifest.disk_bytes(),
            live_bytes: manifest.segments.iter().map(crate::rewrite::live_bytes).sum(),
            segments,
            live: Live::open(disk.as_ref(), &dir, manifest)?,
            disk,
            dir,
            exports,
        })
    }

    /// The tip of the checkpoint, or `None` if there was none.
    pub fn tip(&self) -> Option<Tip> {
        self.tip
    }

    /// The number of coins.
    pub fn len(&self) -> u64 {
        self.coins
    }

    pub fn is_empty(&self) -> bool {
        self.coins == 0
    }

    /// Size of the store on disk at the checkpoint.
    pub fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }

    /// Visits all coins in the order of the files, until a visit breaks. The result of a break is its value.
    pub fn each<B>(
        &self,
        visit: &mut dyn FnMut(&OutPoint, &Coin) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, CoinsError> {
        self.each_record(|record| Ok(visit(&outpoint_of(record.outpoint), &record.coin.to_coin())))
    }

    /// Visits all coins in order of txid bytes and output index, until a visit breaks. The result of a break is its
    /// value. The first visit comes after all coins have been read once.
    pub fn export<B>(
        &self,
        visit: &mut dyn FnMut(&OutPoint, &Coin) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, CoinsError> {
        self.export_by(export::SORTED_BYTES_MAX, visit)
    }

    /// Sorts at once if the set has about `sorted_bytes_max` bytes at most, and else in parts.
    pub(crate) fn export_by<B>(
        &self,
        sorted_bytes_max: u64,
        visit: Visit<'_, B>,
    ) -> Result<ControlFlow<B>, CoinsError> {
        let number = self.exports.fetch_add(1, Ordering::Relaxed);
        let is_small = self.live_bytes <= sorted_bytes_max;
        let mut sorter = Sorter::new(self.disk.as_ref(), &self.dir, number, is_small)?;
        let _: ControlFlow<()> = self.each_record(|record| {
            sorter.push(record.outpoint, record.coin_bytes)?;
            Ok(ControlFlow::Continue(()))
        })?;
        sorter.visit(visit)
    }

    fn each_record<B>(
        &self,
        mut visit: impl FnMut(Record<'_>) -> Result<ControlFlow<B>, CoinsError>,
    ) -> Result<ControlFlow<B>, CoinsError> {
        let mut window = Window::default();
        for partition in 0..PARTITIONS {
            // The segments have the order of the manifest.
            let visited = self
                .live
                .each(partition, |place, unit, _| window.take(self.segments.get(place), unit, &mut visit)?)?;
            if visited.is_break() {
                return Ok(visited);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use lydian_consensus::CoinRef;
    use lydian_disk::SimDisk;
    use lydian_primitives::{Amount, BlockHash, Height, Txid};
    use std::sync::atomic::AtomicBool;

    const DIR: &str = "/c";

    fn pin(disk: &SimDisk) -> Option<PinnedCoins> {
        PinnedCoins::of_directory(Arc::new(disk.clone()), Path::new(DIR), 1 << 40).unwrap()
    }

    /// Another process replaces the checkpoint and removes its files the whole time.
    #[test]
    fn a_checkpoint_is_pinned_without_the_store() {
        let disk = SimDisk::new(1);
        disk.create_dir(Path::new(DIR)).unwrap();
        assert!(pin(&disk).is_none());
        let coins = Coins::open(Arc::new(disk.clone()), Path::new(DIR), Settings::new(1 << 12), [1; 16], 1).unwrap();
        assert_eq!(pin(&disk).map(|pinned| (pinned.tip(), pinned.len())), Some((None, 0)));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for height in 1..400u32 {
                    // Adds a coin at each height, and spends those of earlier ones but for every third.
                    let key_of = |height: u32| {
                        let txid = Txid(lydian_hash::sha256(&height.to_le_bytes()));
                        coins.key(OutPoint { txid, vout: height })
                    };
                    let added = key_of(height);
                    let script = [7; 90];
                    let coin = CoinRef {
                        value: Amount(7),
                        script_pubkey: &script,
                        height: Height(height),
                        is_coinbase: false,
                    };
                    coins.apply(Coins::partition(&added), [].into_iter(), [(added, coin)].into_iter()).unwrap();
                    if height > 20 && height % 3 != 0 {
                        let spent = key_of(height - 20);
                        coins.apply(Coins::partition(&spent), [spent].into_iter(), [].into_iter()).unwrap();
                    }
                    coins.checkpoint(Tip { height: Height(height), hash: BlockHash::ZERO }, 1).unwrap();
                }
                is_over.store(true, Ordering::Relaxed);
            });
            let mut last = 0;
            while last < 399 {
                let was_over = is_over.load(Ordering::Relaxed);
                let pinned = pin(&disk).unwrap();
                let height = pinned.tip().map_or(0, |tip| tip.height.0);
                assert!(height >= last && (!was_over || height == 399), "{height} after {last}");
                let mut found = Vec::new();
                let _: ControlFlow<()> = pinned
                    .export_by(0, &mut |_, coin| {
                        found.push(coin.height.0);
                        ControlFlow::Continue(())
                    })
                    .unwrap();
                found.sort_unstable();
                let is_there = |made: &u32| made + 20 > height || (made + 20).is_multiple_of(3);
                assert_eq!(found, (1..=height).filter(is_there).collect::<Vec<_>>(), "at {height}");
                last = height;
            }
        });
    }

    /// A file that the manifest names and that does not exist is damage, not a reason to try forever.
    #[test]
    fn a_missing_file_is_an_error() {
        let disk = SimDisk::new(1);
        let coins = Coins::open(Arc::new(disk.clone()), Path::new(DIR), Settings::new(1 << 12), [1; 16], 1).unwrap();
        let coin = CoinRef { value: Amount(7), script_pubkey: &[1], height: Height(1), is_coinbase: false };
        let key = coins.key(OutPoint { txid: Txid([1; 32]), vout: 0 });
        coins.apply(Coins::partition(&key), [].into_iter(), [(key, coin)].into_iter()).unwrap();
        coins.checkpoint(Tip { height: Height(1), hash: BlockHash::ZERO }, 1).unwrap();
        assert_eq!(pin(&disk).unwrap().len(), 1);
        let is_segment = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "coins");
        let (segment, _) = disk.list(Path::new(DIR)).unwrap().into_iter().find(|(path, _)| is_segment(path)).unwrap();
        open::own(Path::new(DIR)).remove(&disk, &segment).unwrap();
        let error = PinnedCoins::of_directory(Arc::new(disk), Path::new(DIR), 0).unwrap_err();
        assert!(error.to_string().contains(&segment.display().to_string()), "{error}");
    }
}
