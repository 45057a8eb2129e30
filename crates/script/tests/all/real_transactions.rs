//! Four thousand transactions of 2024 with the outputs they spend, from the shared data: every input is valid under the
//! consensus flags, in exact and in capture mode.

use crate::common::*;
use lydian_curve::Reference;
use lydian_primitives::Transaction;
use lydian_script::{Captured, Flags, Obligations, TxContext, capture_input};
use serde_json::Value;

#[test]
fn transactions_of_2024() {
    let Some(path) = shared("txs/mempool_2024.ndjson.zst") else { return };
    let text = String::from_utf8(read(&path)).unwrap();
    let (mut transactions, mut inputs, mut captured) = (0, 0, 0);
    let mut obligations = Obligations::new();
    for line in text.lines() {
        let json: Value = serde_json::from_str(line).unwrap();
        let tx = Transaction::parse(bytes(&json["hex"])).unwrap();
        assert_eq!(tx.view().txid().to_string(), json["txid"], "{line}");
        let owned: Vec<_> =
            list(&json["prevouts"]).iter().map(|spent| (spent[0].as_i64().unwrap(), bytes(&spent[1]))).collect();
        let spent = outputs(&owned);
        let context = TxContext::new(tx.view(), &spent).unwrap();
        for input in 0..owned.len() {
            assert_eq!(verify(&context, input, Flags::MANDATORY), Ok(()), "input {input} of {}", json["txid"]);
            if capture_input(&context, input, Flags::MANDATORY, &mut obligations) == Captured::Accepted {
                captured += 1;
            }
        }
        transactions += 1;
        inputs += owned.len();
    }
    assert_eq!((transactions, inputs), (4000, 13_867));
    // Capture mode proves all but ten by itself, in one batch. Those ten contain an empty signature, which only exact
    // mode accepts.
    assert_eq!(inputs - captured, 10);
    assert!(obligations.settle(&Reference).iter().all(|holds| *holds));
    report(&format!("transactions of 2024: {transactions} with {inputs} inputs, {captured} of them by capture alone"));
}
