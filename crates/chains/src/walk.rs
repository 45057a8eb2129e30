//! One pass over the blocks of a chain in order, for code that computes answers from nothing but the blocks.
//!
//! Input: a chain whose files contain its blocks in order, as the lab writes them. Output: each block with its height
//! and the number of its first transaction. Invariant: every block extends the one before it, otherwise the walk ends
//! with an error. Must never: check a rule.

use crate::chain_files::ChainFiles;
use crate::error::ChainsError;
use lydian_primitives::{Block, BlockHash, OutPoint, Output, RawBlock, Tx};

/// `MAX_SCRIPT_SIZE`: an output with a longer script can never be spent; nor can one that begins with OP_RETURN.
const SCRIPT_SIZE_MAX: usize = 10_000;
const OP_RETURN: u8 = 0x6a;

/// A block with its position in the chain.
#[derive(Debug)]
pub struct Placed {
    pub height: u32,
    /// Number of its coinbase transaction in the chain; that of the genesis block is 0.
    pub first_tx: usize,
    pub block: Block,
}

impl Placed {
    /// Its transactions.
    pub fn txs(&self) -> impl ExactSizeIterator<Item = Tx<'_>> {
        self.block.txs()
    }

    /// The coins that a transaction of this block creates. The output of the genesis block is not a coin.
    pub fn coins<'a>(&self, tx: &Tx<'a>) -> impl Iterator<Item = (OutPoint, Output<'a>)> {
        let txid = tx.txid();
        let is_genesis = self.height == 0;
        let all = (0..).zip(tx.outputs()).map(move |(vout, output)| (OutPoint { txid, vout }, output));
        all.filter(move |(_, output)| {
            let script = output.script_pubkey;
            !is_genesis && script.first() != Some(&OP_RETURN) && script.len() <= SCRIPT_SIZE_MAX
        })
    }
}

/// Passes every block to `visit`, the genesis block first.
pub fn walk(chain: &ChainFiles, visit: &mut dyn FnMut(&Placed) -> Result<(), ChainsError>) -> Result<(), ChainsError> {
    let (mut height, mut first_tx, mut prev) = (0, 0, BlockHash::ZERO);
    chain.each_block(&mut |bytes| {
        let foreign = |what: String| ChainsError::Usage(format!("the block for height {height}: {what}"));
        let block = RawBlock::new(bytes).parse().map_err(|error| foreign(error.to_string()))?;
        if block.header().prev_block != prev {
            return Err(foreign("it does not extend the block before it in the files".into()));
        }
        let placed = Placed { height, first_tx, block };
        visit(&placed)?;
        prev = placed.block.hash();
        first_tx += placed.block.tx_count();
        height += 1;
        Ok(())
    })
}
