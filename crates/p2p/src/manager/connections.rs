//! Connections: which to open, when, and how often to retry. Core's `CConnman`, without its sockets.
//!
//! Input: settings, requests of the operator, results of attempts, the time. Output:
//! [`Action::Connect`](super::Action::Connect) and [`Action::Resolve`](super::Action::Resolve), which the owner of the
//! sockets executes and answers, each once.
//!
//! Invariants: an address has at most one attempt at a time; banned and discouraged addresses are connected to only on
//! the operator's request; while the network is off, there are no attempts; full-relay, block-relay-only, feeler and
//! addr-fetch peers share a fixed number of slots, added nodes have their own. Cost: a look at all peers twice a
//! second. It must never connect by itself or wait for an answer.

mod attempts;
mod automatic;
mod extra;
mod inbound;
mod operator;
mod punish;

pub use operator::AddedNode;

use super::addresses::Addresses;
use super::context::Context;
use crate::outbound::{OUTBOUND_INTERVAL, Outbound};
use crate::peer::ConnectionKind;
use crate::proxies::Proxies;
use crate::seeding::DnsSeed;
use lydian_wire::{Endpoint, NetAddr, Network, Services, TimedAddress};
use operator::{Added, AddedRounds, SpecifiedRounds};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// The maximum number of simultaneous feelers: Core's `MAX_FEELER_CONNECTIONS`.
const FEELERS_MAX: usize = 1;

/// The settings about connections. By default there are no automatic connections, and 125 peers may be connected.
#[derive(Clone, Debug)]
pub struct ConnectSettings {
    /// `-maxconnections`: the maximum number of inbound and automatic connections.
    pub automatic_max: usize,
    /// Automatic connections are made: neither `-connect` nor `-noconnect` was given.
    pub chooses_peers: bool,
    /// `-connect`.
    pub specified: Vec<String>,
    /// `-addnode`.
    pub added: Vec<String>,
    /// `-seednode`.
    pub seednodes: Vec<String>,
    /// `-test=addrman`.
    pub deterministic_addrman: bool,
    /// `-checkaddrman`: the address manager is checked each time after this number of operations; 0 means never.
    pub check_addrman: u32,
    /// `-dnsseed`, after the effects of `-connect` and other options.
    pub dns_seed: bool,
    /// `-forcednsseed`
    pub force_dns_seed: bool,
    /// DNS seeds to use instead of those of the chain: `-signetseednode`.
    pub dns_seeds: Option<Vec<String>>,
    /// `-fixedseeds`
    pub fixed_seeds: bool,
    /// `-dns`: names of peers may be resolved.
    pub resolves_names: bool,
    /// A proxy resolves names, which are passed to it unchanged.
    pub has_name_proxy: bool,
    /// The port for addresses without one.
    pub default_port: u16,
    /// `-v2transport`
    pub v2: bool,
    /// `-networkactive`
    pub is_network_active: bool,
    /// `-proxy` and `-onion`
    pub proxies: Proxies,
    /// `-maxuploadtarget`, in bytes per day; 0 means no limit.
    pub upload_target: u64,
    /// Block-relay-only peers of the previous run.
    pub anchors: Vec<TimedAddress>,
}

impl Default for ConnectSettings {
    fn default() -> Self {
        ConnectSettings {
            automatic_max: 125,
            chooses_peers: false,
            specified: Vec::new(),
            added: Vec::new(),
            seednodes: Vec::new(),
            deterministic_addrman: false,
            check_addrman: 0,
            dns_seed: false,
            force_dns_seed: false,
            dns_seeds: None,
            fixed_seeds: false,
            resolves_names: true,
            has_name_proxy: false,
            default_port: 0,
            v2: true,
            is_network_active: true,
            proxies: Proxies::default(),
            upload_target: 0,
            anchors: Vec::new(),
        }
    }
}

/// The id of a connection attempt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AttemptId(pub u64);

/// The id of a name lookup.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LookupId(pub u64);

/// The reason why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptFailure {
    /// The target did not answer, or not correctly.
    Target { reason: String },
    /// The proxy failed, which says nothing about the target.
    Proxy { reason: String },
}

/// The limit that a connection counts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Slot {
    /// Inbound peers, those of `-connect`, and manual one-time connections.
    #[default]
    None,
    /// Core's `semOutbound`.
    Outbound,
    /// Core's `semAddnode`.
    Added,
}

/// A planned connection.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    kind: ConnectionKind,
    to: Destination,
    v2: bool,
    count_failure: bool,
    slot: Slot,
}

#[derive(Clone, Debug)]
enum Destination {
    Address(TimedAddress),
    Name(String),
}

/// The data about a connection that is kept until it is closed.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// The name given by the operator, or the address: Core's `m_addr_name`.
    pub(super) name: String,
    /// Whether the operator gave the name.
    is_named: bool,
    /// The entry of the address manager.
    pub(super) address: TimedAddress,
    /// Our side of the connection.
    pub(super) local: Endpoint,
    /// It connected through the onion service.
    pub(super) is_onion: bool,
    pub(super) slot: Slot,
    pub(super) prefer_evict: bool,
    pub(super) keyed_netgroup: u64,
    /// It was closed before v2 was negotiated, so v1 is tried next.
    wants_v1: bool,
}

impl Link {
    /// Core's `ConnectedThroughNetwork`.
    pub(super) fn network(&self) -> Network {
        if self.is_onion { Network::TorV3 } else { self.address.endpoint.addr.net_class() }
    }

    /// Creates the link of a connection that the operator did not name, to an address without further data.
    pub(super) fn unnamed(endpoint: Endpoint) -> Link {
        let address = TimedAddress { time: 0, services: Services::NONE, endpoint };
        Link {
            name: endpoint.to_string(),
            is_named: false,
            address,
            local: Endpoint::default(),
            is_onion: false,
            slot: Slot::None,
            prefer_evict: false,
            keyed_netgroup: 0,
            wants_v1: false,
        }
    }
}

/// The state of connections that do not exist yet, and of those in their handshake.
#[derive(Debug)]
pub(super) struct Connections {
    is_active: bool,
    attempts: BTreeMap<AttemptId, attempts::Attempt>,
    lookups: BTreeMap<LookupId, Lookup>,
    last_id: u64,
    added: Vec<Added>,
    specified_rounds: SpecifiedRounds,
    added_rounds: AddedRounds,
    /// Targets to fetch addresses from: Core's `m_addr_fetches`.
    addr_fetches: VecDeque<String>,
    /// Set from the first tick on.
    outbound: Option<Outbound>,
    next_step: Duration,
    extra: extra::Extra,
    /// The nonces of our own connections with an incomplete handshake.
    own_nonces: BTreeSet<u64>,
}

/// The purpose of a name lookup.
#[derive(Clone, Debug)]
enum Lookup {
    Attempt(AttemptId),
    Seed(DnsSeed),
}

impl Connections {
    pub(super) fn new(settings: &ConnectSettings) -> Connections {
        let added = settings.added.iter().map(|target| Added { target: target.clone(), v2: settings.v2 }).collect();
        Connections {
            is_active: settings.is_network_active,
            attempts: BTreeMap::new(),
            lookups: BTreeMap::new(),
            last_id: 0,
            added,
            specified_rounds: SpecifiedRounds::default(),
            added_rounds: AddedRounds::default(),
            addr_fetches: VecDeque::new(),
            outbound: None,
            next_step: Duration::ZERO,
            extra: extra::Extra::default(),
            own_nonces: BTreeSet::new(),
        }
    }

    /// Time has passed. Returns whether the scheduled tasks must run.
    pub(super) fn tend(&mut self, context: &mut Context, addresses: &mut Addresses) -> bool {
        self.begin_choosing(context, addresses);
        self.dial_what_is_due(context);
        if context.now.elapsed < self.next_step {
            return false;
        }
        self.next_step = context.now.elapsed + OUTBOUND_INTERVAL;
        if self.is_active {
            self.step_specified(context, addresses);
            self.step_added(context, addresses);
            self.step_seeds(context, addresses);
            self.step_automatic(context, addresses);
        }
        true
    }

    /// An outbound connection with this nonce begins its handshake.
    pub(super) fn note_nonce(&mut self, nonce: u64) {
        self.own_nonces.insert(nonce);
    }

    /// A handshake is complete, or the connection was closed.
    pub(super) fn forget_nonce(&mut self, nonce: u64) {
        self.own_nonces.remove(&nonce);
    }

    /// The nonces of our own connections with an incomplete handshake.
    pub(super) fn own_nonces(&self) -> &BTreeSet<u64> {
        &self.own_nonces
    }

    fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Returns whether there is a connection or an attempt to this address and port.
    fn is_connected_to(&self, context: &Context, endpoint: &Endpoint) -> bool {
        context.peers.values().any(|peer| peer.talk.connection.endpoint == *endpoint)
            || self.attempts.values().any(|attempt| attempt.endpoint() == Some(*endpoint))
    }

    fn is_connected_to_addr(&self, context: &Context, addr: &NetAddr) -> bool {
        context.peers.values().any(|peer| peer.talk.connection.endpoint.addr == *addr)
            || self.attempts.values().any(|attempt| attempt.endpoint().is_some_and(|end| end.addr == *addr))
    }

    fn is_connected_to_name(&self, context: &Context, name: &str) -> bool {
        context.peers.values().any(|peer| peer.link.name == name)
            || self.attempts.values().any(|attempt| attempt.name() == name)
    }

    /// Returns the number of connections and attempts that take a slot of this kind.
    fn slots_used(&self, context: &Context, slot: Slot) -> usize {
        context.peers.values().filter(|peer| peer.link.slot == slot).count()
            + self.attempts.values().filter(|attempt| attempt.slot() == slot).count()
    }

    /// Core's `min(m_max_automatic_outbound, m_max_automatic_connections)`.
    fn outbound_slots(&self, context: &Context) -> usize {
        let automatic = context.settings.connect.automatic_max;
        let (full, blocks) = crate::outbound::split(automatic);
        (full + blocks + FEELERS_MAX).min(automatic)
    }

    /// Core's `m_max_inbound`.
    fn inbound_max(&self, context: &Context) -> usize {
        let automatic = context.settings.connect.automatic_max;
        let (full, blocks) = crate::outbound::split(automatic);
        automatic.saturating_sub(full + blocks + FEELERS_MAX)
    }
}
