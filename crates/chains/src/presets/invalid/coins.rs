//! Faults of spent coins: existence, maturity, values, lock times.

use super::Bench;
use crate::error::ChainsError;
use crate::presets::maker::{FreeCoin, TRUE_SCRIPT, free_input, free_tx, output};
use crate::regtest::COINBASE_MATURITY;
use crate::wallet::script::OP_RETURN;
use lydian_primitives::build::MutTx;
use lydian_primitives::{OutPoint, Txid};

/// The sequence counts units of 512 seconds: Core's `SEQUENCE_LOCKTIME_TYPE_FLAG`.
const SEQUENCE_TYPE_TIME: u32 = 1 << 22;
const SEQUENCE_DISABLE: u32 = 1 << 31;

pub(super) fn cases(bench: &mut Bench) -> Result<(), ChainsError> {
    missing(bench)?;
    values(bench)?;
    maturity(bench)?;
    lock_times(bench)?;
    relative_locks(bench)
}

fn missing(bench: &mut Bench) -> Result<(), ChainsError> {
    let rule = "bad-txns-inputs-missingorspent";
    let pay = |outpoint: OutPoint, value: i64| {
        let coin = FreeCoin { outpoint, value, coinbase_height: None };
        free_tx(&[coin], vec![output(value, &TRUE_SCRIPT)])
    };
    let coin = bench.maker.spendable()[0];
    let unknown = OutPoint { txid: Txid([0x42; 32]), vout: 0 };
    bench.broken("spends-what-never-was", rule, rule, vec![pay(unknown, 1)], |_| ())?;
    let beyond = OutPoint { vout: 0x7fff, ..coin.outpoint };
    bench.broken("spends-beyond-the-outputs", rule, rule, vec![pay(beyond, 1)], |_| ())?;
    let first = pay(coin.outpoint, coin.value);
    let second = pay(coin.outpoint, coin.value - 1);
    bench.broken("spent-twice-in-the-block", rule, rule, vec![first.clone(), second.clone()], |_| ())?;
    let child = pay(OutPoint { txid: first.txid(), vout: 0 }, coin.value);
    bench.broken("child-before-its-parent", rule, rule, vec![child.clone(), first.clone()], |_| ())?;
    let mut self_spend = bench.maker.template(Vec::new());
    let coinbase = OutPoint { txid: self_spend.txs[0].txid(), vout: 0 };
    self_spend.txs[0].outputs.truncate(1);
    self_spend.txs[0].inputs[0].witness.clear();
    let own = OutPoint { txid: self_spend.txs[0].txid(), ..coinbase };
    let premature = "bad-txns-premature-spend-of-coinbase";
    bench.broken("spends-its-own-coinbase", premature, premature, vec![pay(own, 1)], |block| {
        block.txs[0] = self_spend.txs[0].clone();
    })?;
    bench.twin("child-behind-its-parent", rule, vec![first, child], |_| ())?;
    bench.broken("spent-in-an-earlier-block", rule, rule, vec![second], |_| ())?;

    // An unspendable output is not a coin.
    let coin = bench.maker.spendable()[0];
    let data = free_tx(&[coin], vec![output(500, &[OP_RETURN]), output(coin.value - 500, &TRUE_SCRIPT)]);
    let outpoint = OutPoint { txid: data.txid(), vout: 0 };
    bench.twin("chain", "", vec![data], |_| ())?;
    bench.broken("spends-a-data-output", rule, rule, vec![pay(outpoint, 500)], |_| ())?;
    Ok(())
}

fn values(bench: &mut Bench) -> Result<(), ChainsError> {
    let rule = "bad-txns-in-belowout";
    let mut tx = bench.plain_tx();
    bench.twin("outputs-as-large-as-inputs", rule, vec![tx], |_| ())?;
    tx = bench.plain_tx();
    tx.outputs[0].value.0 += 1;
    bench.broken("outputs-a-satoshi-above-inputs", rule, rule, vec![tx], |_| ())?;
    Ok(())
}

fn maturity(bench: &mut Bench) -> Result<(), ChainsError> {
    let rule = "bad-txns-premature-spend-of-coinbase";
    let spend_at_age = |bench: &Bench, age: u32| {
        let wanted = bench.maker.height + 1 - age;
        let coin = bench.maker.coins().iter().find(|coin| coin.coinbase_height == Some(wanted)).copied();
        coin.map(|coin| free_tx(&[coin], vec![output(coin.value, &TRUE_SCRIPT)]))
    };
    let premature = spend_at_age(bench, COINBASE_MATURITY - 1);
    bench.broken("coinbase-after-99-blocks", rule, rule, premature.into_iter().collect(), |_| ())?;
    let mature = spend_at_age(bench, COINBASE_MATURITY);
    bench.twin("coinbase-after-100-blocks", rule, mature.into_iter().collect(), |_| ())
}

fn lock_times(bench: &mut Bench) -> Result<(), ChainsError> {
    let (rule, reason) = ("tx-nonfinal", "bad-txns-nonfinal");
    let locked = |bench: &Bench, lock_time: u32, sequence: u32| {
        let mut tx = bench.plain_tx();
        tx.lock_time = lock_time;
        tx.inputs[0].sequence = sequence;
        vec![tx]
    };
    let height = bench.maker.height + 1;
    bench.broken("locked-to-this-height", rule, reason, locked(bench, height, 0xffff_fffe), |_| ())?;
    bench.twin("locked-to-the-height-before", rule, locked(bench, height - 1, 0xffff_fffe), |_| ())?;
    bench.twin("locked-for-ever-but-final", rule, locked(bench, u32::MAX, u32::MAX), |_| ())?;
    // The block's own time is an hour later than the median (BIP-0113).
    let median = bench.maker.median_time_past();
    bench.broken("locked-to-the-median-time", rule, reason, locked(bench, median, 0), |_| ())?;
    bench.twin("locked-to-a-second-before-it", rule, locked(bench, median - 1, 0), |_| ())
}

fn relative_locks(bench: &mut Bench) -> Result<(), ChainsError> {
    let (rule, reason) = ("tx-sequence-locks", "bad-txns-nonfinal");
    // A coinbase coin: the height of its block is known.
    let spend = |bench: &Bench, version: u32, sequence: &dyn Fn(u32) -> u32| -> Vec<MutTx> {
        let Some(coin) = bench.maker.rich_coin() else { return Vec::new() };
        let mut input = free_input(coin.outpoint);
        input.sequence = sequence(coin.coinbase_height.unwrap_or(0));
        let outputs = vec![output(coin.value, &TRUE_SCRIPT)];
        vec![MutTx { version, inputs: vec![input], outputs, lock_time: 0 }]
    };
    let blocks = |bench: &Bench, more: u32| {
        let height = bench.maker.height + 1;
        move |made: u32| height - made + more
    };
    let txs = spend(bench, 2, &blocks(bench, 1));
    bench.broken("sequence-a-block-too-many", rule, reason, txs, |_| ())?;
    let txs = spend(bench, u32::MAX, &blocks(bench, 1));
    bench.broken("sequence-in-version-minus-1", rule, reason, txs, |_| ())?;
    let txs = spend(bench, 2, &blocks(bench, 0));
    bench.twin("sequence-met-in-blocks", rule, txs, |_| ())?;
    let txs = spend(bench, 1, &blocks(bench, 1));
    bench.twin("sequence-in-version-1", rule, txs, |_| ())?;
    let unlocked = blocks(bench, 1);
    let txs = spend(bench, 2, &|made| SEQUENCE_DISABLE | unlocked(made));
    bench.twin("sequence-disabled", rule, txs, |_| ())?;

    let seconds = |bench: &Bench, more: u32| {
        let maker = bench.maker.clone();
        move |made: u32| {
            let passed = maker.median_time_past() - maker.median_time_past_at(made.saturating_sub(1));
            SEQUENCE_TYPE_TIME | (passed / 512 + more)
        }
    };
    let txs = spend(bench, 2, &seconds(bench, 1));
    bench.broken("sequence-512-seconds-too-many", rule, reason, txs, |_| ())?;
    let txs = spend(bench, 2, &seconds(bench, 0));
    bench.twin("sequence-met-in-seconds", rule, txs, |_| ())
}
