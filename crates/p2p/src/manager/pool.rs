//! What the manager asks of transactions outside the chain.
//!
//! Input: ids, compact blocks. Output: transactions of the mempool's last snapshot, blocks put together from them.
//! Invariant: nothing here waits for the mempool. Cost: a snapshot is the copy of a pointer; a compact block costs a
//! short id for each transaction of the mempool, and copies only those that are in the block.

use super::transactions::ExtraTxs;
use crate::txs::{GenTxid, PoolView, RelayPool, RelayedTx};
use lydian_mempool::Mempool;
use lydian_mempool::pool::{Entry, Member, Snapshot};
use lydian_primitives::{Transaction, Wtxid};
use lydian_wire::{CompactBlock, CompactError, PartialBlock};
use std::sync::Arc;

/// The transactions outside the chain.
#[derive(Clone, Debug)]
pub(super) struct TransactionPool {
    mempool: Arc<Mempool>,
    /// Transactions that are not in the mempool, but may be in a block.
    pub(super) extra: ExtraTxs,
}

impl TransactionPool {
    pub(super) fn new(mempool: Arc<Mempool>) -> TransactionPool {
        let count_max = usize::try_from(mempool.settings().extra_txs_max).unwrap_or(usize::MAX);
        TransactionPool { mempool, extra: ExtraTxs::new(count_max) }
    }

    /// Places the transactions that are here in a compact block.
    pub(super) fn place(&self, compact: &CompactBlock) -> Result<PartialBlock, CompactError> {
        let view = View::of(&self.mempool);
        let members = view.0.members().map(|member| (*member.wtxid(), AtHand::Pool(member.entry())));
        let extra = self.extra.iter().map(|(wtxid, bytes)| (wtxid, AtHand::Extra(bytes)));
        PartialBlock::new(compact, members.chain(extra))
    }

    /// Returns the number of transactions in the mempool and their usage of memory.
    pub(super) fn size(&self) -> (usize, u64) {
        let snapshot = self.mempool.snapshot();
        (snapshot.len(), snapshot.info().usage)
    }
}

/// A transaction that may be in a compact block. Its bytes are looked at only if it is.
#[derive(Debug)]
enum AtHand<'a> {
    Pool(&'a Entry),
    Extra(&'a [u8]),
}

impl AsRef<[u8]> for AtHand<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            AtHand::Pool(entry) => entry.tx().as_bytes(),
            AtHand::Extra(bytes) => bytes,
        }
    }
}

/// The mempool as it was at one moment.
#[derive(Debug)]
pub(super) struct View(Arc<Snapshot>);

impl View {
    pub(super) fn of(mempool: &Mempool) -> View {
        View(mempool.snapshot())
    }

    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.0
    }

    fn entry(&self, gtxid: &GenTxid) -> Option<&Arc<Entry>> {
        match gtxid {
            GenTxid::Txid(txid) => self.0.get(txid).map(Member::entry),
            GenTxid::Wtxid(wtxid) => self.0.get_by_wtxid(wtxid).map(Member::entry),
        }
    }
}

impl PoolView for View {
    fn has(&self, gtxid: &GenTxid) -> bool {
        self.entry(gtxid).is_some()
    }
}

impl RelayPool for View {
    fn relayed(&self, wtxid: &Wtxid) -> Option<RelayedTx> {
        self.0.get_by_wtxid(wtxid).map(relayed)
    }

    fn all(&self) -> Vec<(Wtxid, RelayedTx)> {
        self.0.in_mining_order().into_iter().map(|member| (*member.wtxid(), relayed(member))).collect()
    }

    fn sequence(&self) -> u64 {
        self.0.info().sequence
    }

    fn before(&self, gtxid: &GenTxid, sequence: u64) -> Option<Arc<Transaction>> {
        self.entry(gtxid).filter(|entry| entry.sequence() < sequence).map(|entry| Arc::clone(entry.tx()))
    }
}

fn relayed(member: &Member) -> RelayedTx {
    let entry = member.entry();
    let vsize = u64::try_from(entry.vsize()).unwrap_or(0);
    RelayedTx { txid: entry.txid(), fee: entry.fee(), vsize, rank: member.rank() }
}
