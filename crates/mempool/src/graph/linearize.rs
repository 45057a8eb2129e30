//! The optimal order of a cluster: the linearization.
//!
//! Input: the transactions of a cluster with fee, size, ancestors and tie key, in any order. Output: the order in which
//! a miner takes them, cut into chunks. The order is the one of Core wherever Core calls its own `optimal`, and it is
//! always optimal: Core searches for a bounded time (`Linearize`), while the split by [`super::flow`] is polynomial.
//!
//! The order is a function of the transactions and their dependencies alone, in four steps:
//!
//! 1. The cluster is split by feerate until each part is a smallest group of one feerate. These are the chunks.
//! 2. Chunks follow each other by topology, then higher feerate, then smaller size, then lower greatest tie key.
//! 3. Transactions in a chunk follow by topology, then higher feerate, then smaller size, then lower tie key
//!    (steps 2 and 3: Core's `GetLinearization`).
//! 4. Each chunk is improved by one backward and one forward pass (Core's `PostLinearize`). Core makes the passes over
//!    the whole cluster, but they never move a transaction past another chunk.
//!
//! `docs/derivations/linearization.md` derives the steps.
//!
//! Cost: step 1 dominates, see [`super::flow`]; steps 2 to 4 take at most n² steps.

use super::bits::{bit, ones};
use super::fee_size::FeeSize;
use super::flow::{Flow, Item, Split};
use crate::limits::CLUSTER_COUNT_MAX;
use std::cmp::Ordering;

/// What the order depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    pub(super) item: Item,
    pub(super) key: [u8; 32],
}

/// A chunk in its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) feerate: FeeSize,
    /// Input positions in the order of mining.
    pub(super) order: Vec<usize>,
    /// The input position of the greatest tie key.
    pub(super) greatest: usize,
}

/// Linearizes clusters. Holds working memory only.
#[derive(Debug)]
pub(super) struct Linearizer {
    flow: Flow,
    items: Vec<Item>,
}

/// A chunk before its transactions are ordered.
struct Group {
    set: u64,
    /// The union of the ancestors of its members.
    ancestors: u64,
    feerate: FeeSize,
    greatest: usize,
}

impl Linearizer {
    pub(super) fn new() -> Linearizer {
        Linearizer { flow: Flow::new(), items: Vec::new() }
    }

    /// Returns the chunks of the cluster `inputs`, which has 1 to 64 members, in mining order.
    pub(super) fn linearize(&mut self, inputs: &[Input]) -> Vec<Piece> {
        debug_assert!(!inputs.is_empty() && inputs.len() <= CLUSTER_COUNT_MAX);
        self.items.clear();
        self.items.extend(inputs.iter().map(|input| input.item));
        let ranked = ranked(inputs);
        let mut groups = self.groups(inputs);
        let by_rule = |a: &Group, b: &Group| {
            let tie = || inputs[a.greatest].key.cmp(&inputs[b.greatest].key);
            a.feerate.compare_mining(&b.feerate).then_with(tie)
        };
        groups.sort_by(by_rule);
        let ancestors = |group: &Group| (group.set, group.ancestors);
        let mut pieces = Vec::with_capacity(groups.len());
        for group in in_topological_order(groups, 0, ancestors) {
            let order = if group.set.is_power_of_two() {
                vec![group.greatest] // The common case, and the only member.
            } else {
                self.order_within(group.set, &ranked)
            };
            pieces.push(Piece { feerate: group.feerate, order, greatest: group.greatest });
        }
        pieces
    }

    /// Steps 3 and 4 for the chunk `set`.
    fn order_within(&self, set: u64, ranked: &[usize]) -> Vec<usize> {
        let members: Vec<usize> = ranked.iter().copied().filter(|&at| set & bit(at) != 0).collect();
        let mut order = in_topological_order(members, !set, |&at| (bit(at), self.items[at].ancestors));
        improve(&self.items, &mut order);
        order
    }

    /// Step 1. The recursion is a stack of sets that are still to be split.
    fn groups(&mut self, inputs: &[Input]) -> Vec<Group> {
        let mut open = vec![super::bits::below(inputs.len())];
        let mut groups = Vec::with_capacity(inputs.len());
        while let Some(set) = open.pop() {
            if set.is_power_of_two() {
                groups.push(Group::new(inputs, set));
                continue;
            }
            match self.flow.split(&self.items, set) {
                Split::First(first) => open.extend([first, set & !first]),
                Split::Groups(sets) => groups.extend(sets.into_iter().map(|set| Group::new(inputs, set))),
            }
        }
        groups
    }
}

impl Group {
    fn new(inputs: &[Input], set: u64) -> Group {
        let mut group =
            Group { set, ancestors: 0, feerate: FeeSize::default(), greatest: set.trailing_zeros() as usize };
        let mut fee: i128 = 0;
        for at in ones(set) {
            let Item { fee: own, size, ancestors } = inputs[at].item;
            fee += i128::from(own);
            group.feerate.size = group.feerate.size.saturating_add(size);
            group.ancestors |= ancestors;
            if inputs[at].key > inputs[group.greatest].key {
                group.greatest = at;
            }
        }
        group.feerate.fee = i64::try_from(fee).unwrap_or(if fee > 0 { i64::MAX } else { i64::MIN });
        group
    }
}

/// Returns the positions by the rule of step 3 without topology.
fn ranked(inputs: &[Input]) -> Vec<usize> {
    let feerate = |at: usize| FeeSize::new(inputs[at].item.fee, inputs[at].item.size);
    let mut ranked: Vec<usize> = (0..inputs.len()).collect();
    ranked.sort_by(|&a, &b| {
        feerate(a).compare_mining(&feerate(b)).then_with(|| inputs[a].key.cmp(&inputs[b].key)).then(a.cmp(&b))
    });
    ranked
}

/// Takes, again and again, the first of `waiting` whose ancestors are all in `done`. `sets` returns the members of an
/// element, and their ancestors.
fn in_topological_order<T>(waiting: Vec<T>, mut done: u64, sets: impl Fn(&T) -> (u64, u64)) -> Vec<T> {
    let mut ordered = Vec::with_capacity(waiting.len());
    let mut waiting: Vec<Option<T>> = waiting.into_iter().map(Some).collect();
    let mut start = 0;
    while start < waiting.len() {
        let is_ready = |slot: &Option<T>| {
            slot.as_ref().is_some_and(|element| {
                let (members, ancestors) = sets(element);
                ancestors & !members & !done == 0
            })
        };
        // Dependencies have no cycle, so an element is always ready.
        let Some(next) = (start..waiting.len()).find(|&at| is_ready(&waiting[at])) else { break };
        if let Some(element) = waiting[next].take() {
            done |= sets(&element).0;
            ordered.push(element);
        }
        while waiting.get(start).is_some_and(Option::is_none) {
            start += 1;
        }
    }
    ordered
}

/// A run of transactions that stay together while [`improve`] moves them.
#[derive(Clone)]
struct Run {
    order: Vec<usize>,
    set: u64,
    /// The ancestors of its members in the forward pass, their descendants in the backward pass.
    bound: u64,
    fee: i128,
    size: i64,
}

/// Step 4: a backward pass, then a forward pass.
fn improve(items: &[Item], order: &mut Vec<usize>) {
    if order.len() < 3 {
        return; // The first one is an ancestor of the second one.
    }
    order.reverse();
    let backward = pass(order, |at| {
        let descendants = order.iter().filter(|&&other| items[other].ancestors & bit(at) != 0);
        let bound = descendants.fold(0, |all, &other| all | bit(other));
        (bound, -i128::from(items[at].fee), items[at].size)
    });
    *order = backward;
    order.reverse();
    *order = pass(order, |at| (items[at].ancestors, i128::from(items[at].fee), items[at].size));
}

/// One pass: each transaction moves to the front past runs of a lower feerate, and joins those it depends on.
fn pass(order: &[usize], facts: impl Fn(usize) -> (u64, i128, i32)) -> Vec<usize> {
    let mut runs: Vec<Run> = Vec::with_capacity(order.len());
    for &at in order {
        let (bound, fee, size) = facts(at);
        let mut run = Run { order: vec![at], set: bit(at), bound, fee, size: i64::from(size) };
        let mut place = runs.len();
        while place > 0 {
            let before = &runs[place - 1];
            if (run.fee * i128::from(before.size)).cmp(&(before.fee * i128::from(run.size))) != Ordering::Greater {
                break;
            }
            place -= 1;
            if run.bound & before.set != 0 {
                let mut joined = runs.remove(place);
                joined.order.append(&mut run.order);
                joined.set |= run.set;
                joined.bound |= run.bound;
                joined.fee += run.fee;
                joined.size += run.size;
                run = joined;
            }
        }
        runs.insert(place, run);
    }
    runs.into_iter().flat_map(|run| run.order).collect()
}
