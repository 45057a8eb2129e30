//! [`Slots`]: a vector with holes that is published by sharing.
//!
//! Input: values, each at a slot that the caller chooses. Output: the value of a slot, and all values in the order of
//! their slots. A clone shares everything; the next change of either copies the chunk that it touches and the two
//! nodes above.
//!
//! Invariants: a clone never changes. Cost: a lookup follows three pointers; a change of a vector that was cloned since
//! its last one copies [`CHUNK`] values and [`NODE`] pointers. Memory: that of the largest slot ever used.

use std::sync::Arc;

/// Values in a chunk: few, because each that is copied counts references.
const CHUNK: usize = 8;
/// Chunks in a node.
const NODE: usize = 64;

type Chunk<T> = Vec<Option<T>>;
type Node<T> = Vec<Arc<Chunk<T>>>;

/// Values by slot. Clones are cheap and independent.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    root: Arc<Vec<Arc<Node<T>>>>,
    /// A chunk without values, which every new chunk is a clone of.
    empty: Arc<Chunk<T>>,
}

/// The node of a slot, its chunk there, and its place in the chunk.
fn place(slot: usize) -> (usize, usize, usize) {
    (slot / (CHUNK * NODE), slot / CHUNK % NODE, slot % CHUNK)
}

impl<T: Clone> Slots<T> {
    pub(crate) fn new() -> Slots<T> {
        let empty = Arc::new((0..CHUNK).map(|_| None).collect());
        Slots { root: Arc::default(), empty }
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&T> {
        let (node, chunk, at) = place(slot);
        self.root.get(node)?.get(chunk)?.get(at)?.as_ref()
    }

    /// Sets the value of a slot; returns the one before.
    pub(crate) fn set(&mut self, slot: usize, value: T) -> Option<T> {
        let (node, chunk, at) = place(slot);
        let nodes = Arc::make_mut(&mut self.root);
        while nodes.len() <= node {
            nodes.push(Arc::new(vec![Arc::clone(&self.empty); NODE]));
        }
        let chunks = Arc::make_mut(&mut nodes[node]);
        Arc::make_mut(&mut chunks[chunk])[at].replace(value)
    }

    /// Takes the value of a slot. A chunk without the value is not copied.
    pub(crate) fn take(&mut self, slot: usize) -> Option<T> {
        self.get(slot)?;
        let (node, chunk, at) = place(slot);
        let nodes = Arc::make_mut(&mut self.root);
        let chunks = Arc::make_mut(nodes.get_mut(node)?);
        Arc::make_mut(&mut chunks[chunk])[at].take()
    }

    /// All values, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.root.iter().flat_map(|node| node.iter()).flat_map(|chunk| chunk.iter()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Step {
        Set(usize, u32),
        Take(usize),
        Clone,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0usize..1_500, any::<u32>()).prop_map(|(slot, value)| Step::Set(slot, value)),
            3 => (0usize..1_500).prop_map(Step::Take),
            1 => Just(Step::Clone),
        ]
    }

    fn same(slots: &Slots<u32>, model: &BTreeMap<usize, u32>) {
        assert!(slots.iter().eq(model.values()));
        for slot in 0..1_600 {
            assert_eq!(slots.get(slot), model.get(&slot));
        }
    }

    proptest! {
        #[test]
        fn it_is_a_map_and_its_clones_stay(steps in proptest::collection::vec(step(), 1..400)) {
            let (mut slots, mut model) = (Slots::new(), BTreeMap::new());
            let mut kept = Vec::new();
            for step in steps {
                match step {
                    Step::Set(slot, value) => prop_assert_eq!(slots.set(slot, value), model.insert(slot, value)),
                    Step::Take(slot) => prop_assert_eq!(slots.take(slot), model.remove(&slot)),
                    Step::Clone => kept.push((slots.clone(), model.clone())),
                }
            }
            same(&slots, &model);
            kept.iter().for_each(|(slots, model)| same(slots, model));
        }
    }
}
