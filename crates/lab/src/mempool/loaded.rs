//! Sessions with the whole mempool: the import, the memory it takes, `getrawmempool true`, and blocks of known
//! transactions.
//!
//! Input: a node with an empty mempool, the data. Output: figures. The blocks extend the chain, so that each of them
//! can be sent once per session; the first measurements of a session have the full mempool below them. Must never:
//! measure on a mempool that does not have every transaction.

use super::node::{Common, Node};
use super::peer::Peer;
use super::rows::{Measured, Row, as_f64};
use crate::error::LabError;
use crate::runs::system;
use lydian_primitives::Block;
use lydian_report::mempool::{Content, Unit};
use lydian_wire::{BlockTransactions, CompactBlock, Message};
use serde_json::json;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Blocks of each kind in a session.
const BLOCK_ROUNDS: usize = 2;
/// Calls of `getrawmempool` in a session.
const RAW_CALLS: usize = 2;
/// Until a call of `waitforblock` waits on the node's side.
const WAIT_TIME: Duration = Duration::from_millis(200);
const POLL: Duration = Duration::from_millis(1);

/// Imports the mempool and returns its content.
pub fn import(common: &Common<'_>, node: &Node, file: &Path, measured: &mut Measured) -> Result<Content, LabError> {
    let (cpu, start) = (node.cpu_seconds(), system::now());
    node.call("importmempool", &json!([file.display().to_string()]))?;
    let wall = start.elapsed().as_secs_f64();
    let used = node.cpu_seconds() - cpu;
    let content = node.content()?;
    let expected = common.data.facts.transactions as u64;
    if content.size != expected {
        let text = format!("after the import the mempool has {} of {expected} transactions", content.size);
        return Err(LabError::program("mempool", text));
    }
    measured.seconds(Row::Import, "wall", wall);
    measured.seconds(Row::Import, "cpu", used);
    measured.seconds(Row::Import, "cpu until idle", node.until_idle() - cpu);
    measured.content = Some(content);
    Ok(content)
}

/// The whole session.
pub fn loaded(
    common: &Common<'_>,
    node: &Node,
    file: &Path,
    rows: &[Row],
    measured: &mut Measured,
) -> Result<(), LabError> {
    let before = node.rss_bytes();
    let content = import(common, node, file, measured)?;
    measured.add(Row::Memory, "growth", Unit::Bytes, as_f64(node.rss_bytes().saturating_sub(before)));
    measured.add(Row::Memory, "usage", Unit::Bytes, as_f64(content.usage));
    if rows.contains(&Row::RawMempool) {
        raw_mempool(node, content.size, measured)?;
    }
    if rows.iter().any(|row| matches!(row, Row::Block | Row::CompactBlock | Row::Forward)) {
        blocks(common, node, rows, measured)?;
    }
    Ok(())
}

fn raw_mempool(node: &Node, size: u64, measured: &mut Measured) -> Result<(), LabError> {
    for _ in 0..RAW_CALLS {
        let (cpu, start) = (node.cpu_seconds(), system::now());
        let (bytes, found) = node.count("getrawmempool", &json!([true]), "\"wtxid\"")?;
        let wall = start.elapsed().as_secs_f64();
        if found != size {
            let text = format!("{found} entries in an answer of {bytes} bytes, expected {size}");
            return Err(LabError::program("RPC getrawmempool", text));
        }
        measured.seconds(Row::RawMempool, "wall", wall);
        measured.seconds(Row::RawMempool, "cpu", node.cpu_seconds() - cpu);
        measured.add(Row::RawMempool, "answer", Unit::Bytes, as_f64(bytes));
    }
    Ok(())
}

fn blocks(common: &Common<'_>, node: &Node, rows: &[Row], measured: &mut Measured) -> Result<(), LabError> {
    let height = common.data.facts.height;
    let mut sender = Peer::connect(node.port, 1, height)?;
    let mut other = Peer::connect(node.port, 2, height)?;
    let mut parent = None;
    let mut next = 0;
    for _ in 0..BLOCK_ROUNDS {
        for row in [Row::Forward, Row::Block, Row::CompactBlock] {
            let Some(block) = common.data.block_above(next)? else { return Ok(()) };
            if !rows.contains(&row) {
                continue;
            }
            // A node forwards compact blocks of a sender that has delivered a block before.
            if row == Row::Forward && next == 0 {
                connect(node, &mut sender, &block, Row::Block, common.timeout())?;
                parent = Some(*block.header());
                next += 1;
            }
            let Some(block) = common.data.block_above(next)? else { return Ok(()) };
            node.until_idle();
            match (row, parent) {
                (Row::Forward, Some(tip)) => {
                    other.want_compact_blocks(tip)?;
                    thread::sleep(WAIT_TIME);
                    let wall = forward(&mut sender, &mut other, &block, common.timeout())?;
                    measured.milliseconds(row, "wall", wall);
                    wait_for_tip(node, &block, common.timeout())?;
                }
                _ => {
                    let (wall, cpu, missing) = connect(node, &mut sender, &block, row, common.timeout())?;
                    measured.milliseconds(row, "wall", wall);
                    measured.milliseconds(row, "cpu", cpu);
                    if row == Row::CompactBlock {
                        measured.add(row, "transactions requested", Unit::Count, as_f64(missing));
                    }
                }
            }
            parent = Some(*block.header());
            next += 1;
        }
    }
    Ok(())
}

/// Sends a block and waits until it is the tip. Returns the time from the last byte, the CPU time, and how many
/// transactions the node requested.
fn connect(
    node: &Node,
    sender: &mut Peer,
    block: &Block,
    row: Row,
    timeout: Duration,
) -> Result<(f64, f64, u64), LabError> {
    let last = sender.send_but_last(&message(block, row))?;
    let cpu = node.cpu_seconds();
    let params = json!([block.hash().to_string(), u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)]);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| node.call("waitforblock", &params).map(|answer| (system::now(), answer)));
        thread::sleep(WAIT_TIME);
        let start = sender.send_last(last)?;
        let mut missing = 0;
        while !waiter.is_finished() {
            missing += answer(sender, block, POLL)?;
        }
        let joined = waiter.join().map_err(|_| LabError::program("RPC waitforblock", "its thread ended"))?;
        let (end, tip) = joined?;
        if tip["hash"] != block.hash().to_string() {
            let text = format!("the tip is {tip}, expected {}", block.hash());
            return Err(LabError::program("RPC waitforblock", text));
        }
        Ok((end.duration_since(start).as_secs_f64(), node.cpu_seconds() - cpu, missing))
    })
}

fn message(block: &Block, row: Row) -> Message {
    match row {
        Row::Block => Message::Block(block.as_bytes().to_vec()),
        _ => Message::CmpctBlock(Box::new(CompactBlock::new(block, 1))),
    }
}

/// Answers a request for missing transactions, if one arrives in time; returns their number.
fn answer(sender: &mut Peer, block: &Block, timeout: Duration) -> Result<u64, LabError> {
    let Some(Message::GetBlockTxn(request)) = sender.next(timeout)? else { return Ok(0) };
    match BlockTransactions::new(block, &request) {
        Some(txs) => {
            sender.send(&Message::BlockTxn(txs))?;
            Ok(request.indexes.len() as u64)
        }
        None => Ok(0),
    }
}

/// The time from the last byte of a compact block in to the whole compact block out to another peer.
fn forward(sender: &mut Peer, other: &mut Peer, block: &Block, timeout: Duration) -> Result<f64, LabError> {
    let last = sender.send_but_last(&message(block, Row::Forward))?;
    let hash = block.hash();
    let is_it = move |message: &Message| matches!(message, Message::CmpctBlock(found) if found.header.hash() == hash);
    thread::scope(|scope| {
        let receiver = scope.spawn(move || -> Result<Instant, LabError> {
            other.wait_for("compact block", timeout.min(Duration::from_secs(60)), is_it)?;
            Ok(system::now())
        });
        thread::sleep(WAIT_TIME);
        let start = sender.send_last(last)?;
        while !receiver.is_finished() {
            answer(sender, block, POLL)?;
        }
        let end = receiver.join().map_err(|_| LabError::program("peer of the lab", "its thread ended"))??;
        Ok(end.duration_since(start).as_secs_f64())
    })
}

fn wait_for_tip(node: &Node, block: &Block, timeout: Duration) -> Result<(), LabError> {
    let params = json!([block.hash().to_string(), u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)]);
    node.call("waitforblock", &params).map(|_| ())
}
