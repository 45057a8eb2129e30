//! The graph beside its plain model: after each change, both give the same answers.
//!
//! Input: changes, from a test's generator or from a fuzzer's bytes. It panics where the two differ. For tests and fuzz
//! targets only.
#![allow(clippy::unwrap_used, reason = "a difference panics")]

mod model;

use super::{Chunk, Diagram, FeeSize, Graph, Level, Limits, TxRef};
use model::{Entry, Model, ModelChunk, State};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Transactions at which no more are added: the model tries every order.
pub(in crate::graph) const COUNT_MAX: usize = 14;
/// Changes that bytes may make.
#[cfg(fuzzing)]
const CHANGES_MAX: usize = 60;

/// Compares after each change that the bytes make.
#[cfg(fuzzing)]
pub fn compare(bytes: &[u8]) {
    let mut bytes = bytes.iter().copied();
    let mut next = || bytes.next();
    let (Some(count), Some(size)) = (next(), next()) else { return };
    let mut pair = Pair::new(usize::from(2 + count % 6), u64::from(4 + size % 16));
    for _ in 0..CHANGES_MAX {
        let Some(change) = draw(&mut next) else { return };
        if pair.numbers().len() < COUNT_MAX || !matches!(change, Change::Add { .. }) {
            pair.apply(&change);
            pair.check();
        }
    }
}

/// The next change. Small fees are frequent, so that feerates are equal often.
#[cfg(fuzzing)]
fn draw(next: &mut impl FnMut() -> Option<u8>) -> Option<Change> {
    let fee = |byte: u8| if byte < 200 { i64::from(byte % 8) - 1 } else { i64::from(byte) * 100 };
    Some(match next()? {
        0..70 => {
            let (of, size, key) = (fee(next()?), i32::from(1 + next()? % 4), u64::from(next()?));
            Change::Add { fee: of, size, key }
        }
        kind @ 70..150 => {
            let mut pairs = Vec::new();
            for _ in 0..1 + kind % 5 {
                pairs.push((usize::from(next()?), usize::from(next()?)));
            }
            Change::Depend(pairs)
        }
        150..180 => Change::Remove { of: usize::from(next()?), what: next()? % 3 },
        180..205 => Change::Fee { of: usize::from(next()?), fee: fee(next()?) },
        205..222 => Change::Start,
        222..230 => Change::Abort,
        230..245 => Change::Commit,
        245.. => Change::Trim,
    })
}

/// A change. Numbers choose among the transactions there are.
#[derive(Clone, Debug)]
pub(in crate::graph) enum Change {
    Add { fee: i64, size: i32, key: u64 },
    Depend(Vec<(usize, usize)>),
    Remove { of: usize, what: u8 },
    Fee { of: usize, fee: i64 },
    Start,
    Abort,
    Commit,
    Trim,
}

/// The graph and the model, with the handle of each number.
pub(in crate::graph) struct Pair {
    graph: Graph,
    model: Model,
    ids: BTreeMap<usize, TxRef>,
}

impl Pair {
    pub(in crate::graph) fn new(count_max: usize, size_max: u64) -> Pair {
        let model = Model { count_max, size_max, main: State::default(), staging: None };
        Pair { graph: Graph::new(Limits::new(count_max, size_max)), model, ids: BTreeMap::new() }
    }

    fn number(&self, id: TxRef) -> usize {
        *self.ids.iter().find(|(_, other)| **other == id).unwrap().0
    }

    fn set(&self, ids: &[TxRef]) -> BTreeSet<usize> {
        let set: BTreeSet<usize> = ids.iter().map(|&id| self.number(id)).collect();
        assert_eq!(set.len(), ids.len(), "a transaction is listed twice");
        set
    }

    /// Returns the transactions that are in the level of changes.
    pub(in crate::graph) fn numbers(&mut self) -> Vec<usize> {
        self.model.top().entries.keys().copied().collect()
    }

    pub(in crate::graph) fn apply(&mut self, change: &Change) {
        let numbers = self.numbers();
        let pick = |choice: usize| numbers.get(choice % numbers.len().max(1)).copied();
        match *change {
            Change::Add { fee, size, key } => {
                let mut bytes = [0; 32];
                bytes[..8].copy_from_slice(&key.to_be_bytes());
                let number = self.ids.len();
                bytes[31] = u8::try_from(number % 256).unwrap();
                let feerate = FeeSize::new(fee, size);
                self.ids.insert(number, self.graph.add(feerate, bytes));
                let entry = Entry { feerate, key: bytes, ancestors: BTreeSet::new() };
                self.model.top().entries.insert(number, entry);
            }
            Change::Depend(ref choices) => {
                // From the earlier to the later one or, in every other batch, the reverse: no cycle within a batch.
                // Across batches the graph and the model both ignore what would close one.
                let pairs: Vec<(usize, usize)> = choices
                    .iter()
                    .filter_map(|&(one, other)| Some((pick(one)?, pick(other)?)))
                    .map(|(one, other)| (one.min(other), one.max(other)))
                    .map(|(one, other)| if choices.len() % 2 == 0 { (other, one) } else { (one, other) })
                    .collect();
                let ids: Vec<_> = pairs.iter().map(|(one, other)| (self.ids[one], self.ids[other])).collect();
                self.graph.add_dependencies(&ids);
                self.model.depend(&pairs);
            }
            Change::Remove { of, what } => {
                let Some(number) = pick(of) else { return };
                let top = self.model.top();
                let removed = match what {
                    0 => BTreeSet::from([number]),
                    1 => top.ancestors(number),
                    _ => top.descendants(number),
                };
                let ids: Vec<TxRef> = removed.iter().map(|number| self.ids[number]).collect();
                self.graph.remove(&ids);
                self.model.remove(&removed);
            }
            Change::Fee { of, fee } => {
                let Some(number) = pick(of) else { return };
                self.graph.set_fee(self.ids[&number], fee);
                self.model.set_fee(number, fee);
            }
            Change::Start => {
                self.graph.start_staging();
                self.model.staging = Some(self.model.main.clone());
            }
            Change::Abort => {
                self.graph.abort_staging();
                self.model.staging = None;
            }
            Change::Commit => {
                self.graph.commit_staging();
                self.model.main = self.model.staging.take().unwrap_or(std::mem::take(&mut self.model.main));
            }
            Change::Trim => self.trim(),
        }
    }

    fn trim(&mut self) {
        let is_oversized = self.graph.is_oversized(Level::Staging);
        self.graph.arrange_staging();
        let order = |id: TxRef| self.graph.cluster(id, Level::Staging).iter().map(|&id| self.number(id)).collect();
        let top = self.model.staging.as_ref().unwrap_or(&self.model.main);
        let linear = top.entries.keys().map(|&number| (number, order(self.ids[&number]))).collect();
        let removed = self.graph.trim();
        let removed = self.set(&removed);
        if is_oversized {
            assert_eq!(removed, self.model.trim(&linear));
            assert!(!self.graph.is_oversized(Level::Staging), "trimmed, but still oversized");
        } else {
            assert!(removed.is_empty(), "trimmed without need");
        }
    }

    pub(in crate::graph) fn check(&mut self) {
        self.graph.check();
        self.check_level(Level::Main, &self.model.main);
        self.check_level(Level::Staging, self.model.staging.as_ref().unwrap_or(&self.model.main));
        self.check_order();
        self.check_diagrams();
    }

    fn check_level(&self, level: Level, state: &State) {
        let graph = &self.graph;
        assert_eq!(graph.len(level), state.entries.len());
        assert_eq!(graph.is_oversized(level), self.model.is_oversized(state));
        for (number, &id) in &self.ids {
            assert_eq!(graph.contains(id, level), state.entries.contains_key(number));
        }
        for (&number, entry) in &state.entries {
            let id = self.ids[&number];
            assert_eq!(graph.feerate(id), Some(entry.feerate));
            assert_eq!(self.set(&graph.ancestors(&[id], level)), state.ancestors(number));
            assert_eq!(self.set(&graph.descendants(&[id], level)), state.descendants(number));
            assert_eq!(self.set(&graph.cluster(id, level)), state.cluster(number));
        }
        let all: Vec<TxRef> = state.entries.keys().map(|number| self.ids[number]).collect();
        assert_eq!(graph.count_clusters(&all, level), state.clusters().len());
        assert_eq!(graph.ancestors(&all, level).len(), all.len());
    }

    fn check_order(&self) {
        let chunk = |chunk: &Chunk| ModelChunk {
            members: self.set(&chunk.nodes),
            fee: chunk.feerate.fee,
            size: chunk.feerate.size,
        };
        let chunks: Vec<Chunk> = self.graph.chunks().collect();
        let expected = self.model.main.order();
        assert_eq!(chunks.iter().map(chunk).collect::<Vec<_>>(), expected);
        assert_eq!(self.graph.worst_chunk().as_ref(), chunks.last());
        let nodes: Vec<TxRef> = chunks.iter().flat_map(|chunk| &chunk.nodes).copied().collect();
        for (at, &id) in nodes.iter().enumerate() {
            for (other_at, &other) in nodes.iter().enumerate() {
                assert_eq!(self.graph.compare(id, other), at.cmp(&other_at));
            }
            let own = chunks.iter().find(|chunk| chunk.nodes.contains(&id)).unwrap();
            assert_eq!(self.graph.chunk_feerate(id), Some(own.feerate));
            assert!(self.graph.cluster_chunks(id).contains(own));
            let earlier = self.set(&nodes[..at]);
            let number = self.number(id);
            assert!(self.model.main.entries[&number].ancestors.is_subset(&earlier), "an ancestor comes later");
        }
    }

    /// Both diagrams lack unchanged clusters, as Core's do. The comparison does not depend on them if no fee is
    /// negative; otherwise a diagram, which is level after its last chunk, is not concave.
    fn check_diagrams(&mut self) {
        let Some(staging) = &self.model.staging else {
            assert_eq!(self.graph.diagrams(), None);
            return;
        };
        let diagram = |state: &State| Diagram::new(state.order().iter().map(ModelChunk::feerate).collect());
        let (full_main, full_staging) = (diagram(&self.model.main), diagram(staging));
        let (main, staging) = self.graph.diagrams().unwrap();
        if [&full_main, &full_staging].iter().all(|full| full.chunks().iter().all(|chunk| chunk.fee >= 0)) {
            assert_eq!(staging.compare(&main), full_staging.compare(&full_main));
        }
        let rest = |full: &Diagram, part: &Diagram| {
            let mut rest = full.chunks().to_vec();
            for chunk in part.chunks() {
                rest.swap_remove(rest.iter().position(|other| other == chunk).unwrap());
            }
            rest.sort_by_key(|chunk| (chunk.fee, chunk.size));
            rest
        };
        assert_eq!(rest(&full_main, &main), rest(&full_staging, &staging), "only unchanged clusters are left out");
        if main.chunks().is_empty() && staging.chunks().is_empty() {
            assert_eq!(staging.compare(&main), Some(Ordering::Equal));
        }
    }
}
