//! Faults of transactions: missing coins, values, lock times.

use super::{Bench, broken};
use crate::presets::maker::{FreeCoin, TRUE_SCRIPT, free_input, free_tx, output};
use crate::regtest::COINBASE_MATURITY;
use lydian_primitives::build::MutTx;
use lydian_primitives::{OutPoint, Txid};

const MISSING: &str = "bad-txns-inputs-missingorspent";
const NONFINAL: &str = "bad-txns-nonfinal";

pub(super) fn groups(bench: &mut Bench) {
    values(bench);
    existence(bench);
    maturity(bench);
    lock_times(bench);
}

fn pay(coin: &FreeCoin, value: i64) -> MutTx {
    free_tx(&[*coin], vec![output(value, &TRUE_SCRIPT)])
}

fn values(bench: &mut Bench) {
    let coin = bench.coin();
    let case = broken("outputs-a-satoshi-above-inputs", "bad-txns-in-belowout");
    bench.txs(case, vec![pay(&coin, coin.value + 1)], vec![pay(&coin, coin.value)]);

    // The overflow of 2010: two outputs whose sum exceeds 2^63.
    let coin = bench.coin();
    let mut overflow = pay(&coin, i64::MAX / 2 + 1);
    overflow.outputs.push(overflow.outputs[0].clone());
    let case = broken("outputs-together-overflow", "bad-txns-vout-toolarge");
    bench.txs(case, vec![overflow], vec![pay(&coin, coin.value)]);

    let coin = bench.coin();
    let mut negative = pay(&coin, -1);
    negative.outputs.push(output(coin.value, &TRUE_SCRIPT));
    let case = broken("output-of-minus-1", "bad-txns-vout-negative");
    bench.txs(case, vec![negative], vec![pay(&coin, coin.value)]);
}

fn existence(bench: &mut Bench) {
    let unknown = FreeCoin { outpoint: OutPoint { txid: Txid([0x42; 32]), vout: 0 }, value: 1, coinbase_height: None };
    let case = broken("spends-what-never-was", MISSING);
    bench.txs(case, vec![pay(&unknown, 1)], Vec::new());

    let coin = bench.coin();
    let (first, second) = (pay(&coin, coin.value), pay(&coin, coin.value - 1));
    let case = broken("spent-twice-in-the-block", MISSING);
    bench.txs(case, vec![first.clone(), second.clone()], vec![first]);
    let case = broken("spent-in-an-earlier-block", MISSING);
    bench.txs(case, vec![second], Vec::new());

    // CVE-2018-17144.
    let coin = bench.coin();
    let single = pay(&coin, coin.value);
    let mut twice = single.clone();
    twice.inputs.push(twice.inputs[0].clone());
    let case = broken("same-input-twice", "bad-txns-inputs-duplicate");
    bench.txs(case, vec![twice], vec![single]);

    let coin = bench.coin();
    let parent = pay(&coin, coin.value);
    let made = FreeCoin { outpoint: OutPoint { txid: parent.txid(), vout: 0 }, ..coin };
    let child = pay(&made, coin.value);
    let case = broken("child-before-its-parent", MISSING);
    bench.txs(case, vec![child.clone(), parent.clone()], vec![parent, child]);
}

fn maturity(bench: &mut Bench) {
    let of_age = |age: u32| {
        let wanted = bench.maker.height + 1 - age;
        let coin = bench.maker.coins().iter().find(|coin| coin.coinbase_height == Some(wanted));
        coin.map(|coin| pay(coin, coin.value)).into_iter().collect::<Vec<_>>()
    };
    let (bad, good) = (of_age(COINBASE_MATURITY - 1), of_age(COINBASE_MATURITY));
    let reason = "bad-txns-premature-spend-of-coinbase";
    bench.txs(broken("coinbase-after-99-blocks", reason), bad, good);
}

fn lock_times(bench: &mut Bench) {
    let locked = |bench: &Bench, lock_time: u32| {
        let mut tx = bench.plain_tx();
        tx.lock_time = lock_time;
        tx.inputs[0].sequence = 0xffff_fffe;
        vec![tx]
    };
    let height = bench.maker.height + 1;
    let (bad, good) = (locked(bench, height), locked(bench, height - 1));
    bench.txs(broken("locked-to-this-height", NONFINAL), bad, good);
    // The block's own time is an hour later than the median.
    let median = bench.maker.median_time_past();
    let (bad, good) = (locked(bench, median), locked(bench, median - 1));
    let case = broken("locked-to-the-median-time", NONFINAL);
    bench.txs(case, bad, good);

    let relative = |bench: &Bench, more: u32| {
        let coin = bench.maker.rich_coin();
        let tx = coin.map(|coin| {
            let mut input = free_input(coin.outpoint);
            input.sequence = bench.maker.height + 1 - coin.coinbase_height.unwrap_or(0) + more;
            MutTx { version: 2, inputs: vec![input], outputs: vec![output(coin.value, &TRUE_SCRIPT)], lock_time: 0 }
        });
        tx.into_iter().collect::<Vec<_>>()
    };
    let (bad, good) = (relative(bench, 1), relative(bench, 0));
    let case = broken("sequence-a-block-too-many", NONFINAL);
    bench.txs(case, bad, good);
}
