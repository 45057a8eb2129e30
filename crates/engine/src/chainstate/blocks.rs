//! Stored blocks, parsed: the block at a position, and a connected block with the coins it spent.
//!
//! Input: a position or a node of the header tree. Output: the block, or what is missing. Reads only. It must never
//! return the coins of a block whose bytes are not those that were connected.

use super::manager::ChainstateManager;
use crate::error::EngineError;
use lydian_chain::{BlockPosition, BlockStore, ChainError, HeaderId};
use lydian_consensus::{Coin, Deployment, Params, is_block_mutated};
use lydian_primitives::{Block, ParseError, ParseErrorKind, RawBlock};

/// The genesis block, which spends nothing.
pub(crate) fn genesis_block(params: &Params) -> Block {
    match params.genesis_block().parse() {
        Ok(block) => block,
        Err(error) => unreachable!("the genesis block is built to parse: {error}"),
    }
}

/// A block that was connected before, and the coins it spent.
pub(crate) fn read_connected(chainstate: &ChainstateManager, id: HeaderId) -> Result<(Block, Vec<Coin>), EngineError> {
    if id == HeaderId::GENESIS {
        return Ok((genesis_block(&chainstate.params), Vec::new()));
    }
    let node = chainstate.tree().node(id);
    let (hash, height) = (node.hash, node.height);
    let missing = |what| EngineError::MissingBlock { hash, height, what };
    let position = node.block.ok_or(missing("the data"))?;
    let block = read_block(chainstate, position)?.map_err(|_| missing("readable data"))?;
    // A flipped bit after the header would remove other coins from the store than the block added.
    if block.hash() != hash || is_block_mutated(&block, chainstate.params.is_active(Deployment::Segwit, height)) {
        return Err(missing("undamaged data"));
    }
    let undo = node.undo.ok_or(missing("the undo data"))?;
    let spent = chainstate.store.read_spent(undo, &block)?;
    Ok((block, spent))
}

/// The block at a position. Bytes after its last transaction, inside its record, are cut off, as in Core.
pub(crate) fn read_block(
    chainstate: &ChainstateManager,
    position: BlockPosition,
) -> Result<Result<Block, ParseError>, ChainError> {
    read_block_of(&chainstate.store, position)
}

/// Like [`read_block`], before there is a chainstate.
pub(crate) fn read_block_of(
    store: &BlockStore,
    position: BlockPosition,
) -> Result<Result<Block, ParseError>, ChainError> {
    match store.read_block(position)?.parse() {
        Err(ParseError { kind: ParseErrorKind::TrailingBytes { count }, .. }) => {
            let raw = store.read_block(position)?;
            let end = raw.as_bytes().len().saturating_sub(count);
            Ok(RawBlock::new(&raw.as_bytes()[..end]).parse())
        }
        parsed => Ok(parsed),
    }
}
