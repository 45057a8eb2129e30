//! Compares the templates with the interpreter: for every spend, both record the same obligations and have the same
//! result, and well-formed spends are recognised. The interpreter computes a hash at once where a template records it,
//! so the result is the same once the hashes are settled.

use crate::support::{Case, WRAPS, Wrap, multisig, p2pkh, p2sh_p2wpkh, p2tr_key_path, p2wpkh};
use lydian_curve::Reference;
use lydian_primitives::build::MutInput;
use lydian_script::{
    Captured, Flags, Inline, LegacyCache, ObligationLists, Obligations, ScriptError, TxContext, capture_input,
    capture_input_interpreted, verify_by_template, verify_input, verify_input_by_capture,
};
use proptest::prelude::*;

/// The well-formed spends that have a template.
fn well_formed() -> Vec<(String, Case)> {
    let mut cases = vec![];
    for hash_type in [1, 2, 3, 0x81, 0x82, 0x83] {
        cases.push((format!("p2pkh {hash_type:#x}"), p2pkh(hash_type, false)));
        cases.push((format!("p2pkh uncompressed {hash_type:#x}"), p2pkh(hash_type, true)));
        cases.push((format!("p2wpkh {hash_type:#x}"), p2wpkh(hash_type)));
        cases.push((format!("p2sh-p2wpkh {hash_type:#x}"), p2sh_p2wpkh(hash_type)));
        cases.push((format!("p2tr {hash_type:#x}"), p2tr_key_path(hash_type, None)));
    }
    cases.push(("p2tr default".into(), p2tr_key_path(0, None)));
    for wrap in WRAPS {
        for (required, total, signers) in [
            (1, 1, &[0][..]),
            (1, 3, &[1]),
            (2, 2, &[0, 1]),
            (2, 3, &[0, 1]),
            (2, 3, &[0, 2]),
            (2, 3, &[1, 2]),
            (3, 5, &[0, 2, 4]),
        ] {
            cases.push((format!("{wrap:?} {signers:?} of {total}"), multisig(wrap, required, total, signers, 1)));
        }
        cases.push((format!("{wrap:?} 15 of 15"), multisig(wrap, 15, 15, &(0..15).collect::<Vec<_>>(), 1)));
    }
    cases
}

fn standard() -> Flags {
    Flags::STANDARD.without(Flags::WITNESS_PUBKEYTYPE)
}

#[test]
fn well_formed_spends_are_recognised() {
    for (name, case) in well_formed() {
        for flags in [Flags::MANDATORY, standard()] {
            let recognised =
                case.run(|context| verify_by_template(context, 0, flags, &mut Inline, &mut LegacyCache::new()));
            assert!(recognised, "{name} {flags}");
            check_equal(&case, flags, Captured::Accepted, &name);
            assert_eq!(case.run(|context| verify_input(context, 0, flags)), Ok(()), "{name}");
        }
    }
}

/// Signatures in the wrong order are captured like those in the right order; only the verdicts differ.
#[test]
fn false_multisigs_are_entered_alike_and_refused() {
    for wrap in WRAPS {
        for (required, total, signers) in [(2, 3, &[1, 0][..]), (2, 3, &[0, 0]), (1, 2, &[5]), (2, 3, &[2, 7])] {
            let case = multisig(wrap, required, total, signers, 1);
            check_equal(&case, Flags::MANDATORY, Captured::Accepted, "false multisig");
            let outcome = case.run(|context| verify_input_by_capture(context, 0, Flags::MANDATORY, &Reference));
            assert!(outcome.is_err(), "{wrap:?} {signers:?}");
        }
    }
}

/// A hash that differs by one bit: the template records it and goes on, the obligation does not hold, and exact mode
/// reports the error of the interpreter.
#[test]
fn a_false_hash_is_recorded_and_refused_with_the_error_of_exact_mode() {
    let p2sh_multisig = || multisig(Wrap::P2sh, 2, 3, &[0, 2], 1);
    for (name, case, at, error) in [
        ("p2pkh", p2pkh(1, false), 3, ScriptError::EqualVerify),
        ("p2pkh, uncompressed key", p2pkh(1, true), 22, ScriptError::EqualVerify),
        ("p2wpkh", p2wpkh(1), 2, ScriptError::EqualVerify),
        ("p2sh-p2wpkh", p2sh_p2wpkh(1), 2, ScriptError::EvalFalse),
        ("p2sh multisig", p2sh_multisig(), 21, ScriptError::EvalFalse),
    ] {
        for bit in 0..8 {
            let mut case = case.clone();
            case.spent[0].script_pubkey[at] ^= 1 << bit;
            case.run(|context| {
                let mut obligations = Obligations::new();
                let captured = capture_input(context, 0, Flags::MANDATORY, &mut obligations);
                assert_eq!(captured, Captured::Accepted, "{name}");
                assert_eq!(obligations.lists().hashes_hold(), [false], "{name}");
                assert_eq!(obligations.settle(&Reference), [false], "{name}");
                let exact = verify_input(context, 0, Flags::MANDATORY);
                assert_eq!(exact, Err(error), "{name}");
                assert_eq!(verify_input_by_capture(context, 0, Flags::MANDATORY, &Reference), exact, "{name}");
            });
        }
    }
}

/// The redeem script of a nested input is the right one, and its key is not.
#[test]
fn the_key_of_a_nested_input_is_hashed_too() {
    let mut case = p2sh_p2wpkh(1);
    case.tx.inputs[0].witness[1].iter_mut().for_each(|byte| *byte ^= 1);
    case.run(|context| {
        let mut obligations = Obligations::new();
        assert_eq!(capture_input(context, 0, Flags::MANDATORY, &mut obligations), Captured::Accepted);
        assert_eq!(obligations.lists().hashes_hold(), [false]);
        let exact = verify_input(context, 0, Flags::MANDATORY);
        assert_eq!(exact, Err(ScriptError::EqualVerify));
        assert_eq!(verify_input_by_capture(context, 0, Flags::MANDATORY, &Reference), exact);
    });
}

/// Spends of every kind in one batch, some with a false hash: each verdict is that of its input, in every place of the
/// lanes.
#[test]
fn the_hashes_of_a_batch_are_distinguished() {
    let cases = [p2pkh(1, false), p2pkh(1, true), p2wpkh(1), p2sh_p2wpkh(1), p2tr_key_path(1, None)];
    for period in [1, 2, 3, 7, 16, 17, 64, 65] {
        let mut obligations = Obligations::new();
        let mut expected = Vec::new();
        for (index, case) in cases.iter().cycle().take(140).enumerate() {
            let mut case = case.clone();
            let is_false = index % period == 0 && case.spent[0].script_pubkey[0] != 0x51;
            case.spent[0].script_pubkey[10] ^= u8::from(is_false);
            let captured = case.run(|context| capture_input(context, 0, Flags::MANDATORY, &mut obligations));
            assert_eq!(captured, Captured::Accepted);
            expected.push(!is_false);
        }
        assert_eq!(obligations.lists().hashes_hold(), expected, "every {period}th");
        assert_eq!(obligations.settle(&Reference), expected, "every {period}th");
    }
}

fn check_equal(case: &Case, flags: Flags, expected: Captured, name: &str) {
    let (by_template, interpreted) = case.run(|context| captures(context, flags));
    let by_template = with_hashes_settled(by_template);
    assert_eq!(by_template, interpreted, "{name} {flags}");
    assert_eq!(by_template.0, expected, "{name} {flags}");
}

/// The result of a capture, and the obligations it recorded besides hashes.
type Entered = (Captured, ObligationLists);

fn captures(context: &TxContext<'_>, flags: Flags) -> (Entered, Entered) {
    let mut by_template = Obligations::new();
    let mut interpreted = Obligations::new();
    let first = capture_input(context, 0, flags, &mut by_template);
    let second = capture_input_interpreted(context, 0, flags, &mut interpreted);
    assert_eq!(interpreted.lists(), &interpreted.lists().without_hashes(), "the interpreter computes hashes at once");
    ((first, by_template.lists().clone()), (second, interpreted.lists().clone()))
}

/// Settles the hashes. If one is false, the result is that of a capture that proves nothing, as in the interpreter.
fn with_hashes_settled((captured, lists): Entered) -> Entered {
    if lists.hashes_hold() == [false] {
        (Captured::Exact, ObligationLists::default())
    } else {
        (captured, lists.without_hashes())
    }
}

/// One change of a spend.
#[derive(Clone, Debug)]
enum Mutation {
    FlipSigBit(usize, u8),
    FlipWitnessBit(usize, usize, u8),
    FlipPubkeyBit(usize, u8),
    InsertSigByte(usize, u8),
    RemoveSigByte(usize),
    InsertWitness(usize, Vec<u8>),
    RemoveWitness(usize),
    SwapWitness(usize, usize),
    SetWitnessEmpty(usize),
    GrowWitness(usize, usize),
    Sequence(u32),
    Version(u32),
    ScriptSig(Vec<u8>),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let bytes =
        || prop_oneof![Just(vec![]), Just(vec![1]), Just(vec![0x50, 1]), prop::collection::vec(any::<u8>(), 0..80)];
    prop_oneof![
        (any::<usize>(), 0..8_u8).prop_map(|(at, bit)| Mutation::FlipSigBit(at, bit)),
        (any::<usize>(), any::<usize>(), 0..8_u8).prop_map(|(item, at, bit)| Mutation::FlipWitnessBit(item, at, bit)),
        (any::<usize>(), 0..8_u8).prop_map(|(at, bit)| Mutation::FlipPubkeyBit(at, bit)),
        (any::<usize>(), prop_oneof![any::<u8>(), Just(0), Just(0x4c), Just(0x51), Just(0xab)])
            .prop_map(|(at, byte)| Mutation::InsertSigByte(at, byte)),
        any::<usize>().prop_map(Mutation::RemoveSigByte),
        (any::<usize>(), bytes()).prop_map(|(at, item)| Mutation::InsertWitness(at, item)),
        any::<usize>().prop_map(Mutation::RemoveWitness),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Mutation::SwapWitness(a, b)),
        any::<usize>().prop_map(Mutation::SetWitnessEmpty),
        (any::<usize>(), 1..600_usize).prop_map(|(item, by)| Mutation::GrowWitness(item, by)),
        any::<u32>().prop_map(Mutation::Sequence),
        any::<u32>().prop_map(Mutation::Version),
        bytes().prop_map(Mutation::ScriptSig),
    ]
}

impl Mutation {
    fn apply(&self, case: &mut Case) {
        let flip = |bytes: &mut Vec<u8>, at: usize, bit: u8| {
            if !bytes.is_empty() {
                let at = at % bytes.len();
                bytes[at] ^= 1 << bit;
            }
        };
        let MutInput { script_sig, sequence, witness, .. } = &mut case.tx.inputs[0];
        let (size, count) = (script_sig.len(), witness.len());
        match self {
            Mutation::FlipSigBit(at, bit) => flip(script_sig, *at, *bit),
            Mutation::FlipPubkeyBit(at, bit) => flip(&mut case.spent[0].script_pubkey, *at, *bit),
            Mutation::FlipWitnessBit(item, at, bit) if count > 0 => flip(&mut witness[item % count], *at, *bit),
            Mutation::InsertSigByte(at, byte) => script_sig.insert(at % (size + 1), *byte),
            Mutation::RemoveSigByte(at) if size > 0 => drop(script_sig.remove(at % size)),
            Mutation::InsertWitness(at, item) => witness.insert(at % (count + 1), item.clone()),
            Mutation::RemoveWitness(at) if count > 0 => drop(witness.remove(at % count)),
            Mutation::SwapWitness(a, b) if count > 0 => witness.swap(a % count, b % count),
            Mutation::SetWitnessEmpty(item) if count > 0 => witness[item % count].clear(),
            Mutation::GrowWitness(item, by) if count > 0 => {
                let item = &mut witness[item % count];
                item.resize(item.len() + by, 7);
            }
            Mutation::Sequence(value) => *sequence = *value,
            Mutation::Version(value) => case.tx.version = *value,
            Mutation::ScriptSig(bytes) => *script_sig = bytes.clone(),
            _ => {}
        }
    }
}

/// Any set of flags that Core accepts, the common ones more often.
fn legal_flags() -> impl Strategy<Value = Flags> {
    let any_legal = (0..1_u32 << 21).prop_map(|bits| {
        let mut flags = Flags(bits);
        if flags.contains(Flags::CLEANSTACK) {
            flags |= Flags::WITNESS;
        }
        if flags.contains(Flags::WITNESS) {
            flags |= Flags::P2SH;
        }
        flags
    });
    prop_oneof![Just(Flags::MANDATORY), Just(standard()), Just(Flags::P2SH), Just(Flags::NONE), any_legal]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Mutated or not, under any flags: template and interpreter record the same obligations and have the same result,
    /// and capture with settling equals exact mode.
    #[test]
    fn templates_are_the_interpreter(
        which in any::<prop::sample::Index>(),
        mutations in prop::collection::vec(mutation(), 0..3),
        flags in legal_flags(),
    ) {
        static CASES: std::sync::LazyLock<Vec<(String, Case)>> = std::sync::LazyLock::new(well_formed);
        let (name, case) = which.get(&CASES);
        let mut case = case.clone();
        mutations.iter().for_each(|mutation| mutation.apply(&mut case));
        case.try_run(|context| {
            let (by_template, interpreted) = captures(context, flags);
            prop_assert_eq!(
                with_hashes_settled(by_template), interpreted, "{} {:?} {}", name, mutations, flags
            );
            let exact = verify_input(context, 0, flags);
            prop_assert_eq!(verify_input_by_capture(context, 0, flags, &Reference), exact, "{} {:?}", name, mutations);
            Ok(())
        }).unwrap_or(Ok(()))?;
    }
}

/// Spends close to the known shapes are left to the interpreter, which accepts them.
#[test]
fn odd_but_valid_spends_are_left_to_the_interpreter() {
    let mut longer_push = p2pkh(1, false);
    let script_sig = &mut longer_push.tx.inputs[0].script_sig;
    script_sig.insert(0, 0x4c);
    let mut dummy = multisig(Wrap::Bare, 1, 1, &[0], 1);
    dummy.tx.inputs[0].script_sig[0] = 0x51;
    let mut nop = p2pkh(1, false);
    nop.tx.inputs[0].script_sig.push(0x61);
    let annex = p2tr_key_path(0, Some(vec![0x50, 1]));
    let flags = Flags::P2SH | Flags::DERSIG | Flags::WITNESS | Flags::TAPROOT;
    for case in [longer_push, dummy, nop, annex] {
        let recognised =
            case.run(|context| verify_by_template(context, 0, flags, &mut Inline, &mut LegacyCache::new()));
        assert!(!recognised);
        check_equal(&case, flags, Captured::Accepted, "odd");
        assert_eq!(case.run(|context| verify_input(context, 0, flags)), Ok(()));
    }
}
