//! The effects of a peer's connection on the rest of the node: its handshake, its addresses, its end.
//!
//! Input: the events of [`crate::peer`]. Output: actions, and updates of the address manager.

use crate::address_relay::fresh_answer;
use crate::manager::{Action, CLOCK_OUT_OF_SYNC, PeerId, PeerManager};
use crate::peer::{ADDR_TIME_PENALTY_S, AddressesFrom, Context, DisconnectReason, Event, Note, misbehaviour};
use lydian_engine::LogLevel;
use lydian_wire::{Command, Message, TimedAddress, TransportKind};
use rand_chacha::rand_core::Rng;

/// How many blocks old the tip may be for limited peers to be sufficient: Core's
/// `NODE_NETWORK_LIMITED_ALLOW_CONN_BLOCKS`.
const LIMITED_PEERS_BLOCKS: i64 = 144;

impl PeerManager {
    /// Calls a function of a peer's connection and processes its events.
    pub(in crate::manager) fn talk(
        &mut self,
        id: PeerId,
        act: impl FnOnce(&mut crate::Peer, &mut Context<'_>, &mut Vec<Event>),
    ) {
        let tip = self.tip();
        let is_near_tip = self.is_near_tip();
        let (now, is_initial_block_download) = (self.now, self.is_initial_download());
        let mut events = Vec::new();
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let mut context = Context {
            local: &self.settings.local,
            now,
            best_height: i32::try_from(tip.height.0).unwrap_or(i32::MAX),
            is_near_tip,
            is_initial_block_download,
            own_nonces: &self.own_nonces,
            bans: &self.bans,
            reachable: &self.settings.reachable,
            random: &mut self.random,
        };
        act(&mut peer.talk, &mut context, &mut events);
        events.into_iter().for_each(|event| self.follow(id, event));
    }

    /// Returns whether peers that have only the last blocks are sufficient.
    pub(in crate::manager) fn is_near_tip(&self) -> bool {
        self.tip_age() / self.settings.params.pow_target_spacing.max(1) < LIMITED_PEERS_BLOCKS
    }

    fn follow(&mut self, id: PeerId, event: Event) {
        let Some(peer) = self.peers.get(&id) else { return };
        let (connection, unix) = (peer.talk.connection, self.now.unix);
        match event {
            Event::Send(message) => self.send(id, message),
            Event::Disconnect(DisconnectReason::ConnectedToSelf) => {
                self.log_info(format!("connected to self at {}, disconnecting", connection.endpoint));
                self.end_connection(id, "connected to self");
            }
            Event::Disconnect(DisconnectReason::HandshakeTimeout)
                if peer.traffic.transport().0 == TransportKind::Detecting =>
            {
                self.leave(id, "V2 handshake timeout");
            }
            Event::Disconnect(reason) => self.leave(id, reason.sentence()),
            Event::Misbehaving(what) => self.misbehaving(id, &misbehaviour(what.command, &what.error)),
            Event::Connected => self.greet(id),
            Event::SetServices(services) => self.addrman.set_services(&connection.endpoint, services),
            Event::Good => {
                self.addrman.good(&connection.endpoint, unix);
            }
            Event::TimeOffset(seconds) if !connection.kind.is_inbound() => {
                self.time_offsets.add(seconds);
                let samples = self.time_offsets.len();
                self.log_debug(format!("Added time offset {seconds:+}s, total samples {samples}"));
                if self.time_offsets.is_out_of_sync() {
                    self.log_at(LogLevel::Warning, CLOCK_OUT_OF_SYNC.to_owned());
                }
            }
            Event::SeenLocal(endpoint) => self.settings.local.own.seen(&endpoint.addr),
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
        self.debug(|manager| {
            let log_peer = manager.log_peer(id);
            let has_ips = manager.switches.has_ips();
            manager.peers.get(&id).map_or(String::new(), |peer| note.sentence(id.0, &peer.talk, &log_peer, has_ips))
        });
    }

    /// The handshake is complete.
    fn greet(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get(&id) else { return };
        let (is_inbound, nonce) = (peer.kind().is_inbound(), peer.talk.connection.nonce);
        let text = format!(
            "New {} peer connected: transport: {}, version: {}, {}{}",
            peer.kind().name(),
            peer.traffic.transport().0,
            peer.talk.version,
            self.log_peer(id),
            // Core prints the autonomous system here if it has an asmap.
            ""
        );
        self.own_nonces.remove(&nonce);
        if is_inbound {
            self.log_debug(text)
        } else {
            self.log_info(text)
        }
        self.look_after(id);
        self.announce_queued(id);
        self.request_blocks();
    }

    /// Core's `RelayAddress`.
    fn relay(&mut self, from: PeerId, address: &TimedAddress, is_reachable: bool) {
        let peers = self.peers.values().filter(|peer| peer.is_ready()).map(|peer| (peer.id.0, &peer.talk));
        let targets = self.secret.relay_targets(address, is_reachable, from.0, peers, self.now.unix);
        for id in targets {
            if let Some(peer) = self.peers.get_mut(&PeerId(id)) {
                peer.talk.push_addresses(&[*address], &mut self.random);
            }
        }
    }

    fn answer_with_addresses(&mut self, id: PeerId, from: AddressesFrom) {
        let (now, bans) = (self.now, &self.bans);
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let (network, bind) = (peer.link.network(), peer.link.local.key());
        let addresses = match from {
            AddressesFrom::Tables => fresh_answer(&mut self.addrman, bans, now.unix),
            AddressesFrom::Cache => {
                self.answers.answer(network, &bind, &mut self.addrman, bans, now, &mut self.random).to_vec()
            }
        };
        peer.talk.push_addresses(&addresses, &mut self.random);
    }

    pub(in crate::manager) fn receive(&mut self, id: PeerId, command: Command, payload: Vec<u8>) {
        self.debug(|_| format!("received: {} ({} bytes) peer={id}", command.as_str(), payload.len()));
        self.talk(id, |talk, context, out| talk.receive(command, payload, context, out));
    }

    pub(in crate::manager) fn new_nonce(&mut self) -> u64 {
        self.random.next_u64()
    }

    pub(in crate::manager) fn send(&mut self, to: PeerId, message: Message) {
        let now = self.now;
        if let Some(peer) = self.peers.get_mut(&to)
            && !peer.is_leaving
        {
            peer.talk.note_sent(now);
            self.actions.push(Action::Send { to, message });
        }
    }
}
