//! Which clusters a set of new dependencies would merge.
//!
//! Input: dependencies as pairs of slots; output: groups of clusters that they connect, each with its number of
//! transactions and size. Nothing is changed. Cost: a sort and a union-find over the clusters involved.

use super::{Graph, Home, Level};

/// Clusters that become one.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) homes: Vec<Home>,
    /// The dependencies between their members, as slots of parent and child, in the order given.
    pub(super) dependencies: Vec<(u32, u32)>,
    pub(super) count: usize,
    pub(super) size: u64,
}

impl Graph {
    /// Groups the clusters that `dependencies` touch in the level that changes go to. Pairs with a node that does not
    /// exist there are left out.
    pub(super) fn group(&self, dependencies: &[(u32, u32)]) -> Vec<Group> {
        let home = |slot| self.home(slot, Level::Staging);
        let pairs: Vec<((u32, u32), Home, Home)> =
            dependencies.iter().filter_map(|&pair| Some((pair, home(pair.0)?, home(pair.1)?))).collect();
        let mut homes: Vec<Home> = pairs.iter().flat_map(|&(_, parent, child)| [parent, child]).collect();
        homes.sort_unstable();
        homes.dedup();
        let number = |home: Home| homes.partition_point(|&other| other < home);
        let mut sets = DisjointSets::new(homes.len());
        for &(_, parent, child) in &pairs {
            sets.union(number(parent), number(child));
        }
        let mut groups: Vec<Group> = Vec::new();
        let mut group_of_root = vec![None; homes.len()];
        for (at, &home) in homes.iter().enumerate() {
            let root = sets.find(at);
            let group = *group_of_root[root].get_or_insert_with(|| {
                groups.push(Group::default());
                groups.len() - 1
            });
            let (count, size) = self.weigh(home);
            groups[group].homes.push(home);
            groups[group].count += count;
            groups[group].size += size;
        }
        for &(pair, parent, _) in &pairs {
            if let Some(group) = group_of_root[sets.find(number(parent))] {
                groups[group].dependencies.push(pair);
            }
        }
        groups
    }
}

/// A partition of numbers, which can be merged (union-find, with union by size and path halving).
#[derive(Debug)]
pub(super) struct DisjointSets {
    parents: Vec<usize>,
    counts: Vec<usize>,
}

impl DisjointSets {
    pub(super) fn new(count: usize) -> DisjointSets {
        DisjointSets { parents: (0..count).collect(), counts: vec![1; count] }
    }

    /// Returns the representative of the set of `element`.
    pub(super) fn find(&mut self, mut element: usize) -> usize {
        while self.parents[element] != element {
            self.parents[element] = self.parents[self.parents[element]];
            element = self.parents[element];
        }
        element
    }

    /// Merges two sets; returns the representative.
    pub(super) fn union(&mut self, one: usize, other: usize) -> usize {
        let (one, other) = (self.find(one), self.find(other));
        if one == other {
            return one;
        }
        let (large, small) = if self.counts[one] < self.counts[other] { (other, one) } else { (one, other) };
        self.parents[small] = large;
        self.counts[large] += self.counts[small];
        large
    }
}
