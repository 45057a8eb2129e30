//! Where methods find transactions of the chain: [`TransactionIndex`] and [`SpenderIndex`].
//!
//! Input: a txid, or an output. Output: the transaction. The rpc crate asks, the index answers; without it, methods
//! return Core's error for a missing `-txindex` or `-txospenderindex`.

use lydian_primitives::{BlockHash, OutPoint, Transaction, Txid};
use std::fmt;

/// The transactions of the chain by txid: Core's `-txindex`.
pub trait TransactionIndex: fmt::Debug + Send + Sync {
    /// Waits until the index contains the blocks connected so far. Returns false if it is still being built: Core's
    /// `BlockUntilSyncedToCurrentChain`.
    ///
    /// # Errors
    ///
    /// A sentence that names the index, if it failed and gets no more blocks. What it has can still be found.
    fn wait_until_synced(&self) -> Result<bool, String>;

    /// The transaction, and the hash of the block that contains it: Core's `FindTx`.
    ///
    /// # Errors
    ///
    /// A sentence that names the file which cannot be read.
    fn find(&self, txid: &Txid) -> Result<Option<(Transaction, BlockHash)>, String>;
}

/// The transactions of the chain by the outputs that they spend: Core's `-txospenderindex`.
pub trait SpenderIndex: fmt::Debug + Send + Sync {
    /// Like [`TransactionIndex::wait_until_synced`].
    fn wait_until_synced(&self) -> Result<bool, String>;

    /// The transaction that spends an output, and the hash of the block that contains it: Core's `FindSpender`.
    ///
    /// # Errors
    ///
    /// A sentence that names the file which cannot be read.
    fn find_spender(&self, output: &OutPoint) -> Result<Option<(Transaction, BlockHash)>, String>;
}
