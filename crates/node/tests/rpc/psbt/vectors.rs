//! Published PSBTs: those of Core's tests, of NBitcoin, and of BIP-0375, whose fields Core does not know.

use crate::chain::Pair;
use crate::locate::{read, shared, testdata};
use serde_json::Value;

/// All texts in a value that look like PSBTs or like something that should be one.
fn texts<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

#[test]
fn published_psbts_are_decided_as_in_core() {
    let Some(pair) = Pair::start("published_psbts", &[]) else { return };
    let files = [
        Some(testdata("vectors/core/rpc_psbt.json")),
        shared("vectors/nbitcoin/psbt.json"),
        shared("vectors/bips/bip-0375/bip375_test_vectors.json"),
    ];
    for file in files.into_iter().flatten() {
        let value: Value = serde_json::from_slice(&read(&file)).unwrap();
        let mut found = Vec::new();
        texts(&value, &mut found);
        assert!(found.len() > 20, "{}", file.display());
        for text in found {
            let text = Value::String(text.to_owned());
            for method in ["decodepsbt", "analyzepsbt", "finalizepsbt", "utxoupdatepsbt"] {
                pair.ask(method, &format!("[{text}]"));
            }
            pair.ask("finalizepsbt", &format!("[{text},false]"));
            pair.ask("combinepsbt", &format!("[[{text},{text}]]"));
        }
    }
    for case in serde_json::from_slice::<Value>(&read(&testdata("vectors/core/rpc_psbt.json"))).unwrap()["signer"]
        .as_array()
        .unwrap()
    {
        let keys = case["privkeys"].as_array().unwrap();
        let keys: Vec<String> = keys.iter().map(|key| format!("\"pk({})\"", key.as_str().unwrap())).collect();
        let keys = keys.join(",");
        pair.ask("descriptorprocesspsbt", &format!("[{},[{keys}]]", case["psbt"]));
        pair.ask("descriptorprocesspsbt", &format!("[{},[{keys}],\"ALL\",true,false]", case["psbt"]));
    }
    pair.comparison.finish();
}
