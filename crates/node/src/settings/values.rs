//! Parses the values of single options. Input: a value. Output: what the option means, or an error in Core's words.
//! Numbers and switches are read as in Core ([`atoi`]).

use super::error::{SettingsError, ValueProblem};
use super::settled::Prune;
use lydian_consensus::{Chain, U256};
use lydian_options::{Setting, atoi};
use lydian_primitives::{BlockHash, Height};

/// Core's `MIN_DB_CACHE`.
const DBCACHE_MIB_MIN: i64 = 4;

pub(super) const DBCACHE_MIB_DEFAULT: i64 = 450;

/// More workers than any machine can use.
pub(super) const PAR_MAX: i64 = 1024;

/// Core's `MIN_DISK_SPACE_FOR_BLOCK_FILES`: two days of blocks and what else must stay.
pub(super) const PRUNE_MIB_MIN: i64 = 550;

/// More would not fit into 64 bits as bytes.
pub(super) const PRUNE_MIB_MAX: i64 = i64::MAX >> 20;

/// Core's `MAX_CHECKLEVEL`.
pub(super) const CHECKLEVEL_MAX: i64 = 4;

pub(super) fn chain(text: &str) -> Result<Chain, SettingsError> {
    text.parse().map_err(|_| SettingsError::UnknownChain { text: text.to_owned() })
}

/// Up to 64 hexadecimal digits as users write hashes and work, highest first, with or without `0x`: Core's
/// `FromUserHex`.
fn hash(text: &str) -> Option<[u8; 32]> {
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
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
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

/// A name of [`lydian_curve::ENGINE_NAMES`]; whether the machine supports it is checked when it is chosen.
pub(super) fn signature_engine(setting: &Setting) -> Result<&'static str, SettingsError> {
    let text = setting.text();
    let known = lydian_curve::ENGINE_NAMES.into_iter().find(|name| *name == text);
    known.ok_or_else(|| ValueProblem::SignatureEngine { text: text.to_owned() }.into())
}

/// `None` if every script is verified.
pub(super) fn assumevalid(setting: &Setting) -> Result<Option<BlockHash>, SettingsError> {
    let text = setting.text();
    let bytes = hash(text).ok_or_else(|| ValueProblem::AssumeValid { text: text.to_owned() })?;
    Ok(Some(bytes).filter(|bytes| *bytes != [0; 32]).map(BlockHash))
}

pub(super) fn minimum_work(setting: &Setting) -> Result<U256, SettingsError> {
    let text = setting.text();
    let bytes = hash(text).ok_or_else(|| ValueProblem::MinimumWork { text: text.to_owned() })?;
    Ok(U256::from_le_bytes(&bytes))
}

/// As in Core, 0 means that no time is set.
pub(super) fn mocktime(setting: &Setting) -> Result<Option<u32>, SettingsError> {
    let value = atoi(setting.text());
    let time = u32::try_from(value).map_err(|_| ValueProblem::MockTime { value })?;
    Ok(Some(time).filter(|time| *time > 0))
}

pub(super) fn prune(setting: &Setting) -> Result<Prune, SettingsError> {
    let mib = atoi(setting.text()).min(PRUNE_MIB_MAX);
    match u64::try_from(mib) {
        Err(_) => Err(SettingsError::PruneNegative),
        Ok(0) => Ok(Prune::Never),
        Ok(1) => Ok(Prune::OnRequest),
        Ok(_) if mib < PRUNE_MIB_MIN => Err(SettingsError::PruneTooSmall),
        Ok(mib) => Ok(Prune::Target { bytes: mib.saturating_mul(1 << 20) }),
    }
}

/// The one command that counts, if any.
pub(super) fn command(setting: &Setting) -> Vec<String> {
    let command = Some(setting).filter(|setting| **setting != Setting::Negated).map(Setting::text);
    command.into_iter().filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// Bytes of `-dbcache`.
pub(super) fn dbcache_bytes(mib: i64) -> u64 {
    u64::try_from(mib.max(DBCACHE_MIB_MIN)).unwrap_or(0).saturating_mul(1 << 20)
}

/// A number of blocks or operations; a negative one is 0.
pub(super) fn count(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

/// `None` for 0.
pub(super) fn height(number: i64) -> Option<Height> {
    u32::try_from(number).ok().filter(|height| *height > 0).map(Height)
}

/// Core's `MAX_MONEY`.
const MONEY_MAX: i64 = 21_000_000 * COIN;
const COIN: i64 = 100_000_000;

/// An amount in satoshi, from coins with at most eight decimals: Core's `ParseMoney`.
pub(super) fn money(text: &str) -> Option<i64> {
    let text = text.trim_matches(SPACE);
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if text.is_empty() || !is_number(whole) || !is_number(decimals) || whole.len() > 10 || decimals.len() > 8 {
        return None;
    }
    let part = |text: &str| text.parse::<i64>().unwrap_or(0);
    let satoshi = part(whole) * COIN + part(&format!("{decimals:0<8}"));
    (satoshi <= MONEY_MAX).then_some(satoshi)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of Core's util_tests: `util_ParseMoney`.
    #[test]
    fn amounts_are_cores() {
        for (text, satoshi) in [
            ("12345.", 12345 * COIN),
            ("1", COIN),
            ("   1", COIN),
            ("1   ", COIN),
            ("  0.1", COIN / 10),
            ("0.00000001", 1),
            ("0.00000001 ", 1),
            ("20999999.99999999", MONEY_MAX - 1),
            ("21000000", MONEY_MAX),
            (".", 0),
        ] {
            assert_eq!(money(text), Some(satoshi), "{text}");
        }
        for bad in ["", " ", "0.000000001", "1 2", "100000000000.00", "-1", "(1)", "5x", "21000000.00000001", "1e3"] {
            assert_eq!(money(bad), None, "{bad}");
        }
    }

    #[test]
    fn bytes_in_hexadecimal() {
        assert_eq!(bytes("51ae"), Some(vec![0x51, 0xae]));
        assert_eq!(bytes(" 51 ae "), Some(vec![0x51, 0xae]));
        assert_eq!(bytes(""), Some(Vec::new()));
        assert_eq!(["5", "5g", "0x51", "5 1", "é1"].map(bytes), [None, None, None, None, None]);
    }
}
