//! The rules of BIP-0341 and BIP-0342, each accepted and refused by hand-made spends.

use crate::support::*;
use lydian_script::builder::scripts;
use lydian_script::opcodes::*;
use lydian_script::{Flags, ScriptBuilder, ScriptError, TaprootExt};

const FLAGS: Flags = Flags::MANDATORY;

fn script() -> ScriptBuilder {
    ScriptBuilder::new()
}

fn checksig_leaf() -> Leaf {
    Leaf::new(0xc0, &script().push_slice(&x_only(1)).op(OP_CHECKSIG).into_bytes(), &[[3; 32]])
}

/// checklist: 52
#[test]
fn taproot_is_a_flag() {
    let mut case = p2tr_key_path(0, None);
    check(&case, FLAGS, Ok(()));
    case.tx.inputs[0].witness[0][5] ^= 1;
    check(&case, FLAGS, Err(ScriptError::SchnorrSig));
    check(&case, FLAGS.without(Flags::TAPROOT), Ok(()));
    case.tx.inputs[0].witness.clear();
    check(&case, FLAGS, Err(ScriptError::WitnessProgramWitnessEmpty));
}

/// checklist: 52
#[test]
fn schnorr_signatures_have_64_bytes_or_65_with_a_hash_type_that_is_defined_and_not_zero() {
    for hash_type in [0, 1, 2, 3, 0x81, 0x82, 0x83] {
        check(&p2tr_key_path(hash_type, None), FLAGS, Ok(()));
        let leaf = checksig_leaf();
        check(&leaf.spend(&[leaf.sign(1, hash_type)]), FLAGS, Ok(()));
    }
    let good = p2tr_key_path(0, None);
    let leaf = checksig_leaf();
    let good_in_leaf = leaf.sign(1, 0);
    let key_path = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut case = good.clone();
        change(&mut case.tx.inputs[0].witness[0]);
        case
    };
    let in_leaf = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut signature = good_in_leaf.clone();
        change(&mut signature);
        leaf.spend(&[signature])
    };
    for undefined in [0, 4, 0x7f, 0x80, 0x84, 0xff] {
        check(&key_path(&|signature| signature.push(undefined)), FLAGS, Err(ScriptError::SchnorrSigHashType));
        check(&in_leaf(&|signature| signature.push(undefined)), FLAGS, Err(ScriptError::SchnorrSigHashType));
    }
    for size in [1, 63, 66, 128] {
        check(&key_path(&|signature| signature.resize(size, 1)), FLAGS, Err(ScriptError::SchnorrSigSize));
        check(&in_leaf(&|signature| signature.resize(size, 1)), FLAGS, Err(ScriptError::SchnorrSigSize));
    }
    // An empty signature has an invalid size in a key path, and is false in tapscript.
    check(&key_path(&Vec::clear), FLAGS, Err(ScriptError::SchnorrSigSize));
    check(&in_leaf(&Vec::clear), FLAGS, Err(ScriptError::EvalFalse));
    check(&in_leaf(&|signature| signature[63] ^= 1), FLAGS, Err(ScriptError::SchnorrSig));
}

/// checklist: 38, 52
#[test]
fn single_without_an_output_of_the_index_is_undefined() {
    let mut case = p2tr_key_path(3, None);
    case.tx.outputs.clear();
    check(&case, FLAGS, Err(ScriptError::SchnorrSigHashType));
    case.tx.inputs[0].witness[0][64] = 0x83;
    check(&case, FLAGS, Err(ScriptError::SchnorrSigHashType));
}

/// checklist: 52, 53
#[test]
fn an_annex_is_the_last_of_at_least_two_elements_that_begins_with_0x50() {
    check(&p2tr_key_path(0, Some(vec![0x50])), FLAGS, Ok(()));
    check(&p2tr_key_path(1, Some(vec![0x50, 1, 2])), FLAGS, Ok(()));
    // The signed message depends on whether there is an annex, and on its content.
    let mut case = p2tr_key_path(0, Some(vec![0x50, 1]));
    case.tx.inputs[0].witness[1] = vec![0x50, 2];
    check(&case, FLAGS, Err(ScriptError::SchnorrSig));
    case.tx.inputs[0].witness.pop();
    check(&case, FLAGS, Err(ScriptError::SchnorrSig));
    let mut case = p2tr_key_path(0, None);
    case.tx.inputs[0].witness.push(vec![0x50]);
    check(&case, FLAGS, Err(ScriptError::SchnorrSig));
    // Another last element makes it a script path; an empty one is a control block of invalid size.
    case.tx.inputs[0].witness[1] = vec![0x51];
    check(&case, FLAGS, Err(ScriptError::TaprootWrongControlSize));
    case.tx.inputs[0].witness[1] = vec![];
    check(&case, FLAGS, Err(ScriptError::TaprootWrongControlSize));
    // On its own it is a signature.
    case.tx.inputs[0].witness = vec![vec![0x50]];
    check(&case, FLAGS, Err(ScriptError::SchnorrSigSize));
    // Only one annex is removed.
    case.tx.inputs[0].witness = vec![vec![0x50], vec![0x50], vec![0x50]];
    check(&case, FLAGS, Err(ScriptError::TaprootWrongControlSize));
}

/// checklist: 52
#[test]
fn control_blocks_have_33_bytes_and_whole_nodes() {
    let leaf = Leaf::new(0xc0, &[OP_1], &[[3; 32], [4; 32]]);
    check(&leaf.spend(&[]), FLAGS, Ok(()));
    for size in [0, 1, 32, 34, 64, 66, 96, 98] {
        let mut case = leaf.spend(&[]);
        case.tx.inputs[0].witness[1].resize(size, 5);
        check(&case, FLAGS, Err(ScriptError::TaprootWrongControlSize));
    }
    for size in [33, 65, 129] {
        let mut case = leaf.spend(&[]);
        case.tx.inputs[0].witness[1].resize(size, 5);
        check(&case, FLAGS, Err(ScriptError::WitnessProgramMismatch));
    }
}

/// checklist: 52
#[test]
fn the_control_block_commits_to_parity_version_key_path_and_script() {
    let leaf = Leaf::new(0xc0, &[OP_1], &[[3; 32]]);
    for at in 0..leaf.control.len() {
        for bit in 0..8 {
            let mut case = leaf.spend(&[]);
            case.tx.inputs[0].witness[1][at] ^= 1 << bit;
            // A first byte of 0x50 would be an annex, but it differs from the control block's in more than one bit.
            check(&case, FLAGS, Err(ScriptError::WitnessProgramMismatch));
        }
    }
    let mut case = leaf.spend(&[]);
    case.tx.inputs[0].witness[0] = vec![OP_2];
    check(&case, FLAGS, Err(ScriptError::WitnessProgramMismatch));
}

/// checklist: 52
#[test]
fn unknown_leaf_versions_are_anyones() {
    for version in [0xc2, 0x66, 0xfe, 0x7e] {
        let case = Leaf::new(version, &[OP_RETURN], &[]).spend(&[]);
        check(&case, FLAGS, Ok(()));
        let discouraged = FLAGS | Flags::DISCOURAGE_UPGRADABLE_TAPROOT_VERSION;
        check(&case, discouraged, Err(ScriptError::DiscourageUpgradableTaprootVersion));
    }
    check(&Leaf::new(0xc0, &[OP_RETURN], &[]).spend(&[]), FLAGS, Err(ScriptError::OpReturn));
}

/// checklist: 52
#[test]
fn op_success_overrides_all_that_follows_but_not_what_cannot_be_read_before() {
    let flags = FLAGS | Flags::DISCOURAGE_OP_SUCCESS;
    for opcode in (0..=255).filter(|&opcode| is_op_success(opcode)) {
        let leaf = Leaf::new(0xc0, &[OP_RETURN, opcode, 75, 1], &[]);
        check(&leaf.spend(&[vec![1; 600]]), FLAGS, Ok(()));
        check(&leaf.spend(&[]), flags, Err(ScriptError::DiscourageOpSuccess));
        // Not executed.
        check(&Leaf::new(0xc0, &[OP_0, OP_IF, opcode], &[]).spend(&[]), FLAGS, Ok(()));
        check(&Leaf::new(0xc0, &[1, opcode, OP_RETURN], &[]).spend(&[]), FLAGS, Err(ScriptError::OpReturn));
        check(&Leaf::new(0xc0, &[75, opcode], &[]).spend(&[]), FLAGS, Err(ScriptError::BadOpcode));
    }
    // An oversized push before or after the opcode does not matter: by BIP-0342, success comes first.
    let big = script().push_slice(&[1; 521]).op(OP_CAT).into_bytes();
    check(&Leaf::new(0xc0, &big, &[]).spend(&[]), FLAGS, Ok(()));
    for opcode in [OP_VERIF, OP_VERNOTIF] {
        check(
            &Leaf::new(0xc0, &[OP_0, OP_IF, opcode, OP_ENDIF, OP_1], &[]).spend(&[]),
            FLAGS,
            Err(ScriptError::BadOpcode),
        );
    }
}

/// checklist: 44
#[test]
fn minimalif_is_consensus() {
    let leaf = Leaf::new(0xc0, &script().op(OP_IF).op(OP_1).op(OP_ELSE).op(OP_1).op(OP_ENDIF).into_bytes(), &[]);
    for odd in [&[2][..], &[0], &[1, 0], &[0x80], &[0x81]] {
        check(&leaf.spend(&[odd.to_vec()]), FLAGS, Err(ScriptError::TapscriptMinimalIf));
    }
    check(&leaf.spend(&[vec![]]), FLAGS, Ok(()));
    check(&leaf.spend(&[vec![1]]), FLAGS, Ok(()));
    let leaf = Leaf::new(0xc0, &script().op(OP_NOTIF).op(OP_ENDIF).op(OP_1).into_bytes(), &[]);
    check(&leaf.spend(&[vec![2]]), FLAGS, Err(ScriptError::TapscriptMinimalIf));
}

/// checklist: 50
#[test]
fn one_true_element_is_left() {
    check(&Leaf::new(0xc0, &[OP_1, OP_1], &[]).spend(&[]), FLAGS, Err(ScriptError::CleanStack));
    check(&Leaf::new(0xc0, &[OP_1], &[]).spend(&[vec![]]), FLAGS, Err(ScriptError::CleanStack));
    check(&Leaf::new(0xc0, &[], &[]).spend(&[]), FLAGS, Err(ScriptError::CleanStack));
    check(&Leaf::new(0xc0, &[], &[]).spend(&[vec![1]]), FLAGS, Ok(()));
    check(&Leaf::new(0xc0, &[OP_0], &[]).spend(&[]), FLAGS, Err(ScriptError::EvalFalse));
}

/// Each non-empty signature uses 50 weight units of a budget of the witness size plus 50.
///
/// checklist: 52
#[test]
fn signatures_use_up_the_weight_of_the_witness() {
    // Keys of unknown type cost the same and need no signing. A single one-byte signature is used for `count` checks.
    let spend = |count: usize, padding: usize| {
        let checks = (0..count).fold(script(), |script, _| script.op(OP_2DUP).op(OP_CHECKSIGVERIFY));
        let whole = script().raw(&vec![OP_NOP; padding]).op(OP_1).raw(&checks.into_bytes());
        let leaf = Leaf::new(0xc0, &whole.op(OP_DROP).into_bytes(), &[]);
        let case = leaf.spend(&[vec![1]]);
        let size = case.run(|context| context.tx().input(0).witness.serialized_size());
        (case, size)
    };
    for count in [2, 3, 5] {
        let size_needed = 50 * count - 50;
        let (_, base) = spend(count, 0);
        let padding = size_needed - base;
        let (enough, size) = spend(count, padding);
        assert_eq!(size, size_needed);
        check(&enough, FLAGS, Ok(()));
        check(&spend(count, padding - 1).0, FLAGS, Err(ScriptError::TapscriptValidationWeight));
    }
}

/// checklist: 52
#[test]
fn the_annex_counts_towards_the_weight() {
    let checks = (0..4).fold(script(), |script, _| script.op(OP_2DUP).op(OP_CHECKSIGVERIFY));
    let leaf = Leaf::new(0xc0, &script().op(OP_1).raw(&checks.into_bytes()).op(OP_DROP).into_bytes(), &[]);
    let mut case = leaf.spend(&[vec![1]]);
    check(&case, FLAGS, Err(ScriptError::TapscriptValidationWeight));
    case.tx.inputs[0].witness.push([vec![0x50], vec![0; 120]].concat());
    check(&case, FLAGS, Ok(()));
}

/// checklist: 52
#[test]
fn an_empty_signature_costs_nothing() {
    let checks = (0..40).fold(script(), |script, _| script.op(OP_2DUP).op(OP_CHECKSIG).op(OP_NOT).op(OP_VERIFY));
    let leaf = Leaf::new(0xc0, &script().push_slice(&x_only(1)).raw(&checks.into_bytes()).op(OP_NIP).into_bytes(), &[]);
    check(&leaf.spend(&[vec![]]), FLAGS, Ok(()));
}

/// checklist: 52
#[test]
fn checksigadd_counts_signatures() {
    let add = |number: i64| script().push_int(number).push_slice(&x_only(1)).op(OP_CHECKSIGADD);
    let leaf = Leaf::new(0xc0, &add(6).op(OP_7).op(OP_NUMEQUAL).into_bytes(), &[]);
    check(&leaf.spend(&[leaf.sign(1, 0)]), FLAGS, Ok(()));
    check(&leaf.spend(&[vec![]]), FLAGS, Err(ScriptError::EvalFalse));
    check(&leaf.spend(&[leaf.sign(2, 0)]), FLAGS, Err(ScriptError::SchnorrSig));
    let unchanged = Leaf::new(0xc0, &add(-1).op(OP_1NEGATE).op(OP_NUMEQUAL).into_bytes(), &[]);
    check(&unchanged.spend(&[vec![]]), FLAGS, Ok(()));
    // Its number is an operand: at most four bytes, which the sum may exceed.
    let max = Leaf::new(0xc0, &add(0x7fff_ffff).op(OP_SIZE).op(OP_5).op(OP_EQUAL).op(OP_NIP).into_bytes(), &[]);
    check(&max.spend(&[max.sign(1, 0)]), FLAGS, Ok(()));
    let above = Leaf::new(0xc0, &add(0x8000_0000).into_bytes(), &[]);
    check(&above.spend(&[vec![]]), FLAGS, Err(ScriptError::ScriptNum));
    let too_few = Leaf::new(0xc0, &[OP_1, OP_1, OP_CHECKSIGADD], &[]);
    check(&too_few.spend(&[]), FLAGS, Err(ScriptError::InvalidStackOperation));
}

/// A tapscript multisig: any two of three, in the order of keys.
#[test]
fn checksigadd_as_multisig() {
    let start = script().push_slice(&x_only(1)).op(OP_CHECKSIG);
    let whole = [2, 3].iter().fold(start, |script, &key| script.push_slice(&x_only(key)).op(OP_CHECKSIGADD));
    let leaf = Leaf::new(0xc0, &whole.op(OP_2).op(OP_NUMEQUAL).into_bytes(), &[]);
    let signature = |key| leaf.sign(key, 0);
    check(&leaf.spend(&[vec![], signature(2), signature(1)]), FLAGS, Ok(()));
    check(&leaf.spend(&[signature(3), vec![], signature(1)]), FLAGS, Ok(()));
    check(&leaf.spend(&[signature(3), signature(2), vec![]]), FLAGS, Ok(()));
    check(&leaf.spend(&[vec![], signature(2), vec![]]), FLAGS, Err(ScriptError::EvalFalse));
    check(&leaf.spend(&[signature(3), signature(2), signature(1)]), FLAGS, Err(ScriptError::EvalFalse));
}

/// checklist: 52
#[test]
fn key_types() {
    let with_key = |key: &[u8]| Leaf::new(0xc0, &script().push_slice(key).op(OP_CHECKSIG).into_bytes(), &[]);
    for size in [1, 31, 33, 65] {
        let leaf = with_key(&vec![2; size]);
        check(&leaf.spend(&[vec![1]]), FLAGS, Ok(()));
        check(&leaf.spend(&[vec![]]), FLAGS, Err(ScriptError::EvalFalse));
        let discouraged = FLAGS | Flags::DISCOURAGE_UPGRADABLE_PUBKEYTYPE;
        for signature in [vec![1], vec![]] {
            check(&leaf.spend(&[signature]), discouraged, Err(ScriptError::DiscourageUpgradablePubkeyType));
        }
    }
    for signature in [vec![], vec![1], vec![1; 64]] {
        check(&with_key(&[]).spend(&[signature]), FLAGS, Err(ScriptError::TapscriptEmptyPubkey));
    }
    // 32 bytes that are not a point on the curve: an empty signature is merely false.
    let off_curve = with_key(&[0xff; 32]);
    check(&off_curve.spend(&[vec![1; 64]]), FLAGS, Err(ScriptError::SchnorrSig));
    check(&off_curve.spend(&[vec![]]), FLAGS, Err(ScriptError::EvalFalse));
}

/// checklist: 52
#[test]
fn checkmultisig_is_not_available() {
    for opcode in [OP_CHECKMULTISIG, OP_CHECKMULTISIGVERIFY] {
        let leaf = Leaf::new(0xc0, &[OP_0, OP_0, OP_0, opcode, OP_1], &[]);
        check(&leaf.spend(&[]), FLAGS, Err(ScriptError::TapscriptCheckMultisig));
        check(&Leaf::new(0xc0, &[OP_0, OP_IF, opcode, OP_ENDIF, OP_1], &[]).spend(&[]), FLAGS, Ok(()));
    }
}

/// checklist: 37, 53
#[test]
fn signatures_cover_the_position_of_the_last_executed_code_separator() {
    // Operations 0 to 6; the skipped separator is operation 3.
    let start = script().op(OP_CODESEPARATOR).op(OP_0).op(OP_IF).op(OP_CODESEPARATOR).op(OP_ENDIF);
    let leaf = Leaf::new(0xc0, &start.push_slice(&x_only(1)).op(OP_CHECKSIG).into_bytes(), &[]);
    for (position, expected) in
        [(0, Ok(())), (3, Err(ScriptError::SchnorrSig)), (u32::MAX, Err(ScriptError::SchnorrSig))]
    {
        let ext = TaprootExt { annex_hash: None, leaf: Some((leaf.hash, position)) };
        let digest = Case::spending(leaf.script_pubkey.clone()).taproot_digest(0, &ext);
        check(&leaf.spend(&[sign_schnorr(1, None, digest, 0)]), FLAGS, expected);
    }
    // A policy for legacy scripts only.
    check(&Leaf::new(0xc0, &[OP_CODESEPARATOR, OP_1], &[]).spend(&[]), FLAGS | Flags::CONST_SCRIPTCODE, Ok(()));
}

/// An output key that is not a point on the curve cannot be spent, and one of zeros is also a false element.
#[test]
fn output_keys_off_the_curve() {
    let case = |key: [u8; 32], witness: Vec<Vec<u8>>| Case::with_witness(scripts::witness_program(1, &key), witness);
    check(&case([0xff; 32], vec![vec![1; 64]]), FLAGS, Err(ScriptError::SchnorrSig));
    check(&case([0; 32], vec![vec![1; 64]]), FLAGS, Err(ScriptError::EvalFalse));
    let leaf = Leaf::new(0xc0, &[OP_1], &[]);
    let mut control = leaf.control.clone();
    control[1..33].fill(0xff);
    check(&case([7; 32], vec![vec![OP_1], control]), FLAGS, Err(ScriptError::WitnessProgramMismatch));
}
