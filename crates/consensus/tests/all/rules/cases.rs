//! Breaks and keeps every rule once, at its limit if it has one. A test ensures that the table is complete.

use crate::common::*;
use lydian_consensus::limits::*;
use lydian_consensus::tx::check_transaction;
use lydian_consensus::{Ancestor, Chain, CheckedBlock, Coin, CoinView, HeaderView, Params, Parent, RULES, Rule, fund};
use lydian_primitives::build::{MutBlock, MutOutput, MutTx};
use lydian_primitives::{Amount, BlockHash, Header, Height, OutPoint, Txid};
use lydian_script::{ScriptBuilder, opcodes};

/// A rule, and a block that breaks it (`true`) or just keeps it (`false`).
struct Case {
    rule: Rule,
    /// Returns the outcome of the variant that breaks (`true`) or keeps (`false`) the rule.
    outcome: fn(bool) -> Option<Rule>,
}

pub(crate) const COIN: i64 = 100_000_000;

/// Submits a block on a chain of 110 blocks: it is changed by `change`, sealed, and then changed by `tamper`.
pub(crate) fn with_block(
    change: impl FnOnce(&World, &mut MutBlock),
    tamper: impl FnOnce(&mut MutBlock),
) -> Option<Rule> {
    let mut world = World::regtest(110);
    let mut block = world.next_block();
    change(&world, &mut block);
    block.seal_on_regtest();
    tamper(&mut block);
    world.refusal(&block)
}

pub(crate) fn with_tx(make: impl FnOnce(&World) -> MutTx) -> Option<Rule> {
    with_block(|world, block| block.txs.push(make(world)), |_| {})
}

/// A valid spend of the first coinbase.
pub(crate) fn plain_spend(world: &World) -> MutTx {
    spend(&[world.coinbase_outpoint(1)], 50 * COIN)
}

pub(crate) fn output(value: i64, script_pubkey: Vec<u8>) -> MutOutput {
    MutOutput { value: Amount(value), script_pubkey }
}

const CASES: &[Case] = &[
    Case { rule: Rule::HighHash, outcome: high_hash },
    Case { rule: Rule::BadSignetBlksig, outcome: bad_signet_blksig },
    Case {
        rule: Rule::BadTxnmrklroot,
        outcome: |bad| {
            with_block(
                |_, _| {},
                |block| {
                    block.header.merkle_root[0] ^= u8::from(bad);
                    block.seal_work_on_regtest();
                },
            )
        },
    },
    Case { rule: Rule::BadTxnsDuplicate, outcome: bad_txns_duplicate },
    Case {
        rule: Rule::BlockEmpty,
        outcome: |bad| {
            with_block(
                |_, _| {},
                |block| {
                    if bad {
                        block.txs.clear();
                        block.seal_merkle_root();
                        block.seal_work_on_regtest();
                    }
                },
            )
        },
    },
    Case { rule: Rule::BlockTxCount, outcome: block_tx_count },
    Case { rule: Rule::BlockBaseSize, outcome: |bad| base_size_block(1_000_000 + usize::from(bad)) },
    Case {
        rule: Rule::BadCbMissing,
        outcome: |bad| {
            with_block(
                |world, block| {
                    if bad {
                        block.txs[0] = plain_spend(world)
                    }
                },
                |_| {},
            )
        },
    },
    Case {
        rule: Rule::BadCbMultiple,
        outcome: |bad| {
            with_block(
                |_, block| {
                    if bad {
                        block.txs.push(coinbase(7, Amount(0)))
                    }
                },
                |_| {},
            )
        },
    },
    Case {
        rule: Rule::TxVinEmpty,
        outcome: |bad| with_tx(|world| if bad { MutTx::default() } else { plain_spend(world) }),
    },
    Case {
        rule: Rule::TxVoutEmpty,
        outcome: |bad| {
            with_tx(|world| {
                let mut tx = plain_spend(world);
                tx.outputs.truncate(usize::from(!bad));
                tx
            })
        },
    },
    Case { rule: Rule::TxOversize, outcome: tx_oversize },
    Case { rule: Rule::TxVoutNegative, outcome: |bad| output_values(&[-i64::from(bad)]) },
    Case { rule: Rule::TxVoutToolarge, outcome: |bad| alone(&[Amount::MAX_MONEY.0 + i64::from(bad)]) },
    Case { rule: Rule::TxTxouttotalToolarge, outcome: |bad| alone(&[Amount::MAX_MONEY.0, i64::from(bad)]) },
    Case {
        rule: Rule::TxInputsDuplicate,
        outcome: |bad| {
            with_tx(|world| {
                let first = world.coinbase_outpoint(1);
                let second = if bad { first } else { world.coinbase_outpoint(2) };
                spend(&[first, second], COIN)
            })
        },
    },
    Case { rule: Rule::TxCbLength, outcome: |bad| coinbase_length(COINBASE_SCRIPT_SIG_SIZE_MAX + usize::from(bad)) },
    Case {
        rule: Rule::TxPrevoutNull,
        outcome: |bad| {
            with_tx(|world| {
                let second = if bad { OutPoint::NULL } else { world.coinbase_outpoint(2) };
                spend(&[world.coinbase_outpoint(1), second], COIN)
            })
        },
    },
    Case { rule: Rule::BlockLegacySigops, outcome: |bad| sigops_in_outputs(20_000 + usize::from(bad)) },
    Case {
        rule: Rule::PrevBlkNotFound,
        outcome: |bad| {
            with_block(
                |_, block| {
                    if bad {
                        block.header.prev_block = BlockHash([1; 32])
                    }
                },
                |_| {},
            )
        },
    },
    Case { rule: Rule::BadPrevblk, outcome: bad_prevblk },
    Case { rule: Rule::BadDiffbits, outcome: |bad| with_block(|_, block| block.header.bits -= u32::from(bad), |_| {}) },
    Case { rule: Rule::TimeTooOld, outcome: time_too_old },
    Case { rule: Rule::TimeTimewarpAttack, outcome: |bad| timewarp(MAX_TIMEWARP + i64::from(bad)) },
    Case { rule: Rule::TimeTooNew, outcome: |bad| time_ahead(MAX_FUTURE_BLOCK_TIME + i64::from(bad)) },
    Case {
        rule: Rule::BadVersion,
        outcome: |bad| with_block(|_, block| block.header.version = 4 - i32::from(bad), |_| {}),
    },
    Case { rule: Rule::TxNonfinal, outcome: |bad| lock_time(111 - u32::from(!bad)) },
    Case {
        rule: Rule::BadCbHeight,
        outcome: |bad| with_block(|_, block| block.txs[0].inputs[0].script_sig[1] += u8::from(bad), |_| {}),
    },
    Case { rule: Rule::BadWitnessNonceSize, outcome: |bad| reserved_value(vec![vec![0; 32 + usize::from(bad)]]) },
    Case {
        rule: Rule::BadWitnessMerkleMatch,
        outcome: |bad| {
            with_block(
                |_, _| {},
                |block| {
                    block.txs[0].outputs[1].script_pubkey[6] ^= u8::from(bad);
                    block.seal_merkle_root();
                    block.seal_work_on_regtest();
                },
            )
        },
    },
    Case {
        rule: Rule::UnexpectedWitness,
        outcome: |bad| {
            with_block(
                |_, block| {
                    block.txs[0].outputs.pop();
                    block.txs[0].inputs[0].witness.truncate(usize::from(bad));
                },
                |_| {},
            )
        },
    },
    Case { rule: Rule::BadBlkWeight, outcome: |bad| weight_block(MAX_BLOCK_WEIGHT + usize::from(bad)) },
    Case { rule: Rule::Bip30, outcome: bip30 },
    Case {
        rule: Rule::TxInputsMissingorspent,
        outcome: |bad| {
            with_tx(|world| {
                let missing = OutPoint { txid: Txid([9; 32]), vout: 0 };
                spend(&[if bad { missing } else { world.coinbase_outpoint(1) }], COIN)
            })
        },
    },
    Case { rule: Rule::TxPrematureSpendOfCoinbase, outcome: |bad| spend_depth(COINBASE_MATURITY - u32::from(bad)) },
    Case {
        rule: Rule::TxInputvaluesOutofrange,
        outcome: |bad| with_coins(Amount::MAX_MONEY.0 - 5, 5 + i64::from(bad)),
    },
    Case {
        rule: Rule::TxInBelowout,
        outcome: |bad| with_tx(|world| spend(&[world.coinbase_outpoint(1)], 50 * COIN + i64::from(bad))),
    },
    Case { rule: Rule::AccumulatedFeeOutofrange, outcome: accumulated_fee },
    Case { rule: Rule::TxSequenceLocks, outcome: |bad| relative_height_lock(109 + u32::from(bad)) },
    Case { rule: Rule::BlockSigopsCost, outcome: sigops_cost },
    Case {
        rule: Rule::BadCbAmount,
        outcome: |bad| with_block(|_, block| block.txs[0].outputs[0].value.0 += i64::from(bad), |_| {}),
    },
    Case { rule: Rule::ScriptVerify, outcome: script_verify },
];

/// Walks the whole table: a variant that breaks a rule is rejected by exactly that rule, and one that keeps it is
/// accepted.
/// checklist: 1, 2, 3, 7, 8, 9, 10, 13, 16, 18, 19, 22, 23, 26
#[test]
fn every_rule_is_broken_and_kept() {
    let listed: Vec<Rule> = CASES.iter().map(|case| case.rule).collect();
    assert_eq!(listed, RULES.iter().map(|info| info.rule).collect::<Vec<_>>(), "one case for each rule, in order");
    for case in CASES {
        assert_eq!((case.outcome)(true), Some(case.rule), "{:?} broken", case.rule);
        // A million transactions do not fit in a block, so a count just below that limit breaks the next rule.
        let kept = (case.rule == Rule::BlockTxCount).then_some(Rule::BlockBaseSize);
        assert_eq!((case.outcome)(false), kept, "{:?} kept", case.rule);
    }
}

pub(crate) fn high_hash(bad: bool) -> Option<Rule> {
    with_block(
        |_, _| {},
        |block| {
            while bad && block.header.hash().0[31] < 0x80 {
                block.header.nonce += 1;
            }
        },
    )
}

/// Regtest with a challenge that any block solves: only a witness commitment is required.
pub(crate) fn bad_signet_blksig(bad: bool) -> Option<Rule> {
    let mut params = Params::new(Chain::Regtest);
    params.signet_challenge = Some(true_script());
    let mut world = World::new(params, 2);
    let mut block = world.next_block();
    if bad {
        block.txs[0].outputs.pop();
        block.txs[0].inputs[0].witness.clear();
    }
    block.seal_on_regtest();
    world.refusal(&block)
}

pub(crate) fn bad_txns_duplicate(bad: bool) -> Option<Rule> {
    with_block(
        |world, block| {
            block.txs.push(spend(&[world.coinbase_outpoint(1)], COIN));
            block.txs.push(spend(&[world.coinbase_outpoint(2)], COIN));
        },
        |block| {
            if bad {
                block.txs.push(block.txs[2].clone());
            }
        },
    )
}

pub(crate) fn block_tx_count(bad: bool) -> Option<Rule> {
    with_block(
        |_, block| {
            let count = 1_000_000 + u32::from(bad);
            block.txs.extend((1..count).map(|lock_time| MutTx { lock_time, ..MutTx::default() }));
        },
        |_| {},
    )
}

/// A block without witnesses, filled up to the given base size by one unspendable output.
pub(crate) fn base_size_block(size: usize) -> Option<Rule> {
    with_block(
        |_, block| {
            block.txs[0].outputs.pop();
            block.txs[0].inputs[0].witness.clear();
            block.txs[0].outputs.push(output(0, vec![opcodes::OP_RETURN; 900_000]));
            let missing = size - block.encode().len();
            block.txs[0].outputs[1].script_pubkey.resize(900_000 + missing, opcodes::OP_RETURN);
            assert_eq!(block.encode().len(), size);
        },
        |_| {},
    )
}

pub(crate) fn tx_oversize(bad: bool) -> Option<Rule> {
    let mut tx = spend(&[OutPoint { txid: Txid([1; 32]), vout: 0 }], 0);
    tx.outputs[0].script_pubkey = vec![opcodes::OP_RETURN; 900_000];
    let missing = 1_000_000 + usize::from(bad) - tx.encode().len();
    tx.outputs[0].script_pubkey.resize(900_000 + missing, opcodes::OP_RETURN);
    check_transaction(tx.to_transaction().unwrap().view()).err()
}

pub(crate) fn output_values(values: &[i64]) -> Option<Rule> {
    with_tx(|world| {
        let mut tx = plain_spend(world);
        tx.outputs = values.iter().map(|value| output(*value, true_script())).collect();
        tx
    })
}

pub(crate) fn alone(values: &[i64]) -> Option<Rule> {
    let mut tx = spend(&[OutPoint { txid: Txid([1; 32]), vout: 0 }], 0);
    tx.outputs = values.iter().map(|value| output(*value, true_script())).collect();
    check_transaction(tx.to_transaction().unwrap().view()).err()
}

pub(crate) fn coinbase_length(size: usize) -> Option<Rule> {
    with_block(|_, block| block.txs[0].inputs[0].script_sig.resize(size, 0), |_| {})
}

pub(crate) fn sigops_in_outputs(count: usize) -> Option<Rule> {
    with_block(|_, block| block.txs[0].outputs.push(output(0, vec![opcodes::OP_CHECKSIG; count])), |_| {})
}

pub(crate) fn bad_prevblk(bad: bool) -> Option<Rule> {
    let mut world = World::regtest(5);
    let mut invalid = world.next_block();
    invalid.txs[0].outputs[0].value.0 += 1;
    invalid.seal_on_regtest();
    assert_eq!(world.refusal(&invalid), Some(Rule::BadCbAmount));
    let mut block = world.next_block();
    if bad {
        block.header.prev_block = invalid.header.hash();
    }
    block.seal_on_regtest();
    world.refusal(&block)
}

/// A time equal to the median of the last eleven times, or one second later.
pub(crate) fn time_too_old(bad: bool) -> Option<Rule> {
    with_block(
        |world, block| {
            let mut times = world.times[world.times.len() - 11..].to_vec();
            times.sort_unstable();
            block.header.time = times[5] + u32::from(!bad);
        },
        |_| {},
    )
}

/// The first block of a period of 144 blocks, with a time `behind` seconds before its parent's.
pub(crate) fn timewarp(behind: i64) -> Option<Rule> {
    let mut params = Params::new(Chain::Regtest);
    params.enforce_bip94 = true;
    let mut world = World::new(params, 142);
    // The parent's time is far ahead, so that the median is well below it.
    let mut parent = world.next_block();
    parent.header.time += 50_000;
    let parent_time = parent.header.time;
    world.must_accept(parent);
    let mut block = world.next_block();
    assert_eq!(world.height() + 1, 144);
    block.header.time = u32::try_from(i64::from(parent_time) - behind).unwrap();
    block.seal_on_regtest();
    world.refusal(&block)
}

pub(crate) fn time_ahead(seconds: i64) -> Option<Rule> {
    with_block(|_, block| block.header.time = u32::try_from(i64::from(NOW) + seconds).unwrap(), |_| {})
}

pub(crate) fn lock_time(value: u32) -> Option<Rule> {
    with_tx(|world| {
        let mut tx = plain_spend(world);
        tx.lock_time = value;
        tx.inputs[0].sequence = 0xffff_fffe;
        tx
    })
}

pub(crate) fn reserved_value(witness: Vec<Vec<u8>>) -> Option<Rule> {
    with_block(|_, block| block.txs[0].inputs[0].witness = witness, |_| {})
}

/// A block filled up to the given weight by the witness of a spend of an unknown witness version.
pub(crate) fn weight_block(weight: usize) -> Option<Rule> {
    let mut world = World::regtest(110);
    let mut setup = world.next_block();
    let mut tx = plain_spend(&world);
    tx.outputs[0].script_pubkey = ScriptBuilder::new().op(opcodes::OP_16).push_slice(&[1; 2]).into_bytes();
    let prevout = OutPoint { txid: tx.txid(), vout: 0 };
    setup.txs.push(tx);
    world.must_accept(setup);
    let mut block = world.next_block();
    let mut big = spend(&[prevout], COIN);
    big.inputs[0].witness = vec![vec![0; 3_900_000]];
    block.txs.push(big);
    let missing = weight - parse(&block).weight();
    block.txs[1].inputs[0].witness[0].resize(3_900_000 + missing, 0);
    assert_eq!(parse(&block).weight(), weight);
    block.seal_on_regtest();
    world.refusal(&block)
}

/// Without BIP-0034 two coinbases can be identical.
pub(crate) fn bip30(bad: bool) -> Option<Rule> {
    let params = Params::new(Chain::Regtest).with_activation_height("bip34@1000000").unwrap();
    let mut world = World::new(params, 5);
    let mut block = world.next_block();
    block.txs[0] = coinbase(if bad { 5 } else { 6 }, Amount(50 * COIN));
    block.seal_on_regtest();
    world.refusal(&block)
}

pub(crate) fn spend_depth(depth: u32) -> Option<Rule> {
    with_tx(|world| spend(&[world.coinbase_outpoint(111 - depth)], 50 * COIN))
}

pub(crate) fn relative_height_lock(blocks: u32) -> Option<Rule> {
    // The coin was created at height 2; the spend is at height 111.
    with_tx(|world| {
        let mut tx = spend(&[world.coinbase_outpoint(2)], 50 * COIN);
        tx.inputs[0].sequence = blocks;
        tx
    })
}

/// A block with one P2SH input whose redeem script counts 20 operations, which cost 80. OP_CHECKSIGs in an output fill
/// up the rest of the limit.
pub(crate) fn sigops_cost(bad: bool) -> Option<Rule> {
    let mut world = World::regtest(110);
    let redeem = vec![opcodes::OP_1, opcodes::OP_0, opcodes::OP_IF, opcodes::OP_CHECKMULTISIG, opcodes::OP_ENDIF];
    let mut script_pubkey = vec![opcodes::OP_HASH160, 20];
    script_pubkey.extend_from_slice(&lydian_hash::hash160(&redeem));
    script_pubkey.push(opcodes::OP_EQUAL);
    let mut setup = world.next_block();
    let mut tx = plain_spend(&world);
    tx.outputs = vec![output(1000, script_pubkey)];
    let prevout = OutPoint { txid: tx.txid(), vout: 0 };
    setup.txs.push(tx);
    world.must_accept(setup);
    let mut block = world.next_block();
    let mut tx = spend(&[prevout], 0);
    tx.inputs[0].script_sig = ScriptBuilder::new().push_slice(&redeem).into_bytes();
    block.txs.push(tx);
    let in_outputs = 20_000 - 20 + usize::from(bad);
    block.txs[0].outputs.push(output(0, vec![opcodes::OP_CHECKSIG; in_outputs]));
    block.seal_on_regtest();
    world.refusal(&block)
}

pub(crate) fn script_verify(bad: bool) -> Option<Rule> {
    with_tx(|world| {
        let mut tx = plain_spend(world);
        if bad {
            tx.inputs[0].script_sig = vec![opcodes::OP_RETURN];
        }
        tx
    })
}

/// Made-up headers and coins, for states that no regtest chain can reach.
pub(crate) struct MadeUp {
    pub(crate) coins: Vec<(OutPoint, i64)>,
}

impl HeaderView for MadeUp {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        let time = 1_000_000 + height.0;
        let header =
            Header { version: 4, prev_block: BlockHash::ZERO, merkle_root: [0; 32], time, bits: 0x207f_ffff, nonce: 0 };
        Some(Ancestor { hash: BlockHash::ZERO, header })
    }
}

impl CoinView for MadeUp {
    fn coins(&self, outpoints: &[OutPoint]) -> Vec<Option<Coin>> {
        let coin = |outpoint: &OutPoint| {
            let (_, value) = self.coins.iter().find(|(at, _)| at == outpoint)?;
            let script_pubkey = true_script().into();
            Some(Coin { value: Amount(*value), script_pubkey, height: Height(1), is_coinbase: false })
        };
        outpoints.iter().map(coin).collect()
    }

    fn has_any(&self, _: &[OutPoint]) -> bool {
        false
    }
}

pub(crate) fn fund_made_up(world: MadeUp, txs: Vec<MutTx>) -> Option<Rule> {
    let params = Params::new(Chain::Regtest);
    let mut block = World::regtest(0).next_block();
    block.txs[0] = coinbase(201, Amount(0));
    block.txs.extend(txs);
    block.seal_on_regtest();
    let checked = CheckedBlock::check(parse(&block), Parent::At(Height(200), &world), i64::from(NOW), &params).unwrap();
    fund(checked, &world, &world, &params).err().map(|violation| violation.rule)
}

pub(crate) fn with_coins(first: i64, second: i64) -> Option<Rule> {
    let outpoints = [1, 2].map(|vout| OutPoint { txid: Txid([1; 32]), vout });
    let world = MadeUp { coins: vec![(outpoints[0], first), (outpoints[1], second)] };
    fund_made_up(world, vec![spend(&outpoints, 0)])
}

pub(crate) fn accumulated_fee(bad: bool) -> Option<Rule> {
    let outpoints = [1, 2].map(|vout| OutPoint { txid: Txid([1; 32]), vout });
    let world = MadeUp { coins: vec![(outpoints[0], Amount::MAX_MONEY.0), (outpoints[1], 7)] };
    fund_made_up(world, vec![spend(&outpoints[..1], 0), spend(&outpoints[1..], 7 - i64::from(bad))])
}
