//! Methods about descriptors: `getdescriptorinfo`, `deriveaddresses`. Also descriptor functions for other methods:
//! ranges, and the scripts of a scan object.

use crate::error::{RpcError, code};
use crate::json::Json;
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::result::{cases, result};
use crate::wiped::with_keys;
use lydian_consensus::Chain;
use lydian_descriptor::{Address, DescriptorError, Descriptors, Keystore, Output, TxoutType, solve};
use std::ops::RangeInclusive;

/// How descriptors differ from Core's.
pub(crate) const UNDERSTOOD: &str = "Miniscript nested deeper than 250 expressions is refused.";

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "deriveaddresses",
        category: Category::Util,
        help: "Derives the addresses of a descriptor.",
        args: &[
            Arg::new("descriptor", Kind::Text, "the descriptor with its checksum"),
            Arg::new("range", Kind::Range, "the end, or [begin,end], for a ranged descriptor").omitted(),
        ],
        examples: &["\"raw(51)#8lvh9jxk\""],
        remark: UNDERSTOOD,
        call: &returns("", deriveaddresses),
    },
    Method {
        name: "getdescriptorinfo",
        category: Category::Util,
        help: "Returns the normalized form and the properties of a descriptor.",
        args: &[Arg::new("descriptor", Kind::Text, "the descriptor")],
        examples: &["\"raw(51)\""],
        remark: UNDERSTOOD,
        call: &returns("", getdescriptorinfo),
    },
];

result! {
    /// The answer of `getdescriptorinfo`.
    struct DescriptorInfo {
        /// the descriptor in canonical form, without private keys; for a multipath descriptor, only the first
        descriptor: String,
        /// all descriptors produced by expanding multipath derivation elements (only for a multipath descriptor)
        #[each("a descriptor")]
        multipath_expansion: Option<Vec<String>>,
        /// the checksum for the input descriptor
        checksum: String,
        /// whether the descriptor is ranged
        isrange: bool,
        /// whether the descriptor is solvable
        issolvable: bool,
        /// whether the input descriptor contained at least one private key
        hasprivatekeys: bool,
    }
}

fn bad_descriptor(words: impl Into<String>) -> RpcError {
    RpcError::new(code::INVALID_ADDRESS_OR_KEY, words)
}

fn parse(text: &str, chain: Chain, must_have_checksum: bool) -> Result<Descriptors, RpcError> {
    Descriptors::parse(text, chain, must_have_checksum).map_err(|error| bad_descriptor(error.to_string()))
}

fn getdescriptorinfo(call: &Call<'_>) -> Result<DescriptorInfo, RpcError> {
    info(call.text(0)?, call.context.settings.params.chain)
}

fn info(text: &str, chain: Chain) -> Result<DescriptorInfo, RpcError> {
    let parsed = parse(text, chain, false)?;
    let texts = parsed.texts();
    Ok(DescriptorInfo {
        descriptor: texts.first().cloned().unwrap_or_default(),
        multipath_expansion: (texts.len() > 1).then_some(texts),
        checksum: parsed.checksum().to_owned(),
        isrange: parsed.is_range(),
        issolvable: parsed.is_solvable(),
        hasprivatekeys: parsed.has_secrets(),
    })
}

cases! {
    /// The answer of `deriveaddresses`.
    enum Addresses {
        #[when("for single derivation descriptors")]
        #[each("the derived address")]
        One(Vec<String>),
        /// the derived addresses for each of the multipath expansions of the descriptor, in multipath specifier order
        #[when("for multipath descriptors")]
        #[each("the derived addresses for a multipath descriptor expansion")]
        Many(Vec<Vec<String>>),
    }
}

fn deriveaddresses(call: &Call<'_>) -> Result<Addresses, RpcError> {
    addresses(call.text(0)?, call.params.get(1), call.context.settings.params.chain)
}

fn addresses(text: &str, range: Option<&Json>, chain: Chain) -> Result<Addresses, RpcError> {
    let ends = range.filter(|range| !range.is_null()).map_or(Ok((0, 0)), parse_range)?;
    let parsed = parse(text, chain, true)?;
    match (parsed.is_range(), range) {
        (false, Some(_)) => {
            return Err(RpcError::parameter("Range should not be specified for an un-ranged descriptor"));
        }
        (true, None) => return Err(RpcError::parameter("Range must be specified for a ranged descriptor")),
        _ => {}
    }
    let mut lists = Vec::new();
    for index in 0..parsed.count() {
        lists.push(addresses_of(&parsed, index, ends, chain)?);
    }
    Ok(if lists.len() == 1 { Addresses::One(lists.swap_remove(0)) } else { Addresses::Many(lists) })
}

fn addresses_of(
    parsed: &Descriptors,
    index: usize,
    (begin, end): (u32, u32),
    chain: Chain,
) -> Result<Vec<String>, RpcError> {
    let mut found = Vec::new();
    for position in begin..=end {
        let outputs = parsed.expand(index, position);
        let outputs = outputs.ok_or_else(|| bad_descriptor("Cannot derive script without private keys"))?;
        for output in &outputs {
            match Address::of_script(&output.script) {
                Some(address) => found.push(address.text(chain)),
                // This is the script of combo() that has no address.
                None if outputs.len() > 1 && matches!(solve(&output.script), TxoutType::Pubkey(_)) => {}
                None => return Err(bad_descriptor("Descriptor does not have a corresponding address")),
            }
        }
    }
    if found.is_empty() { Err(RpcError::misc("Unexpected empty result")) } else { Ok(found) }
}

/// Core's `ParseDescriptorRange`: begin and end, both inclusive.
fn parse_range(range: &Json) -> Result<(u32, u32), RpcError> {
    let bad_form = || RpcError::parameter("Range must be specified as end or as [begin,end]");
    let (low, high): (i64, i64) = match range {
        Json::Number(_) => (0, range.as_integer()?),
        Json::Array(ends) => match &ends[..] {
            [low @ Json::Number(_), high @ Json::Number(_)] => (low.as_integer()?, high.as_integer()?),
            _ => return Err(bad_form()),
        },
        _ => return Err(bad_form()),
    };
    if matches!(range, Json::Array(_)) && low > high {
        return Err(RpcError::parameter("Range specified as [begin,end] must not have begin after end"));
    }
    if low < 0 {
        return Err(RpcError::parameter("Range should be greater or equal than 0"));
    }
    if high >> 31 != 0 {
        return Err(RpcError::parameter("End of range is too high"));
    }
    if high >= low + 1_000_000 {
        return Err(RpcError::parameter("Range is too large"));
    }
    // Both are now known to be below 2^31.
    Ok((u32::try_from(low).unwrap_or(0), u32::try_from(high).unwrap_or(0)))
}

/// The text of a scan object, its descriptors, and the positions to derive.
fn parse_object(object: &Json, chain: Chain) -> Result<(&str, Descriptors, RangeInclusive<u32>), RpcError> {
    /// Core's default end of a range.
    const RANGE_END: u32 = 1000;
    let mut ends = (0, RANGE_END);
    let text = match object {
        Json::Text(text) => text,
        Json::Object(_) => {
            let text = object.get("desc").filter(|desc| !desc.is_null());
            let text = text.ok_or_else(|| RpcError::parameter("Descriptor needs to be provided in scan object"))?;
            let text = text.as_text()?;
            if let Some(range) = object.get("range").filter(|range| !range.is_null()) {
                ends = parse_range(range)?;
            }
            text
        }
        _ => return Err(RpcError::parameter("Scan object needs to be either a string or an object")),
    };
    let parsed = parse(text, chain, false)?;
    let (begin, end) = if parsed.is_range() { ends } else { (0, 0) };
    Ok((text, parsed, begin..=end))
}

fn no_private_keys(text: &str) -> RpcError {
    bad_descriptor(format!("Cannot derive script without private keys: '{text}'"))
}

/// Returns the outputs of a scan object: Core's `EvalDescriptorStringOrObject`.
pub(crate) fn outputs_of(object: &Json, chain: Chain) -> Result<Vec<Output>, RpcError> {
    with_keys(|| expand_object(object, chain))
}

fn expand_object(object: &Json, chain: Chain) -> Result<Vec<Output>, RpcError> {
    let (text, parsed, positions) = parse_object(object, chain)?;
    let mut outputs = Vec::new();
    for position in positions {
        for index in 0..parsed.count() {
            outputs.extend(parsed.expand(index, position).ok_or_else(|| no_private_keys(text))?);
        }
    }
    Ok(outputs)
}

/// Adds what a scan object knows about its outputs, with private keys if they are to sign.
pub(crate) fn add_to_keystore(
    object: &Json,
    chain: Chain,
    has_private: bool,
    keys: &mut Keystore,
) -> Result<(), RpcError> {
    let (text, parsed, positions) = parse_object(object, chain)?;
    parsed.add_secrets_to(keys);
    for position in positions {
        for index in 0..parsed.count() {
            parsed.add_to(index, position, has_private, keys).ok_or_else(|| no_private_keys(text))?;
        }
    }
    Ok(())
}

/// Returns the script that a new block pays to; an inner `Err` if `text` is not a descriptor. Core's
/// `getScriptFromDescriptor`.
pub(crate) fn paid_script(text: &str, chain: Chain) -> Result<Result<Vec<u8>, DescriptorError>, RpcError> {
    with_keys(|| find_paid_script(text, chain))
}

fn find_paid_script(text: &str, chain: Chain) -> Result<Result<Vec<u8>, DescriptorError>, RpcError> {
    let parsed = match Descriptors::parse(text, chain, false) {
        Ok(parsed) => parsed,
        Err(error) => return Ok(Err(error)),
    };
    if parsed.count() > 1 {
        return Err(RpcError::parameter("Multipath descriptor not accepted"));
    }
    if parsed.is_range() {
        let words = "Ranged descriptor not accepted. Maybe pass through deriveaddresses first?";
        return Err(RpcError::parameter(words));
    }
    let outputs = parsed.expand(0, 0);
    let mut outputs = outputs.ok_or_else(|| bad_descriptor("Cannot derive script without private keys"))?;
    // If there are several, the P2WPKH script is paid, or for an uncompressed key the P2PKH script.
    let index = match outputs.len() {
        0 => return Err(RpcError::misc("The descriptor has no script")),
        4 => 2,
        2 => 1,
        _ => 0,
    };
    Ok(Ok(outputs.swap_remove(index).script))
}

#[cfg(test)]
#[path = "descriptor_tests.rs"]
mod tests;
