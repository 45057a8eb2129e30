//! One peer: the handshake, pings, addresses, and the reasons to disconnect.
//!
//! Input: messages with their payloads, the time. Output: [`Event`]s: messages to send, updates for the address
//! manager, messages for the code that handles headers and blocks.
//!
//! Core's `ProcessMessage` and `SendMessages`, as far as they concern only this peer. The order of a handshake:
//!
//! - The side that connects sends `version`; the other side answers with its own; both then send `wtxidrelay`,
//!   `sendaddrv2`, `verack`.
//! - Before `version` everything is ignored, before `verack` everything except negotiation. A second `version` or
//!   `verack` is ignored.
//! - A peer is disconnected for `wtxidrelay`, `sendaddrv2` or `feature` after `verack`, and for `feature` if its
//!   version is too old for it. A feeler is disconnected when it has done its work. So is a peer that does not finish
//!   the handshake in time, is silent for 20 minutes, or does not answer a ping for as long.
//!
//! A payload is decoded only if its message may arrive now: a message that Core would not parse has no consequences.
//! Invariants: after [`Event::Disconnect`] there are no further events; before the handshake is complete, nothing but
//! the handshake is sent; a peer that sends an undecodable payload is not punished, one that exceeds a limit is.
//! Memory: less than 1 kB, plus 1,000 addresses and a filter of 14 kB if addresses are relayed over the connection. It
//! must never read a clock.

mod gossip;
mod handshake;
mod id;
mod keepalive;
mod kind;
mod reason;

pub use gossip::AddressesFrom;
pub use handshake::desirable_services;
pub use id::PeerId;
pub use keepalive::{PING_INTERVAL, TIMEOUT_INTERVAL};
pub use kind::{ConnectionKind, Permissions};
pub use reason::Note;
pub(crate) use reason::misbehaviour;

use crate::bans::Bans;
use crate::local_address::LocalAddresses;
use crate::time::Moment;
use gossip::Gossip;
use keepalive::Keepalive;
use lydian_wire::message::{Command, Message};
use lydian_wire::{DecodeError, Endpoint, Network, Penalty, Services, TimedAddress};
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeSet;
use std::time::Duration;

/// What we announce about ourselves to every peer.
#[derive(Clone, Debug)]
pub struct Local {
    pub services: Services,
    /// In the encoding of [`lydian_wire::message::Version`].
    pub user_agent: Vec<u8>,
    /// We accept no transactions: `-blocksonly`.
    pub ignores_transactions: bool,
    /// `-peertimeout`: the time limit for the handshake.
    pub peer_timeout: Duration,
    /// Our own addresses. If the node listens, one is advertised to each peer once a day.
    pub own: LocalAddresses,
}

/// The environment of a call.
#[derive(Debug)]
pub struct Context<'a> {
    pub local: &'a Local,
    pub now: Moment,
    pub best_height: i32,
    /// The tip is at most about a day old: peers that serve only the last 288 blocks are sufficient.
    pub is_near_tip: bool,
    pub is_initial_block_download: bool,
    /// Nonces of our own connections with an incomplete handshake.
    pub own_nonces: &'a BTreeSet<u64>,
    pub bans: &'a Bans,
    pub reachable: &'a BTreeSet<Network>,
    pub random: &'a mut ChaCha20Rng,
}

/// The output of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Send(Message),
    /// The connection ends; no further events follow.
    Disconnect(DisconnectReason),
    /// The peer violated the protocol; [`Peer::punishment`] returns the consequence.
    Misbehaving(Misbehaviour),
    /// The handshake is complete.
    Connected,
    /// For the address manager: the services of the peer.
    SetServices(Services),
    /// For the address manager: the address works.
    Good,
    /// The peer sees us at this address.
    SeenLocal(Endpoint),
    /// The difference of the peer's clock to ours, in seconds; positive if it is ahead.
    TimeOffset(i64),
    /// For the address manager, with the peer's address as the source and [`ADDR_TIME_PENALTY_S`].
    Store(Vec<TimedAddress>),
    /// A fresh address to relay to one or two other peers (possibly only one if its network is not reachable for us).
    Relay {
        address: TimedAddress,
        is_reachable: bool,
    },
    /// The peer requests addresses: answer with [`Peer::push_addresses`].
    WantsAddresses(AddressesFrom),
    /// A message that is not about the connection. Unwanted transactions are not passed on; refusing an `inv` of
    /// transactions is up to the receiver.
    Message(Message),
    /// For the log.
    Note(Note),
}

/// The time that is subtracted from the times of received addresses.
pub const ADDR_TIME_PENALTY_S: u64 = 2 * 60 * 60;

/// The reason for a disconnection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// It does not offer the services that this kind of connection needs.
    Services {
        offered: Services,
        expected: Services,
    },
    ObsoleteVersion {
        version: i32,
    },
    ConnectedToSelf,
    FeelerCompleted,
    AddrFetchCompleted,
    /// It was asked for addresses and sent none in time.
    AddrFetchTimeout,
    /// This message is allowed only before `verack`.
    AfterVerack {
        command: Command,
    },
    /// `feature` from a peer with a version that is too old for it.
    FeatureVersion {
        version: i32,
    },
    /// An invalid payload that ends the connection without being misbehavior.
    Payload {
        command: Command,
        error: DecodeError,
    },
    /// A request for a service that we do not offer.
    NotOffered {
        command: Command,
    },
    /// A transaction, although we announced that we accept none.
    UnwantedTransaction,
    /// Nothing was ever received, or nothing could ever be sent.
    NoMessage {
        seconds: u64,
        has_received: bool,
        has_sent: bool,
    },
    SendTimeout {
        seconds: u64,
    },
    ReceiveTimeout {
        seconds: u64,
    },
    HandshakeTimeout,
    PingTimeout {
        wait: Duration,
    },
}

/// A violation of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misbehaviour {
    pub command: Command,
    pub error: DecodeError,
}

/// The consequence of misbehavior: Core's `MaybeDiscourageAndDisconnect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punishment {
    /// It is a manual connection or has the permission.
    None,
    /// It has a local address: discouraging it would discourage all local peers.
    Disconnect,
    /// Discourages all peers at its address.
    DisconnectAndDiscourage,
}

/// The properties of a connection before the first message.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    pub kind: ConnectionKind,
    pub endpoint: Endpoint,
    /// Its services according to the address manager.
    pub services: Services,
    pub permissions: Permissions,
    /// The connection goes through a proxy to a name or another network: the `version` message does not contain the
    /// peer's address.
    pub is_proxied: bool,
    /// It connected through our onion service: its address is that of Tor.
    pub is_onion: bool,
    /// Our nonce, random and different for each connection.
    pub nonce: u64,
}

/// A peer. Its public fields are used by `getpeerinfo`, eviction and the selection of peers.
#[derive(Debug)]
pub struct Peer {
    pub connection: Connection,
    pub connected: Moment,
    /// 0 before its `version`.
    pub version: i32,
    pub common_version: i32,
    pub services: Services,
    pub has_all_wanted_services: bool,
    pub user_agent: String,
    pub start_height: i32,
    /// It wants transactions to be announced.
    pub relays_transactions: bool,
    /// Our address as it sees it.
    pub addr_local: Endpoint,
    pub time_offset_s: i64,
    pub wtxid_relay: bool,
    pub wants_addrv2: bool,
    pub prefers_headers: bool,
    pub sent_sendheaders: bool,
    pub provides_compact_blocks: bool,
    /// It asked us to send compact blocks in high-bandwidth mode.
    pub high_bandwidth_from: bool,
    /// We asked it to do so.
    pub high_bandwidth_to: bool,
    is_version_sent: bool,
    is_connected: bool,
    is_over: bool,
    keepalive: Keepalive,
    gossip: Gossip,
}

/// The protocol version before one is negotiated.
const INIT_PROTO_VERSION: i32 = 209;

impl Peer {
    /// Creates a peer for an established connection. For an outbound one, the caller calls [`Peer::begin`] next.
    pub fn new(connection: Connection, now: Moment) -> Self {
        Peer {
            connection,
            connected: now,
            version: 0,
            common_version: INIT_PROTO_VERSION,
            services: Services::NONE,
            has_all_wanted_services: false,
            user_agent: String::new(),
            start_height: -1,
            relays_transactions: false,
            addr_local: Endpoint::default(),
            time_offset_s: 0,
            wtxid_relay: false,
            wants_addrv2: false,
            prefers_headers: false,
            sent_sendheaders: false,
            provides_compact_blocks: false,
            high_bandwidth_from: false,
            high_bandwidth_to: false,
            is_version_sent: false,
            is_connected: false,
            is_over: false,
            keepalive: Keepalive::default(),
            gossip: Gossip::new(now),
        }
    }

    /// Returns whether the handshake is complete and the connection is not over.
    pub fn is_connected(&self) -> bool {
        self.is_connected && !self.is_over
    }

    /// Returns whether the connection ended with [`Event::Disconnect`].
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns whether the address manager records at the end that the address was connected. It does not for
    /// block-relay-only peers, so that this does not reveal the connection.
    pub fn updates_addrman_at_end(&self) -> bool {
        self.is_connected
            && !self.connection.kind.is_inbound()
            && self.connection.kind != ConnectionKind::BlockRelayOnly
    }

    /// Core's `RejectIncomingTxs`.
    pub fn rejects_transactions(&self, local: &Local) -> bool {
        match self.connection.kind {
            ConnectionKind::BlockRelayOnly | ConnectionKind::Feeler => true,
            _ => local.ignores_transactions && !self.connection.permissions.contains(Permissions::RELAY),
        }
    }

    /// Returns the consequence of misbehavior.
    pub fn punishment(&self) -> Punishment {
        if self.connection.permissions.contains(Permissions::NO_BAN) || self.connection.kind == ConnectionKind::Manual {
            Punishment::None
        } else if self.connection.endpoint.addr.is_local() {
            Punishment::Disconnect
        } else {
            Punishment::DisconnectAndDiscourage
        }
    }

    /// Processes a message from the peer. Blocks and other large payloads are passed on without a copy.
    pub fn receive(&mut self, command: Command, payload: Vec<u8>, context: &mut Context<'_>, out: &mut Vec<Event>) {
        if self.is_over || (!self.connection.kind.is_inbound() && !self.is_version_sent) {
            return;
        }
        self.keepalive.received(context.now);
        if command == Command::VERSION && self.version == 0 {
            self.receive_version(&payload, context, out);
        } else if command == Command::VERSION {
            out.push(Event::Note(Note::RedundantVersion));
        } else if self.version == 0 {
            out.push(Event::Note(Note::NonVersion { command }));
        } else if is_negotiation(command) {
            self.receive_negotiation(command, &payload, out);
        } else if self.is_connected {
            self.receive_connected(command, payload, context, out);
        } else {
            out.push(Event::Note(Note::BeforeVerack { command }));
        }
    }

    fn receive_connected(
        &mut self,
        command: Command,
        payload: Vec<u8>,
        context: &mut Context<'_>,
        out: &mut Vec<Event>,
    ) {
        if let Some(reason) = self.refusal(command, context.local) {
            return self.disconnect(reason, out);
        }
        let is_address = command == Command::ADDR || command == Command::ADDRV2;
        if is_address && !self.connection.kind.relays_addresses() {
            return out.push(Event::Note(Note::IgnoredAddresses { command }));
        }
        let bytes = payload.len();
        match Message::decode_owned(&command, payload) {
            Ok(Message::Ping(nonce)) => self.receive_ping(nonce, out),
            Ok(Message::Pong(nonce)) => self.receive_pong(nonce, bytes, context.now, out),
            Ok(Message::Addr(addresses) | Message::AddrV2(addresses)) => {
                self.receive_addresses(addresses, context, out)
            }
            Ok(Message::GetAddr) => self.receive_getaddr(context, out),
            Ok(Message::Unknown { .. }) => out.push(Event::Note(Note::UnknownMessage { command })),
            Ok(message) => out.push(Event::Message(message)),
            Err(error) => self.receive_undecodable(command, bytes, error, out),
        }
    }

    /// Messages that end the connection with any payload.
    fn refusal(&self, command: Command, local: &Local) -> Option<DisconnectReason> {
        let offers_bloom = local.services.contains(Services::BLOOM);
        let permissions = self.connection.permissions;
        match command {
            Command::FILTERLOAD | Command::FILTERADD | Command::FILTERCLEAR if !offers_bloom => {
                Some(DisconnectReason::NotOffered { command })
            }
            Command::MEMPOOL if !offers_bloom => {
                let may = permissions.contains(Permissions::MEMPOOL) || permissions.contains(Permissions::NO_BAN);
                (!may).then_some(DisconnectReason::NotOffered { command })
            }
            Command::TX if self.rejects_transactions(local) => Some(DisconnectReason::UnwantedTransaction),
            _ => None,
        }
    }

    fn receive_undecodable(&mut self, command: Command, bytes: usize, error: DecodeError, out: &mut Vec<Event>) {
        match error.penalty() {
            Penalty::Ignore => out.push(Event::Note(Note::Undecodable { command, bytes, error })),
            Penalty::Disconnect => self.disconnect(DisconnectReason::Payload { command, error }, out),
            Penalty::Misbehaving => self.misbehaving(command, error, out),
        }
    }

    fn misbehaving(&mut self, command: Command, error: DecodeError, out: &mut Vec<Event>) {
        out.push(Event::Misbehaving(Misbehaviour { command, error }));
    }

    fn disconnect(&mut self, reason: DisconnectReason, out: &mut Vec<Event>) {
        if !self.is_over {
            self.is_over = true;
            out.push(Event::Disconnect(reason));
        }
    }

    /// Processes the passage of time: timeouts, pings, queued addresses. Call it at least every few seconds.
    pub fn tick(&mut self, context: &mut Context<'_>, out: &mut Vec<Event>) {
        if self.is_over {
            return;
        }
        if let Some(reason) = self.overdue(context) {
            return self.disconnect(reason, out);
        }
        if self.is_connected {
            if let Some(ping) = self.keepalive.ping(self.common_version, context) {
                out.push(Event::Send(ping));
            }
            self.send_addresses(context, out);
        }
    }

    /// Returns how long the connection has existed.
    pub fn connected_for(&self, now: Moment) -> Duration {
        now.mockable.saturating_sub(self.connected.mockable)
    }
}

fn is_negotiation(command: Command) -> bool {
    matches!(
        command,
        Command::VERACK
            | Command::SENDHEADERS
            | Command::SENDCMPCT
            | Command::WTXIDRELAY
            | Command::SENDADDRV2
            | Command::FEATURE
            | Command::SENDTXRCNCL
    )
}

#[cfg(test)]
mod tests;
