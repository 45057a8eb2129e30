//! Tests the reference engine and the lanes with published vectors: BIP-0340 (Schnorr) and Wycheproof (ECDSA).

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests read their data and fail on a bad file")]

use lydian_curve::{Check, Engine, LaneEngine, PublicKeyBytes, Reference, parse_der_lax};
use lydian_hash::sha256;
use secp256k1::ecdsa::Signature;
use secp256k1::{PublicKey, XOnlyPublicKey, schnorr};
use serde_json::Value;
use std::io::Write;
use std::path::Path;

fn testdata(path: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let file = root.join("testdata/vectors").join(path);
    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Prints a line even if the test passes, bypassing the output capture of the test harness.
fn report(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// Every engine of this CPU, including the plain lanes.
struct Engines(Vec<LaneEngine>);

impl Engines {
    fn new() -> Engines {
        Engines(LaneEngine::available().into_iter().chain([LaneEngine::plain()]).collect())
    }

    /// Returns the verdict of the reference; every lane must return the same one. The lanes get keys in compressed
    /// form.
    fn holds(&self, check: Check) -> bool {
        let verdict = Reference.check(&check);
        let mut compressed = check;
        if let Check::Ecdsa { key, .. } = &mut compressed
            && let Ok(point) = PublicKey::from_slice(key.as_bytes())
        {
            *key = PublicKeyBytes::new(&point.serialize()).unwrap();
        }
        for engine in &self.0 {
            let mut verdicts = [!verdict; 9];
            engine.verify(&[compressed; 9], &mut verdicts);
            assert_eq!(verdicts, [verdict; 9], "{}: {compressed:?}", engine.name());
        }
        verdict
    }

    /// Asserts that each engine itself decided at least this number of checks.
    fn assert_decided(&self, at_least: u64) {
        for engine in &self.0 {
            let tally = engine.tally();
            report(&format!(
                "{}: {} in lanes, {} by the reference",
                engine.name(),
                tally.lanes / 9,
                tally.reference / 9
            ));
            assert!(tally.lanes >= 9 * at_least, "{}: {tally:?}", engine.name());
        }
    }
}

/// The file of BIP-0340. Consensus has only 32-byte messages, so a [`Check`] supports no others; the four vectors with
/// other lengths are verified by the library behind the reference engine.
///
/// checklist: 59
#[test]
fn bip340_test_vectors() {
    let text = String::from_utf8(testdata("bips/bip-0340/test-vectors.csv")).unwrap();
    let engines = Engines::new();
    let (mut valid, mut invalid, mut other_length) = (0, 0, Vec::new());
    for line in text.lines().skip(1) {
        let fields: Vec<_> = line.splitn(8, ',').collect();
        let [index, _, key, _, message, signature, result, comment] = fields[..] else { panic!("{line}") };
        let (message, key) = (hex(message), hex(key).try_into().unwrap());
        let signature: [u8; 64] = hex(signature).try_into().unwrap();
        let got = match message[..].try_into() {
            Ok(message) => engines.holds(Check::Schnorr { key, message, signature }),
            Err(_) => {
                other_length.push(index);
                let key = XOnlyPublicKey::from_byte_array(key).unwrap();
                schnorr::verify(&schnorr::Signature::from_byte_array(signature), &message, &key).is_ok()
            }
        };
        let expected = result == "TRUE";
        assert!(expected || result == "FALSE", "{line}");
        assert_eq!(got, expected, "vector {index}: {comment}");
        if expected { valid += 1 } else { invalid += 1 }
    }
    report(&format!("BIP-0340: {valid} valid, {invalid} invalid"));
    assert_eq!((valid, invalid), (9, 10));
    engines.assert_decided(10);
    assert_eq!(other_length, ["15", "16", "17", "18"]);
}

/// Wycheproof's verdicts require strict DER and low s; the verdicts of consensus differ only in that s may be high.
///
/// checklist: 41, 59
#[test]
fn wycheproof_ecdsa() {
    let file: Value = serde_json::from_slice(&testdata("secp256k1/ecdsa_secp256k1_sha256_bitcoin_test.json")).unwrap();
    let engines = Engines::new();
    let (mut valid, mut invalid, mut high_s) = (0, 0, Vec::new());
    for group in file["testGroups"].as_array().unwrap() {
        let key = PublicKeyBytes::new(&hex(group["publicKey"]["uncompressed"].as_str().unwrap())).unwrap();
        for test in group["tests"].as_array().unwrap() {
            let message = sha256(&hex(test["msg"].as_str().unwrap()));
            let der = hex(test["sig"].as_str().unwrap());
            // Strict: the bytes must equal the DER encoding of the parsed numbers.
            let strict = Signature::from_der(&der).ok().filter(|read| read.serialize_der()[..] == der[..]);
            let accepted = strict.map(|signature| signature.serialize_compact());
            let accepted = accepted.is_some_and(|signature| engines.holds(Check::Ecdsa { key, message, signature }));
            let is_low_s = strict.is_some_and(|signature| {
                let mut low = signature;
                low.normalize_s();
                low == signature
            });
            match test["result"].as_str() {
                Some("valid") => {
                    assert!(accepted && is_low_s, "{test}");
                    assert_eq!(parse_der_lax(&der), strict.map(|signature| signature.serialize_compact()), "{test}");
                    valid += 1;
                }
                Some("invalid") if accepted => {
                    assert!(!is_low_s, "policy and consensus may differ only for a high s: {test}");
                    high_s.push(test["tcId"].as_u64().unwrap());
                }
                Some("invalid") => invalid += 1,
                other => panic!("result {other:?}"),
            }
        }
    }
    report(&format!("Wycheproof: {valid} valid, {invalid} invalid, {} with a high s", high_s.len()));
    assert_eq!((valid, invalid), (162, 299));
    engines.assert_decided(150);
    assert_eq!(high_s, [1, 388], "signature malleability, and its edge case");
    assert_eq!(file["numberOfTests"], 463);
}

/// Every valid Wycheproof signature is still valid by consensus if s is replaced with the group order minus s; a low-s
/// policy would reject it.
///
/// checklist: 59
#[test]
fn high_s_is_valid_by_consensus() {
    let file: Value = serde_json::from_slice(&testdata("secp256k1/ecdsa_secp256k1_sha256_bitcoin_test.json")).unwrap();
    let engines = Engines::new();
    let mut count = 0;
    for group in file["testGroups"].as_array().unwrap() {
        let key = PublicKeyBytes::new(&hex(group["publicKey"]["uncompressed"].as_str().unwrap())).unwrap();
        for test in group["tests"].as_array().unwrap().iter().filter(|test| test["result"] == "valid") {
            let message = sha256(&hex(test["msg"].as_str().unwrap()));
            let mut signature = parse_der_lax(&hex(test["sig"].as_str().unwrap())).unwrap();
            let s = secp256k1::SecretKey::from_secret_bytes(signature[32..].try_into().unwrap()).unwrap().negate();
            signature[32..].copy_from_slice(&s.to_secret_bytes());
            assert!(engines.holds(Check::Ecdsa { key, message, signature }), "{test}");
            signature[62] ^= 1;
            assert!(!engines.holds(Check::Ecdsa { key, message, signature }), "one bit of s: {test}");
            count += 1;
        }
    }
    assert_eq!(count, 162);
    engines.assert_decided(270);
}
