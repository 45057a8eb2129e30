//! Addresses.
//!
//! Input: the kind of an output script, or a string; the chain. Output: a string (Core's `EncodeDestination`), or the
//! script that it represents (`DecodeDestination`, with its error messages).

use crate::bech32::{Encoding, decode as decode_bech32, encode_program};
use crate::solver::TxoutType;
use lydian_consensus::Chain;
use lydian_hash::sha256d;
use lydian_script::builder::scripts;

/// Prefixes of addresses on a chain: Core's `base58Prefixes` and `bech32_hrp`.
fn prefixes(chain: Chain) -> (u8, u8, &'static str) {
    match chain {
        Chain::Main => (0, 5, "bc"),
        Chain::Test | Chain::Testnet4 | Chain::Signet => (111, 196, "tb"),
        Chain::Regtest => (111, 196, "bcrt"),
    }
}

/// Returns the address of a script, if it has one.
pub fn encode(kind: &TxoutType<'_>, chain: Chain) -> Option<String> {
    let (key_prefix, script_prefix, hrp) = prefixes(chain);
    match kind {
        TxoutType::PubkeyHash(hash) => Some(base58(key_prefix, hash)),
        TxoutType::ScriptHash(hash) => Some(base58(script_prefix, hash)),
        TxoutType::WitnessV0KeyHash(program) | TxoutType::WitnessV0ScriptHash(program) => {
            Some(encode_program(hrp, 0, program))
        }
        TxoutType::WitnessV1Taproot(program) => Some(encode_program(hrp, 1, program)),
        TxoutType::Anchor => Some(encode_program(hrp, 1, &[0x4e, 0x73])),
        TxoutType::WitnessUnknown { version, program } => Some(encode_program(hrp, *version, program)),
        TxoutType::Nonstandard | TxoutType::Pubkey(_) | TxoutType::Multisig { .. } | TxoutType::NullData => None,
    }
}

/// An invalid address: the reason, and the positions of possible typing errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAddress {
    pub words: String,
    pub places: Vec<usize>,
}

/// Returns the script of an address: Core's `DecodeDestination`.
pub fn decode(text: &str, chain: Chain) -> Result<Vec<u8>, BadAddress> {
    let (_, _, hrp) = prefixes(chain);
    let start = text.as_bytes().get(..hrp.len());
    match start.is_some_and(|start| start.eq_ignore_ascii_case(hrp.as_bytes())) {
        true => decode_segwit(text, hrp),
        false => decode_base58(text, chain).map_err(|words| BadAddress { words: words.to_owned(), places: Vec::new() }),
    }
}

/// Core's maximum sizes in bytes: of an address, and of a string that is decoded at all.
const BASE58_SIZE_MAX: usize = 25;
const BASE58_ANY_SIZE_MAX: usize = 100;

fn decode_base58(text: &str, chain: Chain) -> Result<Vec<u8>, &'static str> {
    let (key_prefix, script_prefix, _) = prefixes(chain);
    let bytes = bs58::decode(text.trim_ascii()).into_vec().ok().filter(|bytes| bytes.len() <= BASE58_ANY_SIZE_MAX);
    let bytes = bytes.ok_or("Invalid or unsupported Segwit (Bech32) or Base58 encoding.")?;
    let is_long = bytes.len() > BASE58_SIZE_MAX;
    let body = bytes.split_last_chunk::<4>().filter(|(body, sum)| !is_long && sha256d(body)[..4] == sum[..]);
    let Some((body, _)) = body else { return Err("Invalid checksum or length of Base58 address (P2PKH or P2SH)") };
    match (body.split_first(), <[u8; 20]>::try_from(body.get(1..).unwrap_or_default())) {
        (Some((prefix, _)), Ok(hash)) if *prefix == key_prefix => Ok(scripts::p2pkh(&hash)),
        (Some((prefix, _)), Ok(hash)) if *prefix == script_prefix => Ok(scripts::p2sh(&hash)),
        (Some((prefix, _)), Err(_)) if [key_prefix, script_prefix].contains(prefix) => {
            Err("Invalid length for Base58 address (P2PKH or P2SH)")
        }
        _ => Err("Invalid or unsupported Base58-encoded address."),
    }
}

fn decode_segwit(text: &str, hrp: &str) -> Result<Vec<u8>, BadAddress> {
    let fail = |words: String| Err(BadAddress { words, places: Vec::new() });
    let decoded = match decode_bech32(text) {
        Ok(decoded) => decoded,
        Err(fault) => return Err(BadAddress { words: fault.words.to_owned(), places: fault.places }),
    };
    let Some((version, values)) = decoded.values.split_first() else {
        return fail("Empty Bech32 data section".to_owned());
    };
    if decoded.prefix != hrp {
        let found = decoded.prefix;
        return fail(format!(
            "Invalid or unsupported prefix for Segwit (Bech32) address (expected {hrp}, got {found})."
        ));
    }
    match (*version, decoded.encoding) {
        (0, Encoding::Bech32m) => return fail("Version 0 witness address must use Bech32 checksum".to_owned()),
        (1.., Encoding::Bech32) => return fail("Version 1+ witness address must use Bech32m checksum".to_owned()),
        _ => {}
    }
    let Some(program) = bytes_of(values) else { return fail("Invalid padding in Bech32 data section".to_owned()) };
    let size = program.len();
    let unit = if size == 1 { "byte" } else { "bytes" };
    match (*version, size) {
        (0, 20 | 32) => {}
        (0, _) => return fail(format!("Invalid Bech32 v0 address program size ({size} {unit}), per BIP141")),
        (17.., _) => return fail("Invalid Bech32 address witness version".to_owned()),
        (_, 2..=40) => {}
        _ => return fail(format!("Invalid Bech32 address program size ({size} {unit})")),
    }
    Ok(scripts::witness_program(*version, &program))
}

/// Converts 5-bit groups to bytes. The rest must be fewer than five bits, all zero.
fn bytes_of(values: &[u8]) -> Option<Vec<u8>> {
    let (mut held, mut bits, mut out) = (0u32, 0, Vec::with_capacity(values.len()));
    for value in values {
        held = held << 5 | u32::from(*value);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from(held >> bits & 0xff).ok()?);
            held &= (1 << bits) - 1;
        }
    }
    (bits < 5 && held == 0).then_some(out)
}

fn base58(prefix: u8, hash: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(25);
    bytes.push(prefix);
    bytes.extend_from_slice(hash);
    let checksum = sha256d(&bytes);
    bytes.extend_from_slice(&checksum[..4]);
    bs58::encode(bytes).into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::solve;
    use lydian_primitives::hex;

    /// From BIP-0173, BIP-0350 and Core's key_io tests.
    #[test]
    fn addresses_of_scripts() {
        let address = |script: &str, chain| encode(&solve(&hex(script).unwrap()), chain);
        for (script, chain, text) in [
            ("76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac", Chain::Main, "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
            ("0014751e76e8199196d454941c45d1b3a323f1433bd6", Chain::Main, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"),
            ("6002751e", Chain::Main, "bc1sw50qgdz25j"),
            ("51024e73", Chain::Main, "bc1pfeessrawgf"),
            ("51024e73", Chain::Regtest, "bcrt1pfeesnyr2tx"),
        ] {
            assert_eq!(address(script, chain).as_deref(), Some(text), "{script}");
        }
        assert_eq!(address("6a", Chain::Main), None);
    }

    #[test]
    fn addresses_are_read_back() {
        for script in [
            "76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac",
            "0014751e76e8199196d454941c45d1b3a323f1433bd6",
            "51024e73",
            "6002751e",
        ] {
            let bytes = hex(script).unwrap();
            for chain in Chain::ALL {
                let text = encode(&solve(&bytes), chain).unwrap();
                assert_eq!(decode(&text, chain), Ok(bytes.clone()), "{text}");
            }
        }
        assert!(decode("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", Chain::Regtest).is_err());
    }
}
