//! Preset `mempool-mix`: a regtest chain, and on top of it blocks of mainnet's mix whose transactions are a mempool.
//!
//! Input: settings and a directory. Output: the chain as block files with `stats.json`; in the folder [`ABOVE`] the
//! blocks above its tip, of which the last holds a cluster that is hard to linearize. The transactions of the other
//! blocks without the coinbases are the mempool, in an order in which parents come first; each of these blocks extends
//! the one before, so that a node that knows its transactions can connect it. Invariants: as for `mainnet-mix`;
//! clusters are within Bitcoin Core's limits; a chain made with one number of transactions is not the beginning of
//! another. Cost: that of `mainnet-mix`, per input.

use crate::assemble::{Assembler, regtest_genesis};
use crate::error::ChainsError;
use crate::files::{BlockWriter, read_blocks, write_text};
use crate::limits::MEMPOOL_TRANSACTIONS_MAX;
use crate::plan::{MixSettings, Planner};
use crate::stats::Stats;
use crate::wallet::Wallet;
use lydian_hash::sha256d;
use lydian_primitives::{BlockHash, RawBlock};
use std::path::Path;

/// The folder of the blocks above the tip.
pub const ABOVE: &str = "above";

/// Blocks before the full ones; each above height 100 spreads a coinbase over many coins.
const GROWING_BLOCKS: u32 = 440;
const SPREADING_BLOCKS: u64 = 335;
/// Coins that one waiting transaction takes from the chain, in hundredths, with a reserve for those that are redrawn.
const COINS_PER_HUNDRED: u64 = 260;
/// Coins that a full block takes from the growing ones at most.
const COINS_PER_FULL_BLOCK: u64 = 6_000;

/// The parameters of a chain with waiting transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MempoolSettings {
    /// Transactions of the mempool, without those of the dense cluster.
    pub transactions: u32,
    /// Full blocks at the end of the chain.
    pub full: u32,
    pub seed: u64,
    /// The most transactions of a block above the tip; a full block has some 2,600.
    pub per_block: u32,
}

/// A generated mempool.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The blocks above the tip, without that of the dense cluster.
    pub blocks: Vec<Vec<u8>>,
    /// The mempool in topological order.
    pub txs: Vec<Vec<u8>>,
    /// The transactions of the dense cluster, parents first.
    pub cluster: Vec<Vec<u8>>,
}

/// Writes chain and mempool into a directory.
pub fn write(settings: MempoolSettings, threads: usize, folder: &Path) -> Result<Stats, ChainsError> {
    let MempoolSettings { transactions, full, seed, per_block } = settings;
    if transactions == 0 || transactions > MEMPOOL_TRANSACTIONS_MAX || per_block == 0 {
        let text = format!("--transactions must lie between 1 and {MEMPOOL_TRANSACTIONS_MAX}");
        return Err(ChainsError::Usage(text));
    }
    let mix = MixSettings { blocks: GROWING_BLOCKS + full, full, seed, reuse_per_mille: 0 };
    let mut planner = Planner::new(mix)?;
    let coins = u64::from(transactions) * COINS_PER_HUNDRED / 100 + u64::from(full) * COINS_PER_FULL_BLOCK;
    planner.spread_at_least(coins / SPREADING_BLOCKS);
    let genesis = regtest_genesis();
    let mut assembler = Assembler::new(Wallet::new(seed), threads, BlockHash(sha256d(&genesis[..80])));
    let mut stats = Stats { preset: "mempool-mix".into(), seed, ..Stats::default() };
    let mut writer = BlockWriter::new(folder, "blk")?;
    writer.write(&genesis)?;
    while let Some(planned) = planner.next_block() {
        let made = assembler.make(&planned);
        stats.add(&planned, &made);
        writer.write(&made.bytes)?;
    }
    stats.coins = planner.coin_count() as u64;
    stats.file_bytes = writer.bytes();
    let mut above = BlockWriter::new(&folder.join(ABOVE), "blk")?;
    let too_few = || ChainsError::Usage(format!("the chain has too few coins for {transactions} waiting transactions"));
    let mut left = transactions as usize;
    while left > 0 {
        let planned = planner.next_pending(left.min(per_block as usize)).ok_or_else(too_few)?;
        left -= planned.txs.len();
        above.write(&assembler.make(&planned).bytes)?;
    }
    let planned = planner.dense_cluster().ok_or_else(too_few)?;
    above.write(&assembler.make(&planned).bytes)?;
    write_text(&folder.join("stats.json"), &stats.to_json())?;
    Ok(stats)
}

/// Reads the mempool that [`write`] wrote.
pub fn read(folder: &Path) -> Result<Waiting, ChainsError> {
    let mut blocks = read_blocks(&folder.join(ABOVE), "blk")?;
    let nothing = || ChainsError::Usage(format!("{}: there are no waiting transactions", folder.display()));
    let cluster = txs_of(&blocks.pop().ok_or_else(nothing)?)?;
    let mut txs = Vec::new();
    for block in &blocks {
        txs.extend(txs_of(block)?);
    }
    Ok(Waiting { blocks, txs, cluster })
}

/// The transactions of a block without its coinbase.
fn txs_of(block: &[u8]) -> Result<Vec<Vec<u8>>, ChainsError> {
    let parsed = RawBlock::new(block).parse();
    let block = parsed.map_err(|error| ChainsError::Usage(format!("a block above the tip: {error}")))?;
    Ok(block.txs().skip(1).map(|tx| tx.bytes().to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::{Transaction, Txid};
    use std::collections::HashSet;

    fn scratch(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("lydian-chains-mempool-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn the_mempool_is_in_topological_order_and_the_same_with_any_number_of_threads() {
        let (one, two) = (scratch("one"), scratch("two"));
        let settings = MempoolSettings { transactions: 300, full: 0, seed: 5, per_block: 120 };
        write(settings, 1, &one).unwrap();
        let stats = write(settings, 2, &two).unwrap();
        let (waiting, again) = (read(&one).unwrap(), read(&two).unwrap());
        assert_eq!((&waiting.blocks, &waiting.cluster), (&again.blocks, &again.cluster));
        assert_eq!((waiting.txs.len(), waiting.cluster.len(), stats.height), (300, 64, GROWING_BLOCKS));
        assert_eq!(waiting.blocks.len(), 3);
        let parsed: Vec<Transaction> =
            waiting.txs.iter().chain(&waiting.cluster).map(|tx| Transaction::parse(tx.as_slice()).unwrap()).collect();
        let waiting_ids: HashSet<Txid> = parsed.iter().map(|tx| tx.view().txid()).collect();
        let mut seen = HashSet::new();
        let mut spent_waiting = 0;
        for tx in parsed.iter().map(Transaction::view) {
            for input in tx.inputs() {
                if waiting_ids.contains(&input.prevout.txid) {
                    spent_waiting += 1;
                    assert!(seen.contains(&input.prevout.txid), "a child before its parent");
                }
            }
            seen.insert(tx.txid());
        }
        assert!(spent_waiting > 768, "{spent_waiting}");
        [one, two].iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
    }

    /// limit: MEMPOOL_TRANSACTIONS_MAX at
    /// limit: MEMPOOL_TRANSACTIONS_MAX above
    #[test]
    fn the_number_of_transactions_has_a_limit() {
        let folder = scratch("limit");
        let settings = |transactions| MempoolSettings { transactions, full: 0, seed: 1, per_block: 9 };
        let refused = |transactions| write(settings(transactions), 1, &folder).unwrap_err();
        assert!(refused(0).to_string().contains("--transactions"));
        assert!(refused(MEMPOOL_TRANSACTIONS_MAX + 1).to_string().contains("--transactions"));
        // At the limit the chain can fund all of them: no block spreads its coinbase over more coins than it may.
        let coins = u64::from(MEMPOOL_TRANSACTIONS_MAX) * COINS_PER_HUNDRED / 100 / SPREADING_BLOCKS;
        assert!(coins <= crate::plan::FAN_OUT_MAX, "{coins}");
    }
}
