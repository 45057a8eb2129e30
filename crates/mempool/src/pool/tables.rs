//! [`Tables`]: the transactions of the pool by txid, by wtxid and by the outputs they spend. Cloned for readers.

use super::cluster::ClusterView;
use super::entry::Entry;
use super::shards::Shards;
use crate::graph::NodeId;
use lydian_primitives::{OutPoint, Txid, Wtxid};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// A transaction of the pool with what may change of it.
#[derive(Clone, Debug)]
pub struct Member {
    pub(crate) entry: Arc<Entry>,
    pub(crate) node: NodeId,
    /// The fee with what `prioritisetransaction` added to it, in satoshi.
    pub(crate) modified_fee: i64,
    /// Its cluster, and its position there.
    pub(crate) cluster: Arc<ClusterView>,
    pub(crate) position: u8,
}

impl Member {
    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// The fee by which a miner orders it, in satoshi: Core's `GetModifiedFee`.
    pub fn modified_fee(&self) -> i64 {
        self.modified_fee
    }

    pub fn cluster(&self) -> &Arc<ClusterView> {
        &self.cluster
    }

    /// Its place in the cluster's order.
    pub fn position(&self) -> usize {
        usize::from(self.position)
    }
}

/// An input of the pool.
#[derive(Clone, Debug)]
pub(crate) struct Spender {
    pub(crate) entry: Arc<Entry>,
    pub(crate) input: u32,
}

impl Spender {
    fn prevout(&self) -> OutPoint {
        self.entry.tx.view().input(self.input as usize).prevout
    }
}

/// The indexes of the pool.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    by_txid: Shards<Member>,
    /// With the wtxid beside it: a compact block looks at the ids of all transactions, and would wait for memory at
    /// each if it had to follow pointers.
    by_wtxid: Shards<(Wtxid, Arc<Entry>)>,
    spenders: Shards<Spender>,
    hasher: RandomState,
}

impl Tables {
    pub(crate) fn new() -> Tables {
        Tables { by_txid: Shards::new(), by_wtxid: Shards::new(), spenders: Shards::new(), hasher: RandomState::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_txid.len()
    }

    pub(crate) fn get(&self, txid: &Txid) -> Option<&Member> {
        self.by_txid.get(self.hasher.hash_one(txid), |member| member.entry.txid() == *txid)
    }

    pub(crate) fn get_by_wtxid(&self, wtxid: &Wtxid) -> Option<&Arc<Entry>> {
        self.by_wtxid.get(self.hasher.hash_one(wtxid), |(other, _)| other == wtxid).map(|(_, entry)| entry)
    }

    pub(crate) fn spender(&self, outpoint: &OutPoint) -> Option<&Spender> {
        self.spenders.get(self.hasher.hash_one(outpoint), |spender| spender.prevout() == *outpoint)
    }

    /// Puts a member into the table by txid in place of the one with that txid.
    pub(crate) fn set(&mut self, member: Member) {
        let txid = member.entry.txid();
        self.by_txid.insert(self.hasher.hash_one(txid), member, |member| member.entry.txid() == txid);
    }

    /// Adds a transaction that is not in the tables.
    pub(crate) fn add(&mut self, member: Member) {
        let entry = Arc::clone(&member.entry);
        self.set(member);
        let wtxid = entry.wtxid();
        let item = (wtxid, Arc::clone(&entry));
        self.by_wtxid.insert(self.hasher.hash_one(wtxid), item, |(other, _)| *other == wtxid);
        for (input, spent) in (0..).zip(entry.tx.view().inputs()) {
            let spender = Spender { entry: Arc::clone(&entry), input };
            let is_it = |spender: &Spender| spender.prevout() == spent.prevout;
            self.spenders.insert(self.hasher.hash_one(spent.prevout), spender, is_it);
        }
    }

    pub(crate) fn remove(&mut self, txid: &Txid) -> Option<Member> {
        let member = self.by_txid.remove(self.hasher.hash_one(txid), |member| member.entry.txid() == *txid)?;
        let wtxid = member.entry.wtxid();
        self.by_wtxid.remove(self.hasher.hash_one(wtxid), |(other, _)| *other == wtxid);
        for spent in member.entry.tx.view().inputs() {
            let is_it = |spender: &Spender| spender.prevout() == spent.prevout;
            self.spenders.remove(self.hasher.hash_one(spent.prevout), is_it);
        }
        Some(member)
    }

    /// All transactions, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.by_txid.iter()
    }

    /// All transactions with their wtxids, in no order.
    pub(crate) fn by_wtxid(&self) -> impl Iterator<Item = &(Wtxid, Arc<Entry>)> {
        self.by_wtxid.iter()
    }

    /// The transactions in the pool that spend outputs of this one, sorted by txid and without repetition.
    pub(crate) fn children(&self, entry: &Entry) -> Vec<Arc<Entry>> {
        let txid = entry.txid();
        let outputs = 0..u32::try_from(entry.tx.view().output_count()).unwrap_or(u32::MAX);
        let mut found: Vec<Arc<Entry>> = outputs
            .filter_map(|vout| self.spender(&OutPoint { txid, vout }))
            .map(|spender| Arc::clone(&spender.entry))
            .collect();
        found.sort_unstable_by_key(|entry| entry.txid());
        found.dedup_by_key(|entry| entry.txid());
        found
    }

    /// The transactions in the pool whose outputs this one spends, sorted by txid and without repetition.
    pub(crate) fn parents(&self, tx: lydian_primitives::Tx<'_>) -> Vec<&Member> {
        let mut txids: Vec<Txid> = tx.inputs().map(|input| input.prevout.txid).collect();
        txids.sort_unstable();
        txids.dedup();
        txids.iter().filter_map(|txid| self.get(txid)).collect()
    }
}
