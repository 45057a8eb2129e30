//! Core's `net_peer_eviction_tests`, case by case, and invariants for random peers.

use super::*;
use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const NETWORKS: [Network; 7] = Network::ALL;

fn shuffle<T>(items: &mut [T], random: &mut ChaCha20Rng) {
    for index in (1..items.len()).rev() {
        items.swap(index, crate::draw::below(random, index + 1));
    }
}

fn random_candidates(count: u64, random: &mut ChaCha20Rng) -> Vec<Candidate> {
    let mut below = |bound: u64| random.next_u64() % bound;
    (0..count)
        .map(|id| Candidate {
            id,
            connected: UnixTime(below(100)),
            min_ping: Duration::from_micros(below(100)),
            last_block: UnixTime(below(100)),
            last_tx: UnixTime(below(100)),
            relevant_services: below(2) == 1,
            relay_txs: below(2) == 1,
            bloom_filter: below(2) == 1,
            keyed_netgroup: below(100),
            prefer_evict: below(2) == 1,
            is_local: below(2) == 1,
            network: NETWORKS[usize::try_from(below(7)).unwrap()],
            noban: false,
            inbound: true,
        })
        .collect()
}

/// Checks peers 0 to `count` - 1, connected in that order; `of` returns whether a peer is local and its network. Half
/// of them are protected: all of `protected`, none of `unprotected`.
fn check_ratio(count: u64, of: impl Fn(u64) -> (bool, Network), protected: &[u64], unprotected: &[u64]) {
    for seed in 0..20 {
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let mut candidates = random_candidates(count, &mut random);
        for one in &mut candidates {
            one.connected = UnixTime(one.id);
            (one.is_local, one.network) = of(one.id);
        }
        shuffle(&mut candidates, &mut random);
        protect_by_ratio(&mut candidates);
        assert_eq!(candidates.len() as u64, count - count / 2);
        let is_left = |id: &u64| candidates.iter().any(|one| one.id == *id);
        assert!(!protected.iter().any(is_left), "{protected:?} should be protected: {candidates:?}");
        assert!(unprotected.iter().all(is_left), "{unprotected:?} should not be protected: {candidates:?}");
    }
}

use Network::{Cjdns, I2p, Ipv4, Ipv6, TorV3};

/// checklist: 84
#[test]
fn one_kind_of_network_is_protected_beside_presence() {
    check_ratio(12, |_| (false, Ipv4), &[0, 1, 2, 3, 4, 5], &[6, 7, 8, 9, 10, 11]);
    check_ratio(12, |id| (false, if [3, 8, 9].contains(&id) { TorV3 } else { Ipv4 }), &[3, 8, 9], &[]);
    check_ratio(
        12,
        |id| (false, if id == 3 || id > 7 { TorV3 } else { Ipv6 }),
        &[0, 1, 2, 3, 8, 9],
        &[4, 5, 6, 7, 10, 11],
    );
    check_ratio(12, |id| ([1, 9, 11].contains(&id), Ipv4), &[1, 9, 11], &[]);
    check_ratio(12, |id| (id > 6, Ipv6), &[0, 1, 2, 7, 8, 9], &[3, 4, 5, 6, 10, 11]);
    check_ratio(12, |id| (false, if [2, 7, 10].contains(&id) { I2p } else { Ipv4 }), &[2, 7, 10], &[]);
    check_ratio(
        12,
        |id| (false, if id == 4 || id > 8 { I2p } else { Ipv6 }),
        &[0, 1, 2, 4, 9, 10],
        &[3, 5, 6, 7, 8, 11],
    );
    check_ratio(12, |id| (false, if [2, 7, 10].contains(&id) { Cjdns } else { Ipv4 }), &[2, 7, 10], &[]);
    check_ratio(
        12,
        |id| (false, if id == 4 || id > 8 { Cjdns } else { Ipv6 }),
        &[0, 1, 2, 4, 9, 10],
        &[3, 5, 6, 7, 8, 11],
    );
}

#[test]
fn two_kinds_share_and_take_over_what_is_left() {
    check_ratio(4, |id| (id == 4, if id == 3 { TorV3 } else { Ipv4 }), &[0, 3], &[1, 2]);
    check_ratio(7, |id| (id == 6, if id == 5 { TorV3 } else { Ipv4 }), &[0, 1, 6], &[2, 3, 4, 5]);
    check_ratio(8, |id| (id == 6, if id == 5 { TorV3 } else { Ipv4 }), &[0, 1, 5, 6], &[2, 3, 4, 7]);
    let network = |id| if [7, 8, 10].contains(&id) { TorV3 } else { Ipv6 };
    check_ratio(12, |id| ([6, 9, 11].contains(&id), network(id)), &[0, 1, 2, 6, 7, 9], &[3, 4, 5, 8, 10, 11]);
    let network = |id| if id == 10 { TorV3 } else { Ipv4 };
    check_ratio(12, |id| (id > 4 && id < 9, network(id)), &[0, 1, 2, 5, 6, 10], &[3, 4, 7, 8, 9, 11]);
    let local = |id| [6, 9, 11, 12].contains(&id);
    let network = |id| if [8, 10].contains(&id) { TorV3 } else { Ipv6 };
    check_ratio(16, |id| (local(id), network(id)), &[0, 1, 2, 3, 6, 8, 9, 10], &[4, 5, 7, 11, 12, 13, 14, 15]);
    let network = |id| if id == 10 { TorV3 } else { Ipv4 };
    check_ratio(16, |id| (id > 10, network(id)), &[0, 1, 2, 3, 10, 11, 12, 13], &[4, 5, 6, 7, 8, 9, 14, 15]);
    let network = |id| if id > 6 && id < 11 { TorV3 } else { Ipv6 };
    check_ratio(16, |id| (id == 15, network(id)), &[0, 1, 2, 3, 7, 8, 9, 15], &[5, 6, 10, 11, 12, 13, 14]);
    let network = |id| match id {
        8 | 10 => TorV3,
        6 | 9 | 11 | 12 => I2p,
        _ => Ipv4,
    };
    check_ratio(12, |id| (false, network(id)), &[0, 1, 2, 6, 8, 10], &[3, 4, 5, 7, 9, 11]);
}

#[test]
fn three_kinds_share() {
    let network = |i2p, onion| {
        move |id| {
            if id == i2p {
                I2p
            } else if id == onion {
                TorV3
            } else {
                Ipv6
            }
        }
    };
    check_ratio(4, |id| (id == 2, network(3, 1)(id)), &[0, 3], &[1, 2]);
    check_ratio(7, |id| (id == 4, network(6, 5)(id)), &[0, 1, 6], &[2, 3, 4, 5]);
    check_ratio(8, |id| (id == 6, network(5, 4)(id)), &[0, 1, 5, 6], &[2, 3, 4, 7]);
    let network = |id| match id {
        7 | 11 => I2p,
        9 | 10 => TorV3,
        _ => Ipv4,
    };
    check_ratio(16, |id| (id == 6 || id > 11, network(id)), &[0, 1, 2, 3, 6, 7, 9, 11], &[4, 5, 8, 10, 12, 13, 14, 15]);
    let network = |id| match id {
        15..=22 => I2p,
        23 => TorV3,
        _ => Ipv6,
    };
    let (yes, no) = ([0, 1, 2, 3, 4, 5, 12, 15, 16, 17, 18, 23], [6, 7, 8, 9, 10, 11, 13, 14, 19, 20, 21, 22]);
    check_ratio(24, |id| (id == 12, network(id)), &yes, &no);
    let network = |id| match id {
        12 | 14 | 17 => I2p,
        18.. => TorV3,
        _ => Ipv4,
    };
    let (yes, no) = ([0, 1, 2, 3, 4, 5, 12, 14, 15, 17, 18, 19], [6, 7, 8, 9, 10, 11, 13, 16, 20, 21, 22, 23]);
    check_ratio(24, |id| (id == 15, network(id)), &yes, &no);
    let network = |id| match id {
        17.. => I2p,
        12 | 14 | 15 | 16 => TorV3,
        _ => Ipv6,
    };
    let (yes, no) = ([0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 17, 18], [6, 7, 8, 9, 10, 11, 16, 19, 20, 21, 22, 23]);
    check_ratio(24, |id| (id == 13, network(id)), &yes, &no);
    let network = |id| match id {
        11..=14 => Cjdns,
        7..=9 => TorV3,
        _ => Ipv4,
    };
    let (yes, no) = ([0, 1, 2, 3, 4, 5, 7, 8, 11, 12, 16, 17], [6, 9, 10, 13, 14, 15, 18, 19, 20, 21, 22, 23]);
    check_ratio(24, |id| (id > 15, network(id)), &yes, &no);
}

#[test]
fn four_kinds_share() {
    let network = |cjdns: u64, i2p: u64, onion: u64| {
        move |id| match id {
            id if id == cjdns => Cjdns,
            id if id == i2p => I2p,
            id if id == onion => TorV3,
            _ => Ipv6,
        }
    };
    check_ratio(5, |id| (id == 3, network(4, 1, 2)(id)), &[0, 4], &[1, 2, 3]);
    check_ratio(7, |id| (id == 4, network(6, 5, 3)(id)), &[0, 1, 6], &[2, 3, 4, 5]);
    check_ratio(8, |id| (id == 3, network(5, 6, 3)(id)), &[0, 1, 5, 6], &[2, 3, 4, 7]);
    let network = |id| match id {
        11 | 15 => Cjdns,
        10 | 14 => I2p,
        8 | 9 => TorV3,
        _ => Ipv4,
    };
    let (yes, no) = ([0, 1, 2, 3, 6, 8, 10, 11], [4, 5, 7, 9, 12, 13, 14, 15]);
    check_ratio(16, |id| (id > 5, network(id)), &yes, &no);
    let network = |id| match id {
        18.. => Cjdns,
        17 => I2p,
        12 | 14 | 15 | 16 => TorV3,
        _ => Ipv6,
    };
    let (yes, no) = ([0, 1, 2, 3, 4, 5, 12, 13, 14, 17, 18, 19], [6, 7, 8, 9, 10, 11, 15, 16, 20, 21, 22, 23]);
    check_ratio(24, |id| (id == 13, network(id)), &yes, &no);
}

/// None of the peers 0 to `protected` - 1 is evicted, for any number of peers.
fn check_protected(protected: u64, set: impl Fn(&mut Candidate, u64)) {
    for count in 0..200 {
        let mut random = ChaCha20Rng::seed_from_u64(count);
        let mut candidates = random_candidates(count, &mut random);
        candidates.iter_mut().for_each(|one| set(one, count));
        shuffle(&mut candidates, &mut random);
        if let Some(evicted) = select_node_to_evict(candidates) {
            assert!(evicted >= protected, "{evicted} of {count}");
        }
    }
}

/// Core's `peer_eviction_test`.
/// checklist: 84
#[test]
fn what_an_attacker_can_hardly_have_protects() {
    check_protected(4, |one, count| one.keyed_netgroup = count - one.id);
    check_protected(8, |one, _| one.min_ping = Duration::from_micros(one.id));
    check_protected(4, |one, count| one.last_tx = UnixTime(count - one.id));
    let block_relay_only = |one: &mut Candidate, count| {
        one.last_block = UnixTime(count - one.id);
        if one.id <= 7 {
            (one.relay_txs, one.relevant_services) = (false, true);
        }
    };
    check_protected(8, block_relay_only);
    check_protected(12, block_relay_only);
    check_protected(4, |one, count| one.last_block = UnixTime(count - one.id));
    check_protected(20, |one, count| {
        one.keyed_netgroup = count - one.id;
        one.min_ping = Duration::from_micros(one.id);
        one.last_tx = UnixTime(count - one.id);
        one.last_block = UnixTime(count - one.id);
    });
}

#[test]
fn a_peer_is_evicted_from_29_on_and_none_up_to_20() {
    for count in 0..200 {
        let evicted = select_node_to_evict(random_candidates(count, &mut ChaCha20Rng::seed_from_u64(count)));
        assert!(count < 29 || evicted.is_some(), "{count}");
        assert!(count > 20 || evicted.is_none(), "{count}");
    }
}

/// Of the unprotected peers, the youngest of the largest group is evicted, and a discouraged one before all others.
#[test]
fn the_youngest_of_the_largest_group_goes() {
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let mut candidates = random_candidates(100, &mut random);
    for one in &mut candidates {
        one.connected = UnixTime(one.id);
        one.min_ping = Duration::from_secs(1);
        (one.last_block, one.last_tx) = (UnixTime::NEVER, UnixTime::NEVER);
        (one.relay_txs, one.prefer_evict, one.is_local, one.network) = (true, false, false, Ipv4);
        one.keyed_netgroup = if one.id >= 90 {
            1000 + one.id
        } else if one.id % 10 == 3 {
            7
        } else {
            500 + one.id
        };
        one.relevant_services = true;
    }
    shuffle(&mut candidates, &mut random);
    assert_eq!(select_node_to_evict(candidates.clone()), Some(83));
    for one in candidates.iter_mut().filter(|one| [75, 82].contains(&one.id)) {
        one.prefer_evict = true;
    }
    assert_eq!(select_node_to_evict(candidates), Some(82));
}

proptest! {
    /// The evicted peer is inbound and has no `noban`, and peers that cannot be evicted do not change the result.
    #[test]
    fn only_inbound_peers_without_permission_go(count in 0..120_u64, seed in any::<u64>(), spare in any::<u128>()) {
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let mut candidates = random_candidates(count, &mut random);
        for one in &mut candidates {
            one.noban = spare >> one.id & 3 == 0;
            one.inbound = spare >> one.id & 3 != 1;
        }
        let may_go: Vec<_> = candidates.iter().filter(|one| one.inbound && !one.noban).cloned().collect();
        let evicted = select_node_to_evict(candidates);
        prop_assert_eq!(evicted, select_node_to_evict(may_go.clone()));
        prop_assert!(evicted.is_none_or(|id| may_go.iter().any(|one| one.id == id)));
    }
}
