//! A cursor over untrusted bytes. Input: a slice. Output: integers, slices, or a [`ParseError`] with the offset.
//!
//! Invariants: never reads past the end, never panics, never allocates. CompactSize follows Core's rules
//! (`ReadCompactSize`, serialize.h): the shortest form only, and at most [`COMPACT_SIZE_MAX`].

use crate::limits::COMPACT_SIZE_MAX;
use std::fmt;

/// Why bytes could not be parsed, and at which offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Offset in bytes from the start of the buffer.
    pub offset: usize,
    pub kind: ParseErrorKind,
}

/// The kinds of [`ParseError`], one for each message of Core's deserialiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// The buffer ends `missing` bytes too early.
    UnexpectedEnd { missing: usize },
    /// A CompactSize in a longer form than needed ("non-canonical ReadCompactSize()").
    NonCanonicalCompactSize,
    /// A CompactSize above [`COMPACT_SIZE_MAX`] ("ReadCompactSize(): size too large").
    CompactSizeTooLarge { size: u64 },
    /// The witness flag is set, but no input has a witness ("Superfluous witness record").
    SuperfluousWitness,
    /// A flag byte other than 1 ("Unknown transaction optional data").
    UnknownTransactionOptionalData { flags: u8 },
    /// Bytes are left after the last field.
    TrailingBytes { count: usize },
    /// The buffer is larger than a block may be.
    BufferTooLarge { size: usize },
    /// A VARINT above the range of its type ("ReadVarInt(): size too large").
    VarIntTooLarge,
    /// The x coordinate of a compressed public key is not that of a point on the curve.
    NotAPoint,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ParseErrorKind::UnexpectedEnd { missing } => write!(f, "{missing} bytes are missing")?,
            ParseErrorKind::NonCanonicalCompactSize => write!(f, "a CompactSize is not in its shortest form")?,
            ParseErrorKind::CompactSizeTooLarge { size } => write!(f, "a CompactSize of {size} is too large")?,
            ParseErrorKind::SuperfluousWitness => write!(f, "witness flag set, but every witness is empty")?,
            ParseErrorKind::UnknownTransactionOptionalData { flags } => write!(f, "unknown flag byte {flags:#04x}")?,
            ParseErrorKind::TrailingBytes { count } => write!(f, "{count} bytes are left over")?,
            ParseErrorKind::BufferTooLarge { size } => write!(f, "{size} bytes are more than a block may have")?,
            ParseErrorKind::VarIntTooLarge => write!(f, "a VARINT is too large")?,
            ParseErrorKind::NotAPoint => write!(f, "a compressed public key is not a point on the curve")?,
        }
        write!(f, " at byte {}", self.offset)
    }
}

impl std::error::Error for ParseError {}

/// A cursor over a byte slice.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Size of the whole buffer in bytes.
    size: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes, size: bytes.len() }
    }

    pub fn offset(&self) -> usize {
        self.size - self.rest.len()
    }

    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub fn error<T>(&self, kind: ParseErrorKind) -> Result<T, ParseError> {
        Err(ParseError { offset: self.offset(), kind })
    }

    /// Returns the next `size` bytes.
    #[inline]
    pub fn take(&mut self, size: usize) -> Result<&'a [u8], ParseError> {
        match self.rest.split_at_checked(size) {
            Some((slice, rest)) => {
                self.rest = rest;
                Ok(slice)
            }
            None => self.error(ParseErrorKind::UnexpectedEnd { missing: size - self.remaining() }),
        }
    }

    /// Returns the next `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        match self.rest.split_first_chunk::<N>() {
            Some((chunk, rest)) => {
                self.rest = rest;
                Ok(*chunk)
            }
            None => self.error(ParseErrorKind::UnexpectedEnd { missing: N - self.remaining() }),
        }
    }

    #[inline]
    pub fn u8(&mut self) -> Result<u8, ParseError> {
        Ok(self.array::<1>()?[0])
    }

    #[inline]
    pub fn u32(&mut self) -> Result<u32, ParseError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    #[inline]
    pub fn i64(&mut self) -> Result<i64, ParseError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// Reads a CompactSize: the number of items or bytes that follow.
    #[inline]
    pub fn compact_size(&mut self) -> Result<usize, ParseError> {
        let start = self.offset();
        let first = self.u8()?;
        if first < 0xfd {
            return Ok(usize::from(first));
        }
        let (size, least) = match first {
            0xfd => (u64::from(u16::from_le_bytes(self.array()?)), 0xfd),
            0xfe => (u64::from(u32::from_le_bytes(self.array()?)), 0x1_0000),
            _ => (u64::from_le_bytes(self.array()?), 0x1_0000_0000),
        };
        let fail = |kind| Err(ParseError { offset: start, kind });
        if size < least {
            return fail(ParseErrorKind::NonCanonicalCompactSize);
        }
        match usize::try_from(size) {
            Ok(count) if size <= COMPACT_SIZE_MAX => Ok(count),
            _ => fail(ParseErrorKind::CompactSizeTooLarge { size }),
        }
    }

    /// Reads a CompactSize and that number of bytes.
    #[inline]
    pub fn var_bytes(&mut self) -> Result<&'a [u8], ParseError> {
        let size = self.compact_size()?;
        self.take(size)
    }

    /// Fails if bytes are left.
    pub fn finish(&self) -> Result<(), ParseError> {
        match self.remaining() {
            0 => Ok(()),
            count => self.error(ParseErrorKind::TrailingBytes { count }),
        }
    }
}

/// Appends a CompactSize in its shortest form (Core's `WriteCompactSize`).
pub fn write_compact_size(out: &mut Vec<u8>, size: usize) {
    if let Ok(byte) = u8::try_from(size)
        && byte < 0xfd
    {
        out.push(byte);
    } else if let Ok(short) = u16::try_from(size) {
        out.push(0xfd);
        out.extend_from_slice(&short.to_le_bytes());
    } else if let Ok(long) = u32::try_from(size) {
        out.push(0xfe);
        out.extend_from_slice(&long.to_le_bytes());
    } else {
        out.push(0xff);
        out.extend_from_slice(&(size as u64).to_le_bytes());
    }
}

/// The number of bytes that the CompactSize of this value takes.
pub fn compact_size_len(size: usize) -> usize {
    match size {
        0..=0xfc => 1,
        0xfd..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compact(bytes: &[u8]) -> Result<usize, ParseErrorKind> {
        Reader::new(bytes).compact_size().map_err(|e| e.kind)
    }

    /// limit: COMPACT_SIZE_MAX at
    /// limit: COMPACT_SIZE_MAX above
    /// checklist: 55
    #[test]
    fn compact_size_has_cores_rules() {
        assert_eq!(compact(&[0xfc]), Ok(0xfc));
        assert_eq!(compact(&[0xfd, 0xfd, 0]), Ok(0xfd));
        assert_eq!(compact(&[0xfd, 0xfc, 0]), Err(ParseErrorKind::NonCanonicalCompactSize));
        assert_eq!(compact(&[0xfe, 0xff, 0xff, 0, 0]), Err(ParseErrorKind::NonCanonicalCompactSize));
        assert_eq!(compact(&[0xfe, 0, 0, 1, 0]), Ok(0x1_0000));
        assert_eq!(compact(&[0xfe, 0, 0, 0, 2]), Ok(0x0200_0000));
        assert_eq!(compact(&[0xfe, 1, 0, 0, 2]), Err(ParseErrorKind::CompactSizeTooLarge { size: 0x0200_0001 }));
        assert_eq!(
            compact(&[0xff, 0, 0, 0, 0, 1, 0, 0, 0]),
            Err(ParseErrorKind::CompactSizeTooLarge { size: 1 << 32 })
        );
        assert_eq!(compact(&[0xff, 0xff, 0, 0, 0, 0, 0, 0, 0]), Err(ParseErrorKind::NonCanonicalCompactSize));
        assert_eq!(compact(&[0xfd, 1]), Err(ParseErrorKind::UnexpectedEnd { missing: 1 }));
    }

    #[test]
    fn written_sizes_read_back() {
        for size in [0, 1, 0xfc, 0xfd, 0xffff, 0x1_0000, 0x0200_0000] {
            let mut out = Vec::new();
            write_compact_size(&mut out, size);
            assert_eq!(out.len(), compact_size_len(size));
            assert_eq!(compact(&out), Ok(size));
        }
    }
}
