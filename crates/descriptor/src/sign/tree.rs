//! The script tree of a taproot output: Core's `TaprootBuilder` and `TaprootSpendData`.
//!
//! Input: leaves from left to right with their depths, and the internal key. Output: the root, the output key, and the
//! control block of each leaf. Cost: one hash per node; a control block of up to 4 KB for each leaf, unless none is
//! wanted.

use super::{ControlBlock, LeafScripts};
use lydian_hash::TAP_TWEAK;
use lydian_script::sighash::{compute_tapbranch_hash, compute_tapleaf_hash};
use secp256k1::{Parity, Scalar, XOnlyPublicKey};

/// What spends a taproot output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaprootSpend {
    pub internal_key: Option<[u8; 32]>,
    pub merkle_root: Option<[u8; 32]>,
    pub scripts: LeafScripts,
}

impl TaprootSpend {
    /// Adds what is known from elsewhere about the same output.
    pub fn merge(&mut self, other: TaprootSpend) {
        self.internal_key = self.internal_key.or(other.internal_key);
        self.merkle_root = self.merkle_root.or(other.merkle_root);
        for (script, control_blocks) in other.scripts {
            self.scripts.entry(script).or_default().extend(control_blocks);
        }
    }
}

/// Depth, leaf version and script.
pub type TaprootLeaf = (u8, u8, Vec<u8>);

/// The hashes of the other branches, from a leaf to the root.
type Path = Vec<[u8; 32]>;

/// A whole tree, or none, under an internal key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaprootTree {
    internal_key: [u8; 32],
    output_key: [u8; 32],
    merkle_root: Option<[u8; 32]>,
    leaves: Vec<TaprootLeaf>,
    /// For each leaf its control block, or none at all.
    control_blocks: Vec<Vec<u8>>,
}

/// A subtree: its depth, its hash, and its leaves with the paths from them.
struct Branch {
    depth: usize,
    hash: [u8; 32],
    leaves: Vec<(TaprootLeaf, Path)>,
}

impl TaprootTree {
    /// Core's `TAPROOT_CONTROL_MAX_NODE_COUNT`.
    pub const DEPTH_MAX: usize = 128;

    /// Whether leaves of these depths make exactly one tree.
    pub fn is_complete(depths: impl Iterator<Item = usize>) -> bool {
        let mut open: Vec<usize> = Vec::new();
        for (index, mut depth) in depths.enumerate() {
            if index > 0 && open.is_empty() || open.last().is_some_and(|last| depth < *last) || is_full(&open) {
                return false;
            }
            while depth > 0 && open.last() == Some(&depth) {
                open.pop();
                depth -= 1;
            }
            open.push(depth);
        }
        open.is_empty() || is_full(&open)
    }

    /// Builds the tree. `None` if the leaves make no whole tree, or the internal key is not on the curve.
    pub fn new(internal_key: [u8; 32], leaves: Vec<TaprootLeaf>) -> Option<TaprootTree> {
        TaprootTree::build(internal_key, leaves, true)
    }

    /// Like [`TaprootTree::new`], of an output that is not spent: the leaves have no control blocks, which may take a
    /// hundred times as much memory as the leaves.
    pub fn without_control_blocks(internal_key: [u8; 32], leaves: Vec<TaprootLeaf>) -> Option<TaprootTree> {
        TaprootTree::build(internal_key, leaves, false)
    }

    fn build(internal_key: [u8; 32], leaves: Vec<TaprootLeaf>, has_paths: bool) -> Option<TaprootTree> {
        if !TaprootTree::is_complete(leaves.iter().map(|(depth, ..)| usize::from(*depth))) {
            return None;
        }
        let mut open: Vec<Branch> = Vec::new();
        for leaf in leaves {
            let (depth, hash) = (usize::from(leaf.0), compute_tapleaf_hash(leaf.1, &leaf.2));
            let mut right = Branch { depth, hash, leaves: vec![(leaf, Vec::new())] };
            while let Some(left) = open.pop_if(|left| left.depth == right.depth && right.depth > 0) {
                right = right.join(left, has_paths);
            }
            open.push(right);
        }
        let root = open.pop();
        let merkle_root = root.as_ref().map(|root| root.hash);
        let (output_key, is_odd) = output_key(&internal_key, merkle_root.as_ref())?;
        let (leaves, paths): (Vec<_>, Vec<_>) = root.map(|root| root.leaves).unwrap_or_default().into_iter().unzip();
        let control_block = |((_, version, _), path): (&TaprootLeaf, Path)| {
            [&[version | u8::from(is_odd)][..], &internal_key, path.as_flattened()].concat()
        };
        let control_blocks = leaves.iter().zip(paths).filter(|_| has_paths).map(control_block).collect();
        Some(TaprootTree { internal_key, output_key, merkle_root, leaves, control_blocks })
    }

    pub fn output_key(&self) -> [u8; 32] {
        self.output_key
    }

    /// The leaves: Core's `GetTreeTuples`. Of two subtrees that are joined, the later
    /// one comes first.
    pub fn leaves(&self) -> &[TaprootLeaf] {
        &self.leaves
    }

    /// Core's `GetSpendData`.
    pub fn spend(&self) -> TaprootSpend {
        let (mut scripts, mut control_blocks) = (LeafScripts::new(), self.control_blocks.iter());
        for (_, version, script) in &self.leaves {
            let all = scripts.entry((script.clone(), *version)).or_default();
            all.extend(control_blocks.next().cloned().map(ControlBlock));
        }
        TaprootSpend { internal_key: Some(self.internal_key), merkle_root: self.merkle_root, scripts }
    }
}

/// Only the root is open.
fn is_full(open: &[usize]) -> bool {
    open == [0]
}

impl Branch {
    fn join(mut self, mut other: Branch, has_paths: bool) -> Branch {
        if has_paths {
            self.leaves.iter_mut().for_each(|(_, path)| path.push(other.hash));
            other.leaves.iter_mut().for_each(|(_, path)| path.push(self.hash));
        }
        self.leaves.append(&mut other.leaves);
        let hash = compute_tapbranch_hash(&self.hash, &other.hash);
        Branch { depth: self.depth - 1, hash, leaves: self.leaves }
    }
}

/// The hash that tweaks an internal key: Core's `ComputeTapTweakHash`.
pub(super) fn tweak_hash(internal_key: &[u8; 32], merkle_root: Option<&[u8; 32]>) -> [u8; 32] {
    match merkle_root {
        Some(root) => TAP_TWEAK.hash(&[internal_key, root]),
        None => TAP_TWEAK.hash(&[internal_key]),
    }
}

/// The output key, and whether its y is odd: Core's `CreateTapTweak`.
pub(super) fn output_key(internal_key: &[u8; 32], merkle_root: Option<&[u8; 32]>) -> Option<([u8; 32], bool)> {
    let tweak = Scalar::from_be_bytes(tweak_hash(internal_key, merkle_root)).ok()?;
    let (key, parity) = XOnlyPublicKey::from_byte_array(*internal_key).ok()?.add_tweak(&tweak).ok()?;
    Some((key.to_byte_array(), parity == Parity::Odd))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Depths and whether they make a tree, as Core's tests of `TaprootBuilder::ValidDepths` have them.
    #[test]
    fn depths_of_whole_trees() {
        for (depths, is_whole) in [
            (&[][..], true),
            (&[0], true),
            (&[1], false),
            (&[1, 1], true),
            (&[0, 0], false),
            (&[0, 1], false),
            (&[1, 2, 2], true),
            (&[2, 2, 1], true),
            (&[2, 1, 2], false),
            (&[2, 2], false),
            (&[1, 1, 1], false),
            (&[2, 2, 2, 2], true),
            (&[2, 2, 2, 2, 1], false),
            (&[2, 2, 2, 2, 0], false),
            (&[3, 3, 2, 1], true),
        ] {
            assert_eq!(TaprootTree::is_complete(depths.iter().copied()), is_whole, "{depths:?}");
        }
    }
    #[test]
    fn a_tree_without_control_blocks_is_the_same() {
        let key = lydian_primitives::hex("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798").unwrap();
        let key: [u8; 32] = key.try_into().unwrap();
        let leaf = |depth: u8, byte: u8| (depth, 0xc0, vec![byte; 3]);
        let leaves = vec![leaf(1, 1), leaf(2, 2), leaf(2, 3)];
        let whole = TaprootTree::new(key, leaves.clone()).unwrap();
        let bare = TaprootTree::without_control_blocks(key, leaves).unwrap();
        assert_eq!((whole.output_key(), whole.leaves()), (bare.output_key(), bare.leaves()));
        let (whole, bare) = (whole.spend(), bare.spend());
        assert_eq!((whole.merkle_root, whole.internal_key), (bare.merkle_root, bare.internal_key));
        assert!(whole.scripts.keys().eq(bare.scripts.keys()));
        let sizes: Vec<usize> = whole.scripts.values().map(|all| all.first().unwrap().0.len()).collect();
        assert_eq!(sizes, [65, 97, 97]);
        assert!(bare.scripts.values().all(BTreeSet::is_empty));
    }
}
