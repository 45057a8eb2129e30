//! [`Index`]: a hash table of small values that is published by sharing.
//!
//! Input: values with a hash that the caller computes. Output: the value for a hash and a test of equality. A clone
//! shares everything; the next change of either copies only the leaf that it touches, and the two nodes above. So a
//! writer publishes its table after each change, and readers keep theirs for as long as they like.
//!
//! Invariants: a clone never changes. Values are `Copy`, mostly the slot of what is looked for, so that copying a leaf
//! counts no references. Cost: a lookup as in any hash table; a change of a table that was cloned since its last one
//! copies 64 pointers and a leaf, which has one of 1,024 parts of the values. Memory: 4 bytes beside each value, and
//! the free places of the leaves.

use hashbrown::HashTable;
use std::sync::Arc;

/// Nodes in the root, and leaves in a node.
const WIDTH: usize = 32;
const WIDTH_BITS: u32 = WIDTH.ilog2();

type Leaf<T> = HashTable<Item<T>>;
type Node<T> = Vec<Arc<Leaf<T>>>;

#[derive(Clone, Copy, Debug)]
struct Item<T> {
    /// The low half of the hash.
    tag: u32,
    value: T,
}

impl<T> Item<T> {
    /// The hash for the table of the leaf, which uses the low bits and the highest seven.
    fn hash(&self) -> u64 {
        spread(self.tag)
    }
}

/// A hash of 64 bits from the half that is kept (multiplication by the golden ratio, as in Fibonacci hashing).
fn spread(tag: u32) -> u64 {
    u64::from(tag).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A table of values, of which at most one is equal to another. Clones are cheap and independent.
#[derive(Clone, Debug)]
pub(crate) struct Index<T> {
    root: Arc<Vec<Arc<Node<T>>>>,
    len: usize,
}

/// The place of a leaf, from the bits of the hash that are not kept, and the bits that are.
fn place(hash: u64) -> (usize, usize, u32) {
    let bits = |shift: u32| usize::try_from(hash >> shift).unwrap_or(usize::MAX) % WIDTH;
    let tag = u32::try_from(hash & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    (bits(32), bits(32 + WIDTH_BITS), tag)
}

impl<T: Copy> Index<T> {
    pub(crate) fn new() -> Index<T> {
        // They share one leaf and one node until they change.
        let leaf = Arc::new(Leaf::new());
        let node: Arc<Node<T>> = Arc::new((0..WIDTH).map(|_| Arc::clone(&leaf)).collect());
        Index { root: Arc::new((0..WIDTH).map(|_| Arc::clone(&node)).collect()), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, hash: u64, is_it: impl Fn(T) -> bool) -> Option<T> {
        let (node, leaf, tag) = place(hash);
        let found = self.root[node][leaf].find(spread(tag), |item| item.tag == tag && is_it(item.value));
        found.map(|item| item.value)
    }

    /// Puts a value into the table in place of an equal one, which is returned.
    pub(crate) fn insert(&mut self, hash: u64, value: T, is_it: impl Fn(T) -> bool) -> Option<T> {
        let (leaf, tag) = self.leaf_mut(hash);
        if let Some(item) = leaf.find_mut(spread(tag), |item| item.tag == tag && is_it(item.value)) {
            return Some(std::mem::replace(&mut item.value, value));
        }
        leaf.insert_unique(spread(tag), Item { tag, value }, Item::hash);
        self.len += 1;
        None
    }

    pub(crate) fn remove(&mut self, hash: u64, is_it: impl Fn(T) -> bool) -> Option<T> {
        // A leaf without the value is not copied.
        self.get(hash, &is_it)?;
        let (leaf, tag) = self.leaf_mut(hash);
        let found = leaf.find_entry(spread(tag), |item| item.tag == tag && is_it(item.value)).ok()?;
        let (item, _) = found.remove();
        let few = leaf.len() * 4 < leaf.capacity();
        if few {
            leaf.shrink_to_fit(Item::hash);
        }
        self.len -= 1;
        Some(item.value)
    }

    fn leaf_mut(&mut self, hash: u64) -> (&mut Leaf<T>, u32) {
        let (node, leaf, tag) = place(hash);
        let nodes = Arc::make_mut(&mut self.root);
        let leaves = Arc::make_mut(&mut nodes[node]);
        (Arc::make_mut(&mut leaves[leaf]), tag)
    }

    /// All values, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        self.root.iter().flat_map(|node| node.iter()).flat_map(|leaf| leaf.iter()).map(|item| item.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u16, u32),
        Remove(u16),
        Clone,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0u16..500, any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value)),
            3 => (0u16..500).prop_map(Step::Remove),
            1 => Just(Step::Clone),
        ]
    }

    /// Keys collide: pairs of them have one hash, and many differ only in the bits that choose the leaf.
    fn hash(key: u16) -> u64 {
        u64::from(key / 2) << 32 | u64::from(key / 32)
    }

    type Pair = (u16, u32);

    fn same(table: &Index<Pair>, model: &HashMap<u16, u32>) {
        assert_eq!(table.len(), model.len());
        let mut found: Vec<Pair> = table.iter().collect();
        let mut expected: Vec<Pair> = model.iter().map(|(key, value)| (*key, *value)).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
        for key in 0..500 {
            let found = table.get(hash(key), |pair| pair.0 == key).map(|pair| pair.1);
            assert_eq!(found, model.get(&key).copied());
        }
    }

    proptest! {
        #[test]
        fn it_is_a_map_and_its_clones_stay(steps in proptest::collection::vec(step(), 1..400)) {
            let (mut table, mut model) = (Index::<Pair>::new(), HashMap::new());
            let mut kept = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(key, value) => {
                        let old = table.insert(hash(key), (key, value), |pair| pair.0 == key);
                        prop_assert_eq!(old.map(|pair| pair.1), model.insert(key, value));
                    }
                    Step::Remove(key) => {
                        let old = table.remove(hash(key), |pair| pair.0 == key);
                        prop_assert_eq!(old.map(|pair| pair.1), model.remove(&key));
                    }
                    Step::Clone => kept.push((table.clone(), model.clone())),
                }
            }
            same(&table, &model);
            kept.iter().for_each(|(table, model)| same(table, model));
        }
    }
}
