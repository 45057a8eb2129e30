//! Fees and the mempool: `blockchain.estimatefee`, `blockchain.relayfee`, `mempool.*`.

use super::{Call, Method};
use crate::fault::Fault;
use crate::version::{V1_6, V1_7, Version};
use crate::write::{Json, btc, put, put_hash, put_list};
use serde_json::{Value, json};

pub(super) const METHODS: &[Method] = &[
    Method::new("blockchain.estimatefee", estimate).takes(&["number", "mode"], 1),
    Method::new("blockchain.relayfee", relay_fee).to(Version(1, 5, u32::MAX)),
    Method::new("mempool.get_info", info).from(V1_6),
    Method::new("mempool.get_fee_histogram", histogram),
    Method::new("mempool.recent", recent).from(V1_7),
];

/// The node estimates no fees yet, which the protocol says with -1.
fn estimate(call: &Call<'_>) -> Result<Json, Fault> {
    call.params.number(0)?;
    if let Some(mode) = call.params.value(1)
        && !mode.is_string()
    {
        return Err(Fault::params("argument 2 (mode) must be a string"));
    }
    Ok(b"-1".to_vec())
}

fn relay_fee(call: &Call<'_>) -> Result<Json, Fault> {
    Ok(btc(call.shared.query.pool().fees().relay).into_bytes())
}

fn info(call: &Call<'_>) -> Result<Json, Fault> {
    let fees = call.shared.query.pool().fees();
    let (min, relay, incremental) = (btc(fees.min), btc(fees.relay), btc(fees.incremental));
    let text = format!("{{\"mempoolminfee\":{min},\"minrelaytxfee\":{relay},\"incrementalrelayfee\":{incremental}}}");
    Ok(text.into_bytes())
}

/// The size of the first bin in virtual bytes, and by how much the next one is larger, in percent: those of ElectrumX.
const BIN_SIZE: i64 = 30_000;
const BIN_GROWTH: i64 = 110;

/// Fee rates in satoshis per virtual byte, strictly falling, each with the virtual bytes that pay at least so much and
/// less than the one before.
fn bins(chunks: &[(i64, i64)]) -> Vec<(f64, i64)> {
    let (mut bins, mut sum, mut size) = (Vec::new(), 0, BIN_SIZE);
    let mut last: Option<i64> = None;
    let rate_of = |(fee, vsize): (i64, i64)| fee * 1_000 / vsize.max(1);
    let mut end = |rate: i64, sum: &mut i64| {
        #[allow(clippy::cast_precision_loss, reason = "a fee rate has fewer than 53 bits")]
        bins.push((rate as f64 / 1_000.0, std::mem::take(sum)));
    };
    for chunk in chunks {
        let rate = rate_of(*chunk);
        if let Some(before) = last
            && sum >= size
            && rate < before
        {
            end(before, &mut sum);
            size = size * BIN_GROWTH / 100;
        }
        sum += chunk.1;
        last = Some(last.map_or(rate, |before| before.min(rate)));
    }
    if let Some(last) = last.filter(|_| sum > 0) {
        end(last, &mut sum);
    }
    bins
}

fn histogram(call: &Call<'_>) -> Result<Json, Fault> {
    let bins = bins(&call.shared.query.pool().chunks());
    Ok(bins.into_iter().map(|bin| json!(bin)).collect::<Value>().to_string().into_bytes())
}

/// The number of transactions that `mempool.recent` lists.
const RECENT: usize = 10;

fn recent(call: &Call<'_>) -> Result<Json, Fault> {
    let mut out = Vec::new();
    put_list(&mut out, call.shared.query.pool().recent(RECENT), |out, row| {
        put(out, format_args!("{{\"fee\":{},\"txid\":", row.fee));
        put_hash(out, &row.txid.0);
        put(out, format_args!(",\"vsize\":{}}}", row.vsize));
    });
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fee_rates_of_the_histogram_fall_strictly() {
        assert_eq!(bins(&[]), []);
        assert_eq!(bins(&[(500, 250), (100, 100)]), [(1.0, 350)]);
        let equal = [(40_000, 20_000), (40_000, 20_000), (20_000, 20_000), (10_000, 20_000)];
        assert_eq!(bins(&equal), [(2.0, 40_000), (0.5, 40_000)]);
        let many: Vec<(i64, i64)> = (1..=500).rev().map(|rate| (rate * 1_000, 1_000)).collect();
        let bins = bins(&many);
        assert!(bins.windows(2).all(|pair| pair[0].0 > pair[1].0), "{bins:?}");
        assert_eq!(bins.iter().map(|bin| bin.1).sum::<i64>(), 500_000);
    }
}
