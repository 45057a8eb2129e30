//! Preset `reorg`: competing branches: a short one, a long one, one whose last block is invalid and one with an invalid
//! block in the middle, from which the node must return.
//!
//! Input: a directory. Output: `cases00000.dat`, `expectations.jsonl`, `blk00000.dat` (every stored block) and
//! `stats.json` with the tip on which a node must end. Invariant: branches spend the same coins in different ways, so
//! that errors in disconnecting show in the coins. Cost: under a second.

use super::ledger::{ACCEPT, Expectation, INCONCLUSIVE, Ledger, write_summary};
use super::maker::{Maker, TRUE_SCRIPT, free_tx, output, seal};
use crate::error::ChainsError;
use crate::plan::FIRST_TIME;
use lydian_primitives::build::{MutBlock, MutTx};
use std::path::Path;

/// Blocks before the first fork.
const TRUNK: u32 = 140;
/// Blocks disconnected for the long branch: more than a node keeps in memory by accident.
const LONG: u32 = 40;

/// The amount by which an invalid coinbase exceeds the subsidy: more than the fees of its block.
const TOO_MUCH: i64 = 1_000;

/// The time of the node.
pub const REORG_NOW: u32 = FIRST_TIME + 600 * 1_000;

/// Writes the branches into a directory.
pub fn write(folder: &Path) -> Result<Vec<Expectation>, ChainsError> {
    let mut ledger = Ledger::new(folder, REORG_NOW)?;
    let mut trunk = Maker::new();
    for height in 0..TRUNK {
        // Coins that several branches will spend.
        let txs = if height + 10 > TRUNK { spread(&trunk) } else { Vec::new() };
        extend(&mut ledger, &mut trunk, "trunk", txs, ACCEPT)?;
    }
    let mut makers = vec![trunk.clone()];
    let mut active = trunk.clone();
    for _ in 0..LONG {
        let txs = quarrel(&active, 1);
        extend(&mut ledger, &mut active, "first", txs, ACCEPT)?;
        makers.push(active.clone());
    }

    // Forks two blocks back: equal work does not win, one more block does.
    let mut short = makers[makers.len() - 3].clone();
    for _ in 0..2 {
        let txs = quarrel(&short, 2);
        extend(&mut ledger, &mut short, "short", txs, INCONCLUSIVE)?;
    }
    let txs = quarrel(&short, 2);
    extend(&mut ledger, &mut short, "short", txs, ACCEPT)?;

    // From the trunk past both branches.
    let mut long = trunk.clone();
    for _ in 0..=LONG {
        let txs = quarrel(&long, 3);
        extend(&mut ledger, &mut long, "long", txs, INCONCLUSIVE)?;
    }
    let txs = quarrel(&long, 3);
    extend(&mut ledger, &mut long, "long", txs, ACCEPT)?;

    last_block_invalid(&mut ledger, &short)?;
    middle_block_invalid(&mut ledger, &trunk)?;
    for _ in 0..3 {
        let txs = quarrel(&long, 4);
        extend(&mut ledger, &mut long, "long-goes-on", txs, ACCEPT)?;
    }
    let lines = ledger.finish()?;
    write_summary(folder, "reorg", 0, &long, &lines)?;
    Ok(lines)
}

/// The short branch, now one block behind, grows until it would win; its last block pays itself too much.
fn last_block_invalid(ledger: &mut Ledger, short: &Maker) -> Result<(), ChainsError> {
    let mut branch = short.clone();
    extend(ledger, &mut branch, "invalid-last", quarrel(short, 5), INCONCLUSIVE)?;
    let mut block = branch.template(quarrel(&branch, 5));
    block.txs[0].outputs[0].value.0 += TOO_MUCH;
    seal(&mut block);
    record(ledger, &branch, "invalid-last-block", "bad-cb-amount", &block, "bad-cb-amount")?;
    // Its child is refused because of its parent.
    branch.advance(&block);
    let child = branch.block(Vec::new());
    record(ledger, &branch, "child-of-invalid-last", "bad-prevblk", &child, "bad-prevblk")
}

/// A branch from the trunk with an invalid block before it has the most work: it fails when the node tries to activate
/// it.
fn middle_block_invalid(ledger: &mut Ledger, trunk: &Maker) -> Result<(), ChainsError> {
    let mut branch = trunk.clone();
    for index in 0..LONG + 3 {
        let mut block = branch.template(quarrel(&branch, 6));
        block.txs[0].outputs[0].value.0 += if index == LONG / 2 { TOO_MUCH } else { 0 };
        seal(&mut block);
        // Even the last block, which triggers the reorganisation, is reported as not connected.
        record(ledger, &branch, "invalid-middle", "", &block, INCONCLUSIVE)?;
        branch.advance(&block);
    }
    let child = branch.block(Vec::new());
    record(ledger, &branch, "child-of-invalid-middle", "bad-prevblk", &child, "bad-prevblk")
}

fn record(
    ledger: &mut Ledger,
    maker: &Maker,
    name: &str,
    rule: &str,
    block: &MutBlock,
    expect: &str,
) -> Result<(), ChainsError> {
    ledger.record(name, rule, maker.height + 1, &block.encode(), expect)
}

fn extend(
    ledger: &mut Ledger,
    maker: &mut Maker,
    name: &str,
    txs: Vec<MutTx>,
    expect: &str,
) -> Result<(), ChainsError> {
    let block = maker.block(txs);
    record(ledger, maker, name, "", &block, expect)?;
    maker.advance(&block);
    Ok(())
}

/// A transaction that splits a coin.
fn spread(maker: &Maker) -> Vec<MutTx> {
    let coin = maker.rich_coin();
    coin.map(|coin| free_tx(&[coin], vec![output(coin.value / 20, &TRUE_SCRIPT); 20])).into_iter().collect()
}

/// Two transactions, the second of which spends an output of the first; `branch` makes them differ between branches.
fn quarrel(maker: &Maker, branch: i64) -> Vec<MutTx> {
    let Some(coin) = maker.spendable().first().copied() else { return Vec::new() };
    let half = coin.value / 2;
    let first = free_tx(&[coin], vec![output(half - branch, &TRUE_SCRIPT), output(half, &TRUE_SCRIPT)]);
    let outpoint = lydian_primitives::OutPoint { txid: first.txid(), vout: 1 };
    let child = super::maker::FreeCoin { outpoint, value: half, coinbase_height: None };
    vec![first, free_tx(&[child], vec![output(half - branch, &TRUE_SCRIPT)])]
}
