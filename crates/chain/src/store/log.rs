//! The index log (`docs/formats/index.md`): a file of checksummed records to which entries are appended. Input: entries, or the file. Output:
//! the file, or the entries in order.
//!
//! Invariants: what a [`LogItem::Synced`] covers was safe on the disk before it was written, so that a hole below it is damage, and a hole
//! above it the tear of a crash, which is cut off. Memory: at most 1 MiB of entries wait to be written; reading keeps one piece of the file.

use super::entry::{LogItem, LogItemError, SYNCED_SIZE};
use super::error::{ChainError, network_name};
use crate::limits::{INDEX_PENDING_SIZE_MAX, INDEX_RECORD_SIZE_MAX};
use lydian_consensus::Params;
use lydian_disk::limits::RECORD_PAYLOAD_SIZE_MAX;
use lydian_disk::record::{RECORD_HEAD_SIZE, Records, encode_record};
use lydian_disk::{AppendFile, Disk, DiskError, DiskErrorKind, ReadFile};
use lydian_primitives::Reader;
use std::path::{Path, PathBuf};

/// Version of the format that is written, and the highest that is read.
pub const INDEX_VERSION: u32 = 1;

/// First bytes of the first record.
const HEAD_TEXT: &[u8; 12] = b"lydian index";

/// Bytes read at once.
const PIECE_SIZE: u64 = 4 << 20;

/// The end of the log, for appending.
#[derive(Debug)]
pub(crate) struct LogWriter {
    file: Box<dyn AppendFile>,
    sequence: u64,
    /// Entries of the record that is being filled.
    payload: Vec<u8>,
    /// Whole records that are not written yet.
    framed: Vec<u8>,
}

impl LogWriter {
    /// Appends to a log whose next record has this sequence number.
    pub(crate) fn open(disk: &dyn Disk, path: &Path, sequence: u64) -> Result<LogWriter, DiskError> {
        Ok(LogWriter { file: disk.append(path)?, sequence, payload: Vec::new(), framed: Vec::new() })
    }

    /// Takes an item; nothing is lost if this fails but what later calls say.
    pub(crate) fn push(&mut self, item: &LogItem) -> Result<(), DiskError> {
        item.write(&mut self.payload);
        if self.payload.len() >= INDEX_RECORD_SIZE_MAX {
            self.frame();
        }
        if self.framed.len() >= INDEX_PENDING_SIZE_MAX { self.flush() } else { Ok(()) }
    }

    /// Writes what waits.
    pub(crate) fn flush(&mut self) -> Result<(), DiskError> {
        self.frame();
        if !self.framed.is_empty() {
            self.file.write(&self.framed)?;
            self.framed.clear();
        }
        Ok(())
    }

    /// Writes what waits and returns when it is on the disk. Everything that entries name must be there already.
    pub(crate) fn sync(&mut self) -> Result<(), DiskError> {
        self.flush()?;
        self.file.sync()?;
        // It need not be safe itself: if it is lost, more is looked at when the store is opened.
        LogItem::Synced { offset: self.file.size(), sequence: self.sequence }.write(&mut self.payload);
        self.flush()
    }

    fn frame(&mut self) {
        if !self.payload.is_empty() {
            encode_record(&self.payload, self.sequence, &mut self.framed);
            self.sequence += 1;
            self.payload.clear();
        }
    }
}

/// Writes a log that says nothing yet.
pub(crate) fn create(disk: &dyn Disk, path: &Path, params: &Params) -> Result<(), DiskError> {
    let head = [&HEAD_TEXT[..], &INDEX_VERSION.to_le_bytes(), &params.magic, &params.genesis_hash.0].concat();
    let mut bytes = Vec::new();
    encode_record(&head, 0, &mut bytes);
    disk.write_whole(path, &bytes)
}

/// What reading a log gave beside its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// Where the whole records end.
    pub(crate) size: u64,
    /// Bytes behind them, torn by a crash.
    pub(crate) torn: u64,
    /// The number of the next record.
    pub(crate) sequence: u64,
}

/// Reads a log; `visit` is told each item and the offset of its record. `None` if there is no log.
pub(crate) fn read(
    disk: &dyn Disk,
    path: &Path,
    params: &Params,
    visit: &mut dyn FnMut(u64, LogItem) -> Result<(), &'static str>,
) -> Result<Option<LogEnd>, ChainError> {
    let file = match disk.open(path) {
        Ok(file) => file,
        Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut log = LogReader { path: path.to_owned(), file, offset: 0, sequence: 0 };
    let torn = loop {
        let (offset, sequence) = (log.offset, log.sequence);
        let is_torn = log.read_piece(params, visit)?;
        if is_torn {
            break log.file.size() - log.offset;
        }
        if log.offset == log.file.size() {
            break 0;
        }
        assert!(log.offset > offset && log.sequence > sequence, "each piece has a record, or is torn");
    };
    if torn > 0 {
        log.refuse_damage()?;
    }
    if log.sequence == 0 {
        return Err(ChainError::IndexDamaged { path: log.path, offset: 0 });
    }
    Ok(Some(LogEnd { size: log.offset, torn, sequence: log.sequence }))
}

struct LogReader {
    path: PathBuf,
    file: Box<dyn ReadFile>,
    /// Where the next record begins, and its number.
    offset: u64,
    sequence: u64,
}

impl LogReader {
    /// Reads the whole records of the next piece. Gives whether there is none and there should be one.
    fn read_piece(
        &mut self,
        params: &Params,
        visit: &mut dyn FnMut(u64, LogItem) -> Result<(), &'static str>,
    ) -> Result<bool, ChainError> {
        let mut size = PIECE_SIZE;
        loop {
            let bytes = self.bytes(self.offset, size)?;
            let start = self.offset;
            let mut records = Records::read(&bytes, self.sequence);
            let mut is_torn = false;
            loop {
                let offset = start + records.offset();
                match records.next() {
                    None => break,
                    Some(Ok(payload)) => self.read_record(offset, payload, params, visit)?,
                    Some(Err(_)) => {
                        is_torn = true;
                        break;
                    }
                }
            }
            (self.offset, self.sequence) = (start + records.offset(), records.sequence());
            let is_end = start + bytes.len() as u64 == self.file.size();
            if !is_torn || self.offset > start {
                // What is torn at the end of a piece may be whole in the next.
                return Ok(is_torn && is_end);
            }
            if is_end || size > (RECORD_PAYLOAD_SIZE_MAX + RECORD_HEAD_SIZE) as u64 {
                return Ok(true);
            }
            size *= 2;
        }
    }

    fn bytes(&self, offset: u64, size: u64) -> Result<Vec<u8>, DiskError> {
        let size = size.min(self.file.size() - offset);
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
        self.file.read_at(offset, &mut bytes)?;
        Ok(bytes)
    }

    fn read_record(
        &mut self,
        offset: u64,
        payload: &[u8],
        params: &Params,
        visit: &mut dyn FnMut(u64, LogItem) -> Result<(), &'static str>,
    ) -> Result<(), ChainError> {
        if offset == 0 {
            return self.check_head(payload, params);
        }
        let contradiction = |reason| ChainError::IndexContradiction { path: self.path.clone(), offset, reason };
        let mut reader = Reader::new(payload);
        while reader.remaining() > 0 {
            let item = LogItem::read(&mut reader).map_err(|error: LogItemError| contradiction(error.reason()))?;
            visit(offset, item).map_err(contradiction)?;
        }
        Ok(())
    }

    fn check_head(&self, payload: &[u8], params: &Params) -> Result<(), ChainError> {
        let contradiction = |reason| ChainError::IndexContradiction { path: self.path.clone(), offset: 0, reason };
        let no_head = |_| contradiction("does not begin as one");
        let mut reader = Reader::new(payload);
        if reader.take(HEAD_TEXT.len()).map_err(no_head)? != HEAD_TEXT {
            return Err(contradiction("does not begin as one"));
        }
        let found = reader.u32().map_err(no_head)?;
        if found > INDEX_VERSION {
            return Err(ChainError::NewerVersion { path: self.path.clone(), found, known: INDEX_VERSION });
        }
        let magic: [u8; 4] = reader.array().map_err(no_head)?;
        let genesis: [u8; 32] = reader.array().map_err(no_head)?;
        if magic != params.magic || genesis != params.genesis_hash.0 {
            let expected = params.chain.name();
            return Err(ChainError::OtherNetwork { path: self.path.clone(), found: network_name(magic), expected });
        }
        Ok(())
    }

    /// Behind the last whole record lies a tear, unless a later record says that this part was safe on the disk.
    fn refuse_damage(&self) -> Result<(), ChainError> {
        const SIZE: usize = RECORD_HEAD_SIZE + SYNCED_SIZE;
        let mut start = self.offset;
        while start < self.file.size() {
            let bytes = self.bytes(start, PIECE_SIZE)?;
            if bytes.windows(SIZE).any(|window| self.covers_tear(window)) {
                return Err(ChainError::IndexDamaged { path: self.path.clone(), offset: self.offset });
            }
            if bytes.len() as u64 <= PIECE_SIZE / 2 {
                break;
            }
            // Pieces overlap by one record less a byte.
            start += (bytes.len() - (SIZE - 1)) as u64;
        }
        Ok(())
    }

    /// Whether the bytes are a record that says that the log was safe beyond where it is torn.
    fn covers_tear(&self, window: &[u8]) -> bool {
        let size = (SYNCED_SIZE as u64).to_le_bytes();
        if window[..4] != size[..4] {
            return false;
        }
        match LogItem::read(&mut Reader::new(&window[RECORD_HEAD_SIZE..])) {
            Ok(LogItem::Synced { offset, sequence }) => {
                offset > self.offset && matches!(Records::read(window, sequence).next(), Some(Ok(_)))
            }
            _ => false,
        }
    }
}
