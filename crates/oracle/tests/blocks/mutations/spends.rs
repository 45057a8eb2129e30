//! Changes of inputs, output values and lock times of transactions.

use crate::plan::{Draft, Source, output};
use crate::rng::Random;
use crate::wallet::{OwnCoin, Policy, Wallet, Wrap};
use lydian_consensus::Deployment;
use lydian_primitives::{Amount, OutPoint, Txid};
use lydian_script::opcodes::*;

pub fn change_tx(
    draft: &mut Draft<'_>,
    random: &mut Random,
    change: impl FnOnce(&mut crate::plan::PlanTx, &mut Random),
) -> bool {
    if draft.txs.is_empty() {
        return false;
    }
    let number = random.below(draft.txs.len());
    change(&mut draft.txs[number], random);
    true
}

pub fn double_spend(draft: &mut Draft<'_>, random: &mut Random) -> bool {
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

pub fn missing_input(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    let state = draft.state.clone();
    change_tx(draft, random, |tx, random| {
        let place = random.below(tx.inputs.len());
        let outpoint = match &tx.inputs[place].source {
            Source::Coin(outpoint, _) if random.once_in(2) => {
                OutPoint { vout: outpoint.vout.wrapping_add(1 + random.u32() % 3), ..*outpoint }
            }
            _ => OutPoint { txid: Txid([9; 32]), vout: 0 },
        };
        // The output may exist after all; then it is signed for like any other.
        tx.inputs[place].source = Source::Coin(outpoint, state.coins.get(&outpoint).cloned());
    })
}

/// An output that an earlier block spent.
pub fn spent_input(draft: &mut Draft<'_>, random: &mut Random) -> bool {
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

/// Adds a spend of a coin to the block; returns false if there is no such coin.
pub fn add_spend(draft: &mut Draft<'_>, random: &mut Random, wanted: impl Fn(&OwnCoin, u32) -> bool) -> bool {
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

/// Spends a coinbase with a depth near the maturity limit.
pub fn immature(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    add_spend(draft, random, |coin, height| {
        coin.is_coinbase && coin.lock.is_some() && (97..=101).contains(&(height - coin.height.0))
    })
}

pub fn output_values(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    change_tx(draft, random, |tx, random| {
        let max = Amount::MAX_MONEY.0;
        let choices: [&[i64]; 8] = [&[-1], &[i64::MIN], &[max], &[max + 1], &[i64::MAX], &[max, 1], &[max, max], &[0]];
        for &value in *random.pick(&choices) {
            tx.outputs.insert(random.below(tx.outputs.len() + 1), output(value, vec![OP_1]));
        }
    })
}

pub fn no_fee(draft: &mut Draft<'_>, random: &mut Random) -> bool {
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

pub fn lock_time(draft: &mut Draft<'_>, random: &mut Random) -> bool {
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

pub fn sequence(draft: &mut Draft<'_>, random: &mut Random) -> bool {
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

/// A relative lock time at its limit: the last that is met, or the first that is not.
pub fn sequence_lock(draft: &mut Draft<'_>, random: &mut Random) -> bool {
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

/// Spends a coin with a lock time in its script too early, or without the required fields.
pub fn lock_of_script(draft: &mut Draft<'_>, random: &mut Random) -> bool {
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

/// A transaction of about 64 bytes, the size of the preimage of an inner node of the merkle tree.
pub fn sixty_four_bytes(draft: &mut Draft<'_>, random: &mut Random) -> bool {
    // Four bytes of anyone-can-spend script make 64 bytes if the input has no script.
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
