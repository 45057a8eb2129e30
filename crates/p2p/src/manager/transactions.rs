//! Messages about transactions outside the chain. There is no mempool yet, so this node behaves like Core with
//! `-blocksonly`: it announces no transactions and requests none.
//!
//! Input: announcements, requests and fee filters of peers. Output: answers, the end of connections that announce
//! transactions although our `version` message refused them. Cost: none to speak of.

use super::PeerId;
use super::context::Context;
use lydian_primitives::{Amount, BlockHash};
use lydian_wire::{Inv, InvType, Message};

/// Returns the kind of announcement that is ignored, because the peer agreed on the other one. `None`: the peer is
/// gone.
pub(super) fn ignored_kind(context: &Context, id: PeerId) -> Option<InvType> {
    let peer = context.peers.get(&id)?;
    Some(if peer.talk.wtxid_relay { InvType::TX } else { InvType::WTX })
}

/// A peer announced something that is not a block. Returns false if the rest of the message must be ignored.
pub(super) fn take_announcement(context: &mut Context, id: PeerId, item: &Inv) -> bool {
    let Some(peer) = context.peers.get(&id) else { return false };
    if !item.kind.is_gen_tx() {
        context.log_debug(format!("Unknown inv type \"{item}\" received from peer={id}"));
    } else if peer.talk.rejects_transactions(&context.settings.local) {
        // Our `version` message said that we accept none.
        let hash = BlockHash(item.hash);
        context.leave(id, format!("transaction ({hash}) inv sent in violation of protocol"));
        return false;
    }
    true
}

/// Answers a request for transactions: those that are not here are reported as not found, which is all of them.
pub(super) fn serve(context: &mut Context, id: PeerId, requested: Vec<Inv>) {
    let missing: Vec<_> = requested.into_iter().filter(|item| !context.pool.have(item)).collect();
    if !missing.is_empty() {
        context.send(id, Message::NotFound(missing));
    }
}

pub(super) fn take_fee_filter(context: &mut Context, id: PeerId, fee: Amount) {
    if fee.is_in_money_range() {
        context.with(id, |peer| {
            if peer.talk.relays_transactions {
                peer.fee_filter = fee;
            }
        });
    }
}
