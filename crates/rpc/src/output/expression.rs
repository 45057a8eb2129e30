//! Descriptors that are written: the part of Core's language that needs no derivation. Input: text. Output: the scripts it stands for, or Core's words
//! for what is wrong. Understood are addr, raw, pk, pkh, wpkh, combo, rawtr, multi, sortedmulti, sh and wsh, with keys in hexadecimal.

use super::address;
use super::descriptor::checksum;
use super::solver::solve;
use lydian_consensus::Chain;
use lydian_hash::{hash160, sha256};
use lydian_primitives::hex;
use lydian_script::builder::scripts;
use lydian_script::uncompressed_key;

/// Where an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Top,
    Sh,
    Wsh,
}

/// The scripts of a descriptor, as Core's `Expand` orders them.
pub(crate) fn scripts_of(text: &str, chain: Chain) -> Result<Vec<Vec<u8>>, String> {
    scripts(check_checksum(text)?, Place::Top, chain)
}

/// What there is to say of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    /// As Core writes it, with its checksum.
    pub(crate) canonical: String,
    /// Of the text as it was given.
    pub(crate) checksum: String,
    /// Whether who has the keys could spend.
    pub(crate) is_solvable: bool,
}

/// Describes a descriptor.
pub(crate) fn describe(text: &str, chain: Chain) -> Result<Description, String> {
    let payload = check_checksum(text)?;
    let scripts = scripts(payload, Place::Top, chain)?;
    let sum = |text: &str| checksum(text.as_bytes()).map(|sum| String::from_utf8_lossy(&sum).into_owned());
    let name = payload.split('(').next().unwrap_or_default();
    let canonical = match (name, scripts.first()) {
        ("addr", Some(script)) => format!("addr({})", address::encode(&solve(script), chain).unwrap_or_default()),
        // All that is left is functions, numbers and hexadecimal.
        _ => payload.to_ascii_lowercase(),
    };
    Ok(Description {
        checksum: sum(payload).unwrap_or_default(),
        canonical: format!("{canonical}#{}", sum(&canonical).unwrap_or_default()),
        is_solvable: !matches!(name, "addr" | "raw"),
    })
}

/// The text before the checksum, which must be right if there is one.
fn check_checksum(text: &str) -> Result<&str, String> {
    let parts: Vec<&str> = text.split('#').collect();
    let (payload, given) = match parts[..] {
        [payload] => (payload, None),
        [payload, given] => (payload, Some(given)),
        _ => return Err("Multiple '#' symbols".to_owned()),
    };
    if let Some(given) = given.filter(|given| given.len() != 8) {
        return Err(format!("Expected 8 character checksum, not {} characters", given.len()));
    }
    let computed = checksum(payload.as_bytes()).ok_or("Invalid characters in payload")?;
    let computed = String::from_utf8_lossy(&computed).into_owned();
    match given {
        Some(given) if given != computed => {
            Err(format!("Provided checksum '{given}' does not match computed checksum '{computed}'"))
        }
        _ => Ok(payload),
    }
}

fn scripts(text: &str, place: Place, chain: Chain) -> Result<Vec<Vec<u8>>, String> {
    let unknown = || match place {
        Place::Top => format!("'{text}' is not a valid descriptor function"),
        Place::Sh => "A function is needed within P2SH".to_owned(),
        Place::Wsh => "A function is needed within P2WSH".to_owned(),
    };
    let Some((name, inner)) = text.split_once('(').and_then(|(name, rest)| Some((name, rest.strip_suffix(')')?)))
    else {
        return Err(unknown());
    };
    let one_key = |may_be_long| key(inner, may_be_long).map_err(|words| format!("{name}(): {words}"));
    let only_at_top = || Err(format!("Can only have {name}() at top level"));
    let may_be_long = place != Place::Wsh;
    let script = match (name, place) {
        ("pk", _) => scripts::p2pk(&one_key(may_be_long)?),
        ("pkh", _) => scripts::p2pkh(&hash160(&one_key(may_be_long)?)),
        ("wpkh", Place::Top | Place::Sh) => scripts::witness_program(0, &hash160(&one_key(false)?)),
        ("wpkh", Place::Wsh) => return Err("Can only have wpkh() at top level or inside sh()".to_owned()),
        ("combo", Place::Top) => return one_key(true).map(|key| combo(&key)),
        ("multi" | "sortedmulti", _) => multi(inner, name == "sortedmulti", place)?,
        ("sh", Place::Top) => scripts::p2sh(&hash160(&only(scripts(inner, Place::Sh, chain)?))),
        ("wsh", Place::Top | Place::Sh) => {
            scripts::witness_program(0, &sha256(&only(scripts(inner, Place::Wsh, chain)?)))
        }
        ("wsh", Place::Wsh) => return Err("Can only have wsh() at top level or inside sh()".to_owned()),
        ("addr", Place::Top) => address::decode(inner, chain).map_err(|_| "Address is not valid".to_owned())?,
        ("raw", Place::Top) => match hex(inner) {
            Ok(script) if !script.is_empty() => script,
            _ => return Err("Raw script is not hex".to_owned()),
        },
        ("rawtr", Place::Top) => {
            let key = x_only(inner).ok_or_else(|| format!("rawtr(): key '{inner}' is not valid"))?;
            scripts::witness_program(1, &key)
        }
        ("combo" | "sh" | "addr" | "raw", _) => return only_at_top(),
        ("rawtr", _) => return Err("Can only have rawtr at top level".to_owned()),
        _ => return Err(unknown()),
    };
    Ok(vec![script])
}

/// Inside sh() and wsh() there is one.
fn only(mut scripts: Vec<Vec<u8>>) -> Vec<u8> {
    scripts.pop().unwrap_or_default()
}

/// A public key in hexadecimal.
fn key(text: &str, may_be_long: bool) -> Result<Vec<u8>, String> {
    if text.is_empty() {
        return Err("No key provided".to_owned());
    }
    let Ok(bytes) = hex(text) else { return Err(format!("key '{text}' is not valid")) };
    match (bytes.first(), bytes.len()) {
        (Some(6 | 7), 65) => Err("Hybrid public keys are not allowed".to_owned()),
        _ if uncompressed_key(&bytes).is_none() => Err(format!("Pubkey '{text}' is invalid")),
        (_, 65) if !may_be_long => Err("Uncompressed keys are not allowed".to_owned()),
        _ => Ok(bytes),
    }
}

/// 32 bytes, or a compressed key whose x they are.
fn x_only(text: &str) -> Option<Vec<u8>> {
    let bytes = hex(text).ok()?;
    let compressed = match bytes.len() {
        32 => [&[2][..], &bytes].concat(),
        33 => bytes,
        _ => return None,
    };
    uncompressed_key(&compressed)?;
    Some(compressed[1..].to_vec())
}

/// P2PK and P2PKH, and for a compressed key P2WPKH and P2SH-P2WPKH.
fn combo(key: &[u8]) -> Vec<Vec<u8>> {
    let hash = hash160(key);
    let mut all = vec![scripts::p2pk(key), scripts::p2pkh(&hash)];
    if key.len() == 33 {
        let witness = scripts::witness_program(0, &hash);
        let wrapped = scripts::p2sh(&hash160(&witness));
        all.extend([witness, wrapped]);
    }
    all
}

/// Core's `MAX_PUBKEYS_PER_MULTISIG`.
const KEYS_MAX: usize = 20;

fn multi(inner: &str, is_sorted: bool, place: Place) -> Result<Vec<u8>, String> {
    let mut parts = inner.split(',');
    let threshold = parts.next().unwrap_or_default();
    let Ok(required) = threshold.parse::<usize>() else {
        return Err(format!("Multi threshold '{threshold}' is not valid"));
    };
    let keys: Result<Vec<Vec<u8>>, String> = parts.map(|part| key(part, place != Place::Wsh)).collect();
    let mut keys = keys.map_err(|words| format!("Multi: {words}"))?;
    let count = keys.len();
    if !(1..=KEYS_MAX).contains(&count) {
        return Err(format!(
            "Cannot have {count} keys in multisig; must have between 1 and {KEYS_MAX} keys, inclusive"
        ));
    }
    if required == 0 {
        return Err("Multisig threshold cannot be 0, must be at least 1".to_owned());
    }
    if required > count {
        return Err(format!(
            "Multisig threshold cannot be larger than the number of keys; threshold is {required} but only {count} keys specified"
        ));
    }
    if place == Place::Top && count > 3 {
        return Err(format!("Cannot have {count} pubkeys in bare multisig; only at most 3 pubkeys"));
    }
    if is_sorted {
        keys.sort_unstable();
    }
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    Ok(scripts::multisig(u8::try_from(required).unwrap_or(u8::MAX), &keys))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::to_hex;

    const KEY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

    /// From Core's descriptor tests, and its functional tests' address of `raw(51)`.
    #[test]
    fn scripts_of_expressions() {
        for (text, expected) in [
            (format!("pk({KEY})"), format!("21{KEY}ac")),
            (format!("pkh({KEY})"), "76a914751e76e8199196d454941c45d1b3a323f1433bd688ac".to_owned()),
            (format!("wpkh({KEY})"), "0014751e76e8199196d454941c45d1b3a323f1433bd6".to_owned()),
            (format!("sh(wpkh({KEY}))"), "a914bcfeb728b584253d5f3f70bcb780e9ef218a68f487".to_owned()),
            (format!("multi(1,{KEY})"), format!("5121{KEY}51ae")),
            ("raw(51)".to_owned(), "51".to_owned()),
            ("raw(51)#8lvh9jxk".to_owned(), "51".to_owned()),
            (format!("rawtr({})", &KEY[2..]), format!("5120{}", &KEY[2..])),
        ] {
            assert_eq!(scripts_of(&text, Chain::Regtest).map(|scripts| to_hex(&scripts[0])), Ok(expected), "{text}");
        }
        assert_eq!(scripts_of(&format!("combo({KEY})"), Chain::Main).unwrap().len(), 4);
        for (text, words) in [
            ("nonsense", "'nonsense' is not a valid descriptor function"),
            ("raw(51)#8lvh9jx", "Expected 8 character checksum, not 7 characters"),
            ("raw(51)#8lvh9jxx", "Provided checksum '8lvh9jxx' does not match computed checksum '8lvh9jxk'"),
            ("raw(5)", "Raw script is not hex"),
            ("pk()", "pk(): No key provided"),
            ("addr(x)", "Address is not valid"),
            ("sh(addr(x))", "Can only have addr() at top level"),
            ("multi(0)", "Cannot have 0 keys in multisig; must have between 1 and 20 keys, inclusive"),
        ] {
            assert_eq!(scripts_of(text, Chain::Regtest), Err(words.to_owned()));
        }
    }
}
