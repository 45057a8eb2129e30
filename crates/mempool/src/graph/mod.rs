//! The cluster graph: which transactions depend on each other, and in which order a miner takes them.
//!
//! Input: transactions as numbers (a fee, a size, a tie key) and dependencies between them; the module knows nothing of
//! Bitcoin. Output: ancestors, descendants and clusters; the chunks of the whole graph in mining order; feerate
//! diagrams. It is what `TxGraph` is for Core's mempool, and its answers are Core's (`txgraph.h`,
//! `cluster_linearize.h`).
//!
//! A *cluster* is a connected component of the graph. Each cluster is kept in its optimal order and cut into *chunks*:
//! a chunk is the prefix of the rest with the highest feerate, and is mined together. The mempool evicts the worst
//! chunk, a block begins with the best one.
//!
//! # Two levels
//!
//! Changes go to *main*, or to a *staging* copy if one is open. Replacements and packages are tried in staging. Only
//! clusters that change are copied, so opening costs nothing, and aborting costs what was changed.
//!
//! # Invariants
//!
//! * The order of every cluster in main is optimal and a function of its transactions, dependencies and tie keys alone:
//!   neither the order of insertion nor a random number matters. Core reports such an order as `optimal`; here there is
//!   no other one.
//! * Dependencies take effect together or not at all: if a cluster would exceed a limit, the level is *oversized*, and
//!   all new dependencies wait. Queries then answer for the graph without them. [`Graph::trim`] ends this state.
//! * A removed transaction leaves the relation between its ancestors and descendants behind, as in Core. A caller that
//!   removes all descendants or all ancestors with it does not notice.
//!
//! # Cost
//!
//! A change costs the clusters that it touches, each at most 64 transactions, and a logarithm of the number of chunks.
//! No step walks the whole graph. Clusters in staging are linearized when their order is needed, those in main at once.
//! Memory: 56 bytes for a transaction and about 90 for a chunk; a transaction without relatives has no cluster object.

mod bits;
mod change;
mod check;
mod cluster;
mod diagram;
mod fee_size;
mod flow;
mod group;
mod linearize;
mod mining;
mod node;
mod order;
mod query;
mod shape;
mod sorted;
mod staging;
#[cfg(test)]
mod tests;
mod trim;
#[cfg(any(test, fuzzing))]
pub mod twin;

pub use diagram::Diagram;
pub use fee_size::FeeSize;
pub use mining::{BlockBuilder, Chunk};
pub use node::TxRef;
pub(crate) use order::ChunkOrder;
pub use shape::{Shape, ShapeChunk};

use crate::limits::CLUSTER_COUNT_MAX;
use cluster::{Cluster, Member, Table};
use linearize::{Input, Linearizer};
use node::{Nodes, Place};
use order::ChunkKey;
use shape::ClusterSums;
use staging::Staging;

/// Limits of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    count: usize,
    size: u64,
}

impl Limits {
    /// `count` transactions, at most [`CLUSTER_COUNT_MAX`] and at least 1, of `size` together.
    #[must_use]
    pub fn new(count: usize, size: u64) -> Limits {
        Limits { count: count.clamp(1, CLUSTER_COUNT_MAX), size }
    }

    fn is_exceeded_by(self, count: usize, size: u64) -> bool {
        count > self.count || size > self.size
    }
}

/// Which graph a query is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Main,
    /// The staging copy; main if none is open. Core's `Level::TOP`.
    Staging,
}

/// The transactions of a mempool, their dependencies and their order.
#[derive(Debug)]
pub struct Graph {
    limits: Limits,
    nodes: Nodes,
    main: LevelState,
    staging: Option<Staging>,
    order: ChunkOrder,
    linearizer: Linearizer,
    sums: ClusterSums,
}

/// What main and staging have each.
#[derive(Clone, Debug, Default)]
struct LevelState {
    clusters: Table<Cluster>,
    /// Dependencies that wait because a cluster would exceed a limit, as slots of parent and child.
    waiting: Vec<(u32, u32)>,
    /// Transactions in this level, including those that staging has from main.
    count: usize,
    /// Transactions that exceed the size of a cluster alone.
    oversized_count: usize,
}

impl LevelState {
    fn is_oversized(&self) -> bool {
        self.oversized_count > 0 || !self.waiting.is_empty()
    }
}

/// Where a node is found at some level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Home {
    /// The slot of a node without relatives.
    Single(u32),
    Main(u32),
    Staged(u32),
}

impl Graph {
    /// Makes an empty graph.
    #[must_use]
    pub fn new(limits: Limits) -> Graph {
        Graph {
            limits,
            nodes: Nodes::default(),
            main: LevelState::default(),
            staging: None,
            order: ChunkOrder::new(),
            linearizer: Linearizer::new(),
            sums: ClusterSums::default(),
        }
    }

    fn level(&self, level: Level) -> &LevelState {
        match (&self.staging, level) {
            (Some(staging), Level::Staging) => &staging.state,
            _ => &self.main,
        }
    }

    /// Returns the level that changes go to.
    fn top(&mut self) -> &mut LevelState {
        match &mut self.staging {
            Some(staging) => &mut staging.state,
            None => &mut self.main,
        }
    }

    /// Returns where the node of a slot is at `level`, or `None` if it does not exist there.
    fn home(&self, slot: u32, level: Level) -> Option<Home> {
        let node = self.nodes.at(slot);
        let from = |place: Place, cluster: fn(u32) -> Home| match place {
            Place::UNSET | Place::REMOVED => None,
            Place::SINGLE => Some(Home::Single(slot)),
            _ => place.as_cluster().map(cluster),
        };
        if level == Level::Staging && self.staging.is_some() && node.staged != Place::UNSET {
            return from(node.staged, Home::Staged);
        }
        from(node.main, Home::Main)
    }

    fn cluster_at(&self, home: Home) -> Option<&Cluster> {
        match home {
            Home::Single(_) => None,
            Home::Main(number) => self.main.clusters.get(number),
            Home::Staged(number) => self.staging.as_ref()?.state.clusters.get(number),
        }
    }

    /// Returns the number of transactions at a home, and their size together.
    fn weigh(&self, home: Home) -> (usize, u64) {
        let size = |slot: u32| u64::from(self.nodes.at(slot).size.unsigned_abs());
        match home {
            Home::Single(slot) => (1, size(slot)),
            _ => self.cluster_at(home).map_or((0, 0), |cluster| {
                (cluster.members.len(), cluster.members.iter().map(|member| size(member.slot)).sum())
            }),
        }
    }
}

/// Puts a cluster into its optimal order.
fn arrange(linearizer: &mut Linearizer, nodes: &Nodes, cluster: &mut Cluster) {
    let input = |member: &Member| {
        let node = nodes.at(member.slot);
        let item = flow::Item { fee: node.fee, size: node.size, ancestors: member.ancestors };
        Input { item, key: node.key }
    };
    let inputs: Vec<Input> = cluster.members.iter().map(input).collect();
    cluster.arrange(&linearizer.linearize(&inputs));
}

/// Adds the chunks of a linearized cluster to the order of main.
fn enter(order: &mut ChunkOrder, nodes: &Nodes, cluster: &Cluster) {
    for key in ChunkKey::of_cluster(nodes, cluster) {
        order.insert(key);
    }
}

/// Removes the chunks of a linearized cluster from the order of main.
fn leave(order: &mut ChunkOrder, nodes: &Nodes, cluster: &Cluster) {
    for key in ChunkKey::of_cluster(nodes, cluster) {
        order.remove(&key);
    }
}
