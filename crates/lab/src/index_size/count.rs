//! What a chain has of each unit that an index is made of, from its blocks alone.
//!
//! Input: block files. Output: [`Units`] of the blocks below a height, and of all. Cost: one pass, with a number for
//! every script and every coin in memory.

use crate::error::LabError;
use lydian_chains::chain_files::ChainFiles;
use lydian_chains::walk::walk;
use lydian_hash::sha256;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Units {
    pub blocks: u64,
    pub transactions: u64,
    /// Outputs that can be spent; not that of the genesis block.
    pub outputs: u64,
    /// Without coinbases.
    pub inputs: u64,
    /// Distinct scripts of these outputs.
    pub scripts: u64,
    /// Pairs of a script and a transaction that pays to it or spends from it.
    pub pairs: u64,
}

impl Units {
    /// Outputs and inputs.
    pub fn events(&self) -> u64 {
        self.outputs + self.inputs
    }
}

/// The units of two parts of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub below: Units,
    pub all: Units,
    pub sealed_transactions: u64,
}

/// Counts the blocks below `height`, all blocks, and the transactions of those below `sealed`.
pub fn units(chain: &ChainFiles, height: u32, sealed: u32) -> Result<Counted, LabError> {
    let (mut counted, mut units) = (Counted::default(), Units::default());
    let (mut scripts, mut coins) = (HashMap::new(), HashMap::new());
    walk(chain, &mut |block| {
        if block.height == height {
            counted.below = units;
        }
        if block.height == sealed {
            counted.sealed_transactions = units.transactions;
        }
        units.blocks += 1;
        for (index, tx) in block.txs().enumerate() {
            units.transactions += 1;
            let mut touched = HashSet::new();
            for input in tx.inputs().filter(|_| index > 0) {
                units.inputs += 1;
                touched.extend(coins.remove(&input.prevout));
            }
            for (outpoint, output) in block.coins(&tx) {
                units.outputs += 1;
                let next = scripts.len();
                let script: usize = *scripts.entry(sha256(output.script_pubkey)).or_insert(next);
                touched.insert(script);
                coins.insert(outpoint, script);
            }
            units.pairs += touched.len() as u64;
        }
        units.scripts = scripts.len() as u64;
        Ok(())
    })?;
    counted.all = units;
    if counted.below == Units::default() {
        counted.below = units;
    }
    if sealed > chain.facts.height {
        counted.sealed_transactions = units.transactions;
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_chains::plan::MixSettings;
    use lydian_chains::presets::mainnet_mix;

    #[test]
    fn units_are_those_of_the_generator() {
        let folder = std::env::temp_dir().join(format!("lydian-lab-units-{}", std::process::id()));
        let settings = MixSettings { blocks: 434, full: 1, seed: 1, reuse_per_mille: 0 };
        let stats = mainnet_mix::write(settings, 2, &folder).unwrap();
        let chain = ChainFiles::open(&folder, None).unwrap();
        let Counted { below, all, sealed_transactions } = units(&chain, 434, 256).unwrap();
        assert_eq!((all.blocks, all.transactions, all.inputs), (435, stats.transactions + 1, stats.inputs));
        // The witness commitments of coinbases cannot be spent.
        assert!(all.outputs < stats.outputs && all.outputs >= stats.outputs - stats.data_outputs - 3);
        assert!(all.scripts * 10 > all.outputs * 9, "each output has a key of its own: {all:?}");
        assert!(all.pairs <= all.events() && all.pairs * 10 > all.events() * 9, "{all:?}");
        let mut sealed = 0;
        walk(&chain, &mut |block| {
            sealed += if block.height < 256 { block.txs().count() as u64 } else { 0 };
            Ok(())
        })
        .unwrap();
        assert_eq!((below.blocks, below.inputs < all.inputs, sealed_transactions), (434, true, sealed));
        assert!(sealed >= 256 && sealed < all.transactions);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
