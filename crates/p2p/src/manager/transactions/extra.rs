//! Transactions that are kept besides the mempool to put compact blocks together: Core's `vExtraTxnForCompact`.
//!
//! Input: rejected and replaced transactions. Output: the last of them. Memory: at most `-blockreconstructionextratxn`
//! transactions; a rejected one that uses [`EXTRA_TX_USAGE_MAX`] or more is not kept. Cost: none to speak of.

use crate::limits::EXTRA_TX_USAGE_MAX;
use lydian_mempool::pool::dynamic_usage;
use lydian_primitives::{Transaction, Wtxid};
use std::sync::Arc;

/// A ring of transactions.
#[derive(Clone, Debug, Default)]
pub(in crate::manager) struct ExtraTxs {
    txs: Vec<(Wtxid, Arc<Transaction>)>,
    /// The place of the next one, once all places are taken.
    next: usize,
    count_max: usize,
}

impl ExtraTxs {
    /// A ring with this number of places.
    pub(in crate::manager) fn new(count_max: usize) -> ExtraTxs {
        ExtraTxs { count_max, ..ExtraTxs::default() }
    }

    /// Keeps a transaction that was replaced, in place of the oldest if all places are taken.
    pub(in crate::manager) fn add(&mut self, tx: &Arc<Transaction>) {
        if self.count_max == 0 {
            return;
        }
        let item = (tx.view().wtxid(), Arc::clone(tx));
        match self.txs.get_mut(self.next) {
            Some(place) => *place = item,
            None => self.txs.push(item),
        }
        self.next = (self.next + 1) % self.count_max;
    }

    /// Keeps a transaction that was rejected, unless it is large.
    pub(in crate::manager) fn add_rejected(&mut self, tx: &Arc<Transaction>) {
        if dynamic_usage(tx.view()) < EXTRA_TX_USAGE_MAX {
            self.add(tx);
        }
    }

    pub(in crate::manager) fn iter(&self) -> impl Iterator<Item = (Wtxid, &[u8])> {
        self.txs.iter().map(|(wtxid, tx)| (*wtxid, tx.as_bytes()))
    }

    pub(in crate::manager) fn len(&self) -> usize {
        self.txs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::build::{MutInput, MutOutput, MutTx};
    use lydian_primitives::{Amount, OutPoint};

    fn tx(salt: u32, script_size: usize) -> Arc<Transaction> {
        let input = MutInput { prevout: OutPoint::NULL, script_sig: Vec::new(), sequence: salt, witness: Vec::new() };
        let output = MutOutput { value: Amount(1), script_pubkey: vec![0; script_size] };
        let tx = MutTx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 };
        Arc::new(tx.to_transaction().unwrap())
    }

    fn wtxids(extra: &ExtraTxs) -> Vec<Wtxid> {
        extra.iter().map(|(wtxid, _)| wtxid).collect()
    }

    #[test]
    fn the_last_ones_are_kept() {
        let txs: Vec<_> = (0..5).map(|salt| tx(salt, 10)).collect();
        let ids: Vec<_> = txs.iter().map(|tx| tx.view().wtxid()).collect();
        let mut extra = ExtraTxs::new(3);
        txs[..2].iter().for_each(|tx| extra.add(tx));
        assert_eq!(wtxids(&extra), ids[..2]);
        txs[2..].iter().for_each(|tx| extra.add_rejected(tx));
        assert_eq!(wtxids(&extra), [ids[3], ids[4], ids[2]]);
        let mut none = ExtraTxs::new(0);
        none.add(&txs[0]);
        assert_eq!(none.len(), 0);
    }

    /// limit: EXTRA_TX_USAGE_MAX at
    /// limit: EXTRA_TX_USAGE_MAX above
    #[test]
    fn large_rejected_transactions_are_not_kept() {
        let usage = |size: usize| dynamic_usage(tx(0, size).view());
        let largest = (90_000..110_000).filter(|size| usage(*size) < EXTRA_TX_USAGE_MAX).max().unwrap();
        let mut extra = ExtraTxs::new(9);
        extra.add_rejected(&tx(0, largest));
        assert_eq!(extra.len(), 1);
        assert!(usage(largest + 1) >= EXTRA_TX_USAGE_MAX);
        extra.add_rejected(&tx(0, largest + 1));
        assert_eq!(extra.len(), 1);
        // One that was replaced is kept whatever its size, as in Core.
        extra.add(&tx(0, largest + 1));
        assert_eq!(extra.len(), 2);
    }
}
