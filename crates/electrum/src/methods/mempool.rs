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

/// As with bitcoind behind another server: -1 stands for no estimate.
fn estimate(call: &Call<'_>) -> Result<Json, Fault> {
    let target = call.params.number(0)?;
    let is_conservative = match call.params.value(1).map(Value::as_str) {
        None => false,
        Some(None) => return Err(Fault::params("argument 2 (mode) must be a string")),
        Some(Some(mode)) => match mode.to_ascii_lowercase().as_str() {
            "unset" | "economical" => false,
            "conservative" => true,
            _ => return Err(Fault::params("argument 2 (mode) must be one of: unset, economical, conservative")),
        },
    };
    let estimate = call.shared.query.pool().estimate(target, is_conservative);
    Ok(estimate.map_or_else(|| "-1".to_owned(), btc).into_bytes())
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
