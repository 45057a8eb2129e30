//! Values from texts: what each [`super::table::Kind`] takes. Input: the text after `=`. Output: a value, or what it must be in words.
//!
//! Core reads `-par=many` as 0 and `-daemon=true` as off; here both are refused, because nobody means that.

use lydian_consensus::{Chain, Params, U256};

/// More workers than any machine has use for.
pub(crate) const PAR_MAX: i64 = 1024;

/// Core's `MIN_DISK_SPACE_FOR_BLOCK_FILES`: two days of blocks and what else must stay.
pub(crate) const PRUNE_MIB_MIN: i64 = 550;

/// Core's `MAX_CHECKLEVEL`.
pub(crate) const CHECKLEVEL_MAX: i64 = 4;

/// 1, 0, or any number; nothing is 1.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "" => Ok(true),
        _ => text.trim().parse::<i64>().map(|number| number != 0).map_err(|_| "0 or 1".to_owned()),
    }
}

pub(crate) fn integer(text: &str, min: i64, max: i64) -> Result<i64, String> {
    let must = || match (min, max) {
        (i64::MIN, _) if max > 1 << 32 => "a whole number".to_owned(),
        _ => format!("a whole number from {min} to {max}"),
    };
    text.trim().parse::<i64>().ok().filter(|number| (min..=max).contains(number)).ok_or_else(must)
}

pub(crate) fn chain(text: &str) -> Result<Chain, String> {
    text.parse().map_err(|_| "main, test, testnet4, signet or regtest".to_owned())
}

/// Up to 64 hexadecimal digits as people write hashes and work, highest first; `0x` before them is fine.
pub(crate) fn hash(text: &str) -> Result<[u8; 32], String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let mut bytes = [0; 32];
    if digits.len() > 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err("up to 64 hex digits (or 0)".to_owned());
    }
    for (index, digit) in digits.chars().rev().enumerate() {
        let value = digit.to_digit(16).and_then(|value| u8::try_from(value).ok()).unwrap_or(0);
        bytes[index / 2] |= value << (4 * (index % 2));
    }
    Ok(bytes)
}

pub(crate) fn work(bytes: &[u8; 32]) -> U256 {
    U256::from_le_bytes(bytes)
}

/// A name of [`lydian_curve::ENGINE_NAMES`]; whether the machine has it shows when it is chosen.
pub(crate) fn signature_engine(text: &str) -> Result<&'static str, String> {
    let known = lydian_curve::ENGINE_NAMES.into_iter().find(|name| *name == text);
    known.ok_or_else(|| format!("one of {}", lydian_curve::ENGINE_NAMES.join(", ")))
}

/// The text, if a regtest with it can be made.
pub(crate) fn fork(text: &str) -> Result<String, String> {
    match Params::new(Chain::Regtest).with_activation_height(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => {
            Err("name@height with one of bip34, dersig, cltv, csv and segwit, and a height from 0 to 2147483646"
                .to_owned())
        }
    }
}
