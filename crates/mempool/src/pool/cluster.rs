//! [`ClusterView`]: a cluster as readers see it. Input: the cluster's transactions in mining order, their ancestors and
//! the chunks. Output: ancestors and descendants with their sums, and the place in the order of the whole pool.
//!
//! A view never changes; a change of the cluster makes a new one. Cost: 16 bytes for each transaction and 48 for each
//! chunk.

use super::entry::Entry;
use crate::graph::FeeSize;
use lydian_primitives::Txid;
use std::cmp::Ordering;
use std::sync::Arc;

/// A cluster of at most 64 transactions.
#[derive(Clone, Debug)]
pub struct ClusterView {
    pub(crate) members: Box<[ClusterMember]>,
    pub(crate) chunks: Box<[ChunkView]>,
}

/// A transaction of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct ClusterMember {
    pub(crate) entry: Arc<Entry>,
    pub(crate) modified_fee: i64,
    /// The positions of its ancestors and its own, a bit each.
    pub(crate) ancestors: u64,
}

/// Transactions that are mined together.
#[derive(Clone, Debug)]
pub struct ChunkView {
    /// The sum of fees in satoshi and of adjusted weights in weight units.
    pub feerate: FeeSize,
    /// The size of this chunk and of those of the same feerate before it in the cluster.
    pub(crate) equal_size: i32,
    /// The greatest txid of the chunk.
    pub(crate) greatest: Txid,
    /// The position after its last transaction.
    pub(crate) end: u8,
}

/// Sums over some transactions of a cluster: Core's `CalculateAncestorData` and `CalculateDescendantData`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sums {
    pub count: u64,
    /// Virtual bytes.
    pub vsize: i64,
    /// Modified fees in satoshi.
    pub fees: i64,
}

impl ClusterView {
    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The transactions in mining order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Arc<Entry>> {
        self.members.iter().map(|member| &member.entry)
    }

    /// The chunks in mining order, each with the positions of its transactions.
    pub fn chunks(&self) -> impl Iterator<Item = (&ChunkView, std::ops::Range<usize>)> {
        let mut start = 0;
        self.chunks.iter().map(move |chunk| {
            let range = start..usize::from(chunk.end);
            start = range.end;
            (chunk, range)
        })
    }

    /// The chunk of a transaction.
    pub fn chunk_of(&self, position: usize) -> Option<&ChunkView> {
        self.chunks.iter().find(|chunk| position < usize::from(chunk.end))
    }

    /// The positions of the ancestors of a transaction, itself included, in mining order.
    pub fn ancestors(&self, position: usize) -> Vec<usize> {
        let set = self.members.get(position).map_or(0, |member| member.ancestors);
        (0..self.members.len()).filter(|other| set >> other & 1 == 1).collect()
    }

    /// The positions of the descendants of a transaction, itself included, in mining order.
    pub fn descendants(&self, position: usize) -> Vec<usize> {
        let is_one = |other: &usize| self.members[*other].ancestors >> position & 1 == 1;
        (0..self.members.len()).filter(is_one).collect()
    }

    pub fn sums(&self, positions: &[usize]) -> Sums {
        let mut sums = Sums::default();
        for member in positions.iter().filter_map(|position| self.members.get(*position)) {
            sums.count += 1;
            sums.vsize += i64::from(member.entry.vsize());
            sums.fees = sums.fees.saturating_add(member.modified_fee);
        }
        sums
    }

    /// Compares two transactions in mining order, of this cluster and of another: Core's `CompareMainOrder`.
    pub fn compare(&self, position: usize, other: &ClusterView, other_position: usize) -> Ordering {
        let key = |cluster: &ClusterView, position: usize| {
            cluster.chunk_of(position).map(|chunk| (chunk.feerate, chunk.equal_size, chunk.greatest))
        };
        let (Some(own), Some(theirs)) = (key(self, position), key(other, other_position)) else {
            return position.cmp(&other_position);
        };
        let by_feerate = theirs.0.compare_feerate(&own.0);
        by_feerate.then(own.1.cmp(&theirs.1)).then(own.2.cmp(&theirs.2)).then(position.cmp(&other_position))
    }
}
