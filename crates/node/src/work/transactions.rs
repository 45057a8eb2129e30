//! The transactions of the chain for RPC, from the tables of the index and the block files.
//!
//! Input: a txid, or an output. Output: the transaction, or the one that spends the output, and its block, read by its
//! bytes and never by its block; a place whose bytes have another txid is not it, since the index has short keys.

use lydian_engine::{Engine, Standing};
use lydian_index::{OutputFate, Place, ScriptHash, TxIndexReader};
use lydian_primitives::{BlockHash, Height, OutPoint, Transaction, Txid};
use lydian_rpc::{SpenderIndex, TransactionIndex};
use std::sync::{Arc, Weak};

/// Both indexes, from the same tables.
pub(super) fn source(reader: TxIndexReader, engine: &Arc<Engine>) -> Arc<Source> {
    Arc::new(Source { reader, engine: Arc::downgrade(engine) })
}

#[derive(Debug)]
pub(super) struct Source {
    reader: TxIndexReader,
    /// Weak, since the engine's observer holds what has this.
    engine: Weak<Engine>,
}

impl Source {
    fn is_synced(&self) -> bool {
        let Some(engine) = self.engine.upgrade() else { return false };
        let name = self.reader.name();
        engine.wait_for_follower(name, engine.settled_tip().height);
        let mut followers = engine.followers().into_iter();
        followers.any(|follower| follower.name == name && follower.standing == Standing::InStep)
    }

    /// A transaction of the chain, with its number.
    fn find_numbered(&self, engine: &Engine, txid: &Txid) -> Result<Option<(u32, Found)>, String> {
        for (number, place) in self.reader.candidates(txid).map_err(|error| error.to_string())? {
            let found = read(engine, place)?.filter(|(tx, _)| tx.view().txid() == *txid);
            if let Some(found) = found {
                return Ok(Some((number, found)));
            }
        }
        Ok(None)
    }

    /// The number of the transaction that spends an output, whose transaction has a number, too.
    fn spender_of(&self, number: u32, vout: u32, script: &[u8]) -> Result<Option<u32>, String> {
        let outputs = self.reader.outputs(&ScriptHash::of(script)).map_err(|error| error.to_string())?.outputs;
        let place = outputs.binary_search_by_key(&(number, vout), |output| (output.number, output.vout));
        Ok(match place.ok().and_then(|place| outputs.get(place)).map(|output| output.fate) {
            Some(OutputFate::Spent(spender)) => Some(spender),
            Some(OutputFate::Unspent(_) | OutputFate::Overwritten) | None => None,
        })
    }
}

impl TransactionIndex for Source {
    fn wait_until_synced(&self) -> bool {
        self.is_synced()
    }

    fn find(&self, txid: &Txid) -> Result<Option<(Transaction, BlockHash)>, String> {
        let Some(engine) = self.engine.upgrade() else { return Ok(None) };
        Ok(self.find_numbered(&engine, txid)?.map(|(_, found)| found))
    }
}

impl SpenderIndex for Source {
    fn wait_until_synced(&self) -> bool {
        self.is_synced()
    }

    fn find_spender(&self, output: &OutPoint) -> Result<Option<(Transaction, BlockHash)>, String> {
        let Some(engine) = self.engine.upgrade() else { return Ok(None) };
        let Some((number, (tx, _))) = self.find_numbered(&engine, &output.txid)? else { return Ok(None) };
        let Some(created) = tx.view().outputs().nth(output.vout as usize) else { return Ok(None) };
        let Some(spender) = self.spender_of(number, output.vout, created.script_pubkey)? else { return Ok(None) };
        let Some(place) = self.reader.place(spender).map_err(|error| error.to_string())? else { return Ok(None) };
        // After a reorganisation the number may be that of another transaction.
        Ok(read(&engine, place)?.filter(|(tx, _)| tx.view().inputs().any(|input| input.prevout == *output)))
    }
}

type Found = (Transaction, BlockHash);

/// The transaction at a place. That of the genesis block is never found, as with Core's index
/// (`TxIndex::CustomAppend`): its outputs cannot be spent.
fn read(engine: &Engine, place: Place) -> Result<Option<Found>, String> {
    if place.height == Height(0) {
        return Ok(None);
    }
    let Some(info) = engine.header_info_at(place.height) else { return Ok(None) };
    let bytes = engine.block_part(&info, place.offset, place.size).map_err(|error| error.to_string())?;
    let tx = bytes.and_then(|bytes| Transaction::parse(bytes).ok());
    Ok(tx.map(|tx| (tx, info.node.hash)))
}
