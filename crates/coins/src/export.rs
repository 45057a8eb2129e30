//! Exports all coins ordered by outpoint. Input: the store. Output: a call for each coin, in order of txid bytes and
//! output index.
//!
//! The index has another order, so coins are distributed by the first byte of their txid to 256 files, and each file is
//! sorted in memory. A small set is sorted directly. Cost: each record is read, written and read again; 256 MiB of
//! memory and 20 MB of buffers for any number of coins (txids are hashes, so the parts have similar sizes). The files
//! are removed afterwards, or at the next opening if the export is interrupted. The store must not change during the
//! export.

use crate::coin::parse_coin;
use crate::entry::Place;
use crate::error::CoinsError;
use crate::open::own;
use crate::partition::in_memory;
use crate::record::{OUTPOINT_BYTES, outpoint_of};
use crate::rewrite::Mover;
use crate::store::Coins;
use lydian_consensus::Coin;
use lydian_disk::AppendFile;
use lydian_primitives::OutPoint;
use lydian_stdx::lock;
use std::path::PathBuf;

/// A set of at most this size is sorted in memory.
pub(crate) const SORTED_BYTES_MAX: u64 = 256 << 20;
/// A callback for a coin that is not decoded yet.
type VisitBytes<'a> = &'a mut dyn FnMut(&[u8; OUTPOINT_BYTES], &[u8]) -> Result<(), CoinsError>;
const PARTS: usize = 256;
const BUFFER_BYTES: usize = 64 << 10;

/// The callback for a coin.
pub(crate) type Visit<'a, E> = &'a mut dyn FnMut(&OutPoint, &Coin) -> Result<(), E>;

/// Visits all coins. Sorts at most `sorted_bytes_max` bytes at once, as far as 256 parts allow.
pub(crate) fn run<E: From<CoinsError>>(coins: &Coins, sorted_bytes_max: u64, visit: Visit<'_, E>) -> Result<(), E> {
    let mut all = Vec::new();
    let mut parts: Option<Parts> = None;
    each_coin(coins, &mut |outpoint, coin| {
        if parts.is_none() && (all.len() + coin.len()) as u64 > sorted_bytes_max {
            let mut opened = Parts::create(coins)?;
            each_record(&all, &mut |outpoint, coin| opened.push(outpoint, coin))?;
            all = Vec::new();
            parts = Some(opened);
        }
        match &mut parts {
            Some(parts) => parts.push(outpoint, coin)?,
            None => write(outpoint, coin, &mut all),
        }
        Ok(())
    })?;
    let Some(parts) = parts else { return visit_sorted(&all, visit) };
    let paths = parts.finish()?;
    let mut result = Ok(());
    for path in &paths {
        if result.is_ok() {
            result = lydian_disk::read_whole(coins.disk.as_ref(), path, u64::MAX)
                .map_err(|error| E::from(error.into()))
                .and_then(|bytes| visit_sorted(&bytes, &mut *visit));
        }
        // A file that remains is removed at the next opening.
        let _ = own(&coins.dir).remove(coins.disk.as_ref(), path);
    }
    result
}

fn write(outpoint: &[u8; OUTPOINT_BYTES], coin: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(outpoint);
    out.extend_from_slice(coin);
}

fn visit_sorted<E: From<CoinsError>>(bytes: &[u8], visit: Visit<'_, E>) -> Result<(), E> {
    let mut order: Vec<(OutPoint, usize)> = Vec::new();
    let end = bytes.as_ptr_range().end;
    each_record(bytes, &mut |outpoint, coin| {
        order.push((outpoint_of(outpoint), end.addr() - coin.as_ptr().addr()));
        Ok(())
    })?;
    order.sort_unstable_by_key(|(outpoint, _)| *outpoint);
    for (outpoint, from_end) in &order {
        if let Ok(coin) = parse_coin(&bytes[bytes.len() - from_end..]) {
            visit(outpoint, &coin.to_coin())?;
        }
    }
    Ok(())
}

/// Splits the concatenated records of [`write`].
fn each_record(bytes: &[u8], visit: VisitBytes<'_>) -> Result<(), CoinsError> {
    let mut rest = bytes;
    while let Some((outpoint, tail)) = rest.split_first_chunk() {
        let size = match parse_coin(tail) {
            Ok(coin) => coin.size,
            Err(_) => {
                return Err(CoinsError::damaged(
                    "export".as_ref(),
                    (bytes.len() - rest.len()) as u64,
                    "a coin that cannot be read",
                ));
            }
        };
        visit(outpoint, &tail[..size])?;
        rest = &tail[size..];
    }
    Ok(())
}

/// Visits all coins in index order.
fn each_coin(coins: &Coins, visit: VisitBytes<'_>) -> Result<(), CoinsError> {
    let segments = coins.segments();
    let mut mover = Mover::new(&segments);
    for partition in &coins.partitions {
        let partition = lock(partition);
        for entry in partition.tables.iter().flat_map(|table| table.slots()).filter(|entry| !entry.is_empty()) {
            match entry.place() {
                Place::Memory { address, .. } => {
                    let record = in_memory(partition.arena.bytes(address));
                    visit(record.outpoint, record.coin_bytes)?;
                }
                Place::Disk { unit } => mover.take(unit, |record| visit(record.outpoint, record.coin_bytes))??,
            }
        }
    }
    Ok(())
}

/// The files of the parts.
struct Parts(Vec<(PathBuf, Box<dyn AppendFile>, Vec<u8>)>);

impl Parts {
    fn create(coins: &Coins) -> Result<Parts, CoinsError> {
        let create = |number: usize| {
            let path = coins.dir.join(format!("export-{number:02x}.scratch"));
            let own = own(&coins.dir);
            own.remove(coins.disk.as_ref(), &path)?;
            let file = own.append(coins.disk.as_ref(), &path)?;
            Ok((path, file, Vec::with_capacity(BUFFER_BYTES)))
        };
        (0..PARTS).map(create).collect::<Result<_, CoinsError>>().map(Parts)
    }

    fn push(&mut self, outpoint: &[u8; OUTPOINT_BYTES], coin: &[u8]) -> Result<(), CoinsError> {
        let (_, file, buffer) = &mut self.0[usize::from(outpoint[0])];
        write(outpoint, coin, buffer);
        if buffer.len() >= BUFFER_BYTES {
            file.write(buffer)?;
            buffer.clear();
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<PathBuf>, CoinsError> {
        let finish = |(path, mut file, buffer): (PathBuf, Box<dyn AppendFile>, Vec<u8>)| {
            file.write(&buffer)?;
            Ok(path)
        };
        self.0.into_iter().map(finish).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, Tip};
    use lydian_consensus::CoinRef;
    use lydian_disk::{Disk, SimDisk};
    use lydian_primitives::{Amount, BlockHash, Height, Txid};
    use std::path::Path;
    use std::sync::Arc;

    #[test]
    fn parts_give_the_same_as_sorting_at_once_and_leave_nothing() {
        let disk = SimDisk::new(1);
        let dir = Path::new("/c");
        let coins = Coins::open(Arc::new(disk.clone()), dir, Settings::new(1 << 14), [1; 16], 1).unwrap();
        let tip = Tip { height: Height(1), hash: BlockHash::ZERO };
        for number in 0..1000u32 {
            let script = vec![1; usize::from(number.to_le_bytes()[0])];
            let coin = CoinRef { value: Amount(7), script_pubkey: &script, height: Height(number), is_coinbase: false };
            let txid = Txid(lydian_hash::sha256(&(number / 3).to_le_bytes()));
            let key = coins.key(OutPoint { txid, vout: 300 - number % 300 });
            coins.apply(Coins::partition(&key), [].into_iter(), [(key, coin)].into_iter()).unwrap();
            if number == 700 {
                coins.checkpoint(tip, 1).unwrap();
            }
        }
        let export = |sorted_bytes_max| {
            let mut found: Vec<(OutPoint, Coin)> = Vec::new();
            run::<CoinsError>(&coins, sorted_bytes_max, &mut |outpoint, coin| {
                found.push((*outpoint, coin.clone()));
                Ok(())
            })
            .unwrap();
            found
        };
        let at_once = export(u64::MAX);
        assert!(at_once.len() == 1000 && at_once.is_sorted_by_key(|(outpoint, _)| *outpoint));
        for sorted_bytes_max in [0, 100, 50_000] {
            let files = disk.list(dir).unwrap();
            assert!(export(sorted_bytes_max) == at_once);
            assert_eq!(disk.list(dir).unwrap(), files);
        }
        let stopped = run::<CoinsError>(&coins, 0, &mut |_, _| Err(CoinsError::Poisoned));
        assert_eq!(stopped, Err(CoinsError::Poisoned));
        assert_eq!(disk.list(dir).unwrap().len(), 3, "manifest, segment, sidecar");
    }
}
