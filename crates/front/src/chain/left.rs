//! [`LeftBlocks`]: blocks that nodes have left for another branch, and the index has not. A commit row may come seconds
//! after a reorganisation, as while a node of the store is paused.
//!
//! Input: hashes, or places with the hashes of their blocks. Output: what nodes still have of these blocks, which they
//! are asked for by hash; `None` if no node has the block. Memory: [`KEPT_LEFT_MAX`] bytes of the last blocks. Cost: a
//! whole block once, then nothing.

use crate::client::nodes::Nodes;
use crate::limits::KEPT_LEFT_MAX;
use crate::message::{Answer, Question};
use crate::recent::Recent;
use crate::stored::is_whole;
use lydian_index::Place;
use lydian_primitives::{Block, BlockHash, Header, RawBlock, Transaction, Txid};
use lydian_query::QueryError;
use lydian_stdx::lock;
use std::sync::{Arc, Mutex};

/// The block of an answer, if it is the one that was asked for.
pub(super) fn take_block(answer: Answer, hash: &BlockHash) -> Option<Block> {
    match answer {
        Answer::Block(Some(bytes)) => RawBlock::new(bytes).parse().ok().filter(|block| is_whole(block, hash)),
        _ => None,
    }
}

#[derive(Debug)]
pub(super) struct LeftBlocks {
    nodes: Arc<Nodes>,
    kept: Mutex<Recent<BlockHash, Arc<Block>>>,
}

impl LeftBlocks {
    pub(super) fn new(nodes: Arc<Nodes>) -> LeftBlocks {
        LeftBlocks { nodes, kept: Mutex::new(Recent::new(KEPT_LEFT_MAX / 2)) }
    }

    fn block(&self, hash: &BlockHash) -> Result<Option<Arc<Block>>, QueryError> {
        if let Some(kept) = lock(&self.kept).get(hash) {
            return Ok(Some(kept));
        }
        let found = self.nodes.ask(&Question::Block(*hash), |answer| take_block(answer, hash))?;
        let Some(block) = found.map(Arc::new) else { return Ok(None) };
        lock(&self.kept).put(*hash, Arc::clone(&block), block.as_bytes().len());
        Ok(Some(block))
    }

    pub(super) fn header(&self, hash: &BlockHash) -> Result<Option<Header>, QueryError> {
        let take = |answer: Answer| match answer {
            Answer::BlockInfo(Some(info)) if info.header.hash() == *hash => Some(info.header),
            _ => None,
        };
        self.nodes.ask(&Question::BlockInfo(*hash), take)
    }

    pub(super) fn txids(&self, hash: &BlockHash) -> Result<Option<Vec<Txid>>, QueryError> {
        Ok(self.block(hash)?.map(|block| block.txs().map(|tx| tx.txid()).collect()))
    }

    /// The transactions at the first place, and at those behind it that are in the same block.
    pub(super) fn transactions(&self, places: &[(Place, BlockHash)]) -> Result<Option<Vec<Transaction>>, QueryError> {
        let Some((_, hash)) = places.first() else { return Ok(None) };
        let Some(block) = self.block(hash)? else { return Ok(None) };
        let of_block = places.iter().take_while(|(_, of)| of == hash);
        let all: Option<Vec<Transaction>> = of_block.map(|(place, _)| cut(&block, place)).collect();
        // The block is whole, so that the places are those of another one: the index has moved.
        all.map(Some).ok_or(QueryError::Moving)
    }
}

fn cut(block: &Block, place: &Place) -> Option<Transaction> {
    let start = usize::try_from(place.offset).ok()?;
    let end = start.checked_add(usize::try_from(place.size).ok()?)?;
    Transaction::parse(block.as_bytes().get(start..end)?.to_vec()).ok()
}
