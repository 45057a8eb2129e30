//! The rules of script execution, each accepted and refused by hand-made spends: legacy, P2SH and witness v0. Taproot
//! is in `taproot_rules.rs`, limits are in `limits.rs`.

use crate::support::*;
use lydian_hash::hash160;
use lydian_script::builder::scripts;
use lydian_script::opcodes::*;
use lydian_script::{Flags, ScriptBuilder, ScriptError};

const NONE: Flags = Flags::NONE;
const WITNESS: Flags = Flags(Flags::P2SH.0 | Flags::WITNESS.0);

fn script() -> ScriptBuilder {
    ScriptBuilder::new()
}

/// checklist: 36
#[test]
fn a_signature_is_deleted_from_its_own_legacy_script_code() {
    let rest = script().op(OP_DROP).push_slice(&public(0)).op(OP_CHECKSIG).into_bytes();
    // The signature covers the script without itself, so the script can contain it.
    let signature = sign_ecdsa(0, Case::spending(vec![]).legacy_digest(&rest, 1), 1);
    let with_signature = script().push_slice(&signature).raw(&rest).into_bytes();
    let case = Wrap::Bare.spend(&with_signature, std::slice::from_ref(&signature));
    check(&case, NONE, Ok(()));
    check(&case, Flags::CONST_SCRIPTCODE, Err(ScriptError::SigFindAndDelete));
    // Segwit deletes nothing.
    let digest = Case::spending(vec![]).segwit_digest(&rest, 1);
    let signature = sign_ecdsa(0, digest, 1);
    let with_signature = script().push_slice(&signature).raw(&rest).into_bytes();
    check(&Wrap::P2wsh.spend(&with_signature, &[signature]), WITNESS, Err(ScriptError::EvalFalse));
}

/// checklist: 36, 40
#[test]
fn all_signatures_of_a_multisig_are_deleted_from_its_script_code() {
    let rest = script().op(OP_2DROP).raw(&scripts::multisig(2, &[&public(0), &public(1)])).into_bytes();
    let digest = Case::spending(vec![]).legacy_digest(&rest, 1);
    let signatures = [sign_ecdsa(0, digest, 1), sign_ecdsa(1, digest, 1)];
    let pushes = script().push_slice(&signatures[1]).push_slice(&signatures[0]);
    let whole = pushes.raw(&rest).into_bytes();
    let case = Wrap::P2sh.spend(&whole, &[vec![], signatures[0].clone(), signatures[1].clone()]);
    check(&case, Flags::P2SH, Ok(()));
    check(&case, Flags::P2SH | Flags::CONST_SCRIPTCODE, Err(ScriptError::SigFindAndDelete));
}

/// checklist: 37
#[test]
fn signatures_cover_the_script_behind_the_last_executed_code_separator() {
    let tail = script().push_slice(&public(0)).op(OP_CHECKSIG).into_bytes();
    let skipped = script().op(OP_0).op(OP_IF).op(OP_CODESEPARATOR).op(OP_ENDIF);
    let code = skipped.clone().raw(&tail).into_bytes();
    let whole = script().op(OP_1).op(OP_DROP).op(OP_CODESEPARATOR).op(OP_CODESEPARATOR).raw(&code).into_bytes();
    for wrap in WRAPS {
        let mut case = wrap.spend(&whole, &[]);
        for (signed, expected) in
            [(&code, Ok(())), (&tail, Err(ScriptError::EvalFalse)), (&whole, Err(ScriptError::EvalFalse))]
        {
            let signature = wrap.sign(&case, signed, 0, 1);
            wrap.set_operands(&mut case, &whole, &[signature]);
            check(&case, WITNESS, expected);
        }
    }
}

/// checklist: 37
#[test]
fn const_scriptcode_refuses_a_code_separator_that_is_not_executed() {
    let whole = script().op(OP_0).op(OP_IF).op(OP_CODESEPARATOR).op(OP_ENDIF).op(OP_1).into_bytes();
    let flags = WITNESS | Flags::CONST_SCRIPTCODE;
    for wrap in [Wrap::Bare, Wrap::P2sh] {
        check(&wrap.spend(&whole, &[]), WITNESS, Ok(()));
        check(&wrap.spend(&whole, &[]), flags, Err(ScriptError::OpCodeSeparator));
    }
    check(&Wrap::P2wsh.spend(&whole, &[]), flags, Ok(()));
}

/// checklist: 40
#[test]
fn multisig_takes_one_element_more_than_its_operands() {
    for wrap in WRAPS {
        let mut case = multisig(wrap, 1, 1, &[0], 1);
        let whole = scripts::multisig(1, &[&public(0)]);
        let signature = wrap.sign(&case, &whole, 0, 1);
        wrap.set_operands(&mut case, &whole, &[vec![5], signature.clone()]);
        check(&case, WITNESS, Ok(()));
        check(&case, WITNESS | Flags::NULLDUMMY, Err(ScriptError::SigNullDummy));
        wrap.set_operands(&mut case, &whole, &[signature]);
        check(&case, WITNESS, Err(ScriptError::InvalidStackOperation));
    }
}

/// checklist: 40
#[test]
fn multisig_signatures_come_in_the_order_of_keys() {
    for wrap in WRAPS {
        check(&multisig(wrap, 2, 3, &[0, 2], 1), WITNESS, Ok(()));
        check(&multisig(wrap, 2, 3, &[2, 0], 1), WITNESS, Err(ScriptError::EvalFalse));
        check(&multisig(wrap, 2, 3, &[1, 1], 1), WITNESS, Err(ScriptError::EvalFalse));
        check(&multisig(wrap, 2, 3, &[2, 0], 1), WITNESS | Flags::NULLFAIL, Err(ScriptError::SigNullFail));
    }
}

/// checklist: 40
#[test]
fn multisig_counts() {
    let counts = |signatures, keys| script().op(OP_0).push_int(signatures).push_int(keys).op(OP_CHECKMULTISIG);
    check_script(counts(0, 0), NONE, Ok(()));
    check_script(counts(0, -1), NONE, Err(ScriptError::PubkeyCount));
    check_script(counts(-1, 0), NONE, Err(ScriptError::SigCount));
    check_script(counts(1, 0), NONE, Err(ScriptError::SigCount));
    check_script(script().op(OP_0).op(OP_1).op(OP_CHECKMULTISIG), NONE, Err(ScriptError::InvalidStackOperation));
    check_script(script().op(OP_CHECKMULTISIG), NONE, Err(ScriptError::InvalidStackOperation));
    let five_bytes = script().op(OP_0).op(OP_0).push_slice(&[0; 5]).op(OP_CHECKMULTISIG);
    check_script(five_bytes, NONE, Err(ScriptError::ScriptNum));
}

/// NULLFAIL requires that the signatures of a failed check are empty; those of a check that holds do not matter.
///
/// checklist: 40
#[test]
fn failed_checks_leave_empty_signatures_under_nullfail() {
    let negated = script().push_slice(&public(0)).op(OP_CHECKSIG).op(OP_NOT).into_bytes();
    let other = Wrap::Bare.sign(&Case::spending(vec![]), &negated, 1, 1);
    check(&Wrap::Bare.spend(&negated, std::slice::from_ref(&other)), NONE, Ok(()));
    check(&Wrap::Bare.spend(&negated, &[other]), Flags::NULLFAIL, Err(ScriptError::SigNullFail));
    check(&Wrap::Bare.spend(&negated, &[vec![]]), Flags::NULLFAIL, Ok(()));
    let negated = script().raw(&scripts::multisig(1, &[&public(0)])).op(OP_NOT).into_bytes();
    check(&Wrap::Bare.spend(&negated, &[vec![], vec![]]), Flags::NULLFAIL, Ok(()));
    check(&Wrap::Bare.spend(&negated, &[vec![], vec![1]]), NONE, Ok(()));
    check(&Wrap::Bare.spend(&negated, &[vec![], vec![1]]), Flags::NULLFAIL, Err(ScriptError::SigNullFail));
    // The dummy is not a signature.
    check(&Wrap::Bare.spend(&negated, &[vec![1], vec![]]), Flags::NULLFAIL, Ok(()));
}

/// checklist: 41
#[test]
fn signatures_are_strict_der_under_dersig_only() {
    let whole = scripts::p2pk(&public(0));
    let mut signature = Wrap::Bare.sign(&Case::spending(vec![]), &whole, 0, 1);
    // A leading zero of r: another encoding of the same number.
    signature[1] += 1;
    signature[3] += 1;
    signature.insert(4, 0);
    let case = Wrap::Bare.spend(&whole, &[signature]);
    check(&case, NONE, Ok(()));
    for flag in [Flags::DERSIG, Flags::LOW_S, Flags::STRICTENC] {
        check(&case, flag, Err(ScriptError::SigDer));
    }
}

/// checklist: 41
#[test]
fn a_high_s_is_valid_but_not_under_low_s() {
    let whole = scripts::p2pk(&public(0));
    let signature = Wrap::Bare.sign(&Case::spending(vec![]), &whole, 0, 1);
    let case = Wrap::Bare.spend(&whole, &[negate_s(&signature)]);
    check(&case, Flags::DERSIG, Ok(()));
    check(&case, Flags::LOW_S, Err(ScriptError::SigHighS));
    check(&Wrap::Bare.spend(&whole, &[signature]), Flags::LOW_S, Ok(()));
}

/// checklist: 41
#[test]
fn hybrid_keys_are_valid_but_not_under_strictenc() {
    let mut key = public_uncompressed(0);
    key[0] = 6 | key[64] & 1;
    let whole = scripts::p2pk(&key);
    let signature = Wrap::Bare.sign(&Case::spending(vec![]), &whole, 0, 1);
    let case = Wrap::Bare.spend(&whole, std::slice::from_ref(&signature));
    check(&case, Flags::DERSIG, Ok(()));
    check(&case, Flags::STRICTENC, Err(ScriptError::PubkeyType));
    // With the other parity it is not a key.
    key[0] ^= 1;
    let whole = scripts::p2pk(&key);
    let signature = Wrap::Bare.sign(&Case::spending(vec![]), &whole, 0, 1);
    check(&Wrap::Bare.spend(&whole, &[signature]), NONE, Err(ScriptError::EvalFalse));
}

/// checklist: 39
#[test]
fn any_hash_type_is_valid_but_not_under_strictenc() {
    let whole = scripts::p2pk(&public(0));
    for hash_type in [0, 4, 0x42, 0x80, 0xff] {
        let signature = Wrap::Bare.sign(&Case::spending(vec![]), &whole, 0, hash_type);
        let case = Wrap::Bare.spend(&whole, &[signature]);
        check(&case, Flags::DERSIG, Ok(()));
        check(&case, Flags::STRICTENC, Err(ScriptError::SigHashType));
    }
}

/// checklist: 42
#[test]
fn results_may_overflow_but_not_be_used_as_numbers() {
    let max = i64::from(i32::MAX);
    let sum = script().push_int(max).push_int(max).op(OP_ADD);
    check_script(sum.clone(), NONE, Ok(()));
    check_script(sum.clone().op(OP_SIZE).op(OP_5).op(OP_EQUAL), NONE, Ok(()));
    for opcode in [OP_1ADD, OP_1SUB, OP_NEGATE, OP_ABS, OP_NOT, OP_0NOTEQUAL] {
        check_script(sum.clone().op(opcode), NONE, Err(ScriptError::ScriptNum));
    }
    for opcode in [
        OP_ADD,
        OP_SUB,
        OP_BOOLAND,
        OP_BOOLOR,
        OP_NUMEQUAL,
        OP_NUMEQUALVERIFY,
        OP_NUMNOTEQUAL,
        OP_LESSTHAN,
        OP_MIN,
        OP_MAX,
    ] {
        check_script(sum.clone().op(OP_1).op(opcode), NONE, Err(ScriptError::ScriptNum));
        check_script(script().op(OP_1).raw(&sum.clone().into_bytes()).op(opcode), NONE, Err(ScriptError::ScriptNum));
    }
    check_script(script().op(OP_1).op(OP_1).raw(&sum.into_bytes()).op(OP_WITHIN), NONE, Err(ScriptError::ScriptNum));
    // Negative zero is zero as a number and false as a condition.
    check_script(script().push_slice(&[0x80]).op(OP_NOT), NONE, Ok(()));
    check_script(script().push_slice(&[0x80]), NONE, Err(ScriptError::EvalFalse));
    check_script(script().push_slice(&[0, 0x80]).op(OP_0).op(OP_NUMEQUAL), NONE, Ok(()));
}

#[test]
fn arithmetic() {
    let table: &[(&[i64], u8, i64)] = &[
        (&[5], OP_1ADD, 6),
        (&[5], OP_1SUB, 4),
        (&[5], OP_NEGATE, -5),
        (&[-5], OP_ABS, 5),
        (&[5], OP_ABS, 5),
        (&[5], OP_NOT, 0),
        (&[0], OP_NOT, 1),
        (&[-7], OP_0NOTEQUAL, 1),
        (&[0], OP_0NOTEQUAL, 0),
        (&[5, 7], OP_ADD, 12),
        (&[5, 7], OP_SUB, -2),
        (&[5, 0], OP_BOOLAND, 0),
        (&[5, -1], OP_BOOLAND, 1),
        (&[0, 0], OP_BOOLOR, 0),
        (&[0, 3], OP_BOOLOR, 1),
        (&[5, 5], OP_NUMEQUAL, 1),
        (&[5, 6], OP_NUMEQUAL, 0),
        (&[5, 6], OP_NUMNOTEQUAL, 1),
        (&[5, 5], OP_NUMNOTEQUAL, 0),
        (&[5, 6], OP_LESSTHAN, 1),
        (&[5, 5], OP_LESSTHAN, 0),
        (&[6, 5], OP_GREATERTHAN, 1),
        (&[5, 5], OP_GREATERTHAN, 0),
        (&[5, 5], OP_LESSTHANOREQUAL, 1),
        (&[6, 5], OP_LESSTHANOREQUAL, 0),
        (&[5, 5], OP_GREATERTHANOREQUAL, 1),
        (&[4, 5], OP_GREATERTHANOREQUAL, 0),
        (&[-3, 2], OP_MIN, -3),
        (&[-3, 2], OP_MAX, 2),
        (&[5, 5, 6], OP_WITHIN, 1),
        (&[6, 5, 6], OP_WITHIN, 0),
        (&[4, 5, 6], OP_WITHIN, 0),
    ];
    for (operands, opcode, expected) in table {
        let operation = operands.iter().fold(script(), |script, &operand| script.push_int(operand)).op(*opcode);
        check_script(operation.clone().push_int(*expected).op(OP_EQUAL), Flags::MINIMALDATA, Ok(()));
        check_script(operation.push_int(*expected + 1).op(OP_EQUAL), NONE, Err(ScriptError::EvalFalse));
        let too_few = operands[1..].iter().fold(script(), |script, &operand| script.push_int(operand)).op(*opcode);
        check_script(too_few, NONE, Err(ScriptError::InvalidStackOperation));
    }
    check_script(script().op(OP_5).op(OP_5).op(OP_NUMEQUALVERIFY).op(OP_1), NONE, Ok(()));
    check_script(script().op(OP_5).op(OP_6).op(OP_NUMEQUALVERIFY).op(OP_1), NONE, Err(ScriptError::NumEqualVerify));
    check_script(script().op(OP_5).op(OP_6).op(OP_EQUALVERIFY).op(OP_1), NONE, Err(ScriptError::EqualVerify));
    check_script(script().op(OP_0).op(OP_VERIFY).op(OP_1), NONE, Err(ScriptError::Verify));
}

/// checklist: 44
#[test]
fn minimaldata_asks_for_the_shortest_pushes_and_numbers() {
    let long_push = script().raw(&[OP_PUSHDATA1, 1, 7]);
    check_script(long_push.clone(), NONE, Ok(()));
    check_script(long_push.clone(), Flags::MINIMALDATA, Err(ScriptError::MinimalData));
    // Not checked if it is not executed.
    let skipped = script().op(OP_0).op(OP_IF).raw(&long_push.into_bytes()).op(OP_ENDIF).op(OP_1);
    check_script(skipped, Flags::MINIMALDATA, Ok(()));
    check_script(script().raw(&[1, 16]), Flags::MINIMALDATA, Err(ScriptError::MinimalData));
    check_script(script().push_slice(&[17, 0]).op(OP_NOT).op(OP_NOT), NONE, Ok(()));
    check_script(script().push_slice(&[17, 0]).op(OP_NOT), Flags::MINIMALDATA, Err(ScriptError::ScriptNum));
}

/// checklist: 44
#[test]
fn minimalif_is_policy_in_witness_v0_and_nothing_before() {
    let whole = script().op(OP_IF).op(OP_1).op(OP_ELSE).op(OP_1).op(OP_ENDIF).into_bytes();
    let flags = WITNESS | Flags::MINIMALIF;
    for odd in [&[2][..], &[0], &[1, 0], &[0x80]] {
        check(&Wrap::P2sh.spend(&whole, &[odd.to_vec()]), flags, Ok(()));
        check(&Wrap::P2wsh.spend(&whole, &[odd.to_vec()]), WITNESS, Ok(()));
        check(&Wrap::P2wsh.spend(&whole, &[odd.to_vec()]), flags, Err(ScriptError::MinimalIf));
    }
    for usual in [&[][..], &[1]] {
        check(&Wrap::P2wsh.spend(&whole, &[usual.to_vec()]), flags, Ok(()));
    }
}

/// checklist: 45
#[test]
fn disabled_opcodes_fail_unexecuted_and_reserved_ones_when_executed() {
    let skipped = |opcode| script().op(OP_0).op(OP_IF).op(opcode).op(OP_ENDIF).op(OP_1);
    for opcode in (0..=255).filter(|&opcode| is_disabled(opcode)) {
        check_script(skipped(opcode), NONE, Err(ScriptError::DisabledOpcode));
        check_script(script().op(opcode), NONE, Err(ScriptError::DisabledOpcode));
    }
    for opcode in [OP_VERIF, OP_VERNOTIF] {
        check_script(skipped(opcode), NONE, Err(ScriptError::BadOpcode));
    }
    for opcode in [OP_VER, OP_RESERVED, OP_RESERVED1, OP_RESERVED2, OP_CHECKSIGADD, 0xbb, 0xff] {
        check_script(skipped(opcode), NONE, Ok(()));
        check_script(script().op(OP_1).op(OP_1).op(OP_1).op(opcode), NONE, Err(ScriptError::BadOpcode));
    }
    check_script(skipped(OP_RETURN), NONE, Ok(()));
    check_script(script().op(OP_1).op(OP_RETURN), NONE, Err(ScriptError::OpReturn));
    check_script(script().op(OP_1).raw(&[5, 1]), NONE, Err(ScriptError::BadOpcode));
}

/// checklist: 45
#[test]
fn conditions_are_balanced() {
    use ScriptError::UnbalancedConditional;
    check_script(script().op(OP_1).op(OP_IF).op(OP_1), NONE, Err(UnbalancedConditional));
    check_script(script().op(OP_1).op(OP_ELSE), NONE, Err(UnbalancedConditional));
    check_script(script().op(OP_1).op(OP_ENDIF), NONE, Err(UnbalancedConditional));
    check_script(script().op(OP_IF).op(OP_ENDIF), NONE, Err(ScriptError::InvalidStackOperation));
    // An IF opened in the scriptSig does not extend into the scriptPubKey.
    check_bare(script().op(OP_1).op(OP_IF), script().op(OP_ENDIF).op(OP_1), NONE, Err(UnbalancedConditional));
    // Every ELSE toggles.
    let toggles = script().op(OP_1).op(OP_IF).op(OP_1).op(OP_ELSE).op(OP_RETURN).op(OP_ELSE).op(OP_1).op(OP_ENDIF);
    check_script(toggles, NONE, Ok(()));
    // Within a skipped branch, conditions pop nothing from the stack.
    let nested = script().op(OP_0).op(OP_IF).op(OP_IF).op(OP_RETURN).op(OP_ELSE).op(OP_RETURN).op(OP_ENDIF).op(OP_ELSE);
    check_script(nested.op(OP_1).op(OP_ENDIF), NONE, Ok(()));
    check_script(script().op(OP_0).op(OP_NOTIF).op(OP_1).op(OP_ENDIF), NONE, Ok(()));
}

#[test]
fn nops_are_discouraged_where_executed() {
    let flags = Flags::DISCOURAGE_UPGRADABLE_NOPS;
    for opcode in [OP_NOP1, OP_NOP4, OP_NOP5, OP_NOP6, OP_NOP7, OP_NOP8, OP_NOP9, OP_NOP10] {
        check_script(script().op(OP_1).op(opcode), NONE, Ok(()));
        check_script(script().op(OP_1).op(opcode), flags, Err(ScriptError::DiscourageUpgradableNops));
        check_script(script().op(OP_0).op(OP_IF).op(opcode).op(OP_ENDIF).op(OP_1), flags, Ok(()));
    }
    for opcode in [OP_NOP, OP_CHECKLOCKTIMEVERIFY, OP_CHECKSEQUENCEVERIFY] {
        check_script(script().op(OP_1).op(opcode), flags, Ok(()));
    }
}

#[test]
fn the_alternative_stack() {
    check_script(script().op(OP_1).op(OP_TOALTSTACK).op(OP_FROMALTSTACK), NONE, Ok(()));
    check_script(script().op(OP_FROMALTSTACK), NONE, Err(ScriptError::InvalidAltstackOperation));
    check_script(script().op(OP_TOALTSTACK), NONE, Err(ScriptError::InvalidStackOperation));
    // Its content is dropped at the end of a script.
    check_bare(
        script().op(OP_1).op(OP_TOALTSTACK),
        script().op(OP_FROMALTSTACK),
        NONE,
        Err(ScriptError::InvalidAltstackOperation),
    );
}

#[test]
fn hashes() {
    let of_abc: [(u8, &str); 5] = [
        (OP_RIPEMD160, "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"),
        (OP_SHA1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (OP_SHA256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (OP_HASH160, "bb1be98c142444d7a56aa3981c3942a978e4dc33"),
        (OP_HASH256, "4f8b42c22dd3729b519ba6f68d2da7cc5b2d606d05daed5ad5128cc03e6c6358"),
    ];
    for (opcode, digest) in of_abc {
        let digest = lydian_primitives::hex(digest).unwrap();
        check_script(script().push_slice(b"abc").op(opcode).push_slice(&digest).op(OP_EQUAL), NONE, Ok(()));
        check_script(script().op(opcode), NONE, Err(ScriptError::InvalidStackOperation));
    }
}

/// A case with other lock fields.
fn locked(script: ScriptBuilder, version: u32, lock_time: u32, sequence: u32) -> Case {
    let mut case = Case::spending(script.into_bytes());
    (case.tx.version, case.tx.lock_time, case.tx.inputs[0].sequence) = (version, lock_time, sequence);
    case
}

/// checklist: 47
#[test]
fn checklocktimeverify() {
    use ScriptError::{NegativeLockTime, ScriptNum, UnsatisfiedLockTime};
    let flag = Flags::CHECKLOCKTIMEVERIFY;
    let table: &[(i64, u32, u32, Result<(), ScriptError>)] = &[
        (100, 100, 0, Ok(())),
        (100, 99, 0, Err(UnsatisfiedLockTime)),
        (100, 101, 0xffff_fffe, Ok(())),
        (100, 100, 0xffff_ffff, Err(UnsatisfiedLockTime)),
        (499_999_999, 500_000_000, 0, Err(UnsatisfiedLockTime)),
        (500_000_000, 500_000_000, 0, Ok(())),
        (500_000_000, 499_999_999, 0, Err(UnsatisfiedLockTime)),
        (0xffff_ffff, 0xffff_ffff, 0, Ok(())),
        (0x1_0000_0000, 0xffff_ffff, 0, Err(UnsatisfiedLockTime)),
        (-1, 0, 0, Err(NegativeLockTime)),
        (-500_000_000, 500_000_000, 0, Err(NegativeLockTime)),
        (1 << 39, 0xffff_ffff, 0, Err(ScriptNum)),
    ];
    for &(operand, lock_time, sequence, expected) in table {
        let whole = script().push_int(operand).op(OP_CHECKLOCKTIMEVERIFY).op(OP_1);
        check(&locked(whole.clone(), 1, lock_time, sequence), flag, expected);
        check(&locked(whole, 1, lock_time, sequence), NONE, Ok(()));
    }
    check_script(script().op(OP_CHECKLOCKTIMEVERIFY), flag, Err(ScriptError::InvalidStackOperation));
}

/// checklist: 31, 47
#[test]
fn checksequenceverify() {
    use ScriptError::{NegativeLockTime, ScriptNum, UnsatisfiedLockTime};
    let flag = Flags::CHECKSEQUENCEVERIFY;
    let table: &[(i64, u32, u32, Result<(), ScriptError>)] = &[
        (10, 2, 10, Ok(())),
        (10, 2, 9, Err(UnsatisfiedLockTime)),
        (10, 1, 10, Err(UnsatisfiedLockTime)),
        (10, 0, 10, Err(UnsatisfiedLockTime)),
        // The version is unsigned: a negative one is large.
        (10, 0xffff_ffff, 10, Ok(())),
        (10, 2, 0x8000_000a, Err(UnsatisfiedLockTime)),
        (10, 2, 0x0040_000a, Err(UnsatisfiedLockTime)),
        (0x40_000a, 2, 10, Err(UnsatisfiedLockTime)),
        (0x40_000a, 2, 0x40_000a, Ok(())),
        // Bits without a meaning are ignored.
        (0x3f_000a, 2, 10, Ok(())),
        (10, 2, 0x3f_000a, Ok(())),
        (0x8000_0000, 1, 0, Ok(())),
        (0x1_8000_0000, 1, 0, Ok(())),
        (-1, 2, 10, Err(NegativeLockTime)),
        (-0x7fff_ffff, 2, 10, Err(NegativeLockTime)),
        (1 << 39, 2, 10, Err(ScriptNum)),
    ];
    for &(operand, version, sequence, expected) in table {
        let whole = script().push_int(operand).op(OP_CHECKSEQUENCEVERIFY).op(OP_1);
        check(&locked(whole.clone(), version, 0, sequence), flag, expected);
        check(&locked(whole, version, 0, sequence), NONE, Ok(()));
    }
    check_script(script().op(OP_CHECKSEQUENCEVERIFY), flag, Err(ScriptError::InvalidStackOperation));
}

/// checklist: 48
#[test]
fn p2sh_takes_only_pushes() {
    let redeem_script = script().op(OP_1).into_bytes();
    let nop = script().op(OP_NOP).push_slice(&redeem_script);
    let output = scripts::p2sh(&hash160(&redeem_script));
    let case = Case::with_script_sig(output.clone(), nop.into_bytes());
    check(&case, NONE, Ok(()));
    check(&case, Flags::P2SH, Err(ScriptError::SigPushOnly));
    check(&case, Flags::SIGPUSHONLY, Err(ScriptError::SigPushOnly));
    check(&Wrap::P2sh.spend(&redeem_script, &[]), Flags::P2SH, Ok(()));
    check(&Wrap::P2sh.spend(&[OP_0], &[]), Flags::P2SH, Err(ScriptError::EvalFalse));
    check(&Wrap::P2sh.spend(&[OP_0], &[]), NONE, Ok(()));
    // A redeem script pushed by a number opcode: the single byte 1 is a push that is cut off.
    let output = scripts::p2sh(&hash160(&[1]));
    check(&Case::with_script_sig(output, vec![OP_1]), Flags::P2SH, Err(ScriptError::BadOpcode));
    check(
        &Case::with_script_sig(scripts::p2sh(&[0; 20]), vec![]),
        Flags::P2SH,
        Err(ScriptError::InvalidStackOperation),
    );
}

/// checklist: 48
#[test]
fn a_wrapped_program_of_version_1_is_anyones() {
    let program = scripts::witness_program(1, &[7; 32]);
    let case = Case::with_script_sig(scripts::p2sh(&hash160(&program)), script().push_slice(&program).into_bytes());
    check(&case, Flags::MANDATORY, Ok(()));
    let discouraged = Flags::MANDATORY | Flags::DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM;
    check(&case, discouraged, Err(ScriptError::DiscourageUpgradableWitnessProgram));
}

/// checklist: 48, 49
#[test]
fn script_sig_of_a_witness_program_is_exact() {
    let mut case = p2wpkh(1);
    case.tx.inputs[0].script_sig = vec![OP_0];
    check(&case, WITNESS, Err(ScriptError::WitnessMalleated));
    let mut case = p2sh_p2wpkh(1);
    check(&case, WITNESS, Ok(()));
    case.tx.inputs[0].script_sig.insert(0, OP_PUSHDATA1);
    check(&case, WITNESS, Err(ScriptError::WitnessMalleatedP2sh));
    case.tx.inputs[0].script_sig[0] = OP_0;
    check(&case, WITNESS, Err(ScriptError::WitnessMalleatedP2sh));
}

/// checklist: 49
#[test]
fn programs_of_version_0_have_20_or_32_bytes() {
    for size in [2, 19, 21, 31, 33, 40] {
        let case = Case::with_witness(scripts::witness_program(0, &vec![7; size]), vec![vec![1]]);
        check(&case, WITNESS, Err(ScriptError::WitnessProgramWrongLength));
        check(&case, Flags::P2SH, Ok(()));
    }
    check(
        &Case::spending(scripts::witness_program(0, &[7; 32])),
        WITNESS,
        Err(ScriptError::WitnessProgramWitnessEmpty),
    );
    check(&Case::spending(scripts::witness_program(0, &[7; 20])), WITNESS, Err(ScriptError::WitnessProgramMismatch));
    let mut three = p2wpkh(1);
    three.tx.inputs[0].witness.insert(0, vec![]);
    check(&three, WITNESS, Err(ScriptError::WitnessProgramMismatch));
    let mut other = Wrap::P2wsh.spend(&[OP_1], &[]);
    check(&other, WITNESS, Ok(()));
    other.tx.inputs[0].witness[0] = vec![OP_2];
    check(&other, WITNESS, Err(ScriptError::WitnessProgramMismatch));
}

/// checklist: 49
#[test]
fn unknown_programs_are_anyones_and_pay_to_anchor_is_never_discouraged() {
    let discouraged = Flags::MANDATORY | Flags::DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM;
    let unknown = (2..=16).map(|version| (version, 32)).chain([(1, 2), (1, 31), (1, 33), (16, 40)]);
    for (version, size) in unknown {
        for witness in [vec![], vec![vec![1; 600]]] {
            let case = Case::with_witness(scripts::witness_program(version, &vec![7; size]), witness);
            check(&case, Flags::MANDATORY, Ok(()));
            check(&case, discouraged, Err(ScriptError::DiscourageUpgradableWitnessProgram));
        }
    }
    check(&Case::spending(vec![OP_1, 2, 0x4e, 0x73]), discouraged, Ok(()));
    // A program of zeros is a false element, even though anyone could spend it otherwise.
    check(&Case::spending(scripts::witness_program(2, &[0; 32])), Flags::MANDATORY, Err(ScriptError::EvalFalse));
}

#[test]
fn a_witness_without_a_program_is_unexpected() {
    for wrap in [Wrap::Bare, Wrap::P2sh] {
        let mut case = wrap.spend(&[OP_1], &[]);
        case.tx.inputs[0].witness = vec![vec![]];
        check(&case, WITNESS, Err(ScriptError::WitnessUnexpected));
        check(&case, Flags::P2SH, Ok(()));
    }
    let mut case = p2pkh(1, false);
    case.tx.inputs[0].witness = vec![vec![]];
    check(&case, WITNESS, Err(ScriptError::WitnessUnexpected));
}

/// checklist: 50
#[test]
fn witness_scripts_leave_one_true_element() {
    let two = script().op(OP_1).op(OP_1).into_bytes();
    check(&Wrap::Bare.spend(&two, &[]), WITNESS, Ok(()));
    check(&Wrap::P2sh.spend(&two, &[]), WITNESS, Ok(()));
    check(&Wrap::P2sh.spend(&two, &[]), WITNESS | Flags::CLEANSTACK, Err(ScriptError::CleanStack));
    check(&Wrap::Bare.spend(&two, &[]), WITNESS | Flags::CLEANSTACK, Err(ScriptError::CleanStack));
    check(&Wrap::P2sh.spend(&[OP_1], &[vec![]]), WITNESS | Flags::CLEANSTACK, Err(ScriptError::CleanStack));
    check(&Wrap::P2sh.spend(&[OP_1], &[]), WITNESS | Flags::CLEANSTACK, Ok(()));
    for wrap in [Wrap::P2wsh, Wrap::P2shP2wsh] {
        check(&wrap.spend(&two, &[]), WITNESS, Err(ScriptError::CleanStack));
        check(&wrap.spend(&[OP_1], &[vec![]]), WITNESS, Err(ScriptError::CleanStack));
        check(&wrap.spend(&[OP_1, OP_DROP], &[]), WITNESS, Err(ScriptError::CleanStack));
        check(&wrap.spend(&[OP_0], &[]), WITNESS, Err(ScriptError::EvalFalse));
        check(&wrap.spend(&[OP_1], &[]), WITNESS | Flags::CLEANSTACK, Ok(()));
    }
}

/// checklist: 51
#[test]
fn uncompressed_keys_are_valid_in_witness_v0_but_not_under_witness_pubkeytype() {
    let key = public_uncompressed(0);
    let mut case = Case::spending(scripts::witness_program(0, &hash160(&key)));
    let signature = sign_ecdsa(0, case.segwit_digest(&scripts::p2pkh(&hash160(&key)), 1), 1);
    case.tx.inputs[0].witness = vec![signature, key.to_vec()];
    let policy = WITNESS | Flags::WITNESS_PUBKEYTYPE;
    check(&case, WITNESS | Flags::STRICTENC, Ok(()));
    check(&case, policy, Err(ScriptError::WitnessPubkeyType));
    check(&p2pkh(1, true), policy, Ok(()));
    let whole = scripts::multisig(1, &[&public(1), &key]);
    let signature = Wrap::P2wsh.sign(&Wrap::P2wsh.spend(&whole, &[]), &whole, 0, 1);
    let case = Wrap::P2wsh.spend(&whole, &[vec![], signature]);
    check(&case, WITNESS, Ok(()));
    check(&case, policy, Err(ScriptError::WitnessPubkeyType));
    // Keys are checked from the last one on, and only as far as necessary.
    let whole = scripts::multisig(1, &[&key, &public(1)]);
    let signature = Wrap::P2wsh.sign(&Wrap::P2wsh.spend(&whole, &[]), &whole, 1, 1);
    check(&Wrap::P2wsh.spend(&whole, &[vec![], signature]), policy, Ok(()));
}

/// The two scripts run sequentially on one stack, not as one script (CVE-2010-5141).
#[test]
fn script_sig_cannot_reach_into_script_pubkey() {
    let output = script().push_slice(&[1; 20]).op(OP_EQUAL);
    check_bare(script().op(OP_1).op(OP_RETURN), output.clone(), NONE, Err(ScriptError::OpReturn));
    check_bare(script().op(OP_1).raw(&[OP_PUSHDATA1, 22]), output, NONE, Err(ScriptError::BadOpcode));
}

#[test]
#[should_panic(expected = "illegal flag combination")]
fn flags_that_core_does_not_take_are_our_bug() {
    check_script(script().op(OP_1), Flags::WITNESS, Ok(()));
}
