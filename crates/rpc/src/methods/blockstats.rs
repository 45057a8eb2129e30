//! `getblockstats`: sums, medians and percentiles of one block (Core's rpc/blockchain.cpp).
//!
//! Input: a block and the coins it spent. Output: Core's figures, with its integer divisions.

use crate::error::RpcError;
use crate::method::{Call, answer};
use crate::methods::block::{block_checked, push_key, stats_block};
use lydian_consensus::deployment::is_bip30_repeat;
use lydian_consensus::{Coin, block_subsidy};
use lydian_engine::HeaderInfo;
use lydian_primitives::{Amount, Block, compact_size_len};
use lydian_script::is_unspendable;
use std::collections::BTreeSet;

/// Core's `PER_UTXO_OVERHEAD`: outpoint, height and flag.
const COIN_OVERHEAD: i64 = 36 + 4;

/// Core's `MAX_BLOCK_SERIALIZED_SIZE`.
const SIZE_MAX: i64 = 4_000_000;

#[derive(Debug)]
enum Value {
    Number(i64),
    Text(String),
    Percentiles([i64; 5]),
}

pub(crate) fn getblockstats(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let info = stats_block(call)?;
    let mut wanted = BTreeSet::new();
    if let Some(names) = call.given(1) {
        for name in names.as_array()? {
            wanted.insert(name.as_text()?);
        }
    }
    let engine = call.context.engine()?;
    let block = block_checked(&engine, &info)?;
    if info.node.parent.is_some() && info.node.undo.is_none() {
        return Err(RpcError::misc(match info.is_pruned() {
            true => "Undo data not available (pruned data)",
            false => "Undo data not available",
        }));
    }
    let spent = engine.spent_coins(&info, &block).ok().flatten();
    let spent = spent.ok_or_else(|| RpcError::misc("Can't read undo data from disk"))?;
    let subsidy = block_subsidy(info.node.height, engine.params());
    let all = figures(&info, &block, &spent, subsidy);
    let mut chosen: Vec<&(&str, Value)> = Vec::new();
    if wanted.is_empty() {
        chosen.extend(&all);
    }
    for name in wanted {
        let found = all.iter().find(|(known, _)| *known == name);
        let message = || RpcError::parameter(format!("Invalid selected statistic '{name}'"));
        chosen.push(found.ok_or_else(message)?);
    }
    out.push(b'{');
    for (index, (name, value)) in chosen.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_key(out, name);
        match value {
            Value::Number(number) => answer(out, number)?,
            Value::Text(text) => answer(out, text)?,
            Value::Percentiles(rates) => answer(out, rates)?,
        }
    }
    out.push(b'}');
    Ok(())
}

/// Sums over the transactions.
#[derive(Debug)]
struct Sums {
    fees: Vec<i64>,
    /// Fee rates, each with the weight that pays it.
    rates: Vec<(i64, i64)>,
    sizes: Vec<i64>,
    total_out: i64,
    inputs: i64,
    outputs: i64,
    total_size: i64,
    total_weight: i64,
    segwit: (i64, i64, i64),
    /// Number of outputs added to the UTXO set, change in size counting all outputs, and change in size counting only
    /// the added ones.
    created: i64,
    size_increase: i64,
    size_increase_actual: i64,
}

fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Size of a serialised output plus its overhead in the UTXO set.
fn coin_size(script: &[u8]) -> i64 {
    8 + count(compact_size_len(script.len()) + script.len()) + COIN_OVERHEAD
}

fn gather(info: &HeaderInfo, block: &Block, spent: &[Coin]) -> Sums {
    let mut sums = Sums {
        fees: Vec::new(),
        rates: Vec::new(),
        sizes: Vec::new(),
        total_out: 0,
        inputs: 0,
        outputs: 0,
        total_size: 0,
        total_weight: 0,
        segwit: (0, 0, 0),
        created: 0,
        size_increase: 0,
        size_increase_actual: 0,
    };
    let is_repeat = is_bip30_repeat(info.node.height, &info.node.hash);
    let mut spent = spent.iter();
    for tx in block.txs() {
        let is_coinbase = tx.is_coinbase();
        sums.outputs += count(tx.output_count());
        let mut value_out = 0;
        for output in tx.outputs() {
            value_out += output.value.0;
            let size = coin_size(output.script_pubkey);
            sums.size_increase += size;
            let is_never_a_coin = info.node.height.0 == 0 || (is_repeat && is_coinbase);
            if !is_never_a_coin && !is_unspendable(output.script_pubkey) {
                sums.created += 1;
                sums.size_increase_actual += size;
            }
        }
        if is_coinbase {
            continue;
        }
        sums.inputs += count(tx.input_count());
        sums.total_out += value_out;
        let (size, weight) = (count(tx.total_size()), count(tx.weight()));
        sums.sizes.push(size);
        sums.total_size += size;
        sums.total_weight += weight;
        if tx.has_witness() {
            let (txs, sizes, weights) = sums.segwit;
            sums.segwit = (txs + 1, sizes + size, weights + weight);
        }
        let mut value_in = 0;
        for coin in spent.by_ref().take(tx.input_count()) {
            value_in += coin.value.0;
            let size = coin_size(&coin.script_pubkey);
            sums.size_increase -= size;
            sums.size_increase_actual -= size;
        }
        let fee = value_in - value_out;
        sums.fees.push(fee);
        sums.rates.push((if weight > 0 { fee * 4 / weight } else { 0 }, weight));
    }
    sums
}

fn figures(info: &HeaderInfo, block: &Block, spent: &[Coin], subsidy: Amount) -> Vec<(&'static str, Value)> {
    let sums = gather(info, block, spent);
    let txs = count(block.tx_count());
    let mean = |total: i64| if txs > 1 { total / (txs - 1) } else { 0 };
    let total_fee: i64 = sums.fees.iter().sum();
    let most = |values: &[i64]| values.iter().copied().max().unwrap_or(0).max(0);
    // If the minimum equals the bound, 0 is returned.
    let least = |values: &[i64], bound: i64| values.iter().copied().min().filter(|least| *least < bound).unwrap_or(0);
    let rates: Vec<i64> = sums.rates.iter().map(|(rate, _)| *rate).collect();
    let (segwit_txs, segwit_size, segwit_weight) = sums.segwit;
    let number = Value::Number;
    vec![
        ("avgfee", number(mean(total_fee))),
        ("avgfeerate", number(if sums.total_weight > 0 { total_fee * 4 / sums.total_weight } else { 0 })),
        ("avgtxsize", number(mean(sums.total_size))),
        ("blockhash", Value::Text(info.node.hash.to_string())),
        ("feerate_percentiles", Value::Percentiles(percentiles(sums.rates, sums.total_weight))),
        ("height", number(i64::from(info.node.height.0))),
        ("ins", number(sums.inputs)),
        ("maxfee", number(most(&sums.fees))),
        ("maxfeerate", number(most(&rates))),
        ("maxtxsize", number(most(&sums.sizes))),
        ("medianfee", number(median(sums.fees.clone()))),
        ("mediantime", number(info.median_time)),
        ("mediantxsize", number(median(sums.sizes.clone()))),
        ("minfee", number(least(&sums.fees, Amount::MAX_MONEY.0))),
        ("minfeerate", number(least(&rates, Amount::MAX_MONEY.0))),
        ("mintxsize", number(least(&sums.sizes, SIZE_MAX))),
        ("outs", number(sums.outputs)),
        ("subsidy", number(subsidy.0)),
        ("swtotal_size", number(segwit_size)),
        ("swtotal_weight", number(segwit_weight)),
        ("swtxs", number(segwit_txs)),
        ("time", number(i64::from(info.node.header.time))),
        ("total_out", number(sums.total_out)),
        ("total_size", number(sums.total_size)),
        ("total_weight", number(sums.total_weight)),
        ("totalfee", number(total_fee)),
        ("txs", number(txs)),
        ("utxo_increase", number(sums.outputs - sums.inputs)),
        ("utxo_size_inc", number(sums.size_increase)),
        ("utxo_increase_actual", number(sums.created - sums.inputs)),
        ("utxo_size_inc_actual", number(sums.size_increase_actual)),
    ]
}

/// Core's `CalculateTruncatedMedian`.
fn median(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    let middle = values.len() / 2;
    match values.get(middle) {
        None => 0,
        Some(upper) if values.len() % 2 == 1 => *upper,
        Some(upper) => (values[middle - 1] + upper) / 2,
    }
}

/// The rates at 10, 25, 50, 75 and 90 percent of the weight: Core's `CalculatePercentilesByWeight`.
fn percentiles(mut rates: Vec<(i64, i64)>, total_weight: i64) -> [i64; 5] {
    rates.sort_unstable();
    let Some((highest, _)) = rates.last().copied() else { return [0; 5] };
    // In twentieths of the weight: integers where Core uses fractions that are exact.
    [2, 5, 10, 15, 18].map(|twentieths: i128| {
        let mut below = 0;
        let reached = rates.iter().find(|(_, weight)| {
            below += i128::from(*weight);
            below * 20 >= i128::from(total_weight) * twentieths
        });
        reached.map_or(highest, |(rate, _)| *rate)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Core's `rpc_tests.cpp`, `rpc_getblockstats_calculate_percentiles_by_weight`.
    #[test]
    fn percentiles_and_medians() {
        let even: Vec<(i64, i64)> = (0..200).map(|_| (1, 1)).chain((0..200).map(|_| (2, 1))).collect();
        assert_eq!(percentiles(even, 400), [1, 1, 1, 2, 2]);
        assert_eq!(percentiles(vec![(1, 9), (2, 16), (4, 50), (5, 10), (9, 15)], 100), [2, 2, 4, 4, 9]);
        assert_eq!(percentiles(vec![(1, 9), (2, 16), (2, 50), (3, 10), (9, 15)], 100), [2, 2, 2, 2, 9]);
        assert_eq!(percentiles(Vec::new(), 0), [0; 5]);
        assert_eq!([median(vec![]), median(vec![3]), median(vec![4, 1]), median(vec![9, 1, 4])], [0, 3, 2, 4]);
    }
}
