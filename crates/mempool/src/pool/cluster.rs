//! [`ClusterView`]: a cluster as readers see it. Input: the cluster's transactions in mining order, their ancestors and
//! the chunks. Output: ancestors and descendants with their sums, and the place in the order of the whole pool.
//!
//! A view never changes; a change of the cluster makes a new one. Memory: 24 bytes for each transaction and 56 for each
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
        self.chunk_at(position).map(|(chunk, _)| chunk)
    }

    /// The chunk of a transaction, with the positions of all its transactions.
    pub(super) fn chunk_at(&self, position: usize) -> Option<(&ChunkView, std::ops::Range<usize>)> {
        self.chunks().find(|(_, range)| position < range.end)
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

    /// The place of a transaction in the mining order of the whole pool.
    ///
    /// # Panics
    ///
    /// If there is no such position.
    pub fn rank(&self, position: usize) -> MiningRank {
        let Some(chunk) = self.chunk_of(position) else { panic!("position {position} of a cluster of {}", self.len()) };
        let ChunkView { feerate, equal_size, greatest, .. } = *chunk;
        MiningRank { feerate, equal_size, greatest, position }
    }
}

/// The place of a transaction in the mining order of the whole pool: Core's `CompareMainOrder`. The smaller one is
/// mined first.
#[derive(Clone, Copy, Debug)]
pub struct MiningRank {
    /// Of its chunk, as are the next two.
    feerate: FeeSize,
    equal_size: i32,
    greatest: Txid,
    /// In the cluster.
    position: usize,
}

impl MiningRank {
    /// The rank of a transaction without relatives.
    pub fn alone(feerate: FeeSize, txid: Txid) -> MiningRank {
        MiningRank { feerate, equal_size: feerate.size, greatest: txid, position: 0 }
    }
}

impl Ord for MiningRank {
    fn cmp(&self, other: &MiningRank) -> Ordering {
        let by_feerate = other.feerate.compare_feerate(&self.feerate);
        let by_chunk = by_feerate.then(self.equal_size.cmp(&other.equal_size));
        by_chunk.then(self.greatest.cmp(&other.greatest)).then(self.position.cmp(&other.position))
    }
}

impl PartialOrd for MiningRank {
    fn partial_cmp(&self, other: &MiningRank) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for MiningRank {
    fn eq(&self, other: &MiningRank) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for MiningRank {}
