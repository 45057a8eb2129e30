//! The branches of the header tree as a tree, for a reader who asks again and again.
//!
//! Input: [`Leaves`], which the reader keeps. Output: [`Branch`]es, the tips of [`Engine::chain_tips`] with the block
//! at which each leaves another. Invariant: headers are only ever added to the tree, so a header without a child is the
//! end of a branch until one is added. Cost: a look at the headers that are new since the last call,
//! [`HEADERS_AT_ONCE`] under one lock, so that no validating thread waits for a pass over all of them; then a few steps
//! for each pair of branches.

use super::view::{ChainTip, status};
use crate::engine::Engine;
use crate::limits::{BRANCHES_MAX, HEADERS_AT_ONCE};
use lydian_chain::{HeaderId, HeaderTree};
use lydian_coins::Tip;
use std::cmp::Reverse;
use std::collections::HashSet;

/// The headers without a child, as of the last call.
#[derive(Debug, Default)]
pub struct Leaves {
    ids: HashSet<HeaderId>,
    /// The number of headers looked at.
    seen: usize,
}

/// A branch of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    pub tip: ChainTip,
    /// The last block that it shares with the branch at `of` in the list. `None` for the active chain.
    pub fork: Option<Fork>,
}

/// Where a branch leaves another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork {
    pub of: usize,
    pub at: Tip,
}

/// The branches, and the number of those that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branches {
    /// The active chain, then the others, the highest first.
    pub shown: Vec<Branch>,
    pub left_out: usize,
}

impl Leaves {
    /// Looks at the headers that are new.
    fn update(&mut self, engine: &Engine) {
        loop {
            let is_done = engine.with_tree(|tree| {
                for id in tree.ids_after(self.seen).take(HEADERS_AT_ONCE) {
                    if let Some(parent) = tree.parent(id) {
                        self.ids.remove(&parent);
                    }
                    self.ids.insert(id);
                    self.seen += 1;
                }
                self.seen >= tree.len()
            });
            if is_done {
                return;
            }
        }
    }
}

impl Engine {
    /// The number of headers, and the tip: while both are the same, so are the branches, except for marks of validity.
    pub fn branches_version(&self) -> (usize, Tip) {
        self.with_tree(|tree| (tree.len(), tip(tree, tree.tip())))
    }

    /// The branches: those of [`Engine::chain_tips`], at most [`BRANCHES_MAX`].
    pub fn branches(&self, leaves: &mut Leaves) -> Branches {
        leaves.update(self);
        let (mut ids, active) = self.with_tree(|tree| {
            let off = leaves.ids.iter().copied().filter(|id| !tree.is_active(*id));
            let mut off: Vec<(Reverse<u32>, usize, HeaderId)> =
                off.map(|id| (Reverse(tree.height(id).0), id.index(), id)).collect();
            off.sort_unstable();
            (off.into_iter().map(|(_, _, id)| id).collect::<Vec<_>>(), tree.tip())
        });
        let left_out = (ids.len() + 1).saturating_sub(BRANCHES_MAX);
        ids.truncate(BRANCHES_MAX - 1);
        ids.insert(0, active);
        let shown = (0..ids.len()).map(|index| self.with_tree(|tree| branch(tree, &ids, index))).collect();
        Branches { shown, left_out }
    }
}

fn tip(tree: &HeaderTree, id: HeaderId) -> Tip {
    Tip { height: tree.height(id), hash: *tree.hash(id) }
}

/// The branch that ends at `ids[index]`, beside those before it.
fn branch(tree: &HeaderTree, ids: &[HeaderId], index: usize) -> Branch {
    let id = ids[index];
    let node = tree.node(id);
    let forks = ids.iter().take(index).map(|other| tree.fork(id, *other)).enumerate();
    // Of several with the same block, the first.
    let nearest = forks.max_by_key(|(of, fork)| (tree.height(*fork), Reverse(*of)));
    let with_active = tree.height(tree.fork(id, tree.tip()));
    Branch {
        tip: ChainTip {
            height: node.height,
            hash: node.hash,
            branch_length: node.height.0 - with_active.0,
            status: status(tree, id, &node),
        },
        fork: nearest.map(|(of, fork)| Fork { of, at: tip(tree, fork) }),
    }
}
