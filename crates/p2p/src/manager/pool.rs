//! What the manager asks of transactions outside the chain.
//!
//! Input: ids. Output: transactions. There is no mempool yet, so the pool answers nothing; a mempool replaces its
//! inside, and the callers stay. Cost: none.

use lydian_primitives::Wtxid;
use lydian_wire::Inv;

/// The transactions outside the chain: none, until there is a mempool.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TransactionPool;

impl TransactionPool {
    /// Returns whether the transaction is here.
    pub(super) fn have(self, _item: &Inv) -> bool {
        false
    }

    /// Returns the transactions that compact blocks are built from.
    pub(super) fn at_hand(self) -> impl Iterator<Item = (Wtxid, &'static [u8])> {
        std::iter::empty()
    }
}
