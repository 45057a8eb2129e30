//! The chain and the transactions of the comparison, the same for every node.
//!
//! Input: the settings of the preset `mempool-mix`. Output: the chain, generated once and kept in the cache folder; the
//! transactions; `mempool.dat` for `importmempool`. Cost: all transactions in memory, twice. Must never: depend on a
//! node.

use crate::error::LabError;
use crate::runs::chain_cache::{Preset, ensure};
use crate::runs::system;
use lydian_chains::chain_files::ChainFiles;
use lydian_chains::presets::mempool_mix::{self, MempoolSettings, Waiting};
use lydian_hash::Sha256;
use lydian_primitives::{Block, RawBlock, Transaction};
use lydian_report::mempool::DataFacts;
use std::path::Path;

/// Bitcoin Core's `MEMPOOL_DUMP_VERSION_NO_XOR_KEY` (node/mempool_persist.cpp): every node reads it.
const MEMPOOL_DAT_VERSION: u64 = 1;

/// What all nodes get.
#[derive(Debug)]
pub struct Data {
    pub chain: ChainFiles,
    pub waiting: Waiting,
    pub facts: DataFacts,
}

impl Data {
    /// Generates the chain if it is not in the cache folder yet.
    pub fn ensure(
        settings: MempoolSettings,
        cache: &Path,
        threads: usize,
        print_progress: &mut dyn FnMut(&str),
    ) -> Result<Data, LabError> {
        let (folder, chain) = ensure(Preset::Mempool(settings), cache, threads, print_progress)?;
        let waiting = mempool_mix::read(&folder)?;
        let facts = facts(settings.seed, &chain, &waiting)?;
        Ok(Data { chain, waiting, facts })
    }

    /// The block at this place above the tip.
    pub fn block_above(&self, index: usize) -> Result<Option<Block>, LabError> {
        self.waiting.blocks.get(index).map(|bytes| parse_block(bytes)).transpose()
    }
}

/// The contents of a `mempool.dat` with these transactions, all of which arrived now.
pub fn mempool_dat(txs: &[Vec<u8>]) -> Vec<u8> {
    let seconds = std::time::Duration::from_secs_f64(system::unix_seconds()).as_secs();
    let mut bytes = MEMPOOL_DAT_VERSION.to_le_bytes().to_vec();
    bytes.extend_from_slice(&(txs.len() as u64).to_le_bytes());
    for tx in txs {
        bytes.extend_from_slice(tx);
        bytes.extend_from_slice(&seconds.to_le_bytes());
        // No fee delta.
        bytes.extend_from_slice(&0_i64.to_le_bytes());
    }
    // No fee deltas of other transactions, and an empty unbroadcast set.
    bytes.extend_from_slice(&[0, 0]);
    bytes
}

/// Parses a transaction that the lab generated.
pub(super) fn parse_tx(bytes: &[u8]) -> Result<Transaction, LabError> {
    Transaction::parse(bytes).map_err(|error| LabError::Usage(format!("a generated transaction: {error}")))
}

fn parse_block(bytes: &[u8]) -> Result<Block, LabError> {
    RawBlock::new(bytes).parse().map_err(|error| LabError::Usage(format!("a generated block: {error}")))
}

fn facts(seed: u64, chain: &ChainFiles, waiting: &Waiting) -> Result<DataFacts, LabError> {
    let (mut hasher, mut inputs, mut weight, mut bytes) = (Sha256::new(), 0, 0, 0);
    for tx in &waiting.txs {
        let parsed = parse_tx(tx)?;
        hasher.update(tx);
        inputs += parsed.view().input_count();
        weight += parsed.view().weight();
        bytes += tx.len();
    }
    let first = waiting.blocks.first().map(|block| parse_block(block)).transpose()?;
    Ok(DataFacts {
        seed,
        height: chain.facts.height,
        transactions: waiting.txs.len(),
        inputs,
        bytes,
        weight,
        block_transactions: first.as_ref().map_or(0, |block| block.tx_count() - 1),
        block_weight: first.as_ref().map_or(0, Block::weight),
        sha256: lydian_primitives::to_hex(&hasher.finalize()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES_SHA256: &str = "de58fefc02ee2290dea31827b4c66448c436e01aa975ed1e67e886812c1d9d55";

    #[test]
    fn a_mempool_dat_has_a_head_and_16_bytes_behind_each_transaction() {
        let bytes = mempool_dat(&[vec![7; 60], vec![8; 70]]);
        assert_eq!(bytes.len(), 16 + 60 + 16 + 70 + 16 + 2);
        assert_eq!(
            (bytes[..8].to_vec(), bytes[8..16].to_vec()),
            (vec![1, 0, 0, 0, 0, 0, 0, 0], vec![2, 0, 0, 0, 0, 0, 0, 0])
        );
        assert_eq!((&bytes[16..76], &bytes[84..92]), (&[7; 60][..], &[0; 8][..]));
        let seconds = u64::from_le_bytes(bytes[76..84].try_into().unwrap());
        assert!(seconds > 1_700_000_000, "{seconds}");
    }

    #[test]
    fn the_facts_are_those_of_the_transactions() {
        let cache = std::env::temp_dir().join(format!("lydian-lab-mempool-data-{}", std::process::id()));
        let settings = MempoolSettings { transactions: 40, full: 0, seed: 2, per_block: 15 };
        let mut said = Vec::new();
        let data = Data::ensure(settings, &cache, 2, &mut |text| said.push(text.to_owned())).unwrap();
        let again = Data::ensure(settings, &cache, 1, &mut |text| said.push(text.to_owned())).unwrap();
        assert_eq!((said.len(), &data.facts), (1, &again.facts), "{said:?}");
        assert_eq!((data.facts.transactions, data.facts.block_transactions, data.facts.height), (40, 15, 440));
        // If this fails, the preset generates different bytes than before: raise GENERATOR_VERSION.
        assert_eq!(data.facts.sha256, BYTES_SHA256);
        assert_eq!(data.facts.bytes, data.waiting.txs.iter().map(Vec::len).sum::<usize>());
        assert!(data.facts.weight > data.facts.bytes && data.facts.inputs >= 40);
        assert_eq!(data.block_above(2).unwrap().unwrap().tx_count(), 11);
        assert!(data.block_above(3).unwrap().is_none());
        std::fs::remove_dir_all(&cache).unwrap();
    }
}
