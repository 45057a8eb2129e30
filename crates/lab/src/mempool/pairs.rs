//! The session of transactions with two inputs and two outputs: the CPU time of one, in a batch and alone.
//!
//! Input: a node with an empty mempool, the data. Output: CPU time per transaction. At most 2,000 transactions come by
//! one call of `sendrawtransaction` each, from which calls that do nothing are subtracted; all others come with
//! `importmempool`. A thread that verifies accepted transactions again is measured and subtracted too. Cost: a few
//! thousand calls. Must never: count a transaction that waits for another.

use super::data::{Data, mempool_dat, parse_tx};
use super::node::{Common, Node};
use super::rows::{Measured, Row, as_f64};
use crate::error::LabError;
use lydian_disk::{Disk, RealDisk};
use lydian_primitives::{Txid, to_hex};
use serde_json::json;
use std::collections::HashSet;

/// The thread of Lydian that verifies accepted transactions again; other nodes have none.
const SECOND_CHECK: &str = "mempool-second";
/// CPU time is counted in ticks of 10 ms: enough for many ticks.
const ALONE_MAX: usize = 2_000;

pub fn pairs(common: &Common<'_>, node: &Node, measured: &mut Measured) -> Result<(), LabError> {
    let mut txs = selected(common.data)?;
    let alone = txs.split_off(txs.len() - ALONE_MAX.min(txs.len() / 2));
    if alone.is_empty() {
        return Err(LabError::Usage("the data has no two transactions of two inputs and two outputs".to_owned()));
    }
    let file = node.job().data.join("pairs.dat");
    RealDisk.write_whole(&file, &mempool_dat(&txs))?;
    node.until_idle();

    let first = used(node);
    node.call("importmempool", &json!([file.display().to_string()]))?;
    node.wait_for_size(txs.len() as u64)?;
    node.until_idle();
    let imported = used(node);
    alone.iter().try_for_each(|_| node.call("getblockcount", &json!([])).map(|_| ()))?;
    let empty = used(node).0 - imported.0;

    let before = used(node);
    for tx in &alone {
        // The lab's fees may be above the default of maxfeerate.
        node.call("sendrawtransaction", &json!([to_hex(tx), 0]))?;
    }
    node.until_idle();
    let after = used(node);

    let each = |from: (f64, f64), to: (f64, f64), count: usize, empty: f64| {
        (to.0 - from.0 - (to.1 - from.1) - empty) / as_f64(count as u64)
    };
    measured.add(Row::Pairs, "in a batch", lydian_report::mempool::Unit::Count, as_f64(txs.len() as u64));
    measured.microseconds(Row::Pairs, "cpu in a batch", each(first, imported, txs.len(), 0.0));
    measured.microseconds(Row::Pairs, "cpu alone", each(before, after, alone.len(), empty));
    measured.microseconds(Row::Pairs, "cpu of an empty call", empty / as_f64(alone.len() as u64));
    measured.microseconds(
        Row::Pairs,
        "cpu of the second check",
        (after.1 - first.1) / as_f64((txs.len() + alone.len()) as u64),
    );
    Ok(())
}

/// CPU seconds of the node, and of its second check.
fn used(node: &Node) -> (f64, f64) {
    (node.cpu_seconds(), node.cpu_seconds_of(SECOND_CHECK))
}

/// The transactions with two inputs and two outputs that spend no other transaction of the data.
fn selected(data: &Data) -> Result<Vec<Vec<u8>>, LabError> {
    let (mut waiting, mut found) = (HashSet::<Txid>::new(), Vec::new());
    for bytes in &data.waiting.txs {
        let tx = parse_tx(bytes)?;
        let view = tx.view();
        let is_funded = !view.inputs().any(|input| waiting.contains(&input.prevout.txid));
        if view.input_count() == 2 && view.output_count() == 2 && is_funded {
            found.push(bytes.clone());
        }
        waiting.insert(view.txid());
    }
    Ok(found)
}
