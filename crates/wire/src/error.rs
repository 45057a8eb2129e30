//! Why a payload is not what its command says, and what Bitcoin Core does with the peer. Data only.

use lydian_primitives::ParseError;
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
            DecodeError::AddressTooLong { size } => write!(f, "an address of {size} bytes is too long"),
            DecodeError::AddressSize { network, size, expected } => {
                write!(f, "an address of network {network} has {size} bytes, should have {expected}")
            }
            DecodeError::AddressFormat { version } => write!(f, "unknown form {version:#x} of an address in a file"),
        }
    }
}

impl std::error::Error for DecodeError {}
