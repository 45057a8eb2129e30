//! Nodes that choose their peers and find each other by gossiped addresses.
//!
//! They have routable addresses, since no others are relayed. The test's proxy maps each of them to a port on this
//! machine and refuses all other targets. The nodes' clock runs faster than the test's.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads the clock for its node"
)]

#[allow(dead_code, reason = "each test file uses its part")]
mod support;

use lydian_consensus::U256;
use lydian_engine::{Engine, InitialDownload, LogLine, Unobserved};
use lydian_net::{Host, Network};
use lydian_oracle::Scratch;
use lydian_p2p::local_address::{LocalAddresses, LocalSettings};
use lydian_p2p::manager::{ConnectSettings, PeerInfo, Question, Reply};
use lydian_p2p::peer::ConnectionKind;
use lydian_p2p::proxies::{Proxies, Proxy, ProxyAddress};
use lydian_p2p::{Moment, UnixTime};
use lydian_wire::{Endpoint, Network as Net};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use support::wait_until;

/// Factor of the clock: addresses are relayed after half a minute on average.
const HASTE: u32 = 20;

#[derive(Debug)]
struct FastHost {
    began: Instant,
    unix: u64,
}

impl Host for FastHost {
    fn now(&self) -> Moment {
        let elapsed = self.began.elapsed() * HASTE;
        Moment::new(elapsed, UnixTime(self.unix + elapsed.as_secs()))
    }

    fn log_line(&self, _: &LogLine) {}

    fn fill_random(&self, bytes: &mut [u8]) {
        support::fill_random(bytes);
    }
}

/// Where the node with a routable address listens on this machine.
type Map = Arc<Mutex<BTreeMap<String, SocketAddr>>>;

/// Requested targets that do not exist.
type Refused = Arc<Mutex<BTreeSet<String>>>;

/// A SOCKS5 proxy without credentials.
fn proxy(map: &Map, refused: &Refused) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (map, refused) = (Arc::clone(map), Arc::clone(refused));
    thread::spawn(move || {
        for client in listener.incoming() {
            let (map, refused) = (Arc::clone(&map), Arc::clone(&refused));
            thread::spawn(move || serve(client.unwrap(), &map, &refused));
        }
    });
    address
}

fn serve(mut client: TcpStream, map: &Map, refused: &Refused) -> Option<()> {
    let mut head = [0; 2];
    client.read_exact(&mut head).ok()?;
    client.read_exact(&mut vec![0; usize::from(head[1])]).ok()?;
    client.write_all(&[5, 0]).ok()?;
    let mut request = [0; 5];
    client.read_exact(&mut request).ok()?;
    let mut name = vec![0; usize::from(request[4])];
    client.read_exact(&mut name).ok()?;
    client.read_exact(&mut [0; 2]).ok()?;
    let name = String::from_utf8(name).ok()?;
    let target = map.lock().unwrap().get(&name).copied();
    let Some(server) = target.and_then(|target| TcpStream::connect(target).ok()) else {
        refused.lock().unwrap().insert(name);
        return client.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]).ok();
    };
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).ok()?;
    support::join(client, server)
}

struct Node {
    network: Network,
    _engine: Arc<Engine>,
    _scratch: Scratch,
}

/// A node that announces `address` as its own and knows the addresses `known`.
fn node(address: &str, proxy: SocketAddr, map: &Map, known: &[&str]) -> Node {
    let scratch = Scratch::new(&format!("gossip-{address}"));
    let (engine, mempool) = support::node(scratch.path(), 1);
    let own = Endpoint::parse(address, 18444).unwrap();
    let reachable: BTreeSet<_> = [Net::Ipv4].into();
    let own = LocalSettings { listens: true, port: own.port, external: vec![own], ..LocalSettings::default() };
    let way = Some(Proxy { address: ProxyAddress::Tcp(Endpoint::from(proxy)), isolates_streams: false });
    let mut settings = support::settings(ConnectSettings {
        chooses_peers: true,
        default_port: 18444,
        proxies: Proxies { ipv4: way.clone(), ipv6: way.clone(), onion: None, cjdns: None, name: way },
        has_name_proxy: true,
        ..ConnectSettings::default()
    });
    let manager = &mut settings.manager;
    // A node that is catching up does not announce itself. With this setting the genesis block is recent enough.
    manager.initial_download = Arc::new(InitialDownload::new(U256::ZERO, i64::from(u32::MAX)));
    manager.local.peer_timeout = Duration::from_secs(600);
    manager.local.own = LocalAddresses::new(&own, &reachable);
    manager.seed = [own.port.to_le_bytes()[0] ^ address.as_bytes()[3]; 32];
    manager.reachable = reachable;
    let unix = support::unix_seconds();
    let host = Arc::new(FastHost { began: Instant::now(), unix });
    let network = Network::start(&engine, &mempool, &settings, host, Arc::new(Unobserved)).unwrap();
    map.lock().unwrap().insert(address.to_owned(), network.addresses()[0]);
    let known: Vec<_> = known.iter().map(|text| Endpoint::parse(text, 18444).unwrap()).collect();
    for Endpoint { addr, port } in known {
        let (reply, answer) = Reply::pair();
        assert!(network.handle().ask(Question::AddAddress { addr, port, is_tried: false, reply }));
        answer.recv().unwrap().unwrap();
    }
    Node { network, _engine: engine, _scratch: scratch }
}

impl Node {
    fn peers(&self) -> Vec<PeerInfo> {
        let (reply, answer) = Reply::pair();
        assert!(self.network.handle().ask(Question::Peers(reply)));
        answer.recv().unwrap().into_iter().filter(|peer| peer.version != 0).collect()
    }

    /// Whether it chose a peer at this address for a lasting connection.
    fn chose(&self, address: &str) -> bool {
        let name = format!("{address}:18444");
        let stays = [ConnectionKind::OutboundFullRelay, ConnectionKind::BlockRelayOnly];
        self.peers().iter().any(|peer| peer.name == name && stays.contains(&peer.kind))
    }
}

/// Both other nodes know the first. They announce themselves to it, it relays each address to the other, and all get
/// connected. No other address is dialled.
///
/// checklist: 84
#[test]
fn three_nodes_find_each_other() {
    let (map, refused) = (Map::default(), Refused::default());
    let proxy = proxy(&map, &refused);
    let (first, second, third) = ("11.1.0.1", "12.2.0.1", "13.3.0.1");
    let one = node(first, proxy, &map, &[]);
    let two = node(second, proxy, &map, &[first]);
    wait_until("the second finds the first", || two.chose(first));
    wait_until("the first hears of the second, and chooses it", || one.chose(second));
    let three = node(third, proxy, &map, &[first]);
    wait_until("the third finds the first", || three.chose(first));
    wait_until("the other two find each other", || two.chose(third) || three.chose(second));
    assert_eq!(*refused.lock().unwrap(), BTreeSet::new(), "only existing nodes are dialled");
}
