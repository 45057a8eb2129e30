//! Published vectors as cases: Core's scripts and transactions, valid or not, and the dump of its taproot tests.
//!
//! Only their bytes are used, not their verdicts: the judge provides those.

use std::collections::BTreeMap;
use std::path::Path;

use lydian_oracle::generate::Case;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Reader, Transaction, Txid, hex};
use lydian_script::opcodes::{OP_NOP, OP_RESERVED, OPCODES};
use lydian_script::{Flags, ScriptBuilder};
use serde_json::Value;

/// Returns every input of every vector under `testdata/`.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    script_tests(&mut cases);
    transactions("core/tx_valid.json", "tx_valid", &mut cases);
    transactions("core/tx_invalid.json", "tx_invalid", &mut cases);
    assets(&mut cases);
    cases
}

fn json(path: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vectors");
    let bytes = std::fs::read(folder.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let bytes = if path.ends_with(".zst") { zstd::decode_all(&bytes[..]).unwrap() } else { bytes };
    serde_json::from_slice(&bytes).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    hex(text(value)).unwrap()
}

fn legal(mut flags: Flags) -> Flags {
    if flags.contains(Flags::CLEANSTACK) {
        flags |= Flags::WITNESS;
    }
    if flags.contains(Flags::WITNESS) {
        flags |= Flags::P2SH;
    }
    flags
}

/// Core's `BuildCreditingTransaction` and `BuildSpendingTransaction`. Placeholders that the test framework fills stay
/// empty.
fn script_tests(cases: &mut Vec<Case>) {
    for entry in list(&json("core/script_tests.json")) {
        let mut fields = list(entry).iter().peekable();
        if fields.len() < 4 {
            continue;
        }
        let (mut witness, mut value) = (Vec::new(), 0);
        if let Some(Value::Array(items)) = fields.peek() {
            fields.next();
            let (amount, items) = items.split_last().unwrap();
            value = (amount.as_f64().unwrap() * 1e8).round() as i64;
            witness = items.iter().map(|item| element(text(item))).collect();
        }
        let mut script = || parse_script(text(fields.next().unwrap()));
        let (script_sig, script_pubkey) = (script(), script());
        let flags = legal(Flags::from_names(text(fields.next().unwrap())).unwrap());
        let one_to_one = |prevout, script_sig, witness, script_pubkey| MutTx {
            version: 1,
            inputs: vec![MutInput { prevout, script_sig, sequence: u32::MAX, witness }],
            outputs: vec![MutOutput { value: Amount(value), script_pubkey }],
            lock_time: 0,
        };
        let credit = one_to_one(OutPoint::NULL, vec![0, 0], Vec::new(), script_pubkey);
        let prevout = OutPoint { txid: credit.txid(), vout: 0 };
        let tx = one_to_one(prevout, script_sig, witness, Vec::new());
        cases.push(Case { name: "script_tests", tx, spent: credit.outputs, index: 0, flags });
    }
}

fn element(text: &str) -> Vec<u8> {
    match text.strip_prefix("#SCRIPT#") {
        Some(script) => parse_script(script),
        None => hex(text).unwrap_or_default(),
    }
}

fn transactions(path: &str, name: &'static str, cases: &mut Vec<Case>) {
    for entry in list(&json(path)).iter().filter(|entry| entry[0].is_array() && entry[2] != "BADTX") {
        let tx = MutTx::from(Transaction::parse(bytes(&entry[1])).unwrap().view());
        let mut prevouts = BTreeMap::new();
        for prevout in list(&entry[0]) {
            let txid: Txid = text(&prevout[0]).parse().unwrap();
            let vout = i32::try_from(prevout[1].as_i64().unwrap()).unwrap().cast_unsigned();
            let value = Amount(prevout.get(3).map_or(0, |value| value.as_i64().unwrap()));
            prevouts.insert((txid, vout), MutOutput { value, script_pubkey: parse_script(text(&prevout[2])) });
        }
        let flags = Flags::from_names(text(&entry[2])).unwrap();
        let flags = if name == "tx_valid" { Flags(Flags::STANDARD.0 & !flags.0) } else { flags };
        let spent: Option<Vec<_>> =
            tx.inputs.iter().map(|input| prevouts.get(&(input.prevout.txid, input.prevout.vout)).cloned()).collect();
        let spent = spent.unwrap();
        for index in 0..spent.len() {
            cases.push(Case { name, tx: tx.clone(), spent: spent.clone(), index, flags: legal(flags) });
        }
    }
}

fn assets(cases: &mut Vec<Case>) {
    for entry in list(&json("taproot/script_assets_test.json.zst")) {
        let tx = MutTx::from(Transaction::parse(bytes(&entry["tx"])).unwrap().view());
        let prevout = |value: &Value| {
            let bytes = bytes(value);
            let mut reader = Reader::new(&bytes);
            let value = Amount(reader.i64().unwrap());
            MutOutput { value, script_pubkey: reader.var_bytes().unwrap().to_vec() }
        };
        let spent: Vec<_> = list(&entry["prevouts"]).iter().map(prevout).collect();
        let index = usize::try_from(entry["index"].as_u64().unwrap()).unwrap();
        for case in [&entry["success"], &entry["failure"]].into_iter().filter(|case| !case.is_null()) {
            let mut tx = tx.clone();
            tx.inputs[index].script_sig = bytes(&case["scriptSig"]);
            tx.inputs[index].witness = list(&case["witness"]).iter().map(bytes).collect();
            let flags = legal(Flags::from_names(text(&entry["flags"])).unwrap());
            cases.push(Case { name: "script_assets", tx, spent: spent.clone(), index, flags });
        }
    }
}

/// Core's `ParseScript`. Placeholders that the test framework fills are skipped.
fn parse_script(text: &str) -> Vec<u8> {
    let mut script = Vec::new();
    for word in text.split([' ', '\t', '\n']).filter(|word| !word.is_empty() && !word.starts_with('#')) {
        if let Ok(number) = word.parse::<i64>() {
            script.extend(ScriptBuilder::new().push_int(number).into_bytes());
        } else if let Some(digits) = word.strip_prefix("0x") {
            script.extend(hex(digits).unwrap());
        } else if let Some(quoted) = word.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
            script.extend(ScriptBuilder::new().push_slice(quoted.as_bytes()).into_bytes());
        } else {
            let is_named = |opcode: u8| opcode >= OP_NOP || opcode == OP_RESERVED;
            let named = OPCODES.iter().filter(|(opcode, _)| is_named(*opcode));
            let found = named.into_iter().find(|(_, name)| *name == word || name.strip_prefix("OP_") == Some(word));
            script.push(found.unwrap_or_else(|| panic!("unknown opcode {word}")).0);
        }
    }
    script
}
