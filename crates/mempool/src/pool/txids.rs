//! [`TxidMap`]: values by txid, published by sharing.
//!
//! What is known of transactions beside their entries: fee deltas, and that no peer has requested them. Invariants: a
//! clone never changes. Cost: a change of a map that was cloned since its last one copies a small part of it, as in
//! [`Index`].

use super::index::Index;
use lydian_primitives::Txid;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

/// A map from txids. Clones are cheap and independent.
#[derive(Clone, Debug)]
pub struct TxidMap<T> {
    values: Index<(Txid, T)>,
    hasher: RandomState,
}

impl<T: Copy> Default for TxidMap<T> {
    fn default() -> TxidMap<T> {
        TxidMap { values: Index::new(), hasher: RandomState::new() }
    }
}

impl<T: Copy> TxidMap<T> {
    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, txid: &Txid) -> Option<T> {
        self.values.get(self.hasher.hash_one(txid), |(other, _)| other == *txid).map(|(_, value)| value)
    }

    pub fn contains(&self, txid: &Txid) -> bool {
        self.get(txid).is_some()
    }

    /// All txids, in no order.
    pub fn txids(&self) -> impl Iterator<Item = Txid> {
        self.values.iter().map(|(txid, _)| txid)
    }

    /// A copy in the order of the txids.
    pub fn sorted(&self) -> BTreeMap<Txid, T> {
        self.values.iter().collect()
    }

    pub(crate) fn insert(&mut self, txid: Txid, value: T) {
        self.values.insert(self.hasher.hash_one(txid), (txid, value), |(other, _)| other == txid);
    }

    pub(crate) fn remove(&mut self, txid: &Txid) {
        self.values.remove(self.hasher.hash_one(txid), |(other, _)| other == *txid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_counts_and_clones_stay() {
        let txid = |number: u8| Txid([number; 32]);
        let mut map = TxidMap::default();
        (0..9).rev().for_each(|number| map.insert(txid(number), 1));
        let before = map.clone();
        map.insert(txid(3), 2);
        map.remove(&txid(4));
        map.remove(&txid(99));
        assert_eq!((map.len(), map.get(&txid(3)), map.get(&txid(4))), (8, Some(2), None));
        assert_eq!((before.len(), before.get(&txid(3)), before.contains(&txid(4))), (9, Some(1), true));
        let sorted: Vec<Txid> = before.sorted().into_keys().collect();
        assert_eq!(sorted, (0..9).map(txid).collect::<Vec<_>>());
        assert_eq!(map.txids().count(), 8);
    }
}
