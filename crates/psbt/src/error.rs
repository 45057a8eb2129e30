//! Why bytes are no PSBT, with Core's words.

use lydian_primitives::{ParseError, ParseErrorKind, to_hex};
use std::fmt;

/// Why a PSBT cannot be read. Displayed with Core's message, which for an error in the bytes ends with what the C++
/// library appends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    Base64,
    /// Bytes after the last map.
    ExtraData,
    /// The bytes end too early, or a size is not allowed.
    Bytes(ParseErrorKind),
    /// The same key twice in a map of this kind: global, input or output.
    DuplicateKey {
        map: &'static str,
        key: Vec<u8>,
    },
    KeySize {
        expected: usize,
        field: &'static str,
    },
    /// A rule of one field.
    Field(&'static str),
}

impl From<ParseError> for ReadError {
    fn from(error: ParseError) -> ReadError {
        ReadError::Bytes(error.kind)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Base64 => return f.write_str("invalid base64"),
            ReadError::ExtraData => return f.write_str("extra data after PSBT"),
            ReadError::Bytes(kind) => f.write_str(match kind {
                ParseErrorKind::NonCanonicalCompactSize => "non-canonical ReadCompactSize()",
                ParseErrorKind::CompactSizeTooLarge { .. } => "ReadCompactSize(): size too large",
                ParseErrorKind::SuperfluousWitness => "Superfluous witness record",
                ParseErrorKind::UnknownTransactionOptionalData { .. } => "Unknown transaction optional data",
                _ => "SpanReader::read(): end of data",
            })?,
            ReadError::DuplicateKey { map, key } => {
                write!(f, "Duplicate Key, {map} key \"{}\" already provided", to_hex(key))?;
            }
            ReadError::KeySize { expected, field } => write!(f, "Size of key was not {expected} for the type {field}")?,
            ReadError::Field(words) => f.write_str(words)?,
        }
        f.write_str(": iostream error")
    }
}

impl std::error::Error for ReadError {}
