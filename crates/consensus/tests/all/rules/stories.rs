//! Situations that single rules must handle correctly: order, edge cases, and the bugs of other nodes.

use super::cases::*;
use crate::common::*;
use lydian_consensus::block::{check_block_in_chain, is_block_mutated};
use lydian_consensus::limits::*;
use lydian_consensus::tx::check_transaction;
use lydian_consensus::{
    Ancestor, Chain, CheckedBlock, Coin, CoinView, HeaderView, Params, Parent, Rejected, Rule, fund,
};
use lydian_primitives::build::MutBlock;
use lydian_primitives::{Amount, BlockHash, Height, OutPoint};
use lydian_script::{ScriptBuilder, ScriptError, opcodes};

/// Inputs whose own value is out of range, although no rule lets such a coin into the set.
/// checklist: 1
#[test]
fn an_input_out_of_range_is_refused() {
    assert_eq!(with_coins(-1, 5), Some(Rule::TxInputvaluesOutofrange));
    assert_eq!(with_coins(Amount::MAX_MONEY.0 + 1, 5), Some(Rule::TxInputvaluesOutofrange));
}

/// Core stops at the first output with a fault, regardless of faults in later outputs.
/// checklist: 1
#[test]
fn the_first_wrong_output_decides() {
    assert_eq!(alone(&[Amount::MAX_MONEY.0 + 1, -1]), Some(Rule::TxVoutToolarge));
    assert_eq!(alone(&[-1, Amount::MAX_MONEY.0 + 1]), Some(Rule::TxVoutNegative));
    assert_eq!(alone(&[i64::MAX]), Some(Rule::TxVoutToolarge));
    assert_eq!(alone(&[i64::MIN]), Some(Rule::TxVoutNegative));
    assert_eq!(alone(&[Amount::MAX_MONEY.0; 2]), Some(Rule::TxTxouttotalToolarge));
}

/// limit: COINBASE_SCRIPT_SIG_SIZE_MIN at
/// limit: COINBASE_SCRIPT_SIG_SIZE_MIN above
/// limit: COINBASE_SCRIPT_SIG_SIZE_MAX at
/// limit: COINBASE_SCRIPT_SIG_SIZE_MAX above
/// checklist: 8
#[test]
fn coinbase_script_sig_sizes() {
    let outcome = |size: usize| {
        let mut tx = coinbase(1, Amount(0));
        tx.inputs[0].script_sig.resize(size, 0);
        check_transaction(tx.to_transaction().unwrap().view()).err()
    };
    for (size, expected) in [(1, Some(Rule::TxCbLength)), (2, None), (100, None), (101, Some(Rule::TxCbLength))] {
        assert_eq!(outcome(size), expected, "{size} bytes");
    }
}

/// The limits that the table of cases tests at and above their values.
///
/// limit: MAX_BLOCK_WEIGHT at
/// limit: MAX_BLOCK_WEIGHT above
/// limit: WITNESS_SCALE_FACTOR at
/// limit: WITNESS_SCALE_FACTOR above
/// limit: MAX_BLOCK_SIGOPS_COST at
/// limit: MAX_BLOCK_SIGOPS_COST above
/// limit: COINBASE_MATURITY at
/// limit: COINBASE_MATURITY above
/// limit: MAX_FUTURE_BLOCK_TIME at
/// limit: MAX_FUTURE_BLOCK_TIME above
/// limit: MAX_TIMEWARP at
/// limit: MAX_TIMEWARP above
/// checklist: 10, 11, 12, 18, 22
#[test]
fn limits_at_and_above() {
    assert_eq!((weight_block(4_000_000), weight_block(4_000_001)), (None, Some(Rule::BadBlkWeight)));
    assert_eq!((base_size_block(1_000_000), base_size_block(1_000_001)), (None, Some(Rule::BlockBaseSize)));
    assert_eq!((sigops_cost(false), sigops_cost(true)), (None, Some(Rule::BlockSigopsCost)));
    assert_eq!((spend_depth(100), spend_depth(99)), (None, Some(Rule::TxPrematureSpendOfCoinbase)));
    assert_eq!((time_ahead(7200), time_ahead(7201)), (None, Some(Rule::TimeTooNew)));
    assert_eq!((timewarp(600), timewarp(601)), (None, Some(Rule::TimeTimewarpAttack)));
}

/// A block that was too early becomes valid when the clock advances: the rejection is not remembered.
/// checklist: 22
#[test]
fn a_block_from_the_future_is_not_refused_for_ever() {
    let mut world = World::regtest(3);
    let mut block = world.next_block();
    block.header.time = NOW + 7201;
    block.seal_on_regtest();
    assert_eq!(world.refusal(&block), Some(Rule::TimeTooNew));
    assert!(world.validator.accept_block(parse(&block), NOW + 1).unwrap().is_active);
}

/// Near the genesis block the median is taken of fewer than eleven times; of an even number of times, the upper middle
/// one is used.
///
/// limit: MEDIAN_TIME_SPAN at
/// limit: MEDIAN_TIME_SPAN above
/// checklist: 22
#[test]
fn median_times_near_genesis_and_beyond() {
    let view = MadeUp { coins: Vec::new() };
    let median = |height| view.median_time_past(Height(height)).unwrap() - 1_000_000;
    assert_eq!([0, 1, 2, 3].map(median), [0, 1, 1, 2]);
    assert_eq!([9, 10, 11, 12].map(median), [5, 5, 6, 7], "eleven times from height 10 on");
}

/// limit: LOCKTIME_THRESHOLD at
/// limit: LOCKTIME_THRESHOLD above
/// checklist: 29
#[test]
fn lock_times_are_heights_or_median_times() {
    // The block is at height 111 of a regtest chain; its parent's median time past is the time of block 105.
    let median = NOW - 1_000_000 + 105 * 600;
    assert_eq!(lock_time(110), None);
    assert_eq!(lock_time(111), Some(Rule::TxNonfinal));
    assert_eq!(lock_time(LOCKTIME_THRESHOLD - 1), Some(Rule::TxNonfinal), "a height far away");
    assert_eq!(lock_time(LOCKTIME_THRESHOLD), None, "a time long ago");
    assert_eq!(lock_time(median - 1), None);
    assert_eq!(lock_time(median), Some(Rule::TxNonfinal), "the median, not the block's time, since BIP-0113");
    let before_csv = |lock_time: u32| {
        let params = Params::new(Chain::Regtest).with_activation_height("csv@1000").unwrap();
        let mut world = World::new(params, 110);
        let mut block = world.next_block();
        let mut tx = plain_spend(&world);
        (tx.lock_time, tx.inputs[0].sequence) = (lock_time, 0);
        block.txs.push(tx);
        block.seal_on_regtest();
        world.refusal(&block)
    };
    let own_time = NOW - 1_000_000 + 111 * 600;
    assert_eq!(before_csv(own_time - 1), None, "the block's own time before BIP-0113");
    assert_eq!(before_csv(own_time), Some(Rule::TxNonfinal));
}

/// Relative locks apply to versions 2 and above, compared as unsigned integers, and only once CSV is active.
/// checklist: 29, 30, 31
#[test]
fn relative_locks() {
    let outcome = |version: u32, sequence: u32, csv: &str| {
        let params = Params::new(Chain::Regtest).with_activation_height(csv).unwrap();
        let mut world = World::new(params, 110);
        let mut block = world.next_block();
        let mut tx = spend(&[world.coinbase_outpoint(2)], COIN);
        (tx.version, tx.inputs[0].sequence) = (version, sequence);
        block.txs.push(tx);
        block.seal_on_regtest();
        world.refusal(&block)
    };
    let broken = Some(Rule::TxSequenceLocks);
    assert_eq!(outcome(2, 110, "csv@1"), broken);
    assert_eq!(outcome(2, 109, "csv@1"), None);
    assert_eq!(outcome(1, 110, "csv@1"), None);
    assert_eq!(outcome(0, 110, "csv@1"), None);
    assert_eq!(outcome(u32::MAX, 110, "csv@1"), broken, "a negative version is a large one");
    assert_eq!(outcome(2, 110 | (1 << 31), "csv@1"), None, "disabled");
    assert_eq!(outcome(2, 110, "csv@112"), None, "not yet active");
    assert_eq!(outcome(2, 110, "csv@111"), broken);
    // Time counts from the block before the coin's block: for a coin at height 5 from the median time past of block 4,
    // which is the time of block 2. Counted from the coin's own block, with the time of block 3, 120 units would be too
    // long.
    let of_fifth = |units: u32| {
        let mut world = World::regtest(110);
        let mut block = world.next_block();
        let mut tx = spend(&[world.coinbase_outpoint(5)], COIN);
        (tx.version, tx.inputs[0].sequence) = (2, (1 << 22) | units);
        block.txs.push(tx);
        block.seal_on_regtest();
        world.refusal(&block)
    };
    assert_eq!(((105 - 2) * 600 / 512, (105 - 3) * 600 / 512), (120, 119));
    assert_eq!((of_fifth(120), of_fifth(121)), (None, broken));
    // Block 110's median time past is the time of block 105; that of block 1, the block before the coin's, is its own
    // time (the genesis block is older).
    let elapsed = (105 - 1) * 600;
    assert_eq!(outcome(2, (1 << 22) | (elapsed / 512), "csv@1"), None);
    assert_eq!(outcome(2, (1 << 22) | (elapsed / 512 + 1), "csv@1"), broken);
}

/// An output may be spent in its own block by a later transaction, but not by an earlier one, and not twice.
/// checklist: 20, 21
#[test]
fn order_within_a_block() {
    let outcome = |order: [usize; 3]| {
        with_block(
            |world, block| {
                let parent = plain_spend(world);
                let child = spend(&[OutPoint { txid: parent.txid(), vout: 0 }], 49 * COIN);
                let twice = spend(&[OutPoint { txid: parent.txid(), vout: 0 }], 48 * COIN);
                let txs = [parent, child, twice];
                block.txs.extend(order.into_iter().filter(|i| *i < 3).map(|i| txs[i].clone()));
            },
            |_| {},
        )
    };
    assert_eq!(outcome([0, 1, 9]), None);
    assert_eq!(outcome([1, 0, 9]), Some(Rule::TxInputsMissingorspent));
    assert_eq!(outcome([0, 1, 2]), Some(Rule::TxInputsMissingorspent));
}

/// Unspendable outputs are valid to create but are never added to the coins; an output whose script has exactly the
/// maximum size is added.
/// checklist: 21
#[test]
fn unspendable_outputs_never_enter_the_coins() {
    let mut world = World::regtest(110);
    let mut block = world.next_block();
    let mut tx = plain_spend(&world);
    tx.outputs = vec![
        output(1, vec![opcodes::OP_RETURN]),
        output(2, vec![opcodes::OP_NOP; 10_001]),
        output(3, vec![opcodes::OP_NOP; 10_000]),
        output(4, Vec::new()),
    ];
    let txid = tx.txid();
    block.txs.push(tx);
    world.must_accept(block);
    let found: Vec<_> = (0..4).map(|vout| world.validator.coin(&OutPoint { txid, vout }).is_some()).collect();
    assert_eq!(found, [false, false, true, true]);
    let mut block = world.next_block();
    block.txs.push(spend(&[OutPoint { txid, vout: 0 }], 1));
    block.seal_on_regtest();
    assert_eq!(world.refusal(&block), Some(Rule::TxInputsMissingorspent));
}

/// A txid may be repeated only if every output of the first transaction is spent, not just the first output.
/// checklist: 3
#[test]
fn bip30_looks_at_every_output() {
    let params = Params::new(Chain::Regtest).with_activation_height("bip34@1000000").unwrap();
    let mut world = World::new(params, 0);
    let mut first = world.next_block();
    first.txs[0].outputs[0].value = Amount(25 * COIN);
    first.txs[0].outputs.insert(1, output(25 * COIN, true_script()));
    // Sealed now, because the repetition must have the same commitment. In another block with only a coinbase the
    // commitment is the same.
    first.seal_on_regtest();
    let repeated = first.txs[0].clone();
    let txid = repeated.txid();
    world.must_accept(first);
    for _ in 0..100 {
        let block = world.next_block();
        world.must_accept(block);
    }
    let repeat = |world: &mut World| {
        let mut block = world.next_block();
        block.txs[0] = repeated.clone();
        block.seal_on_regtest();
        (world.refusal(&block), block)
    };
    let mut block = world.next_block();
    block.txs.push(spend(&[OutPoint { txid, vout: 0 }], COIN));
    world.must_accept(block);
    assert_eq!(repeat(&mut world).0, Some(Rule::Bip30), "the second output is unspent");
    let mut block = world.next_block();
    block.txs.push(spend(&[OutPoint { txid, vout: 1 }], COIN));
    world.must_accept(block);
    assert_eq!(repeat(&mut world).0, None, "all are spent");
}

/// A violation that concerns only the bytes must not invalidate the hash: the honest copy is accepted afterwards.
/// checklist: 13, 16, 17
#[test]
fn mutated_blocks_do_not_poison_their_hash() {
    type Tamper = fn(&mut MutBlock);
    let tampers: &[(&str, Tamper, Rule)] = &[
        ("last two transactions twice", |block| block.txs.push(block.txs[2].clone()), Rule::BadTxnsDuplicate),
        ("a transaction left out", |block| drop(block.txs.pop()), Rule::BadTxnmrklroot),
        ("reserved value too long", |block| block.txs[0].inputs[0].witness[0].push(0), Rule::BadWitnessNonceSize),
        ("two items", |block| block.txs[0].inputs[0].witness.push(vec![0; 32]), Rule::BadWitnessNonceSize),
        ("no witness at all", |block| block.txs[0].inputs[0].witness.clear(), Rule::BadWitnessNonceSize),
        ("another reserved value", |block| block.txs[0].inputs[0].witness[0][0] ^= 1, Rule::BadWitnessMerkleMatch),
        ("a witness added", |block| block.txs[1].inputs[0].witness.push(vec![1]), Rule::BadWitnessMerkleMatch),
    ];
    for (story, tamper, rule) in tampers {
        let mut world = World::regtest(110);
        let mut block = world.next_block();
        block.txs.push(spend(&[world.coinbase_outpoint(1)], COIN));
        block.txs.push(spend(&[world.coinbase_outpoint(2)], COIN));
        block.seal_on_regtest();
        let mut mutant = block.clone();
        tamper(&mut mutant);
        assert_eq!(mutant.header.hash(), block.header.hash());
        assert!(is_block_mutated(&parse(&mutant), true), "{story}");
        assert!(!is_block_mutated(&parse(&block), true));
        assert_eq!(world.refusal(&mutant), Some(*rule), "{story}");
        assert_eq!(world.refusal(&block), None, "{story}: the honest copy");
        assert_eq!(world.submit(&block), Err(Rejected::Duplicate));
    }
}

/// A violation that concerns the hash is remembered, and so are the block's descendants.
/// checklist: 34
#[test]
fn invalid_blocks_are_remembered() {
    let mut world = World::regtest(5);
    let mut block = world.next_block();
    block.txs[0].inputs[0].script_sig[0] += 1;
    block.seal_on_regtest();
    assert_eq!(world.refusal(&block), Some(Rule::BadCbHeight));
    assert_eq!(world.submit(&block), Err(Rejected::DuplicateInvalid));
}

/// The same transaction twice, but not adjacent in the merkle tree: not a mutation, but the coin is already spent.
/// checklist: 14
#[test]
fn duplicate_transactions_that_are_no_mutation() {
    let outcome = with_block(
        |world, block| {
            let tx = spend(&[world.coinbase_outpoint(1)], COIN);
            block.txs.extend([tx.clone(), spend(&[world.coinbase_outpoint(2)], COIN), tx]);
            block.txs.push(spend(&[world.coinbase_outpoint(3)], COIN));
            let parsed = parse(block);
            assert!(!parsed.is_merkle_mutated());
        },
        |_| {},
    );
    assert_eq!(outcome, Some(Rule::TxInputsMissingorspent));
}

/// A 64-byte transaction is valid. It makes a block's bytes suspicious only if the block has no coinbase.
/// checklist: 15
#[test]
fn transactions_of_64_bytes() {
    let mut world = World::regtest(110);
    let mut block = world.next_block();
    let mut tx = plain_spend(&world);
    tx.outputs[0].script_pubkey = vec![opcodes::OP_NOP, opcodes::OP_NOP, opcodes::OP_NOP, opcodes::OP_1];
    assert_eq!(tx.encode().len(), 64);
    block.txs.push(tx);
    block.seal_on_regtest();
    assert!(!is_block_mutated(&parse(&block), true));
    let mut headless = block.clone();
    headless.txs.remove(0);
    headless.seal_merkle_root();
    assert!(is_block_mutated(&parse(&headless), true));
    headless.txs[0].outputs[0].script_pubkey.pop();
    headless.seal_merkle_root();
    assert!(!is_block_mutated(&parse(&headless), true));
    assert_eq!(world.refusal(&block), None);
}

/// The last output that matches the commitment pattern counts; an output one byte shorter does not match.
/// checklist: 16
#[test]
fn the_last_commitment_wins() {
    let with_decoy = |position: usize, size: usize| {
        with_block(
            |_, block| {
                let mut decoy = block.txs[0].outputs[1].script_pubkey.clone();
                decoy.resize(size, 0);
                block.txs[0].outputs.insert(position, output(0, decoy));
                let parsed = parse(block);
                let expected = if position == 2 && size >= 38 { 2 } else { 2 - usize::from(position == 2) };
                assert_eq!(parsed.witness_commitment().unwrap().output_index, expected);
            },
            |_| {},
        )
    };
    assert_eq!(with_decoy(1, 38), None, "an earlier one is ignored");
    assert_eq!(with_decoy(2, 37), None, "a later one that is too short is ignored");
    assert_eq!(with_decoy(2, 38), None, "a later one is filled by the seal");
    assert_eq!(with_decoy(2, 60), None, "more bytes behind mean nothing");
    let later_is_wrong = with_block(
        |_, _| {},
        |block| {
            let mut decoy = block.txs[0].outputs[1].script_pubkey.clone();
            decoy[10] ^= 1;
            block.txs[0].outputs.push(output(0, decoy));
            block.seal_merkle_root();
            block.seal_work_on_regtest();
        },
    );
    assert_eq!(later_is_wrong, Some(Rule::BadWitnessMerkleMatch));
}

/// BIP-0034's heights as Core's CScript pushes them: OP_1 to OP_16 for small heights, otherwise the shortest number.
/// checklist: 7
#[test]
fn heights_in_coinbases() {
    let params = Params::new(Chain::Regtest);
    let view = MadeUp { coins: Vec::new() };
    let outcome = |height: u32, script: &[u8]| {
        let mut block = World::regtest(0).next_block();
        block.txs[0].inputs[0].script_sig = [script, &[0; 4]].concat();
        block.seal_on_regtest();
        check_block_in_chain(&parse(&block), Height(height), &view, &params).err().map(|violation| violation.rule)
    };
    let wrong = Some(Rule::BadCbHeight);
    assert_eq!(outcome(1, &[0x51]), None);
    assert_eq!(outcome(1, &[0x01, 0x01]), wrong, "signet's block 1 has OP_1");
    assert_eq!(outcome(16, &[0x60]), None);
    assert_eq!(outcome(17, &[0x01, 0x11]), None);
    assert_eq!(outcome(17, &[0x02, 0x11, 0x00]), wrong);
    assert_eq!(outcome(17, &[0x4c, 0x01, 0x11]), wrong);
    assert_eq!(outcome(127, &[0x01, 0x7f]), None);
    assert_eq!(outcome(128, &[0x02, 0x80, 0x00]), None);
    assert_eq!(outcome(128, &[0x01, 0x80]), wrong);
    assert_eq!(outcome(227_931, &[0x03, 0x5b, 0x7a, 0x03]), None);
    assert_eq!(outcome(8_388_608, &[0x04, 0x00, 0x00, 0x80, 0x00]), None);
    let before = Params::new(Chain::Main);
    let mut block = World::regtest(0).next_block();
    block.txs[0].inputs[0].script_sig = vec![0; 9];
    block.seal_on_regtest();
    let at = |height| check_block_in_chain(&parse(&block), Height(height), &view, &before).err().map(|v| v.rule);
    assert_eq!((at(227_930).is_none() || at(227_930) != wrong, at(227_931)), (true, wrong));
}

/// The minimum versions rise with the soft forks; before them any version is valid, even a negative one.
/// checklist: 26
#[test]
fn version_floors() {
    use lydian_consensus::header::version_floor;
    let main = Params::new(Chain::Main);
    let at = |height| version_floor(Height(height), &main);
    assert_eq!(at(227_930), i32::MIN);
    assert_eq!((at(227_931), at(363_724)), (2, 2));
    assert_eq!((at(363_725), at(388_380)), (3, 3));
    assert_eq!((at(388_381), at(u32::MAX)), (4, 4));
    assert_eq!(with_block(|_, block| block.header.version = -1, |_| {}), Some(Rule::BadVersion));
}

/// A coinbase may claim the subsidy and the fees, but no more.
/// checklist: 9
#[test]
fn a_coinbase_takes_the_fees() {
    let outcome = |extra: i64| {
        with_block(
            |world, block| {
                block.txs.push(spend(&[world.coinbase_outpoint(1)], 50 * COIN - 700));
                block.txs.push(spend(&[world.coinbase_outpoint(2)], 50 * COIN - 77));
                block.txs[0].outputs[0].value.0 += 777 + extra;
            },
            |_| {},
        )
    };
    assert_eq!((outcome(0), outcome(1)), (None, Some(Rule::BadCbAmount)));
}

/// Signature operations in a witness script cost one each, and the total may reach the limit exactly.
/// checklist: 11
#[test]
fn witness_sigops_cost_one_each() {
    let outcome = |witness_sigops: usize| {
        let mut world = World::regtest(110);
        let mut script = vec![opcodes::OP_0, opcodes::OP_IF];
        script.extend(vec![opcodes::OP_CHECKMULTISIG; witness_sigops / 20]);
        script.extend(vec![opcodes::OP_CHECKSIG; witness_sigops % 20]);
        script.extend([opcodes::OP_ENDIF, opcodes::OP_1]);
        let mut setup = world.next_block();
        let mut tx = plain_spend(&world);
        let program = lydian_hash::sha256(&script);
        tx.outputs[0].script_pubkey = ScriptBuilder::new().op(opcodes::OP_0).push_slice(&program).into_bytes();
        let prevout = OutPoint { txid: tx.txid(), vout: 0 };
        setup.txs.push(tx);
        world.must_accept(setup);
        let mut block = world.next_block();
        let mut tx = spend(&[prevout], COIN);
        tx.inputs[0].witness = vec![script];
        block.txs.push(tx);
        block.txs[0].outputs.push(output(0, vec![opcodes::OP_CHECKSIG; 19_050]));
        block.seal_on_regtest();
        world.refusal(&block)
    };
    assert_eq!(19_050 * 4 + 3_800, MAX_BLOCK_SIGOPS_COST);
    assert_eq!((outcome(3_800), outcome(3_801)), (None, Some(Rule::BlockSigopsCost)));
}

/// Above BIP-0034's anchor, repeated txids are not checked.
/// checklist: 4, 6
#[test]
fn bip30_is_not_asked_above_its_anchor() {
    struct Everything(BlockHash);
    impl HeaderView for Everything {
        fn ancestor(&self, height: Height) -> Option<Ancestor> {
            MadeUp { coins: Vec::new() }.ancestor(height).map(|ancestor| Ancestor { hash: self.0, ..ancestor })
        }
    }
    impl CoinView for Everything {
        fn coins(&self, outpoints: &[OutPoint]) -> Vec<Option<Coin>> {
            vec![None; outpoints.len()]
        }
        fn has_any(&self, _: &[OutPoint]) -> bool {
            true
        }
    }
    let mut block = World::regtest(0).next_block();
    block.txs[0] = coinbase(201, Amount(0));
    block.seal_on_regtest();
    let outcome = |hash: BlockHash| {
        let mut params = Params::new(Chain::Regtest);
        params.bip34_hash = BlockHash([7; 32]);
        let view = Everything(hash);
        let parent = Parent::At(Height(200), &view);
        let checked = CheckedBlock::check(parse(&block), parent, i64::from(NOW), &params).unwrap();
        fund(checked, &view, &view, &params).err().map(|violation| violation.rule)
    };
    assert_eq!(outcome(BlockHash([7; 32])), None);
    assert_eq!(outcome(BlockHash([8; 32])), Some(Rule::Bip30));
}

/// For a failing script, the violation contains the transaction, the input and Core's error.
#[test]
fn violations_say_where() {
    let mut world = World::regtest(110);
    let mut block = world.next_block();
    block.txs.push(plain_spend(&world));
    let mut tx = spend(&[world.coinbase_outpoint(2), world.coinbase_outpoint(3)], COIN);
    tx.inputs[1].script_sig = vec![opcodes::OP_RETURN];
    block.txs.push(tx);
    block.seal_on_regtest();
    let Err(Rejected::Violation(violation)) = world.submit(&block) else { panic!("accepted") };
    assert_eq!((violation.tx, violation.input), (Some(2), Some(1)));
    assert_eq!(violation.script_error, Some(ScriptError::OpReturn));
    assert_eq!(violation.reject_reason(), "block-script-verify-flag-failed (OP_RETURN was encountered)");
}

/// From this height on BIP-0030 is checked again; `deployment` contains the rule itself.
///
/// limit: BIP34_IMPLIES_BIP30_LIMIT at
/// limit: BIP34_IMPLIES_BIP30_LIMIT above
/// checklist: 6
#[test]
fn bip30_is_checked_again_from_its_limit_on() {
    struct Known(BlockHash);
    impl HeaderView for Known {
        fn ancestor(&self, height: Height) -> Option<Ancestor> {
            MadeUp { coins: Vec::new() }.ancestor(height).map(|ancestor| Ancestor { hash: self.0, ..ancestor })
        }
    }
    let main = Params::new(Chain::Main);
    let view = Known(main.bip34_hash);
    let checked =
        |height| lydian_consensus::deployment::is_bip30_checked(Height(height), &BlockHash::ZERO, &view, &main);
    assert!(!checked(BIP34_IMPLIES_BIP30_LIMIT - 1));
    assert!(checked(BIP34_IMPLIES_BIP30_LIMIT));
    assert!(checked(BIP34_IMPLIES_BIP30_LIMIT + 1));
}
