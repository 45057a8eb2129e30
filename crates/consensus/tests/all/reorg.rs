//! Competing branches on the plain validator: the branch with the most work wins, among equals the one seen first, and
//! the coins are always those of the winning branch.

use crate::common::*;
use lydian_consensus::{Accepted, Chain, Params, PlainValidator, Rejected, Rule};
use lydian_primitives::build::MutBlock;
use lydian_primitives::{Amount, BlockHash, Height, OutPoint};
use lydian_script::opcodes;

/// A branch of empty blocks. `tag`, an opcode that pushes a true value, makes its coinbases differ from those of other
/// branches.
fn branch(from: BlockHash, height: u32, count: u32, tag: u8) -> Vec<MutBlock> {
    let mut blocks: Vec<MutBlock> = Vec::new();
    let template = World::regtest(0);
    for index in 1..=count {
        let mut block = template.next_block();
        block.header.prev_block = blocks.last().map_or(from, |parent| parent.header.hash());
        block.header.time += height + index;
        let value = lydian_consensus::block_subsidy(Height(height + index), &Params::new(Chain::Regtest));
        block.txs[0] = coinbase(height + index, value);
        block.txs[0].outputs[0].script_pubkey.push(tag);
        block.seal_on_regtest();
        blocks.push(block);
    }
    blocks
}

fn submit_all(validator: &mut PlainValidator, blocks: &[MutBlock]) -> Vec<Accepted> {
    blocks.iter().map(|block| validator.accept_block(parse(block), NOW).unwrap()).collect()
}

/// The state of a validator that has seen only the winning branch.
fn fresh(blocks: &[&[MutBlock]]) -> (Height, BlockHash, [u8; 32], [u8; 32]) {
    let mut validator = PlainValidator::new(Params::new(Chain::Regtest));
    blocks.iter().for_each(|run| drop(submit_all(&mut validator, run)));
    state(&validator)
}

fn state(validator: &PlainValidator) -> (Height, BlockHash, [u8; 32], [u8; 32]) {
    let (height, hash) = validator.tip();
    (height, hash, validator.hash_serialized_3(), validator.muhash())
}

fn genesis() -> BlockHash {
    Params::new(Chain::Regtest).genesis_hash
}

fn last_hash(blocks: &[MutBlock]) -> BlockHash {
    blocks.last().unwrap().header.hash()
}

/// checklist: 33, 97
#[test]
fn most_work_wins_and_the_first_seen_between_equals() {
    let trunk = branch(genesis(), 0, 5, opcodes::OP_1);
    let (left, right) =
        (branch(last_hash(&trunk), 5, 3, opcodes::OP_2), branch(last_hash(&trunk), 5, 4, opcodes::OP_3));
    let mut validator = PlainValidator::new(Params::new(Chain::Regtest));
    submit_all(&mut validator, &trunk);
    submit_all(&mut validator, &left);
    let side = submit_all(&mut validator, &right[..3]);
    assert!(side.iter().all(|accepted| !accepted.is_active && accepted.disconnected == 0));
    assert_eq!(state(&validator), fresh(&[&trunk, &left]), "equal work: the first seen stays");
    let last = submit_all(&mut validator, &right[3..]);
    assert_eq!((last[0].is_active, last[0].disconnected), (true, 3));
    assert_eq!(state(&validator), fresh(&[&trunk, &right]));
    // The first branch wins again when it grows.
    let longer = branch(last_hash(&left), 8, 2, opcodes::OP_2);
    submit_all(&mut validator, &longer);
    assert_eq!(state(&validator), fresh(&[&trunk, &left, &longer]));
}

/// Disconnects a week of blocks and connects another week, with spends in both.
/// checklist: 35, 97
#[test]
fn a_reorganisation_of_1088_blocks() {
    let trunk = branch(genesis(), 0, 101, opcodes::OP_1);
    let mut left = branch(last_hash(&trunk), 101, 1, opcodes::OP_2);
    let coin = OutPoint { txid: trunk[0].txs[0].txid(), vout: 0 };
    left[0].txs.push(spend(&[coin], 49 * Amount::COIN.0));
    let inner = OutPoint { txid: left[0].txs[1].txid(), vout: 0 };
    left[0].txs.push(spend(&[inner], 48 * Amount::COIN.0));
    left[0].seal_on_regtest();
    left.extend(branch(last_hash(&left), 102, 1087, opcodes::OP_2));
    let right = branch(last_hash(&trunk), 101, 1089, opcodes::OP_3);
    let mut validator = PlainValidator::new(Params::new(Chain::Regtest));
    submit_all(&mut validator, &trunk);
    submit_all(&mut validator, &left);
    assert_eq!(validator.tip().0, Height(101 + 1088));
    submit_all(&mut validator, &right);
    assert_eq!(state(&validator), fresh(&[&trunk, &right]));
    let back = branch(last_hash(&left), 1189, 2, opcodes::OP_2);
    submit_all(&mut validator, &back);
    assert_eq!(state(&validator), fresh(&[&trunk, &left, &back]));
}

/// A block in the middle of the longer branch breaks a rule: the validator returns to its former tip and rejects the
/// block's descendants.
/// checklist: 34
#[test]
fn a_branch_that_turns_out_invalid() {
    let trunk = branch(genesis(), 0, 5, opcodes::OP_1);
    let left = branch(last_hash(&trunk), 5, 2, opcodes::OP_2);
    let mut right = branch(last_hash(&trunk), 5, 1, opcodes::OP_3);
    right[0].txs[0].outputs[0].value.0 += 1;
    right[0].seal_on_regtest();
    let bad = last_hash(&right);
    right.extend(branch(bad, 6, 2, opcodes::OP_3));
    let mut validator = PlainValidator::new(Params::new(Chain::Regtest));
    submit_all(&mut validator, &trunk);
    submit_all(&mut validator, &left);
    submit_all(&mut validator, &right[..2]);
    let outcome = validator.accept_block(parse(&right[2]), NOW).unwrap();
    assert!(!outcome.is_active);
    assert_eq!(outcome.invalid.len(), 1);
    assert_eq!((outcome.invalid[0].0, outcome.invalid[0].1.rule), (bad, Rule::BadCbAmount));
    assert_eq!(state(&validator), fresh(&[&trunk, &left]));
    let child = &branch(last_hash(&right), 8, 1, opcodes::OP_3)[0];
    let refused = validator.accept_block(parse(child), NOW).unwrap_err();
    assert!(matches!(refused, Rejected::Violation(violation) if violation.rule == Rule::BadPrevblk));
    assert_eq!(validator.accept_block(parse(&right[0]), NOW), Err(Rejected::DuplicateInvalid));
    // The blocks below the bad one are still a valid base for other branches.
    let third = branch(last_hash(&trunk), 5, 3, opcodes::OP_4);
    submit_all(&mut validator, &third);
    assert_eq!(state(&validator), fresh(&[&trunk, &third]));
}

/// Only the header of a block is known, because its bytes were tampered with. Its child waits, and both connect when
/// the honest bytes arrive.
/// checklist: 17
#[test]
fn children_wait_for_the_honest_bytes() {
    let mut world = World::regtest(3);
    let mut parent = world.next_block();
    parent.seal_on_regtest();
    let mut child = branch(parent.header.hash(), 4, 1, opcodes::OP_9).remove(0);
    child.header.time = parent.header.time + 600;
    child.seal_on_regtest();
    let mut tampered = parent.clone();
    tampered.txs[0].inputs[0].witness[0][5] ^= 1;
    assert_eq!(world.refusal(&tampered), Some(Rule::BadWitnessMerkleMatch));
    let waiting = world.submit(&child).unwrap();
    assert!(!waiting.is_active);
    assert_eq!(world.height(), 3);
    let accepted = world.submit(&parent).unwrap();
    assert!(accepted.is_active);
    assert_eq!(world.validator.tip(), (Height(5), child.header.hash()));
}

/// A longer branch fails at its last block, and its remainder has as much work as the former chain. The plain validator
/// used to stay on the remainder, but Core returns to the chain that was complete first (`CBlockIndexWorkComparator`).
/// Found by submitting random blocks to both validators.
#[test]
fn after_a_failure_the_first_seen_between_equals_wins_again() {
    let trunk = branch(genesis(), 0, 5, opcodes::OP_1);
    let left = branch(last_hash(&trunk), 5, 2, opcodes::OP_2);
    let mut right = branch(last_hash(&trunk), 5, 3, opcodes::OP_3);
    right[2].txs[0].outputs[0].value.0 += 1;
    right[2].seal_on_regtest();
    let mut validator = PlainValidator::new(Params::new(Chain::Regtest));
    submit_all(&mut validator, &trunk);
    submit_all(&mut validator, &left);
    submit_all(&mut validator, &right[..2]);
    let refused = validator.accept_block(parse(&right[2]), NOW).unwrap_err();
    assert!(matches!(refused, Rejected::Violation(violation) if violation.rule == Rule::BadCbAmount));
    assert_eq!(state(&validator), fresh(&[&trunk, &left]));
}

/// Among chains of equal work, a block counts as seen when the last missing body below it arrived, not when its own
/// body arrived: Core's `ReceivedBlockTransactions`. Otherwise a child that had waited for its parent would replace a
/// chain that was complete earlier.
#[test]
fn a_block_is_first_seen_when_its_chain_is_complete() {
    let trunk = branch(genesis(), 0, 5, opcodes::OP_1);
    let left = branch(last_hash(&trunk), 5, 2, opcodes::OP_2);
    let right = branch(last_hash(&trunk), 5, 2, opcodes::OP_3);
    let mut validator = PlainValidator::new(Params::new(Chain::Regtest));
    submit_all(&mut validator, &trunk);
    let mut tampered = right[0].clone();
    tampered.txs[0].inputs[0].witness[0][5] ^= 1;
    assert!(validator.accept_block(parse(&tampered), NOW).is_err(), "only its header is known now");
    submit_all(&mut validator, &right[1..]);
    submit_all(&mut validator, &left);
    submit_all(&mut validator, &right[..1]);
    assert_eq!(state(&validator), fresh(&[&trunk, &left]));
    let longer = branch(last_hash(&right), 7, 1, opcodes::OP_3);
    submit_all(&mut validator, &longer);
    assert_eq!(state(&validator), fresh(&[&trunk, &right, &longer]));
}

/// Two blocks wait for the body of their parent. The one whose own body arrived first wins, regardless of the order of
/// the headers: Core numbers waiting blocks in the order of `m_blocks_unlinked` (found in review).
/// checklist: 33
#[test]
fn waiting_siblings_count_by_their_bodies() {
    let mut world = World::regtest(3);
    let mut parent = world.next_block();
    parent.seal_on_regtest();
    let child = |tag: u8| {
        let mut child = branch(parent.header.hash(), 4, 1, tag).remove(0);
        child.header.time = parent.header.time + 600;
        child.seal_on_regtest();
        child
    };
    let (first, second) = (child(opcodes::OP_7), child(opcodes::OP_8));
    let tampered = |block: &MutBlock| {
        let mut block = block.clone();
        block.txs[0].inputs[0].witness[0][5] ^= 1;
        block
    };
    for block in [tampered(&parent), tampered(&first)] {
        assert_eq!(world.refusal(&block), Some(Rule::BadWitnessMerkleMatch), "only the header is kept");
    }
    assert!(!world.submit(&second).unwrap().is_active);
    assert!(!world.submit(&first).unwrap().is_active);
    assert!(world.submit(&parent).unwrap().is_active);
    assert_eq!(world.validator.tip().1, second.header.hash());
}

/// A known header is not compared with the clock again: its body may arrive after the clock was set back.
/// checklist: 22
#[test]
fn a_known_header_is_not_from_the_future() {
    let mut world = World::regtest(3);
    let mut block = world.next_block();
    block.header.time = NOW;
    block.seal_on_regtest();
    let mut tampered = block.clone();
    tampered.txs[0].inputs[0].witness[0][5] ^= 1;
    assert_eq!(world.refusal(&tampered), Some(Rule::BadWitnessMerkleMatch));
    assert!(world.validator.accept_block(parse(&block), NOW - 100_000).unwrap().is_active);
}

/// Median times are computed from a block's own ancestors, not from the active chain.
/// checklist: 22, 24
#[test]
fn median_times_are_of_the_own_branch() {
    let trunk = branch(genesis(), 0, 5, opcodes::OP_1);
    let active = branch(last_hash(&trunk), 5, 14, opcodes::OP_2);
    let mut side = branch(last_hash(&trunk), 5, 1, opcodes::OP_3);
    let late = 400_000;
    side[0].header.time += late;
    side[0].seal_on_regtest();
    for height in 7..18 {
        let mut next = branch(last_hash(&side), height - 1, 1, opcodes::OP_3).remove(0);
        next.header.time = side[0].header.time + height;
        next.seal_on_regtest();
        side.push(next);
    }
    let mut validator = PlainValidator::new(Params::new(Chain::Regtest));
    for run in [&trunk, &active, &side] {
        submit_all(&mut validator, run);
    }
    let mut early = branch(last_hash(&side), 17, 1, opcodes::OP_4).remove(0);
    early.header.time = side[0].header.time;
    early.seal_on_regtest();
    assert!(early.header.time > active.last().unwrap().header.time);
    let refused = validator.accept_block(parse(&early), NOW).unwrap_err();
    assert!(matches!(refused, Rejected::Violation(violation) if violation.rule == Rule::TimeTooOld), "{refused}");
}
