//! Tests the address manager with Core's own tests (including numbers that only the same hashes give) and random calls.

use super::*;
use crate::datafile::FrameError;
use crate::limits::{PEERS_FILE_SIZE_MAX, TRIED_COLLISIONS_MAX};
use proptest::prelude::*;
use std::collections::BTreeSet;

const NOW: UnixTime = UnixTime(1_750_000_000);
const DAY: u64 = 24 * 60 * 60;
/// The time of addresses in Core if no time was set.
const TIME_INIT: u32 = 100_000_000;
const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

fn random(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn key(first: u8) -> Key {
    let mut key = Key::default();
    key[0] = first;
    key
}

/// An address manager with the key of Core's deterministic one.
fn addrman() -> AddrMan {
    AddrMan::with_key(key(1), &mut random(1))
}

fn ip(text: &str) -> NetAddr {
    text.parse().unwrap()
}

fn at(text: &str, port: u16) -> TimedAddress {
    TimedAddress { time: TIME_INIT, services: Services::NONE, endpoint: Endpoint::new(ip(text), port) }
}

fn seen(text: &str, port: u16, time: UnixTime) -> TimedAddress {
    TimedAddress { time: time.to_u32(), ..at(text, port) }
}

fn i2p(text: &str) -> TimedAddress {
    at(text, 0)
}

const I2P_ONE: &str = "udhdrtrcetjm5sxzskjyr5ztpeszydbh4dpl3pl4utgqqw2v4jna.b32.i2p";
const I2P_TWO: &str = "c4gfnttsuwqomiygupdqqqyy5y5emnk5c73hrfvatri67prd7vyq.b32.i2p";

fn select(addrman: &mut AddrMan, new_only: bool, networks: &[Network]) -> Option<Endpoint> {
    addrman.select(new_only, networks, NOW).map(|(address, _)| address.endpoint)
}

/// `-checkaddrman`: an inconsistency is found after the next operation.
#[test]
#[should_panic(expected = "ADDRMAN CONSISTENCY CHECK FAILED!!!")]
fn tables_that_do_not_hold_together_end_the_program() {
    let mut addrman = AddrMan::deterministic(&mut random(1));
    addrman.set_check_every(2);
    let source = ip("252.2.2.2");
    assert_eq!(addrman.add(&[at("250.1.1.1", 8333)], &source, 0, NOW), 1);
    addrman.list.clear();
    // The second operation.
    addrman.attempt(&at("250.1.1.1", 8333).endpoint, true, NOW);
}

#[test]
fn an_address_is_taken_once() {
    let (mut addrman, source) = (addrman(), ip("252.2.2.2"));
    assert!(addrman.is_empty());
    assert_eq!(addrman.select(false, &[], NOW), None);
    assert_eq!(addrman.add(&[at("250.1.1.1", 8333)], &source, 0, NOW), 1);
    assert_eq!(select(&mut addrman, false, &[]), Some(at("250.1.1.1", 8333).endpoint));
    assert_eq!(addrman.add(&[at("250.1.1.1", 8333)], &source, 0, NOW), 0);
    assert_eq!(addrman.size(None, None), 1);
    assert_eq!(addrman.add(&[at("250.1.1.3", 8333), at("250.1.1.4", 8333)], &source, 0, NOW), 2);
    assert_eq!(addrman.add(&[at("10.0.0.1", 8333), at("127.0.0.1", 8333), at("::", 1)], &source, 0, NOW), 0);
    assert_eq!(addrman.check(), Ok(()));
}

/// Regression test: with one unreachable address in the tables, the node used 14 % of a core, and RPC requests about
/// peers took 0.24 s. With one taken position of 65,536, each of a hundred draws for a connection checked thousands of
/// buckets, and as many again each time the address was rejected because of a recent attempt. The test counts the
/// random words that the draws use.
#[test]
fn one_address_is_found_at_once() {
    let (mut addrman, source) = (addrman(), ip("252.2.2.2"));
    addrman.add(&[at("250.1.1.1", 8333)], &source, 0, NOW);
    addrman.attempt(&at("250.1.1.1", 8333).endpoint, false, NOW);
    let networks = [Network::Ipv4, Network::Ipv6, Network::TorV3];
    for networks in [&networks[..], &[]] {
        let before = addrman.random.get_word_pos();
        for _ in 0..100 {
            assert!(addrman.select(false, networks, NOW).is_some());
        }
        let words = addrman.random.get_word_pos() - before;
        assert!(words < 100 * 300, "{words} random words for 100 draws");
    }
    // The same for a network with one address among thousands.
    for number in 0..4_000_u32 {
        let address = at(&std::net::Ipv4Addr::from(0x0b00_0000 + (number << 12)).to_string(), 8333);
        addrman.add(&[address], &ip(&format!("{}.2.2.2", 20 + number % 200)), 0, NOW);
    }
    addrman.add(&[i2p(I2P_ONE)], &source, 0, NOW);
    let before = addrman.random.get_word_pos();
    assert!((0..100).all(|_| select(&mut addrman, false, &[Network::I2p]) == Some(i2p(I2P_ONE).endpoint)));
    assert!(addrman.random.get_word_pos() - before < 100 * 300);
}

/// An entry is drawn with the same probability as in Core: first the bucket, regardless of its number of entries, then
/// a position at or after a random one.
#[test]
fn chances_are_cores() {
    let mut places = places::Places::new(4);
    // One entry alone in its bucket; two in another bucket, with a gap of 60 between them.
    let (alone, first, second) = (64 + 7, 3 * 64, 3 * 64 + 60);
    for (place, id) in [(alone, 1), (first, 2), (second, 3)] {
        places.put(place, id, Network::Ipv4);
    }
    let (taken, mut random) = (places.of(&[Network::Ipv4]), random(1));
    let mut drawn = std::collections::BTreeMap::new();
    for _ in 0..64_000 {
        *drawn.entry(taken.draw(&mut random).unwrap()).or_insert(0_u32) += 1;
    }
    let near = |place, expected: u32| drawn[&place].abs_diff(expected) < 700;
    assert!(near(alone, 32_000) && near(first, 2_000) && near(second, 30_000), "{drawn:?}");
    assert!(places.of(&[Network::I2p]).draw(&mut random).is_none());
    assert_eq!((places.take(alone), places.take(alone)), (Some(1), None));
    assert_eq!(places.put(first, 4, Network::I2p), Some(2));
    assert_eq!(places.of(&[Network::I2p]).draw(&mut random), Some(first));
    assert_eq!(places.of(&[Network::Ipv4]).draw(&mut random), Some(second));
}

#[test]
fn the_port_is_part_of_an_address() {
    let (mut addrman, source) = (addrman(), ip("252.2.2.2"));
    addrman.add(&[at("250.1.1.1", 8333), at("250.1.1.1", 8334)], &source, 0, NOW);
    assert_eq!(addrman.size(None, None), 2);
    assert!(addrman.good(&at("250.1.1.1", 8334).endpoint, NOW));
    assert_eq!(select(&mut addrman, true, &[]), Some(at("250.1.1.1", 8333).endpoint));
}

#[test]
fn both_tables_are_selected_from() {
    let (mut addrman, source) = (addrman(), ip("252.2.2.2"));
    let one = at("250.1.1.1", 8333);
    addrman.add(&[one], &source, 0, NOW);
    assert!(addrman.good(&one.endpoint, NOW));
    assert_eq!(select(&mut addrman, true, &[]), None);
    assert_eq!(select(&mut addrman, false, &[]), Some(one.endpoint));
    let i2p_one = i2p(I2P_ONE);
    addrman.add(&[i2p_one], &source, 0, NOW);
    assert_eq!(select(&mut addrman, true, &[Network::I2p]), Some(i2p_one.endpoint));
    assert_eq!(select(&mut addrman, false, &[Network::Ipv6, Network::TorV3, Network::Cjdns]), None);
    assert_eq!(select(&mut addrman, true, &[Network::Ipv4]), None);
    // The requested network has an entry in only one table: that table is used, whatever the coin flip says.
    for _ in 0..20 {
        assert_eq!(select(&mut addrman, false, &[Network::I2p]), Some(i2p_one.endpoint));
        assert_eq!(select(&mut addrman, false, &[Network::Ipv4]), Some(one.endpoint));
    }
    assert!(addrman.good(&i2p_one.endpoint, NOW));
    addrman.add(&[i2p(I2P_TWO)], &source, 0, NOW);
    let drawn: BTreeSet<_> = (0..256).filter_map(|_| select(&mut addrman, false, &[Network::I2p])).collect();
    assert_eq!(drawn.len(), 2);
    assert_eq!(addrman.size(Some(Network::I2p), Some(true)), 1);
    assert_eq!(addrman.size(Some(Network::I2p), None), 2);
    assert_eq!(addrman.size(None, Some(false)), 2);
    assert_eq!(addrman.size(Some(Network::Ipv6), None), 0);
}

/// With this key, the first 22 addresses get different positions in new, and the 23rd does not: Core's
/// `addrman_new_collisions`.
#[test]
fn the_first_collision_in_new_is_cores() {
    let (mut addrman, source) = (addrman(), ip("252.2.2.2"));
    for last in 1..=22 {
        assert_eq!(addrman.add(&[at(&format!("250.1.1.{last}"), 0)], &source, 0, NOW), 1);
        assert_eq!(addrman.size(None, None), last);
    }
    addrman.add(&[at("250.1.1.23", 0)], &source, 0, NOW);
    assert_eq!(addrman.size(None, None), 22);
    addrman.add(&[at("250.1.1.24", 0)], &source, 0, NOW);
    assert_eq!(addrman.size(None, None), 23);
}

/// Core's `addrman_tried_collisions`, `addrman_noevict` and `addrman_evictionworks`: 36 collides with 19 and gets its
/// position only after 19 fails.
/// checklist: 84
#[test]
fn who_answers_keeps_the_place_in_tried() {
    let (mut addrman, source) = (addrman(), ip("252.2.2.2"));
    for last in 1..=35 {
        let address = at(&format!("250.1.1.{last}"), 0);
        addrman.add(&[address], &source, 0, NOW);
        assert!(addrman.good(&address.endpoint, NOW), "{last}");
        assert!(!addrman.good(&address.endpoint, NOW), "{last} again");
    }
    assert_eq!(addrman.select_tried_collision(), None);
    let (newcomer, holder) = (at("250.1.1.36", 0), at("250.1.1.19", 0));
    addrman.add(&[newcomer], &source, 0, NOW);
    assert!(!addrman.good(&newcomer.endpoint, NOW));
    assert_eq!(addrman.select_tried_collision(), Some((holder, NOW)));
    addrman.resolve_collisions(NOW);
    assert_eq!(addrman.select_tried_collision(), None);
    assert!(addrman.find(&holder.endpoint).unwrap().tried && !addrman.find(&newcomer.endpoint).unwrap().tried);

    assert!(!addrman.good(&newcomer.endpoint, NOW));
    assert!(!addrman.good(&holder.endpoint, UnixTime(1)));
    addrman.attempt(&holder.endpoint, false, NOW.minus(60));
    addrman.resolve_collisions(NOW);
    assert_eq!(addrman.collision_count(), 1, "an attempt gets 60 seconds");
    addrman.attempt(&holder.endpoint, false, NOW.minus(61));
    addrman.resolve_collisions(NOW);
    assert_eq!(addrman.collision_count(), 0);
    assert!(addrman.find(&newcomer.endpoint).unwrap().tried && !addrman.find(&holder.endpoint).unwrap().tried);

    // The entry could not be tested for a long time: the waiting address, which works, gets its position.
    assert!(!addrman.good(&holder.endpoint, NOW));
    assert_eq!(addrman.select_tried_collision().map(|(address, _)| address), Some(newcomer));
    addrman.resolve_collisions(NOW.plus(4 * 60 * 60));
    assert!(addrman.find(&holder.endpoint).unwrap().tried && !addrman.find(&newcomer.endpoint).unwrap().tried);
    assert_eq!(addrman.check(), Ok(()));
}

/// limit: TRIED_COLLISIONS_MAX at
/// limit: TRIED_COLLISIONS_MAX above
#[test]
fn ten_wait_for_a_place_in_tried() {
    let (mut addrman, source) = (addrman(), ip("252.2.2.2"));
    let mut waiting = 0;
    for number in 0..2000_u32 {
        let address = seen(&format!("250.1.{}.{}", number / 250, number % 250), 0, NOW);
        addrman.add(&[address], &source, 0, NOW);
        if addrman.get(&address.endpoint).is_some() && !addrman.good(&address.endpoint, NOW) {
            waiting += 1;
        }
        assert_eq!(addrman.collision_count(), waiting.min(TRIED_COLLISIONS_MAX));
    }
    assert!(waiting > TRIED_COLLISIONS_MAX);
    assert_eq!(addrman.check(), Ok(()));
}

/// Core's `addrman_new_multiplicity`.
/// limit: NEW_BUCKETS_PER_ADDRESS_MAX at
/// limit: NEW_BUCKETS_PER_ADDRESS_MAX above
#[test]
fn an_address_has_eight_places_at_most() {
    let mut addrman = addrman();
    let address = seen("253.3.3.3", 8333, NOW);
    for number in 1..20 {
        addrman.add(&[address], &ip(&format!("{number}.0.1.1")), 0, NOW);
    }
    assert_eq!(addrman.find(&address.endpoint).unwrap().multiplicity, 1, "nothing new was told");
    for number in 1..4000_u32 {
        let told = TimedAddress { time: address.time + number, ..address };
        addrman.add(&[told], &ip(&format!("{}.{}.1.1", number % 250 + 1, number / 250)), 0, NOW);
        assert_eq!(addrman.check(), Ok(()));
    }
    assert_eq!(addrman.find(&address.endpoint).unwrap().multiplicity, NEW_BUCKETS_PER_ADDRESS_MAX);
    assert_eq!(addrman.size(None, None), 1);
    assert!(addrman.good(&address.endpoint, NOW));
    assert_eq!(addrman.entries(false).count(), 0);
}

/// Core's `addrman_getaddr`, including its last numbers.
/// checklist: 68
#[test]
fn a_share_of_all_addresses_is_returned() {
    let mut addrman = addrman();
    assert_eq!(addrman.get_addr(0, 0, None, true, NOW), []);
    let five = ["250.250.2.1:8333", "250.251.2.2:9999", "251.252.2.3:8333", "252.253.3.4:8333", "252.254.4.5:8333"];
    for (number, text) in five.iter().enumerate() {
        let (host, port) = text.split_once(':').unwrap();
        let source = ["250.1.2.1", "250.2.3.3"][number % 2];
        addrman.add(&[seen(host, port.parse().unwrap(), NOW)], &ip(source), 0, NOW);
    }
    assert_eq!(addrman.get_addr(0, 0, None, true, NOW).len(), 5);
    assert_eq!(addrman.get_addr(2500, 23, None, true, NOW).len(), 1);
    assert_eq!(addrman.get_addr(2500, 23, Some(Network::Ipv6), true, NOW).len(), 0);
    addrman.good(&at("250.250.2.1", 8333).endpoint, NOW);
    addrman.good(&at("250.251.2.2", 9999).endpoint, NOW);
    assert_eq!(addrman.get_addr(0, 0, None, true, NOW).len(), 5);
    for number in 1..8 * 256 {
        let text = format!("{}.{}.1.23", number % 256, number >> 8);
        let address = seen(&text, 0, NOW);
        addrman.add(&[address], &ip(&text), 0, NOW);
        if number % 8 == 0 {
            addrman.good(&address.endpoint, NOW);
        }
    }
    assert_eq!(addrman.size(None, None), 2006);
    let told = addrman.get_addr(2500, 23, None, true, NOW);
    assert_eq!(told.len(), 461);
    assert_eq!(told.iter().map(|address| address.endpoint).collect::<BTreeSet<_>>().len(), 461, "one twice");
    assert_eq!(addrman.get_addr(100, 0, None, true, NOW).len(), 100);
    assert_eq!(addrman.check(), Ok(()));
}

#[test]
fn terrible_addresses_are_not_returned() {
    let (mut addrman, source) = (addrman(), ip("250.1.2.1"));
    let tried_in_vain = seen("250.251.2.3", 9998, NOW);
    let future = seen("250.252.2.4", 9997, NOW.plus(11 * 60));
    addrman.add(&[seen("250.250.2.1", 8333, NOW), at("250.251.2.2", 9999), tried_in_vain, future], &source, 0, NOW);
    for _ in 0..3 {
        addrman.good(&at("1.1.1.1", 1).endpoint, NOW);
        addrman.attempt(&tried_in_vain.endpoint, true, NOW.minus(61));
    }
    assert_eq!(addrman.get_addr(0, 0, None, true, NOW), [seen("250.250.2.1", 8333, NOW)]);
    assert_eq!(addrman.get_addr(0, 0, None, false, NOW).len(), 4);
}

/// An address that worked may be deleted after ten failures and a week. A failure counts only once between two
/// successful connections to any address, so that an outage on our side does not count against others.
#[test]
fn failures_count_while_others_succeed() {
    let (mut addrman, source) = (addrman(), ip("250.1.2.1"));
    let (old, helper) = (seen("250.250.2.1", 8333, NOW), seen("251.252.2.3", 8333, NOW));
    addrman.add(&[old, helper], &source, 0, NOW);
    assert!(addrman.good(&old.endpoint, NOW));
    let later = NOW.plus(8 * DAY);
    for _ in 0..30 {
        addrman.attempt(&old.endpoint, true, later.minus(61));
    }
    assert_eq!(addrman.get(&old.endpoint).unwrap().attempts, 1);
    for step in 0..8 {
        addrman.good(&helper.endpoint, later.plus(step));
        addrman.attempt(&old.endpoint, true, later.plus(step));
        addrman.attempt(&old.endpoint, true, later.plus(step));
    }
    let end = later.plus(100);
    assert_eq!(addrman.get(&old.endpoint).unwrap().attempts, 9);
    for step in 20..21 {
        assert!(!addrman.get(&old.endpoint).unwrap().is_terrible(end));
        addrman.good(&helper.endpoint, later.plus(step));
        addrman.attempt(&old.endpoint, true, later.plus(step));
    }
    assert!(addrman.get(&old.endpoint).unwrap().is_terrible(end));
    assert_eq!(addrman.get_addr(0, 0, None, true, end), [helper]);
}

#[test]
fn what_a_peer_says_of_itself_has_no_penalty() {
    let mut addrman = addrman();
    let base = NOW.minus(10_000);
    let (own, other) = (seen("250.1.1.1", 8333, base), seen("250.1.1.2", 8333, base));
    addrman.add(&[own], &ip("250.1.1.1"), 3600, NOW);
    addrman.add(&[other], &ip("250.1.1.3"), 3600, NOW);
    assert_eq!(addrman.get(&own.endpoint).unwrap().address.time, base.to_u32());
    assert_eq!(addrman.get(&other.endpoint).unwrap().address.time, base.minus(3600).to_u32());
}

/// Core's `addrman_update_address`.
#[test]
fn times_and_services_are_updated() {
    let (mut addrman, source) = (addrman(), ip("252.2.2.2"));
    let start = NOW.minus(10_000);
    let address = seen("250.1.1.1", 8333, start);
    let services = |addrman: &AddrMan| addrman.get(&address.endpoint).unwrap().address.services;
    addrman.add(&[address], &source, 0, NOW);
    let other_port = Endpoint { port: 8334, ..address.endpoint };
    addrman.connected(&other_port, NOW);
    addrman.set_services(&other_port, Services::NETWORK_LIMITED);
    assert_eq!(addrman.get(&address.endpoint).unwrap().address, address);
    addrman.connected(&address.endpoint, start.plus(20 * 60));
    assert_eq!(addrman.get(&address.endpoint).unwrap().address.time, address.time, "not yet");
    addrman.connected(&address.endpoint, NOW);
    assert_eq!(addrman.get(&address.endpoint).unwrap().address.time, NOW.to_u32());
    addrman.set_services(&address.endpoint, Services::NETWORK_LIMITED);
    let told = TimedAddress { services: Services::P2P_V2, ..address };
    assert_eq!(addrman.add(&[told], &source, 0, NOW), 0);
    assert_eq!(services(&addrman), Services::P2P_V2 | Services::NETWORK_LIMITED);
    addrman.set_services(&address.endpoint, Services::NETWORK);
    assert!(addrman.good(&address.endpoint, NOW));
    assert_eq!(services(&addrman), Services::NETWORK);
    assert_eq!(addrman.add(&[told], &source, 0, NOW), 0);
    assert_eq!(services(&addrman), Services::NETWORK | Services::P2P_V2);
}

/// Core's `caddrinfo_get_tried_bucket_legacy` and `caddrinfo_get_new_bucket_legacy`: the same buckets and the same
/// number of buckets per group.
/// checklist: 84
#[test]
fn buckets_are_cores() {
    let key_one = lydian_hash::sha256d(&1_i32.to_le_bytes());
    let key_two = lydian_hash::sha256d(&2_i32.to_le_bytes());
    let info = |text: &str, port, source: &str| AddrInfo::new(at(text, port), ip(source));
    let one = info("250.1.1.1", 8333, "250.1.1.1");
    assert_eq!(one.tried_bucket(&key_one), 40);
    assert_ne!(one.tried_bucket(&key_one), one.tried_bucket(&key_two));
    assert_ne!(one.tried_bucket(&key_one), info("250.1.1.1", 9999, "250.1.1.1").tried_bucket(&key_one));
    let buckets = |of: &dyn Fn(u32) -> usize, count: u32| (0..count).map(of).collect::<BTreeSet<_>>().len();
    let tried = |text: String| info(&text, 0, "250.1.1.1").tried_bucket(&key_one);
    assert_eq!(buckets(&|i| tried(format!("250.1.1.{i}")), 255), 8);
    assert_eq!(buckets(&|i| tried(format!("250.{i}.1.1")), 255), 160);

    let one = info("250.1.2.1", 8333, "250.1.2.1");
    assert_eq!(one.new_bucket(&key_one, &one.source), 786);
    assert_ne!(one.new_bucket(&key_one, &one.source), one.new_bucket(&key_two, &one.source));
    assert_eq!(info("250.1.2.1", 9999, "250.1.2.1").new_bucket(&key_one, &one.source), 786);
    let new = |text: String, source: String| info(&text, 0, &source).new_bucket(&key_one, &ip(&source));
    assert_eq!(buckets(&|i| new(format!("250.1.1.{i}"), format!("250.1.1.{i}")), 255), 1);
    let same_source = buckets(&|i| new(format!("{}.{}.1.1", 250 + i / 255, i % 256), "251.4.1.1".into()), 4 * 255);
    assert!(same_source <= 64, "{same_source}");
    let many_sources = buckets(&|i| new("250.1.1.1".into(), format!("250.{i}.1.1")), 255);
    assert!(many_sources > 64, "{many_sources}");
}

/// An attacker with addresses of one netgroup sends a hundred thousand addresses: they get 64 of 1,024 new buckets, and
/// 8 of 256 tried buckets for each netgroup that answers.
/// checklist: 68, 84
#[test]
fn an_attacker_with_few_groups_gets_few_places() {
    let mut addrman = AddrMan::new(&mut random(3));
    for first in 1..60_u32 {
        for second in 0..20_u32 {
            let text = format!("{}.{second}.7.7", first + 100);
            addrman.add(&[seen(&text, 8333, NOW)], &ip(&text), 0, NOW);
        }
    }
    let honest = addrman.size(None, None);
    for number in 0..100_000_u32 {
        let text = format!("{}.{}.{}.1", number % 90 + 10, number / 90 % 250, number / 22_500);
        addrman.add(&[seen(&text, 8333, NOW)], &ip(&format!("250.1.{}.9", number % 250)), 0, NOW);
    }
    let buckets: BTreeSet<_> = addrman
        .entries(false)
        .filter(|(info, _)| info.source.netgroup() == ip("250.1.0.0").netgroup())
        .map(|(_, position)| position.bucket)
        .collect();
    assert!(buckets.len() <= 64, "{} buckets of new", buckets.len());
    let left = addrman.entries(false).filter(|(info, _)| info.source == info.address.endpoint.addr).count();
    assert!(left >= honest * 9 / 10, "{left} of {honest} honest addresses are left");
    for number in 0..3000_u32 {
        let address = seen(&format!("250.1.{}.{}", number / 250, number % 250), 8333, NOW);
        // From many sources, so that new does not limit the attacker.
        addrman.add(&[address], &ip(&format!("{}.9.9.9", number % 200 + 1)), 0, NOW);
        addrman.good(&address.endpoint, NOW);
    }
    let tried: BTreeSet<_> = addrman.entries(true).map(|(_, position)| position.bucket).collect();
    assert_eq!(tried.len(), 8);
    assert_eq!(addrman.check(), Ok(()));
}

fn small_file() -> Vec<u8> {
    let mut addrman = addrman();
    let all = [at("5.5.5.5", 0), at("6.6.6.6", 0), at("7.7.7.7", 0), at("8.8.8.8", 0)];
    addrman.add(&all, &NetAddr::UNSPECIFIED, 0, NOW);
    addrman.good(&all[2].endpoint, NOW);
    addrman.good(&all[3].endpoint, NOW);
    addrman.encode(MAGIC)
}

/// Returns the file with a correct checksum.
fn sealed(mut file: Vec<u8>) -> Vec<u8> {
    file.truncate(file.len() - 32);
    let checksum = lydian_hash::sha256d(&file);
    file.extend_from_slice(&checksum);
    file
}

fn replaced(file: &[u8], old: [u8; 4], new: [u8; 4]) -> Vec<u8> {
    let start = file.windows(4).position(|window| window == old).unwrap();
    let mut file = file.to_vec();
    file[start..start + 4].copy_from_slice(&new);
    sealed(file)
}

/// Core's `remove_invalid`.
#[test]
fn addresses_that_are_not_valid_are_left_out_of_a_file() {
    let file = replaced(&small_file(), [6; 4], [0; 4]);
    let file = replaced(&file, [8; 4], [255; 4]);
    let read = AddrMan::decode(&file, MAGIC, &mut random(1)).unwrap();
    assert_eq!((read.size(None, Some(true)), read.size(None, Some(false))), (1, 1));
    // Core refuses a file with the same address twice.
    let twice = replaced(&small_file(), [6; 4], [5; 4]);
    assert_eq!(AddrMan::decode(&twice, MAGIC, &mut random(1)).err(), Some(PeersError::Inconsistent(Inconsistency(-5))));
}

#[test]
fn a_damaged_file_is_refused_with_a_reason() {
    let file = small_file();
    let decode = |bytes: &[u8]| AddrMan::decode(bytes, MAGIC, &mut random(1)).err();
    assert_eq!(decode(&file), None);
    assert_eq!(AddrMan::decode(&file, [0; 4], &mut random(1)).err(), Some(FrameError::WrongNetwork.into()));
    let with = |offset: usize, byte: u8| {
        let mut file = file.clone();
        file[offset] = byte;
        sealed(file)
    };
    assert_eq!(decode(&with(5, 37)), Some(PeersError::UnsupportedFormat { format: 4, lowest_compatible: 5 }));
    assert_eq!(decode(&with(5, 31)), Some(PeersError::Compat { compat: 31 }));
    assert_eq!(decode(&with(4, 200)), None, "a later format that says that ours can read it");
    let count = |table, count, count_max| Some(PeersError::Count { table, count, count_max });
    assert_eq!(decode(&with(4 + 2 + 32 + 2, 2)), count("nNew", 0x2_0002, 65_536));
    assert_eq!(decode(&with(4 + 2 + 32 + 7, 0x80)), count("nTried", i32::MIN + 2, 16_384));
    let mut no_checksum = file.clone();
    let last = no_checksum.len() - 1;
    no_checksum[last] ^= 1;
    assert_eq!(decode(&no_checksum), Some(FrameError::ChecksumMismatch.into()));
    for size in 0..file.len() {
        assert!(decode(&file[..size]).is_some(), "{size} bytes");
    }
}

/// limit: PEERS_FILE_SIZE_MAX at
/// limit: PEERS_FILE_SIZE_MAX above
#[test]
fn a_file_is_read_up_to_its_size() {
    let mut file = small_file();
    file.resize(PEERS_FILE_SIZE_MAX, 0);
    assert!(AddrMan::decode(&file, MAGIC, &mut random(1)).is_ok());
    file.push(0);
    let error = PeersError::TooLarge { size: PEERS_FILE_SIZE_MAX + 1 };
    assert_eq!(AddrMan::decode(&file, MAGIC, &mut random(1)).err(), Some(error));
}

/// The data of an entry that a file stores.
fn kept(addrman: &AddrMan, tried: bool) -> BTreeSet<impl Ord + std::fmt::Debug + use<>> {
    let row = |(info, position): (&AddrInfo, Position)| {
        let TimedAddress { time, services, endpoint } = info.address;
        (endpoint, time, services.0, info.source, info.last_success, info.attempts, position.bucket, position.position)
    };
    addrman.entries(tried).map(row).collect()
}

/// A call of the address manager.
#[derive(Clone, Debug)]
enum Call {
    Add { number: u16, source: u8, time: u32 },
    Good(u16),
    Attempt(u16),
    Connected(u16),
    Select(bool),
    Collision,
    Resolve,
    Later(u32),
    GetAddr,
    SaveAndLoad,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        8 => (0..600_u16, any::<u8>(), 0..40_u32).prop_map(|(number, source, time)| Call::Add { number, source, time }),
        4 => (0..600_u16).prop_map(Call::Good),
        2 => (0..600_u16).prop_map(Call::Attempt),
        1 => (0..600_u16).prop_map(Call::Connected),
        1 => any::<bool>().prop_map(Call::Select),
        1 => Just(Call::Collision),
        1 => Just(Call::Resolve),
        1 => (0..100_000_u32).prop_map(Call::Later),
        1 => Just(Call::GetAddr),
        1 => Just(Call::SaveAndLoad),
    ]
}

/// Few netgroups with few addresses each, to cause collisions.
fn numbered(number: u16, time: UnixTime) -> TimedAddress {
    match number % 7 {
        0 => TimedAddress {
            endpoint: Endpoint { addr: NetAddr::TorV3([number.to_le_bytes()[0]; 32]), port: 1 },
            ..seen("1.1.1.1", 0, time)
        },
        1 => seen(&format!("2001:4860:{}::{number}", number % 3), 8333, time),
        _ => seen(&format!("250.{}.1.{}", number % 2, number % 256), number % 3, time),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// After any sequence of calls, every entry is at the position given by its hashes, in one table, and counted;
    /// saving to a file loses nothing.
    #[test]
    fn the_tables_hold_through_any_calls(calls in prop::collection::vec(call(), 1..400), seed in any::<u64>()) {
        let mut addrman = AddrMan::with_key(key(9), &mut random(seed));
        let mut now = NOW;
        for call in calls {
            match call {
                Call::Add { number, source, time } => {
                    let address = numbered(number, now.minus(u64::from(time) * DAY));
                    addrman.add(&[address], &ip(&format!("{}.1.1.1", source.max(11))), 0, now);
                }
                Call::Good(number) => { addrman.good(&numbered(number, now).endpoint, now); }
                Call::Attempt(number) => addrman.attempt(&numbered(number, now).endpoint, true, now),
                Call::Connected(number) => addrman.connected(&numbered(number, now).endpoint, now),
                Call::Select(new_only) => {
                    let found = addrman.select(new_only, &[], now);
                    prop_assert_eq!(found.is_none(), addrman.size(None, new_only.then_some(true)) == 0);
                    if let Some((address, _)) = found {
                        prop_assert!(addrman.get(&address.endpoint).is_some());
                    }
                }
                Call::Collision => {
                    if let Some((address, _)) = addrman.select_tried_collision() {
                        prop_assert!(addrman.find(&address.endpoint).is_some_and(|position| position.tried));
                    }
                }
                Call::Resolve => addrman.resolve_collisions(now),
                Call::Later(seconds) => now = now.plus(u64::from(seconds)),
                Call::GetAddr => {
                    let told = addrman.get_addr(0, 0, None, false, now);
                    prop_assert_eq!(told.len(), addrman.size(None, None));
                }
                Call::SaveAndLoad => {
                    let read = AddrMan::decode(&addrman.encode(MAGIC), MAGIC, &mut random(seed)).unwrap();
                    prop_assert_eq!(kept(&read, true), kept(&addrman, true));
                    prop_assert_eq!(kept(&read, false), kept(&addrman, false));
                    prop_assert_eq!(read.encode(MAGIC), addrman.encode(MAGIC));
                    addrman = read;
                }
            }
            prop_assert_eq!(addrman.check(), Ok(()));
            let network_of = |id| addrman.infos.get(&id).map(|info| info.address.endpoint.addr.network());
            prop_assert!(addrman.new.is_right(network_of) && addrman.tried.is_right(network_of));
        }
    }

    /// The same seed and the same calls give the same results.
    #[test]
    fn a_seed_replays(seed in any::<u64>()) {
        let run = || {
            let mut addrman = AddrMan::new(&mut random(seed));
            for number in 0..200 {
                addrman.add(&[numbered(number, NOW)], &ip("9.9.9.9"), 0, NOW);
            }
            let drawn: Vec<_> = (0..20).map(|_| addrman.select(false, &[], NOW)).collect();
            (drawn, addrman.get_addr(50, 0, None, true, NOW), addrman.encode(MAGIC))
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn any_bytes_are_a_file_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 0..200_usize, place in 0..1000_usize) {
        let _ = AddrMan::decode(&bytes, MAGIC, &mut random(1));
        let mut behind_magic = [&MAGIC[..], &bytes, &[0; 32]].concat();
        behind_magic = sealed(behind_magic);
        let _ = AddrMan::decode(&behind_magic, MAGIC, &mut random(1));
        // Damage in a valid file, with a corrected checksum.
        let mut file = small_file();
        let place = place % (file.len() - 40);
        let end = (place + bytes.len()).min(file.len() - 32);
        file.splice(place..end, bytes.iter().copied().take(cut.min(end - place)));
        if let Ok(read) = AddrMan::decode(&sealed(file), MAGIC, &mut random(1)) {
            prop_assert_eq!(read.check(), Ok(()));
        }
    }
}
