//! `getblockstats`: sums, medians and percentiles of one block (Core's rpc/blockchain.cpp).
//!
//! Input: a block and the coins it spent. Output: Core's figures, with its integer divisions.

use crate::error::RpcError;
use crate::json::write_text;
use crate::method::Call;
use crate::methods::block::{block_checked, spent_checked, stats_block};
use crate::result::{Answer, Field, Form, close, result};
use lydian_consensus::deployment::is_bip30_repeat;
use lydian_consensus::{Coin, block_subsidy};
use lydian_engine::{Engine, HeaderInfo};
use lydian_primitives::{Amount, Block, BlockHash, compact_size_len};
use lydian_script::is_unspendable;
use std::collections::BTreeSet;

/// Core's `PER_UTXO_OVERHEAD`: outpoint, height and flag.
const COIN_OVERHEAD: i64 = 36 + 4;

/// Core's `MAX_BLOCK_SERIALIZED_SIZE`.
const SIZE_MAX: i64 = 4_000_000;

result! {
    /// The answer of `getblockstats`. Every value may be left out of the answer by the caller.
    struct BlockStats {
        /// average fee in the block
        avgfee: Option<i64>,
        /// average feerate (in satoshis per virtual byte)
        avgfeerate: Option<i64>,
        /// average transaction size
        avgtxsize: Option<i64>,
        /// the block hash (to check for potential reorgs)
        blockhash: Option<BlockHash>,
        /// feerates at the 10th, 25th, 50th, 75th, and 90th percentile weight unit (in satoshis per virtual byte)
        #[each("the feerate at that percentile")]
        feerate_percentiles: Option<[i64; 5]>,
        /// the height of the block
        height: Option<i64>,
        /// the number of inputs (excluding coinbase)
        ins: Option<i64>,
        /// maximum fee in the block
        maxfee: Option<i64>,
        /// maximum feerate (in satoshis per virtual byte)
        maxfeerate: Option<i64>,
        /// maximum transaction size
        maxtxsize: Option<i64>,
        /// truncated median fee in the block
        medianfee: Option<i64>,
        /// the block median time past
        mediantime: Option<i64>,
        /// truncated median transaction size
        mediantxsize: Option<i64>,
        /// minimum fee in the block
        minfee: Option<i64>,
        /// minimum feerate (in satoshis per virtual byte)
        minfeerate: Option<i64>,
        /// minimum transaction size
        mintxsize: Option<i64>,
        /// the number of outputs
        outs: Option<i64>,
        /// the block subsidy
        subsidy: Option<i64>,
        /// total size of all segwit transactions
        swtotal_size: Option<i64>,
        /// total weight of all segwit transactions
        swtotal_weight: Option<i64>,
        /// the number of segwit transactions
        swtxs: Option<i64>,
        /// the block time
        time: Option<i64>,
        /// total amount in all outputs (excluding coinbase and thus reward [ie subsidy + totalfee])
        total_out: Option<i64>,
        /// total size of all non-coinbase transactions
        total_size: Option<i64>,
        /// total weight of all non-coinbase transactions
        total_weight: Option<i64>,
        /// the fee total
        totalfee: Option<i64>,
        /// the number of transactions (including coinbase)
        txs: Option<i64>,
        /// the increase/decrease in the number of unspent outputs (not discounting op_return and similar)
        utxo_increase: Option<i64>,
        /// the increase/decrease in size for the utxo index (not discounting op_return and similar)
        utxo_size_inc: Option<i64>,
        /// the increase/decrease in the number of unspent outputs, not counting unspendables
        utxo_increase_actual: Option<i64>,
        /// the increase/decrease in size for the utxo index, not counting unspendables
        utxo_size_inc_actual: Option<i64>,
    }
}

/// The values that were asked for.
#[derive(Debug)]
pub(crate) struct Chosen {
    all: BlockStats,
    /// Empty: all of them.
    names: Vec<&'static str>,
}

impl Answer for Chosen {
    const FORM: Form = BlockStats::FORM;

    fn write(&self, out: &mut Vec<u8>) {
        if self.names.is_empty() {
            return self.all.write(out);
        }
        out.push(b'{');
        for name in &self.names {
            write_text(name, out);
            out.push(b':');
            self.all.write_field(name, out);
            out.push(b',');
        }
        close(b'}', out);
    }
}

pub(crate) fn getblockstats(call: &Call<'_>) -> Result<Chosen, RpcError> {
    let info = stats_block(call)?;
    let mut wanted = BTreeSet::new();
    if let Some(names) = call.given(1) {
        for name in names.as_array()? {
            wanted.insert(name.as_text()?);
        }
    }
    let engine = call.context.engine()?;
    let block = block_checked(&engine, &info)?;
    let spent = spent_checked(&engine, &info, &block)?;
    let subsidy = block_subsidy(info.node.height, engine.params());
    let mut names = Vec::new();
    for name in wanted {
        let known = FIELDS.iter().find(|field| field.name == name);
        let message = || RpcError::parameter(format!("Invalid selected statistic '{name}'"));
        names.push(known.ok_or_else(message)?.name);
    }
    Ok(Chosen { all: figures(&info, &block, &spent, subsidy), names })
}

/// The names that may be asked for.
const FIELDS: &[Field] = match BlockStats::FORM {
    Form::Object(fields) => fields,
    _ => &[],
};

/// Those that the figures of the node have.
#[derive(Clone, Debug)]
pub(crate) struct BlockSums {
    /// With the coinbase; the others without it, except for the outputs.
    pub(crate) transactions: i64,
    pub(crate) inputs: i64,
    pub(crate) outputs: i64,
    pub(crate) size: i64,
    pub(crate) weight: i64,
    /// In satoshi.
    pub(crate) value: i64,
    pub(crate) fees: i64,
}

impl BlockSums {
    pub(crate) fn of(engine: &Engine, info: &HeaderInfo) -> Result<BlockSums, RpcError> {
        let block = block_checked(engine, info)?;
        let spent = spent_checked(engine, info, &block)?;
        let sums = gather(info, &block, &spent);
        Ok(BlockSums {
            transactions: count(block.tx_count()),
            inputs: sums.inputs,
            outputs: sums.outputs,
            size: sums.total_size,
            weight: sums.total_weight,
            value: sums.total_out,
            fees: sums.fees.iter().sum(),
        })
    }
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

fn figures(info: &HeaderInfo, block: &Block, spent: &[Coin], subsidy: Amount) -> BlockStats {
    let sums = gather(info, block, spent);
    let txs = count(block.tx_count());
    let mean = |total: i64| if txs > 1 { total / (txs - 1) } else { 0 };
    let total_fee: i64 = sums.fees.iter().sum();
    let most = |values: &[i64]| values.iter().copied().max().unwrap_or(0).max(0);
    // If the minimum equals the bound, 0 is returned.
    let least = |values: &[i64], bound: i64| values.iter().copied().min().filter(|least| *least < bound).unwrap_or(0);
    let rates: Vec<i64> = sums.rates.iter().map(|(rate, _)| *rate).collect();
    let (segwit_txs, segwit_size, segwit_weight) = sums.segwit;
    BlockStats {
        avgfee: Some(mean(total_fee)),
        avgfeerate: Some(if sums.total_weight > 0 { total_fee * 4 / sums.total_weight } else { 0 }),
        avgtxsize: Some(mean(sums.total_size)),
        blockhash: Some(info.node.hash),
        feerate_percentiles: Some(percentiles(sums.rates, sums.total_weight)),
        height: Some(i64::from(info.node.height.0)),
        ins: Some(sums.inputs),
        maxfee: Some(most(&sums.fees)),
        maxfeerate: Some(most(&rates)),
        maxtxsize: Some(most(&sums.sizes)),
        medianfee: Some(median(sums.fees.clone())),
        mediantime: Some(info.median_time),
        mediantxsize: Some(median(sums.sizes.clone())),
        minfee: Some(least(&sums.fees, Amount::MAX_MONEY.0)),
        minfeerate: Some(least(&rates, Amount::MAX_MONEY.0)),
        mintxsize: Some(least(&sums.sizes, SIZE_MAX)),
        outs: Some(sums.outputs),
        subsidy: Some(subsidy.0),
        swtotal_size: Some(segwit_size),
        swtotal_weight: Some(segwit_weight),
        swtxs: Some(segwit_txs),
        time: Some(i64::from(info.node.header.time)),
        total_out: Some(sums.total_out),
        total_size: Some(sums.total_size),
        total_weight: Some(sums.total_weight),
        totalfee: Some(total_fee),
        txs: Some(txs),
        utxo_increase: Some(sums.outputs - sums.inputs),
        utxo_size_inc: Some(sums.size_increase),
        utxo_increase_actual: Some(sums.created - sums.inputs),
        utxo_size_inc_actual: Some(sums.size_increase_actual),
    }
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
