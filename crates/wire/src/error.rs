//! Why a payload does not match its command, and how Bitcoin Core treats the peer. Data only.

use crate::message::Command;
use lydian_primitives::{ParseError, ParseErrorKind};
use std::fmt;

/// Why a message could not be decoded. [`DecodeError::penalty`] returns the consequence for the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end too early or do not have the required form.
    Malformed(ParseError),
    /// A BIP-0155 address with more bytes than any network may use.
    AddressTooLong { size: usize },
    /// A BIP-0155 address of a known network with a length that is wrong for that network.
    AddressSize { network: u8, size: usize, expected: usize },
    /// An address in a file has an unknown format version.
    AddressFormat { version: u32 },
    /// A text that exceeds its maximum length.
    TextTooLong { size: usize, limit: usize },
    /// A list with more entries than its message may have.
    TooMany { command: Command, count: usize, limit: usize },
    /// Transaction indexes that do not fit 16 bits.
    IndexOverflow,
    /// `sendcmpct` whose first field is neither 0 nor 1.
    InvalidAnnounceField { value: u8 },
    /// `feature` that violates BIP-0434.
    InvalidFeature,
    /// A bloom filter with too many bytes or hash functions.
    BloomFilterTooLarge { size: usize, hash_funcs: u32 },
    /// An element for the bloom filter that is too large for a script.
    FilterAddTooLarge { size: usize },
}

/// What Core does with a peer after a message it could not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Penalty {
    /// Ignores the message.
    Ignore,
    /// Disconnects.
    Disconnect,
    /// Disconnects and discourages the address (`Misbehaving`).
    Misbehaving,
}

impl DecodeError {
    /// What Core does if it processes the message at all. The caller must know whether it does: before the handshake is
    /// complete, and if a message is not allowed on this kind of connection (addresses from a block-relay peer, filters
    /// without the service), Core decides before it reads the payload.
    pub fn penalty(&self) -> Penalty {
        match self {
            DecodeError::TooMany { command, .. } => match *command {
                Command::GETBLOCKS | Command::GETHEADERS => Penalty::Disconnect,
                Command::NOTFOUND => Penalty::Ignore,
                _ => Penalty::Misbehaving,
            },
            DecodeError::InvalidFeature => Penalty::Disconnect,
            DecodeError::InvalidAnnounceField { .. }
            | DecodeError::BloomFilterTooLarge { .. }
            | DecodeError::FilterAddTooLarge { .. } => Penalty::Misbehaving,
            DecodeError::Malformed(_)
            | DecodeError::AddressTooLong { .. }
            | DecodeError::AddressSize { .. }
            | DecodeError::AddressFormat { .. }
            | DecodeError::TextTooLong { .. }
            | DecodeError::IndexOverflow => Penalty::Ignore,
        }
    }

    pub(crate) fn unexpected_end(offset: usize, missing: usize) -> DecodeError {
        DecodeError::Malformed(ParseError { offset, kind: ParseErrorKind::UnexpectedEnd { missing } })
    }
}

impl From<ParseError> for DecodeError {
    fn from(error: ParseError) -> DecodeError {
        DecodeError::Malformed(error)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Malformed(error) => error.fmt(f),
            DecodeError::AddressTooLong { size } => write!(f, "Address too long: {size} > 512"),
            DecodeError::AddressSize { network, size, expected } => {
                write!(f, "BIP155 address of network {network} with length {size} (should be {expected})")
            }
            DecodeError::AddressFormat { version } => write!(f, "unknown address format {version:#x} in a file"),
            DecodeError::TextTooLong { size, limit } => write!(f, "text of {size} bytes exceeds the limit of {limit}"),
            DecodeError::TooMany { command: command @ (Command::GETBLOCKS | Command::GETHEADERS), count, limit } => {
                write!(f, "{command} locator size {count} > {limit}")
            }
            DecodeError::TooMany { command, count, .. } => write!(f, "{command} message size = {count}"),
            DecodeError::IndexOverflow => f.write_str("indexes overflowed 16 bits"),
            DecodeError::InvalidAnnounceField { .. } => f.write_str("invalid sendcmpct announce field"),
            DecodeError::InvalidFeature => f.write_str("invalid feature payload"),
            DecodeError::BloomFilterTooLarge { .. } => f.write_str("too-large bloom filter"),
            DecodeError::FilterAddTooLarge { .. } => f.write_str("bad filteradd message"),
        }
    }
}

impl std::error::Error for DecodeError {}
