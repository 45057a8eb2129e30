//! Merkle proofs: of a transaction in its block, and of a header among all headers (`cp_height` of the Electrum
//! protocol).
//!
//! Invariants: the sibling of a last hash without one is the hash itself, as in a block's tree; proofs come from hashes
//! whose root was compared with the header. Cost: a block's tree is made once and kept within [`TREES_BYTES_MAX`]; the
//! tree of all headers grows with the chain, 2 bytes for a header.

use crate::error::QueryError;
use crate::source::Chain;
use lydian_hash::sha256d_64;
use lydian_primitives::{BlockHash, Height, Txid};
use lydian_stdx::lock;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

/// The hashes beside the way from a leaf to the root, the lowest first, and the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MerkleProof {
    pub position: usize,
    pub branch: Vec<[u8; 32]>,
    pub root: [u8; 32],
}

/// The level above one.
fn parents(level: &[[u8; 32]]) -> Vec<[u8; 32]> {
    let mut pairs: Vec<[u8; 64]> = Vec::with_capacity(level.len().div_ceil(2));
    for pair in level.chunks(2) {
        let mut joined = [0; 64];
        let (left, right) = joined.split_at_mut(32);
        left.copy_from_slice(&pair[0]);
        right.copy_from_slice(&pair[pair.len() - 1]);
        pairs.push(joined);
    }
    let mut hashes = vec![[0; 32]; pairs.len()];
    sha256d_64(&pairs, &mut hashes);
    hashes
}

/// The tree of a block's transactions.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The leaves first, the root last.
    levels: Vec<Vec<[u8; 32]>>,
}

impl Tree {
    pub(crate) fn new(leaves: Vec<[u8; 32]>) -> Tree {
        let mut levels = vec![leaves];
        while let Some(level) = levels.last().filter(|level| level.len() > 1) {
            let above = parents(level);
            levels.push(above);
        }
        Tree { levels }
    }

    pub(crate) fn leaves(&self) -> &[[u8; 32]] {
        self.levels.first().map_or(&[], Vec::as_slice)
    }

    fn root(&self) -> [u8; 32] {
        self.levels.last().and_then(|level| level.first()).copied().unwrap_or_default()
    }

    /// `None` beyond the leaves.
    pub(crate) fn proof(&self, position: usize) -> Option<MerkleProof> {
        self.leaves().get(position)?;
        let mut branch = Vec::with_capacity(self.levels.len());
        let mut at = position;
        for level in self.levels.iter().take_while(|level| level.len() > 1) {
            branch.push(*level.get(at ^ 1).or_else(|| level.get(at))?);
            at /= 2;
        }
        Some(MerkleProof { position, branch, root: self.root() })
    }

    fn bytes(&self) -> usize {
        self.levels.iter().map(|level| size_of_val(&level[..])).sum()
    }
}

/// The most memory for trees of blocks.
pub(crate) const TREES_BYTES_MAX: usize = 32 << 20;

/// The trees of blocks that were asked for last.
#[derive(Debug, Default)]
pub(crate) struct Trees {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    trees: HashMap<BlockHash, Arc<Tree>>,
    /// The oldest first.
    order: VecDeque<BlockHash>,
    bytes: usize,
}

impl Trees {
    /// The tree of the block at a height.
    pub(crate) fn get(&self, chain: &dyn Chain, height: Height) -> Result<Arc<Tree>, QueryError> {
        let above = || -> Result<QueryError, QueryError> {
            Ok(QueryError::NoHeight { height: height.0, tip: chain.tip()?.height.0 })
        };
        let Some(hash) = chain.hashes(height, 1)?.pop() else { return Err(above()?) };
        if let Some(tree) = lock(&self.kept).trees.get(&hash) {
            return Ok(Arc::clone(tree));
        }
        let Some((hash, txids)) = chain.txids(height)? else { return Err(above()?) };
        let tree = Arc::new(Tree::new(txids.into_iter().map(|txid: Txid| txid.0).collect()));
        self.keep(hash, &tree);
        Ok(tree)
    }

    fn keep(&self, hash: BlockHash, tree: &Arc<Tree>) {
        let mut kept = lock(&self.kept);
        let Kept { trees, order, bytes } = &mut *kept;
        if trees.insert(hash, Arc::clone(tree)).is_none() {
            order.push_back(hash);
            *bytes += tree.bytes();
        }
        while *bytes > TREES_BYTES_MAX && order.len() > 1 {
            let oldest = order.pop_front().and_then(|hash| trees.remove(&hash));
            *bytes -= oldest.map_or(0, |tree| tree.bytes());
        }
    }
}

/// Leaves below a stored hash: 2 bytes are stored for a header.
const STORED_LEVEL: u32 = 4;
const LEAVES: usize = 1 << STORED_LEVEL;

/// The tree of the hashes of all blocks.
#[derive(Debug, Default)]
pub(crate) struct HeaderTree {
    stored: Mutex<Stored>,
}

/// Hashes over 16 blocks each, from the genesis block on.
#[derive(Debug, Default)]
struct Stored {
    hashes: Vec<[u8; 32]>,
    /// The last block below them.
    last: BlockHash,
}

impl HeaderTree {
    /// The proof of the block at a height in the tree of the blocks up to `last`, which the chain has.
    pub(crate) fn proof(&self, chain: &dyn Chain, height: u32, last: u32) -> Result<MerkleProof, QueryError> {
        let count = last as usize + 1;
        let whole = count / LEAVES;
        let mut low = {
            let mut stored = lock(&self.stored);
            stored.extend(chain, whole)?;
            stored.hashes.get(..whole).unwrap_or_default().to_vec()
        };
        let hashes = |from: usize, count: usize| -> Result<Vec<[u8; 32]>, QueryError> {
            let from = Height(u32::try_from(from).unwrap_or(u32::MAX));
            let hashes: Vec<[u8; 32]> = chain.hashes(from, count)?.into_iter().map(|hash| hash.0).collect();
            if hashes.len() == count { Ok(hashes) } else { Err(QueryError::Moving) }
        };
        let rest = hashes(whole * LEAVES, count % LEAVES)?;
        let group = height as usize / LEAVES;
        let own = if group < whole { hashes(group * LEAVES, LEAVES)? } else { rest.clone() };
        let lift = |level: Vec<[u8; 32]>| (0..STORED_LEVEL).fold(level, |level, _| parents(&level));
        if !rest.is_empty() {
            low.extend(lift(rest));
        }
        // The lower levels are those of the block's own group, the upper ones those of all groups. A group at the end
        // is hashed with itself up to its level, as long as there is something beside it.
        let is_alone = low.len() == 1;
        let mut branch = Vec::new();
        let (mut level, mut at) = (own, height as usize % LEAVES);
        for _ in 0..STORED_LEVEL {
            if is_alone && level.len() == 1 {
                break;
            }
            branch.extend(level.get(at ^ 1).or_else(|| level.get(at)).copied());
            level = parents(&level);
            at /= 2;
        }
        if is_alone {
            let root = level.first().copied().unwrap_or_default();
            return Ok(MerkleProof { position: height as usize, branch, root });
        }
        let upper = Tree::new(low).proof(group).ok_or(QueryError::Moving)?;
        branch.extend(upper.branch);
        Ok(MerkleProof { position: height as usize, branch, root: upper.root })
    }
}

impl Stored {
    /// Has the hashes of `whole` groups.
    fn extend(&mut self, chain: &dyn Chain, whole: usize) -> Result<(), QueryError> {
        let height = |groups: usize| u32::try_from(groups * LEAVES).unwrap_or(u32::MAX);
        if let Some(last) = height(self.hashes.len()).checked_sub(1)
            && chain.hashes(Height(last), 1)?.first() != Some(&self.last)
        {
            // The chain was reorganised below.
            *self = Stored::default();
        }
        while self.hashes.len() < whole {
            let groups = (whole - self.hashes.len()).min(GROUPS_AT_ONCE);
            let hashes = chain.hashes(Height(height(self.hashes.len())), groups * LEAVES)?;
            let last = hashes.last().copied().filter(|_| hashes.len() == groups * LEAVES).ok_or(QueryError::Moving)?;
            let level: Vec<[u8; 32]> = hashes.into_iter().map(|hash| hash.0).collect();
            self.hashes.extend((0..STORED_LEVEL).fold(level, |level, _| parents(&level)));
            self.last = last;
        }
        Ok(())
    }
}

const GROUPS_AT_ONCE: usize = 1_024;
