//! The topic `sync`: headers, download, validation, commit, indexes: what is done, the rate, the time left, and what
//! limits it. The figures are those of the terminal display.

use super::{object, overview};
use crate::display::{Figures, Late, Seen};
use crate::page::PageNode;
use crate::status::IndexStatus;

use serde_json::{Map, Value, json};

pub(super) fn read(node: &PageNode) -> Map<String, Value> {
    let seen = node.sight.get();
    let (share, seconds) = overview::progress(&seen);
    let mut values = object(json!({ "share": share, "secondsLeft": seconds }));
    match &seen {
        Seen::Nothing | Seen::Something(_) => {}
        Seen::Validating(validating) => {
            let (now, late) = &**validating;
            values.extend(object(json!({
                "phase": "disk",
                "height": now.height,
                "target": now.target_height.max(now.height),
            })));
            values.extend(work(now, late));
        }
        Seen::Syncing(syncing) => {
            let (sync, now, late) = &**syncing;
            let net = &sync.net;
            let presync = net.presync.map(
                |presync| json!({ "height": presync.height, "time": presync.time, "again": presync.is_redownload }),
            );
            values.extend(object(json!({
                "phase": if sync.has_work() { "peers" } else { "done" },
                "height": sync.height,
                "target": net.headers_height.max(sync.height),
                "headersTime": net.headers_time,
                "presync": presync,
                "received": late.rates.rate(late.rates.received_bytes),
                "receivedBytes": net.block_bytes,
                "requestedBytes": net.in_flight_bytes,
                "waitingBytes": net.waiting_bytes,
                "waitingBlocks": net.waiting_blocks,
                "durable": sync.durable_height,
                "guess": sync.guess_sentence(late),
            })));
            values.extend(work(now, late));
        }
    }
    values.insert("indexes".to_owned(), indexes(node));
    values
}

fn work(now: &Figures, late: &Late) -> Map<String, Value> {
    let recent = &late.rates;
    let stages: Vec<Value> = now
        .stages
        .iter()
        .zip(&recent.stages)
        .filter(|(stage, _)| !stage.stage.is_waiting())
        .map(|(stage, recent)| {
            json!({
                "name": stage.stage.name(),
                "what": stage.stage.what(),
                "wall": stage.wall_seconds,
                "cpu": stage.cpu_seconds,
                "recent": recent.wall_seconds,
            })
        })
        .collect();
    object(json!({
        "blocksPerSecond": recent.rate(recent.blocks),
        "transactionsPerSecond": recent.rate(recent.transactions),
        "inputsPerSecond": recent.rate(recent.inputs),
        "signaturesPerSecond": recent.rate(recent.signatures()),
        "bytesPerSecond": recent.rate(recent.bytes),
        "bottleneck": recent.bottleneck().name(),
        "busy": recent.busy(),
        "workers": now.workers,
        "blocks": now.blocks,
        "inputs": now.inputs,
        "signatures": now.signatures(),
        "stages": stages,
    }))
}

/// The indexes and other followers that keep files, by the names of `getindexinfo`.
fn indexes(node: &PageNode) -> Value {
    let Some(engine) = node.engine() else { return json!([]) };
    let tip = engine.tip_update().height.0;
    let row = |index: IndexStatus| {
        json!({
            "name": index.name,
            "height": index.height,
            "target": tip,
            "done": index.is_synced,
            "error": index.error,
        })
    };
    let indexes = node.context.indexes();
    let followers = engine.followers().into_iter().filter(|info| info.has_files).map(IndexStatus::from);
    let open = followers.flat_map(|index| index.by_names(indexes.shared.as_ref()));
    let unopened = indexes.unopened.iter().map(|(name, reason)| IndexStatus::unopened(name, reason));
    open.chain(unopened).map(row).collect()
}
