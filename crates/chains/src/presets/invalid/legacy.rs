//! Failures of scripts without witness: signatures, encodings, P2SH, lock times, limits, opcodes.

use super::script_case::{ScriptCase, Signing, Unlocked};
use crate::wallet::Wallet;
use crate::wallet::script::{
    OP_0, OP_1, OP_2, OP_CHECKLOCKTIMEVERIFY, OP_CHECKMULTISIG, OP_CHECKSEQUENCEVERIFY, OP_CHECKSIG, OP_CHECKSIGVERIFY,
    OP_DROP, OP_DUP, OP_ENDIF, OP_EQUAL, OP_EQUALVERIFY, OP_IF, OP_NOP, OP_NOT, OP_RETURN, OP_VERIFY, Script, multisig,
    p2pkh, p2sh,
};
use lydian_hash::hash160;
use secp256k1::Keypair;

pub(super) const EVAL_FALSE: &str = "Script evaluated without error but finished with a false/empty top stack element";
const SIG_DER: &str = "Non-canonical DER signature";
const LOCKTIME: &str = "Locktime requirement not satisfied";

/// The lock time of the spending transactions: that height is long past.
const LOCK_HEIGHT: i64 = 300;
const NOT_FINAL: u32 = 0xffff_fffe;

pub(super) fn cases(wallet: &Wallet) -> Vec<ScriptCase> {
    let key = wallet.keypair(10, 0);
    let other = wallet.keypair(10, 1);
    let mut cases = signatures(&key, &other);
    cases.extend(multisigs(&key, &other));
    cases.extend(pay_to_script_hash());
    cases.extend(lock_times());
    cases.extend(limits());
    cases.extend(opcodes());
    cases
}

fn bytes(key: &Keypair) -> Vec<u8> {
    key.public_key().serialize().to_vec()
}

fn only(script: Script) -> Unlocked {
    (script.build(), Vec::new())
}

fn signatures(key: &Keypair, other: &Keypair) -> Vec<ScriptCase> {
    let (key, other) = (*key, *other);
    let script = p2pkh(&hash160(&bytes(&key)));
    let sign = move |signing: &Signing<'_>, change: &dyn Fn(&mut Vec<u8>)| {
        let mut signature = signing.legacy(&key, &p2pkh(&hash160(&bytes(&key))));
        change(&mut signature);
        only(Script::new().push(&signature).push(&bytes(&key)))
    };
    let right = move |signing: &Signing<'_>| sign(signing, &|_| ());
    let case = |name: &str, error, change: fn(&mut Vec<u8>)| {
        ScriptCase::new(name, error, script.clone(), move |signing| sign(signing, &change)).twin(right)
    };
    let wrong_key = ScriptCase::new(
        "p2pkh-key-of-another",
        "Script failed an OP_EQUALVERIFY operation",
        script.clone(),
        move |signing| only(Script::new().push(&signing.legacy(&other, &[])).push(&bytes(&other))),
    );
    vec![
        case("p2pkh-signature-false-by-a-bit", EVAL_FALSE, |signature| {
            // The last byte of s.
            let at = signature.len() - 2;
            signature[at] ^= 1;
        }),
        case("p2pkh-other-hash-type", EVAL_FALSE, |signature| {
            if let Some(last) = signature.last_mut() {
                *last = 2;
            }
        }),
        case("p2pkh-empty-signature", EVAL_FALSE, Vec::clear),
        case("der-length-false", SIG_DER, |signature| signature[1] += 1),
        case("der-tag-false", SIG_DER, |signature| signature[0] = 0x31),
        case("der-r-negative", SIG_DER, |signature| signature[4] |= 0x80),
        case("der-byte-behind-s", SIG_DER, |signature| {
            let at = signature.len() - 1;
            signature.insert(at, 0);
        }),
        case("der-r-padded", SIG_DER, |signature| {
            signature.insert(4, 0);
            signature.insert(4, 0);
            signature[1] += 2;
            signature[3] += 2;
        }),
        case("der-hash-type-alone", SIG_DER, |signature| signature.truncate(1)),
        wrong_key,
        ScriptCase::new(
            "checksigverify-fails",
            "Script failed an OP_CHECKSIGVERIFY operation",
            Script::new().push(&bytes(&key)).op(OP_CHECKSIGVERIFY).op(OP_1).build(),
            |_| only(Script::new().op(OP_0)),
        ),
        ScriptCase::new("checksig-not-of-a-true-signature", EVAL_FALSE, negated(&key), move |signing| {
            only(Script::new().push(&signing.legacy(&key, &negated(&key))))
        })
        .twin(move |signing| only(Script::new().push(&signing.legacy(&key, b"another script")))),
    ]
}

fn negated(key: &Keypair) -> Vec<u8> {
    Script::new().push(&bytes(key)).op(OP_CHECKSIG).op(OP_NOT).build()
}

fn multisigs(key: &Keypair, other: &Keypair) -> Vec<ScriptCase> {
    let (key, other) = (*key, *other);
    let script = multisig(2, &[bytes(&key), bytes(&other)]);
    let spend = {
        let script = script.clone();
        move |signing: &Signing<'_>, dummy: &[u8], swapped: bool| {
            let mut signatures = [signing.legacy(&key, &script), signing.legacy(&other, &script)];
            if swapped {
                signatures.reverse();
            }
            only(Script::new().push(dummy).push(&signatures[0]).push(&signatures[1]))
        }
    };
    let (first, second, third, fourth) = (spend.clone(), spend.clone(), spend.clone(), spend);
    let pubkeys = |count: u8| Script::new().op(OP_0).op(OP_0).push(&[count]).op(OP_CHECKMULTISIG).build();
    vec![
        ScriptCase::new("multisig-signatures-swapped", EVAL_FALSE, script.clone(), move |s| first(s, &[], true))
            .twin(move |s| second(s, &[], false)),
        ScriptCase::new("multisig-dummy-not-empty", "Dummy CHECKMULTISIG argument must be zero", script, move |s| {
            third(s, &[1], false)
        })
        .twin(move |s| fourth(s, &[], false)),
        ScriptCase::new(
            "multisig-3-of-2",
            "Signature count negative or greater than pubkey count",
            multisig(3, &[bytes(&key), bytes(&other)]),
            |_| only(Script::new().op(OP_0).op(OP_0).op(OP_0).op(OP_0)),
        ),
        ScriptCase::new("multisig-21-keys", "Pubkey count negative or limit exceeded", pubkeys(21), |_| {
            only(Script::new())
        }),
        ScriptCase::new(
            "multisig-without-dummy",
            "Operation not valid with the current stack size",
            Script::new().op(OP_0).op(OP_0).op(OP_CHECKMULTISIG).build(),
            |_| only(Script::new()),
        )
        .twin(|_| only(Script::new().op(OP_0))),
    ]
}

fn pay_to_script_hash() -> Vec<ScriptCase> {
    let redeem = Script::new().op(OP_2).op(OP_EQUAL).build();
    let script = p2sh(&redeem);
    let with = |head: Script| {
        let redeem = redeem.clone();
        move |_: &Signing<'_>| only(head.clone().push(&redeem))
    };
    let right = || with(Script::new().op(OP_2));
    vec![
        ScriptCase::new("p2sh-redeem-script-false", EVAL_FALSE, script.clone(), with(Script::new().op(OP_1)))
            .twin(right()),
        ScriptCase::new("p2sh-hash-of-another", EVAL_FALSE, script.clone(), |_| {
            only(Script::new().op(OP_2).push(&[OP_1]))
        })
        .twin(right()),
        ScriptCase::new(
            "p2sh-script-sig-not-push-only",
            "Only push operators allowed in signatures",
            script.clone(),
            with(Script::new().op(OP_2).op(OP_NOP)),
        )
        .twin(right()),
        ScriptCase::new("p2sh-nothing-pushed", "Operation not valid with the current stack size", script, |_| {
            only(Script::new())
        }),
    ]
}

fn lock_times() -> Vec<ScriptCase> {
    let past = u32::try_from(LOCK_HEIGHT).unwrap_or(0);
    let absolute = |wanted: i64| Script::new().number(wanted).op(OP_CHECKLOCKTIMEVERIFY).op(OP_DROP).op(OP_1).build();
    let relative = |wanted: i64| Script::new().number(wanted).op(OP_CHECKSEQUENCEVERIFY).op(OP_DROP).op(OP_1).build();
    let none = |_: &Signing<'_>| only(Script::new());
    let argument = |opcode: u8| Script::new().op(opcode).op(OP_DROP).op(OP_1).build();
    let pushed = |value: i64| move |_: &Signing<'_>| only(Script::new().number(value));
    let absolute_by = argument(OP_CHECKLOCKTIMEVERIFY);
    let relative_by = argument(OP_CHECKSEQUENCEVERIFY);
    vec![
        ScriptCase::new("cltv-a-block-too-early", LOCKTIME, absolute_by.clone(), pushed(LOCK_HEIGHT + 1))
            .twin(pushed(LOCK_HEIGHT))
            .locked(past, NOT_FINAL),
        ScriptCase::new("cltv-final-sequence", LOCKTIME, absolute(LOCK_HEIGHT), none).locked(past, u32::MAX),
        ScriptCase::new("cltv-time-against-height", LOCKTIME, absolute_by.clone(), pushed(500_000_000))
            .twin(pushed(1))
            .locked(past, NOT_FINAL),
        ScriptCase::new("cltv-negative", "Negative locktime", absolute_by.clone(), pushed(-1))
            .twin(pushed(0))
            .locked(past, NOT_FINAL),
        ScriptCase::new(
            "cltv-number-of-6-bytes",
            "Script number overflowed or is non-minimally encoded",
            absolute_by.clone(),
            pushed(1 << 40),
        )
        .locked(past, NOT_FINAL),
        ScriptCase::new("cltv-empty-stack", "Operation not valid with the current stack size", absolute_by, none)
            .locked(past, NOT_FINAL),
        ScriptCase::new("csv-a-block-too-many", LOCKTIME, relative_by.clone(), pushed(2)).twin(pushed(1)).locked(0, 1),
        ScriptCase::new("csv-time-against-blocks", LOCKTIME, relative_by.clone(), pushed(1 << 22))
            .twin(pushed(0))
            .locked(0, 1),
        ScriptCase::new("csv-sequence-disabled", LOCKTIME, relative(1), none).locked(0, 1 << 31),
        ScriptCase::new("csv-negative", "Negative locktime", relative_by.clone(), pushed(-1))
            // An operand with the disable bit is ignored.
            .twin(pushed(1 << 31))
            .locked(0, 1),
        ScriptCase::new("csv-empty-stack", "Operation not valid with the current stack size", relative_by, none)
            .locked(0, 1),
    ]
}

/// A true script of `size` bytes: data pushed and dropped.
fn script_of_size(size: usize) -> Vec<u8> {
    let mut script = Script::new();
    let mut left = size - 1;
    while left >= 524 {
        script = script.push(&[7; 520]).op(OP_DROP);
        left -= 524;
    }
    // Small constants do not count as operations, so that only the size is near its limit.
    script.raw(&vec![OP_0; left]).op(OP_1).build()
}

fn limits() -> Vec<ScriptCase> {
    let none = |_: &Signing<'_>| only(Script::new());
    let push = |size: usize| move |_: &Signing<'_>| only(Script::new().push(&vec![1; size]));
    let operations = |count: usize| Script::new().raw(&vec![OP_NOP; count]).op(OP_1).build();
    let stack = |count: usize| move |_: &Signing<'_>| (vec![OP_1; count], Vec::new());
    vec![
        ScriptCase::new(
            "script-of-9999-and-drop",
            EVAL_FALSE,
            {
                let mut script = script_of_size(9_999);
                script.push(OP_NOT);
                script
            },
            none,
        ),
        ScriptCase::new("script-sig-of-10001-bytes", "Script is too big", vec![OP_1], |_| {
            (script_of_size(10_001), Vec::new())
        })
        .twin(|_| (script_of_size(10_000), Vec::new())),
        ScriptCase::new("push-of-521-bytes", "Push value size limit exceeded", vec![OP_1], push(521)).twin(push(520)),
        ScriptCase::new("operations-202", "Operation limit exceeded", operations(202), none),
        ScriptCase::new(
            "operations-201-then-false",
            EVAL_FALSE,
            {
                let mut script = operations(201);
                script.push(OP_0);
                script
            },
            none,
        ),
        ScriptCase::new("stack-of-1001", "Stack size limit exceeded", vec![OP_1], stack(1_000)).twin(stack(999)),
    ]
}

fn opcodes() -> Vec<ScriptCase> {
    let none = |_: &Signing<'_>| only(Script::new());
    let bad = "Opcode missing or not understood";
    let case = |name: &str, error, script: Script| ScriptCase::new(name, error, script.build(), none);
    let conditional = "Invalid OP_IF construction";
    let stack = "Operation not valid with the current stack size";
    let true_if = |tail: &[u8]| Script::new().op(OP_0).op(OP_IF).raw(tail).op(OP_ENDIF).op(OP_1);
    vec![
        case("ends-false", EVAL_FALSE, Script::new().op(OP_0)),
        case("ends-negative-zero", EVAL_FALSE, Script::new().push(&[0x80])),
        case("ends-empty", EVAL_FALSE, Script::new()).twin(|_| only(Script::new().op(OP_1))),
        case("verify-fails", "Script failed an OP_VERIFY operation", Script::new().op(OP_0).op(OP_VERIFY)),
        case(
            "equalverify-fails",
            "Script failed an OP_EQUALVERIFY operation",
            Script::new().op(OP_1).op(OP_2).op(OP_EQUALVERIFY),
        ),
        case(
            "numequalverify-fails",
            "Script failed an OP_NUMEQUALVERIFY operation",
            Script::new().op(OP_1).op(OP_2).op(0x9d),
        ),
        case(
            "checkmultisigverify-fails",
            "Script failed an OP_CHECKMULTISIGVERIFY operation",
            Script::new().op(OP_0).op(OP_0).op(OP_1).push(&[2; 33]).op(OP_1).op(0xaf),
        ),
        case("return-run", "OP_RETURN was encountered", Script::new().op(OP_1).op(OP_IF).op(OP_RETURN).op(OP_ENDIF)),
        case("opcode-reserved-run", bad, Script::new().op(0x50)),
        case("opcode-ver-run", bad, Script::new().op(0x62)),
        case("opcode-unknown-run", bad, Script::new().op(0xba)),
        case("verif-not-run", bad, true_if(&[0x65])),
        case("push-cut-off", bad, Script::new().op(OP_1).raw(&[0x05, 1])),
        case("cat-not-run", "Attempted to use a disabled opcode", true_if(&[0x7e])),
        case("if-open", conditional, Script::new().op(OP_1).op(OP_1).op(OP_IF)),
        case("endif-alone", conditional, Script::new().op(OP_1).op(OP_ENDIF)),
        case("if-on-empty-stack", stack, Script::new().op(OP_IF).op(OP_ENDIF).op(OP_1)),
        case("dup-on-empty-stack", stack, Script::new().op(OP_DUP)),
        case("from-alt-stack-empty", "Operation not valid with the current altstack size", Script::new().op(0x6c)),
        case(
            "add-5-byte-number",
            "Script number overflowed or is non-minimally encoded",
            Script::new().number(1 << 32).op(OP_1).op(0x93),
        ),
    ]
}
