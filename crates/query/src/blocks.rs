//! What explorers ask about blocks: sizes, transactions with the outputs that they spend.
//!
//! Cost: a block is read as a whole; what it spends is in its undo data, if the node has them.

use crate::details::{Detailed, Found};
use crate::error::QueryError;
use crate::query::Query;
use crate::sizes::BlockSizes;
use crate::source::{BlockPlace, SpentOutput};
use lydian_primitives::{Block, BlockHash, Transaction};
use std::ops::Range;
use std::sync::Arc;

/// Transactions of a block.
#[derive(Clone, Debug)]
pub struct BlockPage {
    pub transactions: Vec<Detailed>,
    /// How many the block has.
    pub total: usize,
    /// `None`: the block is not on the active chain.
    pub place: Option<BlockPlace>,
}

impl Query {
    /// How large a block is, on the active chain or beside it; `None` if the node does not have it.
    pub fn block_sizes(&self, hash: &BlockHash) -> Result<Option<BlockSizes>, QueryError> {
        if let Some(sizes) = self.kept.sizes.get(hash) {
            return Ok(Some(sizes));
        }
        let sizes = self.chain().block(hash)?.map(|block| BlockSizes::from(&block));
        if let Some(sizes) = sizes {
            self.kept.sizes.put(hash, sizes);
        }
        Ok(sizes)
    }

    /// The transactions of a block at these positions, as far as it has them, with what they spend; `None` if the node
    /// does not have the block.
    pub fn block_page(&self, hash: &BlockHash, positions: Range<usize>) -> Result<Option<BlockPage>, QueryError> {
        let Some(info) = self.chain().block_info(hash)? else { return Ok(None) };
        let Some(block) = self.chain().block(hash)? else { return Ok(None) };
        let place = BlockPlace { height: info.height, hash: info.hash, time: info.header.time };
        let place = info.is_active.then_some(place);
        let total = block.tx_count();
        let positions = positions.start.min(total)..positions.end.min(total);
        let parse = |at: usize| Transaction::parse(block.tx(at).bytes()).map(|tx| Found::new(Arc::new(tx), place));
        let found: Result<Vec<Found>, _> = positions.clone().map(parse).collect();
        let found = found.map_err(|error| QueryError::Failed(format!("block {hash}: {error}")))?;
        let transactions = match self.spent_in(hash, &block, positions)? {
            Some(spent) => {
                let pairs = found.into_iter().zip(spent);
                pairs.map(|(Found { tx, block, .. }, spent)| Detailed { tx, block, spent }).collect()
            }
            None => self.with_spent(found)?,
        };
        Ok(Some(BlockPage { transactions, total, place }))
    }

    /// What the transactions of a block at these positions spend; `None` if the node has no undo data of the block.
    fn spent_in(
        &self,
        hash: &BlockHash,
        block: &Block,
        positions: Range<usize>,
    ) -> Result<Option<Vec<Vec<Option<SpentOutput>>>>, QueryError> {
        let Some(spent) = self.chain().spent(hash, block)? else { return Ok(None) };
        let mut spent = spent.into_iter();
        let mut all = Vec::with_capacity(positions.len());
        for (at, tx) in block.txs().enumerate().take(positions.end) {
            let inputs = tx.input_count();
            let own = match at {
                0 => vec![None; inputs],
                _ => spent.by_ref().take(inputs).map(Some).collect(),
            };
            if positions.contains(&at) {
                all.push(own);
            }
        }
        let is_whole = block
            .txs()
            .take(positions.end)
            .skip(positions.start)
            .zip(&all)
            .all(|(tx, own)| tx.input_count() == own.len());
        Ok(Some(all).filter(|_| is_whole))
    }
}
