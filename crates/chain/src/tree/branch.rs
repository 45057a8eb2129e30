//! [`Branch`]: a view of one branch of the tree for the rules. Cost of finding an ancestor: one step if it is on the
//! active chain, otherwise about log2(height) steps.

use super::{HeaderId, HeaderTree};
use lydian_consensus::limits::MEDIAN_TIME_SPAN;
use lydian_consensus::{Ancestor, HeaderView};
use lydian_primitives::Height;

/// The chain that ends with one block.
#[derive(Clone, Copy, Debug)]
pub struct Branch<'a> {
    tree: &'a HeaderTree,
    tip: HeaderId,
}

impl<'a> Branch<'a> {
    pub(super) fn new(tree: &'a HeaderTree, tip: HeaderId) -> Branch<'a> {
        Branch { tree, tip }
    }
}

impl HeaderView for Branch<'_> {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        let id = self.tree.ancestor(self.tip, height)?;
        Some(Ancestor { hash: *self.tree.hash(id), header: self.tree.header(id) })
    }

    fn median_time_past(&self, height: Height) -> Option<i64> {
        let mut at = Some(self.tree.ancestor(self.tip, height)?);
        let mut times = Vec::with_capacity(MEDIAN_TIME_SPAN as usize);
        while let Some(id) = at
            && times.len() < MEDIAN_TIME_SPAN as usize
        {
            times.push(i64::from(self.tree.time(id)));
            at = self.tree.parent(id);
        }
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }
}
