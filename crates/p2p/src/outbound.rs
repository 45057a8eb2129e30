//! Which connection to open next. Input: the connections there are, the address manager, the time. Output: an address and the kind of connection to make.
//!
//! Core's `ThreadOpenConnections`, asked every half second: anchors first, then 8 full-relay and 2 block-relay-only peers, then, by chance in time, one more
//! block-relay-only peer to see whether it knows a better chain, a feeler that tests an address, one peer of a network that we have none of. Invariants:
//! among IPv4 and IPv6 peers that stay no two are of one group; an address tried in the last ten minutes, or with a port that other services use, comes only when
//! there is hardly another; automatic connections never go to a peer that the operator asked for. Cost: at most 100 draws. Connections that are being made
//! count as there: the caller lists them. Whether a failure counts against an address is told by those that stand.

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
/// Core's `FEELER_SLEEP_WINDOW`: a feeler waits for up to so long, so that nodes do not fall into step.
pub const FEELER_DELAY_MAX: Duration = Duration::from_secs(1);

const FEELER_INTERVAL: Duration = Duration::from_secs(2 * 60);
const EXTRA_BLOCK_RELAY_INTERVAL: Duration = Duration::from_secs(5 * 60);
const EXTRA_NETWORK_INTERVAL: Duration = Duration::from_secs(5 * 60);
/// Draws for one connection.
const TRIES_MAX: u32 = 100;
/// Draws after which an address that was tried in the last ten minutes will do.
const TRIES_NOT_RECENT: u32 = 30;
/// Draws after which any port will do.
const TRIES_GOOD_PORT: u32 = 50;
const RECENT_S: i64 = 10 * 60;
/// Of more added nodes Core compares none: a look at each for each draw would take too long.
const ADDED_COMPARED_MAX: usize = 24;

/// Ports of other services: who has us connect there may want to annoy somebody. Core's `IsBadPort`.
const BAD_PORTS: &[u16] = &[
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
    111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
    540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3306, 3389, 3659, 4045, 5060,
    5061, 5432, 5900, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 10080, 27017,
];

/// Whether other services use this port: Core's `IsBadPort`.
pub fn is_bad_port(port: u16) -> bool {
    BAD_PORTS.contains(&port)
}

/// What is there when a connection is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    pub now: Moment,
    /// Connections that stand.
    pub connections: &'a [(ConnectionKind, Endpoint)],
    /// Those being made. They count as there, but for what they say of whether we are online.
    pub attempts: &'a [(ConnectionKind, Endpoint)],
    pub reachable: &'a BTreeSet<Network>,
    /// Our own addresses.
    pub own: &'a LocalAddresses,
    /// Peers that the operator asked for (`-addnode`), as he named them.
    pub added: &'a [&'a str],
    pub is_near_tip: bool,
    /// The tip is stale: one more full-relay peer may know better.
    pub wants_extra_full_relay: bool,
    /// The chain is synced: from now on extra block-relay-only peers are tried.
    pub wants_extra_block_relay: bool,
}

/// A connection to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    pub kind: ConnectionKind,
    pub address: TimedAddress,
    /// For [`AddrMan::attempt`]: a failure is the address's fault, since others can be reached.
    pub count_failure: bool,
    /// It is one of the last run's.
    pub is_anchor: bool,
    /// The network that has no connection yet.
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
    /// Connections that stand, and those being made.
    fn all(&self) -> impl Iterator<Item = &'a (ConnectionKind, Endpoint)> + use<'a> {
        self.connections.iter().chain(self.attempts)
    }

    /// Core's `AddedNodesContain`.
    fn is_added(&self, endpoint: &Endpoint) -> bool {
        let (addr, whole) = (endpoint.addr.to_string(), endpoint.to_string());
        self.added.len() < ADDED_COMPARED_MAX && self.added.iter().any(|added| *added == addr || *added == whole)
    }
}

/// What kind of address is looked for.
#[derive(Clone, Copy)]
enum Choice {
    Anchor,
    Any(ConnectionKind),
    Of(Network),
}

/// How many full-relay and block-relay-only peers are chosen, of `-maxconnections`.
pub fn split(automatic_max: usize) -> (usize, usize) {
    let full_relay_max = automatic_max.min(FULL_RELAY_PEERS_MAX);
    (full_relay_max, (automatic_max - full_relay_max).min(BLOCK_RELAY_PEERS_MAX))
}

impl Outbound {
    /// `automatic_max` is `-maxconnections`; `anchors` those of the last run.
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

    /// The connection to make now, if one is wanted and an address is there.
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

/// Connections that stay: those of privacy networks, and the groups of the others.
fn diversity<'a>(connections: impl Iterator<Item = &'a (ConnectionKind, Endpoint)>) -> (usize, BTreeSet<Vec<u8>>) {
    let standing = connections.filter(|(kind, _)| is_standing(*kind)).map(|(_, endpoint)| endpoint.addr);
    let (private, others): (Vec<_>, Vec<_>) = standing.partition(|addr| addr.is_privacy_net() || addr.is_cjdns());
    (private.len(), others.iter().map(NetAddr::netgroup).collect())
}

/// Connections that stay, and so have to be diverse. Inbound ones are free to make: they count for nothing.
fn is_standing(kind: ConnectionKind) -> bool {
    matches!(kind, ConnectionKind::Manual | ConnectionKind::OutboundFullRelay | ConnectionKind::BlockRelayOnly)
}

fn is_ours_to_dial(endpoint: &Endpoint, scene: &Scene<'_>) -> bool {
    let addr = &endpoint.addr;
    addr.is_valid() && !scene.own.contains(addr) && scene.reachable.contains(&addr.network())
}

/// A network that we could reach, know addresses of, and have no lasting full connection to. Core's `MaybePickPreferredNetwork`.
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

/// The entry of tried whose place another waits for, or an address that was never reached.
fn feeler_address(scene: &Scene<'_>, reachable: &[Network], addrman: &mut AddrMan) -> Option<(TimedAddress, UnixTime)> {
    if let Some((address, last_try)) = addrman.select_tried_collision() {
        let addr = address.endpoint.addr;
        if !scene.all().any(|(_, endpoint)| endpoint.addr == addr) {
            return Some((address, last_try));
        }
        // We are connected to it: it is good, and not to be displaced.
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
