//! Blocks that nodes have left for another branch, and the index has not: a commit row may come seconds after the
//! reorganisation, as while a node of the store is paused.
//!
//! Input: hashes, or places with the hashes of their blocks. Output: what nodes still have of these blocks, which they
//! are asked for by hash. `None` if a node does not have one of them. Cost: a whole block for each transaction or list
//! of txids, or a question for each header. Must never: hold more than one block at a time, or ask for more than
//! [`BLOCKS_MAX`].

use crate::client::nodes::Nodes;
use crate::message::{Answer, Question};
use lydian_index::Place;
use lydian_primitives::{Block, BlockHash, Header, Height, RawBlock, Transaction};
use lydian_query::QueryError;

/// Blocks that are asked for in one answer: a longer reorganisation is waited for.
const BLOCKS_MAX: usize = 100;

/// The block of an answer, if it is the one that was asked for.
pub(super) fn take_block(answer: Answer, hash: &BlockHash) -> Option<Block> {
    match answer {
        Answer::Block(Some(bytes)) => RawBlock::new(bytes).parse().ok().filter(|block| block.hash() == *hash),
        _ => None,
    }
}

pub(super) fn block(nodes: &Nodes, hash: &BlockHash) -> Result<Option<Block>, QueryError> {
    nodes.ask(&Question::Block(*hash), |answer| take_block(answer, hash))
}

pub(super) fn header(nodes: &Nodes, hash: &BlockHash) -> Result<Option<Header>, QueryError> {
    let take = |answer: Answer| match answer {
        Answer::BlockInfo(Some(info)) if info.header.hash() == *hash => Some(info.header),
        _ => None,
    };
    nodes.ask(&Question::BlockInfo(*hash), take)
}

/// The headers of these blocks, which follow on each other; the first ones may be of the nodes' chain.
pub(super) fn headers(nodes: &Nodes, from: u32, hashes: &[BlockHash]) -> Result<Option<Vec<Header>>, QueryError> {
    let count = u32::try_from(hashes.len()).unwrap_or(u32::MAX);
    let take = |answer: Answer| match answer {
        Answer::Headers(mut headers) => {
            let same = headers.iter().zip(hashes).take_while(|(header, hash)| header.hash() == **hash).count();
            headers.truncate(same);
            Some(headers)
        }
        _ => None,
    };
    let same = nodes.ask(&Question::Headers { from: Height(from), count }, take)?;
    let Some(mut all) = same.filter(|same| hashes.len() - same.len() <= BLOCKS_MAX) else { return Ok(None) };
    for hash in hashes.iter().skip(all.len()) {
        match header(nodes, hash)? {
            Some(header) => all.push(header),
            None => return Ok(None),
        }
    }
    Ok(Some(all))
}

/// The first of the transactions, at least one.
pub(super) fn transactions(
    nodes: &Nodes,
    places: &[(Place, BlockHash)],
) -> Result<Option<Vec<Transaction>>, QueryError> {
    let take = |answer: Answer| match answer {
        Answer::Transactions(found) if !found.is_empty() && found.len() <= places.len() => Some(found),
        _ => None,
    };
    let Some(found) = nodes.ask(&Question::Transactions(places.to_vec()), take)? else { return Ok(None) };
    let mut all = Vec::with_capacity(found.len());
    let mut last: Option<Block> = None;
    let mut asked = 0;
    for (bytes, (place, hash)) in found.into_iter().zip(places) {
        if bytes.is_none() && last.as_ref().is_none_or(|last| last.hash() != *hash) {
            asked += 1;
            last = if asked <= BLOCKS_MAX { block(nodes, hash)? } else { None };
        }
        let bytes = bytes.or_else(|| cut(last.as_ref()?, place));
        match bytes.and_then(|bytes| Transaction::parse(bytes).ok()) {
            Some(tx) => all.push(tx),
            None => return Ok(None),
        }
    }
    Ok(Some(all))
}

/// The bytes of a transaction.
fn cut(block: &Block, place: &Place) -> Option<Vec<u8>> {
    let start = usize::try_from(place.offset).ok()?;
    let end = start.checked_add(usize::try_from(place.size).ok()?)?;
    block.as_bytes().get(start..end).map(<[u8]>::to_vec)
}
