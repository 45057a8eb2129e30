//! Inbound connections: which to accept. Core's `CreateNodeFromAcceptedSocket` and `AttemptToEvictConnection`.
//!
//! Banned peers are refused, discouraged ones are accepted only while there are enough free slots. If all slots are
//! taken, another peer is evicted.

use super::{Connections, Link};
use crate::eviction::{Candidate, select_node_to_evict};
use crate::manager::addresses::Addresses;
use crate::manager::context::Context;
use crate::manager::{NewPeer, PeerId};
use crate::peer::Permissions;
use std::time::Duration;

impl Connections {
    /// Returns the state of a new connection, or the reason why it is refused.
    pub(in crate::manager) fn link(
        &mut self,
        context: &mut Context,
        addresses: &mut Addresses,
        new: &NewPeer,
    ) -> Result<Link, &'static str> {
        let mut link = match new.attempt {
            Some(attempt) => {
                self.take_attempt(context, addresses, attempt, new.endpoint).ok_or("connection no longer wanted")?
            }
            None if new.kind.is_inbound() => self.admit(context, addresses, new)?,
            // Opened by other code.
            None => Link::unnamed(new.endpoint),
        };
        (link.local, link.is_onion) = (new.local, new.is_onion);
        link.keyed_netgroup = addresses.keyed_netgroup(&new.endpoint.addr);
        Ok(link)
    }

    /// Returns the data about an inbound connection, or the reason why it is refused.
    fn admit(&mut self, context: &mut Context, addresses: &mut Addresses, new: &NewPeer) -> Result<Link, &'static str> {
        let addr = &new.endpoint.addr;
        let is_trusted = new.permissions.contains(Permissions::NO_BAN);
        let count = context.peers.values().filter(|peer| peer.kind().is_inbound() && !peer.is_leaving).count();
        let is_discouraged = addresses.is_discouraged(addr);
        let from = new.endpoint;
        if !self.is_active {
            context.log_debug(format!("connection from {from} dropped: not accepting new connections"));
            return Err("not accepting new connections");
        }
        if !is_trusted && addresses.is_banned(context, addr) {
            context.log_debug(format!("connection from {from} dropped (banned)"));
            return Err("banned");
        }
        if !is_trusted && count + 1 >= self.inbound_max(context) && is_discouraged {
            context.log_debug(format!("connection from {from} dropped (discouraged)"));
            return Err("discouraged");
        }
        if count >= self.inbound_max(context) && !self.evict_one(context) {
            context.log_debug("failed to find an eviction candidate - connection dropped (full)".to_owned());
            return Err("full");
        }
        Ok(Link { prefer_evict: is_discouraged, ..Link::unnamed(new.endpoint) })
    }

    fn evict_one(&mut self, context: &mut Context) -> bool {
        let candidates = context.peers.values().filter(|peer| !peer.is_leaving).map(|peer| {
            let talk = &peer.talk;
            let addr = talk.connection.endpoint.addr;
            Candidate {
                id: peer.id.0,
                connected: talk.connected.unix,
                min_ping: talk.ping_times().map_or(Duration::MAX, |(_, least)| least),
                last_block: peer.blocks.last_block_time(),
                last_tx: peer.txs.last_time(),
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
        let kind = context.peers.get(&PeerId(id)).map_or("", |peer| peer.kind().name());
        context.leave(PeerId(id), format!("selected {kind} connection for eviction"));
        true
    }
}
