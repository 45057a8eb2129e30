//! The bytes of `fee_estimates.dat`: numbers, vectors and why they cannot be read.
//!
//! Input: a slice. Output: numbers, or a [`CodecError`] with Core's words. Memory: what is kept of a vector of rows is
//! at most [`CONFIRMS_MAX`] rows, whatever number it states; a row has at most the bytes of the slice.

use crate::limits::CONFIRMS_MAX;
use lydian_primitives::{ParseError, ParseErrorKind, Reader, write_compact_size};
use std::fmt;

/// The format that is written and read: Core's `CURRENT_FEES_FILE_VERSION`.
pub const FILE_VERSION: i32 = 309_900;

/// Core's words for a file whose numbers do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corrupt {
    History,
    Buckets,
    Decay,
    Scale,
    FeerateBuckets,
    CountBuckets,
    Confirms,
    ConfirmedBuckets,
    FailedPeriods,
    FailedBuckets,
}

impl Corrupt {
    fn text(self) -> &'static str {
        match self {
            Corrupt::History => "Corrupt estimates file. Historical block range for estimates is invalid",
            Corrupt::Buckets => "Corrupt estimates file. Must have between 2 and 1000 feerate buckets",
            Corrupt::Decay => "Corrupt estimates file. Decay must be between 0 and 1 (non-inclusive)",
            Corrupt::Scale => "Corrupt estimates file. Scale must be non-zero",
            Corrupt::FeerateBuckets => "Corrupt estimates file. Mismatch in feerate average bucket count",
            Corrupt::CountBuckets => "Corrupt estimates file. Mismatch in tx count bucket count",
            Corrupt::Confirms => {
                "Corrupt estimates file.  Must maintain estimates for between 1 and 1008 (one week) confirms"
            }
            Corrupt::ConfirmedBuckets => "Corrupt estimates file. Mismatch in feerate conf average bucket count",
            Corrupt::FailedPeriods => "Corrupt estimates file. Mismatch in confirms tracked for failures",
            Corrupt::FailedBuckets => "Corrupt estimates file. Mismatch in one of failure average bucket counts",
        }
    }
}

/// Why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecError {
    /// A newer version wrote it.
    NewVersion(i32),
    /// An old version wrote it, whose estimates do not count.
    OldVersion(i32),
    Corrupt(Corrupt),
    Parse(ParseErrorKind),
}

impl From<Corrupt> for CodecError {
    fn from(corrupt: Corrupt) -> CodecError {
        CodecError::Corrupt(corrupt)
    }
}

impl From<ParseError> for CodecError {
    fn from(error: ParseError) -> CodecError {
        CodecError::Parse(error.kind)
    }
}

/// The words of Core's exceptions.
impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodecError::NewVersion(version) => write!(f, "File version ({version}) too high to be read."),
            CodecError::OldVersion(version) => {
                write!(f, "Incompatible old fee estimation data (non-fatal). Version: {version}")
            }
            CodecError::Corrupt(corrupt) => f.write_str(corrupt.text()),
            CodecError::Parse(kind) => f.write_str(match kind {
                ParseErrorKind::NonCanonicalCompactSize => "non-canonical ReadCompactSize(): iostream error",
                ParseErrorKind::CompactSizeTooLarge { .. } => "ReadCompactSize(): size too large: iostream error",
                _ => "AutoFile::read: end of file: iostream error",
            }),
        }
    }
}

impl std::error::Error for CodecError {}

/// The rows of a vector of vectors: the first [`CONFIRMS_MAX`], and how many there are.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<Vec<f64>>,
    pub(crate) count: u64,
}

#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    reader: Reader<'a>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { reader: Reader::new(bytes) }
    }

    pub(crate) fn i32(&mut self) -> Result<i32, CodecError> {
        Ok(i32::from_le_bytes(self.reader.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, CodecError> {
        Ok(self.reader.u32()?)
    }

    pub(crate) fn double(&mut self) -> Result<f64, CodecError> {
        Ok(f64::from_le_bytes(self.reader.array()?))
    }

    pub(crate) fn doubles(&mut self) -> Result<Vec<f64>, CodecError> {
        let count = self.reader.compact_size()?;
        let bytes = self.reader.take(count.saturating_mul(size_of::<f64>()))?;
        let (numbers, _) = bytes.as_chunks::<{ size_of::<f64>() }>();
        Ok(numbers.iter().map(|number| f64::from_le_bytes(*number)).collect())
    }

    pub(crate) fn rows(&mut self) -> Result<Rows, CodecError> {
        let count = self.reader.compact_size()? as u64;
        let mut rows = Vec::new();
        for index in 0..count {
            let row = self.doubles()?;
            if index < CONFIRMS_MAX {
                rows.push(row);
            }
        }
        Ok(Rows { rows, count })
    }
}

#[derive(Debug, Default)]
pub(crate) struct Encoder {
    pub(crate) bytes: Vec<u8>,
}

impl Encoder {
    pub(crate) fn i32(&mut self, number: i32) {
        self.bytes.extend(number.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, number: u32) {
        self.bytes.extend(number.to_le_bytes());
    }

    /// Every NaN has the same encoding: Core's `EncodeDouble`.
    pub(crate) fn double(&mut self, number: f64) {
        let bits = if number.is_nan() { 0x7ff8_0000_0000_0000 } else { number.to_bits() };
        self.bytes.extend(bits.to_le_bytes());
    }

    pub(crate) fn doubles(&mut self, numbers: &[f64]) {
        write_compact_size(&mut self.bytes, numbers.len());
        numbers.iter().for_each(|number| self.double(*number));
    }

    pub(crate) fn rows(&mut self, rows: &[Vec<f64>]) {
        write_compact_size(&mut self.bytes, rows.len());
        rows.iter().for_each(|row| self.doubles(row));
    }
}
