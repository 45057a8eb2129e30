//! Address relay: which peers get a fresh address, and which addresses answer a `getaddr`.
//!
//! Input: peers, addresses, the time. Output: peer ids, addresses.
//!
//! Core's `RelayAddress` and `GetAddresses`. A fresh address goes to one or two peers, selected by a hash that changes
//! once a day, so that sending it again does not spread it further. All requests of about one day get the same answer,
//! with a separate answer for each of our listening addresses. So a peer cannot watch the tables change or learn from
//! two answers that two addresses belong to one node. Invariant: banned and discouraged addresses are not sent to any
//! peer. Memory: 1,000 addresses for each of at most [`ANSWER_CACHES_MAX`] pairs of a network and one of our addresses.

use crate::addrman::AddrMan;
use crate::bans::Bans;
use crate::draw;
use crate::limits::ANSWER_CACHES_MAX;
use crate::peer::Peer;
use crate::time::{Moment, UnixTime};
use lydian_hash::SipHasher;
use lydian_wire::limits::ADDR_COUNT_MAX;
use lydian_wire::{NetAddr, Network, TimedAddress};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use std::collections::BTreeMap;
use std::time::Duration;

/// The maximum share of all addresses in one answer: Core's `MAX_PCT_ADDR_TO_SEND`.
pub const ANSWER_PERCENT_MAX: usize = 23;

/// How long the peers that an address is relayed to stay the same.
const ROTATION_S: u64 = 24 * 60 * 60;
const ANSWER_LIFE_MIN: Duration = Duration::from_secs(21 * 60 * 60);
const ANSWER_LIFE_SPREAD_S: usize = 6 * 60 * 60;

/// Constants that separate the uses of the secret.
const ID_NETGROUP: u64 = 0x6c0e_dd80_36ef_4036;
const ID_ADDRESS_RELAY: u64 = 0x3cac_0035_b586_6b90;

/// A secret of the node for choices that peers must not predict: Core's `GetDeterministicRandomizer`.
#[derive(Clone, Copy)]
pub struct Secret(u64, u64);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    pub fn new(random: &mut ChaCha20Rng) -> Self {
        Secret(random.next_u64(), random.next_u64())
    }

    /// Returns the hashed netgroup of an address. Eviction protects by it, and an attacker cannot predict it.
    pub fn keyed_netgroup(&self, addr: &NetAddr) -> u64 {
        SipHasher::new(self.0, self.1).write_u64(ID_NETGROUP).write(&addr.netgroup()).finish()
    }

    /// Returns the one or two peers that a fresh address of `originator` is relayed to. The caller passes the address
    /// to [`Peer::push_addresses`].
    pub fn relay_targets<'a>(
        &self,
        address: &TimedAddress,
        is_reachable: bool,
        originator: u64,
        peers: impl Iterator<Item = (u64, &'a Peer)>,
        now: UnixTime,
    ) -> Vec<u64> {
        if !is_reachable && !address.endpoint.addr.is_relayable() {
            return Vec::new();
        }
        let hash = SipHasher::new(0, 0).write(&address.endpoint.key()).finish();
        // Adding the hash avoids that all addresses change their peers at midnight.
        let day = now.0.wrapping_add(hash) / ROTATION_S;
        let keyed = |id: u64| {
            let hasher = SipHasher::new(self.0, self.1).write_u64(ID_ADDRESS_RELAY).write_u64(hash);
            hasher.write_u64(day).write_u64(id).finish()
        };
        let count = if is_reachable || keyed(u64::MAX) & 1 == 1 { 2 } else { 1 };
        let may =
            |(id, peer): &(u64, &Peer)| *id != originator && peer.is_addr_relay_enabled() && peer.can_read(address);
        let mut ranked: Vec<_> = peers.filter(may).map(|(id, _)| (keyed(id), id)).collect();
        ranked.sort_unstable_by(|a, b| b.cmp(a));
        ranked.into_iter().take(count).map(|(_, id)| id).collect()
    }
}

/// Recent answers, by the network of the requesting peer and our address that it connected to.
#[derive(Clone, Debug, Default)]
pub struct AnswerCache {
    answers: BTreeMap<(Network, Vec<u8>), Answer>,
}

#[derive(Clone, Debug)]
struct Answer {
    until: Duration,
    addresses: Vec<TimedAddress>,
}

impl AnswerCache {
    /// Returns the answer to a peer of `network` that connected to our address `bind`.
    pub fn answer(
        &mut self,
        network: Network,
        bind: &[u8],
        addrman: &mut AddrMan,
        bans: &Bans,
        now: Moment,
        random: &mut ChaCha20Rng,
    ) -> &[TimedAddress] {
        let key = (network, bind.to_vec());
        self.answers.retain(|other, answer| *other == key || answer.until >= now.mockable);
        if self.answers.len() >= ANSWER_CACHES_MAX && !self.answers.contains_key(&key) {
            // We do not have that many addresses: an existing answer is used for all further ones.
            return self.answers.values().next().map_or(&[], |answer| &answer.addresses);
        }
        let answer = self.answers.entry(key).or_insert(Answer { until: Duration::ZERO, addresses: Vec::new() });
        if answer.until < now.mockable || answer.until == Duration::ZERO {
            let spread = draw::below(random, ANSWER_LIFE_SPREAD_S) as u64;
            answer.until = now.mockable + ANSWER_LIFE_MIN + Duration::from_secs(spread);
            answer.addresses = fresh_answer(addrman, bans, now.unix);
        }
        &answer.addresses
    }
}

/// Returns addresses from the current tables, for a peer with the permission to request them.
pub fn fresh_answer(addrman: &mut AddrMan, bans: &Bans, now: UnixTime) -> Vec<TimedAddress> {
    let mut addresses = addrman.get_addr(ADDR_COUNT_MAX, ANSWER_PERCENT_MAX, None, true, now);
    addresses.retain(|address| {
        let addr = &address.endpoint.addr;
        !bans.is_discouraged(addr) && !bans.is_banned(addr, now)
    });
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bans::DEFAULT_BAN_TIME_S;
    use crate::peer::{Connection, ConnectionKind, Permissions};
    use lydian_wire::{Endpoint, Services};
    use rand_chacha::rand_core::SeedableRng;
    use std::collections::BTreeSet;

    const NOW: Moment = Moment::new(Duration::from_secs(10), UnixTime(1_790_000_000));

    fn random() -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(3)
    }

    fn address(number: u32) -> TimedAddress {
        let endpoint = Endpoint::new(NetAddr::Ipv4((0x0800_0000 + (number << 8)).into()), 8333);
        TimedAddress { time: NOW.unix.to_u32(), services: Services::NETWORK, endpoint }
    }

    fn peer(wants_addrv2: bool, relays: bool) -> Peer {
        let connection = Connection {
            kind: if relays { ConnectionKind::Inbound } else { ConnectionKind::BlockRelayOnly },
            endpoint: Endpoint::default(),
            services: Services::NONE,
            permissions: Permissions::NONE,
            is_proxied: false,
            is_onion: false,
            nonce: 1,
        };
        let mut peer = Peer::new(connection, NOW);
        peer.wants_addrv2 = wants_addrv2;
        peer.push_addresses(&[address(0)], &mut random());
        peer
    }

    #[test]
    fn an_address_goes_to_two_peers_the_whole_day() {
        let secret = Secret::new(&mut random());
        let peers: Vec<_> = (0..100_u64).map(|id| (id, peer(id % 2 == 0, id % 5 != 0))).collect();
        let targets = |address: &TimedAddress, is_reachable, originator, now| {
            let peers = peers.iter().map(|(id, peer)| (*id, peer));
            secret.relay_targets(address, is_reachable, originator, peers, now)
        };
        let mut all = BTreeSet::new();
        let mut changed = 0;
        for number in 1..200 {
            let address = address(number);
            let chosen = targets(&address, true, 1, NOW.unix);
            assert!(chosen.len() == 2 && chosen.iter().all(|id| id % 5 != 0 && *id != 1), "{chosen:?}");
            changed += usize::from(targets(&address, true, 1, NOW.unix.plus(60)) != chosen);
            assert_ne!(targets(&address, true, 1, NOW.unix.plus(ROTATION_S)), chosen);
            assert!(!targets(&address, true, chosen[0], NOW.unix).contains(&chosen[0]));
            all.extend(chosen);
        }
        assert!(changed <= 2, "{changed} of 200 in a minute of a day");
        assert!(all.len() > 70, "{} of 79 peers", all.len());
        let onion = TimedAddress { endpoint: Endpoint { addr: NetAddr::TorV3([3; 32]), port: 1 }, ..address(1) };
        assert!(targets(&onion, true, 1, NOW.unix).iter().all(|id| id % 2 == 0), "who can read it");
        let counts: BTreeSet<_> = (1..50).map(|number| targets(&address(number), false, 1, NOW.unix).len()).collect();
        assert_eq!(counts, [1, 2].into());
        let internal = TimedAddress { endpoint: Endpoint { addr: NetAddr::Internal([1; 10]), port: 1 }, ..address(1) };
        assert!(targets(&internal, false, 1, NOW.unix).is_empty());
    }

    fn tables() -> (AddrMan, Bans) {
        let mut addrman = AddrMan::new(&mut random());
        for number in 0..2000 {
            addrman.add(&[address(number)], &NetAddr::Ipv4((number << 16).into()), 0, NOW.unix);
        }
        (addrman, Bans::new(DEFAULT_BAN_TIME_S, &mut random()))
    }

    #[test]
    fn all_who_ask_on_a_day_get_the_same() {
        let (mut addrman, mut bans) = tables();
        bans.discourage(&address(7).endpoint.addr);
        bans.ban("8.0.0.0/20".parse().unwrap(), 0, false, NOW.unix);
        let (mut cache, mut random) = (AnswerCache::default(), random());
        let first = cache.answer(Network::Ipv4, b"a", &mut addrman, &bans, NOW, &mut random).to_vec();
        let most = addrman.size(None, None) * ANSWER_PERCENT_MAX / 100;
        assert!(first.len() <= most && first.len() > most - 30, "{} of {most}", first.len());
        let is_told = |number: u32| first.iter().any(|one| one.endpoint == address(number).endpoint);
        assert!(!(0..16).any(is_told) && !is_told(7));
        let later = |hours: u64| Moment { mockable: NOW.mockable + Duration::from_secs(hours * 3600), ..NOW };
        assert_eq!(cache.answer(Network::Ipv4, b"a", &mut addrman, &bans, later(21), &mut random), first);
        assert_ne!(cache.answer(Network::Ipv4, b"b", &mut addrman, &bans, NOW, &mut random), first);
        assert_ne!(cache.answer(Network::Ipv6, b"a", &mut addrman, &bans, NOW, &mut random), first);
        assert_ne!(cache.answer(Network::Ipv4, b"a", &mut addrman, &bans, later(28), &mut random), first);
    }

    /// limit: ANSWER_CACHES_MAX at
    /// limit: ANSWER_CACHES_MAX above
    #[test]
    fn answers_do_not_pile_up() {
        let (mut addrman, bans) = tables();
        let (mut cache, mut random) = (AnswerCache::default(), random());
        let mut different = BTreeSet::new();
        for number in 0..ANSWER_CACHES_MAX + 20 {
            let bind = number.to_le_bytes();
            let answer = cache.answer(Network::Ipv4, &bind, &mut addrman, &bans, NOW, &mut random);
            different.insert(answer.iter().map(|one| one.endpoint).collect::<Vec<_>>());
            assert_eq!(different.len(), (number + 1).min(ANSWER_CACHES_MAX));
        }
    }

    #[test]
    fn a_group_has_one_hash_and_two_nodes_two() {
        let mut random = random();
        let (one, other) = (Secret::new(&mut random), Secret::new(&mut random));
        let addr = |text: &str| text.parse::<NetAddr>().unwrap();
        assert_eq!(one.keyed_netgroup(&addr("1.2.3.4")), one.keyed_netgroup(&addr("1.2.9.9")));
        assert_ne!(one.keyed_netgroup(&addr("1.2.3.4")), one.keyed_netgroup(&addr("1.3.3.4")));
        assert_ne!(one.keyed_netgroup(&addr("1.2.3.4")), other.keyed_netgroup(&addr("1.2.3.4")));
    }
}
