//! One peer: the handshake, pings, addresses, and who is disconnected for what. Input: commands with their payloads, the time. Output: [`Event`]s: messages to
//! send, what to tell the address manager, messages for whoever looks after headers and blocks.
//!
//! Core's `ProcessMessage` and `SendMessages`, as far as they concern nobody but the peer. The order of a handshake, they and we:
//!
//! * whoever connects sends `version`; the other answers with its own; both then send `wtxidrelay`, `sendaddrv2`, `verack`.
//! * Before `version` everything is ignored, before `verack` all but negotiation. A second `version` or `verack` is ignored.
//! * `wtxidrelay`, `sendaddrv2` and `feature` after `verack`, `feature` from a peer whose version does not know it, and a feeler that did its work:
//!   disconnected. So is whoever does not finish in time, says nothing for 20 minutes, or does not answer a ping for as long.
//!
//! A payload is decoded only if its message may come now: what Core would not look at punishes nobody. Invariants: after [`Event::Disconnect`] nothing more
//! comes out; nothing is sent before the handshake is complete but the handshake; a peer that sends what cannot be read is not punished, one that exceeds a
//! limit is. Memory: under 1 kB, and 1,000 addresses and a filter of 14 kB when addresses go over the connection. It must never read a clock.

mod gossip;
mod handshake;
mod keepalive;
mod kind;
mod reason;

pub use gossip::AddressesFrom;
pub use handshake::desirable_services;
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

/// What we say of ourselves, to every peer.
#[derive(Clone, Debug)]
pub struct Local {
    pub services: Services,
    /// As [`lydian_wire::message::Version`] carries it.
    pub user_agent: Vec<u8>,
    /// We want no transactions: `-blocksonly`, or there is no mempool.
    pub ignores_transactions: bool,
    /// `-peertimeout`: what a handshake may take.
    pub peer_timeout: Duration,
    /// Our own addresses, of which peers are told one once a day, if we listen and know any.
    pub own: LocalAddresses,
}

/// What a call needs of the world around it.
#[derive(Debug)]
pub struct Context<'a> {
    pub local: &'a Local,
    pub now: Moment,
    pub best_height: i32,
    /// The tip is at most a day old or so: peers that serve the last 288 blocks will do.
    pub is_near_tip: bool,
    pub is_initial_block_download: bool,
    /// Nonces of our own connections whose handshake is not complete.
    pub own_nonces: &'a BTreeSet<u64>,
    pub bans: &'a Bans,
    pub reachable: &'a BTreeSet<Network>,
    pub random: &'a mut ChaCha20Rng,
}

/// What comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Send(Message),
    /// The connection is over; nothing more comes out.
    Disconnect(DisconnectReason),
    /// The peer did what it must not; [`Peer::punishment`] tells what follows.
    Misbehaving(Misbehaviour),
    /// The handshake is complete.
    Connected,
    /// For the address manager: what the peer serves.
    SetServices(Services),
    /// For the address manager: the address is good.
    Good,
    /// The peer sees us at this address.
    SeenLocal(Endpoint),
    /// How much the peer's clock is ahead of ours, in seconds.
    TimeOffset(i64),
    /// For the address manager, with the peer's address as the source and [`ADDR_TIME_PENALTY_S`].
    Store(Vec<TimedAddress>),
    /// A fresh address for one or two other peers (one if it is of a network that we do not reach).
    Relay {
        address: TimedAddress,
        is_reachable: bool,
    },
    /// It asks for addresses: answer with [`Peer::push_addresses`].
    WantsAddresses(AddressesFrom),
    /// A message that is not about the connection. Transactions that we want none of do not come; an `inv` of some is the receiver's to refuse.
    Message(Message),
    /// For the log.
    Note(Note),
}

/// How much older an address counts as the peer says.
pub const ADDR_TIME_PENALTY_S: u64 = 2 * 60 * 60;

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// It does not serve what this kind of connection is for.
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
    /// It was asked for addresses and told none.
    AddrFetchTimeout,
    /// This message may come before `verack` only.
    AfterVerack {
        command: Command,
    },
    /// `feature` from a peer with a version before it.
    FeatureVersion {
        version: i32,
    },
    /// A payload that ends the connection without being misbehaviour.
    Payload {
        command: Command,
        error: DecodeError,
    },
    /// A service that we do not offer was asked for.
    NotOffered {
        command: Command,
    },
    /// A transaction, though we said that we want none.
    UnwantedTransaction,
    /// Nothing was ever received, or could ever be sent.
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

/// What a peer did that it must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misbehaviour {
    pub command: Command,
    pub error: DecodeError,
}

/// What misbehaviour costs this peer: Core's `MaybeDiscourageAndDisconnect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punishment {
    /// It is ours, or has the permission.
    None,
    /// It is on this machine: to discourage it would discourage all there.
    Disconnect,
    /// With all others at its address.
    DisconnectAndDiscourage,
}

/// Whom a connection is to, before a word was said.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    pub kind: ConnectionKind,
    pub endpoint: Endpoint,
    /// What the address manager knows of it.
    pub services: Services,
    pub permissions: Permissions,
    /// The connection goes through a proxy to a name or network of its own: the peer's address is not told to it.
    pub is_proxied: bool,
    /// It came through our onion service: its address is that of Tor.
    pub is_onion: bool,
    /// Ours, random, different for each connection.
    pub nonce: u64,
}

/// A peer. What its fields tell is for `getpeerinfo`, eviction and whoever chooses peers.
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
    /// It wants transactions announced.
    pub relays_transactions: bool,
    /// Our address as it sees it.
    pub addr_local: Endpoint,
    pub time_offset_s: i64,
    pub wtxid_relay: bool,
    pub wants_addrv2: bool,
    pub prefers_headers: bool,
    pub sent_sendheaders: bool,
    pub provides_compact_blocks: bool,
    /// It asked for compact blocks without asking.
    pub high_bandwidth_from: bool,
    /// We asked it for them.
    pub high_bandwidth_to: bool,
    is_version_sent: bool,
    is_connected: bool,
    is_over: bool,
    keepalive: Keepalive,
    gossip: Gossip,
}

/// The version that is spoken before anything was agreed.
const INIT_PROTO_VERSION: i32 = 209;

impl Peer {
    /// A connection that stands. Whoever made an outbound one calls [`Peer::begin`] next.
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

    /// The handshake is complete and the connection not over.
    pub fn is_connected(&self) -> bool {
        self.is_connected && !self.is_over
    }

    /// It ended by an [`Event::Disconnect`].
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether the address manager is told, at the end, that the address was there until now: not for those whose connection is nobody's affair.
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

    /// What misbehaviour costs it.
    pub fn punishment(&self) -> Punishment {
        if self.connection.permissions.contains(Permissions::NO_BAN) || self.connection.kind == ConnectionKind::Manual {
            Punishment::None
        } else if self.connection.endpoint.addr.is_local() {
            Punishment::Disconnect
        } else {
            Punishment::DisconnectAndDiscourage
        }
    }

    /// A message of the peer. Blocks and other large payloads are handed through without a copy.
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
            Ok(Message::MemPool) => {}
            Ok(message) => out.push(Event::Message(message)),
            Err(error) => self.receive_undecodable(command, bytes, error, out),
        }
    }

    /// Messages that end the connection whatever their payload.
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

    /// Time has passed: time-outs, pings, addresses that are due. To be called at least every few seconds.
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

    /// How long the connection has stood.
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
