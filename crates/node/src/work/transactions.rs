//! The transactions of the chain for RPC, from the index of `-txindex` and the block files.
//!
//! Input: a txid. Output: the transaction and its block, read by its bytes and never by its block; a place whose bytes
//! have another txid is not it, since the index has short keys.

use lydian_engine::{Engine, Standing};
use lydian_index::{Place, TXINDEX_NAME, TxIndexReader};
use lydian_primitives::{BlockHash, Height, Transaction, Txid};
use lydian_rpc::TransactionIndex;
use std::sync::{Arc, Weak};

pub(super) fn source(reader: TxIndexReader, engine: &Arc<Engine>) -> Arc<dyn TransactionIndex> {
    Arc::new(Source { reader, engine: Arc::downgrade(engine) })
}

#[derive(Debug)]
struct Source {
    reader: TxIndexReader,
    /// Weak, since the engine's observer holds what has this.
    engine: Weak<Engine>,
}

impl TransactionIndex for Source {
    fn wait_until_synced(&self) -> bool {
        let Some(engine) = self.engine.upgrade() else { return false };
        engine.wait_for_follower(TXINDEX_NAME, engine.settled_tip().height);
        let mut followers = engine.followers().into_iter();
        followers.any(|follower| follower.name == TXINDEX_NAME && follower.standing == Standing::InStep)
    }

    fn find(&self, txid: &Txid) -> Result<Option<(Transaction, BlockHash)>, String> {
        let Some(engine) = self.engine.upgrade() else { return Ok(None) };
        for place in self.reader.candidates(txid).map_err(|error| error.to_string())? {
            if let Some(found) = read(&engine, place, txid)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// The transaction at a place, if it is the one that is looked for. That of the genesis block is never found, as with
/// Core's index (`TxIndex::CustomAppend`): its outputs cannot be spent.
fn read(engine: &Engine, place: Place, txid: &Txid) -> Result<Option<(Transaction, BlockHash)>, String> {
    if place.height == Height(0) {
        return Ok(None);
    }
    let Some(info) = engine.header_info_at(place.height) else { return Ok(None) };
    let bytes = engine.block_part(&info, place.offset, place.size).map_err(|error| error.to_string())?;
    let tx = bytes.and_then(|bytes| Transaction::parse(bytes).ok());
    Ok(tx.filter(|tx| tx.view().txid() == *txid).map(|tx| (tx, info.node.hash)))
}
