//! Trimming: which transactions go when dependencies connect more than a cluster may hold.
//!
//! Input: the dependencies that wait, usually after a reorganisation, when transactions of disconnected blocks turn out
//! to be the parents of transactions in the mempool. Output: the transactions that were removed so that the rest fits.
//! The rule is that of Core's `Trim`, for each group of clusters that exceeds a limit:
//!
//! * Transactions are taken in the order of their chunks' feerates (then smaller chunk size), but each only after its
//!   parents and its predecessor in the order of its own cluster.
//! * A transaction stays if, together with all that its parents and its predecessor are connected to by then, it keeps
//!   within the limits. Otherwise it goes, with all that waits for it.
//!
//! Between chunks of different clusters with the same fee and size, Core's choice depends on its heap; here the lower
//! tie key goes first.
//!
//! Cost: n log n for n transactions in groups that exceed a limit.

use super::group::{DisjointSets, Group};
use super::node::TxRef;
use super::{FeeSize, Graph, Home, Level};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A transaction of a group that exceeds a limit.
#[derive(Clone, Debug)]
struct Candidate {
    slot: u32,
    chunk: FeeSize,
    size: u64,
    /// What it waits for. Numbers of candidates, as in `children`.
    parents: Vec<usize>,
    children: Vec<usize>,
    waits_for: usize,
    stays: bool,
}

/// An entry of the heap: a candidate that waits for nothing.
#[derive(Debug)]
struct Ready {
    chunk: FeeSize,
    key: [u8; 32],
    number: usize,
}

impl Ord for Ready {
    /// The greatest is taken first.
    fn cmp(&self, other: &Ready) -> Ordering {
        let by_chunk = other.chunk.compare_mining(&self.chunk);
        by_chunk.then_with(|| other.key.cmp(&self.key)).then_with(|| other.number.cmp(&self.number))
    }
}

impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Ready) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ready {
    fn eq(&self, other: &Ready) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ready {}

impl Graph {
    /// Removes transactions, each with its descendants, until no cluster exceeds a limit with all dependencies that
    /// wait; these then take effect. Goes to staging if it is open, to main otherwise. Returns what was removed; the
    /// handles are no longer valid if the transactions left both levels. Does nothing unless the level is oversized.
    pub fn trim(&mut self) -> Vec<TxRef> {
        if !self.is_oversized(Level::Staging) {
            return Vec::new();
        }
        self.arrange_staging();
        let mut groups = self.group(&self.level(Level::Staging).waiting);
        groups.extend(self.oversized_alone(&groups));
        groups.retain(|group| self.limits.is_exceeded_by(group.count, group.size));
        let mut removed: Vec<u32> = groups.iter().flat_map(|group| self.choose(group)).collect();
        removed.sort_unstable();
        let removed: Vec<TxRef> = removed.into_iter().map(|slot| self.nodes.id(slot)).collect();
        self.remove(&removed);
        removed
    }

    /// Returns a group for each transaction that exceeds the size alone and has no dependency that waits. Only such
    /// transactions make the table be searched.
    fn oversized_alone(&self, groups: &[Group]) -> Vec<Group> {
        if self.level(Level::Staging).oversized_count == 0 {
            return Vec::new();
        }
        let mut known: Vec<Home> = groups.iter().flat_map(|group| &group.homes).copied().collect();
        known.sort_unstable();
        let homes = self.nodes.slots().filter_map(|slot| self.home(slot, Level::Staging));
        let homes = homes.filter(|home| matches!(home, Home::Single(_)) && known.binary_search(home).is_err());
        let group = |home| {
            let (count, size) = self.weigh(home);
            Group { homes: vec![home], dependencies: Vec::new(), count, size }
        };
        homes.map(group).filter(|group| self.limits.is_exceeded_by(group.count, group.size)).collect()
    }

    /// Returns the slots of `group` that go.
    fn choose(&self, group: &Group) -> Vec<u32> {
        let mut candidates = self.candidates(group);
        let mut sets = DisjointSets::new(candidates.len());
        let mut weights: Vec<(usize, u64)> = candidates.iter().map(|candidate| (1, candidate.size)).collect();
        let ready = |candidates: &[Candidate], number: usize| {
            let Candidate { chunk, slot, .. } = candidates[number];
            Ready { chunk, key: self.nodes.at(slot).key, number }
        };
        let is_first = |number: &usize| candidates[*number].waits_for == 0;
        let mut heap: BinaryHeap<Ready> =
            (0..candidates.len()).filter(is_first).map(|number| ready(&candidates, number)).collect();
        while let Some(Ready { number, .. }) = heap.pop() {
            let mut connected: Vec<usize> =
                candidates[number].parents.iter().map(|&parent| sets.find(parent)).collect();
            connected.sort_unstable();
            connected.dedup();
            let own = weights[number];
            let total = connected.iter().map(|&set| weights[set]).fold(own, |a, b| (a.0 + b.0, a.1 + b.1));
            if self.limits.is_exceeded_by(total.0, total.1) {
                continue;
            }
            let root = connected.iter().fold(number, |root, &set| sets.union(root, set));
            weights[root] = total;
            candidates[number].stays = true;
            for child in std::mem::take(&mut candidates[number].children) {
                candidates[child].waits_for -= 1;
                if candidates[child].waits_for == 0 {
                    heap.push(ready(&candidates, child));
                }
            }
        }
        candidates.iter().filter(|candidate| !candidate.stays).map(|candidate| candidate.slot).collect()
    }

    /// Returns the transactions of `group`, by slot, with their dependencies: those that wait, and one on the
    /// predecessor in the cluster.
    fn candidates(&self, group: &Group) -> Vec<Candidate> {
        let mut candidates = Vec::with_capacity(group.count);
        let mut dependencies = group.dependencies.clone();
        for &home in &group.homes {
            let add = |chunk: FeeSize, slot: u32| Candidate {
                slot,
                chunk,
                size: u64::from(self.nodes.at(slot).size.unsigned_abs()),
                parents: Vec::new(),
                children: Vec::new(),
                waits_for: 0,
                stays: false,
            };
            match (self.cluster_at(home), home) {
                (Some(cluster), _) => {
                    dependencies.extend(cluster.members.windows(2).map(|pair| (pair[0].slot, pair[1].slot)));
                    for (chunk, facts) in cluster.chunks.iter().enumerate() {
                        candidates.extend(cluster.slots_of(chunk).map(|slot| add(facts.feerate, slot)));
                    }
                }
                (None, Home::Single(slot)) => candidates.push(add(self.nodes.at(slot).fee_size(), slot)),
                (None, _) => {}
            }
        }
        candidates.sort_unstable_by_key(|candidate| candidate.slot);
        let number = |candidates: &[Candidate], slot| {
            candidates.binary_search_by_key(&slot, |candidate: &Candidate| candidate.slot).ok()
        };
        for (parent, child) in dependencies {
            let (Some(parent), Some(child)) = (number(&candidates, parent), number(&candidates, child)) else {
                continue;
            };
            candidates[parent].children.push(child);
            candidates[child].parents.push(parent);
            candidates[child].waits_for += 1;
        }
        candidates
    }
}
