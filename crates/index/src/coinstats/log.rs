//! The log of the coin statistics: a record for each block that was ever connected, in that order.
//!
//! Input: records. Output: the record of a block, by height and hash. All records have the same size, so that the
//! number of one gives its place. A block that is connected again has another record; the last one of a height is that
//! of the active chain. Invariant: what is behind the number of records in the tip file is cut off when the log is
//! opened: it may be torn, and those blocks will be connected again. Cost of opening: all records are read and their
//! checksums compared, 0.2 GB for the main chain.

use super::block::{AMOUNTS, Sums};
use super::tip::{Saved, read_sums, write_sums};
use crate::error::IndexError;
use lydian_disk::record::{RECORD_HEAD_SIZE, Records, encode_record};
use lydian_disk::{AppendFile, Change, Disk, DiskErrorKind, OwnDir, ReadFile};
use lydian_primitives::{BlockHash, Height, ParseError, Reader};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The statistics as of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) height: Height,
    pub(super) hash: BlockHash,
    pub(super) muhash: [u8; 32],
    pub(super) sums: Sums,
}

/// Size of a record with its head.
const RECORD_BYTES: usize = RECORD_HEAD_SIZE + PAYLOAD_SIZE;
pub(super) const RECORD_SIZE: u64 = RECORD_BYTES as u64;

/// Height, hash of the block, MuHash, number of coins, bogosize, amounts.
const PAYLOAD_SIZE: usize = 4 + 32 + 32 + 8 + 8 + 16 * AMOUNTS;

/// Records read at once when the log is opened: 4 MB.
const PIECE_RECORDS: u32 = 16_384;

/// The log, open for appending.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: Box<dyn AppendFile>,
    /// The number of the record of each height of the active chain.
    by_height: Vec<u32>,
    /// Records of blocks that left the chain.
    stale: HashMap<BlockHash, u32>,
    /// The number of records, with those that are not in the file yet.
    count: u32,
    pending: Vec<u8>,
}

impl Log {
    /// Opens the log, cut to the records that the tip file names; creates it if there are none.
    pub(super) fn open(disk: &dyn Disk, own: &OwnDir, path: &Path, saved: Option<&Saved>) -> Result<Log, IndexError> {
        let count = saved.map_or(0, |saved| saved.records);
        let size = u64::from(count) * RECORD_SIZE;
        let (mut by_height, mut stale) = (Vec::new(), HashMap::new());
        match disk.open(path) {
            Ok(file) => {
                if file.size() < size {
                    return Err(IndexError::damaged(path, file.size(), "it is shorter than its tip file says"));
                }
                if let Some(saved) = saved {
                    (by_height, stale) = read_all(file.as_ref(), path, saved)?;
                }
                let is_longer = file.size() > size;
                drop(file);
                if is_longer {
                    own.change(disk, path, Change::Truncate { size })?;
                }
            }
            Err(error) if error.kind == DiskErrorKind::NotFound && count == 0 => {}
            Err(error) => return Err(error.into()),
        }
        let file = own.append(disk, path)?;
        Ok(Log { path: path.to_owned(), file, by_height, stale, count, pending: Vec::new() })
    }

    /// The number of records.
    pub(super) fn len(&self) -> u32 {
        self.count
    }

    /// Adds the record of the block after the last one.
    pub(super) fn push(&mut self, record: &Record) {
        assert_eq!(record.height.0 as usize, self.by_height.len(), "a record for each height");
        encode(record, self.count, &mut self.pending);
        self.by_height.push(self.count);
        self.count = match self.count.checked_add(1) {
            Some(count) => count,
            None => unreachable!("4,294,967,295 blocks with proof of work"),
        };
    }

    /// The last block, of this hash, left the chain.
    pub(super) fn pop(&mut self, hash: BlockHash) {
        if let Some(number) = self.by_height.pop() {
            self.stale.insert(hash, number);
        }
    }

    /// Writes the records that are not in the file yet.
    pub(super) fn flush(&mut self) -> Result<(), IndexError> {
        self.file.write(&self.pending)?;
        self.pending.clear();
        Ok(())
    }

    /// Writes all records, and returns when they are durable.
    pub(super) fn sync(&mut self) -> Result<(), IndexError> {
        self.flush()?;
        Ok(self.file.sync()?)
    }

    /// The record of a block, which must be in the file if there is one.
    pub(super) fn find(&self, disk: &dyn Disk, height: Height, hash: &BlockHash) -> Result<Option<Record>, IndexError> {
        let active = self.by_height.get(height.0 as usize).copied();
        let numbers = active.into_iter().chain(self.stale.get(hash).copied());
        let mut file = None;
        for number in numbers {
            let file = match &file {
                Some(file) => file,
                None => file.insert(disk.open(&self.path)?),
            };
            let record = read_one(file.as_ref(), &self.path, number)?;
            if record.hash == *hash {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }
}

fn encode(record: &Record, number: u32, out: &mut Vec<u8>) {
    let mut payload = Vec::with_capacity(PAYLOAD_SIZE);
    payload.extend_from_slice(&record.height.0.to_le_bytes());
    payload.extend_from_slice(&record.hash.0);
    payload.extend_from_slice(&record.muhash);
    write_sums(&record.sums, &mut payload);
    encode_record(&payload, u64::from(number), out);
}

fn decode(payload: &[u8]) -> Result<Record, ParseError> {
    let mut reader = Reader::new(payload);
    let height = Height(reader.u32()?);
    let (hash, muhash) = (BlockHash(reader.array()?), reader.array()?);
    let sums = read_sums(&mut reader)?;
    reader.finish()?;
    Ok(Record { height, hash, muhash, sums })
}

/// Reads the records from number `first` on.
fn read(
    file: &dyn ReadFile,
    path: &Path,
    first: u32,
    count: u32,
    visit: &mut dyn FnMut(u32, Record) -> Result<(), IndexError>,
) -> Result<(), IndexError> {
    let start = u64::from(first) * RECORD_SIZE;
    let mut bytes = vec![0; count as usize * RECORD_BYTES];
    file.read_at(start, &mut bytes)?;
    let mut records = Records::read(&bytes, u64::from(first));
    for number in first..first + count {
        let damaged = |what| IndexError::damaged(path, u64::from(number) * RECORD_SIZE, what);
        let Some(Ok(payload)) = records.next() else { return Err(damaged("the checksum of a record does not match")) };
        visit(number, decode(payload).map_err(|_| damaged("a record of another size"))?)?;
    }
    Ok(())
}

pub(super) fn read_one(file: &dyn ReadFile, path: &Path, number: u32) -> Result<Record, IndexError> {
    let mut found = None;
    read(file, path, number, 1, &mut |_, record| {
        found = Some(record);
        Ok(())
    })?;
    found.ok_or_else(|| IndexError::damaged(path, u64::from(number) * RECORD_SIZE, "a record is missing"))
}

/// Reads all records: the number of each height of the chain at the saved tip, and those of blocks that left it.
pub(super) fn read_all(
    file: &dyn ReadFile,
    path: &Path,
    saved: &Saved,
) -> Result<(Vec<u32>, HashMap<BlockHash, u32>), IndexError> {
    let damaged = |number: u32, what| IndexError::damaged(path, u64::from(number) * RECORD_SIZE, what);
    let mut by_height: Vec<u32> = Vec::new();
    let mut left: Vec<u32> = Vec::new();
    let mut first = 0;
    while first < saved.records {
        let count = PIECE_RECORDS.min(saved.records - first);
        read(file, path, first, count, &mut |number, record| {
            let height = record.height.0 as usize;
            if height > by_height.len() {
                return Err(damaged(number, "a height is missing before this record"));
            }
            left.extend(by_height.drain(height..));
            by_height.push(number);
            Ok(())
        })?;
        first += count;
    }
    left.extend(by_height.drain((saved.tip.height.0 as usize + 1).min(by_height.len())..));
    let last = by_height.last().copied();
    let tip = last.map(|number| read_one(file, path, number)).transpose()?;
    if tip.is_none_or(|record| (record.height, record.hash) != (saved.tip.height, saved.tip.hash)) {
        return Err(damaged(saved.records, "the tip file names a block that has no record"));
    }
    let mut stale = HashMap::new();
    for number in left {
        stale.insert(read_one(file, path, number)?.hash, number);
    }
    Ok((by_height, stale))
}
