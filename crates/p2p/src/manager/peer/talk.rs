//! The effects of a peer's connection on the rest of the node: its handshake, its addresses, its end.
//!
//! Input: the events of [`crate::peer`]. Output: calls of the parts that an event concerns. Like `manager.rs`, this
//! module routes and keeps nothing.

use crate::manager::headers::Headers;
use crate::manager::{PeerId, PeerManager, Violation};
use crate::peer::{Context, DisconnectReason, Event, Note};
use lydian_wire::{Command, TransportKind};

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
            own_nonces: self.connections.own_nonces(),
            bans: self.addresses.bans(),
            reachable: &self.context.settings.reachable,
            random: &mut self.context.random,
        };
        act(&mut peer.talk, &mut context, &mut events);
        events.into_iter().for_each(|event| self.follow(id, event));
    }

    fn follow(&mut self, id: PeerId, event: Event) {
        let Some(peer) = self.context.peers.get(&id) else { return };
        let connection = peer.talk.connection;
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
            Event::SetServices(services) => self.addresses.set_services(&connection.endpoint, services),
            Event::Good => self.addresses.note_good(&self.context, &connection.endpoint),
            Event::TimeOffset(seconds) if !connection.kind.is_inbound() => {
                self.clock.note(&mut self.context, seconds);
            }
            Event::SeenLocal(endpoint) => self.context.settings.local.own.seen(&endpoint.addr),
            Event::TimeOffset(_) => {}
            Event::Store(addresses) => {
                self.addresses.store(&self.context, &addresses, &connection.endpoint.addr);
            }
            Event::Relay { address, is_reachable } => {
                self.addresses.relay(&mut self.context, id, &address, is_reachable)
            }
            Event::WantsAddresses(from) => self.addresses.answer(&mut self.context, id, from),
            Event::Message(message) => self.process(id, message),
            Event::Note(note) => self.note(id, &note),
        }
    }

    /// Processes one peer in a tick.
    pub(in crate::manager) fn look_after(&mut self, id: PeerId) {
        self.talk(id, crate::Peer::tick);
        if !self.context.peers.get(&id).is_some_and(|peer| peer.is_ready()) {
            return;
        }
        if Headers::wants_announcements(&self.context, id) {
            self.talk(id, |talk, _, out| talk.send_sendheaders(out));
        }
        Headers::look_after(&mut self.context, id);
        self.transactions.look_after(&mut self.context, id);
        self.route();
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
        self.connections.forget_nonce(nonce);
        self.transactions.connected(&self.context, id);
        if is_inbound {
            self.context.log_debug(text)
        } else {
            self.context.log_info(text)
        }
        self.look_after(id);
        self.headers.announce_queued(&mut self.context, id);
        self.request_blocks();
    }

    pub(in crate::manager) fn receive(&mut self, id: PeerId, command: Command, payload: Vec<u8>) {
        self.context.debug(|_| format!("received: {} ({} bytes) peer={id}", command.as_str(), payload.len()));
        self.talk(id, |talk, context, out| talk.receive(command, payload, context, out));
    }
}
