//! Checksummed records for append-only logs.
//!
//! Input: payloads, or the bytes of a log. Output: framed bytes, or the complete payloads and the offset where they
//! end.
//!
//! A record is `[size of payload: u32 le][checksum: u64 le][payload]`; the checksum is XXH3-64 of the payload seeded
//! with the record's sequence number, so that a record that is left over from an older log, moved, or repeated is not
//! treated as the next one. Cost: one pass over the bytes, no allocation when reading. Reading never fails on any
//! input; it stops at the first incomplete record and never searches for another one after it, because that one may
//! have been written after bytes that were lost.

use crate::limits::RECORD_PAYLOAD_SIZE_MAX;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Size in bytes of the header before each payload.
pub const RECORD_HEAD_SIZE: usize = 4 + 8;

/// Appends one record to `out`.
///
/// # Panics
///
/// If the payload is longer than [`RECORD_PAYLOAD_SIZE_MAX`]; the caller must split what it writes.
pub fn encode_record(payload: &[u8], sequence: u64, out: &mut Vec<u8>) {
    assert!(payload.len() <= RECORD_PAYLOAD_SIZE_MAX, "a record of {} bytes", payload.len());
    let size = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    out.reserve(RECORD_HEAD_SIZE + payload.len());
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(&xxh3_64_with_seed(payload, sequence).to_le_bytes());
    out.extend_from_slice(payload);
}

/// Iterates over the payloads of a log. The last item is a [`Torn`] if the bytes do not end with a complete record.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    offset: usize,
    sequence: u64,
    is_over: bool,
}

/// The end of the complete records, followed by something else: a write torn by power loss, or damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Size in bytes of the complete records before.
    pub offset: u64,
}

impl<'a> Records<'a> {
    /// Reads the bytes of a log whose first record has the sequence number `sequence`; it increases by one per record.
    pub fn read(bytes: &'a [u8], sequence: u64) -> Records<'a> {
        Records { bytes, offset: 0, sequence, is_over: false }
    }

    /// The offset of the next record: the size of all records returned so far.
    pub fn offset(&self) -> u64 {
        self.offset as u64
    }

    /// The sequence number of the next record.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    fn next_whole(&self) -> Option<&'a [u8]> {
        let (head, rest) = self.bytes.get(self.offset..)?.split_first_chunk::<RECORD_HEAD_SIZE>()?;
        let (size, checksum) = head.split_first_chunk::<4>()?;
        let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
        let payload = rest.get(..size).filter(|payload| payload.len() <= RECORD_PAYLOAD_SIZE_MAX)?;
        (xxh3_64_with_seed(payload, self.sequence).to_le_bytes() == checksum).then_some(payload)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<&'a [u8], Torn>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over || self.offset == self.bytes.len() {
            return None;
        }
        let Some(payload) = self.next_whole() else {
            self.is_over = true;
            return Some(Err(Torn { offset: self.offset as u64 }));
        };
        self.offset += RECORD_HEAD_SIZE + payload.len();
        self.sequence = self.sequence.wrapping_add(1);
        Some(Ok(payload))
    }
}
