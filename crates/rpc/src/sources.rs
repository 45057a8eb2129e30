//! Where methods find transactions outside the chain: [`MempoolView`], and [`TransactionIndex`] for those inside it.
//!
//! Input: a txid. Output: the transaction. The rpc crate asks, the mempool and the index answer; without them, methods
//! return Core's errors for an empty mempool and a missing `-txindex`.

use lydian_primitives::{BlockHash, Transaction, Txid};
use std::fmt;
use std::sync::Arc;

/// The transactions of the mempool.
pub trait MempoolView: fmt::Debug + Send + Sync {
    /// The transaction, if the mempool contains it. Must not wait for validation.
    fn transaction(&self, txid: &Txid) -> Option<Arc<Transaction>>;
}

/// The transactions of the chain by txid: Core's `-txindex`.
pub trait TransactionIndex: fmt::Debug + Send + Sync {
    /// Waits until the index contains the blocks connected so far. Returns false if it is still being built: Core's
    /// `BlockUntilSyncedToCurrentChain`.
    fn wait_until_synced(&self) -> bool;

    /// The transaction, and the hash of the block that contains it: Core's `FindTx`.
    fn find(&self, txid: &Txid) -> Option<(Transaction, BlockHash)>;
}
