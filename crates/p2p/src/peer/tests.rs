//! Two peers that talk to each other, peers that break the rules, timeouts, and random messages in any order.

use super::*;
use crate::UnixTime;
use crate::bans::DEFAULT_BAN_TIME_S;
use crate::limits::{ADDR_TOKENS_MAX, ADDRESSES_TO_SEND_MAX};
use crate::local_address::LocalSettings;
use lydian_wire::NetAddr;
use lydian_wire::message::{PROTOCOL_VERSION, SendCmpct, Version};
use proptest::prelude::*;
use rand_chacha::rand_core::SeedableRng;

const START: u64 = 1_790_000_000;

/// Everything that a context borrows.
struct World {
    local: Local,
    seconds: u64,
    is_near_tip: bool,
    own_nonces: BTreeSet<u64>,
    bans: Bans,
    reachable: BTreeSet<Network>,
    random: ChaCha20Rng,
}

impl World {
    fn new() -> World {
        let mut random = ChaCha20Rng::seed_from_u64(4);
        World {
            local: Local {
                services: Services::NETWORK | Services::WITNESS,
                user_agent: b"/Lydian/".to_vec(),
                ignores_transactions: true,
                peer_timeout: Duration::from_secs(60),
                own: LocalAddresses::default(),
            },
            seconds: 0,
            is_near_tip: false,
            own_nonces: BTreeSet::new(),
            bans: Bans::new(DEFAULT_BAN_TIME_S, &mut random),
            reachable: [Network::Ipv4, Network::Ipv6].into(),
            random,
        }
    }

    fn now(&self) -> Moment {
        Moment::new(Duration::from_secs(self.seconds), UnixTime(START + self.seconds))
    }

    fn context(&mut self) -> Context<'_> {
        Context {
            now: self.now(),
            local: &self.local,
            best_height: 7,
            is_near_tip: self.is_near_tip,
            is_initial_block_download: false,
            own_nonces: &self.own_nonces,
            bans: &self.bans,
            reachable: &self.reachable,
            random: &mut self.random,
        }
    }

    fn peer(&self, kind: ConnectionKind) -> Peer {
        self.peer_with(kind, Permissions::NONE)
    }

    fn peer_with(&self, kind: ConnectionKind, permissions: Permissions) -> Peer {
        let connection = Connection {
            kind,
            endpoint: Endpoint::new(NetAddr::Ipv4([1, 2, 3, 4].into()), 8333),
            services: Services::NETWORK,
            permissions,
            is_proxied: false,
            is_onion: false,
            nonce: 99,
        };
        Peer::new(connection, self.now())
    }

    fn send(&mut self, peer: &mut Peer, message: &Message) -> Vec<Event> {
        self.send_raw(peer, message.command(), message.payload())
    }

    fn send_raw(&mut self, peer: &mut Peer, command: Command, payload: Vec<u8>) -> Vec<Event> {
        let mut out = Vec::new();
        peer.receive(command, payload, &mut self.context(), &mut out);
        without_notes(out)
    }

    fn begin(&mut self, peer: &mut Peer) -> Vec<Event> {
        let mut out = Vec::new();
        peer.begin(&mut self.context(), &mut out);
        without_notes(out)
    }

    fn tick(&mut self, peer: &mut Peer) -> Vec<Event> {
        let mut out = Vec::new();
        peer.tick(&mut self.context(), &mut out);
        without_notes(out)
    }

    /// A peer after its handshake.
    fn connected(&mut self, kind: ConnectionKind) -> Peer {
        self.connected_with(kind, Permissions::NONE)
    }

    fn connected_with(&mut self, kind: ConnectionKind, permissions: Permissions) -> Peer {
        let mut peer = self.peer_with(kind, permissions);
        self.begin(&mut peer);
        self.send(&mut peer, &version());
        self.send(&mut peer, &Message::SendAddrV2);
        let out = self.send(&mut peer, &Message::Verack);
        assert!(out.contains(&Event::Connected) && peer.is_connected(), "{kind:?}");
        let now = self.now();
        peer.note_sent(now);
        peer
    }
}

/// Log notes are not part of the conversation.
fn without_notes(mut events: Vec<Event>) -> Vec<Event> {
    events.retain(|event| !matches!(event, Event::Note(_)));
    events
}

fn version_with(change: impl Fn(&mut Version)) -> Message {
    let mut version = Version {
        version: PROTOCOL_VERSION,
        services: Services::NETWORK | Services::WITNESS,
        time: i64::try_from(START + 30).unwrap(),
        receiver_services: Services::NONE,
        receiver: Endpoint::new(NetAddr::Ipv4([8, 8, 8, 8].into()), 8333),
        nonce: 5,
        user_agent: b"/peer:1\x1b/".to_vec(),
        start_height: 3,
        relay: true,
    };
    change(&mut version);
    Message::Version(Box::new(version))
}

fn version() -> Message {
    version_with(|_| {})
}

fn sent(events: &[Event]) -> Vec<&'static str> {
    let name = |event: &Event| match event {
        Event::Send(message) => Command::ALL.iter().find(|command| **command == message.command()).map(Command::as_str),
        _ => None,
    };
    events.iter().filter_map(name).collect()
}

fn ended(events: &[Event]) -> Option<DisconnectReason> {
    events.iter().find_map(|event| if let Event::Disconnect(reason) = event { Some(*reason) } else { None })
}

fn address(number: u32, time: u64) -> TimedAddress {
    let endpoint = Endpoint::new(NetAddr::Ipv4((0x0808_0000 + number).into()), 8333);
    TimedAddress { time: UnixTime(time).to_u32(), services: Services::NETWORK | Services::WITNESS, endpoint }
}

const KINDS: [ConnectionKind; 6] = [
    ConnectionKind::Inbound,
    ConnectionKind::OutboundFullRelay,
    ConnectionKind::Manual,
    ConnectionKind::Feeler,
    ConnectionKind::BlockRelayOnly,
    ConnectionKind::AddrFetch,
];

#[test]
fn a_handshake_has_cores_order() {
    let mut world = World::new();
    for kind in KINDS {
        let mut peer = world.peer(kind);
        let begun = world.begin(&mut peer);
        assert_eq!(sent(&begun), if kind.is_inbound() { vec![] } else { vec!["version"] }, "{kind:?}");
        assert_eq!(world.begin(&mut peer), [], "once");
        let answer = world.send(&mut peer, &version());
        let mut expected = vec!["wtxidrelay", "sendaddrv2", "verack"];
        match kind {
            ConnectionKind::Inbound => expected.insert(0, "version"),
            ConnectionKind::OutboundFullRelay | ConnectionKind::Manual | ConnectionKind::AddrFetch => {
                expected.push("getaddr");
            }
            ConnectionKind::Feeler | ConnectionKind::BlockRelayOnly => {}
        }
        assert_eq!(sent(&answer), expected, "{kind:?}");
        assert_eq!(answer.contains(&Event::Good), !kind.is_inbound());
        assert!(answer.contains(&Event::TimeOffset(30)));
        assert_eq!(answer.iter().any(|event| matches!(event, Event::SeenLocal(_))), kind.is_inbound());
        assert_eq!(ended(&answer), (kind == ConnectionKind::Feeler).then_some(DisconnectReason::FeelerCompleted));
        if kind == ConnectionKind::Feeler {
            assert!(!peer.updates_addrman_at_end());
            continue;
        }
        assert_eq!(world.send(&mut peer, &version()), [], "a second version is ignored");
        assert_eq!(world.send(&mut peer, &Message::GetAddr), [], "too early");
        assert_eq!(sent(&world.send(&mut peer, &Message::Verack)), ["sendcmpct"]);
        assert_eq!(world.send(&mut peer, &Message::Verack), []);
        assert!(peer.is_connected());
        assert_eq!((peer.user_agent.as_str(), peer.start_height, peer.time_offset_s), ("/peer:1/", 3, 30));
        let is_for_blocks = kind == ConnectionKind::BlockRelayOnly;
        assert_eq!(peer.relays_transactions, !is_for_blocks);
        assert_eq!(peer.updates_addrman_at_end(), !kind.is_inbound() && !is_for_blocks);
    }
}

/// Each side understands the messages of the other, until both are finished.
#[test]
fn two_of_us_agree() {
    let mut world = World::new();
    let mut sides = [world.peer(ConnectionKind::OutboundFullRelay), world.peer(ConnectionKind::Inbound)];
    let mut said = [world.begin(&mut sides[0]), Vec::new()];
    while said.iter().any(|events| !events.is_empty()) {
        for side in 0..2 {
            for event in std::mem::take(&mut said[side]) {
                assert!(!matches!(event, Event::Disconnect(_) | Event::Misbehaving(_)), "{event:?}");
                if let Event::Send(message) = event {
                    let answer = world.send(&mut sides[1 - side], &message);
                    said[1 - side].extend(answer);
                }
            }
        }
    }
    for peer in &sides {
        assert!(peer.is_connected() && peer.wtxid_relay && peer.wants_addrv2 && peer.provides_compact_blocks);
        assert!(!peer.relays_transactions && !peer.high_bandwidth_from);
        assert_eq!((peer.common_version, peer.start_height), (PROTOCOL_VERSION, 7));
    }
    let mut out = Vec::new();
    sides[0].send_sendheaders(&mut out);
    sides[0].send_sendheaders(&mut out);
    assert_eq!(sent(&out), ["sendheaders"]);
    world.send(&mut sides[1], &Message::SendHeaders);
    assert!(sides[1].prefers_headers);
}

#[test]
fn a_version_decides_whether_the_connection_is_of_use() {
    let mut world = World::new();
    let mut check = |kind, message: &Message, expected| {
        let mut peer = world.peer(kind);
        world.begin(&mut peer);
        let out = world.send(&mut peer, message);
        assert_eq!(ended(&out), expected, "{kind:?}");
        assert_eq!(peer.is_over(), expected.is_some());
    };
    let services = |offered| version_with(move |version| version.services = offered);
    for offered in [Services::NONE, Services::NETWORK, Services::NETWORK_LIMITED | Services::WITNESS] {
        let expected = desirable_services(offered, false);
        let useless = Some(DisconnectReason::Services { offered, expected });
        for kind in KINDS.into_iter().filter(|kind| kind.expects_services()) {
            check(kind, &services(offered), useless);
        }
        check(ConnectionKind::Manual, &services(offered), None);
        check(ConnectionKind::Inbound, &services(offered), None);
    }
    let old = version_with(|version| version.version = 31799);
    let obsolete = Some(DisconnectReason::ObsoleteVersion { version: 31799 });
    check(ConnectionKind::Inbound, &old, obsolete);
    check(ConnectionKind::OutboundFullRelay, &old, obsolete);
    check(ConnectionKind::Inbound, &version_with(|version| version.version = 31800), None);

    world.is_near_tip = true;
    let mut peer = world.peer(ConnectionKind::OutboundFullRelay);
    world.begin(&mut peer);
    let out = world.send(&mut peer, &services(Services::NETWORK_LIMITED | Services::WITNESS));
    assert_eq!(ended(&out), None);
    world.own_nonces.insert(5);
    let mut peer = world.peer(ConnectionKind::Inbound);
    assert_eq!(world.send(&mut peer, &version()), [Event::Disconnect(DisconnectReason::ConnectedToSelf)]);
}

/// An old peer gets no messages that its version does not know.
#[test]
fn old_versions_get_less() {
    let mut world = World::new();
    for (number, early, late) in [
        (70017, vec!["version", "wtxidrelay", "sendaddrv2", "verack"], vec!["sendcmpct"]),
        (70015, vec!["version", "verack"], vec!["sendcmpct"]),
        (70013, vec!["version", "verack"], vec![]),
        (60000, vec!["version", "verack"], vec![]),
    ] {
        let mut peer = world.peer(ConnectionKind::Inbound);
        let hello = version_with(|version| version.version = number);
        assert_eq!(sent(&world.send(&mut peer, &hello)), early);
        world.send(&mut peer, &Message::WtxidRelay);
        assert_eq!(peer.wtxid_relay, number >= 70016);
        assert_eq!(sent(&world.send(&mut peer, &Message::Verack)), late);
        let pong = world.send(&mut peer, &Message::Ping(Some(8)));
        assert_eq!(pong.is_empty(), number <= 60000);
        let mut out = Vec::new();
        peer.send_sendheaders(&mut out);
        assert_eq!(out.is_empty(), number < 70012);
        let out = world.tick(&mut peer);
        assert_eq!(out.contains(&Event::Send(Message::Ping(None))), number <= 60000, "{out:?}");
    }
}

/// checklist: 85
#[test]
fn negotiation_has_its_time() {
    let mut world = World::new();
    let early_only = [Command::WTXIDRELAY, Command::SENDADDRV2, Command::FEATURE];
    let feature = |id: &[u8]| {
        let mut payload = vec![u8::try_from(id.len()).unwrap()];
        payload.extend_from_slice(id);
        payload.push(0);
        payload
    };
    for command in Command::ALL.iter().filter(|command| **command != Command::VERSION) {
        let mut peer = world.peer(ConnectionKind::Inbound);
        assert_eq!(world.send_raw(&mut peer, *command, vec![0; 200]), [], "{command:?} before version");
        world.send(&mut peer, &version());
        let payload = if *command == Command::FEATURE { feature(b"any feature") } else { Vec::new() };
        let out = world.send_raw(&mut peer, *command, payload.clone());
        assert_eq!(ended(&out), None, "{command:?} before verack");
        world.send(&mut peer, &Message::Verack);
        let out = world.send_raw(&mut peer, *command, payload);
        let late = early_only.contains(command).then_some(DisconnectReason::AfterVerack { command: *command });
        if late.is_some() {
            assert_eq!(ended(&out), late, "{command:?} after verack");
        }
    }
    let mut peer = world.peer(ConnectionKind::Inbound);
    world.send(&mut peer, &version_with(|version| version.version = 70016));
    let out = world.send_raw(&mut peer, Command::FEATURE, feature(b"any feature"));
    assert_eq!(ended(&out), Some(DisconnectReason::FeatureVersion { version: 70016 }));
    let mut peer = world.peer(ConnectionKind::Inbound);
    world.send(&mut peer, &version());
    let out = world.send_raw(&mut peer, Command::FEATURE, feature(b"abc"));
    assert!(matches!(ended(&out), Some(DisconnectReason::Payload { command: Command::FEATURE, .. })), "{out:?}");
    let mut peer = world.peer(ConnectionKind::Inbound);
    world.send(&mut peer, &version());
    let out = world.send_raw(&mut peer, Command::SENDCMPCT, vec![2, 2, 0, 0, 0, 0, 0, 0, 0]);
    assert!(matches!(out[..], [Event::Misbehaving(Misbehaviour { command: Command::SENDCMPCT, .. })]), "{out:?}");
    world.send(&mut peer, &Message::SendCmpct(SendCmpct { high_bandwidth: true, version: 1 }));
    assert!(!peer.provides_compact_blocks);
}

/// checklist: 79, 80
#[test]
fn what_cannot_be_read_is_not_punished_and_what_exceeds_a_limit_is() {
    let mut world = World::new();
    let mut peer = world.connected(ConnectionKind::Inbound);
    for command in [Command::ADDR, Command::INV, Command::HEADERS, Command::PING, Command::GETDATA, Command::CMPCTBLOCK]
    {
        assert_eq!(world.send_raw(&mut peer, command, vec![0xff]), [], "{command:?}");
    }
    assert_eq!(world.send_raw(&mut peer, Command::new("nonsense").unwrap(), vec![1]), []);
    let too_many = Message::Addr((0..1001).map(|number| address(number, START)).collect());
    let out = world.send(&mut peer, &too_many);
    assert!(matches!(out[..], [Event::Misbehaving(Misbehaviour { command: Command::ADDR, .. })]), "{out:?}");
    assert!(!peer.is_over(), "what that costs is decided elsewhere");
    let mut quiet = world.connected(ConnectionKind::BlockRelayOnly);
    assert_eq!(world.send(&mut quiet, &too_many), [], "nobody looks");

    let punishment = |kind, permissions, addr: &str| {
        let mut peer = world.peer_with(kind, permissions);
        peer.connection.endpoint = Endpoint { addr: addr.parse().unwrap(), port: 1 };
        peer.punishment()
    };
    let inbound = ConnectionKind::Inbound;
    assert_eq!(punishment(inbound, Permissions::NONE, "9.9.9.9"), Punishment::DisconnectAndDiscourage);
    assert_eq!(punishment(inbound, Permissions::NONE, "127.0.0.1"), Punishment::Disconnect);
    assert_eq!(punishment(inbound, Permissions::NO_BAN, "9.9.9.9"), Punishment::None);
    assert_eq!(punishment(inbound, Permissions::DOWNLOAD, "9.9.9.9"), Punishment::DisconnectAndDiscourage);
    assert_eq!(punishment(ConnectionKind::Manual, Permissions::NONE, "9.9.9.9"), Punishment::None);
}

#[test]
fn services_that_are_not_offered_end_the_connection() {
    let mut world = World::new();
    let cases = [
        (Command::FILTERLOAD, Permissions::NO_BAN, true),
        (Command::FILTERCLEAR, Permissions::NONE, true),
        (Command::MEMPOOL, Permissions::NONE, true),
        (Command::MEMPOOL, Permissions::NO_BAN, false),
        (Command::MEMPOOL, Permissions::MEMPOOL, false),
        (Command::TX, Permissions::NONE, true),
        (Command::TX, Permissions::RELAY, false),
        (Command::GETDATA, Permissions::NONE, false),
    ];
    for (command, permissions, expected) in cases {
        let mut peer = world.connected_with(ConnectionKind::Inbound, permissions);
        let out = world.send_raw(&mut peer, command, vec![0]);
        assert_eq!(ended(&out).is_some(), expected, "{command:?} {permissions:?}");
    }
    assert_eq!(Permissions::NO_BAN.names(), ["noban", "download"]);
}

#[test]
fn pings_measure_and_time_out() {
    let mut world = World::new();
    let mut peer = world.connected(ConnectionKind::Inbound);
    let nonce = |events: &[Event]| {
        events.iter().find_map(|event| if let Event::Send(Message::Ping(nonce)) = event { *nonce } else { None })
    };
    let first = nonce(&world.tick(&mut peer)).unwrap();
    world.seconds = 5;
    assert_eq!(peer.ping_wait(world.now()), Some(Duration::from_secs(5)));
    world.send(&mut peer, &Message::Pong(Some(first ^ 1)));
    assert_eq!(peer.ping_times(), None, "another's nonce");
    world.send(&mut peer, &Message::Pong(Some(first)));
    assert_eq!(peer.ping_times(), Some((Duration::from_secs(5), Duration::from_secs(5))));
    world.send(&mut peer, &Message::Pong(Some(first)));
    world.seconds = 120;
    assert_eq!(nonce(&world.tick(&mut peer)), None, "not yet");
    world.seconds = 121;
    let second = nonce(&world.tick(&mut peer)).unwrap();
    world.seconds = 129;
    world.send(&mut peer, &Message::Pong(Some(second)));
    assert_eq!(peer.ping_times(), Some((Duration::from_secs(8), Duration::from_secs(5))));
    peer.queue_ping();
    assert!(nonce(&world.tick(&mut peer)).is_some());
    world.send_raw(&mut peer, Command::PONG, vec![1, 2]);
    assert_eq!(peer.ping_wait(world.now()), None, "a short answer ends the wait");
    peer.queue_ping();
    assert!(nonce(&world.tick(&mut peer)).is_some());
    world.seconds += 20 * 60;
    peer.note_received(world.now());
    peer.note_sent(world.now());
    assert_eq!(ended(&world.tick(&mut peer)), None);
    world.seconds += 1;
    assert_eq!(
        ended(&world.tick(&mut peer)),
        Some(DisconnectReason::PingTimeout { wait: Duration::from_secs(20 * 60 + 1) })
    );
    assert_eq!(world.tick(&mut peer), []);
    assert_eq!(world.send(&mut peer, &Message::Ping(Some(1))), []);
}

#[test]
fn silence_ends_a_connection() {
    let check = |prepare: &dyn Fn(&mut World) -> Peer, last_quiet: u64, expected| {
        let mut world = World::new();
        let mut peer = prepare(&mut world);
        world.seconds = last_quiet;
        assert_eq!(ended(&world.tick(&mut peer)), None, "{expected:?}");
        world.seconds += 1;
        assert_eq!(ended(&world.tick(&mut peer)), Some(expected));
    };
    let nothing = DisconnectReason::NoMessage { seconds: 60, has_received: false, has_sent: false };
    check(&|world| world.peer(ConnectionKind::Inbound), 60, nothing);
    let half = |world: &mut World| {
        let mut peer = world.peer(ConnectionKind::Inbound);
        world.send(&mut peer, &version());
        peer.note_sent(world.now());
        peer
    };
    check(&half, 60, DisconnectReason::HandshakeTimeout);
    let silent = |sends: bool| {
        move |world: &mut World| {
            let mut peer = world.connected(ConnectionKind::Inbound);
            world.seconds = 100;
            if sends {
                peer.note_sent(world.now())
            } else {
                peer.note_received(world.now())
            }
            world.seconds = 0;
            peer
        }
    };
    check(&silent(true), 20 * 60, DisconnectReason::ReceiveTimeout { seconds: 20 * 60 + 1 });
    check(&silent(false), 20 * 60, DisconnectReason::SendTimeout { seconds: 20 * 60 + 1 });
    // It is connected only for addresses, and occupies a slot until it has sent some.
    let fetch = |world: &mut World| {
        let mut peer = world.connected(ConnectionKind::AddrFetch);
        peer.note_sent(world.now());
        peer
    };
    check(&fetch, 5 * 60, DisconnectReason::AddrFetchTimeout);
}

/// limit: ADDR_TOKENS_MAX at
/// limit: ADDR_TOKENS_MAX above
/// checklist: 68
#[test]
fn addresses_are_limited_by_rate() {
    let flood = |permissions, seconds: u64, kind| {
        let mut world = World::new();
        let mut peer = world.connected_with(kind, permissions);
        world.seconds = seconds;
        let mut stored = 0;
        for turn in 0..3 {
            let message = Message::Addr((0..1000).map(|number| address(turn * 1000 + number, START)).collect());
            for event in world.send(&mut peer, &message) {
                if let Event::Store(addresses) = event {
                    stored += addresses.len();
                }
            }
        }
        assert_eq!(peer.addr_counts().0, stored as u64);
        (stored, peer.addr_counts().1)
    };
    let inbound = ConnectionKind::Inbound;
    assert_eq!(flood(Permissions::NONE, 0, inbound), (1, 2999), "one at once");
    assert_eq!(flood(Permissions::NONE, 95, inbound), (10, 2990), "one in ten seconds");
    assert_eq!(flood(Permissions::NONE, 10_000_000, inbound).0, ADDR_TOKENS_MAX as usize);
    assert_eq!(flood(Permissions::ADDR, 0, inbound), (3000, 0));
    assert_eq!(flood(Permissions::NONE, 0, ConnectionKind::OutboundFullRelay), (1001, 1999), "the answer to getaddr");
}

#[test]
fn addresses_are_sorted_out() {
    let mut world = World::new();
    let mut peer = world.connected_with(ConnectionKind::Inbound, Permissions::ADDR);
    let banned = address(1, START);
    let discouraged = address(2, START);
    world.bans.ban("8.8.0.1".parse().unwrap(), 0, false, UnixTime(START));
    world.bans.discourage(&discouraged.endpoint.addr);
    let useless = TimedAddress { services: Services::BLOOM, ..address(3, START) };
    let onion = TimedAddress { endpoint: Endpoint { addr: NetAddr::TorV3([1; 32]), port: 1 }, ..address(4, START) };
    let (future, old, fresh) = (address(5, START + 601), address(6, START - 700), address(7, START - 599));
    let out = world.send(&mut peer, &Message::AddrV2(vec![banned, discouraged, useless, onion, future, old, fresh]));
    let mut stored =
        out.iter().find_map(|event| if let Event::Store(all) = event { Some(all.clone()) } else { None }).unwrap();
    stored.sort_by_key(|address| address.endpoint);
    let dated = TimedAddress { time: UnixTime(START - 5 * 24 * 3600).to_u32(), ..future };
    assert_eq!(stored, [dated, old, fresh]);
    let mut relayed: Vec<_> = out.iter().filter(|event| matches!(event, Event::Relay { .. })).collect();
    relayed.sort_by_key(|event| matches!(event, Event::Relay { is_reachable: true, .. }));
    let expected =
        [Event::Relay { address: onion, is_reachable: false }, Event::Relay { address: fresh, is_reachable: true }];
    assert_eq!(relayed, expected.iter().collect::<Vec<_>>());

    // Addresses in a large message or in an answer are not relayed.
    let eleven = Message::Addr((100..111).map(|number| address(number, START)).collect());
    assert!(!world.send(&mut peer, &eleven).iter().any(|event| matches!(event, Event::Relay { .. })));
    let mut outbound = world.connected(ConnectionKind::OutboundFullRelay);
    let one = Message::Addr(vec![address(200, START)]);
    assert!(!world.send(&mut outbound, &one).iter().any(|event| matches!(event, Event::Relay { .. })));
    assert!(world.send(&mut outbound, &one).iter().any(|event| matches!(event, Event::Relay { .. })));

    let mut fetch = world.connected(ConnectionKind::AddrFetch);
    assert_eq!(ended(&world.send(&mut fetch, &one)), None, "its own address alone");
    assert_eq!(ended(&world.send(&mut fetch, &eleven)), Some(DisconnectReason::AddrFetchCompleted));
}

#[test]
fn getaddr_is_answered_once_and_to_inbound_peers() {
    let mut world = World::new();
    let mut outbound = world.connected(ConnectionKind::OutboundFullRelay);
    assert_eq!(world.send(&mut outbound, &Message::GetAddr), []);
    let mut permitted = world.connected_with(ConnectionKind::Inbound, Permissions::ADDR);
    assert_eq!(world.send(&mut permitted, &Message::GetAddr), [Event::WantsAddresses(AddressesFrom::Tables)]);
    let mut peer = world.connected(ConnectionKind::Inbound);
    assert!(!peer.is_addr_relay_enabled());
    assert_eq!(world.send(&mut peer, &Message::GetAddr), [Event::WantsAddresses(AddressesFrom::Cache)]);
    assert_eq!(world.send(&mut peer, &Message::GetAddr), []);
    assert!(peer.is_addr_relay_enabled());
    world.send(&mut peer, &Message::Addr(vec![address(1, START)]));
    peer.push_addresses(&[address(1, START), address(2, START), address(2, START)], &mut world.random);
    world.seconds = 1;
    let out = world.tick(&mut peer);
    assert!(out.contains(&Event::Send(Message::AddrV2(vec![address(2, START)]))), "{out:?}");
    peer.push_addresses(&[address(2, START)], &mut world.random);
    world.seconds = 1000;
    assert_eq!(sent(&world.tick(&mut peer)), Vec::<&str>::new(), "it knows that one");
}

/// limit: ADDRESSES_TO_SEND_MAX at
/// limit: ADDRESSES_TO_SEND_MAX above
#[test]
fn a_thousand_addresses_wait_at_most() {
    let mut world = World::new();
    let mut peer = world.connected(ConnectionKind::Inbound);
    for (count, expected) in
        [(ADDRESSES_TO_SEND_MAX, ADDRESSES_TO_SEND_MAX), (ADDRESSES_TO_SEND_MAX + 1, ADDRESSES_TO_SEND_MAX)]
    {
        let start = u32::try_from((count - 999) * 100_000).unwrap();
        let addresses: Vec<_> = (start..).take(count).map(|number| address(number, START)).collect();
        peer.push_addresses(&addresses, &mut world.random);
        world.seconds += 900;
        peer.note_sent(world.now());
        peer.note_received(world.now());
        let out = world.tick(&mut peer);
        let told = out
            .iter()
            .find_map(|event| if let Event::Send(Message::AddrV2(all)) = event { Some(all.len()) } else { None });
        assert!(told.is_some_and(|told| told <= expected && told > expected - 20), "{told:?} of {count}");
        world.send(&mut peer, &Message::Pong(None));
    }
}

#[test]
fn our_own_address_is_sent_alone_first() {
    let mut world = World::new();
    let own = Endpoint::new(NetAddr::Ipv4([7, 7, 7, 7].into()), 8333);
    world.local.own = LocalAddresses::new(
        &LocalSettings { listens: true, external: vec![own], ..LocalSettings::default() },
        &world.reachable,
    );
    let mut peer = world.connected(ConnectionKind::OutboundFullRelay);
    peer.push_addresses(&[address(1, START)], &mut world.random);
    let out = world.tick(&mut peer);
    let told: Vec<_> = out
        .iter()
        .filter_map(|event| if let Event::Send(Message::AddrV2(all)) = event { Some(all) } else { None })
        .collect();
    assert!(matches!(told[..], [first, ..] if first.len() == 1 && first[0].endpoint == own), "{out:?}");
    let mut quiet = world.connected(ConnectionKind::BlockRelayOnly);
    assert_eq!(sent(&world.tick(&mut quiet)), ["ping"]);
}

proptest! {
    /// Random messages in any order: nothing after the end, only handshake messages before it is complete, and only one
    /// end.
    #[test]
    fn any_messages_keep_the_rules(
        kind in prop::sample::select(&KINDS[..]),
        steps in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..60), 0..4_u8, 0..400_u64), 0..60),
    ) {
        let mut world = World::new();
        let mut peer = world.peer(kind);
        world.begin(&mut peer);
        for (index, payload, form, seconds) in steps {
            world.seconds += seconds;
            let was_over = peer.is_over();
            let was_connected = peer.is_connected();
            let command = *index.get(Command::ALL);
            let out = match form {
                0 => world.send_raw(&mut peer, command, payload),
                1 => world.send(&mut peer, &version()),
                2 => world.send(&mut peer, &Message::Verack),
                _ => world.tick(&mut peer),
            };
            if was_over {
                prop_assert_eq!(out, []);
                continue;
            }
            let ends = out.iter().filter(|event| matches!(event, Event::Disconnect(_))).count();
            prop_assert_eq!(ends, usize::from(peer.is_over()));
            prop_assert!(ends == 0 || matches!(out.last(), Some(Event::Disconnect(_))));
            if !was_connected {
                let handshake = ["version", "wtxidrelay", "sendaddrv2", "verack", "getaddr", "sendcmpct"];
                prop_assert!(sent(&out).iter().all(|name| handshake.contains(name)), "{:?}", out);
                let is_other = out.iter().any(|event| matches!(event, Event::Message(_) | Event::Store(_)));
                prop_assert!(!is_other, "{:?}", out);
            }
        }
    }
}
