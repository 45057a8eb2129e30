//! Where methods find transactions of the chain: [`TransactionIndex`].
//!
//! Input: a txid. Output: the transaction. The rpc crate asks, the index answers; without it, methods return Core's
//! error for a missing `-txindex`.

use lydian_primitives::{BlockHash, Transaction, Txid};
use std::fmt;

/// The transactions of the chain by txid: Core's `-txindex`.
pub trait TransactionIndex: fmt::Debug + Send + Sync {
    /// Waits until the index contains the blocks connected so far. Returns false if it is still being built: Core's
    /// `BlockUntilSyncedToCurrentChain`.
    fn wait_until_synced(&self) -> bool;

    /// The transaction, and the hash of the block that contains it: Core's `FindTx`.
    ///
    /// # Errors
    ///
    /// A sentence that names the file which cannot be read.
    fn find(&self, txid: &Txid) -> Result<Option<(Transaction, BlockHash)>, String>;
}
