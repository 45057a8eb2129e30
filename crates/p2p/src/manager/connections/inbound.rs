//! Inbound connections: which to accept. Core's `CreateNodeFromAcceptedSocket` and `AttemptToEvictConnection`.
//!
//! Banned peers are refused, discouraged ones are accepted only while there are enough free slots. If all slots are
//! taken, another peer is evicted.

use super::Link;
use crate::eviction::{Candidate, select_node_to_evict};
use crate::manager::{NewPeer, PeerId, PeerManager};
use crate::peer::Permissions;
use crate::time::UnixTime;
use std::time::Duration;

impl PeerManager {
    /// Returns the data about an inbound connection, or the reason why it is refused.
    pub(in crate::manager) fn admit(&mut self, new: &NewPeer) -> Result<Link, &'static str> {
        let addr = &new.endpoint.addr;
        let is_trusted = new.permissions.contains(Permissions::NO_BAN);
        let count = self.context.peers.values().filter(|peer| peer.kind().is_inbound() && !peer.is_leaving).count();
        let is_discouraged = self.bans.is_discouraged(addr);
        let from = new.endpoint;
        if !self.connector.is_active {
            self.context.log_debug(format!("connection from {from} dropped: not accepting new connections"));
            return Err("not accepting new connections");
        }
        if !is_trusted && self.bans.is_banned(addr, self.context.now.unix) {
            self.context.log_debug(format!("connection from {from} dropped (banned)"));
            return Err("banned");
        }
        if !is_trusted && count + 1 >= self.inbound_max() && is_discouraged {
            self.context.log_debug(format!("connection from {from} dropped (discouraged)"));
            return Err("discouraged");
        }
        if count >= self.inbound_max() && !self.evict_one() {
            self.context.log_debug("failed to find an eviction candidate - connection dropped (full)".to_owned());
            return Err("full");
        }
        Ok(Link { prefer_evict: is_discouraged, ..Link::unnamed(new.endpoint) })
    }

    fn evict_one(&mut self) -> bool {
        let candidates = self.context.peers.values().filter(|peer| !peer.is_leaving).map(|peer| {
            let talk = &peer.talk;
            let addr = talk.connection.endpoint.addr;
            Candidate {
                id: peer.id.0,
                connected: talk.connected.unix,
                min_ping: talk.ping_times().map_or(Duration::MAX, |(_, least)| least),
                last_block: peer.last_block_time,
                // No transaction is accepted as long as there is no mempool.
                last_tx: UnixTime::NEVER,
                relevant_services: talk.has_all_wanted_services,
                relay_txs: talk.relays_transactions,
                bloom_filter: false,
                keyed_netgroup: peer.link.keyed_netgroup,
                prefer_evict: peer.link.prefer_evict,
                is_local: addr.is_local(),
                network: peer.link.network(),
                noban: peer.may(Permissions::NO_BAN),
                inbound: peer.kind().is_inbound(),
            }
        });
        let Some(id) = select_node_to_evict(candidates.collect()) else { return false };
        let kind = self.context.peers.get(&PeerId(id)).map_or("", |peer| peer.kind().name());
        self.leave(PeerId(id), format!("selected {kind} connection for eviction"));
        true
    }
}
