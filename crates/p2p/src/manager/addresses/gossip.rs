//! The exchange of addresses with peers: relay of fresh ones, answers to `getaddr`.
//!
//! Input: an address from a peer, a request for addresses. Output: addresses queued for peers. See
//! [`crate::address_relay`] for the choices.

use super::Addresses;
use crate::address_relay::fresh_answer;
use crate::manager::PeerId;
use crate::manager::context::Context;
use crate::peer::AddressesFrom;
use lydian_wire::TimedAddress;

impl Addresses {
    /// Core's `RelayAddress`.
    pub(in crate::manager) fn relay(
        &self,
        context: &mut Context,
        from: PeerId,
        address: &TimedAddress,
        is_reachable: bool,
    ) {
        let peers = context.peers.values().filter(|peer| peer.is_ready()).map(|peer| (peer.id.0, &peer.talk));
        let targets = self.secret.relay_targets(address, is_reachable, from.0, peers, context.now.unix);
        for id in targets {
            if let Some(peer) = context.peers.get_mut(&PeerId(id)) {
                peer.talk.push_addresses(&[*address], &mut context.random);
            }
        }
    }

    /// Answers a `getaddr`.
    pub(in crate::manager) fn answer(&mut self, context: &mut Context, id: PeerId, from: AddressesFrom) {
        let (now, bans) = (context.now, &self.bans);
        let Some(peer) = context.peers.get_mut(&id) else { return };
        let (network, bind) = (peer.link.network(), peer.link.local.key());
        let addresses = match from {
            AddressesFrom::Tables => fresh_answer(&mut self.tables, bans, now.unix),
            AddressesFrom::Cache => {
                self.answers.answer(network, &bind, &mut self.tables, bans, now, &mut context.random).to_vec()
            }
        };
        peer.talk.push_addresses(&addresses, &mut context.random);
    }
}
