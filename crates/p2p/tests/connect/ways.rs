//! Every code path that opens a connection, and how it is made: directly, through which proxy, after which DNS queries.

use crate::world::*;
use lydian_consensus::Chain;
use lydian_p2p::manager::ConnectSettings;
use lydian_p2p::proxies::{Proxies, Proxy, ProxyAddress, Target, Way};
use lydian_wire::{Endpoint, NetAddr, Network, Services, TimedAddress};
use std::collections::BTreeSet;

const ONION: &str = "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion";
/// Misspelled, so that it is not a valid address.
const NO_ONION: &str = "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryx.onion";
const CJDNS: &str = "fc00:1:2:3::4";

/// The source of a name or an address to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    AddNode,
    AddNodeLater,
    OneTry,
    Connect,
    SeedNode,
    /// A DNS seed without an address, which is connected to.
    DnsSeed,
    AddConnection,
    Reconnect,
}

const PATHS: [Path; 8] = [
    Path::AddNode,
    Path::AddNodeLater,
    Path::OneTry,
    Path::Connect,
    Path::SeedNode,
    Path::DnsSeed,
    Path::AddConnection,
    Path::Reconnect,
];

fn proxy(port: u16) -> Option<Proxy> {
    let endpoint = Endpoint::new(NetAddr::Ipv4([127, 0, 0, 1].into()), port);
    Some(Proxy { address: ProxyAddress::Tcp(endpoint), isolates_streams: true })
}

/// `-proxy`, and a different `-onion`.
fn all_proxies() -> Proxies {
    let one = proxy(1);
    Proxies { ipv4: one.clone(), ipv6: one.clone(), onion: proxy(2), cjdns: proxy(3), name: one }
}

fn world(path: Path, target: &str, proxies: &Proxies, reachable: &BTreeSet<Network>) -> World {
    let mut connect = ConnectSettings {
        proxies: proxies.clone(),
        has_name_proxy: proxies.name.is_some(),
        v2: path == Path::Reconnect,
        ..settings()
    };
    let only = vec![target.to_owned()];
    match path {
        Path::AddNode => connect.added = only,
        Path::Connect => connect.specified = only,
        Path::SeedNode => (connect.seednodes, connect.chooses_peers) = (only, true),
        Path::DnsSeed => {
            (connect.dns_seed, connect.dns_seeds, connect.chooses_peers) = (true, Some(only), true);
        }
        Path::AddNodeLater | Path::OneTry | Path::AddConnection | Path::Reconnect => {}
    }
    let mut world = World::reaching(reachable.clone(), Chain::Regtest, 1_790_000_000, connect);
    world.answers = if path == Path::Reconnect { Answers::Later } else { Answers::Nobody };
    world.names.insert("name.example".to_owned(), vec![CJDNS.parse().unwrap()]);
    match path {
        Path::AddNodeLater => assert!(world.manager.add_node(target, false)),
        Path::OneTry => world.manager.connect_once(target, false),
        Path::AddConnection => assert!(world.manager.add_connection(target, FULL, false)),
        Path::Reconnect => world.manager.connect_once(target, true),
        _ => {}
    }
    world.act();
    if path == Path::Reconnect
        && let Some((tried, target)) = world.tried.pop().zip(world.targets.pop())
    {
        let endpoint = match target {
            Target::Endpoint(endpoint) => endpoint,
            Target::Name { .. } => Endpoint::default(),
        };
        world.answer_at(&tried, endpoint);
        // Only what follows is checked.
        world.answers = Answers::Nobody;
        let peer = *world.standing.keys().next().unwrap();
        world.manager.retry_with_v1(peer);
        world.end(peer);
        world.act();
    }
    world.run(5);
    world
}

/// Returns the ports of the used proxies, `direct` for a connection without a proxy, `none` for an unreachable target,
/// and the names in DNS queries.
fn ways(world: &World, proxies: &Proxies) -> BTreeSet<String> {
    let name = |target: &Target| match proxies.way(target) {
        Way::Direct(_) => "direct".to_owned(),
        Way::None => "none".to_owned(),
        Way::Proxy(Proxy { address: ProxyAddress::Tcp(endpoint), .. }) => endpoint.port.to_string(),
        Way::Proxy(other) => panic!("{other:?}"),
    };
    let resolved = world.resolved.iter().map(|host| format!("DNS {host}"));
    world.targets.iter().map(name).chain(resolved).collect()
}

/// Regression test: with `-proxy` and `-cjdnsreachable`, `addnode [fc00::...]` was connected to directly. The address
/// was treated as an unroutable IPv6 address, which needs no proxy, like addresses of the local network. This test
/// checks each source of targets with each kind of target.
#[test]
fn every_path_takes_the_same_way() {
    let all: BTreeSet<_> = [Network::Ipv4, Network::Ipv6, Network::TorV3, Network::Cjdns].into();
    let no_cjdns: BTreeSet<_> = [Network::Ipv4, Network::Ipv6].into();
    let (proxied, plain) = (all_proxies(), Proxies::default());
    let onion_only = Proxies { onion: proxy(2), ..Proxies::default() };
    let cases: &[(&str, &Proxies, &BTreeSet<Network>, &[&str])] = &[
        (CJDNS, &proxied, &all, &["3"]),
        (&format!("[{CJDNS}]:8333"), &proxied, &all, &["3"]),
        // The same in Core: if it is not CJDNS, it is an address of the local network.
        (CJDNS, &proxied, &no_cjdns, &["direct"]),
        (CJDNS, &plain, &all, &["direct"]),
        ("name.example", &plain, &all, &["DNS name.example", "direct"]),
        ("name.example", &Proxies { cjdns: proxy(3), ..Proxies::default() }, &all, &["DNS name.example", "3"]),
        ("name.example", &proxied, &all, &["1"]),
        ("8.8.8.8", &proxied, &all, &["1"]),
        ("2001:4860::8", &proxied, &all, &["1"]),
        ("8.8.8.8", &onion_only, &all, &["direct"]),
        (ONION, &proxied, &all, &["2"]),
        (ONION, &onion_only, &all, &["2"]),
        // The operator may connect regardless of -onlynet; without a proxy the target is unreachable, and DNS is never
        // used.
        (ONION, &onion_only, &no_cjdns, &["2"]),
        (ONION, &plain, &no_cjdns, &["none"]),
        (NO_ONION, &plain, &all, &[]),
        (NO_ONION, &onion_only, &all, &[]),
        (NO_ONION, &proxied, &all, &["1"]),
        ("service.I2P.", &plain, &all, &[]),
    ];
    for (target, proxies, reachable, expected) in cases {
        for path in PATHS {
            let found = ways(&world(path, target, proxies, reachable), proxies);
            let mut expected: BTreeSet<_> = expected.iter().map(|way| (*way).to_owned()).collect();
            let is_asked = proxies.name.is_none() && !NetAddr::is_private_name(target);
            if path == Path::DnsSeed && is_asked {
                // A seed is first queried with the service prefix, whatever its name is.
                expected.insert(format!("DNS x9.{target}"));
            }
            assert_eq!(found, expected, "{path:?} {target}");
        }
    }
}

/// An added CJDNS node that is connected is recognized: it is not connected to again, and is reported as connected.
#[test]
fn an_added_cjdns_node_is_known_when_connected() {
    let connect = ConnectSettings { added: vec![format!("[{CJDNS}]:8333")], ..settings() };
    let mut world = World::reaching([Network::Cjdns].into(), Chain::Regtest, 1_790_000_000, connect);
    world.answers = Answers::Later;
    world.run(2);
    let tried = world.tried.first().unwrap().clone();
    let [Target::Endpoint(endpoint)] = world.targets[..] else { panic!("{:?}", world.targets) };
    assert_eq!(endpoint.addr.network(), Network::Cjdns);
    world.answer_at(&tried, endpoint);
    world.run(200);
    assert_eq!(world.tried.len(), 1);
    assert_eq!(world.manager.added_nodes()[0].connected, Some((endpoint, false)));
}

/// Automatic connections, including feelers, anchors and fixed seeds, are made only to reachable networks, whatever the
/// tables contain.
#[test]
fn what_is_chosen_is_of_reachable_networks() {
    let now = 1_790_000_000;
    let services = Services::NETWORK | Services::WITNESS;
    let at = |text: String| {
        let addr: NetAddr = text.parse().unwrap();
        let addr = addr.maybe_cjdns();
        TimedAddress { time: now, services, endpoint: Endpoint::new(addr, 8333) }
    };
    for (reachable, chain) in [
        ([Network::Cjdns].into(), Chain::Regtest),
        ([Network::Ipv6].into(), Chain::Main),
        ([Network::TorV3, Network::Ipv4].into(), Chain::Main),
    ] {
        let reachable: BTreeSet<Network> = reachable;
        let anchors = vec![at("9.9.9.9".to_owned()), at("2001:4860::9".to_owned()), at(CJDNS.to_owned())];
        let connect =
            ConnectSettings { chooses_peers: true, fixed_seeds: true, anchors, proxies: all_proxies(), ..settings() };
        let mut world = World::reaching(reachable.clone(), chain, u64::from(now), connect);
        world.answers = Answers::Nobody;
        for number in 0..200 {
            let some = [format!("{}.7.7.7", 11 + number), format!("2001:{number:x}::7"), format!("fc{number:02x}::7")];
            for text in some {
                let address = at(text);
                let moment = world.now().unix;
                world.manager.addrman_mut().add(&[address], &address.endpoint.addr, 0, moment);
            }
        }
        world.run(300);
        let networks: BTreeSet<_> = world
            .targets
            .iter()
            .map(|target| match target {
                Target::Endpoint(endpoint) => endpoint.addr.network(),
                Target::Name { .. } => panic!("no name was given"),
            })
            .collect();
        assert!(!networks.is_empty() && networks.is_subset(&reachable), "{networks:?} of {reachable:?}");
        assert!(world.resolved.is_empty(), "{:?}", world.resolved);
    }
}
