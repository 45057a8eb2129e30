//! Branches with as much work as the active chain, whose blocks must be here in case one of them grows.
//!
//! The download does not want these blocks, because they are not needed to reach the header with the most work. Core's
//! `FindNextBlocksToDownload` requests them from each peer that is on such a branch.
//!
//! Input: the chains of peers. Output: requests outside the path of the download, at most
//! [`COMPACT_BLOCKS_PER_PEER_MAX`] per peer at a time. Invariant: a block that a peer failed to send is not requested
//! from it again until the peer announces a chain. Cost: a look at each peer; for one on such a branch, a walk along
//! its missing blocks.

use super::Blocks;
use crate::limits::COMPACT_BLOCKS_PER_PEER_MAX;
use crate::manager::PeerId;
use crate::manager::context::Context;
use crate::manager::peer::PeerState;
use lydian_chain::{HeaderId, HeaderTree};
use lydian_primitives::{BlockHash, Height};

/// How many blocks above the last common one are checked: Core's `BLOCK_DOWNLOAD_WINDOW`.
const BRANCH_WINDOW: u32 = 1024;

impl Blocks {
    /// Requests the missing blocks of branches with as much work as the active chain.
    pub(super) fn fetch_branches(&mut self, context: &mut Context) {
        let is_initial = context.is_initial_download();
        let branches: Vec<(PeerId, HeaderId)> = context.chain.with_tree(|tree| {
            let tip = tree.tip();
            let branch = |peer: &PeerState| {
                let is_asked = peer.is_ready() && peer.serves_all() && (peer.is_preferred() || !is_initial);
                let is_asked = is_asked && peer.memory.has_block_room();
                let has_room = peer.blocks.in_flight.len() < COMPACT_BLOCKS_PER_PEER_MAX;
                let best = peer.best_known.filter(|best| is_asked && has_room && *best != tip)?;
                let (node, is_done) = (tree.node(best), peer.last_common == Some(best));
                let is_wanted = !node.is_invalid && node.chain_work == tree.node(tip).chain_work;
                (is_wanted && !is_done && peer.blocks.failed_branch != Some(best)).then_some((peer.id, best))
            };
            context.peers.values().filter_map(branch).collect()
        });
        for (id, best) in branches {
            self.fetch_branch(context, id, best);
        }
    }

    fn fetch_branch(&mut self, context: &mut Context, id: PeerId, best: HeaderId) {
        context.note_common_block(id);
        let Some(peer) = context.peers.get(&id) else { return };
        let Some(common) = peer.last_common else { return };
        let room = COMPACT_BLOCKS_PER_PEER_MAX.saturating_sub(peer.blocks.in_flight.len());
        let limited = peer.is_limited();
        let (mut blocks, common) = context.chain.with_tree(|tree| {
            let missing = |node: HeaderId| {
                let (node, end) = (tree.node(node), tree.height(best));
                let is_kept = !limited || end.0 - node.height.0 < crate::limits::LIMITED_PEER_BLOCKS - 2;
                is_kept && node.block.is_none() && !self.is_coming(&node.hash)
            };
            let common = last_stored(tree, common, best);
            let from = tree.height(common).0;
            let to = tree.height(best).0.min(from.saturating_add(BRANCH_WINDOW));
            let nodes = (from + 1..=to).filter_map(|height| tree.ancestor(best, Height(height)));
            let blocks: Vec<BlockHash> =
                nodes.filter(|node| missing(*node)).take(room).map(|node| *tree.hash(node)).collect();
            (blocks, common)
        });
        context.with(id, |peer| peer.last_common = Some(common));
        // A branch that grew may be on the path, which has a window.
        blocks.retain(|hash| self.download.may_request(hash));
        if !blocks.is_empty() {
            blocks.iter().for_each(|hash| self.note_request(context, id, *hash));
            Self::send_request(context, id, &blocks);
        }
    }
}

/// Returns the last block on the way from `common` to `best` up to which all blocks are stored.
fn last_stored(tree: &HeaderTree, common: HeaderId, best: HeaderId) -> HeaderId {
    let heights = tree.height(common).0 + 1..=tree.height(best).0;
    let nodes = heights.map_while(|height| tree.ancestor(best, Height(height)));
    nodes.take_while(|node| tree.node(*node).block.is_some()).last().unwrap_or(common)
}
