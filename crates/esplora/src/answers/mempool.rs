//! The mempool as a whole, and fees.

use super::{check_size, transactions as to_json, txids_of_body};
use crate::call::{Call, at_most, txid};
use crate::fault::Fault;
use crate::limits::{TXS_MAX, TXS_SIZE_MAX};
use crate::reply::{RECENTLY, Reply, SHORTLY};
use axum::http::StatusCode;
use lydian_primitives::Txid;
use lydian_query::{CallError, Found};
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

/// The txids after the one that the path names, and how many there are. In the order of txids, so that a page begins
/// behind the last one whatever came meanwhile.
fn after_last_seen(call: &Call<'_>) -> Result<(impl Iterator<Item = Txid>, usize), Fault> {
    let last = call.value("last_seen").map(txid).transpose()?;
    let mut txids = call.query().pool().txids();
    txids.sort_unstable_by_key(|txid| txid.0);
    let total = txids.len();
    let from = last.map_or(0, |last| txids.partition_point(|txid| txid.0 <= last.0));
    Ok((txids.into_iter().skip(from), total))
}

pub(crate) fn txids_page(call: &Call<'_>) -> Result<Reply, Fault> {
    let (txids, total) = after_last_seen(call)?;
    let page: Vec<Txid> = txids.take(call.count(TXIDS_PER_PAGE)?).collect();
    Ok(Reply::json(&texts(&page), SHORTLY).of_total(total))
}

/// A page ends early if its transactions are large; the one behind the last is empty.
pub(crate) fn transactions_page(call: &Call<'_>) -> Result<Reply, Fault> {
    let (txids, total) = after_last_seen(call)?;
    let (mut found, mut size) = (Vec::new(), 0);
    let count = call.count(TXS_MAX)?;
    for txid in txids {
        // One that has left the mempool meanwhile is left out.
        let Some((tx, _)) = call.query().pool().transaction(&txid) else { continue };
        size += tx.as_bytes().len();
        if found.len() == count || !found.is_empty() && size > TXS_SIZE_MAX / 2 {
            break;
        }
        found.push(Found::new(tx, None));
    }
    let all = call.query().with_spent(found)?;
    check_size(&all)?;
    Ok(Reply::json(&to_json(call, &all), SHORTLY).of_total(total))
}

/// All, if they fit in one answer.
pub(crate) fn all_transactions(call: &Call<'_>) -> Result<Reply, Fault> {
    let (mut found, mut size) = (Vec::new(), 0);
    for txid in call.query().pool().txids() {
        // One that has left the mempool meanwhile is left out.
        let Some((tx, _)) = call.query().pool().transaction(&txid) else { continue };
        size += tx.as_bytes().len();
        at_most(size, TXS_SIZE_MAX, "bytes for one answer (/internal/mempool/txs has pages)")?;
        found.push(Found::new(tx, None));
    }
    let all = call.query().with_spent(found)?;
    check_size(&all)?;
    Ok(Reply::json(&to_json(call, &all), SHORTLY))
}

/// Core's template, with all rules that its chains know.
pub(crate) fn template(call: &Call<'_>) -> Result<Reply, Fault> {
    let params = json!([{ "rules": ["segwit", "signet"] }]).to_string();
    let answer = call.shared.calls.call("getblocktemplate", &params);
    let unavailable = |error: CallError| Fault { code: StatusCode::SERVICE_UNAVAILABLE, message: error.message };
    Ok(Reply::written(answer.map_err(unavailable)?, 0))
}

/// Those that the mempool has, in the order in which they are asked for.
pub(crate) fn several(call: &Call<'_>) -> Result<Reply, Fault> {
    let txids = txids_of_body(call)?;
    let found =
        txids.iter().filter_map(|txid| call.query().pool().transaction(txid)).map(|(tx, _)| Found::new(tx, None));
    let all = call.query().with_spent(found.collect())?;
    check_size(&all)?;
    Ok(Reply::json(&to_json(call, &all), 0))
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

/// In satoshis per virtual byte. As in Esplora, targets without an estimate are left out.
pub(crate) fn fee_estimates(call: &Call<'_>) -> Result<Reply, Fault> {
    let pool = call.query().pool();
    let estimate = |target: u32| {
        let feerate = pool.estimate(target, false)?;
        #[allow(clippy::cast_precision_loss, reason = "feerates are small")]
        let feerate = feerate as f64 / 1_000.0;
        Some((target.to_string(), json!(feerate)))
    };
    let all: serde_json::Map<String, Value> = (1..=25).chain([144, 504, 1_008]).filter_map(estimate).collect();
    Ok(Reply::json(&all, SHORTLY))
}
