//! [`Entry`]: a transaction in the pool, with what was found out when it was accepted. Core's `CTxMemPoolEntry`.

use super::usage;
use lydian_consensus::sequence::SequenceLocks;
use lydian_primitives::{Amount, BlockHash, Height, Transaction, Txid, Wtxid};
use std::sync::Arc;

/// An accepted transaction. Nothing of it changes; what does (its fee delta, its cluster) is kept beside it.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(crate) tx: Arc<Transaction>,
    /// The fee without any delta.
    pub(crate) fee: Amount,
    /// Cost of its signature operations, in weight units.
    pub(crate) sigops_cost: u32,
    /// Virtual size that its signature operations may have increased: Core's `GetTxSize`.
    pub(crate) vsize: i32,
    /// The weight that this is computed from: Core's `GetAdjustedWeight`.
    pub(crate) adjusted_weight: i32,
    /// Seconds since 1970 when it was accepted.
    pub(crate) time: i64,
    /// The height of the tip when it was accepted.
    pub(crate) height: Height,
    /// The pool's sequence number when it was accepted; 0 after a reorganisation.
    pub(crate) sequence: u64,
    /// Whether it spends an output of a coinbase.
    pub(crate) spends_coinbase: bool,
    pub(crate) locks: LockPoints,
    /// Core's usage of the transaction, in bytes.
    pub(crate) usage: u32,
}

/// The relative locks of a transaction and the chain for which they were computed: Core's `LockPoints`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockPoints {
    pub locks: SequenceLocks,
    /// The block of the highest coin in the chain, on which the locks depend; the genesis block without one.
    pub highest: (Height, BlockHash),
}

impl Entry {
    pub fn tx(&self) -> &Arc<Transaction> {
        &self.tx
    }

    pub fn txid(&self) -> Txid {
        self.tx.view().txid()
    }

    pub fn wtxid(&self) -> Wtxid {
        self.tx.view().wtxid()
    }

    pub fn fee(&self) -> Amount {
        self.fee
    }

    pub fn sigops_cost(&self) -> u32 {
        self.sigops_cost
    }

    pub fn vsize(&self) -> i32 {
        self.vsize
    }

    pub fn adjusted_weight(&self) -> i32 {
        self.adjusted_weight
    }

    pub fn time(&self) -> i64 {
        self.time
    }

    pub fn height(&self) -> Height {
        self.height
    }

    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    pub(crate) fn usage_of(tx: &Transaction) -> u32 {
        u32::try_from(usage::of_transaction(tx.view())).unwrap_or(u32::MAX)
    }

    /// An entry of a transaction with an output script of this many bytes.
    #[cfg(test)]
    pub(crate) fn with_script(bytes: usize) -> Entry {
        use lydian_primitives::OutPoint;
        use lydian_primitives::build::{MutInput, MutOutput, MutTx};
        let input = MutInput { prevout: OutPoint::NULL, script_sig: Vec::new(), sequence: 0, witness: Vec::new() };
        let output = MutOutput { value: Amount(1), script_pubkey: vec![0; bytes] };
        let tx = MutTx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 };
        let tx = tx.to_transaction().unwrap();
        let highest = (Height(0), BlockHash::ZERO);
        Entry {
            usage: Entry::usage_of(&tx),
            tx: Arc::new(tx),
            fee: Amount(0),
            sigops_cost: 0,
            vsize: 1,
            adjusted_weight: 4,
            time: 0,
            height: Height(0),
            sequence: 0,
            spends_coinbase: false,
            locks: LockPoints { locks: SequenceLocks::NONE, highest },
        }
    }
}
