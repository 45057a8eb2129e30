//! The two logs of the block filters: the filters, and an entry for each of them.
//!
//! Input: the filter of each block, in the order of the chain. Output: the filter or the entry of a height. The number
//! of a record is its height. Entries have one size, so that the height gives the place; an entry has the place of its
//! filter. Blocks that leave the chain are cut off, so that both files follow from the chain alone.
//!
//! Invariants: records that are not in the files yet are at most [`PENDING_BYTES_MAX`] and one block's; a file is cut
//! only when [`Logs::cut_files`] is called, which must not be while a tip file names a block that it would lose.
//! Cost of opening: one entry is read.

use crate::error::IndexError;
use lydian_disk::limits::RECORD_PAYLOAD_SIZE_MAX;
use lydian_disk::record::{RECORD_HEAD_SIZE, Records, encode_record};
use lydian_disk::{AppendFile, Change, Disk, DiskErrorKind, OwnDir, ReadFile};
use lydian_primitives::{BlockHash, Height, ParseError, Reader};
use std::path::PathBuf;

/// What the index knows about the filter of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterEntry {
    pub block: BlockHash,
    /// The hash of the filter.
    pub hash: [u8; 32],
    /// The filter header.
    pub header: [u8; 32],
}

/// A record of the second log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) filter: FilterEntry,
    /// The place of its filter's record in the first log.
    pub(super) offset: u64,
    /// The size of that record.
    pub(super) size: u32,
}

impl Entry {
    fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.size))
    }
}

/// Block hash, hash of the filter, filter header, offset, size.
const ENTRY_PAYLOAD_SIZE: usize = 32 + 32 + 32 + 8 + 4;
const ENTRY_BYTES: usize = RECORD_HEAD_SIZE + ENTRY_PAYLOAD_SIZE;
pub(super) const ENTRY_SIZE: u64 = ENTRY_BYTES as u64;

/// Bytes of records that wait before they are written.
const PENDING_BYTES_MAX: usize = 1 << 20;

/// A file that grows, with records that are not in it yet.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    /// `None` while it is cut.
    file: Option<Box<dyn AppendFile>>,
    /// The size with the records that wait.
    size: u64,
    /// The size of the file.
    written: u64,
    pending: Vec<u8>,
}

impl Log {
    /// Opens the file, cut to a size, or creates it.
    fn open(disk: &dyn Disk, own: &OwnDir, path: PathBuf, size: u64) -> Result<Log, IndexError> {
        let written = match disk.open(&path) {
            Ok(file) => file.size(),
            Err(error) if error.kind == DiskErrorKind::NotFound => 0,
            Err(error) => return Err(error.into()),
        };
        if written < size {
            return Err(IndexError::damaged(&path, written, "it is shorter than its tip file says"));
        }
        let mut log = Log { path, file: None, size, written, pending: Vec::new() };
        log.cut_file(disk, own)?;
        Ok(log)
    }

    /// Cuts the file to the size, and opens it.
    fn cut_file(&mut self, disk: &dyn Disk, own: &OwnDir) -> Result<(), IndexError> {
        if self.written > self.size {
            // A file is cut while no writer has it open.
            self.file = None;
            own.change(disk, &self.path, Change::Truncate { size: self.size })?;
            self.written = self.size;
        }
        if self.file.is_none() {
            self.file = Some(own.append(disk, &self.path)?);
        }
        Ok(())
    }

    fn push(&mut self, payload: &[u8], number: u32) {
        let before = self.pending.len();
        encode_record(payload, u64::from(number), &mut self.pending);
        self.size += (self.pending.len() - before) as u64;
    }

    /// Only this many bytes are valid.
    fn cut(&mut self, size: u64) {
        self.size = size;
        let kept = usize::try_from(size.saturating_sub(self.written)).unwrap_or(usize::MAX);
        self.pending.truncate(kept);
    }

    fn flush(&mut self) -> Result<(), IndexError> {
        if let Some(file) = &mut self.file {
            file.write(&self.pending)?;
            self.written += self.pending.len() as u64;
            self.pending.clear();
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), IndexError> {
        self.flush()?;
        match &mut self.file {
            Some(file) => Ok(file.sync()?),
            None => Ok(()),
        }
    }

    /// Bytes of the log; `opened` is the file, if it was opened before.
    fn read(
        &self,
        disk: &dyn Disk,
        opened: &mut Option<Box<dyn ReadFile>>,
        offset: u64,
        size: usize,
    ) -> Result<Vec<u8>, IndexError> {
        let damaged = || IndexError::damaged(&self.path, offset, "a record is outside of the file");
        offset.checked_add(size as u64).filter(|end| *end <= self.size).ok_or_else(damaged)?;
        let mut bytes = vec![0; size];
        // One record is in the file or waits; of several, the first may be in the file.
        let in_file = usize::try_from(self.written.saturating_sub(offset)).unwrap_or(usize::MAX).min(size);
        let (from_file, from_memory) = bytes.split_at_mut(in_file);
        if !from_file.is_empty() {
            let file = match opened {
                Some(file) => file,
                None => opened.insert(disk.open(&self.path)?),
            };
            file.read_at(offset, from_file)?;
        }
        if !from_memory.is_empty() {
            let start = usize::try_from(offset.saturating_sub(self.written)).unwrap_or(usize::MAX);
            let waiting = self.pending.get(start..start.saturating_add(from_memory.len()));
            from_memory.copy_from_slice(waiting.ok_or_else(damaged)?);
        }
        Ok(bytes)
    }
}

/// Both logs, open for appending.
#[derive(Debug)]
pub(super) struct Logs {
    filters: Log,
    entries: Log,
    /// The number of blocks.
    blocks: u32,
}

impl Logs {
    /// Opens the logs with some blocks. What is behind those is cut off: it may be torn, and those blocks will be
    /// connected again.
    pub(super) fn open(
        disk: &dyn Disk,
        own: &OwnDir,
        (filters, entries): (&str, &str),
        blocks: u32,
    ) -> Result<Logs, IndexError> {
        let (filters, entries) = (own.path().join(filters), own.path().join(entries));
        let entries = Log::open(disk, own, entries, u64::from(blocks) * ENTRY_SIZE)?;
        let last = match blocks.checked_sub(1) {
            Some(last) => read_entries(&entries, disk, last, 1)?.first().map_or(0, Entry::end),
            None => 0,
        };
        let filters = Log::open(disk, own, filters, last)?;
        Ok(Logs { filters, entries, blocks })
    }

    pub(super) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The files have blocks that left the chain.
    pub(super) fn must_be_cut(&self) -> bool {
        self.filters.written > self.filters.size || self.entries.written > self.entries.size
    }

    pub(super) fn cut_files(&mut self, disk: &dyn Disk, own: &OwnDir) -> Result<(), IndexError> {
        self.filters.cut_file(disk, own)?;
        self.entries.cut_file(disk, own)
    }

    /// Adds the filter of the next block.
    pub(super) fn push(&mut self, filter: FilterEntry, bytes: &[u8]) -> Result<(), IndexError> {
        debug_assert!(!self.must_be_cut(), "a log is cut before it grows");
        let number = self.blocks;
        let offset = self.filters.size;
        let payload = [&filter.block.0[..], bytes].concat();
        self.filters.push(&payload, number);
        let size = u32::try_from(self.filters.size - offset).unwrap_or(u32::MAX);
        self.entries.push(&encode_entry(&Entry { filter, offset, size }), number);
        self.blocks = match number.checked_add(1) {
            Some(blocks) => blocks,
            None => unreachable!("4,294,967,295 blocks with proof of work"),
        };
        if self.filters.pending.len().max(self.entries.pending.len()) >= PENDING_BYTES_MAX {
            self.filters.flush()?;
            self.entries.flush()?;
        }
        Ok(())
    }

    /// The last block left the chain. Returns the entry of the one before it.
    pub(super) fn pop(&mut self, disk: &dyn Disk) -> Result<Option<FilterEntry>, IndexError> {
        let last = self.blocks.saturating_sub(1);
        let before = match last.checked_sub(1) {
            Some(before) => read_entries(&self.entries, disk, before, 1)?.pop(),
            None => None,
        };
        self.blocks = last;
        self.entries.cut(u64::from(last) * ENTRY_SIZE);
        self.filters.cut(before.as_ref().map_or(0, Entry::end));
        Ok(before.map(|before| before.filter))
    }

    /// Writes all records, and returns when they are durable.
    pub(super) fn sync(&mut self) -> Result<(), IndexError> {
        self.filters.sync()?;
        self.entries.sync()
    }

    /// The entries from a height on, at most `count` of them.
    pub(super) fn entries(&self, disk: &dyn Disk, from: Height, count: u32) -> Result<Vec<Entry>, IndexError> {
        let count = count.min(self.blocks.saturating_sub(from.0));
        if count == 0 {
            return Ok(Vec::new());
        }
        read_entries(&self.entries, disk, from.0, count)
    }

    /// The filters of entries, which follow each other from a height on.
    pub(super) fn filters(
        &self,
        disk: &dyn Disk,
        from: Height,
        entries: &[Entry],
    ) -> Result<Vec<(BlockHash, Vec<u8>)>, IndexError> {
        let (mut opened, mut filters) = (None, Vec::with_capacity(entries.len()));
        for (number, entry) in (from.0..).zip(entries) {
            let damaged = |what| IndexError::damaged(&self.filters.path, entry.offset, what);
            let size = usize::try_from(entry.size).unwrap_or(usize::MAX);
            if size > RECORD_HEAD_SIZE + RECORD_PAYLOAD_SIZE_MAX {
                return Err(damaged("a record is outside of the file"));
            }
            let bytes = self.filters.read(disk, &mut opened, entry.offset, size)?;
            let Some(Ok(payload)) = Records::read(&bytes, u64::from(number)).next() else {
                return Err(damaged("the checksum of a record does not match"));
            };
            let Some((block, filter)) = payload.split_first_chunk::<32>() else {
                return Err(damaged("a record of another size"));
            };
            if *block != entry.filter.block.0 {
                return Err(damaged("the filter of another block"));
            }
            filters.push((entry.filter.block, filter.to_vec()));
        }
        Ok(filters)
    }
}

fn encode_entry(entry: &Entry) -> Vec<u8> {
    let mut payload = Vec::with_capacity(ENTRY_PAYLOAD_SIZE);
    payload.extend_from_slice(&entry.filter.block.0);
    payload.extend_from_slice(&entry.filter.hash);
    payload.extend_from_slice(&entry.filter.header);
    payload.extend_from_slice(&entry.offset.to_le_bytes());
    payload.extend_from_slice(&entry.size.to_le_bytes());
    payload
}

fn decode_entry(payload: &[u8]) -> Result<Entry, ParseError> {
    let mut reader = Reader::new(payload);
    let (block, hash, header) = (BlockHash(reader.array()?), reader.array()?, reader.array()?);
    let (offset, size) = (u64::from_le_bytes(reader.array()?), reader.u32()?);
    reader.finish()?;
    Ok(Entry { filter: FilterEntry { block, hash, header }, offset, size })
}

/// Entries that the log has.
fn read_entries(log: &Log, disk: &dyn Disk, first: u32, count: u32) -> Result<Vec<Entry>, IndexError> {
    let start = u64::from(first) * ENTRY_SIZE;
    let size = usize::try_from(u64::from(count) * ENTRY_SIZE).unwrap_or(usize::MAX);
    let bytes = log.read(disk, &mut None, start, size)?;
    let mut records = Records::read(&bytes, u64::from(first));
    let mut entries = Vec::with_capacity(count as usize);
    for number in first..first + count {
        let damaged = |what| IndexError::damaged(&log.path, u64::from(number) * ENTRY_SIZE, what);
        let Some(Ok(payload)) = records.next() else { return Err(damaged("the checksum of a record does not match")) };
        entries.push(decode_entry(payload).map_err(|_| damaged("a record of another size"))?);
    }
    Ok(entries)
}
