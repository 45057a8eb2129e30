//! [`Tables`]: the transactions of the pool by txid, by wtxid and by the outputs they spend. Cloned for readers.

use super::bands::Bands;
use super::cluster::{ClusterView, MiningRank};
use super::entry::Entry;
use super::index::Index;
use super::slots::Slots;
use crate::graph::TxRef;
use lydian_primitives::{OutPoint, Txid, Wtxid};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// A transaction of the pool with what may change of it.
#[derive(Clone, Debug)]
pub struct Member {
    pub(crate) entry: Arc<Entry>,
    /// Beside the entry: a compact block looks at the ids of all transactions, and would wait for memory at each if it
    /// had to follow pointers.
    pub(crate) wtxid: Wtxid,
    pub(crate) node: TxRef,
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

    pub fn wtxid(&self) -> &Wtxid {
        &self.wtxid
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

    /// Its place in the mining order of the pool.
    pub fn rank(&self) -> MiningRank {
        self.cluster.rank(self.position())
    }
}

/// Where an input of the pool is.
#[derive(Clone, Copy, Debug)]
struct Spend {
    /// The slot of its transaction.
    slot: u32,
    input: u32,
}

/// The indexes of the pool. A transaction has the slot of its node in the graph.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    members: Slots<Member>,
    by_txid: Index<u32>,
    by_wtxid: Index<u32>,
    spends: Index<Spend>,
    /// The sums of the transactions in the tables.
    bands: Bands,
    hasher: RandomState,
}

impl Tables {
    pub(crate) fn new() -> Tables {
        Tables {
            members: Slots::new(),
            by_txid: Index::new(),
            by_wtxid: Index::new(),
            spends: Index::new(),
            bands: Bands::new(),
            hasher: RandomState::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_txid.len()
    }

    /// The transaction in a slot.
    pub(super) fn at(&self, slot: u32) -> Option<&Member> {
        self.members.get(slot as usize)
    }

    /// The transaction of a node, unless it has left the pool.
    pub(crate) fn at_node(&self, node: TxRef) -> Option<&Member> {
        self.at(node.slot()).filter(|member| member.node == node)
    }

    fn has_txid(&self, slot: u32, txid: &Txid) -> bool {
        self.at(slot).is_some_and(|member| member.entry.txid() == *txid)
    }

    fn has_wtxid(&self, slot: u32, wtxid: &Wtxid) -> bool {
        self.at(slot).is_some_and(|member| member.wtxid == *wtxid)
    }

    fn spends(&self, spend: Spend, outpoint: &OutPoint) -> bool {
        self.at(spend.slot)
            .is_some_and(|member| member.entry.tx.view().input(spend.input as usize).prevout == *outpoint)
    }

    pub(crate) fn get(&self, txid: &Txid) -> Option<&Member> {
        let slot = self.by_txid.get(self.hasher.hash_one(txid), |slot| self.has_txid(slot, txid))?;
        self.at(slot)
    }

    pub(crate) fn get_by_wtxid(&self, wtxid: &Wtxid) -> Option<&Member> {
        let slot = self.by_wtxid.get(self.hasher.hash_one(wtxid), |slot| self.has_wtxid(slot, wtxid))?;
        self.at(slot)
    }

    /// The transaction that spends an output, and with which of its inputs.
    pub(crate) fn spend(&self, outpoint: &OutPoint) -> Option<(&Member, usize)> {
        let spend = self.spends.get(self.hasher.hash_one(outpoint), |spend| self.spends(spend, outpoint))?;
        Some((self.at(spend.slot)?, spend.input as usize))
    }

    /// The transaction that spends an output.
    pub(crate) fn spender(&self, outpoint: &OutPoint) -> Option<&Member> {
        self.spend(outpoint).map(|(member, _)| member)
    }

    pub(crate) fn bands(&self) -> &Bands {
        &self.bands
    }

    /// Replaces a transaction that is in the tables, by one with the same inputs and ids.
    pub(crate) fn set(&mut self, member: Member) {
        self.bands.count(&member);
        if let Some(before) = self.members.set(member.node.slot() as usize, member) {
            self.bands.take_out(&before);
        }
    }

    /// Adds a transaction that is not in the tables. None of its inputs is spent by another.
    pub(crate) fn add(&mut self, member: Member) {
        let (slot, entry) = (member.node.slot(), Arc::clone(&member.entry));
        self.bands.count(&member);
        let before = self.members.set(slot as usize, member);
        assert!(before.is_none(), "the node of a transaction in the mempool belongs to no other");
        // Nothing is equal to it.
        self.by_txid.insert(self.hasher.hash_one(entry.txid()), slot, |_| false);
        self.by_wtxid.insert(self.hasher.hash_one(entry.wtxid()), slot, |_| false);
        for (input, spent) in (0..).zip(entry.tx.view().inputs()) {
            self.spends.insert(self.hasher.hash_one(spent.prevout), Spend { slot, input }, |_| false);
        }
    }

    /// Removes the transaction of a node.
    pub(crate) fn remove(&mut self, node: TxRef) -> Option<Member> {
        self.at_node(node)?;
        let slot = node.slot();
        let member = self.members.take(slot as usize)?;
        self.bands.take_out(&member);
        // Each slot is at most once in the first two, and each input of it in the third.
        self.by_txid.remove(self.hasher.hash_one(member.entry.txid()), |other| other == slot);
        self.by_wtxid.remove(self.hasher.hash_one(member.wtxid), |other| other == slot);
        for (input, spent) in (0..).zip(member.entry.tx.view().inputs()) {
            let is_it = |spend: Spend| (spend.slot, spend.input) == (slot, input);
            self.spends.remove(self.hasher.hash_one(spent.prevout), is_it);
        }
        Some(member)
    }

    /// All transactions, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.members.iter()
    }

    /// The transactions in the pool that spend outputs of this one, sorted by txid and without repetition.
    pub(crate) fn children(&self, entry: &Entry) -> Vec<Arc<Entry>> {
        let txid = entry.txid();
        let outputs = 0..u32::try_from(entry.tx.view().output_count()).unwrap_or(u32::MAX);
        let mut found: Vec<Arc<Entry>> = outputs
            .filter_map(|vout| self.spender(&OutPoint { txid, vout }))
            .map(|member| Arc::clone(&member.entry))
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
