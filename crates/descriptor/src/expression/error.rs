//! The errors of descriptors, with Core's messages (script/descriptor.cpp).

use crate::checksum::ChecksumError;
use std::fmt;

/// Why a text is no descriptor. Displayed with Core's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescriptorError {
    Checksum(ChecksumError),
    /// Text after a complete expression; Core has no message for it.
    Trailing,
    /// An invalid key of a function with one key.
    Key {
        function: &'static str,
        error: KeyError,
    },
    /// An invalid key of multi() and its variants.
    MultiKey(KeyError),
    /// An invalid key whose function Core does not name.
    BareKey(KeyError),
    /// A function where it is not allowed.
    Place {
        function: &'static str,
        allowed: &'static str,
    },
    /// No function inside sh() or wsh().
    NoFunction {
        within: &'static str,
    },
    UnknownFunction(String),
    /// Miniscript outside of wsh() and tr().
    MiniscriptPlace,
    Miniscript {
        expression: String,
        fault: MiniscriptFault,
    },
    Address,
    RawNotHex,
    RawtrKeys,
    UnusedKeys,
    UnusedRange,
    MultiThreshold(String),
    ThresholdZero,
    ThresholdAboveKeys {
        threshold: u32,
        count: usize,
    },
    KeyCount {
        function: &'static str,
        count: usize,
        max: usize,
    },
    /// More than three keys in bare multi().
    BareKeyCount(usize),
    RedeemScriptSize {
        size: usize,
        max: usize,
    },
    /// Another character than the comma between arguments.
    Comma {
        function: &'static str,
        found: char,
    },
    /// A leaf of tr() without the character that has to follow.
    Tree {
        expected: char,
    },
    TreeDepth {
        max: usize,
    },
    /// Multipath keys with different numbers of alternatives.
    MultipathLengths {
        function: &'static str,
    },
    MultipathLeaves,
    MultipathInternalKey,
}

/// Why a key of a descriptor is invalid. Displayed with Core's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyError {
    MusigPlace,
    /// More than one closing bracket.
    MusigBrackets,
    MusigInvalid,
    MusigEmpty,
    /// Another character than the comma between participants.
    MusigComma(char),
    /// An invalid participant, or an invalid path after musig().
    Musig(Box<KeyError>),
    /// A path after musig() whose participants are not all extended keys.
    MusigNotExtended,
    /// A path after musig() whose participants have wildcards.
    MusigRanged,
    MusigHardenedStar,
    MusigHardenedStep,
    MusigMultipath,
    MusigMultipathLengths,
    /// More than one `]`.
    OriginEnd,
    /// A key origin that starts with this character.
    OriginStart(char),
    FingerprintSize(usize),
    FingerprintNotHex(String),
    Missing,
    Whitespace(String),
    Uncompressed,
    Hybrid,
    /// Hexadecimal text that is no public key.
    Pubkey(String),
    Invalid(String),
    StepNotNumber(String),
    StepRange(u32),
    MultipathPlace(String),
    MultipathRepeated,
    MultipathSingle,
    MultipathDuplicate(u32),
}

/// Why an expression of miniscript is refused. Displayed with Core's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MiniscriptFault {
    Invalid,
    NotSatisfiable,
    Malleable,
    NoSignature,
    MixedTimelocks,
    DuplicateKeys,
    ResourceLimits,
    NotSane,
}

impl From<ChecksumError> for DescriptorError {
    fn from(error: ChecksumError) -> DescriptorError {
        DescriptorError::Checksum(error)
    }
}

impl fmt::Display for DescriptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum(error) => error.fmt(f),
            Self::Trailing => Ok(()),
            Self::Key { function, error } => write!(f, "{function}(): {error}"),
            Self::MultiKey(error) => write!(f, "Multi: {error}"),
            Self::BareKey(error) => error.fmt(f),
            Self::Place { function, allowed } => write!(f, "Can only have {function} {allowed}"),
            Self::NoFunction { within } => write!(f, "A function is needed within {within}"),
            Self::UnknownFunction(text) => write!(f, "'{text}' is not a valid descriptor function"),
            Self::MiniscriptPlace => f.write_str("Miniscript expressions can only be used in wsh or tr."),
            Self::Miniscript { expression, fault } => write!(f, "{expression} {fault}"),
            Self::Address => f.write_str("Address is not valid"),
            Self::RawNotHex => f.write_str("Raw script is not hex"),
            Self::RawtrKeys => f.write_str("rawtr(): only one key expected."),
            Self::UnusedKeys => f.write_str("unused(): only one key expected"),
            Self::UnusedRange => f.write_str("unused(): key cannot be ranged"),
            Self::MultiThreshold(text) => write!(f, "Multi threshold '{text}' is not valid"),
            Self::ThresholdZero => f.write_str("Multisig threshold cannot be 0, must be at least 1"),
            Self::ThresholdAboveKeys { threshold, count } => write!(
                f,
                "Multisig threshold cannot be larger than the number of keys; threshold is {threshold} but only {count} keys specified"
            ),
            Self::KeyCount { function, count, max } => {
                write!(f, "Cannot have {count} keys in {function}; must have between 1 and {max} keys, inclusive")
            }
            Self::BareKeyCount(count) => {
                write!(f, "Cannot have {count} pubkeys in bare multisig; only at most 3 pubkeys")
            }
            Self::RedeemScriptSize { size, max } => {
                write!(f, "P2SH script is too large, {size} bytes is larger than {max} bytes")
            }
            Self::Comma { function, found } => write!(f, "{function}: expected ',', got '{found}'"),
            Self::Tree { expected } => write!(f, "tr(): expected '{expected}' after script expression"),
            Self::TreeDepth { max } => write!(f, "tr() supports at most {max} nesting levels"),
            Self::MultipathLengths { function } => {
                write!(f, "{function}: Multipath derivation paths have mismatched lengths")
            }
            Self::MultipathLeaves => f.write_str("tr(): Multipath subscripts have mismatched lengths"),
            Self::MultipathInternalKey => {
                f.write_str("tr(): Multipath internal key mismatches multipath subscripts lengths")
            }
        }
    }
}

impl std::error::Error for DescriptorError {}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MusigPlace => f.write_str("musig() is only allowed in tr() and rawtr()"),
            Self::MusigBrackets => f.write_str("Too many ')' in musig() expression"),
            Self::MusigInvalid => f.write_str("Invalid musig() expression"),
            Self::MusigEmpty => f.write_str("musig(): Must contain key expressions"),
            Self::MusigComma(found) => write!(f, "musig(): expected ',', got '{found}'"),
            Self::Musig(error) => write!(f, "musig(): {error}"),
            Self::MusigNotExtended => f.write_str("musig(): derivation requires all participants to be xpubs or xprvs"),
            Self::MusigRanged => {
                f.write_str("musig(): Cannot have ranged participant keys if musig() also has derivation")
            }
            Self::MusigHardenedStar => f.write_str("musig(): Cannot have hardened child derivation"),
            Self::MusigHardenedStep => f.write_str("musig(): cannot have hardened derivation steps"),
            Self::MusigMultipath => {
                f.write_str("musig(): Cannot have multipath participant keys if musig() is also multipath")
            }
            Self::MusigMultipathLengths => f.write_str("musig(): Multipath derivation paths have mismatched lengths"),
            Self::OriginEnd => f.write_str("Multiple ']' characters found for a single pubkey"),
            Self::OriginStart(found) => {
                write!(f, "Key origin start '[ character expected but not found, got '{found}' instead")
            }
            Self::FingerprintSize(size) => {
                write!(f, "Fingerprint is not 4 bytes ({size} characters instead of 8 characters)")
            }
            Self::FingerprintNotHex(text) => write!(f, "Fingerprint '{text}' is not hex"),
            Self::Missing => f.write_str("No key provided"),
            Self::Whitespace(text) => write!(f, "Key '{text}' is invalid due to whitespace"),
            Self::Uncompressed => f.write_str("Uncompressed keys are not allowed"),
            Self::Hybrid => f.write_str("Hybrid public keys are not allowed"),
            Self::Pubkey(text) => write!(f, "Pubkey '{text}' is invalid"),
            Self::Invalid(text) => write!(f, "key '{text}' is not valid"),
            Self::StepNotNumber(text) => write!(f, "Key path value '{text}' is not a valid uint32"),
            Self::StepRange(step) => write!(f, "Key path value {step} is out of range"),
            Self::MultipathPlace(text) => {
                write!(f, "Key path value '{text}' specifies multipath in a section where multipath is not allowed")
            }
            Self::MultipathRepeated => f.write_str("Multiple multipath key path specifiers found"),
            Self::MultipathSingle => f.write_str("Multipath key path specifiers must have at least two items"),
            Self::MultipathDuplicate(step) => write!(f, "Duplicated key path value {step} in multipath specifier"),
        }
    }
}

impl std::error::Error for KeyError {}

impl fmt::Display for MiniscriptFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "is invalid",
            Self::NotSatisfiable => "is not satisfiable",
            Self::Malleable => "is not sane: malleable witnesses exist",
            Self::NoSignature => "is not sane: witnesses without signature exist",
            Self::MixedTimelocks => "is not sane: contains mixes of timelocks expressed in blocks and seconds",
            Self::DuplicateKeys => "is not sane: contains duplicate public keys",
            Self::ResourceLimits => "is not sane: needs witnesses that may exceed resource limits",
            Self::NotSane => "is not sane",
        })
    }
}
