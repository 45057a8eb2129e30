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
use crate::record::{Record, outpoint_of};
use crate::rewrite::Window;
use crate::segment::Segments;
use crate::{Coins, PARTITIONS, Tip};
use lydian_consensus::Coin;
use lydian_disk::Disk;
use lydian_primitives::OutPoint;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A callback for a coin, which may break the scan with a value.
pub(crate) type Visit<'a, B> = &'a mut dyn FnMut(&OutPoint, &Coin) -> ControlFlow<B>;

/// All coins of a checkpoint, readable as long as this value exists. The store must not be opened a second time
/// meanwhile: opening removes the temporary files of [`PinnedCoins::export`].
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
        Ok(PinnedCoins {
            disk: Arc::clone(&coins.disk),
            dir: coins.dir.clone(),
            tip: manifest.tip,
            coins: manifest.coins,
            disk_bytes: manifest.disk_bytes(),
            live_bytes: manifest.segments.iter().map(crate::rewrite::live_bytes).sum(),
            segments: coins.segments().of(manifest),
            live: Live::open(coins.disk.as_ref(), &coins.dir, manifest)?,
            exports: Arc::clone(&coins.exports),
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
