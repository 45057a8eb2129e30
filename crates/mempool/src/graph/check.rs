//! A check of the whole graph, for `-checkmempool` and tests.
//!
//! Input: the graph; it panics if an invariant does not hold, which is our bug. Core's `SanityCheck`. Cost: a walk over
//! the whole graph.

use super::bits::{below, bit};
use super::cluster::Cluster;
use super::node::Place;
use super::order::ChunkKey;
use super::{Graph, Home, Level};
use std::collections::BTreeSet;

impl Graph {
    /// Checks all invariants that do not need a second linearization.
    ///
    /// # Panics
    ///
    /// If one does not hold.
    pub fn check(&self) {
        let mut expected = BTreeSet::new();
        let mut bytes = 0;
        for cluster in self.main.clusters.values() {
            assert!(cluster.is_linearized(), "a cluster of main is not linearized");
            check_order(cluster);
            expected.extend(ChunkKey::of_cluster(&self.nodes, cluster));
            bytes += cluster.heap_bytes();
        }
        let in_main = |slot: &u32| self.nodes.at(*slot).main;
        for slot in self.nodes.slots().filter(|slot| in_main(slot) == Place::SINGLE) {
            expected.insert(ChunkKey::of_single(&self.nodes, slot));
        }
        assert!(self.order.iter().eq(&expected), "the order of main is not that of its chunks");
        assert_eq!(self.sums.bytes, bytes, "bytes of clusters");
        self.check_level(Level::Main);
        if let Some(staging) = &self.staging {
            staging.state.clusters.values().for_each(check_members);
            self.check_level(Level::Staging);
        }
    }

    /// Checks that each node of a level is at the home it names, and the counts.
    fn check_level(&self, level: Level) {
        let (mut count, mut oversized_count) = (0, 0);
        for slot in self.nodes.slots() {
            let Some(home) = self.home(slot, level) else { continue };
            count += 1;
            let size = u64::from(self.nodes.at(slot).size.unsigned_abs());
            oversized_count += usize::from(self.limits.is_exceeded_by(1, size));
            let Home::Single(_) = home else {
                let cluster = self.cluster_at(home);
                assert!(
                    cluster.is_some_and(|cluster| cluster.position(slot).is_some()),
                    "a node is not in its cluster"
                );
                let (count, size) = self.weigh(home);
                assert!(!self.limits.is_exceeded_by(count, size), "a cluster exceeds a limit");
                continue;
            };
        }
        let state = self.level(level);
        assert_eq!((count, oversized_count), (state.count, state.oversized_count), "counts of a level");
        let exists = |slot: &u32| self.home(*slot, level).is_some();
        assert!(state.waiting.iter().all(|(parent, child)| exists(parent) && exists(child)), "a dependency of nothing");
    }
}

/// Checks the sets of a cluster.
fn check_members(cluster: &Cluster) {
    let count = cluster.members.len();
    assert!(count >= 2, "a cluster of fewer than two");
    for (position, member) in cluster.members.iter().enumerate() {
        assert!(member.ancestors & bit(position) != 0 && member.ancestors & !below(count) == 0, "ancestors");
        assert_eq!(cluster.ancestors(member.ancestors), member.ancestors, "ancestors of ancestors are missing");
    }
}

/// Checks the order of a linearized cluster.
fn check_order(cluster: &Cluster) {
    check_members(cluster);
    for (position, member) in cluster.members.iter().enumerate() {
        assert_eq!(member.ancestors & !below(position + 1), 0, "an ancestor comes later");
    }
    let feerates = cluster.chunks.windows(2);
    assert!(
        feerates.into_iter().all(|pair| pair[0].feerate.compare_feerate(&pair[1].feerate).is_ge()),
        "chunk feerates"
    );
    let in_chunks = (0..cluster.chunks.len()).map(|chunk| cluster.slots_of(chunk).count()).sum::<usize>();
    assert_eq!(in_chunks, cluster.members.len(), "members in chunks");
}
