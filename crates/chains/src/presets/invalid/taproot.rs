//! Failures of taproot and tapscript (BIP-0341, BIP-0342).

use super::legacy::EVAL_FALSE;
use super::script_case::{ScriptCase, Signing, Unlocked};
use crate::wallet::script::{
    OP_0, OP_1, OP_2, OP_CHECKMULTISIG, OP_CHECKSIG, OP_CHECKSIGADD, OP_CHECKSIGVERIFY, OP_DROP, OP_DUP, OP_ENDIF,
    OP_IF, OP_NUMEQUAL, Script, p2tr,
};
use crate::wallet::{Opened, Wallet, open_leaf, taproot_output};
use secp256k1::Keypair;

const SIGNATURE: &str = "Invalid Schnorr signature";
const HASH_TYPE: &str = "Invalid Schnorr signature hash type";
const SIZE: &str = "Invalid Schnorr signature size";
const CONTROL: &str = "Invalid Taproot control block size";
const MISMATCH: &str = "Witness program hash mismatch";

pub(super) fn cases(wallet: &Wallet) -> Vec<ScriptCase> {
    let key = wallet.keypair(30, 0);
    let mut cases = key_paths(&key);
    cases.extend(control_blocks(&key));
    cases.extend(signed_leaves(&key));
    cases.extend(leaves(&key));
    cases
}

/// A tree with a single leaf.
pub(in crate::presets) fn leaf_of(internal: &Keypair, script: Vec<u8>) -> Opened {
    open_leaf(internal, *internal, script)
}

fn only(items: Vec<Vec<u8>>) -> Unlocked {
    (Vec::new(), items)
}

fn key_paths(key: &Keypair) -> Vec<ScriptCase> {
    let (tweak, output, _) = taproot_output(&key.x_only_public_key().0, None);
    let tweaked = key.add_xonly_tweak(&tweak).unwrap_or(*key);
    let (script, untweaked) = (p2tr(&output), *key);
    let right = move |signing: &Signing<'_>| only(vec![signing.key_path(&tweaked)]);
    let case = |name: &str, error, change: fn(&mut Vec<u8>)| {
        ScriptCase::new(name, error, script.clone(), move |signing| {
            let mut signature = signing.key_path(&tweaked);
            change(&mut signature);
            only(vec![signature])
        })
        .twin(right)
    };
    vec![
        case("key-path-signature-false-by-a-bit", SIGNATURE, |signature| signature[63] ^= 1),
        case("key-path-r-false-by-a-bit", SIGNATURE, |signature| signature[0] ^= 0x80),
        case("key-path-signature-of-63-bytes", SIZE, |signature| signature.truncate(63)),
        case("key-path-signature-empty", SIZE, Vec::clear),
        case("key-path-signature-of-66-bytes", SIZE, |signature| signature.extend_from_slice(&[1, 1])),
        case("key-path-hash-type-0-written", HASH_TYPE, |signature| signature.push(0)),
        case("key-path-hash-type-4", HASH_TYPE, |signature| signature.push(4)),
        case("key-path-hash-type-single-without-change", SIGNATURE, |signature| signature.push(3)),
        ScriptCase::new("key-path-key-not-tweaked", SIGNATURE, script.clone(), move |signing| {
            only(vec![signing.key_path(&untweaked)])
        }),
        // With two items, the last one starts with the annex prefix, which changes the message.
        ScriptCase::new("key-path-annex-not-signed", SIGNATURE, script.clone(), move |signing| {
            only(vec![signing.key_path(&tweaked), vec![0x50]])
        }),
        ScriptCase::new("taproot-no-witness", "Witness program was passed an empty witness", script.clone(), |_| {
            only(Vec::new())
        }),
        ScriptCase::new("taproot-script-sig-not-empty", "Witness requires empty scriptSig", script, move |signing| {
            (vec![OP_1], vec![signing.key_path(&tweaked)])
        }),
        ScriptCase::new("taproot-output-no-point", SIGNATURE, p2tr(&[0xff; 32]), |_| only(vec![vec![1; 64]])),
    ]
}

fn control_blocks(key: &Keypair) -> Vec<ScriptCase> {
    let opened = leaf_of(key, vec![OP_1]);
    let script = opened.script_pubkey.clone();
    let with = |change: fn(&mut Vec<u8>)| {
        let (leaf, mut control) = (opened.script.clone(), opened.control_block.clone());
        change(&mut control);
        move |_: &Signing<'_>| only(vec![leaf.clone(), control.clone()])
    };
    let case = |name: &str, error, change: fn(&mut Vec<u8>)| {
        ScriptCase::new(name, error, script.clone(), with(change)).twin(with(|_| ()))
    };
    vec![
        case("control-block-of-32-bytes", CONTROL, |control| control.truncate(32)),
        case("control-block-of-34-bytes", CONTROL, |control| control.push(0)),
        case("control-block-of-129-nodes", CONTROL, |control| control.resize(33 + 129 * 32, 0)),
        case("control-block-of-128-nodes-false", MISMATCH, |control| control.resize(33 + 128 * 32, 0)),
        case("control-block-other-parity", MISMATCH, |control| control[0] ^= 1),
        case("control-block-other-leaf-version", MISMATCH, |control| control[0] ^= 2),
        case("control-block-other-internal-key", MISMATCH, |control| control[32] ^= 1),
        ScriptCase::new("leaf-of-another-tree", MISMATCH, script, {
            let control = opened.control_block.clone();
            move |_| only(vec![vec![OP_2], control.clone()])
        }),
    ]
}

fn signed_leaves(key: &Keypair) -> Vec<ScriptCase> {
    let key = *key;
    let public = key.x_only_public_key().0.to_byte_array();
    let single = leaf_of(&key, Script::new().push(&public).op(OP_CHECKSIG).build());
    let signed = |opened: &Opened, change: fn(&mut Vec<u8>)| {
        let opened = opened.clone();
        move |signing: &Signing<'_>| {
            let mut signature = signing.tapscript(&key, &opened.script);
            change(&mut signature);
            only(vec![signature, opened.script.clone(), opened.control_block.clone()])
        }
    };
    let case = |name: &str, error, change: fn(&mut Vec<u8>)| {
        ScriptCase::new(name, error, single.script_pubkey.clone(), signed(&single, change))
            .twin(signed(&single, |_| ()))
    };
    let adding =
        leaf_of(&key, Script::new().op(OP_0).push(&public).op(OP_CHECKSIGADD).op(OP_1).op(OP_NUMEQUAL).build());
    // 50 plus the witness's size pays for checks at 50 each: one check more than that.
    let budget = |checks: usize| {
        let check = Script::new().op(OP_DUP).push(&public).op(OP_CHECKSIGVERIFY).build();
        leaf_of(&key, Script::new().raw(&check.repeat(checks)).op(OP_DROP).op(OP_1).build())
    };
    // The witness: count 1, signature 65, length of the script 1 or 3, script, control block 34.
    let affordable = |checks: usize| {
        let script = budget(checks).script.len();
        (50 + 1 + 65 + if script < 253 { 1 } else { 3 } + script + 34) / 50
    };
    let at_limit = (1..100).rev().find(|&checks| affordable(checks) >= checks).unwrap_or(1);
    let (rich, poor) = (budget(at_limit), budget(at_limit + 1));
    vec![
        case("tapscript-signature-false-by-a-bit", SIGNATURE, |signature| signature[63] ^= 1),
        case("tapscript-signature-of-63-bytes", SIZE, |signature| signature.truncate(63)),
        case("tapscript-hash-type-0-written", HASH_TYPE, |signature| signature.push(0)),
        case("tapscript-signature-empty", EVAL_FALSE, Vec::clear),
        ScriptCase::new("checksigadd-signature-empty", EVAL_FALSE, adding.script_pubkey.clone(), {
            let opened = adding.clone();
            move |_| only(vec![Vec::new(), opened.script.clone(), opened.control_block.clone()])
        })
        .twin(signed(&adding, |_| ())),
        ScriptCase::new(
            "tapscript-one-check-above-the-budget",
            "Too much signature validation relative to witness weight",
            poor.script_pubkey.clone(),
            signed(&poor, |_| ()),
        ),
        ScriptCase::new(
            "tapscript-budget-spent-signature-false",
            SIGNATURE,
            rich.script_pubkey.clone(),
            signed(&rich, |signature| signature[0] ^= 1),
        )
        .twin(signed(&rich, |_| ())),
    ]
}

fn leaves(key: &Keypair) -> Vec<ScriptCase> {
    let run = |name: &str, error, script: Script, items: Vec<Vec<u8>>, good: Option<Vec<Vec<u8>>>| {
        let opened = leaf_of(key, script.build());
        let shown = {
            let opened = opened.clone();
            move |mut items: Vec<Vec<u8>>| {
                items.extend([opened.script.clone(), opened.control_block.clone()]);
                move |_: &Signing<'_>| only(items.clone())
            }
        };
        let case = ScriptCase::new(name, error, opened.script_pubkey.clone(), shown(items));
        match good {
            Some(items) => case.twin(shown(items)),
            None => case,
        }
    };
    let minimal = "OP_IF/NOTIF argument must be minimal in tapscript";
    let if_true = || Script::new().op(OP_IF).op(OP_1).op(OP_ENDIF);
    let cleanstack = "Stack size must be exactly one after execution";
    vec![
        run(
            "tapscript-checkmultisig",
            "OP_CHECKMULTISIG(VERIFY) is not available in tapscript",
            Script::new().op(OP_0).op(OP_0).op(OP_0).op(OP_CHECKMULTISIG),
            Vec::new(),
            None,
        ),
        run("tapscript-if-on-2", minimal, if_true(), vec![vec![2]], Some(vec![vec![1]])),
        run("tapscript-if-on-two-bytes", minimal, if_true(), vec![vec![1, 0]], Some(vec![vec![1]])),
        run(
            "tapscript-empty-key",
            "Empty public key in tapscript",
            Script::new().op(OP_0).op(OP_CHECKSIG),
            vec![vec![1]],
            None,
        ),
        run("tapscript-ends-false", EVAL_FALSE, Script::new(), vec![Vec::new()], Some(vec![vec![1]])),
        run("tapscript-two-items-left", cleanstack, Script::new(), vec![vec![1], vec![1]], Some(vec![vec![1]])),
        run(
            "tapscript-item-of-521-bytes",
            "Push value size limit exceeded",
            Script::new().op(OP_DROP).op(OP_1),
            vec![vec![1; 521]],
            Some(vec![vec![1; 520]]),
        ),
        run(
            "tapscript-1001-items",
            "Stack size limit exceeded",
            Script::new().op(OP_DROP).op(OP_1),
            vec![vec![1]; 1_001],
            None,
        ),
        run(
            "tapscript-push-cut-off",
            "Opcode missing or not understood",
            Script::new().op(OP_1).raw(&[5, 1]),
            vec![],
            None,
        ),
        run("tapscript-verif", "Opcode missing or not understood", Script::new().op(0x65), Vec::new(), None),
    ]
}
