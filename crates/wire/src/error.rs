//! Why a payload is not what its command says, and what Bitcoin Core does with the peer. Data only.

use crate::message::Command;
use lydian_primitives::{ParseError, ParseErrorKind};
use std::fmt;

/// Why a message could not be read. [`DecodeError::penalty`] tells what that means for the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end too early or are not in the form they must have.
    Malformed(ParseError),
    /// A BIP-0155 address of more bytes than any network may use.
    AddressTooLong { size: usize },
    /// A BIP-0155 address of a known network with a length that is not that network's.
    AddressSize { network: u8, size: usize, expected: usize },
    /// The form of an address in a file is none that is known.
    AddressFormat { version: u32 },
    /// A text longer than it may be.
    TextTooLong { size: usize, limit: usize },
    /// A list of more entries than its message may have.
    TooMany { command: Command, count: usize, limit: usize },
    /// Indexes of transactions that 16 bits cannot hold.
    IndexOverflow,
    /// `sendcmpct` whose first field is neither 0 nor 1.
    InvalidAnnounceField { value: u8 },
    /// `feature` that is not as BIP-0434 says.
    InvalidFeature,
    /// A bloom filter of too many bytes or hash functions.
    BloomFilterTooLarge { size: usize, hash_funcs: u32 },
    /// An element for the bloom filter that no script can hold.
    FilterAddTooLarge { size: usize },
}

/// What Core does with a peer after a message it could not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Penalty {
    /// Forgets the message.
    Ignore,
    /// Disconnects.
    Disconnect,
    /// Disconnects and discourages the address (`Misbehaving`).
    Misbehaving,
}

impl DecodeError {
    /// What Core does if it looks at the message at all. That is the caller's to know: before the handshake is complete, and where a message is not for
    /// this kind of connection (addresses from a block-relay peer, filters without the service), Core decides before it reads the payload.
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
            DecodeError::AddressFormat { version } => write!(f, "unknown form {version:#x} of an address in a file"),
            DecodeError::TextTooLong { size, limit } => write!(f, "a text of {size} bytes is longer than {limit}"),
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
