//! Counts the pairs of script and transaction in a chain.
//!
//! It is the least that an index by script must store, and the divisor for the size of an index. Input: a chain.
//! Output: the count. A transaction that pays a script twice, or both spends from it and pays it, is one pair. Cost:
//! one pass over the blocks, 50 bytes per coin in memory. Scripts are distinguished by 64 bits of their hash.

use crate::error::LabError;
use lydian_chains::chain_files::ChainFiles;
use lydian_chains::walk::walk;
use lydian_primitives::OutPoint;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

pub fn postings(chain: &ChainFiles) -> Result<u64, LabError> {
    let mut coins: HashMap<OutPoint, u64> = HashMap::new();
    let mut count = 0_u64;
    walk(chain, &mut |block| {
        for (index, tx) in block.txs().enumerate() {
            let mut scripts: Vec<u64> =
                tx.inputs().skip(usize::from(index == 0)).filter_map(|input| coins.remove(&input.prevout)).collect();
            for (outpoint, output) in block.coins(&tx) {
                let mut hasher = DefaultHasher::new();
                output.script_pubkey.hash(&mut hasher);
                coins.insert(outpoint, hasher.finish());
                scripts.push(hasher.finish());
            }
            scripts.sort_unstable();
            scripts.dedup();
            count += scripts.len() as u64;
        }
        Ok(())
    })?;
    Ok(count)
}
