//! Automatic connections.

use crate::world::*;
use lydian_consensus::Chain;
use lydian_p2p::anchors;
use lydian_p2p::limits::{BLOCK_RELAY_PEERS_MAX, FULL_RELAY_PEERS_MAX};
use lydian_p2p::manager::{ConnectSettings, SavedFile};
use lydian_wire::NetAddr;
use std::collections::BTreeSet;

/// checklist: 84
#[test]
fn eight_full_and_two_block_relay_peers_of_different_groups_and_feelers() {
    let mut world = World::choosing(2000, |_| {});
    world.run(10);
    assert_eq!((world.count(FULL), world.count(BLOCKS)), (FULL_RELAY_PEERS_MAX, BLOCK_RELAY_PEERS_MAX));
    let groups: BTreeSet<_> = world.standing.values().map(|(_, endpoint)| endpoint.addr.netgroup()).collect();
    assert_eq!(groups.len(), 10);
    world.run(20 * 60);
    assert_eq!((world.count(FULL), world.count(BLOCKS), world.count(FEELER)), (8, 2, 0));
    let feelers = world.tried_of(FEELER);
    assert!((4..25).contains(&feelers.len()), "one in two minutes, on average: {}", feelers.len());
    for feeler in feelers {
        let position = world.manager.addrman().find(&lydian_wire::Endpoint::parse(&feeler, 0).unwrap()).unwrap();
        assert!(position.tried, "{feeler} answered");
    }
    assert!(world.tried.iter().all(|tried| tried.v2), "they are known to speak it");
}

/// checklist: 84
#[test]
fn a_failure_counts_against_an_address_only_while_others_can_be_reached() {
    let mut world = World::choosing(300, |_| {});
    world.answers = Answers::Nobody;
    world.run(60);
    let tried: BTreeSet<_> = world.tried_of(FULL).into_iter().collect();
    assert!(tried.len() > 50, "one each half second: {}", tried.len());
    let attempts = |world: &World| -> u32 {
        let new = world.manager.addrman().entries(false).map(|(info, _)| u32::try_from(info.attempts).unwrap());
        new.sum()
    };
    assert_eq!(attempts(&world), 0, "the node is offline");
    // Two addresses that answer.
    let some: BTreeSet<_> = (0..300).map(|number| address(number, world.now().unix).endpoint.to_string()).collect();
    world.answers = Answers::Only(some.into_iter().take(2).collect());
    for _ in 0..60 {
        world.run(60);
        if world.standing.len() >= 2 {
            break;
        }
    }
    assert_eq!(world.standing.len(), 2);
    world.run(60);
    assert!(attempts(&world) > 20, "{}", attempts(&world));
}

#[test]
fn attempts_that_hang_take_slots() {
    let mut world = World::choosing(2000, |_| {});
    world.answers = Answers::Later;
    world.run(60);
    assert_eq!(world.tried.len(), 10, "8 and 2");
    world.run(20 * 60);
    assert_eq!(world.tried.len(), 11, "and a feeler");
    for tried in world.tried.clone() {
        world.fail(tried.id);
    }
    world.run(60);
    assert!((21..=22).contains(&world.tried.len()), "the next ones");
}

#[test]
fn few_connections_are_shared_out() {
    for (most, expected) in [(0, (0, 0)), (1, (1, 0)), (9, (8, 1)), (10, (8, 2))] {
        let mut world = World::choosing(500, |connect| connect.automatic_max = most);
        world.run(20);
        assert_eq!((world.count(FULL), world.count(BLOCKS)), expected);
    }
}

#[test]
fn who_asks_for_addresses_gets_them_from_seed_nodes_first() {
    let mut world = World::choosing(0, |connect| connect.seednodes = vec!["5.6.7.8:9".into(), "9.8.7.6:5".into()]);
    world.told = (0..100).map(|number| address(number, world.now().unix)).collect();
    world.run(2);
    let fetched = world.tried_of(FETCH);
    assert_eq!(fetched.len(), 1, "{fetched:?}");
    assert!(world.ended.iter().any(|(_, reason)| reason == "addrfetch connection completed"), "{:?}", world.ended);
    world.run(30);
    assert_eq!((world.count(FULL), world.count(BLOCKS), world.count(FETCH)), (8, 2, 0));
    assert_eq!(world.tried_of(FETCH).len(), 1, "there are enough peers");

    let mut silent = World::choosing(0, |connect| connect.seednodes = vec!["5.6.7.8:9".into(), "9.8.7.6:5".into()]);
    silent.answers = Answers::Nobody;
    silent.run(30);
    let fetched: BTreeSet<_> = silent.tried_of(FETCH).into_iter().collect();
    assert_eq!(fetched, ["5.6.7.8:9".to_owned(), "9.8.7.6:5".to_owned()].into(), "one after the other, each once");
}

/// A world on the main chain. Its names are resolved only by this test.
fn main_chain(change: impl FnOnce(&mut ConnectSettings)) -> World {
    let mut connect = ConnectSettings { chooses_peers: true, dns_seed: true, fixed_seeds: true, ..settings() };
    change(&mut connect);
    World::of(Chain::Main, 1_790_000_000, connect)
}

#[test]
fn names_are_asked_and_those_without_an_address_connected_for_some() {
    let mut world = main_chain(|_| {});
    let known = "x9.dnsseed.emzy.de.";
    let addresses: Vec<_> = (1..60).map(|last| NetAddr::Ipv4([60 + last, 1, 1, 1].into())).collect();
    world.names.insert(known.to_owned(), addresses);
    world.answers = Answers::Nobody;
    world.run(10);
    let asked = world.resolved.iter().filter(|name| name.starts_with("x9.")).count();
    assert!(asked >= 6 && world.resolved.iter().any(|name| name == known), "{:?}", world.resolved);
    let size = world.manager.addrman().size(None, None);
    assert!((28..=32).contains(&size), "of 59, but for places that two share: {size}");
    let fetched = world.resolved.iter().filter(|name| !name.starts_with("x9.")).count();
    assert_eq!(fetched, asked - 1, "{:?}", world.resolved);
    assert!(world.tried.iter().all(|tried| tried.kind == FULL), "names that nobody knows are not dialled");

    let mut none = main_chain(|connect| connect.dns_seed = false);
    none.answers = Answers::Nobody;
    none.run(10);
    assert_eq!(none.resolved, Vec::<String>::new());
    assert!(none.manager.addrman().size(None, None) > 500, "the fixed list is the only way");

    let mut proxied = main_chain(|connect| connect.has_name_proxy = true);
    proxied.answers = Answers::Nobody;
    proxied.run(10);
    assert_eq!(proxied.resolved, Vec::<String>::new(), "names are the proxy's to resolve");
    assert!(proxied.tried.len() >= 6 && proxied.tried.iter().all(|tried| tried.kind == FETCH), "{:?}", proxied.tried);
}

#[test]
fn regtest_has_no_seeds() {
    let mut world = World::choosing(0, |connect| {
        (connect.dns_seed, connect.fixed_seeds, connect.force_dns_seed) = (true, true, true)
    });
    world.run(200);
    assert_eq!((world.resolved.len(), world.tried.len(), world.manager.addrman().size(None, None)), (0, 0, 0));
}

#[test]
fn the_fixed_list_comes_after_a_minute() {
    let mut world = main_chain(|_| {});
    world.answers = Answers::Nobody;
    world.run(58);
    assert_eq!(world.manager.addrman().size(None, None), 0);
    world.run(5);
    assert!(world.manager.addrman().size(None, None) > 500);
}

/// checklist: 84
#[test]
fn anchors_come_first_and_are_kept_at_the_end() {
    let now = World::new(settings()).now().unix;
    let old = [address(7, now), address(9, now)];
    let mut world = World::choosing(2000, |connect| connect.anchors = old.to_vec());
    world.run(2);
    let first: BTreeSet<_> = world.tried.iter().take(2).map(|tried| (tried.kind, tried.target.clone())).collect();
    assert_eq!(first, old.iter().map(|one| (BLOCKS, one.endpoint.to_string())).collect());
    world.run(10);
    let now = world.now();
    world.manager.end(now);
    world.act();
    let magic = lydian_consensus::Params::new(Chain::Regtest).magic;
    let (_, bytes) = world.saved.iter().find(|(file, _)| *file == SavedFile::Anchors).unwrap();
    let kept: BTreeSet<_> = anchors::decode(bytes, magic).unwrap().iter().map(|one| one.endpoint).collect();
    assert_eq!(kept, old.iter().map(|one| one.endpoint).collect());
    assert!(
        anchors::decode(bytes, magic).unwrap().iter().all(|one| one.services == old[0].services),
        "or nobody would dial them"
    );
}

#[test]
fn an_extra_peer_is_tried_when_the_tip_is_stale_and_one_goes() {
    let mut world = World::synced(2000);
    world.run(29 * 60);
    assert_eq!(world.count(FULL), 8);
    assert!(!world.log.iter().any(|line| line.starts_with("Potential stale tip")));
    let before = world.tried_of(FULL).len();
    world.run(13 * 60);
    assert!(world.log.iter().any(|line| line.starts_with("Potential stale tip")), "after half an hour without a block");
    assert!(world.tried_of(FULL).len() > before);
    assert_eq!(world.count(FULL), 8, "one of nine went");
    assert!(world.ended.iter().any(|(_, reason)| reason == "extra outbound peer"));
}

/// checklist: 84
#[test]
fn more_block_relay_peers_are_looked_at_once_the_chain_is_synced() {
    let mut world = World::synced(2000);
    world.run(25 * 60);
    let tried = world.tried_of(BLOCKS).len();
    assert!((4..15).contains(&tried), "two, and one in five minutes on average: {tried}");
    assert!(world.ended.iter().any(|(_, reason)| reason == "extra block-relay-only peer"));
    assert!(world.count(BLOCKS) <= 3);
    let mut behind = World::choosing(2000, |_| {});
    behind.run(25 * 60);
    assert_eq!(behind.tried_of(BLOCKS).len(), 2);
}
