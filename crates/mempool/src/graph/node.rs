//! The table of nodes: what the graph knows of each transaction.
//!
//! Input: fee, size and tie key; output: a handle ([`TxRef`]) that is cheap to copy. A slot is used again after its
//! node has gone, with the next generation, so an old handle finds nothing.
//!
//! Memory: 56 bytes per node. Where a node stands in main and in the staging copy are two numbers ([`Place`]).

use super::fee_size::FeeSize;

/// A handle of a transaction in a [`super::Graph`]. It stays valid until the transaction has left the graph, and finds
/// nothing afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxRef {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl TxRef {
    /// Its slot, which no other transaction of the graph has. Slots are used again, so that they stay small numbers.
    pub(crate) fn slot(self) -> u32 {
        self.slot
    }
}

/// Where a node stands in one of the two graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    /// In main: nowhere. In staging: as in main.
    pub(super) const UNSET: Place = Place(u32::MAX);
    /// Alone: no relatives.
    pub(super) const SINGLE: Place = Place(u32::MAX - 1);
    /// In staging only: removed there, but still in main.
    pub(super) const REMOVED: Place = Place(u32::MAX - 2);

    pub(super) const fn cluster(number: u32) -> Place {
        Place(number)
    }

    /// Returns the number of the cluster, unless the place is one of the constants.
    pub(super) fn as_cluster(self) -> Option<u32> {
        (self.0 < Place::REMOVED.0).then_some(self.0)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) key: [u8; 32],
    pub(super) fee: i64,
    pub(super) size: i32,
    generation: u32,
    pub(super) main: Place,
    pub(super) staged: Place,
}

impl Node {
    pub(super) fn fee_size(&self) -> FeeSize {
        FeeSize { fee: self.fee, size: self.size }
    }
}

/// All nodes of main and staging.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

impl Nodes {
    pub(super) fn insert(&mut self, feerate: FeeSize, key: [u8; 32]) -> TxRef {
        let FeeSize { fee, size } = feerate;
        if let Some(slot) = self.free.pop() {
            let node = &mut self.nodes[slot as usize];
            let generation = node.generation;
            *node = Node { key, fee, size, generation, main: Place::UNSET, staged: Place::UNSET };
            return TxRef { slot, generation };
        }
        let slot = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(Node { key, fee, size, generation: 0, main: Place::UNSET, staged: Place::UNSET });
        TxRef { slot, generation: 0 }
    }

    /// Frees a slot. All handles of its node are invalid from now on.
    pub(super) fn free(&mut self, slot: u32) {
        let node = &mut self.nodes[slot as usize];
        node.generation = node.generation.wrapping_add(1);
        node.main = Place::UNSET;
        node.staged = Place::UNSET;
        self.free.push(slot);
    }

    /// Returns the slot of a handle, unless its node has gone.
    pub(super) fn find(&self, id: TxRef) -> Option<u32> {
        self.nodes.get(id.slot as usize).filter(|node| node.generation == id.generation).map(|_| id.slot)
    }

    pub(super) fn id(&self, slot: u32) -> TxRef {
        TxRef { slot, generation: self.nodes[slot as usize].generation }
    }

    pub(super) fn at(&self, slot: u32) -> &Node {
        &self.nodes[slot as usize]
    }

    pub(super) fn at_mut(&mut self, slot: u32) -> &mut Node {
        &mut self.nodes[slot as usize]
    }

    /// Returns all slots, the free ones too.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.nodes).map(|(slot, _)| slot)
    }
}
