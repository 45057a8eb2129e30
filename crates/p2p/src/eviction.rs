//! Selects the inbound peer to disconnect when all slots are full.
//!
//! Input: the data of each peer. Output: one peer or none.
//!
//! Core's `SelectNodeToEvict`. Peers are protected by properties that an attacker can hardly have all at once:
//! netgroups in an order that only we can predict, low ping times, new transactions and blocks, long uptime, networks
//! that few can use. Of the rest, the youngest peer of the largest group is evicted. Invariants: an outbound peer or a
//! peer with the `noban` permission is never evicted; with at most 20 other peers none is. Cost: a few sorts.

use crate::time::UnixTime;
use lydian_wire::Network;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

/// The data about a peer that eviction uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub id: u64,
    pub connected: UnixTime,
    /// `Duration::MAX` before the first reply to a ping.
    pub min_ping: Duration,
    /// When it last sent a new, valid block.
    pub last_block: UnixTime,
    /// When it last sent a new transaction that was accepted.
    pub last_tx: UnixTime,
    /// It offers all services that we want from a peer.
    pub relevant_services: bool,
    pub relay_txs: bool,
    pub bloom_filter: bool,
    /// The netgroup of its address, hashed with a secret key.
    pub keyed_netgroup: u64,
    /// It is discouraged.
    pub prefer_evict: bool,
    pub is_local: bool,
    /// The network it connected through: `TorV3` if through the onion service.
    pub network: Network,
    pub noban: bool,
    pub inbound: bool,
}

const PROTECTED_BY_NETGROUP: usize = 4;
const PROTECTED_BY_PING: usize = 8;
const PROTECTED_BY_TX: usize = 4;
const PROTECTED_BLOCK_RELAY_ONLY: usize = 8;
const PROTECTED_BY_BLOCK: usize = 4;

/// Returns the peer to disconnect, if one may be disconnected.
pub fn select_node_to_evict(mut candidates: Vec<Candidate>) -> Option<u64> {
    candidates.retain(|one| !one.noban && one.inbound);
    protect(&mut candidates, |a, b| a.keyed_netgroup.cmp(&b.keyed_netgroup), PROTECTED_BY_NETGROUP, |_| true);
    protect(&mut candidates, |a, b| b.min_ping.cmp(&a.min_ping), PROTECTED_BY_PING, |_| true);
    protect(&mut candidates, by_tx_time, PROTECTED_BY_TX, |_| true);
    protect(&mut candidates, by_block_relay_only_time, PROTECTED_BLOCK_RELAY_ONLY, |one| {
        !one.relay_txs && one.relevant_services
    });
    protect(&mut candidates, by_block_time, PROTECTED_BY_BLOCK, |_| true);
    protect_by_ratio(&mut candidates);
    if candidates.iter().any(|one| one.prefer_evict) {
        candidates.retain(|one| one.prefer_evict);
    }
    youngest_of_largest_group(&candidates)
}

/// Protects half of the candidates: a quarter from networks with a latency disadvantage, the rest by uptime.
///
/// This is Core's `ProtectEvictionCandidatesByRatio`.
pub fn protect_by_ratio(candidates: &mut Vec<Candidate>) {
    let size = candidates.len();
    let protect_max = size / 2;
    // Between equal counts, the kind that is listed first has priority.
    let kinds =
        [Kind::Network(Network::Cjdns), Kind::Network(Network::I2p), Kind::Localhost, Kind::Network(Network::TorV3)];
    let count = |kind: Kind| candidates.iter().filter(|one| kind.holds(one)).count();
    let mut kinds: Vec<_> = kinds.map(|kind| (kind, count(kind))).into();
    kinds.sort_by_key(|(_, count)| *count);
    let by_network_max = protect_max / 2;
    let mut protected = 0;
    while protected < by_network_max {
        let kinds_left = kinds.iter().filter(|(_, count)| *count > 0).count();
        if kinds_left == 0 {
            break;
        }
        let share = ((by_network_max - protected) / kinds_left).max(1);
        let before = protected;
        for (kind, count) in kinds.iter_mut().filter(|(_, count)| *count > 0) {
            let delta = protect(candidates, |a, b| by_network_time(*kind, a, b), share, |one| kind.holds(one));
            protected += delta;
            if protected >= by_network_max {
                break;
            }
            *count -= delta;
        }
        if protected == before {
            break;
        }
    }
    protect(candidates, by_connected, protect_max.saturating_sub(protected), |_| true);
}

/// A group of peers that is protected because of its network.
#[derive(Clone, Copy)]
enum Kind {
    Localhost,
    Network(Network),
}

impl Kind {
    fn holds(self, one: &Candidate) -> bool {
        match self {
            Kind::Localhost => one.is_local,
            Kind::Network(network) => one.network == network,
        }
    }
}

/// Sorts, then removes those of the last `count` that `may` allows. Returns the number of removed candidates.
fn protect(
    candidates: &mut Vec<Candidate>,
    order: impl Fn(&Candidate, &Candidate) -> Ordering,
    count: usize,
    may: impl Fn(&Candidate) -> bool,
) -> usize {
    candidates.sort_by(order);
    let tail = candidates.split_off(candidates.len() - count.min(candidates.len()));
    let tail_size = tail.len();
    let kept_before = candidates.len();
    candidates.extend(tail.into_iter().filter(|one| !may(one)));
    tail_size - (candidates.len() - kept_before)
}

/// The most recent connection comes first.
fn by_connected(a: &Candidate, b: &Candidate) -> Ordering {
    b.connected.cmp(&a.connected)
}

fn by_tx_time(a: &Candidate, b: &Candidate) -> Ordering {
    // Many peers have not sent a transaction yet.
    a.last_tx
        .cmp(&b.last_tx)
        .then(a.relay_txs.cmp(&b.relay_txs))
        .then(b.bloom_filter.cmp(&a.bloom_filter))
        .then(by_connected(a, b))
}

fn by_block_time(a: &Candidate, b: &Candidate) -> Ordering {
    a.last_block.cmp(&b.last_block).then(a.relevant_services.cmp(&b.relevant_services)).then(by_connected(a, b))
}

fn by_block_relay_only_time(a: &Candidate, b: &Candidate) -> Ordering {
    b.relay_txs.cmp(&a.relay_txs).then(by_block_time(a, b))
}

fn by_network_time(kind: Kind, a: &Candidate, b: &Candidate) -> Ordering {
    let of_kind = kind.holds(a).cmp(&kind.holds(b));
    of_kind.then(by_connected(a, b))
}

fn youngest_of_largest_group(candidates: &[Candidate]) -> Option<u64> {
    let mut groups: BTreeMap<u64, Vec<&Candidate>> = BTreeMap::new();
    let mut largest: Option<(usize, UnixTime, u64)> = None;
    for one in candidates {
        let group = groups.entry(one.keyed_netgroup).or_default();
        group.push(one);
        let rank = (group.len(), group[0].connected);
        if largest.is_none_or(|(size, time, _)| rank > (size, time)) {
            largest = Some((rank.0, rank.1, one.keyed_netgroup));
        }
    }
    let (_, _, group) = largest?;
    groups.get(&group)?.first().map(|one| one.id)
}

#[cfg(test)]
mod tests;
