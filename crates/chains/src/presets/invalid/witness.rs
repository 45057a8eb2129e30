//! Failures of version 0 witness programs (BIP-0141, BIP-0143) and related rules.

use super::legacy::EVAL_FALSE;
use super::script_case::{ScriptCase, Signing, Unlocked};
use crate::wallet::Wallet;
use crate::wallet::script::{OP_0, OP_1, OP_2, OP_DROP, OP_NOP, Script, multisig, p2pkh, p2sh, p2wpkh, p2wsh};
use lydian_hash::hash160;
use secp256k1::Keypair;

const MISMATCH: &str = "Witness program hash mismatch";
const CLEANSTACK: &str = "Stack size must be exactly one after execution";

pub(super) fn cases(wallet: &Wallet) -> Vec<ScriptCase> {
    let key = wallet.keypair(20, 0);
    let other = wallet.keypair(20, 1);
    let mut cases = key_hashes(&key, &other);
    cases.extend(nested(&key));
    cases.extend(script_hashes());
    cases.extend(signed_scripts(&key, &other));
    cases
}

fn only(items: Vec<Vec<u8>>) -> Unlocked {
    (Vec::new(), items)
}

fn bytes(key: &Keypair) -> Vec<u8> {
    key.public_key().serialize().to_vec()
}

/// Signature and key for a version 0 key hash.
fn key_items(signing: &Signing<'_>, key: &Keypair) -> Vec<Vec<u8>> {
    vec![signing.segwit_v0(key, &p2pkh(&hash160(&bytes(key)))), bytes(key)]
}

fn key_hashes(key: &Keypair, other: &Keypair) -> Vec<ScriptCase> {
    let (key, other) = (*key, *other);
    let script = p2wpkh(&hash160(&bytes(&key)));
    let right = move |signing: &Signing<'_>| only(key_items(signing, &key));
    let case = |name: &str, error, change: fn(&mut Vec<Vec<u8>>)| {
        ScriptCase::new(name, error, script.clone(), move |signing| {
            let mut items = key_items(signing, &key);
            change(&mut items);
            only(items)
        })
        .twin(right)
    };
    let uncompressed = key.public_key().serialize_uncompressed();
    vec![
        case("p2wpkh-signature-false-by-a-bit", EVAL_FALSE, |items| {
            let at = items[0].len() - 2;
            items[0][at] ^= 1;
        }),
        case("p2wpkh-not-der", "Non-canonical DER signature", |items| items[0][0] = 0x31),
        case("p2wpkh-empty-signature", EVAL_FALSE, |items| items[0].clear()),
        case("p2wpkh-three-items", MISMATCH, |items| items.insert(0, Vec::new())),
        case("p2wpkh-one-item", MISMATCH, |items| {
            items.remove(0);
        }),
        case("p2wpkh-no-witness", MISMATCH, Vec::clear),
        ScriptCase::new(
            "p2wpkh-key-of-another",
            "Script failed an OP_EQUALVERIFY operation",
            script.clone(),
            move |s| only(key_items(s, &other)),
        ),
        ScriptCase::new("p2wpkh-script-sig-not-empty", "Witness requires empty scriptSig", script.clone(), move |s| {
            (vec![OP_1], key_items(s, &key))
        }),
        // The message of BIP-0143 commits to the value; the legacy message does not.
        ScriptCase::new("p2wpkh-legacy-message", EVAL_FALSE, script.clone(), move |signing| {
            only(vec![signing.legacy(&key, &p2pkh(&hash160(&bytes(&key)))), bytes(&key)])
        }),
        // Rejecting uncompressed keys is policy, not consensus, as the twin shows.
        ScriptCase::new("p2wpkh-uncompressed-false", EVAL_FALSE, p2wpkh(&hash160(&uncompressed)), move |_| {
            only(vec![Vec::new(), uncompressed.to_vec()])
        })
        .twin(move |signing| {
            let code = p2pkh(&hash160(&uncompressed));
            only(vec![signing.segwit_v0(&key, &code), uncompressed.to_vec()])
        }),
        ScriptCase::new(
            "witness-beside-p2pkh",
            "Witness provided for non-witness script",
            p2pkh(&hash160(&bytes(&key))),
            {
                move |signing| {
                    let signature = signing.legacy(&key, &p2pkh(&hash160(&bytes(&key))));
                    (Script::new().push(&signature).push(&bytes(&key)).build(), vec![vec![1]])
                }
            },
        )
        .twin(move |signing| {
            let signature = signing.legacy(&key, &p2pkh(&hash160(&bytes(&key))));
            (Script::new().push(&signature).push(&bytes(&key)).build(), Vec::new())
        }),
    ]
}

fn nested(key: &Keypair) -> Vec<ScriptCase> {
    let key = *key;
    let program = p2wpkh(&hash160(&bytes(&key)));
    let script = p2sh(&program);
    let right = {
        let program = program.clone();
        move |s: &Signing<'_>| (Script::new().push(&program).build(), key_items(s, &key))
    };
    let (pushed_twice, empty, negative) = (program.clone(), program.clone(), program.clone());
    vec![
        ScriptCase::new(
            "p2sh-p2wpkh-two-pushes",
            "Witness requires only-redeemscript scriptSig",
            script.clone(),
            move |s| (Script::new().op(OP_1).push(&pushed_twice).build(), key_items(s, &key)),
        )
        .twin(right.clone()),
        ScriptCase::new("p2sh-p2wpkh-no-witness", MISMATCH, script.clone(), move |_| {
            (Script::new().push(&empty).build(), Vec::new())
        })
        .twin(right.clone()),
        ScriptCase::new("p2sh-p2wpkh-long-push", "Witness requires only-redeemscript scriptSig", script, move |s| {
            (Script::new().raw(&[0x4c, 22]).raw(&negative).build(), key_items(s, &key))
        })
        .twin(right),
    ]
}

fn script_hashes() -> Vec<ScriptCase> {
    let inner = Script::new().op(OP_DROP).op(OP_1).build();
    let with = |script: &[u8], mut items: Vec<Vec<u8>>| {
        items.push(script.to_vec());
        move |_: &Signing<'_>| only(items.clone())
    };
    let case = |name: &str, error, script: &[u8], bad: Vec<Vec<u8>>, good: Vec<Vec<u8>>| {
        ScriptCase::new(name, error, p2wsh(script), with(script, bad)).twin(with(script, good))
    };
    let push_drop = |size: usize| vec![vec![7; size]];
    let program = |size: usize| Script::new().op(OP_0).push(&vec![9; size]).build();
    let length = "Witness program has incorrect length";
    let none = |_: &Signing<'_>| only(vec![vec![1]]);
    let operations = |count: usize| Script::new().raw(&vec![OP_NOP; count]).op(OP_1).build();
    vec![
        case("p2wsh-two-items-left", CLEANSTACK, &inner, vec![vec![1], vec![1]], vec![vec![1]]),
        case("p2wsh-item-of-521-bytes", "Push value size limit exceeded", &inner, push_drop(521), push_drop(520)),
        case("p2wsh-ends-false", EVAL_FALSE, &[], vec![Vec::new()], vec![vec![1]]),
        case("p2wsh-stack-empty-at-the-end", CLEANSTACK, &[OP_DROP], vec![vec![1]], vec![vec![1], vec![1]]),
        // 1,000 items and one more pushed by the script.
        ScriptCase::new("p2wsh-stack-of-1001", "Stack size limit exceeded", p2wsh(&[OP_0]), |_| {
            only([vec![vec![1]; 1_000], vec![vec![OP_0]]].concat())
        }),
        ScriptCase::new("p2wsh-script-of-another", MISMATCH, p2wsh(&inner), |_| only(vec![vec![1], vec![OP_1]])),
        ScriptCase::new("p2wsh-no-witness", "Witness program was passed an empty witness", p2wsh(&inner), |_| {
            only(Vec::new())
        }),
        ScriptCase::new("program-of-31-bytes", length, program(31), none),
        ScriptCase::new("program-of-2-bytes", length, program(2), none),
        ScriptCase::new("p2wsh-script-of-10001-bytes", "Script is too big", p2wsh(&padded(10_001)), {
            move |_| only(vec![padded(10_001)])
        }),
        ScriptCase::new("p2wsh-script-of-10000-bytes-and-an-item", CLEANSTACK, p2wsh(&padded(10_000)), {
            move |_| only(vec![vec![1], padded(10_000)])
        })
        .twin(|_| only(vec![padded(10_000)])),
        ScriptCase::new("p2wsh-operations-202", "Operation limit exceeded", p2wsh(&operations(202)), {
            let script = operations(202);
            move |_| only(vec![script.clone()])
        }),
    ]
}

/// A witness script of `size` bytes that leaves one true item.
fn padded(size: usize) -> Vec<u8> {
    let mut script = Script::new();
    let mut left = size - 1;
    while left >= 526 {
        script = script.push(&[7; 520]).op(OP_DROP);
        left -= 524;
    }
    // A push of `left` bytes, including prefix and OP_DROP.
    let prefix = if left > 258 {
        4
    } else if left > 77 {
        3
    } else {
        2
    };
    script.push(&vec![7; left - prefix]).op(OP_DROP).op(OP_1).build()
}

fn signed_scripts(key: &Keypair, other: &Keypair) -> Vec<ScriptCase> {
    let (key, other) = (*key, *other);
    let script = multisig(2, &[bytes(&key), bytes(&other)]);
    let output = p2wsh(&script);
    let spend = move |signing: &Signing<'_>, dummy: &[u8], swapped: bool| {
        let mut signatures = [signing.segwit_v0(&key, &script), signing.segwit_v0(&other, &script)];
        if swapped {
            signatures.reverse();
        }
        let [first, second] = signatures;
        only(vec![dummy.to_vec(), first, second, script.clone()])
    };
    let (bad_dummy, good_dummy, bad_order, good_order) = (spend.clone(), spend.clone(), spend.clone(), spend);
    vec![
        ScriptCase::new(
            "p2wsh-multisig-dummy-not-empty",
            "Dummy CHECKMULTISIG argument must be zero",
            output.clone(),
            move |s| bad_dummy(s, &[1], false),
        )
        .twin(move |s| good_dummy(s, &[], false)),
        ScriptCase::new("p2wsh-multisig-signatures-swapped", EVAL_FALSE, output, move |s| bad_order(s, &[], true))
            .twin(move |s| good_order(s, &[], false)),
        // Anyone can spend unknown witness versions: only the scriptSig can be wrong.
        ScriptCase::new(
            "program-of-version-2-with-script-sig",
            "Witness requires empty scriptSig",
            Script::new().op(OP_2).push(&[9; 32]).build(),
            |_| (vec![OP_1], vec![vec![1]]),
        )
        .twin(|_| only(vec![vec![1]])),
    ]
}
