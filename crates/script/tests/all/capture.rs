//! A capture run can only prove acceptance. These scripts try to break that: they negate the verdict of a signature,
//! branch on it, or use signatures that are false, empty or undefined. Capture and settling, with exact mode for the
//! rest, must always agree with exact mode alone.

use crate::support::*;
use lydian_curve::{Check, Engine, Reference};
use lydian_primitives::build::MutInput;
use lydian_script::builder::scripts;
use lydian_script::opcodes::*;
use lydian_script::{
    Captured, CheckCounts, Flags, LegacyCache, Obligation, Obligations, ScriptBuilder, ScriptError, capture_input,
    verify_input, verify_input_counting,
};
use proptest::prelude::*;

const FLAGS: Flags = Flags::MANDATORY;

fn script() -> ScriptBuilder {
    ScriptBuilder::new()
}

/// Returns the result of the capture run, and whether its obligations hold.
fn captured(case: &Case, flags: Flags) -> (Captured, bool) {
    case.run(|context| {
        let mut obligations = Obligations::new();
        let captured = capture_input(context, 0, flags, &mut obligations);
        let settled = obligations.settle(&Reference);
        assert_eq!(settled.len(), usize::from(captured == Captured::Accepted), "entered only if accepted");
        if captured == Captured::Exact {
            assert_eq!(obligations.lists(), Obligations::new().lists(), "nothing is left behind");
        }
        (captured, settled == [true])
    })
}

/// `CHECKSIG NOT` succeeds with a false signature and fails with a true one. The capture run fails either way.
#[test]
fn checksig_not() {
    let whole = script().push_slice(&public(0)).op(OP_CHECKSIG).op(OP_NOT).into_bytes();
    for wrap in WRAPS {
        let empty = wrap.spend(&whole, &[]);
        for (key, expected) in [(0, Err(ScriptError::EvalFalse)), (1, Ok(()))] {
            let case = wrap.spend(&whole, &[wrap.sign(&empty, &whole, key, 1)]);
            assert_eq!(captured(&case, FLAGS).0, Captured::Exact);
            check(&case, FLAGS, expected);
        }
    }
}

/// Branches on the verdict of a signature. The capture run sees only the branch taken by a true signature, so its
/// obligation decides nothing about the other.
#[test]
fn checksig_if_else() {
    let both = script().push_slice(&public(0)).op(OP_CHECKSIG).op(OP_IF).op(OP_1).op(OP_ELSE).op(OP_1).op(OP_ENDIF);
    let only_false =
        script().push_slice(&public(0)).op(OP_CHECKSIG).op(OP_IF).op(OP_RETURN).op(OP_ELSE).op(OP_1).op(OP_ENDIF);
    let only_true =
        script().push_slice(&public(0)).op(OP_CHECKSIG).op(OP_IF).op(OP_1).op(OP_ELSE).op(OP_RETURN).op(OP_ENDIF);
    let other_key = script().push_slice(&public(0)).op(OP_CHECKSIG).op(OP_IF).op(OP_1).op(OP_ELSE);
    let other_key = other_key.push_slice(&public(1)).op(OP_CHECKSIG).op(OP_ENDIF);
    let returned = Err(ScriptError::OpReturn);
    for wrap in WRAPS {
        for (whole, of_true, of_false) in
            [(&both, Ok(()), Ok(())), (&only_false, returned, Ok(())), (&only_true, Ok(()), returned)]
        {
            let whole = whole.clone().into_bytes();
            let empty = wrap.spend(&whole, &[]);
            check(&wrap.spend(&whole, &[wrap.sign(&empty, &whole, 0, 1)]), FLAGS, of_true);
            check(&wrap.spend(&whole, &[wrap.sign(&empty, &whole, 1, 1)]), FLAGS, of_false);
        }
        let whole = other_key.clone().into_bytes();
        let empty = wrap.spend(&whole, &[]);
        for (first, second, expected) in [(7, 1, Ok(())), (7, 0, Err(ScriptError::EvalFalse))] {
            let operands = [wrap.sign(&empty, &whole, second, 1), wrap.sign(&empty, &whole, first, 1)];
            check(&wrap.spend(&whole, &operands), FLAGS, expected);
        }
    }
}

/// A multisig that fails while its script succeeds, and one that holds while its script fails.
#[test]
fn failing_multisig() {
    let multisig = scripts::multisig(2, &[&public(0), &public(1), &public(2)]);
    let negated = script().raw(&multisig).op(OP_NOT).into_bytes();
    for wrap in WRAPS {
        let empty = wrap.spend(&negated, &[]);
        for (signers, expected) in [
            ([0, 1], Err(ScriptError::EvalFalse)),
            ([1, 0], Ok(())),
            ([1, 1], Ok(())),
            ([0, 7], Ok(())),
            ([7, 2], Ok(())),
            ([8, 9], Ok(())),
        ] {
            let signatures = signers.map(|signer| wrap.sign(&empty, &negated, signer, 1));
            let case = wrap.spend(&negated, &[vec![], signatures[0].clone(), signatures[1].clone()]);
            assert_eq!(captured(&case, FLAGS).0, Captured::Exact);
            check(&case, FLAGS, expected);
        }
    }
}

/// Every assignment of signatures to keys of a 1-of-3, 2-of-4 and 3-of-5, valid or not: the obligation holds exactly
/// when Core's loop would match the signatures.
#[test]
fn every_choice_of_signers() {
    for (required, total) in [(1_u8, 3_u8), (2, 4), (3, 5)] {
        let choices = u32::from(total + 1).pow(u32::from(required));
        for choice in 0..choices {
            let signer = |place: u32| u8::try_from(choice / u32::from(total + 1).pow(place) % u32::from(total + 1));
            let signers: Vec<u8> = (0..u32::from(required)).map(|place| signer(place).unwrap_or(0)).collect();
            let is_right =
                signers.windows(2).all(|pair| pair[0] < pair[1]) && signers.iter().all(|&signer| signer < total);
            let case = multisig(Wrap::P2wsh, required, total, &signers, 1);
            assert_eq!(captured(&case, FLAGS), (Captured::Accepted, is_right), "{signers:?}");
            check(&case, FLAGS, if is_right { Ok(()) } else { Err(ScriptError::EvalFalse) });
        }
    }
}

/// A false pair within a multisig that holds is not a failure, and only the possible pairs are checked.
#[test]
fn candidate_pairs() {
    let case = multisig(Wrap::P2wsh, 2, 5, &[1, 4], 1);
    case.run(|context| {
        let mut obligations = Obligations::new();
        assert_eq!(capture_input(context, 0, FLAGS, &mut obligations), Captured::Accepted);
        let [Obligation::Multi { required: 2, keys: 5, pairs }] = obligations.lists().of_input(0) else {
            panic!("one multisig: {:?}", obligations.lists());
        };
        let places: Vec<_> = obligations.lists().pairs(pairs).iter().map(|pair| (pair.signature, pair.key)).collect();
        assert_eq!(places, [(0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (1, 4)]);
        let mut verdicts = vec![false; 8];
        Reference.verify(obligations.checks(), &mut verdicts);
        assert_eq!(verdicts, [false, true, false, false, false, false, false, true]);
        assert_eq!(obligations.settle(&Reference), [true]);
        // One digest per signature, shared by its pairs.
        let digest = |check: &Check| match check {
            Check::Ecdsa { message, .. } => *message,
            other => panic!("{other:?}"),
        };
        assert!(obligations.checks()[..4].iter().all(|check| digest(check) == digest(&obligations.checks()[0])));
    });
}

/// Flips every bit of every signature: none is accepted, whatever the flipped bit does to the encoding.
#[test]
fn signatures_false_by_one_bit_in_every_position() {
    let cases = [
        p2pkh(1, false),
        p2wpkh(1),
        p2tr_key_path(0, None),
        p2tr_key_path(1, None),
        multisig(Wrap::P2wsh, 1, 2, &[0], 1),
        multisig(Wrap::P2sh, 2, 2, &[0, 1], 1),
    ];
    for case in &cases {
        check(case, FLAGS, Ok(()));
        assert_eq!(captured(case, FLAGS), (Captured::Accepted, true));
        for bit in 0..8 * signature_bytes(&mut case.clone()).len() {
            let mut mutant = case.clone();
            signature_bytes(&mut mutant)[bit / 8] ^= 1 << (bit % 8);
            for flags in [FLAGS, FLAGS.without(Flags::DERSIG), Flags::STANDARD] {
                let outcome = outcome(&mutant, flags);
                // Without strict DER, flipping a length or tag that the lax parser ignores may have no effect.
                assert!(outcome.is_err() || !flags.contains(Flags::DERSIG), "bit {bit} {flags}");
                assert!(captured(&mutant, flags) != (Captured::Accepted, true) || outcome.is_ok(), "bit {bit}");
            }
        }
    }
}

/// The first signature of the case, in its witness or scriptSig.
fn signature_bytes(case: &mut Case) -> &mut [u8] {
    let MutInput { script_sig, witness, .. } = &mut case.tx.inputs[0];
    if let Some(item) = witness.iter_mut().find(|item| !item.is_empty()) {
        return item;
    }
    let start = if script_sig[0] == 0 { 2 } else { 1 };
    let size = usize::from(script_sig[start - 1]);
    &mut script_sig[start..start + size]
}

/// Empty signatures and signatures that no parser accepts are never captured: exact mode decides.
#[test]
fn empty_and_undefined_encodings() {
    let undefined: &[&[u8]] = &[
        &[],
        &[0],
        &[1],
        &[0x30],
        &[0x30, 0, 1],
        &[0x30, 6, 2, 1, 1, 2, 1, 1, 1],
        &[0x30, 6, 2, 1, 0, 2, 1, 0, 1],
        &[0x30, 0x80, 2, 1, 1, 2, 1, 1, 1],
        &[0xff; 72],
        &[0x30; 73],
    ];
    let plain = scripts::p2pk(&public(0));
    let negated = script().raw(&plain).op(OP_NOT).into_bytes();
    let either = script().raw(&plain).op(OP_IF).op(OP_1).op(OP_ELSE).op(OP_1).op(OP_ENDIF).into_bytes();
    let multi = scripts::multisig(1, &[&public(0), &public(1)]);
    let multi_negated = script().raw(&multi).op(OP_NOT).into_bytes();
    let ignored = script().raw(&plain).op(OP_DROP).op(OP_1).into_bytes();
    for &signature in undefined {
        for wrap in WRAPS {
            for flags in [FLAGS, FLAGS.without(Flags::DERSIG), FLAGS | Flags::NULLFAIL, Flags::STANDARD] {
                for whole in [&plain, &negated, &either, &ignored] {
                    let case = wrap.spend(whole, &[signature.to_vec()]);
                    let exact = outcome(&case, flags);
                    assert!(captured(&case, flags) != (Captured::Accepted, true) || exact.is_ok());
                    if signature.is_empty() {
                        assert_eq!(captured(&case, flags).0, Captured::Exact, "an empty signature is not captured");
                    }
                }
                for whole in [&multi, &multi_negated] {
                    outcome(&wrap.spend(whole, &[vec![], signature.to_vec()]), flags).ok();
                }
            }
        }
    }
    check(&Wrap::P2wsh.spend(&negated, &[vec![]]), Flags::STANDARD, Ok(()));
    check(&Wrap::P2wsh.spend(&negated, &[vec![1]]), FLAGS, Err(ScriptError::SigDer));
    check(&Wrap::P2wsh.spend(&negated, &[vec![1]]), FLAGS.without(Flags::DERSIG), Ok(()));
}

/// Keys that nothing can match, and keys that only a flag refuses, in a multisig next to a key that matches.
#[test]
fn undefined_keys_beside_a_good_one() {
    let good = public(0);
    for odd in [&[][..], &[2], &[4; 33], &[2; 65], &[0xff; 33], &[9; 40]] {
        for keys in [[odd, &good[..]], [&good[..], odd]] {
            let whole = scripts::multisig(1, &keys);
            for wrap in WRAPS {
                let signature = wrap.sign(&wrap.spend(&whole, &[]), &whole, 0, 1);
                let case = wrap.spend(&whole, &[vec![], signature]);
                check(&case, FLAGS, Ok(()));
                // Core starts at the last key and checks no more keys than necessary.
                let strict = FLAGS | Flags::STRICTENC;
                check(&case, strict, if keys[1] == good { Ok(()) } else { Err(ScriptError::PubkeyType) });
            }
        }
    }
}

/// Tapscript: a signature that is not empty must hold, so a capture run can end in acceptance only; empty signatures
/// are false without any check.
#[test]
fn tapscript_signatures() {
    let start = script().push_slice(&x_only(1)).op(OP_CHECKSIG);
    let either = start.clone().op(OP_IF).op(OP_1).op(OP_ELSE).op(OP_1).op(OP_ENDIF).into_bytes();
    let negated = start.op(OP_NOT).into_bytes();
    let leaf = Leaf::new(0xc0, &either, &[]);
    assert_eq!(captured(&leaf.spend(&[leaf.sign(1, 0)]), FLAGS), (Captured::Accepted, true));
    assert_eq!(captured(&leaf.spend(&[leaf.sign(2, 0)]), FLAGS), (Captured::Accepted, false));
    assert_eq!(captured(&leaf.spend(&[vec![]]), FLAGS), (Captured::Accepted, true));
    check(&leaf.spend(&[leaf.sign(2, 0)]), FLAGS, Err(ScriptError::SchnorrSig));
    check(&leaf.spend(&[vec![]]), FLAGS, Ok(()));
    let leaf = Leaf::new(0xc0, &negated, &[]);
    check(&leaf.spend(&[leaf.sign(1, 0)]), FLAGS, Err(ScriptError::EvalFalse));
    check(&leaf.spend(&[leaf.sign(2, 0)]), FLAGS, Err(ScriptError::SchnorrSig));
    check(&leaf.spend(&[vec![]]), FLAGS, Ok(()));
    // A script path whose key does not commit to the script: the tweak is an obligation like any other.
    let mut case = leaf.spend(&[vec![]]);
    case.tx.inputs[0].witness[1].push(OP_NOP);
    assert_eq!(captured(&case, FLAGS), (Captured::Accepted, false));
    check(&case, FLAGS, Err(ScriptError::WitnessProgramMismatch));
}

/// Many inputs in one batch: the result of each depends on its own obligations only.
#[test]
fn inputs_of_a_batch_are_distinguished() {
    let good = [p2pkh(1, false), p2wpkh(1), multisig(Wrap::P2wsh, 2, 3, &[0, 2], 1), p2tr_key_path(0, None)];
    let bad = [p2wpkh(1), multisig(Wrap::P2sh, 2, 3, &[2, 0], 1)];
    let mut bad = bad.to_vec();
    bad[0].tx.inputs[0].witness[0][20] ^= 1;
    let no_signature = Case::spending(vec![OP_1]);
    let fails = Case::spending(vec![OP_0]);
    let order = [&good[0], &bad[0], &fails, &good[2], &no_signature, &bad[1], &good[1], &fails, &good[3]];
    let mut obligations = Obligations::new();
    let entered: Vec<_> = order
        .iter()
        .filter(|case| case.run(|context| capture_input(context, 0, FLAGS, &mut obligations)) == Captured::Accepted)
        .collect();
    assert_eq!(obligations.input_count(), 7);
    let expected: Vec<_> =
        entered.iter().map(|case| case.run(|context| verify_input(context, 0, FLAGS)).is_ok()).collect();
    assert_eq!(obligations.settle(&Reference), expected);
    assert_eq!(expected, [true, false, true, true, false, true, true]);
    obligations.clear();
    assert_eq!(obligations.input_count(), 0);
    assert!(obligations.settle(&Reference).is_empty());
}

/// Settling a multisig makes the checks of Core's loop and not all candidates: a 2-of-3 needs 2 or 3 of its 4
/// candidates.
#[test]
fn a_multisig_costs_what_it_costs_in_exact_mode() {
    for (signers, expected) in [([1, 2], 2), ([0, 2], 3), ([0, 1], 3)] {
        for wrap in WRAPS {
            let case = multisig(wrap, 2, 3, &signers, 1);
            case.run(|context| {
                let mut counts = CheckCounts::default();
                let mut cache = LegacyCache::new();
                verify_input_counting(context, 0, FLAGS, &mut cache, &mut counts).unwrap();
                let mut obligations = Obligations::new();
                assert_eq!(capture_input(context, 0, FLAGS, &mut obligations), Captured::Accepted);
                let settled = obligations.settle_counting(&Reference);
                assert_eq!(settled.held, [true]);
                assert_eq!((settled.made.len(), counts.ecdsa), (4, expected));
                assert_eq!(settled.made.iter().filter(|made| **made).count() as u64, expected);
            });
        }
    }
}

/// A piece of a generated script.
#[derive(Clone, Debug)]
enum Piece {
    Op(u8),
    Key(u8),
    XOnlyKey(u8),
    Int(i64),
    Bytes(Vec<u8>),
    Multisig(u8, u8),
    /// A check by the key with this number, followed by opcodes that use its verdict.
    Checked(u8, &'static [u8]),
}

/// Opcodes that follow a verdict: none, or some that negate it, branch on it or drop it.
const AFTER_A_VERDICT: [&[u8]; 7] = [
    &[],
    &[OP_NOT],
    &[OP_IF, OP_1, OP_ELSE, OP_1, OP_ENDIF],
    &[OP_IF, OP_0, OP_ELSE, OP_1, OP_ENDIF],
    &[OP_IF, OP_ELSE],
    &[OP_DROP],
    &[OP_IFDUP, OP_NOTIF, OP_1, OP_ENDIF],
];

fn piece() -> impl Strategy<Value = Piece> {
    let opcodes = prop::sample::select(vec![
        OP_0,
        OP_1,
        OP_2,
        OP_IF,
        OP_NOTIF,
        OP_ELSE,
        OP_ENDIF,
        OP_VERIFY,
        OP_DUP,
        OP_SWAP,
        OP_DROP,
        OP_NOT,
        OP_ADD,
        OP_EQUAL,
        OP_SIZE,
        OP_IFDUP,
        OP_TOALTSTACK,
        OP_FROMALTSTACK,
        OP_CODESEPARATOR,
        OP_CHECKSIGADD,
        OP_BOOLAND,
        OP_2DUP,
        OP_OVER,
        OP_TUCK,
        OP_NIP,
        OP_DEPTH,
        OP_ROT,
        OP_0NOTEQUAL,
        OP_HASH160,
        OP_CHECKLOCKTIMEVERIFY,
    ]);
    let signing = prop::sample::select(vec![OP_CHECKSIG, OP_CHECKSIGVERIFY, OP_CHECKMULTISIG, OP_CHECKMULTISIGVERIFY]);
    prop_oneof![
        4 => opcodes.prop_map(Piece::Op),
        3 => signing.prop_map(Piece::Op),
        2 => (0..3_u8).prop_map(Piece::Key),
        1 => (0..3_u8).prop_map(Piece::XOnlyKey),
        1 => (-2..4_i64).prop_map(Piece::Int),
        1 => prop::collection::vec(any::<u8>(), 0..4).prop_map(Piece::Bytes),
        1 => (1..3_u8, 1..4_u8).prop_map(|(required, total)| Piece::Multisig(required, total)),
        12 => (0..3_u8, prop::sample::select(&AFTER_A_VERDICT[..])).prop_map(|(key, after)| Piece::Checked(key, after)),
    ]
}

fn assemble(pieces: &[Piece], is_tapscript: bool) -> Vec<u8> {
    let put = |script: ScriptBuilder, piece: &Piece| match piece {
        Piece::Op(opcode) => script.op(*opcode),
        Piece::Key(number) => script.push_slice(&public(*number)),
        Piece::XOnlyKey(number) => script.push_slice(&x_only(*number)),
        Piece::Checked(number, after) => {
            let with_key =
                if is_tapscript { script.push_slice(&x_only(*number)) } else { script.push_slice(&public(*number)) };
            with_key.op(OP_CHECKSIG).raw(after)
        }
        Piece::Int(value) => script.push_int(*value),
        Piece::Bytes(bytes) => script.push_slice(bytes),
        Piece::Multisig(required, total) => {
            let keys: Vec<_> = (0..*total).map(public).collect();
            script.raw(&scripts::multisig(*required, &keys.iter().map(|key| &key[..]).collect::<Vec<_>>()))
        }
    };
    pieces.iter().fold(script(), put).into_bytes()
}

/// An operand: a signature by some key, or other bytes.
#[derive(Clone, Debug)]
enum Operand {
    Signature(u8),
    Bytes(Vec<u8>),
}

fn operand() -> impl Strategy<Value = Operand> {
    prop_oneof![
        3 => (0..4_u8).prop_map(Operand::Signature),
        1 => Just(Operand::Bytes(vec![])),
        1 => Just(Operand::Bytes(vec![1])),
        1 => prop::collection::vec(any::<u8>(), 0..70).prop_map(Operand::Bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random scripts of signature checks and opcodes that can use their verdicts.
    #[test]
    fn capture_is_exact_for_scripts_thrown_together(
        pieces in prop::collection::vec(piece(), 1..6),
        operands in prop::collection::vec(operand(), 0..5),
        place in 0..5_usize,
        flags in prop::sample::select(vec![FLAGS, FLAGS.without(Flags::DERSIG), Flags::STANDARD, FLAGS | Flags::NULLFAIL]),
    ) {
        let whole = assemble(&pieces, place == WRAPS.len());
        let case = match WRAPS.get(place) {
            Some(wrap) => {
                let empty = wrap.spend(&whole, &[]);
                let sign = |operand: &Operand| match operand {
                    Operand::Signature(key) => wrap.sign(&empty, &whole, *key, 1),
                    Operand::Bytes(bytes) => bytes.clone(),
                };
                wrap.spend(&whole, &operands.iter().map(sign).collect::<Vec<_>>())
            }
            None => {
                let leaf = Leaf::new(0xc0, &whole, &[]);
                let sign = |operand: &Operand| match operand {
                    Operand::Signature(key) => leaf.sign(*key, 0),
                    Operand::Bytes(bytes) => bytes.clone(),
                };
                leaf.spend(&operands.iter().map(sign).collect::<Vec<_>>())
            }
        };
        // Compares exact mode with both modes of capture.
        let exact = outcome(&case, flags);
        let (captured, holds) = captured(&case, flags);
        prop_assert!(!(captured == Captured::Accepted && holds) || exact.is_ok());
    }
}
