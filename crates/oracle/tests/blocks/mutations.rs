//! Ways to change a block: one table. Each entry changes one thing at one stage of the making; what follows is redone.
//!
//! Nothing here knows what the answer will be: a change that leaves a block valid is as good as one that breaks it.

use super::plan::{Draft, PlanInput, Source, commitment_output, output};
use super::rng::Random;
use super::wallet::{OwnCoin, Policy, Wallet, Wrap, output_of};
use lydian_consensus::Deployment;
use lydian_consensus::coins::sigops_cost;
use lydian_consensus::deployment::script_flags;
use lydian_consensus::{Coin, block_subsidy};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, BlockHash, Height, OutPoint, Txid};
use lydian_script::opcodes::*;
use lydian_script::{ScriptBuilder, is_unspendable};
use std::rc::Rc;

/// When a change is made. What comes after it is redone over the changed block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// Before signatures: they are made over the change.
    Plan,
    /// Before the witness commitment.
    Built,
    /// Before the merkle root.
    Committed,
    /// Before the proof of work.
    Rooted,
    /// After everything: the hash may no longer be that of the bytes.
    Sealed,
}

pub struct Mutation {
    pub name: &'static str,
    pub stage: Stage,
    /// Blocks of megabytes are made less often.
    pub is_large: bool,
    /// False if this block has nothing to be changed so.
    pub apply: fn(&mut Draft<'_>, &mut Random) -> bool,
}

const fn at(stage: Stage, name: &'static str, apply: fn(&mut Draft<'_>, &mut Random) -> bool) -> Mutation {
    Mutation { name, stage, is_large: false, apply }
}

const fn large(stage: Stage, name: &'static str, apply: fn(&mut Draft<'_>, &mut Random) -> bool) -> Mutation {
    Mutation { name, stage, is_large: true, apply }
}

use Stage::{Built, Committed, Plan, Rooted, Sealed};

pub const MUTATIONS: &[Mutation] = &[
    // Headers.
    at(Rooted, "version", version),
    at(Rooted, "time", time),
    at(Rooted, "bits", bits),
    at(Rooted, "parent", parent),
    at(Rooted, "merkle root", |draft, random| {
        draft.block.header.merkle_root[random.below(32)] ^= 1 << random.below(8);
        true
    }),
    at(Sealed, "no work", no_work),
    // Coinbases.
    at(Built, "coinbase height", coinbase_height),
    at(Built, "coinbase script size", coinbase_script_size),
    at(Built, "coinbase amount", coinbase_amount),
    at(Built, "coinbase outputs", coinbase_outputs),
    at(Built, "coinbase repeated", coinbase_repeated),
    at(Built, "coinbase lock time", |draft, random| {
        let height = i64::from(draft.height());
        draft.block.txs[0].lock_time = u32::try_from((height + random.range(-2, 1)).max(0)).unwrap();
        draft.block.txs[0].inputs[0].sequence = *random.pick(&[0, u32::MAX]);
        true
    }),
    at(Built, "coinbase version", |draft, random| {
        draft.block.txs[0].version = *random.pick(&[0, 1, 3, u32::MAX]);
        true
    }),
    at(Built, "second coinbase", second_coinbase),
    at(Built, "no coinbase", |draft, _| {
        draft.block.txs.remove(0);
        true
    }),
    at(Built, "no transactions", |draft, _| {
        draft.block.txs.clear();
        true
    }),
    at(Built, "coinbase not first", |draft, random| {
        let count = draft.block.txs.len();
        draft.block.txs.swap(0, random.below(count));
        count > 1
    }),
    at(Built, "coinbase inputs", |draft, random| {
        // With two inputs it is no coinbase.
        let second = draft.block.txs[0].inputs[0].clone();
        draft.block.txs[0].inputs.push(second);
        if random.once_in(2) {
            draft.block.txs[0].inputs[1].prevout = OutPoint { txid: Txid([3; 32]), vout: 1 };
        }
        true
    }),
    // Witness commitments.
    at(Built, "no commitment", no_commitment),
    at(Built, "decoy commitments", decoy_commitments),
    at(Built, "reserved value", reserved_value),
    at(Committed, "commitment altered", commitment_altered),
    at(Built, "commitment unasked", |draft, random| {
        draft.block.txs[0].outputs.push(commitment_output());
        if random.once_in(2) {
            draft.block.txs[0].inputs[0].witness = vec![vec![0; 32]];
        }
        true
    }),
    // Transactions, before they are signed.
    at(Plan, "drop", |draft, random| {
        let some = !draft.order.is_empty();
        some.then(|| draft.order.remove(random.below(draft.order.len()))).is_some()
    }),
    at(Plan, "twice", |draft, random| {
        let some = !draft.order.is_empty();
        some.then(|| {
            let again = *random.pick(&draft.order);
            draft.order.insert(random.below(draft.order.len() + 1), again);
        })
        .is_some()
    }),
    at(Plan, "reorder", |draft, random| {
        let count = draft.order.len();
        count > 1 && {
            draft.order.swap(random.below(count), random.below(count));
            true
        }
    }),
    at(Plan, "double spend", double_spend),
    at(Plan, "same input twice", |draft, random| {
        change_tx(draft, random, |tx, random| {
            let again = random.pick(&tx.inputs).clone();
            tx.inputs.insert(random.below(tx.inputs.len() + 1), again);
        })
    }),
    at(Plan, "missing input", missing_input),
    at(Plan, "spent input", spent_input),
    at(Plan, "immature", immature),
    at(Plan, "output values", output_values),
    at(Plan, "pays too much", |draft, random| {
        let more = *random.pick(&[0, 1, 999, 1_000_000]);
        change_tx(draft, random, |tx, random| {
            let index = random.below(tx.outputs.len());
            tx.outputs[index].value = Amount(tx.outputs[index].value.0.saturating_add(more));
        })
    }),
    at(Plan, "no fee", no_fee),
    at(Plan, "no outputs", |draft, random| change_tx(draft, random, |tx, _| tx.outputs.clear())),
    at(Plan, "no inputs", |draft, random| {
        change_tx(draft, random, |tx, _| {
            tx.inputs.clear();
            tx.outputs.clear();
        })
    }),
    at(Plan, "null prevout", |draft, random| {
        change_tx(draft, random, |tx, random| {
            let source = Source::Coin(OutPoint::NULL, None);
            tx.inputs.insert(random.below(tx.inputs.len() + 1), PlanInput { source, sequence: 0 });
        })
    }),
    at(Plan, "lock time", lock_time),
    at(Plan, "sequence", sequence),
    at(Plan, "tx version", |draft, random| {
        change_tx(draft, random, |tx, random| {
            tx.version = *random.pick(&[0, 1, 2, 3, 0x7fff_ffff, 0x8000_0000, u32::MAX])
        })
    }),
    at(Plan, "sequence lock", sequence_lock),
    at(Plan, "lock of script", lock_of_script),
    at(Plan, "64 bytes", sixty_four_bytes),
    at(Plan, "sigops legacy", sigops_legacy),
    at(Plan, "sigops", sigops),
    at(Plan, "large outputs", |draft, random| {
        change_tx(draft, random, |tx, random| {
            let size = *random.pick(&[9_999, 10_000, 10_001]);
            tx.outputs.push(output(0, vec![OP_1; size]));
        })
    }),
    large(Plan, "base size", base_size),
    large(Plan, "weight", weight),
    // Scripts: one input fails, or not.
    at(Built, "script bytes", script_bytes),
    at(Built, "script bytes again", script_bytes),
    at(Built, "script shape", script_shape),
    at(Built, "script shape again", script_shape),
    at(Built, "wrong key", wrong_signature),
    at(Built, "signed otherwise", signed_otherwise),
    // What a merkle tree does not tell.
    at(Built, "witness stripped", |draft, random| {
        change_input(draft, random, |input, _| {
            let some = !input.witness.is_empty();
            input.witness.clear();
            some
        })
    }),
    at(Built, "witness added", |draft, random| {
        change_input(draft, random, |input, random| {
            input.witness.push(random.bytes(3));
            true
        })
    }),
    at(Sealed, "merkle duplicates", merkle_duplicates),
    at(Sealed, "mutated witness", |draft, random| {
        change_input(draft, random, |input, random| {
            match random.below(3) {
                0 => input.witness.clear(),
                1 => input.witness.push(vec![1]),
                _ => input.witness.iter_mut().for_each(|item| item.push(0)),
            }
            true
        })
    }),
    at(Sealed, "mutated coinbase witness", |draft, random| {
        let witness = &mut draft.block.txs[0].inputs[0].witness;
        match random.below(4) {
            0 => witness.clear(),
            1 => witness.push(vec![0; 32]),
            2 => *witness = vec![vec![0; 31]],
            _ => *witness = vec![vec![9; 32]],
        }
        true
    }),
    at(Sealed, "mutated transaction", |draft, random| {
        let index = random.below(draft.block.txs.len());
        draft.block.txs[index].lock_time ^= 1;
        true
    }),
    at(Sealed, "mutated order", |draft, random| {
        let count = draft.block.txs.len();
        count > 2 && {
            draft.block.txs.swap(1, 1 + random.below(count - 1));
            true
        }
    }),
];

fn version(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    draft.block.header.version = *random.pick(&[i32::MIN, -1, 0, 1, 2, 3, 4, 5, 0x2000_0000]);
    true
}

fn time(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let median = i64::from(draft.state.median());
    let latest = i64::from(draft.now) + 7200;
    let time = match random.below(6) {
        0 | 1 => median + random.range(-1, 1),
        2 | 3 => latest + random.range(-1, 1),
        4 => 0,
        _ => i64::from(u32::MAX),
    };
    draft.block.header.time = u32::try_from(time).unwrap();
    true
}

/// Also targets that are negative, too large, or zero.
fn bits(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let bits =
        [0x207f_fffe, 0x2070_0000, 0x2080_0000, 0x20ff_ffff, 0x217f_ffff, 0xff7f_ffff, 0, 0x1f7f_ffff, 0x2100_7fff];
    draft.block.header.bits = *random.pick(&bits);
    true
}

fn parent(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let mut back = draft.state.clone();
    for _ in 0..random.below(4) {
        back = back.parent.clone().unwrap_or(back);
    }
    draft.block.header.prev_block = if random.once_in(3) { BlockHash([5; 32]) } else { back.hash };
    true
}

fn no_work(draft: &mut Draft<'_>, _: &mut Random) -> bool {
    while draft.block.header.hash().0[31] < 0x80 {
        draft.block.header.nonce = draft.block.header.nonce.wrapping_add(1);
    }
    true
}

fn coinbase_height(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let height = i64::from(draft.height());
    let tail = random.bytes(4);
    let script = &mut draft.block.txs[0].inputs[0].script_sig;
    *script = match random.below(5) {
        0 => ScriptBuilder::new().push_int(height + 1).raw(&tail).into_bytes(),
        1 => ScriptBuilder::new().push_int(height - 1).raw(&tail).into_bytes(),
        // Longer than needed, and behind another push.
        2 => [&[2, u8::try_from(height & 0xff).unwrap(), u8::try_from(height >> 8).unwrap(), 0, 0][..], &tail].concat(),
        3 => ScriptBuilder::new().op(OP_0).push_int(height).raw(&tail).into_bytes(),
        _ => ScriptBuilder::new().push_int(height).op(0x4e).into_bytes(),
    };
    true
}

fn coinbase_script_size(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let size = *random.pick(&[0, 1, 2, 3, 4, 99, 100, 101, 102]);
    draft.block.txs[0].inputs[0].script_sig.resize(size, 0);
    true
}

fn coinbase_amount(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let more = *random.pick(&[1, 1, -1, 50, -50, 100_000_000]);
    match draft.block.txs[0].outputs.iter_mut().find(|output| output.value.0 > 100) {
        Some(output) => output.value.0 += more,
        None => return false,
    }
    true
}

fn coinbase_outputs(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let subsidy = block_subsidy(Height(draft.height()), draft.params).0;
    let outputs = &mut draft.block.txs[0].outputs;
    match random.below(6) {
        0 => outputs.push(output(1, vec![OP_1])),
        1 => outputs.push(output(0, vec![OP_1])),
        2 => outputs.push(output(-1, vec![OP_1])),
        3 => outputs.push(output(Amount::MAX_MONEY.0 + random.range(0, 1), vec![OP_1])),
        4 => outputs.push(output(Amount::MAX_MONEY.0 - subsidy, vec![OP_1])),
        _ => outputs.clear(),
    }
    true
}

/// The coinbase of an earlier block, whose outputs may all be spent by now.
fn coinbase_repeated(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let is_spent = |tx: &&Rc<MutTx>| {
        let txid = tx.txid();
        (0..tx.outputs.len())
            .all(|n| !draft.state.coins.contains_key(&OutPoint { txid, vout: u32::try_from(n).unwrap() }))
    };
    let spent: Vec<_> = draft.state.coinbases.iter().filter(is_spent).cloned().collect();
    let from = if spent.is_empty() || random.once_in(2) { &draft.state.coinbases } else { &spent };
    let latest = &from[from.len().saturating_sub(20)..];
    let tx: &Rc<MutTx> = if random.once_in(2) { random.pick(from) } else { random.pick(latest) };
    draft.block.txs[0] = MutTx::clone(tx);
    if random.once_in(2) {
        // In a block of its own its witness commitment stays as well, and so does its txid.
        draft.block.txs.truncate(1);
    }
    true
}

fn second_coinbase(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let mut second = draft.block.txs[0].clone();
    second.inputs[0].script_sig.push(0);
    second.inputs[0].script_sig.truncate(100);
    let place = 1 + random.below(draft.block.txs.len());
    draft.block.txs.insert(place, second);
    true
}

fn is_commitment(output: &MutOutput) -> bool {
    output.script_pubkey.len() >= 38 && output.script_pubkey.starts_with(&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed])
}

fn no_commitment(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    draft.block.txs[0].outputs.retain(|output| !is_commitment(output));
    if random.once_in(2) {
        draft.block.txs[0].inputs[0].witness.clear();
    }
    true
}

/// Only the last output that looks like a commitment is one.
fn decoy_commitments(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let mut decoy = commitment_output();
    match random.below(4) {
        0 => decoy.script_pubkey.truncate(37),
        1 => decoy.script_pubkey.extend(random.bytes(5)),
        2 => decoy.script_pubkey[1] = 0x23,
        _ => {}
    }
    let outputs = &mut draft.block.txs[0].outputs;
    outputs.insert(random.below(outputs.len() + 1), decoy);
    true
}

fn reserved_value(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    draft.block.txs[0].inputs[0].witness = match random.below(6) {
        0 => vec![vec![0; 31]],
        1 => vec![vec![0; 33]],
        2 => vec![vec![0; 32], vec![]],
        3 => vec![vec![]],
        4 => vec![random.bytes(32)],
        _ => vec![],
    };
    true
}

fn commitment_altered(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    match draft.block.txs[0].outputs.iter_mut().rev().find(|output| is_commitment(output)) {
        Some(output) => output.script_pubkey[6 + random.below(32)] ^= 1 << random.below(8),
        None => return false,
    }
    true
}

fn change_tx(
    draft: &mut Draft<'_>,
    random: &mut Random,
    change: impl FnOnce(&mut super::plan::PlanTx, &mut Random),
) -> bool {
    if draft.txs.is_empty() {
        return false;
    }
    let number = random.below(draft.txs.len());
    change(&mut draft.txs[number], random);
    true
}

fn double_spend(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    if draft.txs.len() < 2 {
        return false;
    }
    let later = 1 + random.below(draft.txs.len() - 1);
    let earlier = random.below(later);
    let stolen = random.pick(&draft.txs[earlier].inputs).clone();
    let at = random.below(draft.txs[later].inputs.len());
    draft.txs[later].inputs[at] = stolen;
    true
}

fn missing_input(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let state = draft.state.clone();
    change_tx(draft, random, |tx, random| {
        let place = random.below(tx.inputs.len());
        let outpoint = match &tx.inputs[place].source {
            Source::Coin(outpoint, _) if random.once_in(2) => {
                OutPoint { vout: outpoint.vout.wrapping_add(1 + random.u32() % 3), ..*outpoint }
            }
            _ => OutPoint { txid: Txid([9; 32]), vout: 0 },
        };
        // It may be there after all: then it is signed for as any other.
        tx.inputs[place].source = Source::Coin(outpoint, state.coins.get(&outpoint).cloned());
    })
}

/// An output that a block before spent, or that was never spendable.
fn spent_input(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let mut back = draft.state.clone();
    for _ in 0..1 + random.below(5) {
        back = back.parent.clone().unwrap_or(back);
    }
    let gone: Vec<_> = back.coins.iter().filter(|(outpoint, _)| !draft.state.coins.contains_key(outpoint)).collect();
    if gone.is_empty() || draft.txs.is_empty() {
        return false;
    }
    let (outpoint, coin) = *random.pick(&gone);
    let source = Source::Coin(*outpoint, Some(coin.clone()));
    change_tx(draft, random, |tx, random| {
        let place = random.below(tx.inputs.len());
        tx.inputs[place].source = source;
    })
}

/// Adds a spend of a coin to the block; false if there is no such coin.
fn add_spend(draft: &mut Draft<'_>, random: &mut Random, wanted: impl Fn(&OwnCoin, u32) -> bool) -> bool {
    let height = draft.height();
    let taken: Vec<OutPoint> = draft
        .txs
        .iter()
        .flat_map(|tx| &tx.inputs)
        .filter_map(|input| match &input.source {
            Source::Coin(outpoint, _) => Some(*outpoint),
            Source::Own(..) => None,
        })
        .collect();
    let fits: Vec<_> = draft
        .state
        .coins
        .iter()
        .filter(|(outpoint, coin)| wanted(coin, height) && !taken.contains(outpoint))
        .map(|(outpoint, coin)| (*outpoint, coin.clone()))
        .collect();
    if fits.is_empty() {
        return false;
    }
    let (outpoint, coin) = random.pick(&fits).clone();
    let tx = draft.plan_tx(vec![(Source::Coin(outpoint, Some(coin.clone())), coin)], random);
    draft.order.push(draft.txs.len());
    draft.txs.push(tx);
    true
}

/// Coinbases of 98 to 101 blocks ago.
fn immature(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    add_spend(draft, random, |coin, height| {
        coin.is_coinbase && coin.lock.is_some() && (97..=101).contains(&(height - coin.height.0))
    })
}

fn output_values(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    change_tx(draft, random, |tx, random| {
        let max = Amount::MAX_MONEY.0;
        let choices: [&[i64]; 8] = [&[-1], &[i64::MIN], &[max], &[max + 1], &[i64::MAX], &[max, 1], &[max, max], &[0]];
        for &value in *random.pick(&choices) {
            tx.outputs.insert(random.below(tx.outputs.len() + 1), output(value, vec![OP_1]));
        }
    })
}

fn no_fee(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    if draft.txs.is_empty() {
        return false;
    }
    let number = random.below(draft.txs.len());
    let coin = |source: &Source| match source {
        Source::Coin(_, coin) => coin.clone(),
        Source::Own(from, vout) => draft.own_coin(*from, *vout),
    };
    let sum = |total: i64, value: i64| total.saturating_add(value);
    let coins = draft.txs[number].inputs.iter().filter_map(|input| coin(&input.source));
    let value_in = coins.map(|coin| coin.value).fold(0, sum);
    let value_out = draft.txs[number].outputs.iter().map(|output| output.value.0).fold(0, sum);
    let fee = value_in.saturating_sub(value_out).saturating_add(i64::from(random.once_in(2)));
    let first = &mut draft.txs[number].outputs[0].value;
    *first = Amount(first.0.saturating_add(fee));
    true
}

fn lock_time(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let (height, median) = (i64::from(draft.height()), i64::from(draft.state.median()));
    let block_time = i64::from(draft.block.header.time);
    change_tx(draft, random, |tx, random| {
        let value = match random.below(4) {
            0 => height + random.range(-2, 1),
            1 => median + random.range(-1, 1),
            2 => block_time + random.range(-1, 1),
            _ => 500_000_000 + random.range(-1, 0),
        };
        tx.lock_time = u32::try_from(value).unwrap();
        if random.once_in(2) {
            tx.inputs.iter_mut().for_each(|input| input.sequence = input.sequence.min(0xffff_fffe));
        }
    })
}

fn sequence(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    change_tx(draft, random, |tx, random| {
        let place = random.below(tx.inputs.len());
        tx.inputs[place].sequence = match random.below(4) {
            0 => random.u32() & 0xffff,
            1 => random.u32() & 0x0040_00ff,
            2 => random.u32(),
            _ => u32::MAX,
        };
    })
}

/// A relative lock time at its limit: the last that is met, and the first that is not.
fn sequence_lock(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    if draft.txs.is_empty() {
        return false;
    }
    let number = random.below(draft.txs.len());
    let place = random.below(draft.txs[number].inputs.len());
    let height_of = match &draft.txs[number].inputs[place].source {
        Source::Coin(_, Some(coin)) => coin.height.0,
        _ => draft.height(),
    };
    let type_flag = u32::from(random.once_in(2)) << 22;
    let met = (0..0xffff).take_while(|n| draft.is_old_enough(height_of, type_flag | n)).last().unwrap_or(0);
    let unused_bits = if random.once_in(3) { random.u32() & 0x7fbf_0000 & !(1 << 22) } else { 0 };
    let tx = &mut draft.txs[number];
    tx.inputs[place].sequence = type_flag | unused_bits | (met + u32::from(random.once_in(2)));
    tx.version = *random.pick(&[2, 2, 2, 1, u32::MAX]);
    true
}

/// Spends a coin with a time in its script too early, or with a transaction that does not say the time.
fn lock_of_script(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let is_segwit = draft.is_active(Deployment::Segwit);
    let found = add_spend(draft, random, |coin, _| {
        coin.lock.is_some_and(|lock| {
            let is_time = matches!(lock.policy, Policy::Cltv(_) | Policy::Csv(_));
            let is_used = !matches!(lock.wrap, Wrap::Wpkh | Wrap::ShWpkh | Wrap::TapKey | Wrap::Future | Wrap::Anchor);
            is_time && is_used && (is_segwit || !Wallet::needs_witness(lock)) && !coin.is_coinbase
        })
    });
    if !found {
        return false;
    }
    let height = draft.height();
    let tx = draft.txs.last_mut().unwrap();
    match random.below(5) {
        0 => tx.lock_time = tx.lock_time.saturating_sub(1),
        1 => tx.inputs[0].sequence = u32::MAX,
        2 => tx.version = 1,
        3 => tx.inputs[0].sequence ^= 1 << random.below(23),
        _ => tx.lock_time = height - 1,
    }
    true
}

/// A transaction whose size is that of an inner node of the merkle tree.
fn sixty_four_bytes(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    // Four bytes of script that anyone opens make 64 if the input has no script.
    let found = add_spend(draft, random, |coin, height| {
        coin.lock.is_some_and(|lock| lock.policy == Policy::True && lock.wrap == Wrap::Bare)
            && (!coin.is_coinbase || height - coin.height.0 >= 100)
    });
    if found {
        let script = vec![OP_1; *random.pick(&[3, 4, 4, 5])];
        let tx = draft.txs.last_mut().unwrap();
        tx.outputs = vec![output(0, script)];
    }
    found
}

/// Signature operations that are counted without coins: exactly 20,000, one less or more.
fn sigops_legacy(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    draft.build();
    let legacy = |block: &MutBlock| -> usize {
        let count = |script: &[u8]| lydian_script::legacy_sigop_count(script, false);
        let of_tx = |tx: &MutTx| -> usize {
            tx.inputs.iter().map(|input| count(&input.script_sig)).sum::<usize>()
                + tx.outputs.iter().map(|output| count(&output.script_pubkey)).sum::<usize>()
        };
        block.txs.iter().map(of_tx).sum()
    };
    let target = 20_000 - 1 + random.below(3);
    let missing = target.saturating_sub(legacy(&draft.block));
    let mut script = vec![OP_CHECKMULTISIG; missing / 20];
    script.resize(missing / 20 + missing % 20, OP_CHECKSIG);
    if random.once_in(2) {
        // Never executed, counted all the same.
        script.insert(0, OP_RETURN);
    }
    draft.coinbase.outputs.insert(0, output(0, script));
    true
}

/// Signature operations with those of P2SH and witnesses: at a cost of 80,000, one less or more.
fn sigops(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let is_segwit = draft.is_active(Deployment::Segwit);
    for _ in 0..1 + random.below(8) {
        add_spend(draft, random, |coin, height| {
            coin.lock.is_some_and(|lock| {
                matches!(lock.policy, Policy::Sigops(_))
                    && matches!(lock.wrap, Wrap::Sh | Wrap::Wsh | Wrap::ShWsh)
                    && (is_segwit || !Wallet::needs_witness(lock))
            }) && (!coin.is_coinbase || height - coin.height.0 >= 100)
        });
    }
    draft.build();
    let flags = script_flags(Height(draft.height()), &BlockHash::ZERO, draft.params);
    let mut cost = 0;
    for (tx, coins) in draft.block.txs.iter().zip(&draft.spent) {
        let Some(tx) = tx.to_transaction() else { return false };
        let coins: Vec<Coin> =
            coins.iter().map(|coin| Coin::new(output_of(coin.as_deref()), Height(0), false)).collect();
        let coins = if tx.view().is_coinbase() { &[] } else { &coins[..] };
        cost += sigops_cost(tx.view(), coins, flags);
    }
    let target = 80_000 - 1 + random.below(6);
    let missing = target.saturating_sub(cost) / 4;
    if missing > 18_000 {
        return false;
    }
    draft.coinbase.outputs.insert(0, output(0, vec![OP_CHECKSIG; missing]));
    true
}

/// Bytes without witnesses: a million, one less or more. The weight limit is met first where there is a witness.
fn base_size(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    draft.build();
    let stripped: usize = draft.block.txs.iter().map(|tx| tx.encode_stripped().len()).sum();
    let target: usize = *random.pick(&[999_999, 1_000_000, 1_000_001, 1_000_001]);
    // The output takes eight bytes of value and five of length.
    let size = target.saturating_sub(stripped + 81 + 13);
    draft.coinbase.outputs.insert(0, output(0, vec![OP_RETURN; size]));
    true
}

/// Weight: four million, one less or more, by a witness that nothing looks at.
fn weight(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    if !draft.is_active(Deployment::Segwit) {
        return false;
    }
    let found = add_spend(draft, random, |coin, height| {
        coin.lock.is_some_and(|lock| lock.wrap == Wrap::Future) && (!coin.is_coinbase || height - coin.height.0 >= 100)
    });
    if !found {
        return false;
    }
    // Filled when it is built: see `fill_weight`.
    draft.weight_wanted = Some(4_000_000 - 1 + random.below(3));
    true
}

/// Fills the last transaction's witness until the block has the weight.
pub fn fill_weight(block: &mut MutBlock, wanted: usize) {
    let weigh = |block: &MutBlock| {
        let stripped: usize = block.txs.iter().map(|tx| tx.encode_stripped().len()).sum();
        let count = if block.txs.len() < 253 { 1 } else { 3 };
        3 * (80 + count + stripped) + block.encode().len()
    };
    let Some(input) = block.txs.last_mut().and_then(|tx| tx.inputs.first_mut()) else { return };
    input.witness = vec![vec![0; 70_000]];
    let missing = wanted.saturating_sub(weigh(block));
    if let Some(input) = block.txs.last_mut().and_then(|tx| tx.inputs.first_mut()) {
        input.witness[0].resize(70_000 + missing, 0);
    }
}

/// An input of the block that spends a known coin, changed. The transaction is one that no other of the block spends from,
/// so that what breaks is the input.
fn change_input(
    draft: &mut Draft<'_>,
    random: &mut Random,
    change: impl FnOnce(&mut MutInput, &mut Random) -> bool,
) -> bool {
    let is_leaf = |tx: &MutTx| {
        let txid = tx.txid();
        !draft.block.txs.iter().flat_map(|tx| &tx.inputs).any(|input| input.prevout.txid == txid)
    };
    let leaves: Vec<usize> = (1..draft.block.txs.len()).filter(|&n| is_leaf(&draft.block.txs[n])).collect();
    if leaves.is_empty() {
        return false;
    }
    let tx = &mut draft.block.txs[*random.pick(&leaves)];
    let place = random.below(tx.inputs.len());
    change(&mut tx.inputs[place], random)
}

/// One bit or byte of a script or witness.
fn script_bytes(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    change_input(draft, random, |input, random| {
        let mut places: Vec<&mut Vec<u8>> = input.witness.iter_mut().collect();
        places.push(&mut input.script_sig);
        places.retain(|place| !place.is_empty());
        if places.is_empty() {
            return false;
        }
        let which = random.below(places.len());
        let bytes = &mut *places[which];
        let at = if random.once_in(3) { bytes.len() - 1 } else { random.below(bytes.len()) };
        match random.below(4) {
            0 => bytes[at] = random.bytes(1)[0],
            1 => bytes.truncate(at),
            2 => bytes.insert(at, random.bytes(1)[0]),
            _ => bytes[at] ^= 1 << random.below(8),
        }
        true
    })
}

/// Items dropped, added, emptied, exchanged; scripts that are no pushes, or push too much.
fn script_shape(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    change_input(draft, random, |input, random| {
        let count = input.witness.len();
        match random.below(10) {
            0 => input.script_sig.clear(),
            1 => input.script_sig.insert(0, OP_1),
            2 => input.script_sig.insert(0, *random.pick(&[OP_NOP, OP_DUP, OP_RETURN, OP_CAT, 0xff, OP_VERIF, 0x4c])),
            3 => input.script_sig.push(*random.pick(&[OP_0, OP_1, OP_DROP, OP_IF])),
            4 => input.script_sig = [vec![0x4d, 0x09, 0x02], vec![1; 521]].concat(),
            5 if count > 0 => drop(input.witness.remove(random.below(count))),
            6 if count > 0 => input.witness.insert(random.below(count), Vec::new()),
            7 if count > 0 => input.witness[random.below(count)].clear(),
            8 if count > 1 => input.witness.swap(0, count - 1),
            9 if count > 0 => input.witness.insert(0, vec![7; *random.pick(&[1, 520, 521])]),
            _ => return false,
        }
        true
    })
}

/// Signed by nobody's key: one signature is replaced by that of another input.
fn wrong_signature(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let signatures: Vec<Vec<u8>> = draft
        .block
        .txs
        .iter()
        .flat_map(|tx| &tx.inputs)
        .flat_map(|input| &input.witness)
        .filter(|item| (64..=73).contains(&item.len()))
        .cloned()
        .collect();
    if signatures.is_empty() {
        return false;
    }
    let other = random.pick(&signatures).clone();
    change_input(draft, random, |input, _| {
        let found = input.witness.iter_mut().find(|item| (64..=73).contains(&item.len()));
        found.map(|item| *item = other).is_some()
    })
}

/// A transaction of one input changed after it was signed.
fn signed_otherwise(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let fits = |tx: &MutTx| {
        let txid = tx.txid();
        tx.inputs.len() == 1
            && !draft.block.txs.iter().flat_map(|tx| &tx.inputs).any(|input| input.prevout.txid == txid)
            && tx.outputs.iter().any(|output| !is_unspendable(&output.script_pubkey) && output.value.0 > 0)
    };
    let single: Vec<usize> = (1..draft.block.txs.len()).filter(|&n| fits(&draft.block.txs[n])).collect();
    if single.is_empty() {
        return false;
    }
    let tx = &mut draft.block.txs[*random.pick(&single)];
    match random.below(3) {
        0 => tx.outputs.iter_mut().filter(|output| output.value.0 > 0).take(1).for_each(|output| output.value.0 -= 1),
        1 => tx.version ^= 4,
        _ => tx.outputs.push(output(0, vec![OP_1])),
    }
    true
}

/// Transactions repeated so that the merkle root stays (CVE-2012-2459).
fn merkle_duplicates(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let txs = &mut draft.block.txs;
    let count = txs.len();
    // An odd level is where a tree repeats its last node.
    let mut width = 1;
    while count.is_multiple_of(2 * width) {
        width *= 2;
    }
    if count == width && !random.once_in(3) {
        return false;
    }
    let last: Vec<MutTx> = txs[count - width..].to_vec();
    txs.extend(last);
    true
}
