//! Blocks that the operator requests from a particular peer: `getblockfrompeer`, Core's `FetchBlock`.
//!
//! Input: a peer, a block. Output: the request to the peer; the block arrives like all others and is accepted even if
//! it is not needed otherwise.
//!
//! Invariant: after that, the block is expected only from this peer. A peer that does not answer in time is
//! disconnected, like any peer with an overdue block.

use super::Blocks;
use crate::manager::PeerId;
use crate::manager::context::Context;
use lydian_primitives::BlockHash;
use lydian_wire::{Inv, InvType, Message};

impl Blocks {
    /// Requests a block with a known header from a peer; the error is Core's text.
    pub(in crate::manager) fn fetch_block(
        &mut self,
        context: &mut Context,
        id: PeerId,
        hash: &BlockHash,
    ) -> Result<(), &'static str> {
        if context.is_loading() {
            return Err("Loading blocks ...");
        }
        let Some(peer) = context.peers.get(&id).filter(|peer| !peer.is_leaving) else {
            return Err("Peer does not exist");
        };
        if !peer.serves_witnesses() {
            return Err("Pre-SegWit peer");
        }
        if !peer.is_ready() {
            return Err("Peer not fully connected");
        }
        self.asked(hash).into_iter().for_each(|other| self.forget_request(context, other, hash));
        self.note_request(context, id, *hash);
        context.log_debug(format!("Requesting block {hash} from peer={id}"));
        context.send(id, Message::GetData(vec![Inv::block(InvType::WITNESS_BLOCK, *hash)]));
        Ok(())
    }
}
