//! [`PeerChain`]: what a peer's best chain has of the path, in two heights. Input: the tree, the peer's best block, the end of the path. Cost: a walk
//! along skip pointers.

use crate::limits::LIMITED_PEER_BLOCKS;
use lydian_chain::{HeaderTree, NodeId};
use lydian_primitives::Height;
use std::ops::RangeInclusive;

/// Blocks at the end of what a limited peer has that it may have lost by the time it is asked: Core's buffer "for possible races".
const LIMITED_PEER_BUFFER: u32 = 2;

/// The chain of a peer, beside the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PeerChain {
    /// Height of the best block that it is known to have.
    pub best: Height,
    /// Height of the last block of the path that is on its chain.
    pub common: Height,
}

impl PeerChain {
    /// Of a peer whose best block is `best`, where the path ends with `path_end`.
    pub fn of(tree: &HeaderTree, best: NodeId, path_end: NodeId) -> PeerChain {
        PeerChain { best: tree.height(best), common: tree.height(tree.fork(best, path_end)) }
    }

    /// The heights of the path that can be asked of it. Core asks limited peers for the last 286 blocks of their chains.
    pub(super) fn range(&self, is_limited: bool) -> RangeInclusive<Height> {
        let depth = LIMITED_PEER_BLOCKS - LIMITED_PEER_BUFFER;
        let lowest = if is_limited { self.best.0.saturating_sub(depth - 1) } else { 0 };
        Height(lowest)..=self.common
    }
}
