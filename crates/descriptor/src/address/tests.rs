//! Addresses of every type on every chain, Core's vectors, and every error.

use super::*;
use lydian_primitives::{hex, to_hex};
use serde_json::Value;

const VALID: &str = include_str!("../../../../testdata/vectors/core/key_io_valid.json");
const INVALID: &str = include_str!("../../../../testdata/vectors/core/key_io_invalid.json");

/// One address of each type.
fn every_type() -> Vec<Address> {
    let unknown = |version, size| Address::WitnessUnknown(UnknownProgram { version, program: vec![9; size] });
    vec![
        Address::PubkeyHash([1; 20]),
        Address::ScriptHash([2; 20]),
        Address::WitnessV0KeyHash([3; 20]),
        Address::WitnessV0ScriptHash([4; 32]),
        Address::WitnessV1Taproot([5; 32]),
        Address::PayToAnchor,
        unknown(1, 2),
        unknown(1, 40),
        unknown(2, 32),
        unknown(16, 40),
    ]
}

#[test]
fn every_type_on_every_chain_both_ways() {
    for address in every_type() {
        assert_eq!(Address::of_script(&address.script()), Some(address.clone()));
        for chain in Chain::ALL {
            let text = address.text(chain);
            assert_eq!(Address::parse(&text, chain), Ok(address.clone()), "{text}");
            for other in Chain::ALL {
                let is_shared = text == address.text(other);
                assert_eq!(Address::parse(&text, other).is_ok(), is_shared, "{text} on {}", other.name());
            }
        }
    }
}

/// From BIP-0173, BIP-0350 and Core's key_io tests.
#[test]
fn published_addresses() {
    for (script, chain, text) in [
        ("76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac", Chain::Main, "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
        ("0014751e76e8199196d454941c45d1b3a323f1433bd6", Chain::Main, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"),
        ("6002751e", Chain::Main, "bc1sw50qgdz25j"),
        ("51024e73", Chain::Main, "bc1pfeessrawgf"),
        ("51024e73", Chain::Test, "tb1pfees9rn5nz"),
        ("51024e73", Chain::Regtest, "bcrt1pfeesnyr2tx"),
    ] {
        let bytes = hex(script).unwrap();
        let address = Address::of_script(&bytes).unwrap();
        assert_eq!((&address.text(chain)[..], address.script()), (text, bytes));
    }
    for script in ["", "6a", "51", "0010751e76e8199196d454941c45d1b3a323", "5121020202ae"] {
        assert_eq!(Address::of_script(&hex(script).unwrap()), None, "{script}");
    }
}

fn flipped(text: &str) -> String {
    let flip = |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    text.chars().map(flip).collect()
}

/// Core's `key_io_valid_parse` and `key_io_valid_gen`.
#[test]
fn cores_addresses() {
    let (mut addresses, mut keys) = (0, 0);
    for case in serde_json::from_str::<Vec<Value>>(VALID).unwrap() {
        let (text, about) = (case[0].as_str().unwrap(), &case[2]);
        let chain: Chain = about["chain"].as_str().unwrap().parse().unwrap();
        if about["isPrivkey"] == true {
            assert!(Address::parse(text, chain).is_err(), "{text}");
            keys += 1;
            continue;
        }
        let address = Address::parse(text, chain).unwrap();
        assert_eq!(to_hex(&address.script()), case[1].as_str().unwrap(), "{text}");
        assert_eq!(Address::of_script(&address.script()).unwrap().text(chain), text);
        let may_flip = about["tryCaseFlip"] == true;
        assert_eq!(Address::parse(&flipped(text), chain).ok(), may_flip.then_some(address), "{text}");
        addresses += 1;
    }
    assert_eq!((addresses, keys), (54, 16));
}

/// Core's `key_io_invalid`.
#[test]
fn cores_strings_that_are_no_address() {
    let cases: Vec<Vec<String>> = serde_json::from_str(INVALID).unwrap();
    assert_eq!(cases.len(), 70);
    for case in cases {
        for chain in Chain::ALL {
            assert!(Address::parse(&case[0], chain).is_err(), "{} on {}", case[0], chain.name());
        }
    }
}

/// Most are cases of BIP-0173, BIP-0350 and Core's rpc_validateaddress.py.
#[test]
fn every_error_has_cores_words() {
    let size = base58::encode_check(vec![0; 20]);
    for (text, chain, words, positions) in [
        ("0", Chain::Main, "Invalid or unsupported Segwit (Bech32) or Base58 encoding.", &[][..]),
        ("", Chain::Main, "Invalid checksum or length of Base58 address (P2PKH or P2SH)", &[]),
        (
            "tc1qw508d6qejxtdg4y5r3zarvary0c5xw7kg3g4ty",
            Chain::Main,
            "Invalid or unsupported Segwit (Bech32) or Base58 encoding.",
            &[],
        ),
        (&"z".repeat(200), Chain::Main, "Invalid or unsupported Segwit (Bech32) or Base58 encoding.", &[]),
        (
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb",
            Chain::Main,
            "Invalid checksum or length of Base58 address (P2PKH or P2SH)",
            &[],
        ),
        (
            &base58::encode_check(vec![0; 22]),
            Chain::Main,
            "Invalid checksum or length of Base58 address (P2PKH or P2SH)",
            &[],
        ),
        (&size, Chain::Main, "Invalid length for Base58 address (P2PKH or P2SH)", &[]),
        ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", Chain::Regtest, "Invalid or unsupported Base58-encoded address.", &[]),
        ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5", Chain::Main, "Invalid Bech32 checksum", &[41]),
        ("BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3t4", Chain::Main, "Invalid character or mixed case", &[40]),
        (
            "bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4",
            Chain::Main,
            "Invalid Base 32 character",
            &[59],
        ),
        ("bc1gmk9yu", Chain::Main, "Empty Bech32 data section", &[]),
        (
            "bcrt1pfeesnyr2tx",
            Chain::Main,
            "Invalid or unsupported prefix for Segwit (Bech32) address (expected bc, got bcrt).",
            &[],
        ),
        (
            "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh",
            Chain::Main,
            "Version 0 witness address must use Bech32 checksum",
            &[],
        ),
        (
            "BC13W508D6QEJXTDG4Y5R3ZARVARY0C5XW7KN40WF2",
            Chain::Main,
            "Version 1+ witness address must use Bech32m checksum",
            &[],
        ),
        (
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf",
            Chain::Main,
            "Invalid padding in Bech32 data section",
            &[],
        ),
        (
            "BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P",
            Chain::Main,
            "Invalid Bech32 v0 address program size (16 bytes), per BIP141",
            &[],
        ),
        ("bc1pw5dgrnzv", Chain::Main, "Invalid Bech32 address program size (1 byte)", &[]),
        (
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v8n0nx0muaewav253zgeav",
            Chain::Main,
            "Invalid Bech32 address program size (41 bytes)",
            &[],
        ),
        (
            "BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R",
            Chain::Main,
            "Invalid Bech32 address witness version",
            &[],
        ),
    ] {
        let error = Address::parse(text, chain).unwrap_err();
        assert_eq!((&error.to_string()[..], error.positions()), (words, positions), "{text}");
    }
}

/// Two wrong characters are located; more are only noticed.
#[test]
fn wrong_characters_are_located() {
    let right = Address::WitnessV1Taproot([5; 32]).text(Chain::Main);
    let wrong = |places: &[usize]| {
        let mut bytes = right.clone().into_bytes();
        for place in places {
            bytes[*place] = if bytes[*place] == b'q' { b'p' } else { b'q' };
        }
        Address::parse(&String::from_utf8(bytes).unwrap(), Chain::Main).unwrap_err()
    };
    assert_eq!(wrong(&[10, 40]).positions(), [10, 40]);
    assert_eq!(wrong(&[5]).to_string(), "Invalid Bech32m checksum");
    assert!(wrong(&[5, 15, 25, 35, 45]).positions().is_empty());
}
