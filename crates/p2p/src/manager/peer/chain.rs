//! What is known about the chain of a peer: Core's `UpdateBlockAvailability`, `ProcessBlockAvailability` and the first
//! part of `FindNextBlocksToDownload`.
//!
//! Input: the blocks that a peer announced or sent. Output: its best known block and the last block that it has in
//! common with our chain. Cost: a look at the header tree.

use crate::manager::PeerId;
use crate::manager::context::{Context, Place};
use lydian_chain::HeaderId;
use lydian_primitives::BlockHash;

impl Context {
    /// The peer has this block: Core's `UpdateBlockAvailability`.
    pub(in crate::manager) fn note_block(&mut self, id: PeerId, hash: &BlockHash) {
        self.look_up_unknown(id);
        let found = self.chain.with_tree(|tree| tree.find(hash));
        match found {
            Some(found) => self.note_known(id, found),
            None => self.with(id, |peer| peer.last_unknown = Some(*hash)),
        }
    }

    fn note_known(&mut self, id: PeerId, found: HeaderId) {
        let work = self.place(found).work;
        if self.best_known(id).is_none_or(|best| work >= best.work) {
            self.with(id, |peer| peer.best_known = Some(found));
        }
    }

    /// Checks whether the last unknown block that the peer announced is known by now: Core's
    /// `ProcessBlockAvailability`.
    pub(in crate::manager) fn look_up_unknown(&mut self, id: PeerId) {
        let Some(hash) = self.peers.get(&id).and_then(|peer| peer.last_unknown) else { return };
        if let Some(found) = self.chain.with_tree(|tree| tree.find(&hash)) {
            self.with(id, |peer| peer.last_unknown = None);
            self.note_known(id, found);
        }
    }

    pub(in crate::manager) fn best_known(&self, id: PeerId) -> Option<Place> {
        self.peers.get(&id).and_then(|peer| peer.best_known).map(|best| self.place(best))
    }

    /// Updates the last common block once the peer's chain has as much work as ours: the first part of Core's
    /// `FindNextBlocksToDownload`.
    pub(in crate::manager) fn note_common_block(&mut self, id: PeerId) {
        self.look_up_unknown(id);
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let (Some(best), last) = (peer.best_known, peer.last_common) else { return };
        if last == Some(best) || !peer.talk.is_connected() || !peer.serves_blocks() {
            return;
        }
        let minimum = self.settings.minimum_chain_work;
        peer.last_common = self.chain.with_tree(|tree| {
            let (tip, work) = (tree.tip(), tree.node(best).chain_work);
            if work < tree.node(tip).chain_work || work < minimum {
                return last;
            }
            let fork = tree.fork(best, tip);
            let stays = last.is_some_and(|last| {
                tree.node(fork).chain_work <= tree.node(last).chain_work
                    && tree.ancestor(best, tree.height(last)) == Some(last)
            });
            if stays { last } else { Some(fork) }
        });
    }
}
