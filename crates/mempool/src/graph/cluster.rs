//! A cluster of two or more transactions, and the table of clusters.
//!
//! Input: members (slot and ancestors) in any order, then the chunks of their linearization; output: sets of positions.
//! A cluster that is linearized keeps its members in mining order, so a chunk is a range of positions, and the
//! ancestors of a member precede it. Transactions without relatives have no cluster; they cost nothing here.
//!
//! Memory: 16 bytes per member and 24 per chunk. Descendants are computed from ancestors when asked for.

use super::bits::{below, bit, first, ones, squeeze};
use super::fee_size::FeeSize;
use super::linearize::Piece;
use crate::limits::CLUSTER_COUNT_MAX;

/// A transaction within a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Positions of its ancestors and its own.
    pub(super) ancestors: u64,
    /// Its slot in the table of nodes.
    pub(super) slot: u32,
}

impl Member {
    /// Returns the only member of a cluster of one.
    pub(super) fn alone(slot: u32) -> Member {
        Member { ancestors: 1, slot }
    }
}

/// A chunk of a linearized cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClusterChunk {
    pub(super) feerate: FeeSize,
    /// The size of this chunk and of the chunks of the same feerate before it in the cluster. Orders chunks of one
    /// feerate across clusters.
    pub(super) equal_size: i32,
    /// The position after its last member.
    pub(super) end: u8,
    /// The position of its greatest tie key.
    pub(super) greatest: u8,
}

/// Two or more related transactions.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub(super) members: Box<[Member]>,
    /// Empty while the cluster is not linearized, which only happens in the staging copy.
    pub(super) chunks: Box<[ClusterChunk]>,
}

impl Cluster {
    /// Makes a cluster that is not linearized.
    pub(super) fn new(members: Vec<Member>) -> Cluster {
        Cluster { members: members.into_boxed_slice(), chunks: Box::default() }
    }

    /// Puts the members into the order of `pieces`, whose positions are those of the current members.
    pub(super) fn arrange(&mut self, pieces: &[Piece]) {
        let mut moved = [0; CLUSTER_COUNT_MAX];
        for (new, &old) in pieces.iter().flat_map(|piece| &piece.order).enumerate() {
            moved[old] = new;
        }
        let rename = |set: u64| ones(set).fold(0, |renamed, old| renamed | bit(moved[old]));
        let in_order = pieces.iter().flat_map(|piece| &piece.order).map(|&old| &self.members[old]);
        self.members =
            in_order.map(|member| Member { ancestors: rename(member.ancestors), slot: member.slot }).collect();
        let mut end = 0;
        let mut equal = FeeSize::default();
        let chunk = |piece: &Piece| {
            end += piece.order.len();
            let is_lower = piece.feerate.compare_feerate(&equal).is_lt();
            equal = if is_lower { piece.feerate } else { equal + piece.feerate };
            ClusterChunk {
                feerate: piece.feerate,
                equal_size: equal.size,
                end: narrow(end),
                greatest: narrow(moved[piece.greatest]),
            }
        };
        self.chunks = pieces.iter().map(chunk).collect();
    }

    pub(super) fn is_linearized(&self) -> bool {
        !self.chunks.is_empty()
    }

    pub(super) fn position(&self, slot: u32) -> Option<usize> {
        self.members.iter().position(|member| member.slot == slot)
    }

    /// Returns the chunk of a position, by number, if the cluster is linearized.
    pub(super) fn chunk_of(&self, position: usize) -> Option<usize> {
        let number = self.chunks.partition_point(|chunk| usize::from(chunk.end) <= position);
        (number < self.chunks.len()).then_some(number)
    }

    /// Returns the slots of a chunk in mining order.
    pub(super) fn slots_of(&self, chunk: usize) -> impl DoubleEndedIterator<Item = u32> {
        let start = if chunk == 0 { 0 } else { usize::from(self.chunks[chunk - 1].end) };
        self.members[start..usize::from(self.chunks[chunk].end)].iter().map(|member| member.slot)
    }

    /// Returns the slot of the greatest tie key of a chunk.
    pub(super) fn greatest_of(&self, chunk: usize) -> u32 {
        self.members[usize::from(self.chunks[chunk].greatest)].slot
    }

    /// Returns the positions of all ancestors of the positions in `set`, which are included.
    pub(super) fn ancestors(&self, set: u64) -> u64 {
        ones(set).fold(0, |all, position| all | self.members[position].ancestors)
    }

    /// Returns the positions of all descendants of the positions in `set`, which are included.
    pub(super) fn descendants(&self, set: u64) -> u64 {
        let is_below = |(_, member): &(usize, &Member)| member.ancestors & set != 0;
        self.members.iter().enumerate().filter(is_below).fold(0, |all, (position, _)| all | bit(position))
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.members) + size_of_val(&*self.chunks) + 2 * ALLOCATION_BYTES
    }
}

/// What an allocator adds to an allocation, on average.
const ALLOCATION_BYTES: usize = 16;

/// Appends the cluster `more` to `members`. The two have no relation yet.
pub(super) fn append(members: &mut Vec<Member>, more: &[Member]) {
    let offset = members.len();
    members.extend(more.iter().map(|member| Member { ancestors: member.ancestors << offset, slot: member.slot }));
}

/// Makes `parent` an ancestor of `child` and of its descendants. Does nothing if `child` is an ancestor of `parent`: a
/// cycle cannot be ordered.
pub(super) fn relate(members: &mut [Member], parent: usize, child: usize) {
    let inherited = members[parent].ancestors;
    if inherited & bit(child) != 0 {
        return;
    }
    for member in members.iter_mut().filter(|member| member.ancestors & bit(child) != 0) {
        member.ancestors |= inherited;
    }
}

/// Returns the clusters that remain of `members` if only the positions in `kept` stay. Relations through removed
/// members stay, as in Core.
pub(super) fn components(members: &[Member], kept: u64) -> Vec<Vec<Member>> {
    let mut rest = kept & below(members.len());
    let mut related = [0; CLUSTER_COUNT_MAX];
    for position in ones(rest) {
        let ancestors = members[position].ancestors & rest;
        related[position] |= ancestors;
        for ancestor in ones(ancestors) {
            related[ancestor] |= bit(position);
        }
    }
    let mut found = Vec::new();
    while let Some(start) = first(rest) {
        let (mut component, mut todo) = (0, bit(start));
        while let Some(position) = first(todo) {
            component |= bit(position);
            todo = (todo | related[position]) & !component;
        }
        let stay = |position| {
            let member: &Member = &members[position];
            Member { ancestors: squeeze(member.ancestors, component), slot: member.slot }
        };
        found.push(ones(component).map(stay).collect());
        rest &= !component;
    }
    found
}

fn narrow(position: usize) -> u8 {
    debug_assert!(position <= CLUSTER_COUNT_MAX);
    u8::try_from(position).unwrap_or(u8::MAX)
}

/// Values by number. Free numbers are used again.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Table<T> {
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.entries[number as usize] = Some(value);
            return number;
        }
        self.entries.push(Some(value));
        u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn take(&mut self, number: u32) -> Option<T> {
        let value = self.entries.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(value)
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.entries.get(number as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.entries.get_mut(number as usize)?.as_mut()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().flatten()
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = T> {
        self.entries.into_iter().flatten()
    }

    pub(super) fn count(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}
