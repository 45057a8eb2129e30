//! Building blocks of messages beyond the [`Reader`] of `primitives`.
//!
//! Input: untrusted bytes. Output: numbers and lists. Total; a list grows with the bytes present, not with its declared
//! length.

use crate::error::DecodeError;
use lydian_primitives::{ParseError, ParseErrorKind, Reader};

/// Reads `count` entries of at least `size_min` bytes. Refuses a count that does not fit the remaining bytes before it
/// reads anything.
pub(crate) fn list<T>(
    reader: &mut Reader<'_>,
    count: usize,
    size_min: usize,
    mut read: impl FnMut(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let needed = count.saturating_mul(size_min);
    if needed > reader.remaining() {
        return Err(DecodeError::unexpected_end(reader.offset(), needed - reader.remaining()));
    }
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        entries.push(read(reader)?);
    }
    Ok(entries)
}

/// Reads a CompactSize and that number of bytes, at most `limit`: Core's `LIMITED_STRING`.
pub(crate) fn limited<'a>(reader: &mut Reader<'a>, limit: usize) -> Result<&'a [u8], DecodeError> {
    let size = reader.compact_size()?;
    if size > limit {
        return Err(DecodeError::TextTooLong { size, limit });
    }
    Ok(reader.take(size)?)
}

/// Reads a CompactSize that is not a count and may have any value: Core's `CompactSizeFormatter<false>`.
pub(crate) fn compact_u64(reader: &mut Reader<'_>) -> Result<u64, ParseError> {
    let offset = reader.offset();
    let first = reader.u8()?;
    let (value, least) = match first {
        0xfd => (u64::from(u16::from_le_bytes(reader.array()?)), 0xfd),
        0xfe => (u64::from(reader.u32()?), 0x1_0000),
        0xff => (u64::from_le_bytes(reader.array()?), 0x1_0000_0000),
        small => (u64::from(small), 0),
    };
    if value < least {
        return Err(ParseError { offset, kind: ParseErrorKind::NonCanonicalCompactSize });
    }
    Ok(value)
}

/// Writes such a number in its shortest form.
pub(crate) fn write_compact_u64(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    let (prefix, size) = match value {
        0..=0xfc => (None, 1),
        0xfd..=0xffff => (Some(0xfd), 2),
        0x1_0000..=0xffff_ffff => (Some(0xfe), 4),
        _ => (Some(0xff), 8),
    };
    out.extend(prefix);
    out.extend_from_slice(&bytes[..size]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_round_trips_in_one_form_only() {
        for value in [0, 0xfc, 0xfd, 0xffff, 0x1_0000, 0xffff_ffff, 0x1_0000_0000, u64::MAX] {
            let mut out = Vec::new();
            write_compact_u64(&mut out, value);
            assert_eq!(compact_u64(&mut Reader::new(&out)), Ok(value));
        }
        for longer in [&[0xfd, 0xfc, 0][..], &[0xfe, 0xff, 0xff, 0, 0], &[0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]] {
            let error = compact_u64(&mut Reader::new(longer)).map_err(|error| error.kind);
            assert_eq!(error, Err(ParseErrorKind::NonCanonicalCompactSize));
        }
    }
}
