//! The transactions of the chain for RPC: [`Transactions`] of the crate `query`, as Core's indexes.

use lydian_engine::Engine;
use lydian_index::TxIndexReader;
use lydian_primitives::{BlockHash, OutPoint, Transaction, Txid};
use lydian_query::{Chain, Located, NodeChain, NodeIndex, QueryError, Transactions};
use lydian_rpc::{SpenderIndex, TransactionIndex};
use std::sync::Arc;

/// One of the indexes, which has the tables of both.
pub(super) fn source(reader: &TxIndexReader, name: &'static str, engine: &Arc<Engine>) -> Arc<Source> {
    let chain: Arc<dyn Chain> = Arc::new(NodeChain::new(engine));
    let index = NodeIndex::new(reader.clone(), chain, engine).named(name);
    Arc::new(Source(Transactions::new(Arc::new(index))))
}

#[derive(Debug)]
pub(super) struct Source(Transactions);

impl TransactionIndex for Source {
    fn wait_until_synced(&self) -> Result<bool, String> {
        self.0.wait_until_synced().map_err(|error| error.to_string())
    }

    fn find(&self, txid: &Txid) -> Result<Option<(Transaction, BlockHash)>, String> {
        answer(self.0.find(txid))
    }
}

impl SpenderIndex for Source {
    fn wait_until_synced(&self) -> Result<bool, String> {
        self.0.wait_until_synced().map_err(|error| error.to_string())
    }

    fn find_spender(&self, output: &OutPoint) -> Result<Option<(Transaction, BlockHash)>, String> {
        answer(self.0.find_spender(output))
    }
}

/// The transaction of the genesis block is never found, as with Core's index (`TxIndex::CustomAppend`): its outputs
/// cannot be spent.
fn answer(found: Result<Option<Located>, QueryError>) -> Result<Option<(Transaction, BlockHash)>, String> {
    match found {
        Ok(found) => Ok(found.filter(|found| found.block.height > 0).map(|found| (found.tx, found.block.hash))),
        Err(QueryError::Stopping) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
