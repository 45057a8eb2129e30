//! `/rest/tx/`: a transaction of the mempool or, with `-txindex`, of the chain.

use super::reply::{Made, Refused};
use super::request::{Request, hash_of};
use crate::output::IndexedTransaction;
use crate::result::Answer;
use lydian_primitives::{BlockHash, Transaction, Txid};

/// About the size of Core's JSON per byte of a transaction.
const TEXT_PER_BYTE: usize = 8;

/// Core's `rest_tx`.
pub(super) fn transaction(request: &Request<'_>) -> Result<Made, Refused> {
    let engine = request.engine()?;
    let txid: Txid = hash_of(request.path)?;
    let (tx, block) = find(request, &txid)?.ok_or_else(|| Refused::missing(format!("{} not found", request.path)))?;
    request.reply(
        || tx.as_bytes().to_vec(),
        |out| {
            request.expect_bytes(tx.as_bytes().len() * TEXT_PER_BYTE)?;
            IndexedTransaction::new(tx.view(), block, engine.params().chain).write(out);
            Ok(())
        },
    )
}

/// Core's `GetTransaction`: looks in the mempool, then in the index.
fn find(request: &Request<'_>, txid: &Txid) -> Result<Option<(Transaction, Option<BlockHash>)>, Refused> {
    let index = request.context.indexes().transactions.as_ref();
    let synced = index.map(|index| index.wait_until_synced()).transpose();
    if let Some(tx) = request.context.mempool_transaction(txid) {
        return Ok(Some((Transaction::clone(&tx), None)));
    }
    let found = index.map(|index| index.find(txid)).transpose().map_err(Refused::unreadable)?;
    if let Some((tx, block)) = found.flatten() {
        return Ok(Some((tx, Some(block))));
    }
    // An index that failed has no block above.
    synced.map_err(Refused::unreadable)?;
    Ok(None)
}
