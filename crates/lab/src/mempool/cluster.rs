//! The session with one dense cluster: the cost of a change to it.
//!
//! Input: a node with an empty mempool, the cluster's transactions. Output: CPU time per change. A change is
//! `prioritisetransaction` of a transaction of the cluster, and `getmempoolentry`, which returns the feerate of a chunk
//! and so makes the node linearize the cluster; the same number of calls that do nothing is subtracted. Cost: 4,000
//! calls. Must never: give a node a change that it may ignore.

use super::data::parse_tx;
use super::node::{Common, Node};
use super::rows::{Measured, Row};
use crate::error::LabError;
use crate::runs::system;
use serde_json::json;
use std::path::Path;

/// CPU time is counted in ticks of 10 ms: this many changes take many ticks.
const CHANGES: u32 = 1_000;
/// Satoshis by which a fee changes, up and down.
const STEP: i64 = 5_000;

pub fn cluster(common: &Common<'_>, node: &Node, file: &Path, measured: &mut Measured) -> Result<(), LabError> {
    let txs = &common.data.waiting.cluster;
    node.call("importmempool", &json!([file.display().to_string()]))?;
    node.wait_for_size(txs.len() as u64)?;
    let ids = txs.iter().map(|tx| parse_tx(tx).map(|tx| tx.view().txid().to_string()));
    let ids: Vec<String> = ids.collect::<Result<_, LabError>>()?;
    node.until_idle();
    let empty = |_: u32| -> Result<(), LabError> {
        node.call("getblockcount", &json!([]))?;
        node.call("getblockcount", &json!([])).map(|_| ())
    };
    let change = |number: u32| -> Result<(), LabError> {
        let index = number as usize % ids.len();
        // Up in one round over the cluster, down in the next: no two calls leave the cluster as it was.
        let delta = if (number as usize / ids.len()).is_multiple_of(2) { STEP } else { -STEP };
        node.call("prioritisetransaction", &json!([ids.get(index), 0, delta]))?;
        let entry = node.call("getmempoolentry", &json!([ids.last()]))?;
        match entry["fees"]["chunk"].is_number() {
            true => Ok(()),
            false => Err(LabError::program("RPC getmempoolentry", format!("no chunk in the answer: {entry}"))),
        }
    };
    let (empty_wall, empty_cpu) = repeat(node, &empty)?;
    let (wall, cpu) = repeat(node, &change)?;
    measured.milliseconds(Row::Cluster, "cpu per change", (cpu - empty_cpu) / f64::from(CHANGES));
    measured.milliseconds(Row::Cluster, "wall per change", (wall - empty_wall) / f64::from(CHANGES));
    measured.milliseconds(Row::Cluster, "cpu of two empty calls", empty_cpu / f64::from(CHANGES));
    Ok(())
}

/// Wall and CPU time of [`CHANGES`] calls.
fn repeat(node: &Node, call: &dyn Fn(u32) -> Result<(), LabError>) -> Result<(f64, f64), LabError> {
    let (cpu, start) = (node.cpu_seconds(), system::now());
    (0..CHANGES).try_for_each(call)?;
    Ok((start.elapsed().as_secs_f64(), node.cpu_seconds() - cpu))
}
