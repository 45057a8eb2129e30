//! The topic `mempool`: sums, fee bands, projected blocks, the last rejections, replacements and comparisons of blocks.
//!
//! Rows of lists have keys of their own, such as `reject:17`, so that a reader gets the new ones alone. Longer lists
//! are answered by the methods of `page::pool_lists`.

use super::object;
use crate::page::PageNode;
use crate::page::pool::{Compared, NextBlock};
use lydian_mempool::pool::{BAND_RATES, Bands};
use lydian_mempool::{Mempool, Reject, Replacement};
use serde_json::{Map, Value, json};

/// Rows of each list.
const ROWS: usize = 50;

/// Compared blocks.
const BLOCKS: usize = 24;

pub(super) fn read(node: &PageNode) -> Map<String, Value> {
    let Some(mempool) = node.mempool() else { return Map::new() };
    let snapshot = mempool.snapshot();
    let (info, settings) = (snapshot.info(), mempool.settings());
    let mut values = object(json!({
        "count": snapshot.len(),
        "vsize": info.vsize,
        "fees": info.fees,
        "usage": info.usage,
        "usageMax": settings.mempool_bytes_max,
        "loaded": info.is_loaded,
        "height": info.tip.height.0,
        "minFee": mempool.min_fee_at_once().max(settings.min_relay_fee).fee_per_kvb(),
        "relayFee": settings.min_relay_fee.fee_per_kvb(),
        "incrementalFee": settings.incremental_relay_fee.fee_per_kvb(),
        "unbroadcast": snapshot.unbroadcast().len(),
        "rates": BAND_RATES.as_slice(),
        "bands": bands(snapshot.bands()),
    }));
    if let Some(serving) = node.serving() {
        let watch = &serving.pool;
        let blocks: Vec<Value> = watch.next_blocks().iter().map(next_block).collect();
        values.insert("projected".to_owned(), Value::from(blocks));
        let compared = watch.compared();
        for one in compared.iter().rev().take(BLOCKS) {
            values.insert(format!("block:{}", one.hash), row(one));
        }
    }
    values.extend(events(&mempool));
    values
}

/// Virtual bytes, transactions and fees of each band.
fn bands(bands: &Bands) -> Value {
    let all = bands.all();
    json!({
        "vsize": all.iter().map(|band| band.vsize).collect::<Vec<_>>(),
        "count": all.iter().map(|band| band.count).collect::<Vec<_>>(),
        "fees": all.iter().map(|band| band.fees).collect::<Vec<_>>(),
    })
}

fn next_block(block: &NextBlock) -> Value {
    json!({
        "count": block.count,
        "weight": block.weight,
        "vsize": block.vsize,
        "fees": block.fees,
        "min": block.min,
        "median": block.median,
        "max": block.max,
    })
}

/// A block without the txids.
pub(in crate::page) fn row(compared: &Compared) -> Value {
    json!({
        "height": compared.height,
        "hash": compared.hash.to_string(),
        "time": compared.time,
        "expected": compared.expected,
        "mined": compared.mined,
        "missing": compared.missing,
        "added": compared.added,
        "unknown": compared.unknown,
        "expectedFees": compared.expected_fees,
        "fees": compared.fees,
    })
}

pub(in crate::page) fn reject(reject: &Reject) -> Value {
    json!({
        "number": reject.number,
        "time": reject.time,
        "txid": reject.txid.to_string(),
        "wtxid": reject.wtxid.to_string(),
        "vsize": reject.vsize,
        "reason": reject.reason,
    })
}

pub(in crate::page) fn replacement(replacement: &Replacement) -> Value {
    json!({
        "number": replacement.number,
        "time": replacement.time,
        "txid": replacement.txid.to_string(),
        "vsize": replacement.vsize,
        "fee": replacement.fee.0,
        "replaced": replacement.replaced.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "replacedCount": replacement.replaced_count,
        "replacedVsize": replacement.replaced_vsize,
        "replacedFees": replacement.replaced_fees.0,
    })
}

/// The last rejections and replacements.
fn events(mempool: &Mempool) -> Map<String, Value> {
    let (rejects, replacements) = (mempool.records().rejects(ROWS), mempool.records().replacements(ROWS));
    let mut values = Map::new();
    values.extend(rejects.iter().map(|one| (format!("reject:{}", one.number), reject(one))));
    values.extend(replacements.iter().map(|one| (format!("replacement:{}", one.number), replacement(one))));
    values
}
