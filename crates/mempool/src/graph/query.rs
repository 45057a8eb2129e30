//! Questions about the graph that do not need a walk over it.
//!
//! Input: handles and the level; output: handles, numbers and orderings. A handle whose transaction does not exist at
//! the level is ignored. Cost: the clusters of the transactions asked for.

use super::bits::{bit, ones};
use super::cluster::Cluster;
use super::node::{Place, TxRef};
use super::order::ChunkKey;
use super::{FeeSize, Graph, Home, Level};
use std::cmp::Ordering;

impl Graph {
    /// Returns whether a level is oversized: a cluster exceeds a limit, or would exceed it with the dependencies that
    /// wait.
    #[must_use]
    pub fn is_oversized(&self, level: Level) -> bool {
        self.level(level).is_oversized()
    }

    /// Returns the number of transactions.
    #[must_use]
    pub fn len(&self, level: Level) -> usize {
        self.level(level).count
    }

    #[must_use]
    pub fn is_empty(&self, level: Level) -> bool {
        self.len(level) == 0
    }

    #[must_use]
    pub fn contains(&self, id: TxRef, level: Level) -> bool {
        self.find_home(id, level).is_some()
    }

    /// Returns the fee and size of a transaction that is in main or in staging.
    #[must_use]
    pub fn feerate(&self, id: TxRef) -> Option<FeeSize> {
        self.nodes.find(id).map(|slot| self.nodes.at(slot).fee_size())
    }

    /// Returns the fee and size of the chunk of a transaction in main.
    #[must_use]
    pub fn chunk_feerate(&self, id: TxRef) -> Option<FeeSize> {
        self.chunk_key(self.nodes.find(id)?).map(|key| key.feerate)
    }

    /// Returns the ancestors of all of `ids`, with themselves, each one time.
    #[must_use]
    pub fn ancestors(&self, ids: &[TxRef], level: Level) -> Vec<TxRef> {
        self.relatives(ids, level, Cluster::ancestors)
    }

    /// Returns the descendants of all of `ids`, with themselves, each one time.
    #[must_use]
    pub fn descendants(&self, ids: &[TxRef], level: Level) -> Vec<TxRef> {
        self.relatives(ids, level, Cluster::descendants)
    }

    fn relatives(&self, ids: &[TxRef], level: Level, all: fn(&Cluster, u64) -> u64) -> Vec<TxRef> {
        let mut homes: Vec<(Home, u32)> =
            ids.iter().filter_map(|&id| Some((self.find_home(id, level)?, id.slot))).collect();
        homes.sort_unstable();
        homes.dedup();
        let mut found = Vec::with_capacity(homes.len());
        for group in homes.chunk_by(|(one, _), (other, _)| one == other) {
            let Some(cluster) = self.cluster_at(group[0].0) else {
                found.push(self.nodes.id(group[0].1));
                continue;
            };
            let positions = group.iter().filter_map(|&(_, slot)| cluster.position(slot));
            let set = positions.fold(0, |set, position| set | bit(position));
            found.extend(ones(all(cluster, set)).map(|position| self.nodes.id(cluster.members[position].slot)));
        }
        found
    }

    /// Returns the cluster of a transaction: in mining order in main, in any order in staging. Empty if the transaction
    /// does not exist.
    #[must_use]
    pub fn cluster(&self, id: TxRef, level: Level) -> Vec<TxRef> {
        let Some(home) = self.find_home(id, level) else { return Vec::new() };
        match self.cluster_at(home) {
            Some(cluster) => cluster.members.iter().map(|member| self.nodes.id(member.slot)).collect(),
            None => vec![id],
        }
    }

    /// Returns the number of transactions in the cluster of `id`.
    #[must_use]
    pub fn cluster_len(&self, id: TxRef, level: Level) -> usize {
        self.find_home(id, level).map_or(0, |home| self.cluster_at(home).map_or(1, |cluster| cluster.members.len()))
    }

    /// Returns the number of distinct clusters that `ids` belong to.
    #[must_use]
    pub fn count_clusters(&self, ids: &[TxRef], level: Level) -> usize {
        let mut homes: Vec<Home> = ids.iter().filter_map(|&id| self.find_home(id, level)).collect();
        homes.sort_unstable();
        homes.dedup();
        homes.len()
    }

    /// Compares two transactions of main by mining order: `Less` is mined first. Transactions that are not in main come
    /// last. Core's `CompareMainOrder`.
    #[must_use]
    pub fn compare(&self, one: TxRef, other: TxRef) -> Ordering {
        let place = |id| self.nodes.find(id).filter(|&slot| self.nodes.at(slot).main != Place::UNSET);
        let (Some(a), Some(b)) = (place(one), place(other)) else {
            return place(one).is_none().cmp(&place(other).is_none());
        };
        let (home_a, home_b) = (self.nodes.at(a).main, self.nodes.at(b).main);
        if let Some(cluster) = home_a.as_cluster().filter(|_| home_a == home_b) {
            let cluster = self.main.clusters.get(cluster);
            return cluster.map_or(Ordering::Equal, |cluster| cluster.position(a).cmp(&cluster.position(b)));
        }
        self.chunk_key(a).cmp(&self.chunk_key(b))
    }

    /// Bytes of main, including the tables that staging shares with it. Constant time.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.main.count * size_of::<super::node::Node>()
            + self.main.clusters.count() * size_of::<Option<Cluster>>()
            + self.sums.bytes
            + self.order.len() * TREE_ENTRY_BYTES
    }

    fn find_home(&self, id: TxRef, level: Level) -> Option<Home> {
        self.nodes.find(id).and_then(|slot| self.home(slot, level))
    }

    /// Returns the key of the chunk of a slot in main.
    fn chunk_key(&self, slot: u32) -> Option<ChunkKey> {
        match self.home(slot, Level::Main)? {
            Home::Single(slot) => Some(ChunkKey::of_single(&self.nodes, slot)),
            home => {
                let cluster = self.cluster_at(home)?;
                let chunk = cluster.chunk_of(cluster.position(slot)?)?;
                Some(ChunkKey::of_chunk(&self.nodes, cluster, chunk))
            }
        }
    }
}

/// A chunk in the tree of [`super::order`]: the key, with the quarter of a tree node that is empty on average and its
/// share of the inner nodes.
const TREE_ENTRY_BYTES: usize = size_of::<ChunkKey>() * 3 / 2;
