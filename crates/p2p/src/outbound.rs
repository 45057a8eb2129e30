//! Chooses the next outbound connection.
//!
//! Input: the existing connections, the address manager, the time. Output: an address and a connection type.
//!
//! Core's `ThreadOpenConnections`, called every half second: anchors first, then 8 full-relay and 2 block-relay-only
//! peers, then one more full-relay peer if the tip is stale. After that, at random times: an extra block-relay-only
//! peer that may know a better chain, a feeler that tests an address, a peer in a network without a connection.
//!
//! Invariants: no two lasting IPv4 or IPv6 peers share a netgroup. An address that was tried in the last ten minutes,
//! or that has a port of another service, is chosen only if hardly any other is available. Automatic connections are
//! not made to nodes added by the operator. Cost: at most 100 draws.
//!
//! Attempts in progress count as connections: the caller lists them. Whether a failure counts against an address
//! depends on the established connections only.

use crate::addrman::AddrMan;
use crate::draw;
use crate::limits::{BLOCK_RELAY_PEERS_MAX, FULL_RELAY_PEERS_MAX};
use crate::local_address::LocalAddresses;
use crate::peer::{ConnectionKind, desirable_services};
use crate::time::{Moment, UnixTime};
use lydian_wire::{Endpoint, NetAddr, Network, TimedAddress};
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeSet;
use std::time::Duration;

/// How often [`Outbound::next`] should be called.
pub const OUTBOUND_INTERVAL: Duration = Duration::from_millis(500);
/// Core's `FEELER_SLEEP_WINDOW`: a feeler is delayed by up to this time so that nodes do not synchronize.
pub const FEELER_DELAY_MAX: Duration = Duration::from_secs(1);

const FEELER_INTERVAL: Duration = Duration::from_secs(2 * 60);
const EXTRA_BLOCK_RELAY_INTERVAL: Duration = Duration::from_secs(5 * 60);
const EXTRA_NETWORK_INTERVAL: Duration = Duration::from_secs(5 * 60);
/// The maximum number of draws for one connection.
const TRIES_MAX: u32 = 100;
/// The number of draws after which an address tried in the last ten minutes is accepted.
const TRIES_NOT_RECENT: u32 = 30;
/// The number of draws after which any port is accepted.
const TRIES_GOOD_PORT: u32 = 50;
const RECENT_S: i64 = 10 * 60;
/// From this number of added nodes on, Core does not compare them: a comparison with each for each draw would take too
/// long.
const ADDED_COMPARED_MAX: usize = 24;

/// Ports of other services: an attacker may want us to connect there to attack a third party. Core's `IsBadPort`.
const BAD_PORTS: &[u16] = &[
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
    111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
    540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3306, 3389, 3659, 4045, 5060,
    5061, 5432, 5900, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 10080, 27017,
];

/// Returns whether other services use this port: Core's `IsBadPort`.
pub fn is_bad_port(port: u16) -> bool {
    BAD_PORTS.contains(&port)
}

/// The state when a connection is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    pub now: Moment,
    /// Established connections.
    pub connections: &'a [(ConnectionKind, Endpoint)],
    /// Attempts in progress. They count as connections, except for deciding whether we are online.
    pub attempts: &'a [(ConnectionKind, Endpoint)],
    pub reachable: &'a BTreeSet<Network>,
    /// Our own addresses.
    pub own: &'a LocalAddresses,
    /// Nodes that the operator added (`-addnode`), as written by the operator.
    pub added: &'a [&'a str],
    pub is_near_tip: bool,
    /// The tip is stale: an extra full-relay peer may know a better chain.
    pub wants_extra_full_relay: bool,
    /// The chain is synced: extra block-relay-only peers are tried from now on.
    pub wants_extra_block_relay: bool,
}

/// A connection to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    pub kind: ConnectionKind,
    pub address: TimedAddress,
    /// For [`AddrMan::attempt`]: a failure counts against the address because other peers can be reached.
    pub count_failure: bool,
    /// The address is an anchor of the previous run.
    pub is_anchor: bool,
    /// The network without a connection that this address was chosen from.
    pub preferred: Option<Network>,
}

/// Chooses connections.
#[derive(Clone, Debug)]
pub struct Outbound {
    full_relay_max: usize,
    block_relay_max: usize,
    automatic_max: usize,
    anchors: Vec<TimedAddress>,
    next_feeler: Duration,
    next_extra_block_relay: Duration,
    next_extra_network: Duration,
}

impl<'a> Scene<'a> {
    /// Established connections and attempts in progress.
    fn all(&self) -> impl Iterator<Item = &'a (ConnectionKind, Endpoint)> + use<'a> {
        self.connections.iter().chain(self.attempts)
    }

    /// Core's `AddedNodesContain`.
    fn is_added(&self, endpoint: &Endpoint) -> bool {
        let (addr, whole) = (endpoint.addr.to_string(), endpoint.to_string());
        self.added.len() < ADDED_COMPARED_MAX && self.added.iter().any(|added| *added == addr || *added == whole)
    }
}

/// The kind of address to look for.
#[derive(Clone, Copy)]
enum Choice {
    Anchor,
    Any(ConnectionKind),
    Of(Network),
}

/// Returns the number of full-relay and block-relay-only peers for a value of `-maxconnections`.
pub fn split(automatic_max: usize) -> (usize, usize) {
    let full_relay_max = automatic_max.min(FULL_RELAY_PEERS_MAX);
    (full_relay_max, (automatic_max - full_relay_max).min(BLOCK_RELAY_PEERS_MAX))
}

impl Outbound {
    /// `automatic_max` is `-maxconnections`; `anchors` are those of the previous run.
    pub fn new(automatic_max: usize, anchors: Vec<TimedAddress>, now: Moment, random: &mut ChaCha20Rng) -> Self {
        let (full_relay_max, block_relay_max) = split(automatic_max);
        let mut after = |interval| now.mockable + draw::exponential(random, interval);
        Outbound {
            full_relay_max,
            block_relay_max,
            automatic_max,
            anchors,
            next_feeler: after(FEELER_INTERVAL),
            next_extra_block_relay: after(EXTRA_BLOCK_RELAY_INTERVAL),
            next_extra_network: after(EXTRA_NETWORK_INTERVAL),
        }
    }

    pub fn full_relay_max(&self) -> usize {
        self.full_relay_max
    }

    pub fn block_relay_max(&self) -> usize {
        self.block_relay_max
    }

    /// Returns the connection to make now, if one is wanted and an address is available.
    pub fn next(&mut self, scene: &Scene<'_>, addrman: &mut AddrMan, random: &mut ChaCha20Rng) -> Option<Wish> {
        let choice = self.choose(scene, addrman, random)?;
        addrman.resolve_collisions(scene.now.unix);
        let (_, groups) = diversity(scene.all());
        let is_anchor = matches!(choice, Choice::Anchor);
        let preferred = if let Choice::Of(network) = choice { Some(network) } else { None };
        let (kind, address) = match choice {
            Choice::Anchor => (ConnectionKind::BlockRelayOnly, self.take_anchor(scene, &groups)?),
            Choice::Any(kind) => (kind, find(kind, None, scene, &groups, addrman)?),
            Choice::Of(network) => {
                let kind = ConnectionKind::OutboundFullRelay;
                (kind, find(kind, Some(network), scene, &groups, addrman)?)
            }
        };
        let (private, groups) = diversity(scene.connections.iter());
        let count_failure = groups.len() + private >= self.automatic_max.saturating_sub(1).min(2);
        Some(Wish { kind, address, count_failure, is_anchor, preferred })
    }

    fn choose(&mut self, scene: &Scene<'_>, addrman: &AddrMan, random: &mut ChaCha20Rng) -> Option<Choice> {
        let count = |kind| scene.all().filter(|(other, _)| *other == kind).count();
        let full_relay = count(ConnectionKind::OutboundFullRelay);
        let block_relay = count(ConnectionKind::BlockRelayOnly);
        let now = scene.now.mockable;
        if !self.anchors.is_empty() && block_relay < self.block_relay_max {
            return Some(Choice::Anchor);
        }
        if full_relay < self.full_relay_max {
            return Some(Choice::Any(ConnectionKind::OutboundFullRelay));
        }
        if block_relay < self.block_relay_max {
            return Some(Choice::Any(ConnectionKind::BlockRelayOnly));
        }
        if scene.wants_extra_full_relay {
            return Some(Choice::Any(ConnectionKind::OutboundFullRelay));
        }
        if now > self.next_extra_block_relay && scene.wants_extra_block_relay {
            self.next_extra_block_relay = now + draw::exponential(random, EXTRA_BLOCK_RELAY_INTERVAL);
            return Some(Choice::Any(ConnectionKind::BlockRelayOnly));
        }
        if now > self.next_feeler {
            self.next_feeler = now + draw::exponential(random, FEELER_INTERVAL);
            return Some(Choice::Any(ConnectionKind::Feeler));
        }
        let is_full = full_relay == self.full_relay_max && self.full_relay_max == FULL_RELAY_PEERS_MAX;
        if is_full && now > self.next_extra_network {
            let network = missing_network(scene, addrman, random)?;
            self.next_extra_network = now + draw::exponential(random, EXTRA_NETWORK_INTERVAL);
            return Some(Choice::Of(network));
        }
        None
    }

    fn take_anchor(&mut self, scene: &Scene<'_>, groups: &BTreeSet<Vec<u8>>) -> Option<TimedAddress> {
        while let Some(anchor) = self.anchors.pop() {
            let addr = anchor.endpoint.addr;
            let is_useful = anchor.services.contains(desirable_services(anchor.services, scene.is_near_tip));
            if is_ours_to_dial(&anchor.endpoint, scene) && is_useful && !groups.contains(&addr.netgroup()) {
                return Some(anchor);
            }
        }
        None
    }
}

/// Returns the number of lasting connections over privacy networks and CJDNS, and the netgroups of the others.
fn diversity<'a>(connections: impl Iterator<Item = &'a (ConnectionKind, Endpoint)>) -> (usize, BTreeSet<Vec<u8>>) {
    let standing = connections.filter(|(kind, _)| is_standing(*kind)).map(|(_, endpoint)| endpoint.addr);
    let (private, others): (Vec<_>, Vec<_>) = standing.partition(|addr| addr.is_privacy_net() || addr.is_cjdns());
    (private.len(), others.iter().map(NetAddr::netgroup).collect())
}

/// Returns whether connections of this kind last, and so must be diverse. Inbound connections cost an attacker nothing
/// and are not counted.
fn is_standing(kind: ConnectionKind) -> bool {
    matches!(kind, ConnectionKind::Manual | ConnectionKind::OutboundFullRelay | ConnectionKind::BlockRelayOnly)
}

fn is_ours_to_dial(endpoint: &Endpoint, scene: &Scene<'_>) -> bool {
    let addr = &endpoint.addr;
    addr.is_valid() && !scene.own.contains(addr) && scene.reachable.contains(&addr.network())
}

/// Returns a reachable network with known addresses but no lasting full connection. Core's `MaybePickPreferredNetwork`.
fn missing_network(scene: &Scene<'_>, addrman: &AddrMan, random: &mut ChaCha20Rng) -> Option<Network> {
    let mut networks = [Network::Ipv4, Network::Ipv6, Network::TorV3, Network::I2p, Network::Cjdns];
    draw::shuffle(&mut networks, random);
    let is_counted = |kind| matches!(kind, ConnectionKind::Manual | ConnectionKind::OutboundFullRelay);
    let has = |network| scene.all().any(|(kind, end)| is_counted(*kind) && end.addr.network() == network);
    networks
        .into_iter()
        .find(|network| scene.reachable.contains(network) && !has(*network) && addrman.size(Some(*network), None) > 0)
}

fn find(
    kind: ConnectionKind,
    preferred: Option<Network>,
    scene: &Scene<'_>,
    groups: &BTreeSet<Vec<u8>>,
    addrman: &mut AddrMan,
) -> Option<TimedAddress> {
    let is_feeler = kind == ConnectionKind::Feeler;
    let reachable: Vec<_> = scene.reachable.iter().copied().collect();
    for tries in 1..=TRIES_MAX {
        let (address, last_try) = match (is_feeler, preferred) {
            (true, _) => feeler_address(scene, &reachable, addrman)?,
            (false, Some(network)) => addrman.select(false, &[network], scene.now.unix)?,
            (false, None) => addrman.select(false, &reachable, scene.now.unix)?,
        };
        if is_fit(&address, last_try, is_feeler, tries, scene, groups) {
            return Some(address);
        }
    }
    None
}

/// Returns an entry of the tried table that another address would displace, or an address that was never reached.
fn feeler_address(scene: &Scene<'_>, reachable: &[Network], addrman: &mut AddrMan) -> Option<(TimedAddress, UnixTime)> {
    if let Some((address, last_try)) = addrman.select_tried_collision() {
        let addr = address.endpoint.addr;
        if !scene.all().any(|(_, endpoint)| endpoint.addr == addr) {
            return Some((address, last_try));
        }
        // We are connected to it: the address works and must not be displaced.
        addrman.good(&address.endpoint, scene.now.unix);
    }
    addrman.select(true, reachable, scene.now.unix)
}

fn is_fit(
    address: &TimedAddress,
    last_try: UnixTime,
    is_feeler: bool,
    tries: u32,
    scene: &Scene<'_>,
    groups: &BTreeSet<Vec<u8>>,
) -> bool {
    let endpoint = &address.endpoint;
    let is_ip = endpoint.addr.is_ipv4() || endpoint.addr.is_ipv6();
    let is_recent = scene.now.unix.since(last_try) < RECENT_S && tries < TRIES_NOT_RECENT;
    let is_bad_port = tries < TRIES_GOOD_PORT && is_ip && BAD_PORTS.contains(&endpoint.port);
    let is_useful = if is_feeler {
        address.services.may_have_useful_address_db()
    } else {
        address.services.contains(desirable_services(address.services, scene.is_near_tip))
            && !groups.contains(&endpoint.addr.netgroup())
    };
    let is_there = scene.all().any(|(_, other)| other == endpoint);
    is_ours_to_dial(endpoint, scene)
        && is_useful
        && !is_recent
        && !is_bad_port
        && !is_there
        && !scene.is_added(endpoint)
}

#[cfg(test)]
mod tests;
