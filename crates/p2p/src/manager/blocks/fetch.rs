//! Blocks that the operator requests from a particular peer: `getblockfrompeer`, Core's `FetchBlock`.
//!
//! Input: a peer, a block. Output: the request to the peer; the block arrives like all others and is accepted even if
//! it is not needed otherwise.
//!
//! Invariant: after that, the block is expected only from this peer. A peer that does not answer in time is
//! disconnected, like any peer with an overdue block.

use crate::manager::{PeerId, PeerManager};
use crate::time::Moment;
use lydian_primitives::BlockHash;
use lydian_wire::{Inv, InvType, Message};

impl PeerManager {
    /// Requests a block with a known header from a peer; the error is Core's text.
    pub fn fetch_block(&mut self, id: PeerId, hash: &BlockHash, now: Moment) -> Result<(), &'static str> {
        self.context.now = now;
        if self.context.is_loading() {
            return Err("Loading blocks ...");
        }
        let Some(peer) = self.context.peers.get(&id).filter(|peer| !peer.is_leaving) else {
            return Err("Peer does not exist");
        };
        if !peer.serves_witnesses() {
            return Err("Pre-SegWit peer");
        }
        if !peer.is_ready() {
            return Err("Peer not fully connected");
        }
        self.asked(hash).into_iter().for_each(|other| self.forget_request(other, hash));
        self.note_request(id, *hash);
        self.context.log_debug(format!("Requesting block {hash} from peer={id}"));
        self.context.send(id, Message::GetData(vec![Inv::block(InvType::WITNESS_BLOCK, *hash)]));
        Ok(())
    }
}
