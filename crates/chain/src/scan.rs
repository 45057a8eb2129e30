//! The first pass: finds the records of one file. Input: a file, its key, a magic. Output: records with the hashes of
//! their headers, and remarks about everything else in the file.
//!
//! Scans like Core's `LoadExternalBlockFile` (validation.cpp): searches for the magic byte by byte; accepts the record
//! if its length is possible, otherwise continues at the next byte; continues after the last byte of a record; stops at
//! a record that extends beyond the end of the file. Cost: 88 bytes read per record; all other bytes are read twice.

use crate::error::ReadError;
use crate::limits::{DETECT_SIZE_MAX, RECORD_SIZE_MAX, RECORD_SIZE_MIN};
use crate::magic::{MAGICS, magic_name};
use crate::obfuscation::Obfuscation;
use lydian_disk::{DiskError, ReadFile};
use lydian_primitives::HEADER_SIZE;
use lydian_primitives::{BlockHash, Header, to_hex};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Number of bytes read at once in the search for the next magic.
const CHUNK_SIZE: usize = 256 << 10;

/// Magic and length.
const FRAME_SIZE: usize = 8;

/// A block in a file. Only its header has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Index of the file among the scanned files.
    pub file: u32,
    /// Offset of the block's first byte; magic and length are in the eight bytes before it.
    pub offset: u64,
    /// Size of the block in bytes according to its record.
    pub size: u32,
    pub hash: BlockHash,
    pub header: Header,
}

/// Something in a block file that is not a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    pub path: PathBuf,
    pub offset: u64,
    pub kind: RemarkKind,
}

/// The kinds of [`Remark`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemarkKind {
    /// Bytes outside any record. Core's own old files contain some; they are harmless.
    ForeignBytes { size: u64, first: Vec<u8> },
    /// Zeros between two records: space that was allocated but never written.
    Zeros { size: u64 },
    /// Bytes outside any record of this chain that contain a record of another chain.
    OtherChain { size: u64, name: &'static str, magic: [u8; 4] },
    /// A magic followed by an impossible length; the bytes up to the next record are skipped.
    BadLength { size: u64, length: u32 },
    /// The record extends beyond the end of the file: it is truncated, or its length is damaged. Nothing after it was
    /// read.
    TornRecord { length: u32, missing: u64 },
    /// Bytes after the last transaction of a block, inside its record. Core ignores them.
    TrailingBytes { size: u64, hash: BlockHash },
    /// Another copy of the same block.
    Duplicate { hash: BlockHash, first_path: PathBuf, first_offset: u64 },
}

impl RemarkKind {
    /// Whether blocks may be missing because of this, so that not everything was verified.
    pub fn is_loss(&self) -> bool {
        match self {
            RemarkKind::TornRecord { .. } | RemarkKind::OtherChain { .. } | RemarkKind::BadLength { .. } => true,
            RemarkKind::ForeignBytes { .. }
            | RemarkKind::Zeros { .. }
            | RemarkKind::TrailingBytes { .. }
            | RemarkKind::Duplicate { .. } => false,
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.path.display(), self.offset)?;
        match &self.kind {
            RemarkKind::ForeignBytes { size, first } => {
                write!(f, "{size} bytes that belong to no block were skipped (they begin with {})", to_hex(first))
            }
            RemarkKind::Zeros { size } => write!(f, "{size} zero bytes between two blocks were skipped"),
            RemarkKind::OtherChain { size, name, magic } => write!(
                f,
                "{size} bytes were skipped that hold blocks of another chain: {}, whose magic is {}",
                name,
                to_hex(magic)
            ),
            RemarkKind::BadLength { size, length } => write!(
                f,
                "{size} bytes were skipped: a block of {length} bytes is announced there, and blocks have {RECORD_SIZE_MIN} to \
                 {RECORD_SIZE_MAX}"
            ),
            RemarkKind::TornRecord { length, missing } => {
                write!(
                    f,
                    "the last block is cut off: {length} bytes are announced, and the file ends {missing} bytes too early"
                )
            }
            RemarkKind::TrailingBytes { size, hash } => {
                write!(f, "{size} bytes after the last transaction of block {hash} were skipped")
            }
            RemarkKind::Duplicate { hash, first_path, first_offset } => {
                write!(f, "block {hash} is a duplicate of the one at {}:{first_offset}", first_path.display())
            }
        }
    }
}

/// One file, read without its obfuscation.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) path: &'a Path,
    pub(crate) file: &'a dyn ReadFile,
    pub(crate) key: Obfuscation,
}

impl View<'_> {
    pub(crate) fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DiskError> {
        self.file.read_at(offset, bytes)?;
        self.key.apply(offset, bytes);
        Ok(())
    }

    fn array<const N: usize>(&self, offset: u64) -> Result<[u8; N], DiskError> {
        let mut bytes = [0; N];
        self.read_at(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// The range from the first to the last byte that is not zero.
    fn without_zeros(&self, range: Range<u64>) -> Result<Option<Range<u64>>, DiskError> {
        let mut found: Option<Range<u64>> = None;
        self.find(range, |offset, bytes| {
            if let (Some(first), Some(last)) = (bytes.iter().position(|&b| b != 0), bytes.iter().rposition(|&b| b != 0))
            {
                let start = found.as_ref().map_or(offset + first as u64, |found| found.start);
                found = Some(start..offset + last as u64 + 1);
            }
            None::<()>
        })?;
        Ok(found)
    }

    /// Calls `visit` with the offset and bytes of overlapping pieces of a range until it returns a value. Pieces
    /// overlap by seven bytes, so that every frame is complete in at least one piece.
    fn find<T>(
        &self,
        range: Range<u64>,
        mut visit: impl FnMut(u64, &[u8]) -> Option<T>,
    ) -> Result<Option<T>, DiskError> {
        let mut buffer = vec![0; CHUNK_SIZE];
        let mut offset = range.start;
        while offset < range.end {
            let size = usize::try_from(range.end - offset).unwrap_or(CHUNK_SIZE).min(CHUNK_SIZE);
            self.read_at(offset, &mut buffer[..size])?;
            if let Some(found) = visit(offset, &buffer[..size]) {
                return Ok(Some(found));
            }
            if offset + size as u64 == range.end {
                break;
            }
            offset += (size - (FRAME_SIZE - 1)) as u64;
        }
        Ok(None)
    }
}

/// Finds the records of one file from offset `start` on, which need not be the start of a record. Calls `remark` for
/// everything else in it.
pub(crate) fn scan_file(
    view: &View<'_>,
    file: u32,
    magic: [u8; 4],
    start: u64,
    mut remark: impl FnMut(Remark),
) -> Result<Vec<Record>, DiskError> {
    let end = view.file.size();
    let mut records = Vec::new();
    // The start of the bytes outside any record, and the position at which the search for the next magic continues.
    let (mut gap_start, mut cursor) = (start, start);
    // Usually a record directly follows the previous one: three small reads, no search.
    while let Some(start) = next_magic(view, cursor..end, magic)? {
        if end - start < FRAME_SIZE as u64 {
            break;
        }
        let length = u32::from_le_bytes(view.array(start + 4)?);
        if !(RECORD_SIZE_MIN..=RECORD_SIZE_MAX).contains(&length) {
            cursor = start + 1;
            continue;
        }
        remark_gap(view, gap_start..start, magic, false, &mut remark)?;
        let offset = start + FRAME_SIZE as u64;
        let next = offset + u64::from(length);
        if next > end {
            let kind = RemarkKind::TornRecord { length, missing: next - end };
            remark(Remark { path: view.path.to_owned(), offset: start, kind });
            return Ok(records);
        }
        let header = Header::parse(&view.array::<HEADER_SIZE>(offset)?);
        records.push(Record { file, offset, size: length, hash: header.hash(), header });
        (gap_start, cursor) = (next, next);
    }
    remark_gap(view, gap_start..end, magic, true, &mut remark)?;
    Ok(records)
}

fn next_magic(view: &View<'_>, range: Range<u64>, magic: [u8; 4]) -> Result<Option<u64>, DiskError> {
    if range.end.saturating_sub(range.start) < magic.len() as u64 {
        return Ok(None);
    }
    if view.array::<4>(range.start)? == magic {
        return Ok(Some(range.start));
    }
    view.find(range, |offset, bytes| bytes.windows(4).position(|window| window == magic).map(|at| offset + at as u64))
}

/// Adds a remark about the bytes between two records, or after the last one, where zeros are normal: Core allocates
/// files in chunks of 16 MiB.
fn remark_gap(
    view: &View<'_>,
    range: Range<u64>,
    magic: [u8; 4],
    is_tail: bool,
    remark: &mut impl FnMut(Remark),
) -> Result<(), DiskError> {
    if range.is_empty() {
        return Ok(());
    }
    // Space that Core allocated but never wrote is zero on disk, because the key was not applied to it.
    let on_disk = View { key: Obfuscation::NONE, ..*view };
    let written = match on_disk.without_zeros(range.clone())? {
        Some(written) if view.without_zeros(range.clone())?.is_some() => Some(written),
        _ => None,
    };
    let mut tell = |offset, kind| remark(Remark { path: view.path.to_owned(), offset, kind });
    let size = range.end - range.start;
    let Some(written) = written else {
        if !is_tail {
            tell(range.start, RemarkKind::Zeros { size });
        }
        return Ok(());
    };
    let (mut other, mut bad) = (None, None);
    view.find(range.clone(), |offset, bytes| {
        for (at, frame) in bytes.windows(FRAME_SIZE).enumerate() {
            let (Some(found), Some(length)) = (frame.first_chunk::<4>(), frame.last_chunk::<4>()) else { continue };
            let length = u32::from_le_bytes(*length);
            if *found == magic {
                bad = bad.or(Some((offset + at as u64, length)));
            } else if (RECORD_SIZE_MIN..=RECORD_SIZE_MAX).contains(&length)
                && let Some(name) = magic_name(*found)
            {
                other = Some((offset + at as u64, name, *found));
                return Some(());
            }
        }
        None
    })?;
    if let Some((at, name, magic)) = other {
        tell(at, RemarkKind::OtherChain { size, name, magic });
    } else if let Some((at, length)) = bad {
        tell(at, RemarkKind::BadLength { size: range.end - at, length });
    } else {
        let size = if is_tail { written.end - range.start } else { size };
        let mut first = vec![0; usize::try_from(size).unwrap_or(8).min(8)];
        view.read_at(range.start, &mut first)?;
        tell(range.start, RemarkKind::ForeignBytes { size, first });
    }
    Ok(())
}

/// The magic of the first record of any known chain within the first [`DETECT_SIZE_MAX`] bytes.
pub(crate) fn detect_magic(view: &View<'_>) -> Result<[u8; 4], ReadError> {
    let end = view.file.size().min(DETECT_SIZE_MAX);
    if end == 0 {
        return Err(ReadError::Empty { path: view.path.to_owned() });
    }
    let found = view.find(0..end, |_, bytes| {
        bytes.windows(FRAME_SIZE).find_map(|frame| {
            let length = u32::from_le_bytes(*frame.last_chunk::<4>()?);
            let known = MAGICS.iter().find(|known| frame.starts_with(&known.magic))?;
            (RECORD_SIZE_MIN..=RECORD_SIZE_MAX).contains(&length).then_some(known.magic)
        })
    })?;
    match found {
        Some(magic) => Ok(magic),
        None => {
            let mut first = vec![0; usize::try_from(end).unwrap_or(8).min(8)];
            view.read_at(0, &mut first)?;
            Err(ReadError::NoMagic { path: view.path.to_owned(), first, searched: end })
        }
    }
}
