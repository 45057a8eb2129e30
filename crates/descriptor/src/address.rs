//! Addresses: Core's key_io.cpp.
//!
//! Input: an output script, or a string; the chain. Output: an [`Address`], and from it the script or the string; for
//! a string that is no address of the chain, an [`AddressError`].

use crate::base58;
use crate::bech32::{self, Bech32Error, Encoding};
use crate::solver::{TxoutType, solve};
use lydian_consensus::Chain;
use lydian_script::builder::scripts;
use std::fmt;

/// What an address stands for, on any chain: Core's `CTxDestination`, without those that have no address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    PubkeyHash([u8; 20]),
    ScriptHash([u8; 20]),
    WitnessV0KeyHash([u8; 20]),
    WitnessV0ScriptHash([u8; 32]),
    WitnessV1Taproot([u8; 32]),
    PayToAnchor,
    WitnessUnknown(UnknownProgram),
}

/// A witness program without a meaning yet: of a version from 1 to 16, and 2 to 40 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnknownProgram {
    version: u8,
    program: Vec<u8>,
}

impl UnknownProgram {
    pub fn version(&self) -> u8 {
        self.version
    }

    pub fn program(&self) -> &[u8] {
        &self.program
    }
}

/// The program of a pay-to-anchor output.
const ANCHOR: [u8; 2] = [0x4e, 0x73];

/// Prefixes of addresses on a chain: Core's `base58Prefixes` and `bech32_hrp`.
struct Prefixes {
    key: u8,
    script: u8,
    bech32: &'static str,
}

fn prefixes(chain: Chain) -> Prefixes {
    match chain {
        Chain::Main => Prefixes { key: 0, script: 5, bech32: "bc" },
        Chain::Test | Chain::Testnet4 | Chain::Signet => Prefixes { key: 111, script: 196, bech32: "tb" },
        Chain::Regtest => Prefixes { key: 111, script: 196, bech32: "bcrt" },
    }
}

impl Address {
    /// Returns the address of an output script, if it has one: Core's `ExtractDestination`.
    pub fn of_script(script: &[u8]) -> Option<Address> {
        Address::of_type(&solve(script))
    }

    /// Returns the address of a script of this type, if it has one.
    pub fn of_type(script_type: &TxoutType<'_>) -> Option<Address> {
        match *script_type {
            TxoutType::PubkeyHash(hash) => Some(Address::PubkeyHash(*hash)),
            TxoutType::ScriptHash(hash) => Some(Address::ScriptHash(*hash)),
            TxoutType::WitnessV0KeyHash(hash) => Some(Address::WitnessV0KeyHash(*hash)),
            TxoutType::WitnessV0ScriptHash(hash) => Some(Address::WitnessV0ScriptHash(*hash)),
            TxoutType::WitnessV1Taproot(key) => Some(Address::WitnessV1Taproot(*key)),
            TxoutType::Anchor => Some(Address::PayToAnchor),
            TxoutType::WitnessUnknown { version, program } => {
                Some(Address::WitnessUnknown(UnknownProgram { version, program: program.to_vec() }))
            }
            TxoutType::Nonstandard | TxoutType::Pubkey(_) | TxoutType::Multisig { .. } | TxoutType::NullData => None,
        }
    }

    /// Parses an address of the chain: Core's `DecodeDestination`.
    pub fn parse(text: &str, chain: Chain) -> Result<Address, AddressError> {
        let prefixes = prefixes(chain);
        let start = text.as_bytes().get(..prefixes.bech32.len());
        match start.is_some_and(|start| start.eq_ignore_ascii_case(prefixes.bech32.as_bytes())) {
            true => parse_bech32(text, prefixes.bech32),
            false => parse_base58(text, &prefixes),
        }
    }

    /// Returns the output script that the address stands for: Core's `GetScriptForDestination`.
    pub fn script(&self) -> Vec<u8> {
        match self {
            Address::PubkeyHash(hash) => scripts::p2pkh(hash),
            Address::ScriptHash(hash) => scripts::p2sh(hash),
            Address::WitnessV0KeyHash(hash) => scripts::witness_program(0, hash),
            Address::WitnessV0ScriptHash(hash) => scripts::witness_program(0, hash),
            Address::WitnessV1Taproot(key) => scripts::witness_program(1, key),
            Address::PayToAnchor => scripts::witness_program(1, &ANCHOR),
            Address::WitnessUnknown(unknown) => scripts::witness_program(unknown.version, &unknown.program),
        }
    }

    /// Returns the address as text: Core's `EncodeDestination`.
    pub fn text(&self, chain: Chain) -> String {
        let Prefixes { key, script, bech32 } = prefixes(chain);
        match self {
            Address::PubkeyHash(hash) => base58::encode_check([&[key][..], hash].concat()),
            Address::ScriptHash(hash) => base58::encode_check([&[script][..], hash].concat()),
            Address::WitnessV0KeyHash(hash) => bech32::encode_program(bech32, 0, hash),
            Address::WitnessV0ScriptHash(hash) => bech32::encode_program(bech32, 0, hash),
            Address::WitnessV1Taproot(key) => bech32::encode_program(bech32, 1, key),
            Address::PayToAnchor => bech32::encode_program(bech32, 1, &ANCHOR),
            Address::WitnessUnknown(unknown) => bech32::encode_program(bech32, unknown.version, &unknown.program),
        }
    }
}

/// Why a string is no address of a chain. Displayed with Core's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// Neither the Bech32 prefix of the chain nor Base58.
    Encoding,
    Base58Checksum,
    Base58Size,
    Base58Prefix,
    Bech32(Bech32Error),
    NoData,
    Prefix {
        expected: &'static str,
        found: String,
    },
    /// Version 0 with the checksum of Bech32m.
    Bech32mVersion0,
    /// A higher version with the checksum of Bech32.
    Bech32Version1,
    Padding,
    ProgramSizeVersion0(usize),
    ProgramSize(usize),
    Version,
}

impl AddressError {
    /// Returns the positions of the characters that are wrong, as far as the checksum reveals them.
    pub fn positions(&self) -> &[usize] {
        match self {
            AddressError::Bech32(error) => &error.positions,
            _ => &[],
        }
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = |size: usize| if size == 1 { "byte" } else { "bytes" };
        match self {
            AddressError::Encoding => f.write_str("Invalid or unsupported Segwit (Bech32) or Base58 encoding."),
            AddressError::Base58Checksum => f.write_str("Invalid checksum or length of Base58 address (P2PKH or P2SH)"),
            AddressError::Base58Size => f.write_str("Invalid length for Base58 address (P2PKH or P2SH)"),
            AddressError::Base58Prefix => f.write_str("Invalid or unsupported Base58-encoded address."),
            AddressError::Bech32(error) => error.fmt(f),
            AddressError::NoData => f.write_str("Empty Bech32 data section"),
            AddressError::Prefix { expected, found } => write!(
                f,
                "Invalid or unsupported prefix for Segwit (Bech32) address (expected {expected}, got {found})."
            ),
            AddressError::Bech32mVersion0 => f.write_str("Version 0 witness address must use Bech32 checksum"),
            AddressError::Bech32Version1 => f.write_str("Version 1+ witness address must use Bech32m checksum"),
            AddressError::Padding => f.write_str("Invalid padding in Bech32 data section"),
            AddressError::ProgramSizeVersion0(size) => {
                write!(f, "Invalid Bech32 v0 address program size ({size} {}), per BIP141", unit(*size))
            }
            AddressError::ProgramSize(size) => {
                write!(f, "Invalid Bech32 address program size ({size} {})", unit(*size))
            }
            AddressError::Version => f.write_str("Invalid Bech32 address witness version"),
        }
    }
}

impl std::error::Error for AddressError {}

/// Core's maximum sizes in bytes: of an address, and of a string that is decoded at all.
const BASE58_SIZE_MAX: usize = 25;
const BASE58_ANY_SIZE_MAX: usize = 100;

fn parse_base58(text: &str, prefixes: &Prefixes) -> Result<Address, AddressError> {
    let bytes = base58::decode(text, BASE58_ANY_SIZE_MAX).ok_or(AddressError::Encoding)?;
    let body = base58::without_checksum(&bytes).filter(|_| bytes.len() <= BASE58_SIZE_MAX);
    let (prefix, hash) = body.ok_or(AddressError::Base58Checksum)?.split_first().ok_or(AddressError::Base58Prefix)?;
    match <[u8; 20]>::try_from(hash) {
        Ok(hash) if *prefix == prefixes.key => Ok(Address::PubkeyHash(hash)),
        Ok(hash) if *prefix == prefixes.script => Ok(Address::ScriptHash(hash)),
        Err(_) if [prefixes.key, prefixes.script].contains(prefix) => Err(AddressError::Base58Size),
        _ => Err(AddressError::Base58Prefix),
    }
}

fn parse_bech32(text: &str, expected: &'static str) -> Result<Address, AddressError> {
    let decoded = bech32::decode(text).map_err(AddressError::Bech32)?;
    let (&version, values) = decoded.values.split_first().ok_or(AddressError::NoData)?;
    if decoded.prefix != expected {
        return Err(AddressError::Prefix { expected, found: decoded.prefix });
    }
    match (version, decoded.encoding) {
        (0, Encoding::Bech32m) => return Err(AddressError::Bech32mVersion0),
        (1.., Encoding::Bech32) => return Err(AddressError::Bech32Version1),
        _ => {}
    }
    let program = bech32::bytes_of(values).ok_or(AddressError::Padding)?;
    if version == 0 {
        return match (<[u8; 20]>::try_from(&program[..]), <[u8; 32]>::try_from(&program[..])) {
            (Ok(hash), _) => Ok(Address::WitnessV0KeyHash(hash)),
            (_, Ok(hash)) => Ok(Address::WitnessV0ScriptHash(hash)),
            _ => Err(AddressError::ProgramSizeVersion0(program.len())),
        };
    }
    match <[u8; 32]>::try_from(&program[..]) {
        Ok(key) if version == 1 => Ok(Address::WitnessV1Taproot(key)),
        _ if version == 1 && program == ANCHOR => Ok(Address::PayToAnchor),
        _ if version > 16 => Err(AddressError::Version),
        _ if !(2..=40).contains(&program.len()) => Err(AddressError::ProgramSize(program.len())),
        _ => Ok(Address::WitnessUnknown(UnknownProgram { version, program })),
    }
}

#[cfg(test)]
mod tests;
