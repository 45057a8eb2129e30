//! [`PeerChain`]: the part of the path that is on a peer's best chain, as two heights.
//!
//! Input: the header tree, the peer's best block, the end of the path. Cost: a walk along skip pointers.

use crate::limits::LIMITED_PEER_BLOCKS;
use lydian_chain::{HeaderId, HeaderTree};
use lydian_primitives::Height;
use std::ops::RangeInclusive;

/// Blocks at the end of a limited peer's range that it may have pruned by the time of the request: Core's buffer "for
/// possible races".
const LIMITED_PEER_BUFFER: u32 = 2;

/// The chain of a peer in relation to the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PeerChain {
    /// The height of its best known block.
    pub best: Height,
    /// The height of the last block of the path that is on its chain.
    pub common: Height,
}

impl PeerChain {
    /// Creates the value for a peer with best block `best`, where `path_end` is the end of the path.
    pub fn of(tree: &HeaderTree, best: HeaderId, path_end: HeaderId) -> PeerChain {
        PeerChain { best: tree.height(best), common: tree.height(tree.fork(best, path_end)) }
    }

    /// Returns the heights of the path that can be requested from the peer. Core requests only the last 286 blocks from
    /// limited peers.
    pub(super) fn range(&self, is_limited: bool) -> RangeInclusive<Height> {
        let depth = LIMITED_PEER_BLOCKS - LIMITED_PEER_BUFFER;
        let lowest = if is_limited { self.best.0.saturating_sub(depth - 1) } else { 0 };
        Height(lowest)..=self.common
    }
}
