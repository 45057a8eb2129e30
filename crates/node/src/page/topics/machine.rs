//! The topic `machine`: memory by owner, CPU by stage, disk by folder, signature engine, referee and second opinion.

use super::object;
use crate::display::{Figures, Seen};
use crate::page::PageNode;
use crate::process;
use crate::status::{MempoolStatus, SecondOpinionStatus, SignatureEngine};
use serde_json::{Map, Value, json};

/// Bytes of a header in memory at most: `crates/chain/src/tree/node.rs`.
const HEADER_BYTES_MAX: u64 = 191;

pub(super) fn read(node: &PageNode) -> Map<String, Value> {
    let usage = process::usage();
    let machine = &node.machine;
    let mut values = object(json!({
        "cores": machine.cores,
        "memoryTotal": process::memory_bytes(),
        "resident": usage.memory_bytes,
        "peak": process::peak_memory_bytes(),
        "threads": usage.threads,
        "openFiles": usage.open_files,
        "cpuSeconds": usage.cpu.as_secs_f64(),
        "diskRead": usage.disk_bytes.map(|bytes| bytes.0),
        "diskWritten": usage.disk_bytes.map(|bytes| bytes.1),
        "callsRead": usage.called_bytes.map(|bytes| bytes.0),
        "callsWritten": usage.called_bytes.map(|bytes| bytes.1),
        "datadir": machine.datadir.display().to_string(),
        "free": machine.free_bytes(),
        "folders": machine.folders(),
        "memory": memory(node),
    }));
    let is_initial = node.context.settings.initial_download.is_on();
    let needed = machine.folders().filter(|_| is_initial).map(|folders| machine.needs.missing(&folders));
    values.insert("needed".to_owned(), json!(needed));
    values.extend(stages(&node.sight.get()));
    if let Some(engine) = node.engine() {
        let signatures = SignatureEngine::new(engine.signatures(), engine.reviews());
        values.insert("signatures".to_owned(), json!(signatures));
        values.insert("signatureSentence".to_owned(), json!(signatures.sentence()));
    }
    let opinion = machine.second_opinion.get().map(|monitor| SecondOpinionStatus::from(monitor.counts()));
    values.insert("secondOpinion".to_owned(), json!(opinion));
    values
}

/// What is known of the memory, by owner.
fn memory(node: &PageNode) -> Map<String, Value> {
    let mut owners = Map::new();
    if let Some(engine) = node.engine() {
        owners.insert("coins".to_owned(), json!(engine.tip_update().cache_bytes));
        owners.insert("window".to_owned(), json!(engine.progress().window_bytes));
        let headers = engine.with_tree(|tree| tree.len());
        owners.insert("headers".to_owned(), json!(headers as u64 * HEADER_BYTES_MAX));
    }
    if let Some(tables) = &node.context.indexes().tables {
        owners.insert("index".to_owned(), json!(tables.memory_bytes()));
    }
    if let Some(mempool) = node.mempool() {
        owners.insert("mempool".to_owned(), json!(MempoolStatus::of(&mempool).usage_bytes));
    }
    if let Seen::Syncing(syncing) = node.sight.get() {
        owners.insert("blocks".to_owned(), json!(syncing.0.net.waiting_bytes));
    }
    owners
}

/// Seconds of each stage since the start, and the share of all cores in the last seconds.
fn stages(seen: &Seen) -> Map<String, Value> {
    let (now, rates) = match seen {
        Seen::Nothing | Seen::Something(_) => return Map::new(),
        Seen::Validating(validating) => (&validating.0, &validating.1.rates),
        Seen::Syncing(syncing) => (&syncing.1, &syncing.2.rates),
    };
    let recent = |index: usize| rates.stages.get(index).map(|stage| stage.cpu_seconds);
    let stage = |(index, stage): (usize, &crate::display::StageFigures)| {
        json!({
            "name": stage.stage.name(),
            "what": stage.stage.what(),
            "isWaiting": stage.stage.is_waiting(),
            "wall": stage.wall_seconds,
            "cpu": stage.cpu_seconds,
            "recent": recent(index),
        })
    };
    let stages: Vec<Value> = now.stages.iter().enumerate().map(stage).collect();
    object(json!({ "stages": stages, "cpuShare": cpu_share(rates), "busy": rates.busy() }))
}

/// CPU seconds of the process for each second.
fn cpu_share(rates: &Figures) -> Option<f64> {
    Some(rates.cpu_seconds / rates.wall_seconds).filter(|share| share.is_finite())
}
