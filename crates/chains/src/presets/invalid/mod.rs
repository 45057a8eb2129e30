//! Preset `invalid`: every consensus rule that can be broken on regtest, one violation per block, re-sealed; with
//! Core's reject reason for each, and for limits a valid twin exactly at the limit.
//!
//! Input: a seed and a directory. Output: `cases00000.dat`, `expectations.jsonl`, `blk00000.dat` (the valid chain), and
//! the same for a second chain in `bip30/`, which needs the option given in `options.txt`. Cost: seconds.

mod bip30;
mod block;
mod coins;
mod header;
mod legacy;
mod script_case;
mod sigops;
mod taproot;
mod tx;
mod witness;

pub(super) use block::{fit, weight};
pub(super) use script_case::{ScriptCase, Signing, Unlocked};
pub(super) use taproot::leaf_of;

use super::ledger::{ACCEPT, Expectation, Ledger, write_summary};
use super::maker::{Maker, TRUE_SCRIPT, free_tx, output, seal};
use crate::error::ChainsError;
use crate::plan::FIRST_TIME;
use crate::regtest::VOTED_ACTIVATION_HEIGHT;
use crate::wallet::Wallet;
use lydian_primitives::build::{MutBlock, MutTx};
use std::path::Path;

/// A true script with signature operations that are counted but never run.
pub(super) fn idle_checks(multi: usize, single: usize) -> Vec<u8> {
    sigops::counting(multi, single)
}

/// Directory of the chain on which BIP-0034 activates late.
pub const BIP30_FOLDER: &str = "bip30";

/// Core's option for that chain.
pub const BIP30_OPTION: &str = "-testactivationheight=bip34@10000";

/// The time of the node: later than all blocks, earlier than the block that is too new.
pub const CASES_NOW: u32 = FIRST_TIME + 600 * 1_000;

/// Number of coins spread for the cases.
const FREE_COINS: u32 = 60;
const FREE_COIN_VALUE: i64 = 10_000_000;

/// Consensus rules that no block on regtest can break alone, with the explanation.
pub const UNREACHABLE: &[(&str, &str)] = &[
    ("bad-signet-blksig", "regtest has no challenge"),
    ("block-tx-count", "a million transactions are larger than the limit of the base size, whose reason is the same"),
    ("bad-txns-oversize", "a block that holds such a transaction breaks the limit of the base size first"),
    ("time-timewarp-attack", "regtest does not enforce BIP-0094"),
    ("bad-txns-inputvalues-outofrange", "all coins of regtest together are 15,000"),
    ("bad-txns-accumulated-fee-outofrange", "all coins of regtest together are 15,000"),
];

/// The chain under construction and the expectations for its blocks.
#[derive(Debug)]
struct Bench {
    maker: Maker,
    ledger: Ledger,
    wallet: Wallet,
}

impl Bench {
    /// Records a block on the tip with one change, which Core refuses.
    fn broken(
        &mut self,
        name: &str,
        rule: &str,
        reason: &str,
        txs: Vec<MutTx>,
        change: impl FnOnce(&mut MutBlock),
    ) -> Result<MutBlock, ChainsError> {
        let mut block = self.maker.template(txs);
        change(&mut block);
        seal(&mut block);
        self.refused(name, rule, reason, &block)?;
        Ok(block)
    }

    /// Records a block unchanged, which Core refuses.
    fn refused(&mut self, name: &str, rule: &str, reason: &str, block: &MutBlock) -> Result<(), ChainsError> {
        self.ledger.record(name, rule, self.maker.height + 1, &block.encode(), reason)
    }

    /// Records the valid twin, which becomes the tip.
    fn twin(
        &mut self,
        name: &str,
        rule: &str,
        txs: Vec<MutTx>,
        change: impl FnOnce(&mut MutBlock),
    ) -> Result<(), ChainsError> {
        let mut block = self.maker.template(txs);
        change(&mut block);
        seal(&mut block);
        self.accepted(name, rule, &block)
    }

    fn accepted(&mut self, name: &str, rule: &str, block: &MutBlock) -> Result<(), ChainsError> {
        self.ledger.record(name, rule, self.maker.height + 1, &block.encode(), ACCEPT)?;
        self.maker.advance(block);
        Ok(())
    }

    /// Adds valid blocks without transactions.
    fn grow(&mut self, count: u32) -> Result<(), ChainsError> {
        (0..count).try_for_each(|_| self.twin("chain", "", Vec::new(), |_| ()))
    }

    /// Creates free coins for the cases, in a block of their own.
    fn stock(&mut self) -> Result<(), ChainsError> {
        let Some(coin) = self.maker.rich_coin() else { return Ok(()) };
        let outputs = (0..FREE_COINS).map(|_| output(FREE_COIN_VALUE, &TRUE_SCRIPT)).collect();
        let tx = free_tx(&[coin], outputs);
        self.twin("chain", "", vec![tx], |_| ())
    }

    /// A transaction that spends one free coin to a new free coin.
    fn plain_tx(&self) -> MutTx {
        let coin = self.maker.spendable()[0];
        free_tx(&[coin], vec![output(coin.value, &TRUE_SCRIPT)])
    }
}

/// All ways in which a script can fail.
pub(super) fn script_cases(wallet: &Wallet) -> Vec<ScriptCase> {
    [legacy::cases, witness::cases, taproot::cases].map(|cases| cases(wallet)).concat()
}

/// Writes the cases into a directory.
pub fn write(seed: u64, folder: &Path) -> Result<Vec<Expectation>, ChainsError> {
    let ledger = Ledger::new(folder, CASES_NOW)?;
    let mut bench = Bench { maker: Maker::new(), ledger, wallet: Wallet::new(seed) };
    bench.grow(4)?;
    block::short_coinbase(&mut bench)?;
    bench.grow(VOTED_ACTIVATION_HEIGHT + 8 - bench.maker.height)?;
    bench.stock()?;
    header::cases(&mut bench)?;
    block::cases(&mut bench)?;
    tx::cases(&mut bench)?;
    coins::cases(&mut bench)?;
    bench.stock()?;
    sigops::cases(&mut bench)?;
    let scripts = script_cases(&bench.wallet);
    script_case::record(&mut bench, &scripts)?;
    let mut lines = bench.ledger.finish()?;
    write_summary(folder, "invalid", seed, &bench.maker, &lines)?;
    lines.extend(bip30::write(&folder.join(BIP30_FOLDER))?);
    Ok(lines)
}
