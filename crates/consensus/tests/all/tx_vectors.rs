//! Core's tx_valid.json and tx_invalid.json for the rules about a single transaction.
//! `crates/script/tests/tx_vectors.rs` verifies their scripts.

use crate::locate;
use lydian_consensus::tx::check_transaction;
use lydian_primitives::{Transaction, hex};
use serde_json::Value;

/// The entries of a file: transaction in hex, and flags.
fn entries(file: &str) -> Vec<(String, String)> {
    let json: Value = serde_json::from_slice(&locate::read(&locate::testdata(file))).unwrap();
    let entry = |value: &Value| {
        let fields = value.as_array().unwrap();
        (fields.len() == 3).then(|| (fields[1].as_str().unwrap().to_owned(), fields[2].as_str().unwrap().to_owned()))
    };
    json.as_array().unwrap().iter().filter_map(entry).collect()
}

/// checklist: 2
#[test]
fn valid_transactions_break_no_rule_of_their_own() {
    let entries = entries("vectors/core/tx_valid.json");
    for (tx, _) in &entries {
        let tx = Transaction::parse(hex(tx).unwrap()).unwrap();
        assert_eq!(check_transaction(tx.view()), Ok(()), "{}", tx.view().txid());
    }
    assert_eq!(entries.len(), 121);
}

/// Exactly the transactions marked BADTX break a rule of `check_transaction`.
/// checklist: 1, 2, 8
#[test]
fn bad_transactions_break_one() {
    let entries = entries("vectors/core/tx_invalid.json");
    let mut reasons = Vec::new();
    for (tx, flags) in &entries {
        let tx = Transaction::parse(hex(tx).unwrap()).unwrap();
        let outcome = check_transaction(tx.view());
        assert_eq!(outcome.is_err(), flags == "BADTX", "{}", tx.view().txid());
        reasons.extend(outcome.err().map(|rule| rule.info().reject_reason));
    }
    reasons.sort_unstable();
    assert_eq!(entries.len(), 93);
    assert_eq!(
        reasons,
        [
            "bad-cb-length",
            "bad-cb-length",
            "bad-txns-inputs-duplicate",
            "bad-txns-prevout-null",
            "bad-txns-prevout-null",
            "bad-txns-txouttotal-toolarge",
            "bad-txns-vout-empty",
            "bad-txns-vout-negative",
            "bad-txns-vout-toolarge",
        ]
    );
}
