//! [`Sorted`]: an ordered set of small values that is published by sharing.
//!
//! Input: values; output: the values in order, from either end. A clone shares everything; the next change of either
//! copies the leaf that it touches and the three nodes above. So a writer publishes its order after each change, and a
//! reader takes the best values without a walk over the others.
//!
//! Invariants: a clone never changes; no leaf and no node is empty. Cost: a change is a search in four levels; after a
//! clone it also copies at most [`WIDTH`] values, twice [`WIDTH`] pointers, and those of the root, which has one for
//! some 10,000 values. Memory: a leaf is a third empty on average.

use std::iter::FlatMap;
use std::slice;
use std::sync::Arc;

/// The most values in a leaf, and the most parts of a node: few, because each pointer that is copied counts a
/// reference.
const WIDTH: usize = 32;

/// A part of the level below, and a bound for a search: no value of it is less, except in the first part.
#[derive(Clone, Debug)]
pub(crate) struct Part<T, C> {
    low: T,
    items: Arc<Vec<C>>,
}

pub(crate) type Leaf<T> = Part<T, T>;
pub(crate) type Node<T> = Part<T, Leaf<T>>;
pub(crate) type Branch<T> = Part<T, Node<T>>;

/// A set. Clones are cheap and independent.
#[derive(Clone, Debug)]
pub(crate) struct Sorted<T> {
    root: Arc<Vec<Branch<T>>>,
    len: usize,
}

/// The items of the parts of one level after another.
type Below<'a, I, P, C> = FlatMap<I, slice::Iter<'a, C>, fn(&P) -> slice::Iter<'_, C>>;
type Nodes<'a, T> = Below<'a, slice::Iter<'a, Branch<T>>, Branch<T>, Node<T>>;
type Leaves<'a, T> = Below<'a, Nodes<'a, T>, Node<T>, Leaf<T>>;

/// The values in order.
pub(crate) type Iter<'a, T> = Below<'a, Leaves<'a, T>, Leaf<T>, T>;

/// The part in which a value is, or would be.
fn part_of<T: Ord, C>(parts: &[Part<T, C>], value: &T) -> usize {
    parts.partition_point(|part| part.low <= *value).saturating_sub(1)
}

/// The items of the part in which a value would be, with room for one more: a full part is divided. `low`: of an item.
fn roomy<'a, T: Ord + Copy, C: Clone>(
    parts: &'a mut Vec<Part<T, C>>,
    value: &T,
    low: impl Fn(&C) -> T,
) -> &'a mut Vec<C> {
    let mut at = part_of(parts, value);
    if parts[at].items.len() >= WIDTH {
        let upper = parts[at].items[WIDTH / 2..].to_vec();
        Arc::make_mut(&mut parts[at].items).truncate(WIDTH / 2);
        parts.insert(at + 1, Part { low: low(&upper[0]), items: Arc::new(upper) });
        at = part_of(parts, value);
    }
    let items = &mut parts[at].items;
    if Arc::get_mut(items).is_none_or(|items| items.capacity() < WIDTH) {
        let mut copy = Vec::with_capacity(WIDTH);
        copy.extend_from_slice(items);
        *items = Arc::new(copy);
    }
    Arc::make_mut(items)
}

/// After a removal: drops an empty part, and joins one that has little with a neighbour that has room.
fn mend<T, C: Clone>(parts: &mut Vec<Part<T, C>>, at: usize) {
    let len = parts[at].items.len();
    if len == 0 {
        parts.remove(at);
        return;
    }
    let has_room = |left: &usize| {
        let pair = parts.get(*left..*left + 2);
        pair.is_some_and(|pair| pair[0].items.len() + pair[1].items.len() <= WIDTH / 2)
    };
    if len <= WIDTH / 4
        && let Some(left) = [at, at.saturating_sub(1)].into_iter().find(has_room)
    {
        let right = parts.remove(left + 1);
        Arc::make_mut(&mut parts[left].items).extend_from_slice(&right.items);
    }
}

impl<T: Ord + Copy> Sorted<T> {
    pub(crate) fn new() -> Sorted<T> {
        Sorted { root: Arc::default(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a value. Returns whether it is new.
    pub(crate) fn insert(&mut self, value: T) -> bool {
        let branches = Arc::make_mut(&mut self.root);
        if branches.is_empty() {
            let leaf = Part { low: value, items: Arc::new(vec![value]) };
            let node = Part { low: value, items: Arc::new(vec![leaf]) };
            branches.push(Part { low: value, items: Arc::new(vec![node]) });
            self.len = 1;
            return true;
        }
        let nodes = roomy(branches, &value, |node| node.low);
        let leaves = roomy(nodes, &value, |leaf| leaf.low);
        let values = roomy(leaves, &value, |value| *value);
        let Err(place) = values.binary_search(&value) else { return false };
        values.insert(place, value);
        self.len += 1;
        true
    }

    /// Removes a value. Returns whether it was there; if not, nothing is copied.
    pub(crate) fn remove(&mut self, value: &T) -> bool {
        let Some([branch, node, leaf, place]) = self.place(value) else { return false };
        let branches = Arc::make_mut(&mut self.root);
        let nodes = Arc::make_mut(&mut branches[branch].items);
        let leaves = Arc::make_mut(&mut nodes[node].items);
        Arc::make_mut(&mut leaves[leaf].items).remove(place);
        mend(leaves, leaf);
        mend(nodes, node);
        mend(branches, branch);
        self.len -= 1;
        true
    }

    /// Where a value is, from the root on.
    fn place(&self, value: &T) -> Option<[usize; 4]> {
        let branch = part_of(&self.root, value);
        let nodes = &self.root.get(branch)?.items;
        let node = part_of(nodes, value);
        let leaves = &nodes[node].items;
        let leaf = part_of(leaves, value);
        let place = leaves[leaf].items.binary_search(value).ok()?;
        Some([branch, node, leaf, place])
    }

    pub(crate) fn last(&self) -> Option<&T> {
        self.root.last()?.items.last()?.items.last()?.items.last()
    }

    pub(crate) fn iter(&self) -> Iter<'_, T> {
        let nodes: Nodes<'_, T> = self.root.iter().flat_map(items);
        let leaves: Leaves<'_, T> = nodes.flat_map(items);
        leaves.flat_map(items)
    }
}

fn items<T, C>(part: &Part<T, C>) -> slice::Iter<'_, C> {
    part.items.iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Clone, Debug)]
    enum Step {
        /// Inserts every `by`th value of a range.
        Insert(u32, u32, usize),
        Remove(u32, u32, usize),
        Clone,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            5 => (0u32..20_000, 1u32..3_000, 1usize..9).prop_map(|(from, count, by)| Step::Insert(from, count, by)),
            4 => (0u32..20_000, 1u32..3_000, 1usize..4).prop_map(|(from, count, by)| Step::Remove(from, count, by)),
            1 => Just(Step::Clone),
        ]
    }

    fn same(sorted: &Sorted<u32>, model: &BTreeSet<u32>) {
        assert_eq!(sorted.len(), model.len());
        assert!(sorted.iter().eq(model) && sorted.iter().rev().eq(model.iter().rev()));
        assert_eq!(sorted.last(), model.last());
        let nodes = || sorted.root.iter().flat_map(items);
        let mut lens = sorted.root.iter().map(|branch| branch.items.len()).chain(nodes().map(|node| node.items.len()));
        let mut leaves = nodes().flat_map(items).map(|leaf| leaf.items.len());
        assert!(lens.all(|len| (1..=WIDTH).contains(&len)) && leaves.all(|len| (1..=WIDTH).contains(&len)));
    }

    proptest! {
        #[test]
        fn it_is_a_set_and_its_clones_stay(steps in proptest::collection::vec(step(), 1..30)) {
            let (mut sorted, mut model) = (Sorted::new(), BTreeSet::new());
            let mut kept = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(from, count, by) => (from..from + count).step_by(by).for_each(|value| {
                        assert_eq!(sorted.insert(value), model.insert(value));
                    }),
                    Step::Remove(from, count, by) => (from..from + count).rev().step_by(by).for_each(|value| {
                        assert_eq!(sorted.remove(&value), model.remove(&value));
                    }),
                    Step::Clone => kept.push((sorted.clone(), model.clone())),
                }
            }
            same(&sorted, &model);
            kept.iter().for_each(|(sorted, model)| same(sorted, model));
        }
    }

    /// However they went, the rest is in few leaves.
    #[test]
    fn what_is_left_is_joined() {
        let mut sorted = Sorted::new();
        (0..100_000_u32).for_each(|value| assert!(sorted.insert(value)));
        assert!((0..100_000).filter(|value| value % 50 != 0).all(|value| sorted.remove(&value)));
        let leaves = sorted.root.iter().flat_map(items).flat_map(items).count();
        assert!(sorted.len() == 2_000 && leaves < 4 * 2_000 / WIDTH, "{leaves} leaves");
        assert!(sorted.root.len() < 4, "{} parts of the root", sorted.root.len());
    }

    /// A change after a clone leaves everything else shared.
    #[test]
    fn a_change_copies_one_leaf() {
        let mut sorted = Sorted::new();
        (0..100_000_u32).for_each(|value| assert!(sorted.insert(2 * value)));
        let before = sorted.clone();
        assert!(sorted.insert(77_777) && sorted.remove(&77_776) && !sorted.remove(&99_999));
        let leaves = |sorted: &Sorted<u32>| -> Vec<Arc<Vec<u32>>> {
            sorted.root.iter().flat_map(items).flat_map(items).map(|leaf| Arc::clone(&leaf.items)).collect()
        };
        let (before, after) = (leaves(&before), leaves(&sorted));
        let is_shared = |leaf: &&Arc<Vec<u32>>| before.iter().any(|other| Arc::ptr_eq(leaf, other));
        assert!(after.iter().filter(is_shared).count() >= after.len() - 2, "at most one was divided");
    }
}
