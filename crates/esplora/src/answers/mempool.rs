//! The mempool as a whole, and fees.

use crate::call::{Call, txid};
use crate::fault::Fault;
use crate::reply::{RECENTLY, Reply, SHORTLY};
use lydian_primitives::Txid;
use serde_json::{Value, json};

/// Txids on a page: that of mempool/electrs.
const TXIDS_PER_PAGE: usize = 10_000;

/// The transactions that Esplora lists as recent.
const RECENT: usize = 10;

pub(crate) fn totals(call: &Call<'_>) -> Result<Reply, Fault> {
    let totals = call.query().pool().totals();
    let histogram = call.query().fee_histogram();
    let answer =
        json!({ "count": totals.count, "vsize": totals.vsize, "total_fee": totals.fee, "fee_histogram": histogram });
    Ok(Reply::json(&answer, SHORTLY))
}

fn texts(txids: &[Txid]) -> Vec<String> {
    txids.iter().map(Txid::to_string).collect()
}

pub(crate) fn txids(call: &Call<'_>) -> Result<Reply, Fault> {
    Ok(Reply::json(&texts(&call.query().pool().txids()), SHORTLY))
}

/// In the order of txids, so that a page begins behind the last one whatever came meanwhile.
pub(crate) fn txids_page(call: &Call<'_>) -> Result<Reply, Fault> {
    let last = call.value("last_seen").map(txid).transpose()?;
    let mut txids = call.query().pool().txids();
    txids.sort_unstable_by_key(|txid| txid.0);
    let total = txids.len();
    let from = last.map_or(0, |last| txids.partition_point(|txid| txid.0 <= last.0));
    let page: Vec<Txid> = txids.into_iter().skip(from).take(TXIDS_PER_PAGE).collect();
    Ok(Reply::json(&texts(&page), SHORTLY).of_total(total))
}

pub(crate) fn recent(call: &Call<'_>) -> Result<Reply, Fault> {
    let pool = call.query().pool();
    let one = |row: lydian_query::FeeRow| -> Option<Value> {
        // One that has left the mempool meanwhile is left out.
        let (tx, _) = pool.transaction(&row.txid)?;
        let value: i64 = tx.view().outputs().map(|output| output.value.0).sum();
        Some(json!({ "txid": row.txid.to_string(), "fee": row.fee, "vsize": row.vsize, "value": value }))
    };
    let all: Vec<Value> = pool.recent(RECENT).into_iter().filter_map(one).collect();
    Ok(Reply::json(&all, RECENTLY))
}

/// The node estimates no fees yet, which Esplora answers as bitcoind without estimates makes it: with no targets.
pub(crate) fn fee_estimates(_: &Call<'_>) -> Result<Reply, Fault> {
    Ok(Reply::json(&json!({}), SHORTLY))
}
