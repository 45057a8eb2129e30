//! [`Slots`]: a vector with holes that is published by sharing.
//!
//! Input: values, each at a slot that the caller chooses. Output: the value of a slot, and all values in the order of
//! their slots. A clone shares everything; the next change of either copies the chunk that it touches and the three
//! nodes above.
//!
//! Invariants: a clone never changes. Cost: a lookup follows four pointers; a change of a vector that was cloned since
//! its last one copies [`CHUNK`] values, twice [`NODE`] pointers, and those of the root, which has one for 8,192 slots.
//! Memory: that of the largest slot ever used.

use std::sync::Arc;

/// Values in a chunk: few, because each that is copied counts references.
const CHUNK: usize = 8;
/// Chunks in a node, and nodes in a branch.
const NODE: usize = 32;

type Chunk<T> = Vec<Option<T>>;
type Node<T> = Vec<Arc<Chunk<T>>>;
type Branch<T> = Vec<Arc<Node<T>>>;

/// Values by slot. Clones are cheap and independent.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    root: Arc<Vec<Arc<Branch<T>>>>,
    /// A chunk without values, which every new chunk is a clone of.
    empty: Arc<Chunk<T>>,
}

/// The branch of a slot, its node there, its chunk in the node, and its place in the chunk.
fn place(slot: usize) -> [usize; 4] {
    let chunk = slot / CHUNK;
    [chunk / NODE / NODE, chunk / NODE % NODE, chunk % NODE, slot % CHUNK]
}

impl<T: Clone> Slots<T> {
    pub(crate) fn new() -> Slots<T> {
        let empty = Arc::new((0..CHUNK).map(|_| None).collect());
        Slots { root: Arc::default(), empty }
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&T> {
        let [branch, node, chunk, at] = place(slot);
        self.root.get(branch)?.get(node)?.get(chunk)?.get(at)?.as_ref()
    }

    /// Sets the value of a slot; returns the one before.
    pub(crate) fn set(&mut self, slot: usize, value: T) -> Option<T> {
        let [branch, node, chunk, at] = place(slot);
        let branches = Arc::make_mut(&mut self.root);
        while branches.len() <= branch {
            let node = Arc::new(vec![Arc::clone(&self.empty); NODE]);
            branches.push(Arc::new(vec![node; NODE]));
        }
        let nodes = Arc::make_mut(&mut branches[branch]);
        let chunks = Arc::make_mut(&mut nodes[node]);
        Arc::make_mut(&mut chunks[chunk])[at].replace(value)
    }

    /// Takes the value of a slot. A chunk without the value is not copied.
    pub(crate) fn take(&mut self, slot: usize) -> Option<T> {
        self.get(slot)?;
        let [branch, node, chunk, at] = place(slot);
        let branches = Arc::make_mut(&mut self.root);
        let nodes = Arc::make_mut(branches.get_mut(branch)?);
        let chunks = Arc::make_mut(&mut nodes[node]);
        Arc::make_mut(&mut chunks[chunk])[at].take()
    }

    /// All values, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let chunks = self.root.iter().flat_map(|branch| branch.iter()).flat_map(|node| node.iter());
        chunks.flat_map(|chunk| chunk.iter()).flatten()
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

    /// Between the slots that are used, so that there are several branches.
    const APART: usize = 7;

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0usize..1_500, any::<u32>()).prop_map(|(slot, value)| Step::Set(APART * slot, value)),
            3 => (0usize..1_500).prop_map(|slot| Step::Take(APART * slot)),
            1 => Just(Step::Clone),
        ]
    }

    fn same(slots: &Slots<u32>, model: &BTreeMap<usize, u32>) {
        assert!(slots.iter().eq(model.values()));
        for slot in (0..1_600).map(|slot| APART * slot) {
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
