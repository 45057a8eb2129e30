//! The index log (`docs/formats/index.md`): an append-only file of checksummed records with entries. Input: entries, or
//! the file. Output: the file, or the entries in order.
//!
//! Invariants: everything that a [`LogItem::Synced`] covers was durable before it was written. So a hole below it is
//! damage, and a hole above it was torn by a crash. Memory: at most 1 MiB of entries wait to be written; reading keeps
//! one piece of the file.

use super::entry::{LogItem, LogItemError, SYNCED_SIZE};
use super::error::{ChainError, network_name};
use super::files::own_index;
use crate::limits::{INDEX_PENDING_SIZE_MAX, INDEX_RECORD_SIZE_MAX};
use lydian_consensus::Params;
use lydian_disk::format::{Format, NumberPlace, OTHER_DATADIR};
use lydian_disk::limits::RECORD_PAYLOAD_SIZE_MAX;
use lydian_disk::record::{RECORD_HEAD_SIZE, Records, encode_record};
use lydian_disk::{AppendFile, Change, Disk, DiskError, DiskErrorKind, OwnDir, ReadFile};
use lydian_primitives::Reader;
use lydian_stdx::saturating_usize;
use std::path::{Path, PathBuf};

/// The format version that is written, and the highest one that is read.
pub const INDEX_VERSION: u32 = INDEX_FORMAT.number;

/// The format of the log.
pub const INDEX_FORMAT: Format =
    Format { number: 2, oldest: 1, place: NumberPlace::Record(HEAD_TEXT), otherwise: OTHER_DATADIR };

/// The first bytes of the first record.
const HEAD_TEXT: &[u8; 12] = b"lydian index";

/// Payload size of the first record: the text, the version, the magic and the hash of the genesis block.
const HEAD_SIZE: usize = HEAD_TEXT.len() + 4 + 4 + 32;

/// Number of bytes read at once.
const PIECE_SIZE: u64 = 4 << 20;

/// The end of the log, open for appending.
#[derive(Debug)]
pub(crate) struct LogWriter {
    file: Box<dyn AppendFile>,
    path: PathBuf,
    framer: Framer,
    /// Whether no item was added since the last sync.
    is_synced: bool,
}

impl LogWriter {
    /// Continues a log. After its durable part it must have nothing but the second of two [`LogItem::Synced`], or a
    /// torn one.
    pub(crate) fn resume(disk: &dyn Disk, log: LogFile) -> Result<LogWriter, DiskError> {
        if !log.is_confirmed || log.version < INDEX_VERSION {
            return LogWriter::rewrite(disk, log, &[]);
        }
        let LogFile { path, file, safe, .. } = log;
        let is_longer = file.size() > safe.offset;
        drop(file);
        if is_longer {
            own(&path).change(disk, &path, Change::Truncate { size: safe.offset })?;
        }
        let file = own(&path).append(disk, &path)?;
        Ok(LogWriter { file, path, framer: Framer::new(safe.sequence), is_synced: false })
    }

    /// Atomically replaces the log by one that has its durable part and the given items, all of which name durable
    /// data. (If the rest were cut off before appending, a crash in between would lose it.)
    pub(crate) fn rewrite(disk: &dyn Disk, log: LogFile, items: &[LogItem]) -> Result<LogWriter, DiskError> {
        let mut framer = Framer::new(log.safe.sequence);
        framer.framed = log.bytes(0, log.safe.offset)?;
        if log.version < INDEX_VERSION {
            set_version(&mut framer.framed);
        }
        for item in items {
            framer.push(item);
        }
        framer.frame();
        framer.push_synced(framer.framed.len() as u64);
        framer.frame();
        let LogFile { path, file, .. } = log;
        drop(file);
        own(&path).replace(disk, &path, &framer.framed)?;
        framer.framed = Vec::new();
        let mut writer = LogWriter { file: own(&path).append(disk, &path)?, path, framer, is_synced: false };
        writer.confirm()?;
        Ok(writer)
    }

    /// Adds an item. If this fails, every later call fails too.
    pub(crate) fn push(&mut self, item: &LogItem) -> Result<(), DiskError> {
        self.is_synced = false;
        self.framer.push(item);
        if self.framer.framed.len() >= INDEX_PENDING_SIZE_MAX { self.flush() } else { Ok(()) }
    }

    /// Writes the pending items.
    pub(crate) fn flush(&mut self) -> Result<(), DiskError> {
        self.framer.frame();
        if !self.framer.framed.is_empty() {
            if !self.file.is_named() {
                // If the index was removed, entries must not be written to a file without a name.
                return Err(DiskError { path: self.path.clone(), offset: None, kind: DiskErrorKind::NotFound });
            }
            self.file.write(&self.framer.framed)?;
            self.framer.framed.clear();
        }
        Ok(())
    }

    /// Writes the pending items and returns when they are durable. Everything that entries name must be durable
    /// already. Does nothing if no item was added since the last time.
    pub(crate) fn sync(&mut self) -> Result<(), DiskError> {
        if self.is_synced {
            return Ok(());
        }
        self.flush()?;
        self.file.sync()?;
        self.write_synced()?;
        self.is_synced = true;
        Ok(())
    }

    /// Writes a [`LogItem::Synced`]. Everything before it must be durable, and it must be durable itself before more is
    /// written, because otherwise its loss would look like damage.
    fn write_synced(&mut self) -> Result<(), DiskError> {
        self.framer.push_synced(self.file.size());
        self.flush()?;
        self.file.sync()?;
        self.confirm()
    }

    /// Writes a second [`LogItem::Synced`], which shows that the first one is durable. Without it a failed sync of the
    /// first would go unnoticed. The second need not be durable: it is cut off when the log is opened.
    fn confirm(&mut self) -> Result<(), DiskError> {
        self.framer.push_synced(self.file.size());
        self.flush()
    }
}

/// Encodes items as records.
#[derive(Debug)]
struct Framer {
    sequence: u64,
    /// Entries of the current record.
    payload: Vec<u8>,
    /// Complete records.
    framed: Vec<u8>,
}

impl Framer {
    /// `sequence` is the number of the next record.
    fn new(sequence: u64) -> Framer {
        Framer { sequence, payload: Vec::new(), framed: Vec::new() }
    }

    fn push(&mut self, item: &LogItem) {
        item.write(&mut self.payload);
        if self.payload.len() >= INDEX_RECORD_SIZE_MAX {
            self.frame();
        }
    }

    /// Records that everything before `offset`, where this record will start, is durable.
    fn push_synced(&mut self, offset: u64) {
        assert!(self.payload.is_empty(), "it is alone in its record");
        LogItem::Synced { offset, sequence: self.sequence }.write(&mut self.payload);
    }

    fn frame(&mut self) {
        if !self.payload.is_empty() {
            encode_record(&self.payload, self.sequence, &mut self.framed);
            self.sequence += 1;
            self.payload.clear();
        }
    }
}

/// Writes a log without entries.
pub(crate) fn create(disk: &dyn Disk, path: &Path, params: &Params) -> Result<(), DiskError> {
    let head = [&HEAD_TEXT[..], &INDEX_VERSION.to_le_bytes(), &params.magic, &params.genesis_hash.0].concat();
    let mut bytes = Vec::new();
    encode_record(&head, 0, &mut bytes);
    own(path).replace(disk, path, &bytes)
}

/// Replaces the version in the head of a log by that of the entries that will follow.
fn set_version(log: &mut [u8]) {
    let start = RECORD_HEAD_SIZE + HEAD_TEXT.len();
    log[start..start + 4].copy_from_slice(&INDEX_VERSION.to_le_bytes());
    let mut head = Vec::new();
    encode_record(&log[RECORD_HEAD_SIZE..RECORD_HEAD_SIZE + HEAD_SIZE], 0, &mut head);
    log[..head.len()].copy_from_slice(&head);
}

/// The directory of the index, which was found to be ours before the log is opened.
fn own(path: &Path) -> OwnDir {
    own_index(path.parent().unwrap_or(Path::new("")))
}

/// A position in a log: the start of a record, or of the next one, and its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    offset: u64,
    sequence: u64,
}

/// A callback for records: position and payload.
type Visit<'a> = dyn FnMut(Place, &[u8]) -> Result<(), ChainError> + 'a;

/// A log open for reading.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: Box<dyn ReadFile>,
    version: u32,
    /// The end of the durable part.
    safe: Place,
    /// Whether the end of the durable part is certain: the record before it is also a [`LogItem::Synced`], or the file
    /// is new.
    is_confirmed: bool,
    /// The end of the complete records.
    end: Place,
}

impl LogFile {
    /// Opens a log, reads every record, and determines its durable part. Returns `None` if the log does not exist.
    pub(crate) fn open(disk: &dyn Disk, path: &Path, params: &Params) -> Result<Option<LogFile>, ChainError> {
        let file = match disk.open(path) {
            Ok(file) => file,
            Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let start = Place { offset: 0, sequence: 0 };
        let mut log = LogFile {
            path: path.to_owned(),
            file,
            version: INDEX_VERSION,
            safe: start,
            is_confirmed: true,
            end: start,
        };
        // The first record was written atomically with its file.
        let (mut safe, mut is_confirmed, mut last_end, mut version) = (start, true, None, INDEX_VERSION);
        log.end = log.walk(&mut |at, payload| {
            match synced(payload) {
                _ if at.offset == 0 => {
                    version = log.check_head(payload, params)?;
                    safe = Place { offset: (RECORD_HEAD_SIZE + payload.len()) as u64, sequence: 1 };
                }
                // It is at the end of the durable part.
                Some(place) if place == at => {
                    is_confirmed = last_end == Some(at.offset);
                    last_end = Some(at.offset + (RECORD_HEAD_SIZE + payload.len()) as u64);
                    safe = place;
                }
                _ => {}
            }
            Ok(())
        })?;
        if safe.offset == 0 {
            return Err(ChainError::IndexDamaged { path: log.path, offset: 0 });
        }
        (log.safe, log.is_confirmed, log.version) = (safe, is_confirmed, version);
        if log.torn() > 0 {
            log.refuse_damage()?;
        }
        Ok(Some(log))
    }

    /// Number of bytes after the last complete record.
    pub(crate) fn torn(&self) -> u64 {
        self.file.size() - self.end.offset
    }

    /// The end of the complete records.
    pub(crate) fn end(&self) -> u64 {
        self.end.offset
    }

    /// Calls `visit` with every item and whether it is durable.
    pub(crate) fn items(
        &self,
        visit: &mut dyn FnMut(bool, LogItem) -> Result<(), &'static str>,
    ) -> Result<(), ChainError> {
        let end = self.walk(&mut |at, payload| {
            if at.offset == 0 {
                return Ok(());
            }
            let contradiction = |reason| self.contradiction(at.offset, reason);
            let mut reader = Reader::new(payload);
            while reader.remaining() > 0 {
                let item = LogItem::read(&mut reader).map_err(|error: LogItemError| contradiction(error.reason()))?;
                visit(at.offset < self.safe.offset, item).map_err(contradiction)?;
            }
            Ok(())
        })?;
        assert_eq!(end, self.end, "nobody else writes the log");
        Ok(())
    }

    /// Calls `visit` with each complete record. Returns the end of the last one.
    fn walk(&self, visit: &mut Visit<'_>) -> Result<Place, ChainError> {
        let mut at = Place { offset: 0, sequence: 0 };
        let mut size = PIECE_SIZE;
        while at.offset < self.file.size() {
            let bytes = self.bytes(at.offset, size)?;
            let is_end = at.offset + bytes.len() as u64 == self.file.size();
            let start = at.offset;
            let mut records = Records::read(&bytes, at.sequence);
            let mut is_torn = false;
            while let Some(record) = records.next() {
                match record {
                    Ok(payload) => visit(at, payload)?,
                    Err(_) => is_torn = true,
                }
                at = Place { offset: start + records.offset(), sequence: records.sequence() };
            }
            if is_torn && is_end {
                break;
            }
            if at.offset > start {
                size = PIECE_SIZE;
            } else if size > (RECORD_PAYLOAD_SIZE_MAX + RECORD_HEAD_SIZE) as u64 {
                break;
            } else {
                // The record may be longer than the piece.
                size *= 2;
            }
        }
        Ok(at)
    }

    fn bytes(&self, offset: u64, size: u64) -> Result<Vec<u8>, DiskError> {
        let size = size.min(self.file.size() - offset);
        let mut bytes = vec![0; saturating_usize(size)];
        self.file.read_at(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// The error for an invalid item after the durable part.
    pub(crate) fn contradiction_behind_safe_part(&self, reason: &'static str) -> ChainError {
        self.contradiction(self.safe.offset, reason)
    }

    fn contradiction(&self, offset: u64, reason: &'static str) -> ChainError {
        ChainError::IndexContradiction { path: self.path.clone(), offset, reason }
    }

    /// Returns the version.
    fn check_head(&self, payload: &[u8], params: &Params) -> Result<u32, ChainError> {
        let no_head = |_| self.contradiction(0, "does not start with its head");
        let mut reader = Reader::new(payload);
        if reader.take(HEAD_TEXT.len()).map_err(no_head)? != HEAD_TEXT {
            return Err(self.contradiction(0, "does not start with its head"));
        }
        let found = reader.u32().map_err(no_head)?;
        if let Some(error) = INDEX_FORMAT.newer(&self.path, found) {
            return Err(ChainError::NewerFormat(error));
        }
        let magic: [u8; 4] = reader.array().map_err(no_head)?;
        let genesis: [u8; 32] = reader.array().map_err(no_head)?;
        if magic != params.magic || genesis != params.genesis_hash.0 {
            let expected = params.chain.name();
            return Err(ChainError::OtherNetwork { path: self.path.clone(), found: network_name(magic), expected });
        }
        if reader.remaining() > 0 {
            return Err(self.contradiction(0, "has a head of another size"));
        }
        Ok(found)
    }

    /// Refuses a log in which the bytes after the last complete record are covered by a later [`LogItem::Synced`].
    /// Otherwise a crash tore them.
    fn refuse_damage(&self) -> Result<(), ChainError> {
        const SIZE: usize = RECORD_HEAD_SIZE + SYNCED_SIZE;
        let mut start = self.end.offset;
        while start < self.file.size() {
            let bytes = self.bytes(start, PIECE_SIZE)?;
            if bytes.windows(SIZE).any(|window| self.covers_tear(window)) {
                return Err(ChainError::IndexDamaged { path: self.path.clone(), offset: self.end.offset });
            }
            if start + bytes.len() as u64 == self.file.size() {
                break;
            }
            // Pieces overlap by the size of one record minus one byte.
            start += (bytes.len() - (SIZE - 1)) as u64;
        }
        Ok(())
    }

    /// Whether the bytes are a [`LogItem::Synced`] record that covers more than the complete records.
    fn covers_tear(&self, window: &[u8]) -> bool {
        let size = (SYNCED_SIZE as u64).to_le_bytes();
        window[..4] == size[..4]
            && synced(&window[RECORD_HEAD_SIZE..]).is_some_and(|place| {
                place.offset > self.end.offset && matches!(Records::read(window, place.sequence).next(), Some(Ok(_)))
            })
    }
}

/// The position in a [`LogItem::Synced`], if the payload is one.
fn synced(payload: &[u8]) -> Option<Place> {
    if payload.len() != SYNCED_SIZE {
        return None;
    }
    match LogItem::read(&mut Reader::new(payload)) {
        Ok(LogItem::Synced { offset, sequence }) => Some(Place { offset, sequence }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::IndexEntry;
    use crate::tree::HeaderId;
    use lydian_consensus::Chain;
    use lydian_disk::SimDisk;

    /// Size of the entry below.
    const ENTRY_SIZE: usize = 5;
    const ENTRY: LogItem = LogItem::Entry(IndexEntry::Verified { id: HeaderId(3) });

    /// limit: INDEX_RECORD_SIZE_MAX at
    /// limit: INDEX_RECORD_SIZE_MAX above
    #[test]
    fn records_are_closed_when_they_are_full() {
        let mut framer = Framer::new(0);
        let fits = INDEX_RECORD_SIZE_MAX / ENTRY_SIZE;
        (0..fits).for_each(|_| framer.push(&ENTRY));
        assert!(framer.framed.is_empty());
        framer.push(&ENTRY);
        assert_eq!(framer.framed.len(), RECORD_HEAD_SIZE + (fits + 1) * ENTRY_SIZE);
        assert!(framer.payload.is_empty());
    }

    /// limit: INDEX_PENDING_SIZE_MAX at
    /// limit: INDEX_PENDING_SIZE_MAX above
    #[test]
    fn what_waits_is_bounded() {
        let disk = SimDisk::new(1);
        let (path, params) = (Path::new("index.log"), Params::new(Chain::Regtest));
        create(&disk, path, &params).unwrap();
        let mut log = LogWriter::resume(&disk, LogFile::open(&disk, path, &params).unwrap().unwrap()).unwrap();
        let start = log.file.size();
        let mut most = 0;
        while log.file.size() == start {
            log.push(&ENTRY).unwrap();
            most = most.max(log.framer.framed.len());
        }
        assert!(most < INDEX_PENDING_SIZE_MAX && log.framer.framed.is_empty());
        assert!(log.file.size() - start >= INDEX_PENDING_SIZE_MAX as u64);
    }
}
