//! The clusters of main as a whole: [`Shape`] for readers that keep a copy, and sums over all of them.
//!
//! Input: a transaction. Output: the members of its cluster in mining order, with their ancestors, and the chunks.
//! Cost: a copy of the cluster; the sums are kept up to date.

use super::cluster::Cluster;
use super::node::{Place, TxRef};
use super::{FeeSize, Graph};
use crate::limits::CLUSTER_COUNT_MAX;

/// A cluster of main.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// In mining order, each with the positions of its ancestors and its own as bits.
    pub members: Vec<(TxRef, u64)>,
    pub chunks: Vec<ShapeChunk>,
}

/// A chunk of a cluster of main.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeChunk {
    pub feerate: FeeSize,
    /// The size of this chunk and of those of the same feerate before it in the cluster.
    pub equal_size: i32,
    /// The position after its last member.
    pub end: u8,
    /// The position of its greatest tie key.
    pub greatest: u8,
}

/// Sums over the clusters of main with two or more members.
#[derive(Clone, Debug)]
pub(super) struct ClusterSums {
    /// Bytes on the heap.
    pub(super) bytes: usize,
    /// The number of clusters by their number of members.
    counts: [u32; CLUSTER_COUNT_MAX + 1],
}

impl Default for ClusterSums {
    fn default() -> ClusterSums {
        ClusterSums { bytes: 0, counts: [0; CLUSTER_COUNT_MAX + 1] }
    }
}

impl ClusterSums {
    pub(super) fn add(&mut self, cluster: &Cluster) {
        self.bytes += cluster.heap_bytes();
        self.counts[cluster.members.len()] += 1;
    }

    pub(super) fn remove(&mut self, cluster: &Cluster) {
        self.bytes -= cluster.heap_bytes();
        self.counts[cluster.members.len()] -= 1;
    }
}

impl Graph {
    /// The cluster of a transaction of main; `None` if main does not have it.
    #[must_use]
    pub fn shape(&self, id: TxRef) -> Option<Shape> {
        let slot = self.nodes.find(id)?;
        let node = self.nodes.at(slot);
        if node.main == Place::SINGLE {
            let feerate = node.fee_size();
            let chunk = ShapeChunk { feerate, equal_size: feerate.size, end: 1, greatest: 0 };
            return Some(Shape { members: vec![(id, 1)], chunks: vec![chunk] });
        }
        let cluster = self.main.clusters.get(node.main.as_cluster()?)?;
        let members = cluster.members.iter().map(|member| (self.nodes.id(member.slot), member.ancestors));
        let chunks = cluster.chunks.iter().map(|chunk| ShapeChunk {
            feerate: chunk.feerate,
            equal_size: chunk.equal_size,
            end: chunk.end,
            greatest: chunk.greatest,
        });
        Some(Shape { members: members.collect(), chunks: chunks.collect() })
    }

    /// The number of chunks of main.
    #[must_use]
    pub fn chunk_count(&self) -> usize {
        self.order.len()
    }

    /// The number of clusters of main by their number of transactions, from one on.
    pub fn cluster_counts(&self) -> impl Iterator<Item = (usize, usize)> {
        let many = self.sums.counts.iter().enumerate().skip(2).map(|(count, clusters)| (count, *clusters as usize));
        let related: usize = many.clone().map(|(count, clusters)| count * clusters).sum();
        std::iter::once((1, self.main.count - related)).chain(many)
    }
}
