//! [`IndexEntry`]: the entries of the index log (`docs/formats/index.md`). Input: entries, or the payload of a record.
//! Output: bytes, or entries. Accepts any bytes.

use crate::limits::{FILE_NUMBER_MAX, PATH_SIZE_MAX, UNDO_FILE_SIZE_MAX};
use crate::obfuscation::Obfuscation;
use crate::position::{BlockPosition, UndoPosition};
use crate::tree::{BlockCounts, HeaderId};
use lydian_primitives::{Header, ParseError, ParseErrorKind, Reader};
use std::path::PathBuf;

/// An event in the index log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IndexEntry {
    /// A header was added with this id. Ids are consecutive.
    Header { id: HeaderId, header: Header },
    /// The block is stored.
    Block { id: HeaderId, position: BlockPosition },
    /// Its undo data is stored.
    Undo { id: HeaderId, position: UndoPosition },
    /// It was connected, and has these numbers of transactions and outputs.
    Counts { id: HeaderId, counts: BlockCounts },
    /// Its scripts were verified.
    Verified { id: HeaderId },
    /// The block and its descendants are invalid.
    Invalid { id: HeaderId },
    /// The block, its ancestors and its descendants are no longer marked invalid.
    Reconsidered { id: HeaderId },
    /// The block is no longer stored.
    BlockCleared { id: HeaderId },
    /// The undo data is no longer stored.
    UndoCleared { id: HeaderId },
}

/// The items of a log record, including those that are not an [`IndexEntry`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LogItem {
    Entry(IndexEntry),
    /// A block file at any path.
    File {
        file: u32,
        path: PathBuf,
        key: Obfuscation,
        is_external: bool,
    },
    /// The block and undo files with this number are to be removed.
    FilePruned {
        file: u32,
    },
    /// The log up to this offset, and everything it names, is durable. The only item in its record; it repeats the
    /// record's sequence number.
    Synced {
        offset: u64,
        sequence: u64,
    },
}

const HEADER: u8 = 1;
const BLOCK: u8 = 2;
const UNDO: u8 = 3;
const VERIFIED: u8 = 4;
const INVALID: u8 = 5;
const RECONSIDERED: u8 = 6;
const BLOCK_CLEARED: u8 = 7;
const UNDO_CLEARED: u8 = 8;
const FILE: u8 = 9;
const FILE_PRUNED: u8 = 10;
const SYNCED: u8 = 11;
const COUNTS: u8 = 12;

/// Payload size of a record with a [`LogItem::Synced`].
pub(crate) const SYNCED_SIZE: usize = 17;

impl LogItem {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            LogItem::Entry(entry) => entry.write(out),
            LogItem::File { file, path, key, is_external } => {
                let path = path.as_os_str().as_encoded_bytes();
                out.push(FILE);
                out.extend_from_slice(&file.to_le_bytes());
                out.push(u8::from(*is_external));
                out.extend_from_slice(&key.bytes());
                out.extend_from_slice(&u16::try_from(path.len()).unwrap_or(u16::MAX).to_le_bytes());
                out.extend_from_slice(path);
            }
            LogItem::FilePruned { file } => {
                out.push(FILE_PRUNED);
                out.extend_from_slice(&file.to_le_bytes());
            }
            LogItem::Synced { offset, sequence } => {
                out.push(SYNCED);
                out.extend_from_slice(&offset.to_le_bytes());
                out.extend_from_slice(&sequence.to_le_bytes());
            }
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<LogItem, LogItemError> {
        let id = |reader: &mut Reader<'_>| reader.u32().map(HeaderId);
        let tag = reader.u8()?;
        Ok(LogItem::Entry(match tag {
            HEADER => IndexEntry::Header { id: id(reader)?, header: Header::read(reader)? },
            BLOCK => IndexEntry::Block {
                id: id(reader)?,
                position: BlockPosition {
                    file: read_file_number(reader)?,
                    offset: read_u64(reader)?,
                    size: reader.u32()?,
                },
            },
            UNDO => {
                let (id, file, offset, size) =
                    (id(reader)?, read_file_number(reader)?, read_u64(reader)?, reader.u32()?);
                if offset >= UNDO_FILE_SIZE_MAX {
                    return Err(LogItemError::UndoOffset);
                }
                IndexEntry::Undo { id, position: UndoPosition { file, offset, size } }
            }
            VERIFIED => IndexEntry::Verified { id: id(reader)? },
            COUNTS => IndexEntry::Counts {
                id: id(reader)?,
                counts: BlockCounts { transactions: reader.u32()?, outputs: reader.u32()? },
            },
            INVALID => IndexEntry::Invalid { id: id(reader)? },
            RECONSIDERED => IndexEntry::Reconsidered { id: id(reader)? },
            BLOCK_CLEARED => IndexEntry::BlockCleared { id: id(reader)? },
            UNDO_CLEARED => IndexEntry::UndoCleared { id: id(reader)? },
            FILE => return read_file(reader),
            FILE_PRUNED => return Ok(LogItem::FilePruned { file: read_file_number(reader)? }),
            SYNCED => return Ok(LogItem::Synced { offset: read_u64(reader)?, sequence: read_u64(reader)? }),
            _ => return Err(LogItemError::UnknownTag),
        }))
    }
}

/// The reason why a payload with a correct checksum is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogItemError {
    UnknownTag,
    UndoOffset,
    FileNumber,
    Path,
    Parse(ParseErrorKind),
}

impl LogItemError {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            LogItemError::UnknownTag => "has an entry of an unknown kind",
            LogItemError::UndoOffset => "has undo data at an impossible offset",
            LogItemError::FileNumber => "has an impossible file number",
            LogItemError::Path => "has an invalid path",
            LogItemError::Parse(_) => "has a truncated entry",
        }
    }
}

impl From<ParseError> for LogItemError {
    fn from(error: ParseError) -> LogItemError {
        LogItemError::Parse(error.kind)
    }
}

impl IndexEntry {
    fn write(&self, out: &mut Vec<u8>) {
        let mut tag_and_id = |tag, id: HeaderId| {
            out.push(tag);
            out.extend_from_slice(&id.0.to_le_bytes());
        };
        match *self {
            IndexEntry::Header { id, header } => {
                tag_and_id(HEADER, id);
                out.extend_from_slice(&header.to_bytes());
            }
            IndexEntry::Block { id, position: BlockPosition { file, offset, size } } => {
                tag_and_id(BLOCK, id);
                write_position(out, file, offset, size);
            }
            IndexEntry::Undo { id, position: UndoPosition { file, offset, size } } => {
                tag_and_id(UNDO, id);
                write_position(out, file, offset, size);
            }
            IndexEntry::Verified { id } => tag_and_id(VERIFIED, id),
            IndexEntry::Counts { id, counts } => {
                tag_and_id(COUNTS, id);
                out.extend_from_slice(&counts.transactions.to_le_bytes());
                out.extend_from_slice(&counts.outputs.to_le_bytes());
            }
            IndexEntry::Invalid { id } => tag_and_id(INVALID, id),
            IndexEntry::Reconsidered { id } => tag_and_id(RECONSIDERED, id),
            IndexEntry::BlockCleared { id } => tag_and_id(BLOCK_CLEARED, id),
            IndexEntry::UndoCleared { id } => tag_and_id(UNDO_CLEARED, id),
        }
    }
}

fn write_position(out: &mut Vec<u8>, file: u32, offset: u64, size: u32) {
    out.extend_from_slice(&file.to_le_bytes());
    out.extend_from_slice(&offset.to_le_bytes());
    out.extend_from_slice(&size.to_le_bytes());
}

fn read_file(reader: &mut Reader<'_>) -> Result<LogItem, LogItemError> {
    let file = read_file_number(reader)?;
    let is_external = reader.u8()? != 0;
    let key = Obfuscation::new(reader.array()?);
    let size = usize::from(u16::from_le_bytes(reader.array()?));
    let path = reader.take(size)?.to_vec();
    if path.is_empty() || size > PATH_SIZE_MAX {
        return Err(LogItemError::Path);
    }
    Ok(LogItem::File { file, path: path_of_bytes(path), key, is_external })
}

fn read_file_number(reader: &mut Reader<'_>) -> Result<u32, LogItemError> {
    let file = reader.u32()?;
    if file <= FILE_NUMBER_MAX { Ok(file) } else { Err(LogItemError::FileNumber) }
}

fn path_of_bytes(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

fn read_u64(reader: &mut Reader<'_>) -> Result<u64, ParseError> {
    Ok(u64::from_le_bytes(reader.array()?))
}
