//! Records: coins as stored in a segment. Input: outpoint and coin, or bytes. Output: bytes, or outpoint and coin.
//!
//! `[checksum: u32 le][txid 32][vout: u32 le][coin]`, padded with zeros to a multiple of 8 bytes. The checksum is the
//! lower half of the XXH3-64 of everything after it, seeded with the record's unit, so that a record read from a wrong
//! location is detected. A typical coin takes 72 bytes. Reading accepts any bytes: it never panics and allocates
//! nothing.

use crate::coin::{CoinParseError, Parsed, parse_coin};
use lydian_primitives::{OutPoint, Txid};
use xxhash_rust::xxh3::xxh3_64_with_seed;

pub(crate) const UNIT_BYTES: usize = 8;
pub(crate) const OUTPOINT_BYTES: usize = 36;
const CHECKSUM_BYTES: usize = 4;
const HEAD_BYTES: usize = CHECKSUM_BYTES + OUTPOINT_BYTES;

/// Appends a record for location `unit`. Returns its size in units.
pub(crate) fn encode_record(unit: u64, outpoint: &[u8], coin: &[u8], out: &mut Vec<u8>) -> u64 {
    let start = out.len();
    out.extend_from_slice(&[0; CHECKSUM_BYTES]);
    out.extend_from_slice(outpoint);
    out.extend_from_slice(coin);
    let size = (out.len() - start).next_multiple_of(UNIT_BYTES);
    out.resize(start + size, 0);
    let checksum = checksum(unit, &out[start + CHECKSUM_BYTES..]);
    out[start..start + CHECKSUM_BYTES].copy_from_slice(&checksum);
    (size / UNIT_BYTES) as u64
}

/// A record that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) outpoint: &'a [u8; OUTPOINT_BYTES],
    pub(crate) coin: Parsed<'a>,
    /// The encoded coin.
    pub(crate) coin_bytes: &'a [u8],
    pub(crate) units: u64,
}

/// The reason why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordError {
    /// The record has at least this many bytes.
    Incomplete {
        size_min: u64,
    },
    Checksum,
    Invalid,
}

/// Reads the record of `unit` at the start of the bytes.
pub(crate) fn parse_record(unit: u64, bytes: &[u8]) -> Result<Record<'_>, RecordError> {
    let incomplete = |size: u64| RecordError::Incomplete { size_min: size.max(bytes.len() as u64 + 1) };
    let body = bytes.get(CHECKSUM_BYTES..).unwrap_or_default();
    let (outpoint, rest) =
        body.split_first_chunk::<OUTPOINT_BYTES>().ok_or_else(|| incomplete(HEAD_BYTES as u64 + 8))?;
    let coin = parse_coin(rest).map_err(|error| match error {
        CoinParseError::Incomplete { size_min } => incomplete(size_min.saturating_add(HEAD_BYTES as u64)),
        CoinParseError::Invalid => RecordError::Invalid,
    })?;
    let size = (HEAD_BYTES + coin.size).next_multiple_of(UNIT_BYTES);
    let covered = bytes.get(CHECKSUM_BYTES..size).ok_or_else(|| incomplete(size as u64))?;
    if bytes[..CHECKSUM_BYTES] != checksum(unit, covered) && !cfg!(fuzzing) {
        return Err(RecordError::Checksum);
    }
    Ok(Record { outpoint, coin, coin_bytes: &rest[..coin.size], units: (size / UNIT_BYTES) as u64 })
}

/// The outpoint encoded by [`OutPoint::to_bytes`].
pub(crate) fn outpoint_of(bytes: &[u8; OUTPOINT_BYTES]) -> OutPoint {
    let mut txid = Txid::ZERO;
    txid.0.copy_from_slice(&bytes[..32]);
    OutPoint { txid, vout: u32::from_le_bytes([bytes[32], bytes[33], bytes[34], bytes[35]]) }
}

fn checksum(unit: u64, bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let [a, b, c, d, ..] = xxh3_64_with_seed(bytes, unit).to_le_bytes();
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_come_back_and_damage_is_found(script: Vec<u8>, unit in 1u64..1 << 34, bit: usize) {
            let mut coin = vec![9, 1];
            coin.push(u8::try_from(script.len() + 5).unwrap_or(0x7f));
            coin.extend_from_slice(&script);
            prop_assume!(script.len() < 100);
            let mut bytes = Vec::new();
            let units = encode_record(unit, &[7; 36], &coin, &mut bytes);
            prop_assert_eq!(units * 8, bytes.len() as u64);
            let record = parse_record(unit, &bytes).unwrap();
            prop_assert_eq!((record.outpoint, record.coin_bytes, record.units), (&[7; 36], &coin[..], units));
            prop_assert!(parse_record(unit + 1, &bytes).is_err());
            for end in 0..bytes.len() {
                let is_incomplete = matches!(parse_record(unit, &bytes[..end]), Err(RecordError::Incomplete { size_min }) if size_min > end as u64);
                prop_assert!(is_incomplete);
            }
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(parse_record(unit, &bytes).is_err());
        }
    }
}
