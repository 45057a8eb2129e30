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

fn histogram(call: &Call<'_>) -> Result<Json, Fault> {
    let bins = call.shared.query.fee_histogram();
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
