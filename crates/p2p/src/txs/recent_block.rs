//! The transactions of the most recent block, which every peer may request.
//!
//! Bitcoin Core's `m_most_recent_block_txs`. A peer that got the announcement of a transaction may request it after the
//! block that contains it was connected. Input: blocks. Output: transactions by txid or wtxid. Memory: one block, and
//! about 100 bytes for each of its transactions. Cost: logarithmic in the number of its transactions.

use super::GenTxid;
use lydian_primitives::{Block, Tx};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most recent block; none at first.
#[derive(Clone, Debug, Default)]
pub struct RecentBlock {
    block: Option<Arc<Block>>,
    indices: BTreeMap<GenTxid, usize>,
}

impl RecentBlock {
    pub fn new(block: Arc<Block>) -> RecentBlock {
        let ids =
            |(index, tx): (usize, Tx<'_>)| [(GenTxid::Txid(tx.txid()), index), (GenTxid::Wtxid(tx.wtxid()), index)];
        RecentBlock { indices: block.txs().enumerate().flat_map(ids).collect(), block: Some(block) }
    }

    /// Returns a transaction of the block.
    pub fn get(&self, gtxid: &GenTxid) -> Option<Tx<'_>> {
        let index = self.indices.get(gtxid)?;
        self.block.as_ref().map(|block| block.tx(*index))
    }
}
