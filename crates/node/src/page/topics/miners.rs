//! The topic `miners`: who mined the last 2,016 blocks, as far as they say it; version bits; hash rate; the pace of
//! blocks; the next halving.
//!
//! Cost: a pass over the rows and their headers, when a block was connected.

use crate::blocks::text::coinbase;
use crate::blocks::{Row, pools};
use crate::page::PageNode;
use lydian_consensus::{Params, block_subsidy};
use lydian_engine::Engine;
use lydian_primitives::Height;
use lydian_rpc::network_hash_rate;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A day of blocks.
const DAY: usize = 144;

/// The blocks that `getnetworkhashps` looks at by default.
const HASH_RATE_BLOCKS: i32 = 120;

/// The bits of a header's version that signal (BIP-0009), if the three above them are 001.
const SIGNAL_BITS: u32 = 29;

/// The name of blocks that name no known pool.
const UNKNOWN: &str = "unknown";

/// While the node catches up, the figures are those of its start.
pub(super) fn version(node: &PageNode) -> u64 {
    if node.initial_download.is_on() { 0 } else { node.blocks.version() }
}

pub(super) fn read(node: &PageNode) -> Map<String, Value> {
    let Some(engine) = node.engine() else { return Map::new() };
    let rows = node.blocks.rows(usize::MAX);
    let (rows, params) = (&rows[..], engine.params());
    let mut values = Map::from_iter([
        ("pools".to_owned(), pool_shares(rows)),
        ("versions".to_owned(), versions(rows, params)),
        ("hashRate".to_owned(), hash_rates(&engine)),
    ]);
    values.extend(pace(rows, params));
    values
}

/// What a pool mined.
#[derive(Debug, Default)]
struct Mined {
    blocks: usize,
    empty: usize,
    fees: i64,
    weight: usize,
    last: u32,
    text: String,
}

/// The pools, the largest first.
fn pool_shares(rows: &[Row]) -> Value {
    let mut pools: BTreeMap<&str, Mined> = BTreeMap::new();
    for (row, facts) in rows.iter().filter_map(|row| Some((row, row.facts.as_ref()?))) {
        let mined = pools.entry(pools::pool(&facts.coinbase).unwrap_or(UNKNOWN)).or_default();
        mined.blocks += 1;
        mined.empty += usize::from(facts.txs == 1);
        mined.fees += facts.fees.map_or(0, |fees| fees.0);
        mined.weight += facts.weight;
        mined.last = row.height;
        mined.text = coinbase(&facts.coinbase);
    }
    let known: usize = pools.values().map(|mined| mined.blocks).sum();
    let mut pools: Vec<(&str, Mined)> = pools.into_iter().collect();
    pools.sort_by_key(|(name, mined)| (std::cmp::Reverse(mined.blocks), *name));
    let shown = |(name, mined): &(&str, Mined)| {
        json!({
            "name": name,
            "blocks": mined.blocks,
            "share": mined.blocks as f64 / known.max(1) as f64,
            "empty": mined.empty,
            "fees": mined.fees,
            "weight": mined.weight / mined.blocks.max(1),
            "last": mined.last,
            "text": mined.text,
        })
    };
    pools.iter().map(shown).collect()
}

/// How many blocks signal each bit, in the last 144, in the period of the tip, and in all.
fn versions(rows: &[Row], params: &Params) -> Value {
    let tip = rows.last().map_or(0, |row| row.height);
    let interval = params.difficulty_adjustment_interval().max(1);
    let in_period = usize::try_from(tip % interval).unwrap_or(0) + 1;
    let spans = [DAY, in_period, rows.len()].map(|count| &rows[rows.len() - count.min(rows.len())..]);
    let is_signal = |row: &Row| row.header.version.cast_unsigned() >> SIGNAL_BITS == 1;
    let bits: Vec<Value> = (0..SIGNAL_BITS)
        .map(|bit| {
            let is_set = |row: &&Row| is_signal(row) && row.header.version.cast_unsigned() >> bit & 1 == 1;
            (bit, spans.map(|span| span.iter().filter(is_set).count()))
        })
        .filter(|(_, [_, _, all])| *all > 0)
        .map(|(bit, [day, period, all])| json!({ "bit": bit, "day": day, "period": period, "all": all }))
        .collect();
    let plain = spans.map(|span| span.iter().filter(|row| !is_signal(row)).count());
    json!({
        "blocks": { "day": spans[0].len(), "period": spans[1].len(), "all": spans[2].len() },
        "bits": bits,
        "others": { "day": plain[0], "period": plain[1], "all": plain[2] },
        "interval": interval,
        "left": interval - tip % interval - 1,
    })
}

/// Hashes per second over 120 blocks, since the last change of difficulty, and over 2,016 blocks.
fn hash_rates(engine: &Engine) -> Value {
    let all = i32::try_from(crate::limits::ROWS_MAX).unwrap_or(i32::MAX);
    json!({
        "recent": network_hash_rate(engine, HASH_RATE_BLOCKS, -1).ok(),
        "period": network_hash_rate(engine, -1, -1).ok(),
        "all": network_hash_rate(engine, all, -1).ok(),
    })
}

/// The pace of blocks, what they contain and pay, and the next halving.
fn pace(rows: &[Row], params: &Params) -> Map<String, Value> {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Map::new() };
    let seconds = f64::from(last.header.time) - f64::from(first.header.time);
    let intervals = f64::from(last.height - first.height);
    let mean = (seconds > 0.0 && intervals > 0.0).then(|| seconds / intervals);
    let facts = || rows.iter().filter_map(|row| row.facts.as_ref());
    let count = facts().count();
    let sum = |value: fn(&crate::blocks::facts::Facts) -> usize| facts().map(value).sum::<usize>();
    let fees: i64 = facts().filter_map(|facts| facts.fees).map(|fees| fees.0).sum();
    let halving = last.height / params.subsidy_halving_interval.max(1);
    let next = halving.saturating_add(1).saturating_mul(params.subsidy_halving_interval);
    let left = f64::from(next - last.height.min(next));
    super::object(json!({
        "from": first.height,
        "to": last.height,
        "hash": last.hash.to_string(),
        "known": count,
        "interval": mean,
        "perHour": mean.map(|mean| 3_600.0 / mean),
        "fees": fees,
        "size": sum(|facts| facts.size) / count.max(1),
        "weight": sum(|facts| facts.weight) / count.max(1),
        "txs": sum(|facts| facts.txs) / count.max(1),
        "subsidy": block_subsidy(Height(last.height), params).0,
        "halving": {
            "height": next,
            "left": next - last.height.min(next),
            "subsidy": block_subsidy(Height(next), params).0,
            "byTarget": f64::from(last.header.time) + left * params.pow_target_spacing as f64,
            "byPace": mean.map(|mean| f64::from(last.header.time) + left * mean),
        },
    }))
}
