//! Preset `scale`: one script with very many transactions, and many scripts with one coin each.
//!
//! Input: settings and a directory. Output: block files and `stats.json`. The witness scripts need no signatures:
//! [`LONG_WITNESS_SCRIPT`] for the long history, [`witness_script`] for the others. Half of the transactions of the
//! long history pay its script, and the other half spend such a coin and pay it again. Empty blocks above bring the
//! history below the blocks that an index does not seal. Cost: about 100 bytes per transaction.

use super::maker::{Maker, TRUE_SCRIPT, free_input, free_tx, output};
use crate::assemble::regtest_genesis;
use crate::error::ChainsError;
use crate::files::{BlockWriter, write_text};
use crate::limits::{CHAIN_BLOCKS_MAX, FULL_BLOCK_HEIGHT_MIN, SCALE_SCRIPTS_MAX, SCALE_TRANSACTIONS_MAX};
use crate::stats::Stats;
use crate::wallet::script::{OP_1, OP_DROP, Script, p2wsh};
use lydian_primitives::OutPoint;
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use std::collections::VecDeque;
use std::path::Path;

/// The witness script of the long history.
pub const LONG_WITNESS_SCRIPT: [u8; 1] = [OP_1];

/// What each of the other scripts has, in satoshis.
pub const COIN_VALUE: i64 = 50_000;

/// What a transaction of the long history moves, in satoshis.
const LONG_VALUE: i64 = 1_000;

/// Outputs of a transaction that pays the other scripts: 350,000 weight units.
const PAID_AT_ONCE: u32 = 2_000;
/// Such transactions in a block.
const PAYMENTS_PER_BLOCK: usize = 10;

/// Transactions of the long history in a block: a block with this many takes 3.4 M weight units.
const PER_BLOCK_MAX: u32 = 8_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleSettings {
    /// Transactions of the long history.
    pub transactions: u32,
    /// Of these, in a block.
    pub per_block: u32,
    /// Scripts with one coin.
    pub scripts: u32,
    /// The height of the last block.
    pub height: u32,
}

impl ScaleSettings {
    fn check(&self) -> Result<(), ChainsError> {
        let refuse = |text: String| Err(ChainsError::Usage(text));
        if !(1..=SCALE_TRANSACTIONS_MAX).contains(&self.transactions) {
            return refuse(format!("--transactions must lie between 1 and {SCALE_TRANSACTIONS_MAX}"));
        }
        if !(1..=SCALE_SCRIPTS_MAX).contains(&self.scripts) {
            return refuse(format!("--scripts must lie between 1 and {SCALE_SCRIPTS_MAX}"));
        }
        if !(2..=PER_BLOCK_MAX).contains(&self.per_block) {
            return refuse(format!("--per-block must lie between 2 and {PER_BLOCK_MAX}"));
        }
        let payments = self.scripts.div_ceil(PAID_AT_ONCE);
        let blocks = payments.div_ceil(u32::try_from(PAYMENTS_PER_BLOCK).unwrap_or(1));
        let least = FULL_BLOCK_HEIGHT_MIN + blocks + self.transactions.div_ceil(self.per_block);
        if !(least..=CHAIN_BLOCKS_MAX).contains(&self.height) {
            return refuse(format!("--height must lie between {least} and {CHAIN_BLOCKS_MAX}"));
        }
        Ok(())
    }
}

/// The output script with the long history.
pub fn long_script() -> Vec<u8> {
    p2wsh(&LONG_WITNESS_SCRIPT)
}

/// The witness script of one of the other scripts, which anyone can spend.
pub fn witness_script(number: u32) -> Vec<u8> {
    Script::new().push(&number.to_le_bytes()).op(OP_DROP).op(OP_1).build()
}

/// An input that spends a coin of such a script.
pub fn witness_input(outpoint: OutPoint, witness_script: &[u8]) -> MutInput {
    MutInput { witness: vec![witness_script.to_vec()], ..free_input(outpoint) }
}

/// Writes the chain into a directory.
pub fn write(settings: ScaleSettings, folder: &Path) -> Result<Stats, ChainsError> {
    settings.check()?;
    let mut chain = Chain {
        writer: BlockWriter::new(folder, "blk")?,
        maker: Maker::new(),
        stats: Stats { preset: "scale".into(), ..Stats::default() },
    };
    chain.writer.write(&regtest_genesis())?;
    chain.grow(FULL_BLOCK_HEIGHT_MIN - 1)?;
    chain.pay_scripts(settings.scripts)?;
    chain.long_history(settings.transactions, settings.per_block)?;
    chain.grow(settings.height)?;
    let Chain { writer, maker, mut stats } = chain;
    (stats.tip, stats.height) = (maker.tip.to_string(), maker.height);
    stats.coins = maker.coin_count as u64;
    stats.file_bytes = writer.bytes();
    write_text(&folder.join("stats.json"), &stats.to_json())?;
    Ok(stats)
}

#[derive(Debug)]
struct Chain {
    writer: BlockWriter,
    maker: Maker,
    stats: Stats,
}

impl Chain {
    fn add(&mut self, txs: Vec<MutTx>) -> Result<(), ChainsError> {
        let block = self.maker.block(txs);
        self.count(&block)?;
        self.maker.advance(&block);
        Ok(())
    }

    /// Writes the block and counts what it has.
    fn count(&mut self, block: &MutBlock) -> Result<(), ChainsError> {
        let bytes = block.encode();
        self.writer.write(&bytes)?;
        self.stats.blocks += 1;
        self.stats.block_bytes += bytes.len() as u64;
        self.stats.transactions += block.txs.len() as u64;
        self.stats.inputs += block.txs.iter().skip(1).map(|tx| tx.inputs.len() as u64).sum::<u64>();
        self.stats.outputs += block.txs.iter().map(|tx| tx.outputs.len() as u64).sum::<u64>();
        Ok(())
    }

    /// Adds empty blocks up to a height.
    fn grow(&mut self, height: u32) -> Result<(), ChainsError> {
        while self.maker.height < height {
            self.add(Vec::new())?;
        }
        Ok(())
    }

    /// Transactions that spend one mature coinbase each.
    fn spend_coinbases(&self, outputs: Vec<Vec<MutOutput>>) -> Result<Vec<MutTx>, ChainsError> {
        let mut coins = self.maker.spendable();
        coins.retain(|coin| coin.coinbase_height.is_some());
        coins.sort_by_key(|coin| coin.value);
        let mut pay = |outputs: Vec<MutOutput>| {
            let coin = coins.pop()?;
            let value: i64 = outputs.iter().map(|output| output.value.0).sum();
            (coin.value >= value).then(|| free_tx(&[coin], outputs))
        };
        let txs: Option<Vec<MutTx>> = outputs.into_iter().map(&mut pay).collect();
        txs.ok_or_else(|| {
            ChainsError::Usage("the coinbases are too small for this chain: use a larger --per-block".into())
        })
    }

    fn pay_scripts(&mut self, scripts: u32) -> Result<(), ChainsError> {
        let numbers: Vec<u32> = (0..scripts).collect();
        let pay = |number: &u32| output(COIN_VALUE, &p2wsh(&witness_script(*number)));
        let payments: Vec<Vec<MutOutput>> =
            numbers.chunks(PAID_AT_ONCE as usize).map(|numbers| numbers.iter().map(pay).collect()).collect();
        for block in payments.chunks(PAYMENTS_PER_BLOCK) {
            let txs = self.spend_coinbases(block.to_vec())?;
            self.add(txs)?;
        }
        Ok(())
    }

    fn long_history(&mut self, transactions: u32, per_block: u32) -> Result<(), ChainsError> {
        let script = long_script();
        let mut coins: VecDeque<OutPoint> = VecDeque::new();
        let mut left = transactions as usize;
        while left > 0 {
            let count = left.min(per_block as usize);
            left -= count;
            let spent: Vec<OutPoint> = coins.drain(..coins.len().min(count / 2)).collect();
            let fresh = count - spent.len();
            let mut txs = self.spend_coinbases(vec![vec![output(LONG_VALUE, &TRUE_SCRIPT); fresh]])?;
            let funds = txs.first().map(MutTx::txid).unwrap_or_default();
            let free = (0..).take(fresh).map(|vout| free_input(OutPoint { txid: funds, vout }));
            let spends = spent.into_iter().map(|outpoint| witness_input(outpoint, &LONG_WITNESS_SCRIPT));
            for input in free.chain(spends) {
                let outputs = vec![output(LONG_VALUE, &script)];
                let tx = MutTx { version: 2, inputs: vec![input], outputs, lock_time: 0 };
                if tx.inputs.iter().all(|input| input.witness.is_empty()) {
                    coins.push_back(OutPoint { txid: tx.txid(), vout: 0 });
                }
                txs.push(tx);
            }
            self.add(txs)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain_files::ChainFiles;
    use crate::walk::walk;
    use std::collections::HashSet;

    const SMALL: ScaleSettings = ScaleSettings { transactions: 250, per_block: 40, scripts: 2_100, height: 460 };

    #[test]
    fn the_chain_has_a_long_history_and_many_scripts() {
        let folder = std::env::temp_dir().join(format!("lydian-chains-scale-{}", std::process::id()));
        let stats = write(SMALL, &folder).unwrap();
        let (long, paid): (Vec<u8>, HashSet<Vec<u8>>) =
            (long_script(), (0..SMALL.scripts).map(|number| p2wsh(&witness_script(number))).collect());
        let mut coins: HashSet<OutPoint> = HashSet::new();
        let (mut touched, mut spent, mut others, mut blocks, mut transactions) = (0, 0, 0, 0, 0);
        walk(&ChainFiles::open(&folder, None).unwrap(), &mut |block| {
            blocks += 1;
            transactions += block.block.tx_count() as u64;
            for tx in block.txs() {
                let before = coins.len();
                tx.inputs().for_each(|input| _ = coins.remove(&input.prevout));
                let is_spent = before > coins.len();
                let found: Vec<OutPoint> =
                    block.coins(&tx).filter(|(_, output)| output.script_pubkey == long).map(|(coin, _)| coin).collect();
                others += block.coins(&tx).filter(|(_, output)| paid.contains(output.script_pubkey)).count();
                spent += usize::from(is_spent);
                touched += usize::from(is_spent || !found.is_empty());
                coins.extend(found);
            }
            Ok(())
        })
        .unwrap();
        assert_eq!((touched, spent, coins.len(), others), (250, 105, 145, 2_100));
        assert_eq!((blocks, transactions, stats.height), (461, stats.transactions + 1, 460));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// limit: SCALE_TRANSACTIONS_MAX at
    /// limit: SCALE_TRANSACTIONS_MAX above
    /// limit: SCALE_SCRIPTS_MAX at
    /// limit: SCALE_SCRIPTS_MAX above
    #[test]
    fn settings_that_no_chain_has_are_refused() {
        let high = ScaleSettings { height: 50_000, per_block: 4_000, ..SMALL };
        let refused = |settings: ScaleSettings, option: &str| {
            assert!(settings.check().unwrap_err().to_string().contains(option), "{settings:?}");
        };
        let (transactions, scripts) = (SCALE_TRANSACTIONS_MAX, SCALE_SCRIPTS_MAX);
        ScaleSettings { transactions, scripts, ..high }.check().unwrap();
        refused(ScaleSettings { transactions: transactions + 1, ..high }, "--transactions");
        refused(ScaleSettings { scripts: scripts + 1, ..high }, "--scripts");
        refused(ScaleSettings { transactions: 0, ..high }, "--transactions");
        refused(ScaleSettings { scripts: 0, ..high }, "--scripts");
        ScaleSettings { per_block: PER_BLOCK_MAX, ..high }.check().unwrap();
        refused(ScaleSettings { per_block: PER_BLOCK_MAX + 1, ..high }, "--per-block");
        ScaleSettings { height: 441, ..SMALL }.check().unwrap();
        refused(ScaleSettings { height: 440, ..SMALL }, "--height must lie between 441 and 90000");
    }

    /// The fullest block of the largest chain stays below the limit of weight.
    #[test]
    fn the_fullest_blocks_are_not_too_heavy() {
        let folder = std::env::temp_dir().join(format!("lydian-chains-scale-full-{}", std::process::id()));
        let scripts = PAID_AT_ONCE * 10;
        write(ScaleSettings { transactions: 12_000, per_block: PER_BLOCK_MAX, scripts, height: 436 }, &folder).unwrap();
        let mut heaviest = 0;
        walk(&ChainFiles::open(&folder, None).unwrap(), &mut |block| {
            heaviest = heaviest.max(block.block.weight());
            Ok(())
        })
        .unwrap();
        assert!((3_300_000..4_000_000).contains(&heaviest), "{heaviest}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
