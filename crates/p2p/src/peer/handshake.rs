//! The handshake from `version` to `verack`, and the negotiation in between.
//!
//! Input: payloads. Output: answers, or the end of the connection.
//!
//! The order of messages and decisions is Core's, because others may rely on it. Invariant: the fields of a peer are
//! set once, by its first `version` that could be decoded.

use super::{ConnectionKind, Context, DisconnectReason, Event, Note, Peer};
use crate::time::UnixTime;
use lydian_wire::message::{
    CMPCTBLOCKS_VERSION, Command, FEATURE_VERSION, MIN_PEER_PROTO_VERSION, Message, PROTOCOL_VERSION,
    SENDHEADERS_VERSION, SHORT_IDS_BLOCKS_VERSION, SendCmpct, Version, WTXID_RELAY_VERSION,
};
use lydian_wire::{Endpoint, Services};

/// As a courtesy, BIP-0155 is not announced to older peers.
const ADDRV2_VERSION: i32 = 70016;

impl Peer {
    /// Sends the first message on an outbound connection. An inbound peer sends first.
    pub fn begin(&mut self, context: &mut Context<'_>, out: &mut Vec<Event>) {
        if !self.connection.kind.is_inbound() && !self.is_version_sent {
            self.send_version(context, out);
        }
    }

    /// Asks the peer, once, to announce new blocks with headers. For a peer whose chain is known to have enough work.
    pub fn send_sendheaders(&mut self, out: &mut Vec<Event>) {
        if self.is_connected() && !self.sent_sendheaders && self.common_version >= SENDHEADERS_VERSION {
            self.sent_sendheaders = true;
            out.push(Event::Send(Message::SendHeaders));
        }
    }

    fn send_version(&mut self, context: &Context<'_>, out: &mut Vec<Event>) {
        let endpoint = self.connection.endpoint;
        let is_told =
            endpoint.addr.is_routable() && !self.connection.is_proxied && endpoint.addr.is_addr_v1_compatible();
        let version = Version {
            version: PROTOCOL_VERSION,
            services: context.local.services,
            time: context.now.unix.signed(),
            receiver_services: self.connection.services,
            receiver: if is_told { endpoint } else { Endpoint::default() },
            nonce: self.connection.nonce,
            user_agent: context.local.user_agent.clone(),
            start_height: context.best_height,
            relay: !self.rejects_transactions(context.local),
        };
        self.is_version_sent = true;
        out.push(Event::Note(Note::SendVersion {
            version: version.version,
            blocks: version.start_height,
            them: version.receiver,
            relays_transactions: version.relay,
        }));
        out.push(Event::Send(Message::Version(Box::new(version))));
    }

    pub(super) fn receive_version(&mut self, payload: &[u8], context: &mut Context<'_>, out: &mut Vec<Event>) {
        let version = match Message::decode(&Command::VERSION, payload) {
            Ok(Message::Version(version)) => version,
            Ok(_) => return,
            Err(error) => {
                let (command, bytes) = (Command::VERSION, payload.len());
                return out.push(Event::Note(Note::Undecodable { command, bytes, error }));
            }
        };
        let kind = self.connection.kind;
        if !kind.is_inbound() {
            out.push(Event::SetServices(version.services));
        }
        let expected = desirable_services(version.services, context.is_near_tip);
        let has_all = version.services.contains(expected);
        if kind.expects_services() && !has_all {
            return self.disconnect(DisconnectReason::Services { offered: version.services, expected }, out);
        }
        if version.version < MIN_PEER_PROTO_VERSION {
            return self.disconnect(DisconnectReason::ObsoleteVersion { version: version.version }, out);
        }
        if kind.is_inbound() && context.own_nonces.contains(&version.nonce) {
            return self.disconnect(DisconnectReason::ConnectedToSelf, out);
        }
        if kind.is_inbound() {
            if version.receiver.addr.is_routable() {
                out.push(Event::SeenLocal(version.receiver));
            }
            self.send_version(context, out);
        }
        self.agree(&version, has_all);
        out.push(Event::Note(Note::ReceiveVersion { us: version.receiver, relays_transactions: version.relay }));
        if self.common_version >= WTXID_RELAY_VERSION {
            out.push(Event::Send(Message::WtxidRelay));
        }
        if self.common_version >= ADDRV2_VERSION {
            out.push(Event::Send(Message::SendAddrV2));
        }
        out.push(Event::Send(Message::Verack));
        if !kind.is_inbound() {
            if kind.relays_addresses() {
                self.gossip.begin(context.random);
                self.gossip.getaddr_sent();
                out.push(Event::Send(Message::GetAddr));
            }
            out.push(Event::Good);
        }
        self.time_offset_s = UnixTime(u64::try_from(version.time).unwrap_or(0)).since(context.now.unix);
        out.push(Event::TimeOffset(self.time_offset_s));
        if kind == ConnectionKind::Feeler {
            self.disconnect(DisconnectReason::FeelerCompleted, out);
        }
    }

    fn agree(&mut self, version: &Version, has_all_wanted_services: bool) {
        self.version = version.version;
        self.common_version = version.version.min(PROTOCOL_VERSION);
        self.services = version.services;
        self.has_all_wanted_services = has_all_wanted_services;
        self.addr_local = version.receiver;
        self.user_agent = version.clean_user_agent();
        self.start_height = version.start_height;
        let is_for_blocks = matches!(self.connection.kind, ConnectionKind::BlockRelayOnly | ConnectionKind::Feeler);
        self.relays_transactions = version.relay && !is_for_blocks;
    }

    /// Processes the messages that are allowed between `version` and `verack`, some of them also later.
    pub(super) fn receive_negotiation(&mut self, command: Command, payload: &[u8], out: &mut Vec<Event>) {
        let is_early_only = matches!(command, Command::WTXIDRELAY | Command::SENDADDRV2 | Command::FEATURE);
        if is_early_only && self.is_connected {
            return self.disconnect(DisconnectReason::AfterVerack { command }, out);
        }
        if command == Command::FEATURE && self.common_version < FEATURE_VERSION {
            return self.disconnect(DisconnectReason::FeatureVersion { version: self.common_version }, out);
        }
        match Message::decode(&command, payload) {
            Ok(Message::Verack) => self.receive_verack(out),
            Ok(Message::SendHeaders) => self.prefers_headers = true,
            Ok(Message::SendCmpct(wish)) if wish.version == CMPCTBLOCKS_VERSION => {
                self.provides_compact_blocks = true;
                self.high_bandwidth_from = wish.high_bandwidth;
            }
            Ok(Message::WtxidRelay) if self.common_version < WTXID_RELAY_VERSION => {
                out.push(Event::Note(Note::OldWtxidRelay { version: self.common_version }));
            }
            Ok(Message::WtxidRelay) if self.wtxid_relay => out.push(Event::Note(Note::DuplicateWtxidRelay)),
            Ok(Message::WtxidRelay) => self.wtxid_relay = true,
            Ok(Message::SendAddrV2) => self.wants_addrv2 = true,
            // Features and reconciliation: we offer none, so there is no agreement.
            Ok(Message::Feature(feature)) => {
                let id = String::from_utf8_lossy(&feature.id).into_owned();
                out.push(Event::Note(Note::UnknownFeature { id }));
            }
            _ if command == Command::SENDTXRCNCL => out.push(Event::Note(Note::Reconciliation)),
            Ok(_) => {}
            Err(error) => self.receive_undecodable(command, payload.len(), error, out),
        }
    }

    fn receive_verack(&mut self, out: &mut Vec<Event>) {
        if self.is_connected {
            return out.push(Event::Note(Note::RedundantVerack));
        }
        self.is_connected = true;
        if self.common_version >= SHORT_IDS_BLOCKS_VERSION {
            let offer = SendCmpct { high_bandwidth: false, version: CMPCTBLOCKS_VERSION };
            out.push(Event::Send(Message::SendCmpct(offer)));
        }
        out.push(Event::Connected);
    }
}

/// Core's `GetDesirableServiceFlags`: near the tip, a peer that serves only the last blocks is sufficient.
pub fn desirable_services(offered: Services, is_near_tip: bool) -> Services {
    if offered.contains(Services::NETWORK_LIMITED) && is_near_tip {
        Services::NETWORK_LIMITED | Services::WITNESS
    } else {
        Services::NETWORK | Services::WITNESS
    }
}
