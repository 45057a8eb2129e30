//! [`Sorter`]: sorts coins by outpoint. Input: coins in any order. Output: a call for each coin, in order of txid bytes
//! and output index.
//!
//! Coins are distributed by the first byte of their txid to 256 files, and each file is sorted in memory. A small set
//! is sorted directly. Several sorters may be at work in one directory, each with a number of its own. Cost: each coin
//! is written and read once; 16 MiB of buffers, and the memory of the part that is being sorted, 80 bytes for each of
//! its coins: 57 MB for 180 million coins (txids are hashes, so the parts have similar sizes), at most 45 MB for a set
//! that is sorted directly. The files are removed when the sorter is dropped, or at the next opening of the store if
//! the process ends.

use crate::coin::parse_coin;
use crate::entry::index;
use crate::error::CoinsError;
use crate::open::own;
use crate::pinned::Visit;
use crate::record::{OUTPOINT_BYTES, outpoint_of};
use lydian_disk::{AppendFile, Disk};
use lydian_primitives::OutPoint;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A set of at most this size is sorted in memory.
pub(crate) const SORTED_BYTES_MAX: u64 = 32 << 20;
const PARTS: usize = 256;
const BUFFER_BYTES: usize = 64 << 10;

pub(crate) struct Sorter<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    /// The files by the first byte of the txid, the last one first. Empty if everything is in `small`.
    parts: Vec<File>,
    small: Part,
}

/// Coins one after another: outpoint, encoded coin.
#[derive(Debug, Default)]
struct Part {
    bytes: Vec<u8>,
    coins: u64,
}

/// A file of coins; the last ones are still in `part`, which counts all.
struct File {
    path: PathBuf,
    file: Box<dyn AppendFile>,
    part: Part,
}

impl<'a> Sorter<'a> {
    /// `number` distinguishes the files from those of other sorters.
    pub(crate) fn new(
        disk: &'a dyn Disk,
        dir: &'a Path,
        number: u64,
        is_small: bool,
    ) -> Result<Sorter<'a>, CoinsError> {
        let mut sorter = Sorter { disk, dir, parts: Vec::new(), small: Part::default() };
        for place in (0..if is_small { 0 } else { PARTS }).rev() {
            let path = dir.join(format!("export-{number}-{place:02x}.scratch"));
            own(dir).remove(disk, &path)?;
            let file = own(dir).append(disk, &path)?;
            let part = Part { bytes: Vec::with_capacity(BUFFER_BYTES), coins: 0 };
            sorter.parts.push(File { path, file, part });
        }
        Ok(sorter)
    }

    pub(crate) fn push(&mut self, outpoint: &[u8; OUTPOINT_BYTES], coin: &[u8]) -> Result<(), CoinsError> {
        let place = PARTS - 1 - usize::from(outpoint[0]);
        match self.parts.get_mut(place) {
            Some(file) => {
                if file.part.bytes.len() + OUTPOINT_BYTES + coin.len() > BUFFER_BYTES {
                    file.write()?;
                }
                file.part.push(outpoint, coin);
            }
            None => self.small.push(outpoint, coin),
        }
        Ok(())
    }

    /// Visits the coins in order, until a visit breaks.
    pub(crate) fn visit<B>(mut self, visit: Visit<'_, B>) -> Result<ControlFlow<B>, CoinsError> {
        while let Some(file) = self.parts.last_mut() {
            file.write()?;
            let bytes = lydian_disk::read_whole(self.disk, &file.path, u64::MAX)?;
            let visited = Part { bytes, coins: file.part.coins }.visit_sorted(&file.path, visit)?;
            if visited.is_break() {
                return Ok(visited);
            }
            remove(self.disk, self.dir, self.parts.pop());
        }
        self.small.visit_sorted(self.dir, visit)
    }
}

impl Drop for Sorter<'_> {
    fn drop(&mut self) {
        self.parts.drain(..).for_each(|file| remove(self.disk, self.dir, Some(file)));
    }
}

/// Removes a file. One that remains is removed at the next opening.
fn remove(disk: &dyn Disk, dir: &Path, file: Option<File>) {
    if let Some(File { path, .. }) = file {
        let _ = own(dir).remove(disk, &path);
    }
}

impl File {
    /// Writes the coins in memory.
    fn write(&mut self) -> Result<(), CoinsError> {
        self.file.write(&self.part.bytes)?;
        self.part.bytes.clear();
        Ok(())
    }
}

impl Part {
    fn push(&mut self, outpoint: &[u8; OUTPOINT_BYTES], coin: &[u8]) {
        self.bytes.extend_from_slice(outpoint);
        self.bytes.extend_from_slice(coin);
        self.coins += 1;
    }

    /// Visits the coins in order. `path` is for errors.
    fn visit_sorted<B>(&self, path: &Path, visit: Visit<'_, B>) -> Result<ControlFlow<B>, CoinsError> {
        // The start of the txid, which decides nearly all comparisons, and the offset.
        let mut order: Vec<(u64, usize)> = Vec::with_capacity(index(self.coins));
        let mut rest = &self.bytes[..];
        while let Some((outpoint, tail)) = rest.split_first_chunk::<OUTPOINT_BYTES>() {
            let offset = self.bytes.len() - rest.len();
            let Ok(coin) = parse_coin(tail) else {
                return Err(CoinsError::damaged(path, offset as u64, "a coin that cannot be read"));
            };
            let start = outpoint.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
            order.push((start, offset));
            rest = &tail[coin.size..];
        }
        if order.len() as u64 != self.coins || !rest.is_empty() {
            return Err(CoinsError::damaged(path, self.bytes.len() as u64, "the file ends early"));
        }
        let outpoint_at =
            |offset: usize| -> OutPoint { self.bytes[offset..].first_chunk().map_or(OutPoint::NULL, outpoint_of) };
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| outpoint_at(a.1).cmp(&outpoint_at(b.1))));
        for (_, offset) in order {
            if let Ok(coin) = parse_coin(&self.bytes[offset + OUTPOINT_BYTES..])
                && let ControlFlow::Break(value) = visit(&outpoint_at(offset), &coin.to_coin())
            {
                return Ok(ControlFlow::Break(value));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Coins, CoinsError, PinnedCoins, Settings, Tip};
    use lydian_consensus::{Coin, CoinRef};
    use lydian_disk::{Disk, SimDisk};
    use lydian_primitives::{Amount, BlockHash, Height, OutPoint, Txid};
    use std::ops::ControlFlow;
    use std::path::Path;
    use std::sync::Arc;

    const DIR: &str = "/c";

    fn pinned(disk: &SimDisk) -> PinnedCoins {
        let coins = Coins::open(Arc::new(disk.clone()), Path::new(DIR), Settings::new(1 << 14), [1; 16], 1).unwrap();
        for number in 0..1000u32 {
            let script = vec![1; usize::from(number.to_le_bytes()[0])];
            let coin = CoinRef { value: Amount(7), script_pubkey: &script, height: Height(number), is_coinbase: false };
            let txid = Txid(lydian_hash::sha256(&(number / 3).to_le_bytes()));
            let key = coins.key(OutPoint { txid, vout: 300 - number % 300 });
            coins.apply(Coins::partition(&key), [].into_iter(), [(key, coin)].into_iter()).unwrap();
            if number == 700 {
                coins.checkpoint(Tip { height: Height(1), hash: BlockHash::ZERO }, 1).unwrap();
            }
        }
        coins.checkpoint(Tip { height: Height(2), hash: BlockHash::ZERO }, 1).unwrap();
        coins.pin().unwrap()
    }

    fn export(pinned: &PinnedCoins, sorted_bytes_max: u64) -> Result<Vec<(OutPoint, Coin)>, CoinsError> {
        let mut found: Vec<(OutPoint, Coin)> = Vec::new();
        let _: ControlFlow<()> = pinned.export_by(sorted_bytes_max, &mut |outpoint, coin| {
            found.push((*outpoint, coin.clone()));
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    #[test]
    fn parts_give_the_same_as_sorting_at_once_and_leave_nothing() {
        let disk = SimDisk::new(1);
        let pinned = pinned(&disk);
        let files = disk.list(Path::new(DIR)).unwrap();
        let at_once = export(&pinned, u64::MAX).unwrap();
        assert!(at_once.len() == 1000 && at_once.is_sorted_by_key(|(outpoint, _)| *outpoint));
        assert!(export(&pinned, 0).unwrap() == at_once);
        assert_eq!(disk.list(Path::new(DIR)).unwrap(), files);
        let stopped = pinned.export_by(0, &mut |outpoint, _| ControlFlow::Break(*outpoint));
        assert_eq!(stopped, Ok(ControlFlow::Break(at_once[0].0)));
        assert_eq!(disk.list(Path::new(DIR)).unwrap(), files);
    }

    /// Each export has files of its own: one that starts and ends while another is half way changes nothing for it.
    #[test]
    fn exports_inside_an_export() {
        let disk = SimDisk::new(1);
        let pinned = pinned(&disk);
        let expected = export(&pinned, u64::MAX).unwrap();
        let mut found = Vec::new();
        let _: ControlFlow<()> = pinned
            .export_by(0, &mut |outpoint, coin| {
                if found.len() % 300 == 0 {
                    assert!(export(&pinned, 0).unwrap() == expected);
                }
                found.push((*outpoint, coin.clone()));
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!(found == expected);
    }

    /// A process that dies during an export leaves files, which the next opening removes; a disk that fails is an error
    /// that names the file, and the files are removed if the disk allows it.
    #[test]
    fn a_crash_or_failure_at_every_operation_of_an_export() {
        use lydian_disk::{DiskErrorKind, Fault};
        let (start, end, files) = {
            let disk = SimDisk::new(1);
            let pinned = pinned(&disk);
            let start = disk.operation_count();
            export(&pinned, 0).unwrap();
            (start, disk.operation_count(), disk.list(Path::new(DIR)).unwrap())
        };
        let disk = SimDisk::new(1);
        drop(pinned(&disk));
        // The files are alike, so not each operation on each of them is tried.
        for operation in (0..end - start).step_by(53) {
            for fault in [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter, Fault::Io, Fault::NoSpace] {
                let disk = disk.kill();
                let open = |disk: &SimDisk| {
                    Coins::open(Arc::new(disk.clone()), Path::new(DIR), Settings::new(1 << 14), [1; 16], 1).unwrap()
                };
                let pinned = open(&disk).pin().unwrap();
                disk.fail_at(disk.operation_count() + operation, fault);
                let result = export(&pinned, 0);
                if disk.is_crashed() {
                    for disk in [disk.kill(), disk.power_loss(operation)] {
                        assert_eq!(export(&open(&disk).pin().unwrap(), 0).unwrap().len(), 1000);
                        assert_eq!(disk.list(Path::new(DIR)).unwrap(), files, "{fault:?} at {operation}");
                    }
                } else if let Err(error) = result {
                    let CoinsError::Disk(error) = error else { panic!("{error:?}") };
                    assert!(matches!(error.kind, DiskErrorKind::Io | DiskErrorKind::NoSpace));
                    assert!(error.path.to_str().unwrap().contains("scratch"), "{error}");
                    // A file whose creation failed may remain until the next opening.
                    assert!(disk.list(Path::new(DIR)).unwrap().len() <= files.len() + 1, "{fault:?} at {operation}");
                }
            }
        }
    }
}
