//! Every limit of `limits.rs` at and above, as scripts reach it, and the limits that tapscript does not have.

use crate::support::*;
use lydian_script::builder::scripts;
use lydian_script::limits::*;
use lydian_script::opcodes::*;
use lydian_script::{Flags, ScriptBuilder, ScriptError};

const FLAGS: Flags = Flags::MANDATORY;

fn script() -> ScriptBuilder {
    ScriptBuilder::new()
}

fn nops(count: usize) -> ScriptBuilder {
    script().raw(&vec![OP_NOP; count])
}

/// limit: MAX_SCRIPT_ELEMENT_SIZE at
/// limit: MAX_SCRIPT_ELEMENT_SIZE above
///
/// checklist: 46
#[test]
fn elements_have_at_most_520_bytes_when_pushed() {
    let push = |size| script().push_slice(&vec![1; size]);
    check_script(push(MAX_SCRIPT_ELEMENT_SIZE), FLAGS, Ok(()));
    check_script(push(MAX_SCRIPT_ELEMENT_SIZE + 1), FLAGS, Err(ScriptError::PushSize));
    // Whether executed or not.
    let skipped = |size| script().op(OP_0).op(OP_IF).raw(&push(size).into_bytes()).op(OP_ENDIF).op(OP_1);
    check_script(skipped(MAX_SCRIPT_ELEMENT_SIZE), FLAGS, Ok(()));
    check_script(skipped(MAX_SCRIPT_ELEMENT_SIZE + 1), FLAGS, Err(ScriptError::PushSize));
    check(&leaf(skipped(MAX_SCRIPT_ELEMENT_SIZE)), FLAGS, Ok(()));
    check(&leaf(skipped(MAX_SCRIPT_ELEMENT_SIZE + 1)), FLAGS, Err(ScriptError::PushSize));
    // A redeem script is an element too.
    let redeem_script = |size| script().push_slice(&vec![1; size - 4]).op(OP_NOP).into_bytes();
    check(&Wrap::P2sh.spend(&redeem_script(MAX_SCRIPT_ELEMENT_SIZE), &[]), FLAGS, Ok(()));
    check(&Wrap::P2sh.spend(&redeem_script(MAX_SCRIPT_ELEMENT_SIZE + 1), &[]), FLAGS, Err(ScriptError::PushSize));
}

/// limit: MAX_SCRIPT_ELEMENT_SIZE at
/// limit: MAX_SCRIPT_ELEMENT_SIZE above
///
/// checklist: 50
#[test]
fn witness_elements_have_at_most_520_bytes_at_the_start() {
    let drop = script().op(OP_DROP).op(OP_1).into_bytes();
    for (size, expected) in
        [(MAX_SCRIPT_ELEMENT_SIZE, Ok(())), (MAX_SCRIPT_ELEMENT_SIZE + 1, Err(ScriptError::PushSize))]
    {
        check(&Wrap::P2wsh.spend(&drop, &[vec![1; size]]), FLAGS, expected);
        check(&Wrap::P2shP2wsh.spend(&drop, &[vec![1; size]]), FLAGS, expected);
        check(&Leaf::new(0xc0, &drop, &[]).spend(&[vec![1; size]]), FLAGS, expected);
    }
    let mut case = p2wpkh(1);
    case.tx.inputs[0].witness[0] = vec![0x30; MAX_SCRIPT_ELEMENT_SIZE + 1];
    check(&case, FLAGS, Err(ScriptError::PushSize));
}

/// limit: MAX_OPS_PER_SCRIPT at
/// limit: MAX_OPS_PER_SCRIPT above
///
/// checklist: 40, 46
#[test]
fn scripts_have_at_most_201_operations() {
    for (count, expected) in [(MAX_OPS_PER_SCRIPT, Ok(())), (MAX_OPS_PER_SCRIPT + 1, Err(ScriptError::OpCount))] {
        check_script(nops(count).op(OP_1), FLAGS, expected);
        // Pushes do not count, OP_RESERVED counts as a push, and each script has its own count.
        check_script(nops(count - 2).raw(&[OP_0, OP_IF, OP_RESERVED, OP_ENDIF, OP_16]), FLAGS, expected);
        check_bare(nops(count), nops(count).op(OP_1), Flags::NONE, expected);
        // Not executed, but counted.
        let skipped = script().op(OP_0).op(OP_IF).raw(&vec![OP_NOP; count - 2]).op(OP_ENDIF).op(OP_1);
        check_script(skipped, FLAGS, expected);
        check(&Wrap::P2wsh.spend(&nops(count).op(OP_1).into_bytes(), &[]), FLAGS, expected);
        // The keys of a multisig are counted.
        let keys: Vec<_> = (0..20).map(public).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let multisig = scripts::multisig(0, &keys);
        check_script(script().op(OP_0).raw(&multisig).raw(&vec![OP_NOP; count - 21]), FLAGS, expected);
        check_script(script().op(OP_0).raw(&vec![OP_NOP; count - 21]).raw(&multisig), FLAGS, expected);
    }
}

/// limit: MAX_PUBKEYS_PER_MULTISIG at
/// limit: MAX_PUBKEYS_PER_MULTISIG above
///
/// checklist: 40
#[test]
fn a_multisig_has_at_most_20_keys() {
    for wrap in [Wrap::Bare, Wrap::P2wsh] {
        check(&multisig(wrap, 1, 20, &[0], 1), FLAGS, Ok(()));
        check(&multisig(wrap, 1, 20, &[19], 1), FLAGS, Ok(()));
        check(&multisig(wrap, 20, 20, &(0..20).collect::<Vec<_>>(), 1), FLAGS, Ok(()));
        check(&multisig(wrap, 10, 20, &(0..10).map(|i| 2 * i).collect::<Vec<_>>(), 1), FLAGS, Ok(()));
        check(&multisig(wrap, 1, 21, &[0], 1), FLAGS, Err(ScriptError::PubkeyCount));
    }
}

/// limit: MAX_SCRIPT_SIZE at
/// limit: MAX_SCRIPT_SIZE above
///
/// checklist: 46
#[test]
fn scripts_have_at_most_10_000_bytes() {
    // 19 pushes of 523 bytes, then one that fills up the size.
    let sized = |size: usize| {
        let pushes = (0..19).fold(script(), |script, _| script.push_slice(&[1; 520]));
        pushes.push_slice(&vec![1; size - 19 * 523 - 1]).into_bytes()
    };
    for (size, expected) in [(MAX_SCRIPT_SIZE, Ok(())), (MAX_SCRIPT_SIZE + 1, Err(ScriptError::ScriptSize))] {
        assert_eq!(sized(size).len(), size);
        check(&Case::spending(sized(size)), FLAGS, expected);
        check(&Case::with_script_sig(vec![OP_1], sized(size)), FLAGS, expected);
    }
    let wrapped = |size: usize| {
        let drops = script().raw(&[OP_2DROP; 9]).op(OP_DROP).into_bytes();
        [sized(size - drops.len()), drops].concat()
    };
    check(&Wrap::P2wsh.spend(&wrapped(MAX_SCRIPT_SIZE), &[]), FLAGS, Ok(()));
    check(&Wrap::P2wsh.spend(&wrapped(MAX_SCRIPT_SIZE + 1), &[]), FLAGS, Err(ScriptError::ScriptSize));
}

/// limit: MAX_STACK_SIZE at
/// limit: MAX_STACK_SIZE above
///
/// checklist: 46
#[test]
fn both_stacks_together_have_at_most_1000_elements() {
    for (count, expected) in [(MAX_STACK_SIZE, Ok(())), (MAX_STACK_SIZE + 1, Err(ScriptError::StackSize))] {
        check_script(script().raw(&vec![OP_1; count]), FLAGS, expected);
        let with_alt = script().op(OP_1).op(OP_TOALTSTACK).raw(&vec![OP_1; count - 1]);
        check_script(with_alt, FLAGS, expected);
        // Counted after each operation, so an operation that pushes three may exceed the limit by more than one.
        check_script(script().raw(&vec![OP_1; count - 3]).op(OP_3DUP), FLAGS, expected);
        // The elements of the scriptSig are on the stack when the scriptPubKey starts.
        check_bare(script().raw(&vec![OP_1; count - 1]), script().op(OP_1), FLAGS, expected);
        // Tapscript also checks the stack at the start; in witness v0 a larger witness is valid if it is dropped first.
        let drops = script().raw(&vec![OP_2DROP; 500]).op(OP_1);
        let operands = vec![vec![]; count];
        check(
            &Leaf::new(0xc0, &drops.into_bytes(), &[]).spend(&operands),
            FLAGS,
            if count == MAX_STACK_SIZE { Ok(()) } else { expected },
        );
    }
    let drops = script().raw(&[OP_2DROP; 150]).raw(&[OP_DEPTH, OP_0, OP_EQUAL]);
    let operands = vec![vec![]; 300];
    check(&Wrap::P2wsh.spend(&drops.into_bytes(), &operands), FLAGS, Ok(()));
}

/// limit: TAPROOT_CONTROL_MAX_NODE_COUNT at
/// limit: TAPROOT_CONTROL_MAX_NODE_COUNT above
///
/// checklist: 52
#[test]
fn a_control_block_has_at_most_128_nodes() {
    let with_nodes = |count| Leaf::new(0xc0, &[OP_1], &vec![[3; 32]; count]).spend(&[]);
    check(&with_nodes(0), FLAGS, Ok(()));
    check(&with_nodes(TAPROOT_CONTROL_MAX_NODE_COUNT), FLAGS, Ok(()));
    check(&with_nodes(TAPROOT_CONTROL_MAX_NODE_COUNT + 1), FLAGS, Err(ScriptError::TaprootWrongControlSize));
}

fn leaf(script: ScriptBuilder) -> Case {
    Leaf::new(0xc0, &script.into_bytes(), &[]).spend(&[])
}

/// checklist: 46, 52
#[test]
fn tapscripts_have_no_limit_of_size_or_operations() {
    check(&leaf(nops(MAX_SCRIPT_SIZE * 11).op(OP_1)), FLAGS, Ok(()));
}

/// Mainnet block 761,249 has 500,001 witness elements in one input. Libraries refused it and wallets stopped.
///
/// checklist: 54
#[test]
fn witnesses_have_no_limit_of_count_or_size_before_the_script_runs() {
    let success = Leaf::new(0xc0, &[0x50], &[]);
    check(&success.spend(&vec![vec![]; 500_001]), FLAGS, Ok(()));
    check(&success.spend(&[vec![7; 300_000]]), FLAGS, Ok(()));
    check(&Leaf::new(0xc0, &[OP_1], &[]).spend(&vec![vec![]; 500_001]), FLAGS, Err(ScriptError::StackSize));
    check(&p2tr_key_path(0, Some([vec![0x50], vec![7; 300_000]].concat())), FLAGS, Ok(()));
    let inscription = (0..600).fold(script().op(OP_0).op(OP_IF), |script, _| script.push_slice(&[7; 520]));
    check(&leaf(inscription.op(OP_ENDIF).op(OP_1)), FLAGS, Ok(()));
}
