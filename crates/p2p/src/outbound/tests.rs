//! The order of connections, and addresses that an attacker cannot make us choose.

use super::*;
use crate::local_address::LocalSource;
use lydian_wire::Services;
use rand_chacha::rand_core::SeedableRng;

const START: u64 = 1_790_000_000;

struct World {
    seconds: u64,
    connections: Vec<(ConnectionKind, Endpoint)>,
    attempts: Vec<(ConnectionKind, Endpoint)>,
    reachable: BTreeSet<Network>,
    own: LocalAddresses,
    added: Vec<String>,
    wants_extra_full_relay: bool,
    wants_extra_block_relay: bool,
    addrman: AddrMan,
    random: ChaCha20Rng,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        World {
            seconds: 0,
            connections: Vec::new(),
            attempts: Vec::new(),
            reachable: [Network::Ipv4, Network::Ipv6].into(),
            own: LocalAddresses::default(),
            added: Vec::new(),
            wants_extra_full_relay: false,
            wants_extra_block_relay: false,
            addrman: AddrMan::new(&mut random),
            random,
        }
    }

    fn now(&self) -> Moment {
        Moment::new(Duration::from_secs(self.seconds), UnixTime(START + self.seconds))
    }

    fn outbound(&mut self, automatic_max: usize, anchors: &[TimedAddress]) -> Outbound {
        Outbound::new(automatic_max, anchors.to_vec(), self.now(), &mut self.random)
    }

    /// Adds `count` addresses, each in its own netgroup.
    fn fill(&mut self, count: u32) {
        for number in 0..count {
            self.add_address(address(number));
        }
    }

    fn add_address(&mut self, address: TimedAddress) {
        let now = self.now().unix;
        let source = address.endpoint.addr;
        self.addrman.add(&[address], &source, 0, now);
    }

    fn next(&mut self, outbound: &mut Outbound) -> Option<Wish> {
        let added: Vec<_> = self.added.iter().map(String::as_str).collect();
        let scene = Scene {
            now: self.now(),
            connections: &self.connections,
            attempts: &self.attempts,
            reachable: &self.reachable,
            own: &self.own,
            added: &added,
            is_near_tip: false,
            wants_extra_full_relay: self.wants_extra_full_relay,
            wants_extra_block_relay: self.wants_extra_block_relay,
        };
        outbound.next(&scene, &mut self.addrman, &mut self.random)
    }

    /// Makes all wanted connections until none is wanted for a while.
    fn connect(&mut self, outbound: &mut Outbound) -> Vec<ConnectionKind> {
        let mut kinds = Vec::new();
        while let Some(wish) = self.next(outbound) {
            self.connections.push((wish.kind, wish.address.endpoint));
            kinds.push(wish.kind);
            assert!(kinds.len() < 100, "{kinds:?}");
        }
        kinds
    }
}

fn address(number: u32) -> TimedAddress {
    let endpoint = Endpoint::new(NetAddr::Ipv4((0x0b00_0007 + (number << 16)).into()), 8333);
    TimedAddress { time: UnixTime(START).to_u32(), services: Services::NETWORK | Services::WITNESS, endpoint }
}

const FULL: ConnectionKind = ConnectionKind::OutboundFullRelay;
const BLOCKS: ConnectionKind = ConnectionKind::BlockRelayOnly;

/// limit: FULL_RELAY_PEERS_MAX at
/// limit: FULL_RELAY_PEERS_MAX above
/// limit: BLOCK_RELAY_PEERS_MAX at
/// limit: BLOCK_RELAY_PEERS_MAX above
/// checklist: 84
#[test]
fn eight_full_and_two_block_relay_peers_of_different_groups() {
    let mut world = World::new(1);
    world.fill(2000);
    let mut outbound = world.outbound(125, &[]);
    assert_eq!(
        world.connect(&mut outbound),
        [vec![FULL; FULL_RELAY_PEERS_MAX], vec![BLOCKS; BLOCK_RELAY_PEERS_MAX]].concat()
    );
    let groups: BTreeSet<_> = world.connections.iter().map(|(_, endpoint)| endpoint.addr.netgroup()).collect();
    assert_eq!(groups.len(), 10);
    for (automatic_max, expected) in [(0, (0, 0)), (5, (5, 0)), (9, (8, 1)), (10, (8, 2)), (11, (8, 2))] {
        let outbound = world.outbound(automatic_max, &[]);
        assert_eq!((outbound.full_relay_max(), outbound.block_relay_max()), expected);
    }
}

/// Ten thousand addresses in three netgroups and ten in others: at most three connections go to the three groups.
/// checklist: 84
#[test]
fn few_groups_get_few_connections() {
    let mut world = World::new(2);
    for number in 0..10_000_u32 {
        let low = number / 3;
        let addr = NetAddr::Ipv4((0x0c00_0000 + ((number % 3) << 16) + low).into());
        world.add_address(TimedAddress { endpoint: Endpoint { addr, port: 8333 }, ..address(0) });
    }
    world.fill(10);
    let mut outbound = world.outbound(125, &[]);
    for _ in 0..200 {
        world.connect(&mut outbound);
        world.seconds += 1;
    }
    let is_evil = |endpoint: &Endpoint| matches!(endpoint.addr, NetAddr::Ipv4(ip) if ip.octets()[0] == 12);
    let evil = world.connections.iter().filter(|(kind, endpoint)| is_standing(*kind) && is_evil(endpoint)).count();
    assert!(evil <= 3, "{:?}", world.connections);
}

#[test]
fn anchors_come_first_if_they_are_of_use() {
    let mut world = World::new(3);
    world.fill(500);
    let useless = TimedAddress { services: Services::NONE, ..address(9000) };
    let mut outbound = world.outbound(125, &[address(7000), useless]);
    assert_eq!(world.next(&mut outbound).map(|wish| (wish.kind, wish.address)), Some((BLOCKS, address(7000))));
    world.connections.push((BLOCKS, address(7000).endpoint));
    assert_eq!(world.connect(&mut outbound), [vec![FULL; 8], vec![BLOCKS]].concat());
    // An anchor in a netgroup that we already have a peer in, and one that is our own address.
    world.connections = vec![(ConnectionKind::Manual, address(1).endpoint)];
    world.own.add(address(2).endpoint, LocalSource::Manual);
    let mut outbound = world.outbound(125, &[address(1), address(2)]);
    assert_eq!(world.next(&mut outbound), None);
    assert_eq!(world.next(&mut outbound).map(|wish| wish.kind), Some(FULL));
}

#[test]
fn feelers_and_extra_peers_come_by_chance_in_time() {
    let mut world = World::new(4);
    world.fill(3000);
    world.reachable.insert(Network::I2p);
    world.add_address(TimedAddress { endpoint: Endpoint { addr: NetAddr::I2p([3; 32]), port: 0 }, ..address(0) });
    let mut outbound = world.outbound(125, &[]);
    world.connect(&mut outbound);
    let is_i2p = |wish: &Wish| wish.address.endpoint.addr.is_i2p();
    world.connections.retain(|(_, endpoint)| !endpoint.addr.is_i2p());
    world.connect(&mut outbound);
    world.wants_extra_block_relay = true;
    let (mut feelers, mut blocks, mut networks) = (0, 0, 0);
    for _ in 0..2 * 3600 {
        world.seconds += 1;
        if let Some(wish) = world.next(&mut outbound) {
            match wish.kind {
                ConnectionKind::Feeler => feelers += 1,
                BLOCKS => blocks += 1,
                kind => {
                    assert!(kind == FULL && is_i2p(&wish), "{wish:?}");
                    networks += 1;
                }
            }
            assert!(wish.count_failure);
        }
    }
    // On average every 2, 5 and 5 minutes, out of 120.
    assert!(
        (40..80).contains(&feelers) && (12..40).contains(&blocks) && (10..40).contains(&networks),
        "{feelers} {blocks} {networks}"
    );
    world.wants_extra_full_relay = true;
    assert_eq!(world.next(&mut outbound).map(|wish| wish.kind), Some(FULL));
}

/// With no connection, a failure may be ours and is not counted.
#[test]
fn failures_count_when_others_can_be_reached() {
    let mut world = World::new(5);
    world.fill(300);
    let mut outbound = world.outbound(125, &[]);
    for connected in 0..4 {
        let wish = world.next(&mut outbound).unwrap();
        assert_eq!(wish.count_failure, connected >= 2);
        world.connections.push((wish.kind, wish.address.endpoint));
    }
}

#[test]
fn odd_addresses_come_when_there_is_nothing_else() {
    let chosen = |change: &dyn Fn(&mut World, &mut TimedAddress)| {
        let mut world = World::new(6);
        let mut one = address(1);
        change(&mut world, &mut one);
        world.add_address(one);
        let mut outbound = world.outbound(125, &[]);
        world.next(&mut outbound).is_some()
    };
    assert!(chosen(&|_, _| {}));
    assert!(chosen(&|_, one| one.endpoint.port = 22), "a bad port, after 50 draws");
    assert!(!chosen(&|_, one| one.services = Services::NETWORK), "no witnesses");
    assert!(!chosen(&|world, one| world.added.extend([one.endpoint.to_string()])));
    assert!(!chosen(&|world, one| world.own.add(one.endpoint, LocalSource::Manual)));
    assert!(!chosen(&|world, _| world.reachable.clear()));
    let mut world = World::new(7);
    world.fill(2);
    world.addrman.attempt(&address(0).endpoint, false, UnixTime(START - 60));
    for (port, number) in [(22, 100_u32), (25, 101)] {
        world.add_address(TimedAddress { endpoint: Endpoint { port, ..address(number).endpoint }, ..address(0) });
    }
    let mut outbound = world.outbound(125, &[]);
    assert_eq!(
        world.next(&mut outbound).unwrap().address.endpoint,
        address(1).endpoint,
        "neither recent nor a bad port"
    );
}

/// A feeler tests the entry of the tried table that another would displace; if we are connected to it, it stays.
#[test]
fn feelers_test_who_would_be_displaced() {
    let mut world = World::new(8);
    let source = NetAddr::UNSPECIFIED;
    let mut number = 0;
    while world.addrman.collision_count() == 0 {
        let one = address(number);
        world.addrman.add(&[one], &source, 0, UnixTime(START));
        world.addrman.good(&one.endpoint, UnixTime(START));
        number += 1;
    }
    world.fill(number + 50);
    let (old, _) = world.addrman.select_tried_collision().unwrap();
    // The waiting address answers again, hours after the old one.
    world.seconds = 5 * 3600;
    world.addrman.good(&address(number - 1).endpoint, world.now().unix);
    let mut outbound = world.outbound(0, &[]);
    world.seconds += 1800;
    let wish = world.next(&mut outbound).unwrap();
    assert_eq!((wish.kind, wish.address.endpoint), (ConnectionKind::Feeler, old.endpoint));
    world.connections.push((FULL, old.endpoint));
    world.seconds += 540;
    let wish = world.next(&mut outbound);
    assert_ne!(wish.map(|wish| wish.address.endpoint), Some(old.endpoint));
    assert_eq!(world.addrman.get(&old.endpoint).unwrap().last_success, world.now().unix);
}
