//! Chunks of main in mining order: for a block from the best one, for eviction from the worst one.
//!
//! Input: the graph; output: chunks. Cost: a constant per step on average.

use super::node::TxRef;
use super::order::{ChunkKey, ChunkOrder};
use super::sorted::Iter;
use super::{FeeSize, Graph, Home, Level};
use std::collections::HashSet;

/// Transactions that are mined together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// In mining order: ancestors come first.
    pub nodes: Vec<TxRef>,
    /// Their fee and size together.
    pub feerate: FeeSize,
}

impl Graph {
    /// Returns the chunks of main, best first; reversed, worst first.
    pub fn chunks(&self) -> impl DoubleEndedIterator<Item = Chunk> {
        self.order.iter().map(|key| self.chunk(key))
    }

    /// Returns the order of the chunks of main, to be kept.
    pub(crate) fn order(&self) -> ChunkOrder {
        self.order.clone()
    }

    /// Returns the chunk of main that is mined last. Core's `GetWorstMainChunk`, which lists descendants first.
    #[must_use]
    pub fn worst_chunk(&self) -> Option<Chunk> {
        self.order.last().map(|key| self.chunk(key))
    }

    /// Returns the chunks of the cluster of a transaction in main, best first.
    #[must_use]
    pub fn cluster_chunks(&self, id: TxRef) -> Vec<Chunk> {
        let home = self.nodes.find(id).and_then(|slot| self.home(slot, Level::Main));
        match home {
            None => Vec::new(),
            Some(Home::Single(slot)) => vec![self.chunk(&ChunkKey::of_single(&self.nodes, slot))],
            Some(home) => self.cluster_at(home).map_or_else(Vec::new, |cluster| {
                ChunkKey::of_cluster(&self.nodes, cluster).map(|key| self.chunk(&key)).collect()
            }),
        }
    }

    /// Begins the choice of chunks for a block.
    #[must_use]
    pub fn block_builder(&self) -> BlockBuilder<'_> {
        let mut keys = self.order.iter();
        let current = keys.next();
        BlockBuilder { graph: self, keys, current, skipped: HashSet::new() }
    }

    /// Returns the chunk of a key in the order of main.
    fn chunk(&self, key: &ChunkKey) -> Chunk {
        let place = self.home(key.slot, Level::Main).and_then(|home| {
            let cluster = self.cluster_at(home)?;
            Some((cluster, cluster.chunk_of(cluster.position(key.slot)?)?))
        });
        let nodes = match place {
            Some((cluster, chunk)) => cluster.slots_of(chunk).map(|slot| self.nodes.id(slot)).collect(),
            None => vec![self.nodes.id(key.slot)],
        };
        Chunk { nodes, feerate: key.feerate }
    }
}

/// Chooses chunks for a block, best first. After a chunk is skipped, no other chunk of its cluster is offered, because
/// it might depend on it.
#[derive(Debug)]
pub struct BlockBuilder<'a> {
    graph: &'a Graph,
    keys: Iter<'a, ChunkKey>,
    current: Option<&'a ChunkKey>,
    skipped: HashSet<Home>,
}

impl BlockBuilder<'_> {
    /// Returns the best chunk that is left, or `None` at the end.
    #[must_use]
    pub fn current(&self) -> Option<Chunk> {
        self.current.map(|key| self.graph.chunk(key))
    }

    /// Takes the current chunk and goes on.
    pub fn include(&mut self) {
        let home = |key: &ChunkKey| self.graph.home(key.slot, Level::Main);
        self.current = self.keys.by_ref().find(|key| home(key).is_none_or(|home| !self.skipped.contains(&home)));
    }

    /// Leaves out the current chunk and the rest of its cluster, and goes on.
    pub fn skip(&mut self) {
        if let Some(home) = self.current.and_then(|key| self.graph.home(key.slot, Level::Main))
            && self.graph.cluster_at(home).is_some()
        {
            self.skipped.insert(home);
        }
        self.include();
    }
}
