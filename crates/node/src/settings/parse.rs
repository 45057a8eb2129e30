//! Parses values: what each [`super::table::Kind`] accepts. Input: the text after `=`. Output: a value, or an error in
//! Core's words.
//!
//! Numbers and switches are read as Bitcoin Core reads them ([`atoi`]): a text that is not a number is 0. Scripts
//! written for Core rely on that.

use super::error::{SettingsError, ValueProblem};
use lydian_consensus::{Chain, U256};

/// More workers than any machine can use.
pub(crate) const PAR_MAX: i64 = 1024;

/// Core's `MIN_DISK_SPACE_FOR_BLOCK_FILES`: two days of blocks and what else must stay.
pub(crate) const PRUNE_MIB_MIN: i64 = 550;

/// Core's `MAX_CHECKLEVEL`.
pub(crate) const CHECKLEVEL_MAX: i64 = 4;

/// Core's `LocaleIndependentAtoi<int64_t>`: ignores white space around the text and everything after the digits. A text
/// without digits is 0, and a number out of range becomes the nearest value in range.
pub(crate) fn atoi(text: &str) -> i64 {
    let text = text.trim_matches([' ', '\u{c}', '\n', '\r', '\t', '\u{b}']);
    let text = match text.strip_prefix('+') {
        Some(rest) if rest.starts_with('-') => return 0,
        Some(rest) => rest,
        None => text,
    };
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let end = digits.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    if end == 0 {
        return 0;
    }
    let value = digits[..end].parse::<i128>().unwrap_or(i128::MAX);
    let value = if is_negative { -value } else { value };
    i64::try_from(value).unwrap_or(if is_negative { i64::MIN } else { i64::MAX })
}

/// Core's `InterpretBool`: an empty text is true, and so is every number except 0.
pub(crate) fn switch(text: &str) -> bool {
    text.is_empty() || atoi(text) != 0
}

pub(crate) fn chain(text: &str) -> Result<Chain, SettingsError> {
    text.parse().map_err(|_| SettingsError::UnknownChain { text: text.to_owned() })
}

/// Up to 64 hexadecimal digits as users write hashes and work, highest first, with or without `0x`: Core's
/// `FromUserHex`.
pub(crate) fn hash(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let mut bytes = [0; 32];
    if digits.len() > 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (index, digit) in digits.chars().rev().enumerate() {
        let value = digit.to_digit(16).and_then(|value| u8::try_from(value).ok()).unwrap_or(0);
        bytes[index / 2] |= value << (4 * (index % 2));
    }
    Some(bytes)
}

/// Bytes in hexadecimal, high digit first, with or without white space between bytes: Core's `TryParseHex`.
pub(crate) fn bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.trim_start_matches(SPACE);
    while !rest.is_empty() {
        let pair = rest.get(..2).filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(pair, 16).ok()?);
        rest = rest[2..].trim_start_matches(SPACE);
    }
    Some(bytes)
}

const SPACE: [char; 6] = [' ', '\u{c}', '\n', '\r', '\t', '\u{b}'];

pub(crate) fn work(bytes: &[u8; 32]) -> U256 {
    U256::from_le_bytes(bytes)
}

/// A name of [`lydian_curve::ENGINE_NAMES`]; whether the machine supports it is checked when it is chosen.
pub(crate) fn signature_engine(text: &str) -> Result<&'static str, SettingsError> {
    let known = lydian_curve::ENGINE_NAMES.into_iter().find(|name| *name == text);
    known.ok_or_else(|| ValueProblem::SignatureEngine { text: text.to_owned() }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of Core's util_tests: `test_LocaleIndependentAtoi`.
    #[test]
    fn numbers_are_read_as_core_reads_them() {
        let numbers =
            ["1234", "0", "01234", "-1234", " 1", "1 ", "1a", "1.1", "1.9", "+01.9", "-1", " -1", "-1 ", " -1 "];
        assert_eq!(numbers.map(atoi), [1234, 0, 1234, -1234, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1]);
        let others = ["+1", " +1", "+1 ", "+-1", "-+1", "++1", "--1", "", "aap", "0x1", "many"];
        assert_eq!(others.map(atoi), [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        let large = ["-32482348723847471234", "32482348723847471234", "-9223372036854775809", "9223372036854775808"];
        assert_eq!(large.map(atoi), [i64::MIN, i64::MAX, i64::MIN, i64::MAX]);
        assert_eq!(["", "1", "2", "-1", "true", "0", "yes"].map(switch), [true, true, true, true, false, false, false]);
    }

    #[test]
    fn bytes_in_hexadecimal() {
        assert_eq!(bytes("51ae"), Some(vec![0x51, 0xae]));
        assert_eq!(bytes(" 51 ae "), Some(vec![0x51, 0xae]));
        assert_eq!(bytes(""), Some(Vec::new()));
        assert_eq!(["5", "5g", "0x51", "5 1", "é1"].map(bytes), [None, None, None, None, None]);
    }
}
