//! Signature encodings listed as non-canonical by bitcoinj in 2013 (`sig_noncanonical.json`), from the shared data:
//! none passes the encoding rules of policy, and those with broken DER do not pass BIP-0066 either.

use crate::common::*;
use lydian_primitives::hex;
use lydian_script::is_strict_der;
use serde_json::Value;

/// checklist: 41
#[test]
fn bitcoinj_noncanonical_signatures() {
    let Some(path) = shared("vectors/bitcoinj/sig_noncanonical.json") else { return };
    let file: Value = serde_json::from_slice(&read(&path)).unwrap();
    let (mut der, mut hash_type, mut name) = (0, 0, "");
    for entry in list(&file) {
        let Ok(signature) = hex(text(entry)) else {
            name = text(entry);
            continue;
        };
        if name.starts_with("hashtype") {
            assert!(is_strict_der(&signature), "only the hash type is wrong");
            assert!(!matches!(signature.last().unwrap() & !0x80, 1..=3), "{name}");
            hash_type += 1;
        } else {
            assert!(!is_strict_der(&signature), "{name} {entry}");
            der += 1;
        }
    }
    assert_eq!((der, hash_type), (14, 1));
    report("bitcoinj sig_noncanonical: 15 signatures");
}
