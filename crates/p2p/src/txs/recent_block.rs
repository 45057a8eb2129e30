//! The transactions of the most recent block, which every peer may request.
//!
//! Bitcoin Core's `m_most_recent_block_txs`. A peer that got the announcement of a transaction may request it after the
//! block that contains it was connected. Input: blocks. Output: transactions by txid or wtxid. Memory: one block, and
//! about 100 bytes for each of its transactions. Cost: logarithmic in the number of its transactions.

use super::GenTxid;
use lydian_primitives::{Block, Tx};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The most recent block; none at first.
#[derive(Clone, Debug, Default)]
pub struct RecentBlock {
    block: Option<Arc<Block>>,
    /// Made by the first request, not while the block is on its way to other peers.
    indices: OnceLock<BTreeMap<GenTxid, usize>>,
}

impl RecentBlock {
    pub fn new(block: Arc<Block>) -> RecentBlock {
        RecentBlock { block: Some(block), indices: OnceLock::new() }
    }

    /// Returns a transaction of the block.
    pub fn get(&self, gtxid: &GenTxid) -> Option<Tx<'_>> {
        let block = self.block.as_ref()?;
        let ids =
            |(index, tx): (usize, Tx<'_>)| [(GenTxid::Txid(tx.txid()), index), (GenTxid::Wtxid(tx.wtxid()), index)];
        let indices = self.indices.get_or_init(|| block.txs().enumerate().flat_map(ids).collect());
        indices.get(gtxid).map(|index| block.tx(*index))
    }
}
