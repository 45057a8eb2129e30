//! The order of all chunks of main, as a miner takes them.
//!
//! Input: chunks of clusters and single transactions; output: chunks best first or worst first. The rule is Core's
//! `CompareMainTransactions`: higher feerate, then smaller size together with the chunks of the same feerate before it
//! in its cluster, then lower greatest tie key.
//!
//! Cost: a tree with one entry per chunk, of which readers get clones; a step of an iteration is constant on average.

use super::cluster::Cluster;
use super::fee_size::FeeSize;
use super::node::Nodes;
use super::sorted::Sorted;
use std::cmp::Ordering;

/// What the place of a chunk depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkKey {
    pub(super) feerate: FeeSize,
    pub(super) equal_size: i32,
    /// The greatest tie key in the chunk.
    pub(super) greatest: [u8; 32],
    /// The slot of the node with that key; it identifies the chunk.
    pub(crate) slot: u32,
}

impl ChunkKey {
    /// Returns the key of a transaction without relatives.
    pub(super) fn of_single(nodes: &Nodes, slot: u32) -> ChunkKey {
        let node = nodes.at(slot);
        ChunkKey { feerate: node.fee_size(), equal_size: node.size, greatest: node.key, slot }
    }

    /// Returns the key of a chunk of a cluster.
    pub(super) fn of_chunk(nodes: &Nodes, cluster: &Cluster, chunk: usize) -> ChunkKey {
        let slot = cluster.greatest_of(chunk);
        let facts = &cluster.chunks[chunk];
        ChunkKey { feerate: facts.feerate, equal_size: facts.equal_size, greatest: nodes.at(slot).key, slot }
    }

    /// Returns the keys of all chunks of a linearized cluster.
    pub(super) fn of_cluster(nodes: &Nodes, cluster: &Cluster) -> impl Iterator<Item = ChunkKey> {
        (0..cluster.chunks.len()).map(|chunk| ChunkKey::of_chunk(nodes, cluster, chunk))
    }
}

impl Ord for ChunkKey {
    fn cmp(&self, other: &ChunkKey) -> Ordering {
        let by_feerate = other.feerate.compare_feerate(&self.feerate);
        let by_size = || self.equal_size.cmp(&other.equal_size);
        let by_key = || self.greatest.cmp(&other.greatest);
        by_feerate.then_with(by_size).then_with(by_key).then_with(|| self.slot.cmp(&other.slot))
    }
}

impl PartialOrd for ChunkKey {
    fn partial_cmp(&self, other: &ChunkKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The chunks of main in mining order.
pub(crate) type ChunkOrder = Sorted<ChunkKey>;
