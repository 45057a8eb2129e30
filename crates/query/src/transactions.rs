//! [`Transactions`]: single transactions of the chain, by txid or by the output that they spend, with their blocks.
//!
//! It needs neither the mempool nor, for txids, tables of scripts. Cost: the bytes of the transaction, and of the one
//! that created the output.

use crate::error::QueryError;
use crate::source::{BlockPlace, Chain, Located, ScriptIndex};
use lydian_index::{OutputFate, Place, ScriptHash};
use lydian_primitives::{OutPoint, Transaction, Txid};
use std::sync::Arc;

/// The transactions of the chain.
#[derive(Clone, Debug)]
pub struct Transactions(Arc<dyn ScriptIndex>);

impl Transactions {
    pub fn new(index: Arc<dyn ScriptIndex>) -> Transactions {
        Transactions(index)
    }

    /// See [`ScriptIndex::wait_until_synced`].
    pub fn wait_until_synced(&self) -> Result<bool, QueryError> {
        self.0.wait_until_synced()
    }

    /// The transaction with a txid: the last one of the chain, if there are several.
    pub fn find(&self, txid: &Txid) -> Result<Option<Located>, QueryError> {
        self.0.locate(txid)
    }

    /// The transaction that spends an output. Needs tables of scripts.
    pub fn find_spender(&self, outpoint: &OutPoint) -> Result<Option<Located>, QueryError> {
        let Some(Located { number, tx, .. }) = self.0.locate(&outpoint.txid)? else { return Ok(None) };
        let Some(output) = tx.view().outputs().nth(outpoint.vout as usize) else { return Ok(None) };
        let fates = self.0.fates(&ScriptHash::of(output.script_pubkey), &[(number, outpoint.vout)])?;
        match fates.first().copied().flatten() {
            Some(OutputFate::Spent(by)) => Ok(spender(self.0.as_ref(), by, outpoint)?.map(|(found, _)| found)),
            Some(OutputFate::Unspent(_) | OutputFate::Overwritten) | None => Ok(None),
        }
    }
}

/// The transaction with a number, and its input that spends an output. `None` if it does not spend it: after a
/// reorganisation the number may be that of another transaction.
pub(crate) fn spender(
    index: &dyn ScriptIndex,
    number: u32,
    outpoint: &OutPoint,
) -> Result<Option<(Located, u32)>, QueryError> {
    let found = index.located(&[number])?.pop().flatten();
    Ok(found.and_then(|found| input_of(&found.tx, outpoint).map(|input| (found, input))))
}

/// The input of a transaction that spends an output.
pub(crate) fn input_of(tx: &Transaction, outpoint: &OutPoint) -> Option<u32> {
    let position = tx.view().inputs().position(|input| input.prevout == *outpoint);
    position.and_then(|position| u32::try_from(position).ok())
}

/// The transaction at a place, with its block; `None` if there is none now.
pub(crate) fn read(chain: &dyn Chain, place: Place) -> Result<Option<(Transaction, BlockPlace)>, QueryError> {
    let Some(header) = chain.headers(place.height, 1)?.pop() else { return Ok(None) };
    let block = BlockPlace { height: place.height.0, hash: header.hash(), time: header.time };
    let tx = chain.transaction(place)?;
    // The bytes may be those of the block that replaced it meanwhile.
    let is_same = chain.hashes(place.height, 1)?.pop() == Some(block.hash);
    Ok(tx.filter(|_| is_same).map(|tx| (tx, block)))
}
