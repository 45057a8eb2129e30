//! The plain model: the specification of the graph.
//!
//! Nothing here is quick. Ancestors are sets, staging is a copy, and the order of a cluster is the best of all its
//! topological orders, which limits a cluster to 8 transactions.

use crate::graph::{Diagram, FeeSize};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// A transaction of the model. Numbers are those of the test.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) feerate: FeeSize,
    pub(super) key: [u8; 32],
    /// Without itself.
    pub(super) ancestors: BTreeSet<usize>,
}

/// A chunk of the model: a set, because the order within chunks is pinned by Core's vectors.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ModelChunk {
    pub(super) members: BTreeSet<usize>,
    pub(super) fee: i64,
    pub(super) size: i32,
}

impl ModelChunk {
    pub(super) fn feerate(&self) -> FeeSize {
        FeeSize::new(self.fee, self.size)
    }
}

/// One level.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) entries: BTreeMap<usize, Entry>,
    waiting: Vec<(usize, usize)>,
}

/// Main and staging.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) count_max: usize,
    pub(super) size_max: u64,
    pub(super) main: State,
    pub(super) staging: Option<State>,
}

impl State {
    pub(super) fn descendants(&self, number: usize) -> BTreeSet<usize> {
        let is_below = |other: &usize| *other == number || self.entries[other].ancestors.contains(&number);
        self.entries.keys().copied().filter(is_below).collect()
    }

    pub(super) fn ancestors(&self, number: usize) -> BTreeSet<usize> {
        self.entries[&number].ancestors.iter().copied().chain([number]).collect()
    }

    pub(super) fn cluster(&self, number: usize) -> BTreeSet<usize> {
        let mut cluster = BTreeSet::from([number]);
        loop {
            let related = |&at: &usize| [self.ancestors(at), self.descendants(at)];
            let more: BTreeSet<usize> = cluster.iter().flat_map(related).flatten().collect();
            if more == cluster {
                return cluster;
            }
            cluster = more;
        }
    }

    pub(super) fn clusters(&self) -> BTreeSet<BTreeSet<usize>> {
        self.entries.keys().map(|&number| self.cluster(number)).collect()
    }

    fn relate(&mut self, parent: usize, child: usize) {
        if self.entries[&parent].ancestors.contains(&child) || parent == child {
            return;
        }
        let inherited = self.ancestors(parent);
        for number in self.descendants(child) {
            self.entries.get_mut(&number).unwrap().ancestors.extend(&inherited);
        }
    }

    fn sum(&self, members: &BTreeSet<usize>) -> FeeSize {
        members.iter().fold(FeeSize::default(), |sum, number| sum + self.entries[number].feerate)
    }

    /// Cuts an order into chunks: a transaction joins what precedes it as long as that has a lower feerate.
    fn chunks_of(&self, order: &[usize]) -> Vec<ModelChunk> {
        let mut chunks: Vec<ModelChunk> = Vec::new();
        for &number in order {
            let own = self.entries[&number].feerate;
            let mut chunk = ModelChunk { members: BTreeSet::from([number]), fee: own.fee, size: own.size };
            while let Some(before) = chunks.pop_if(|before| chunk.feerate().compare_feerate(&before.feerate()).is_gt())
            {
                chunk.members.extend(before.members);
                chunk.fee += before.fee;
                chunk.size += before.size;
            }
            chunks.push(chunk);
        }
        chunks
    }

    /// Calls `visit` with every topological order of `rest` after `order`.
    fn orders(&self, order: &mut Vec<usize>, rest: &BTreeSet<usize>, visit: &mut impl FnMut(&[usize])) {
        if rest.is_empty() {
            return visit(order);
        }
        for &next in rest {
            if self.entries[&next].ancestors.is_disjoint(rest) {
                let rest = rest.iter().copied().filter(|&other| other != next).collect();
                order.push(next);
                self.orders(order, &rest, visit);
                order.pop();
            }
        }
    }

    /// Returns the chunks of a cluster: those of a best order with the most chunks, sorted by topology, feerate, size
    /// and greatest tie key.
    pub(super) fn linearize(&self, cluster: &BTreeSet<usize>) -> Vec<ModelChunk> {
        let mut best: Option<(Diagram, Vec<ModelChunk>)> = None;
        let mut dominated = Vec::new();
        self.orders(&mut Vec::new(), cluster, &mut |order| {
            let chunks = self.chunks_of(order);
            let diagram = Diagram::new(chunks.iter().map(ModelChunk::feerate).collect());
            let is_better = best.as_ref().is_none_or(|(known, found)| match diagram.compare(known) {
                Some(Ordering::Equal) => chunks.len() > found.len(),
                verdict => verdict == Some(Ordering::Greater),
            });
            if is_better {
                best = Some((diagram, chunks));
            } else {
                dominated.push(diagram);
            }
        });
        let (diagram, mut chunks) = best.unwrap();
        let is_dominated =
            |other: &Diagram| matches!(diagram.compare(other), Some(Ordering::Greater | Ordering::Equal));
        assert!(dominated.iter().all(is_dominated), "an order is not comparable with the best one");
        let mut ordered: Vec<ModelChunk> = Vec::new();
        while !chunks.is_empty() {
            let is_ready = |chunk: &&ModelChunk| {
                let needed: BTreeSet<usize> = chunk.members.iter().flat_map(|&at| self.ancestors(at)).collect();
                let others = chunks.iter().filter(|other| *other != *chunk);
                others.into_iter().all(|other| needed.is_disjoint(&other.members))
            };
            let next = chunks.iter().filter(is_ready).min_by(|a, b| self.compare_chunks(a, b)).unwrap().clone();
            chunks.retain(|chunk| *chunk != next);
            ordered.push(next);
        }
        ordered
    }

    fn greatest_key(&self, chunk: &ModelChunk) -> [u8; 32] {
        chunk.members.iter().map(|number| self.entries[number].key).max().unwrap()
    }

    fn compare_chunks(&self, a: &ModelChunk, b: &ModelChunk) -> Ordering {
        a.feerate().compare_mining(&b.feerate()).then_with(|| self.greatest_key(a).cmp(&self.greatest_key(b)))
    }

    /// Returns all chunks in mining order.
    pub(super) fn order(&self) -> Vec<ModelChunk> {
        let mut all: Vec<(i32, ModelChunk)> = Vec::new();
        for cluster in self.clusters() {
            let chunks = self.linearize(&cluster);
            for (at, chunk) in chunks.iter().enumerate() {
                let is_equal = |other: &&ModelChunk| other.feerate().compare_feerate(&chunk.feerate()).is_eq();
                let equal_size = chunks[..=at].iter().filter(is_equal).map(|other| other.size).sum();
                all.push((equal_size, chunk.clone()));
            }
        }
        all.sort_by(|(size_a, a), (size_b, b)| {
            let by_feerate = b.feerate().compare_feerate(&a.feerate());
            by_feerate.then(size_a.cmp(size_b)).then_with(|| self.greatest_key(a).cmp(&self.greatest_key(b)))
        });
        all.into_iter().map(|(_, chunk)| chunk).collect()
    }
}

impl Model {
    pub(super) fn top(&mut self) -> &mut State {
        self.staging.as_mut().unwrap_or(&mut self.main)
    }

    fn exceeds(&self, state: &State) -> bool {
        state.clusters().iter().any(|cluster| {
            cluster.len() > self.count_max || u64::try_from(state.sum(cluster).size).unwrap() > self.size_max
        })
    }

    pub(super) fn is_oversized(&self, state: &State) -> bool {
        !state.waiting.is_empty() || self.exceeds(state)
    }

    /// Lets all waiting dependencies take effect, unless a cluster exceeds a limit.
    fn settle(&mut self) {
        let mut tried = self.top().clone();
        for (parent, child) in std::mem::take(&mut tried.waiting) {
            tried.relate(parent, child);
        }
        if !self.exceeds(&tried) {
            *self.top() = tried;
        }
    }

    pub(super) fn depend(&mut self, pairs: &[(usize, usize)]) {
        let top = self.top();
        let exist = |&&(parent, child): &&(usize, usize)| {
            parent != child && top.entries.contains_key(&parent) && top.entries.contains_key(&child)
        };
        let waiting: Vec<(usize, usize)> = pairs.iter().filter(exist).copied().collect();
        top.waiting.extend(waiting);
        self.settle();
    }

    pub(super) fn remove(&mut self, removed: &BTreeSet<usize>) {
        let top = self.top();
        top.entries.retain(|number, _| !removed.contains(number));
        for entry in top.entries.values_mut() {
            entry.ancestors.retain(|number| !removed.contains(number));
        }
        top.waiting.retain(|(parent, child)| !removed.contains(parent) && !removed.contains(child));
        self.settle();
    }

    pub(super) fn set_fee(&mut self, number: usize, fee: i64) {
        for state in std::iter::once(&mut self.main).chain(&mut self.staging) {
            if let Some(entry) = state.entries.get_mut(&number) {
                entry.feerate.fee = fee;
            }
        }
    }

    /// Removes and returns what must go. `linear` is the order of each cluster, by transaction.
    pub(super) fn trim(&mut self, linear: &BTreeMap<usize, Vec<usize>>) -> BTreeSet<usize> {
        let (count_max, size_max) = (self.count_max, self.size_max);
        let top = self.top();
        let mut merged = top.clone();
        for &(parent, child) in &top.waiting {
            merged.relate(parent, child);
        }
        let mut removed = BTreeSet::new();
        for group in merged.clusters() {
            let size = |members: &BTreeSet<usize>| u64::try_from(merged.sum(members).size).unwrap();
            if group.len() <= count_max && size(&group) <= size_max {
                continue;
            }
            let before = |&number: &usize| {
                let order = &linear[&number];
                let at = order.iter().position(|&other| other == number).unwrap();
                let explicit = top.waiting.iter().filter(|(_, child)| *child == number).map(|(parent, _)| *parent);
                let implicit = at.checked_sub(1).map(|at| order[at]);
                explicit.chain(implicit).collect::<BTreeSet<usize>>()
            };
            let chunk = |number: usize| {
                let chunks = top.chunks_of(&linear[&number]);
                chunks.into_iter().find(|chunk| chunk.members.contains(&number)).unwrap().feerate()
            };
            let mut parts: Vec<BTreeSet<usize>> = Vec::new();
            let mut open = group.clone();
            // Takes the best one that waits for nothing, and keeps it if its part then keeps within the limits.
            loop {
                let kept: BTreeSet<usize> = parts.iter().flatten().copied().collect();
                let ready = open.iter().copied().filter(|number| before(number).is_subset(&kept));
                let rule = |&a: &usize, &b: &usize| {
                    let keys = || top.entries[&a].key.cmp(&top.entries[&b].key);
                    chunk(a).compare_mining(&chunk(b)).then_with(keys)
                };
                let Some(next) = ready.min_by(rule) else { break };
                open.remove(&next);
                let (joined, mut other): (Vec<_>, Vec<_>) =
                    parts.iter().cloned().partition(|part| !part.is_disjoint(&before(&next)));
                let whole: BTreeSet<usize> = joined.into_iter().flatten().chain([next]).collect();
                if whole.len() <= count_max && size(&whole) <= size_max {
                    other.push(whole);
                    parts = other;
                }
            }
            let kept: BTreeSet<usize> = parts.into_iter().flatten().collect();
            removed.extend(group.difference(&kept).copied());
        }
        self.remove(&removed);
        removed
    }
}
