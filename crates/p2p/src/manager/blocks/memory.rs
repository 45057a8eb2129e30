//! The peers' use of the shared memory ([`crate::memory`]): which peers have room for a block, and what the manager
//! holds for each.
//!
//! Input: the outstanding requests. Output: correct accounts, and the peers that may be asked. Cost: a few words per
//! peer, ten times per second and after each round of requests.

use super::Blocks;
use crate::manager::PeerId;
use crate::manager::context::Context;
use lydian_consensus::U256;
use std::collections::BTreeSet;

/// The size of a header that waits for the work of its chain.
const HEADER_BYTES: usize = size_of::<lydian_primitives::Header>() + size_of::<U256>();

impl Blocks {
    /// Charges each peer for what is held for it now, and assigns rooms to those with outstanding block requests.
    pub(super) fn charge_peers(context: &mut Context) {
        for peer in context.peers.values_mut() {
            let is_asked = peer.blocks.is_sending();
            if std::mem::replace(&mut peer.blocks.is_asked, is_asked) != is_asked {
                peer.memory.set_asked(is_asked);
            }
            let headers = peer.sync.low_work().map_or(0, crate::headers::HeadersSync::buffered);
            peer.blocks.held.set(headers * HEADER_BYTES);
        }
    }

    /// Returns the peers that may be asked for blocks now: those that have room, then others while rooms are left. Of
    /// these, peers with the first missing block come before the outbound ones, because no other peer may have it.
    pub(super) fn peers_with_room(&self, context: &Context) -> BTreeSet<PeerId> {
        let mut ready: Vec<_> = context.peers.values().filter(|peer| peer.is_ready()).collect();
        let Some(first) = ready.first() else { return BTreeSet::new() };
        let left = first.memory.budget().rooms_left();
        if left >= ready.len() {
            return ready.iter().map(|peer| peer.id).collect();
        }
        ready.sort_by_key(|peer| {
            let is_needed = self.download.has_first_missing(peer.id);
            (!peer.blocks.is_sending(), !is_needed, peer.kind().is_inbound())
        });
        let is_asked = |peer: &&&crate::manager::peer::PeerState| peer.blocks.is_sending();
        let asked = ready.iter().filter(is_asked).count();
        ready.iter().take(asked + left).map(|peer| peer.id).collect()
    }
}
