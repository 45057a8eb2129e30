//! The effects of a peer's connection on the rest of the node: its handshake, its addresses, its end.
//!
//! Input: the events of [`crate::peer`]. Output: actions, and updates of the address manager.

use crate::address_relay::fresh_answer;
use crate::manager::{CLOCK_OUT_OF_SYNC, PeerId, PeerManager, Violation};
use crate::peer::{ADDR_TIME_PENALTY_S, AddressesFrom, Context, DisconnectReason, Event, Note};
use lydian_engine::LogLevel;
use lydian_wire::{Command, TimedAddress, TransportKind};

impl PeerManager {
    /// Calls a function of a peer's connection and processes its events.
    pub(in crate::manager) fn talk(
        &mut self,
        id: PeerId,
        act: impl FnOnce(&mut crate::Peer, &mut Context<'_>, &mut Vec<Event>),
    ) {
        let tip = self.context.tip();
        let is_near_tip = self.context.is_near_tip();
        let (now, is_initial_block_download) = (self.context.now, self.context.is_initial_download());
        let mut events = Vec::new();
        let Some(peer) = self.context.peers.get_mut(&id) else { return };
        let mut context = Context {
            local: &self.context.settings.local,
            now,
            best_height: i32::try_from(tip.height.0).unwrap_or(i32::MAX),
            is_near_tip,
            is_initial_block_download,
            own_nonces: &self.own_nonces,
            bans: &self.bans,
            reachable: &self.context.settings.reachable,
            random: &mut self.context.random,
        };
        act(&mut peer.talk, &mut context, &mut events);
        events.into_iter().for_each(|event| self.follow(id, event));
    }

    fn follow(&mut self, id: PeerId, event: Event) {
        let Some(peer) = self.context.peers.get(&id) else { return };
        let (connection, unix) = (peer.talk.connection, self.context.now.unix);
        match event {
            Event::Send(message) => self.context.send(id, message),
            Event::Disconnect(DisconnectReason::ConnectedToSelf) => {
                self.context.log_info(format!("connected to self at {}, disconnecting", connection.endpoint));
                self.end_connection(id, "connected to self");
            }
            Event::Disconnect(DisconnectReason::HandshakeTimeout)
                if peer.traffic.transport().0 == TransportKind::Detecting =>
            {
                self.leave(id, "V2 handshake timeout");
            }
            Event::Disconnect(reason) => self.leave(id, reason.sentence()),
            Event::Misbehaving(what) => self.context.misbehaving(id, &Violation::Message(what)),
            Event::Connected => self.greet(id),
            Event::SetServices(services) => self.addrman.set_services(&connection.endpoint, services),
            Event::Good => {
                self.addrman.good(&connection.endpoint, unix);
            }
            Event::TimeOffset(seconds) if !connection.kind.is_inbound() => {
                self.time_offsets.add(seconds);
                let samples = self.time_offsets.len();
                self.context.log_debug(format!("Added time offset {seconds:+}s, total samples {samples}"));
                if self.time_offsets.is_out_of_sync() {
                    self.context.log_at(LogLevel::Warning, CLOCK_OUT_OF_SYNC.to_owned());
                }
            }
            Event::SeenLocal(endpoint) => self.context.settings.local.own.seen(&endpoint.addr),
            Event::TimeOffset(_) => {}
            Event::Store(addresses) => {
                self.addrman.add(&addresses, &connection.endpoint.addr, ADDR_TIME_PENALTY_S, unix);
            }
            Event::Relay { address, is_reachable } => self.relay(id, &address, is_reachable),
            Event::WantsAddresses(from) => self.answer_with_addresses(id, from),
            Event::Message(message) => self.process(id, message),
            Event::Note(note) => self.note(id, &note),
        }
    }

    /// Logs a note.
    fn note(&mut self, id: PeerId, note: &Note) {
        self.context.debug(|context| {
            let log_peer = context.log_peer(id);
            let has_ips = context.switches.has_ips();
            context.peers.get(&id).map_or(String::new(), |peer| note.sentence(id.0, &peer.talk, &log_peer, has_ips))
        });
    }

    /// The handshake is complete.
    fn greet(&mut self, id: PeerId) {
        let Some(peer) = self.context.peers.get(&id) else { return };
        let (is_inbound, nonce) = (peer.kind().is_inbound(), peer.talk.connection.nonce);
        let text = format!(
            "New {} peer connected: transport: {}, version: {}, {}{}",
            peer.kind().name(),
            peer.traffic.transport().0,
            peer.talk.version,
            self.context.log_peer(id),
            // Core prints the autonomous system here if it has an asmap.
            ""
        );
        self.own_nonces.remove(&nonce);
        if is_inbound {
            self.context.log_debug(text)
        } else {
            self.context.log_info(text)
        }
        self.look_after(id);
        self.announce_queued(id);
        self.request_blocks();
    }

    /// Core's `RelayAddress`.
    fn relay(&mut self, from: PeerId, address: &TimedAddress, is_reachable: bool) {
        let peers = self.context.peers.values().filter(|peer| peer.is_ready()).map(|peer| (peer.id.0, &peer.talk));
        let targets = self.secret.relay_targets(address, is_reachable, from.0, peers, self.context.now.unix);
        for id in targets {
            if let Some(peer) = self.context.peers.get_mut(&PeerId(id)) {
                peer.talk.push_addresses(&[*address], &mut self.context.random);
            }
        }
    }

    fn answer_with_addresses(&mut self, id: PeerId, from: AddressesFrom) {
        let (now, bans) = (self.context.now, &self.bans);
        let Some(peer) = self.context.peers.get_mut(&id) else { return };
        let (network, bind) = (peer.link.network(), peer.link.local.key());
        let addresses = match from {
            AddressesFrom::Tables => fresh_answer(&mut self.addrman, bans, now.unix),
            AddressesFrom::Cache => {
                self.answers.answer(network, &bind, &mut self.addrman, bans, now, &mut self.context.random).to_vec()
            }
        };
        peer.talk.push_addresses(&addresses, &mut self.context.random);
    }

    pub(in crate::manager) fn receive(&mut self, id: PeerId, command: Command, payload: Vec<u8>) {
        self.context.debug(|_| format!("received: {} ({} bytes) peer={id}", command.as_str(), payload.len()));
        self.talk(id, |talk, context, out| talk.receive(command, payload, context, out));
    }
}
