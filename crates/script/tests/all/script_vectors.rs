//! Core's `script_tests.json` (`script_json_test`, script_tests.cpp): every script under its flags, with its script
//! error. Also under many more sets of flags, because a valid script must pass under fewer flags and an invalid one
//! fail under more.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests fail on a bad file")]

use crate::common::lanes::{Batch, Decided};
use crate::common::*;
use lydian_curve::{Check, Engine, Reference};
use lydian_hash::TAP_TWEAK;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint};
use lydian_script::sighash::compute_tapleaf_hash;
use lydian_script::{Flags, TxContext};
use secp256k1::{Parity, Scalar, XOnlyPublicKey};
use serde_json::Value;

/// Random flag sets tried for each script, besides each single flag.
const RANDOM_FLAG_SETS: usize = 32;

/// x coordinate of the generator: the public key of the secret 1, which Core's test builder uses for every taproot
/// output.
const INTERNAL_KEY: &str = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

struct ScriptTest {
    witness: Vec<Vec<u8>>,
    value: i64,
    script_sig: Vec<u8>,
    script_pubkey: Vec<u8>,
    flags: Flags,
    expected: String,
}

/// checklist: 36, 37, 40, 41, 42, 44, 45, 46, 47, 48, 49, 50, 51, 52
#[test]
fn core_script_tests_json() {
    let (mut passed, mut failed) = (0, 0);
    let mut seeded = Seeded::new(0);
    let mut batch = Batch::default();
    for entry in list(&testdata_json("vectors/core/script_tests.json")) {
        if list(entry).len() == 1 {
            continue;
        }
        let test = read(list(entry));
        check(&test, entry, &mut seeded, &mut batch);
        if test.expected == "OK" { passed += 1 } else { failed += 1 }
    }
    report(&format!("script_tests: {passed} valid, {failed} invalid"));
    assert_eq!(passed + failed, 1222, "{passed} valid, {failed} invalid");
    assert_eq!(batch.settle("script_tests"), Decided { inputs: 655, held: 644, lanes: 70, reference: 2 });
}

fn read(fields: &[Value]) -> ScriptTest {
    let mut witness: Vec<Vec<u8>> = Vec::new();
    let mut value = 0;
    let mut output_key = None;
    let mut fields = fields.iter().peekable();
    if let Some(Value::Array(items)) = fields.peek() {
        fields.next();
        let (amount, items) = items.split_last().unwrap();
        value = (amount.as_f64().unwrap() * 1e8).round() as i64;
        for item in items {
            match text(item) {
                "#CONTROLBLOCK#" => {
                    let (control, key) = taproot_of(witness.last().unwrap());
                    witness.push(control);
                    output_key = Some(key);
                }
                item => witness.push(match item.strip_prefix("#SCRIPT#") {
                    Some(script) => parse_script(script),
                    None => lydian_primitives::hex(item).unwrap(),
                }),
            }
        }
    }
    let mut next = || text(fields.next().unwrap());
    let script_sig = parse_script(next());
    let script_pubkey = match next() {
        "0x51 0x20 #TAPROOTOUTPUT#" => [&[0x51, 0x20][..], &output_key.unwrap()].concat(),
        script => parse_script(script),
    };
    let flags = Flags::from_names(next()).unwrap();
    ScriptTest { witness, value, script_sig, script_pubkey, flags, expected: next().to_owned() }
}

/// Control block and output key of a tree with only this leaf.
fn taproot_of(script: &[u8]) -> (Vec<u8>, [u8; 32]) {
    let internal: [u8; 32] = lydian_primitives::hex(INTERNAL_KEY).unwrap().try_into().unwrap();
    let tweak = TAP_TWEAK.hash(&[&internal, &compute_tapleaf_hash(0xc0, script)]);
    let key = XOnlyPublicKey::from_byte_array(internal).unwrap();
    let (output, parity) = key.add_tweak(&Scalar::from_be_bytes(tweak).unwrap()).unwrap();
    let (output, is_odd) = (output.to_byte_array(), parity == Parity::Odd);
    let mut verdict = [false];
    Reference.verify(&[Check::Tweak { output, is_odd, internal, tweak }], &mut verdict);
    assert!(verdict[0]);
    ([&[0xc0 | u8::from(is_odd)][..], &internal].concat(), output)
}

fn check(test: &ScriptTest, entry: &Value, seeded: &mut Seeded, batch: &mut Batch) {
    let tx = spending(test).to_transaction().unwrap();
    let owned = [(test.value, test.script_pubkey.clone())];
    let spent = outputs(&owned);
    let context = TxContext::new(tx.view(), &spent).unwrap();
    let flags = fill_flags(test.flags);
    let got = batch.verify(&context, 0, flags);
    let name = got.map_or_else(|error| error.short_name(), |()| "OK");
    assert_eq!(name, test.expected, "{entry}");
    let singles = Flags::ALL.iter().map(|(_, flag)| *flag);
    let random: Vec<_> = (0..RANDOM_FLAG_SETS).map(|_| seeded.flags()).collect();
    for changed in singles.chain(random) {
        let flags = if got.is_ok() { flags.without(changed) } else { flags | changed };
        if flags.is_legal() {
            assert_eq!(verify(&context, 0, flags).is_ok(), got.is_ok(), "under {flags}: {entry}");
        }
    }
}

/// Core's `BuildCreditingTransaction` and `BuildSpendingTransaction` (test/util/transaction_utils.cpp).
fn spending(test: &ScriptTest) -> MutTx {
    let credit = one_to_one(OutPoint::NULL, vec![0, 0], Vec::new(), test.value, test.script_pubkey.clone());
    let prevout = OutPoint { txid: credit.txid(), vout: 0 };
    one_to_one(prevout, test.script_sig.clone(), test.witness.clone(), test.value, Vec::new())
}

fn one_to_one(
    prevout: OutPoint,
    script_sig: Vec<u8>,
    witness: Vec<Vec<u8>>,
    value: i64,
    script_pubkey: Vec<u8>,
) -> MutTx {
    MutTx {
        version: 1,
        inputs: vec![MutInput { prevout, script_sig, sequence: u32::MAX, witness }],
        outputs: vec![MutOutput { value: Amount(value), script_pubkey }],
        lock_time: 0,
    }
}
