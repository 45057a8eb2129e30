//! Published PSBTs: those of Core's tests, of NBitcoin, of BIP-0322, where they follow the letters `pof`, and of
//! BIP-0375, whose fields Core does not know.

use crate::chain::Pair;
use crate::locate::{files, read, shared, testdata};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The first letters of a PSBT in Base64.
const MAGIC: &str = "cHNidP8";

/// All texts in a value that look like PSBTs or like something that should be one.
fn texts<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

/// Proofs of funds.
const PROOFS: &str = "vectors/bips/bip-0322/generated-test-vectors.json";

#[test]
fn published_psbts_are_decided_as_in_core() {
    let Some(pair) = Pair::start("published_psbts", &[]) else { return };
    let files = [
        Some(testdata("vectors/core/rpc_psbt.json")),
        shared("vectors/nbitcoin/psbt.json"),
        shared("vectors/bips/bip-0375/bip375_test_vectors.json"),
        shared(PROOFS),
    ];
    for file in files.into_iter().flatten() {
        let value: Value = serde_json::from_slice(&read(&file)).unwrap();
        let mut found = Vec::new();
        texts(&value, &mut found);
        if file.ends_with(PROOFS) {
            found = found.into_iter().filter_map(|text| text.strip_prefix("pof")).collect();
            assert!(found.iter().any(|text| text.starts_with(MAGIC)));
        }
        assert!(found.len() > 1, "{}", file.display());
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

/// The files that the test above reads are all that have PSBTs, in Base64 or in hex.
#[test]
fn every_file_with_psbts_is_read() {
    let Some(root) = shared("vectors") else { return };
    let known = [
        "core/functional/rpc_psbt.json",
        "nbitcoin/psbt.json",
        "bips/bip-0375/bip375_test_vectors.json",
        "bips/bip-0322/generated-test-vectors.json",
    ];
    let mut with_psbts = Vec::new();
    search(&root, &mut with_psbts);
    let mut known = known.map(|path| root.join(path)).to_vec();
    known.sort();
    with_psbts.sort();
    assert_eq!(with_psbts, known);
    // The file in `testdata` is the same.
    assert_eq!(read(&root.join("core/functional/rpc_psbt.json")), read(&testdata("vectors/core/rpc_psbt.json")));
}

fn search(folder: &Path, with_psbts: &mut Vec<PathBuf>) {
    for path in files(folder) {
        if path.is_dir() {
            search(&path, with_psbts);
            continue;
        }
        let text = String::from_utf8_lossy(&read(&path)).into_owned();
        if text.contains(MAGIC) || text.contains("70736274ff") || text.contains("70736274FF") {
            with_psbts.push(path);
        }
    }
}
