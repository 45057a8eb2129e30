//! Reads `mempool.dat`: Core's `LoadMempool`, without acceptance.
//!
//! Input: a file. Output: its records in order, or a [`LoadError`] with path and offset. As in Core, bytes behind the
//! last record are ignored, and the records before an error count.
//!
//! Memory: a buffer that grows to the largest transaction of the file, at most twice
//! [`FILE_TRANSACTION_SIZE_MAX`] bytes. Cost: a transaction that is larger than the buffer is tried again with twice
//! the bytes, so at most three times the work for it.

use super::limits::FILE_TRANSACTION_SIZE_MAX;
use super::{Key, VERSION, VERSION_WITHOUT_KEY};
use lydian_disk::{Disk, DiskError, ReadFile};
use lydian_primitives::transaction::skip;
use lydian_primitives::{ParseError, ParseErrorKind, Reader, Transaction, Txid};
use std::fmt;
use std::path::{Path, PathBuf};

/// Bytes that are read at once, unless a transaction needs more or the file ends.
const READ_SIZE: usize = 64 << 10;

/// Something that the file states.
#[derive(Clone, Debug)]
pub enum Record {
    Transaction {
        transaction: Transaction,
        /// When it was accepted, in seconds since 1970.
        time: i64,
        /// What `prioritisetransaction` added to its fee, in satoshis.
        fee_delta: i64,
    },
    /// The fee delta of a transaction that was not in the mempool. If a transaction has several, the first counts;
    /// Core writes no such file.
    Delta { txid: Txid, delta: i64 },
    /// A transaction that no peer had requested.
    Unbroadcast(Txid),
}

/// Why a file, or the rest of it, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    pub path: PathBuf,
    /// Where the problem is, in bytes.
    pub offset: u64,
    pub problem: LoadProblem,
}

/// The kinds of [`LoadError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadProblem {
    Disk(DiskError),
    /// Neither 1 nor 2.
    Version(u64),
    /// The key does not have 8 bytes.
    KeyLength(usize),
    /// The file ends inside a record.
    Cut,
    /// A transaction has more bytes than a block may have.
    TransactionSize,
    /// The offset in the error is that of the file.
    Parse(ParseError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoadError { path, offset, problem } = self;
        let path = path.display();
        match problem {
            LoadProblem::Disk(error) => error.fmt(f),
            LoadProblem::Version(version) => {
                write!(f, "{path} has version {version} at byte {offset}; this program reads versions 1 and 2")
            }
            LoadProblem::KeyLength(length) => {
                write!(f, "{path}: the key at byte {offset} has {length} bytes; it must have 8")
            }
            LoadProblem::Cut => write!(f, "{path} ends at byte {offset}, inside a record"),
            LoadProblem::TransactionSize => {
                write!(f, "{path}: the transaction at byte {offset} has more than {FILE_TRANSACTION_SIZE_MAX} bytes")
            }
            LoadProblem::Parse(error) => {
                let within = ParseError { offset: lydian_stdx::saturating_usize(*offset), ..*error };
                write!(f, "{path}: {within}")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// The part of the file that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Transactions,
    Deltas,
    Unbroadcast,
    End,
}

/// A file that is being read.
#[derive(Debug)]
pub struct Loader {
    path: PathBuf,
    file: Box<dyn ReadFile>,
    key: Key,
    /// Bytes of the file from `start` on, without the key.
    buffer: Vec<u8>,
    /// The offset of the buffer in the file, and of the next record in the buffer.
    start: u64,
    at: usize,
    part: Part,
    /// Records of the part that are left.
    left: u64,
    transactions: u64,
}

impl Loader {
    /// Opens a file and reads its head.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<Loader, LoadError> {
        let file = disk.open(path).map_err(|error| LoadError {
            path: path.to_owned(),
            offset: 0,
            problem: LoadProblem::Disk(error),
        })?;
        Loader::new(file, path)
    }

    /// Reads the head of an open file; `path` is for messages.
    pub fn new(file: Box<dyn ReadFile>, path: &Path) -> Result<Loader, LoadError> {
        let mut loader = Loader {
            path: path.to_owned(),
            file,
            key: Key::default(),
            buffer: Vec::new(),
            start: 0,
            at: 0,
            part: Part::Transactions,
            left: 0,
            transactions: 0,
        };
        match loader.number()? {
            VERSION_WITHOUT_KEY => {}
            VERSION => {
                let offset = loader.offset();
                let length = loader.compact_size()?;
                if length != 8 {
                    return Err(loader.error(offset, LoadProblem::KeyLength(length)));
                }
                let key = Key(loader.array()?);
                loader.set_key(key);
            }
            version => return Err(loader.error(0, LoadProblem::Version(version))),
        }
        loader.left = loader.number()?;
        loader.transactions = loader.left;
        Ok(loader)
    }

    /// The number of transactions that the file states, for messages about progress. It may be wrong.
    pub fn transaction_count(&self) -> u64 {
        self.transactions
    }

    /// Whether all separate fee deltas were read; the transactions that no peer had requested follow.
    pub fn has_read_deltas(&self) -> bool {
        match self.part {
            Part::Transactions => false,
            Part::Deltas => self.left == 0,
            Part::Unbroadcast | Part::End => true,
        }
    }

    /// The next record; `None` at the end.
    pub fn next_record(&mut self) -> Result<Option<Record>, LoadError> {
        loop {
            if self.left > 0 {
                let record = match self.part {
                    Part::Transactions => self.transaction()?,
                    Part::Deltas => {
                        Record::Delta { txid: Txid(self.array()?), delta: i64::from_le_bytes(self.array()?) }
                    }
                    Part::Unbroadcast => Record::Unbroadcast(Txid(self.array()?)),
                    Part::End => return Ok(None),
                };
                self.left -= 1;
                return Ok(Some(record));
            }
            let next = match self.part {
                Part::Transactions => Part::Deltas,
                Part::Deltas => Part::Unbroadcast,
                Part::Unbroadcast | Part::End => {
                    self.part = Part::End;
                    return Ok(None);
                }
            };
            self.left = self.compact_size()? as u64;
            self.part = next;
        }
    }

    fn transaction(&mut self) -> Result<Record, LoadError> {
        let begin = self.offset();
        let mut wanted = 1;
        let size = loop {
            self.fill(wanted)?;
            let mut reader = Reader::new(&self.buffer[self.at..]);
            let available = reader.remaining();
            match skip(&mut reader) {
                Ok(()) => break reader.offset(),
                Err(ParseError { kind: ParseErrorKind::UnexpectedEnd { .. }, .. }) if !self.has_all() => {
                    if available > FILE_TRANSACTION_SIZE_MAX {
                        return Err(self.error(begin, LoadProblem::TransactionSize));
                    }
                    wanted = available * 2;
                }
                Err(ParseError { kind: ParseErrorKind::UnexpectedEnd { .. }, .. }) => return Err(self.cut()),
                Err(error) => return Err(self.error(begin + error.offset as u64, LoadProblem::Parse(error))),
            }
        };
        if size > FILE_TRANSACTION_SIZE_MAX {
            return Err(self.error(begin, LoadProblem::TransactionSize));
        }
        let parsed = Transaction::parse(&self.buffer[self.at..self.at + size]);
        let transaction = parsed.map_err(|error| self.error(begin + error.offset as u64, LoadProblem::Parse(error)))?;
        self.at += size;
        let (time, fee_delta) = (i64::from_le_bytes(self.array()?), i64::from_le_bytes(self.array()?));
        Ok(Record::Transaction { transaction, time, fee_delta })
    }

    fn number(&mut self) -> Result<u64, LoadError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], LoadError> {
        self.read(|reader| reader.array())
    }

    fn compact_size(&mut self) -> Result<usize, LoadError> {
        self.read(|reader| reader.compact_size())
    }

    /// Reads something of at most 32 bytes.
    fn read<T>(&mut self, read: impl FnOnce(&mut Reader<'_>) -> Result<T, ParseError>) -> Result<T, LoadError> {
        let begin = self.offset();
        self.fill(32)?;
        let mut reader = Reader::new(&self.buffer[self.at..]);
        match read(&mut reader) {
            Ok(value) => {
                self.at += reader.offset();
                Ok(value)
            }
            Err(ParseError { kind: ParseErrorKind::UnexpectedEnd { .. }, .. }) => Err(self.cut()),
            Err(error) => Err(self.error(begin + error.offset as u64, LoadProblem::Parse(error))),
        }
    }

    /// The offset of the next record in the file.
    fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    /// Whether the buffer reaches the end of the file.
    fn has_all(&self) -> bool {
        self.start + self.buffer.len() as u64 >= self.file.size()
    }

    /// Reads until the buffer has `wanted` bytes from the next record on, if the file has them.
    fn fill(&mut self, wanted: usize) -> Result<(), LoadError> {
        if self.buffer.len() - self.at >= wanted || self.has_all() {
            return Ok(());
        }
        self.buffer.drain(..self.at);
        self.start += self.at as u64;
        self.at = 0;
        let (old, end) = (self.buffer.len(), self.start + self.buffer.len() as u64);
        let more = (wanted - old).max(READ_SIZE);
        let more = more.min(lydian_stdx::saturating_usize(self.file.size() - end));
        self.buffer.reserve_exact(more);
        self.buffer.resize(old + more, 0);
        let added = &mut self.buffer[old..];
        if let Err(error) = self.file.read_at(end, added) {
            return Err(self.error(end, LoadProblem::Disk(error)));
        }
        self.key.apply(end, added);
        Ok(())
    }

    /// The rest of the file is combined with this key.
    fn set_key(&mut self, key: Key) {
        self.key = key;
        let (at, offset) = (self.at, self.offset());
        key.apply(offset, &mut self.buffer[at..]);
    }

    #[cfg(test)]
    pub(super) fn buffered(&self) -> usize {
        self.buffer.capacity()
    }

    fn cut(&self) -> LoadError {
        self.error(self.file.size(), LoadProblem::Cut)
    }

    fn error(&self, offset: u64, problem: LoadProblem) -> LoadError {
        LoadError { path: self.path.clone(), offset, problem }
    }
}
