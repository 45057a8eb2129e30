//! Connections through a SOCKS5 proxy that runs, through one that does not, and listening addresses with permissions.
//! Uses two nodes on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads the clock for its node"
)]

#[allow(dead_code, reason = "each test file uses its part")]
mod support;

use lydian_engine::{Engine, LogLevel, LogLine, Unobserved};
use lydian_net::{Host, Listen};
use lydian_oracle::{Scratch, free_port};
use lydian_p2p::Moment;
use lydian_p2p::manager::{ConnectSettings, PeerInfo, Question, Reply};
use lydian_p2p::peer::Permissions;
use lydian_p2p::permissions::{WhiteRange, Whitelist};
use lydian_p2p::proxies::{Proxies, Proxy, ProxyAddress};
use lydian_wire::{Endpoint, Network};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any step here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const ONION: &str = "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion";

#[derive(Debug)]
struct TestHost {
    began: Instant,
    /// Log lines without the debug categories.
    logged: Mutex<Vec<String>>,
}

impl Host for TestHost {
    fn now(&self) -> Moment {
        support::moment(self.began)
    }

    fn log_line(&self, line: &LogLine) {
        if !matches!(line.level, LogLevel::Debug(_)) {
            self.logged.lock().unwrap().push(line.text.clone());
        }
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        support::fill_random(bytes);
    }
}

struct Node {
    network: lydian_net::Network,
    host: Arc<TestHost>,
    _engine: Arc<Engine>,
    _scratch: Scratch,
}

fn node(name: &str, listen: Vec<Listen>, connect: ConnectSettings, whitelist: Whitelist) -> Node {
    let scratch = Scratch::new(name);
    let (engine, mempool) = support::node(scratch.path(), 1);
    let mut settings = support::settings(ConnectSettings { default_port: 18444, ..connect });
    settings.manager.reachable.insert(Network::TorV3);
    (settings.listen, settings.whitelist) = (listen, whitelist);
    let host = Arc::new(TestHost { began: Instant::now(), logged: Mutex::default() });
    let network =
        lydian_net::Network::start(&engine, &mempool, &settings, Arc::<TestHost>::clone(&host), Arc::new(Unobserved))
            .unwrap();
    Node { network, host, _engine: engine, _scratch: scratch }
}

impl Node {
    fn peers(&self) -> Vec<PeerInfo> {
        let (reply, answer) = Reply::pair();
        assert!(self.network.handle().ask(Question::Peers(reply)));
        answer.recv().unwrap()
    }

    /// Returns the peers with a complete handshake, once there are at least `count`.
    fn wait_for_peers(&self, count: usize) -> Vec<PeerInfo> {
        let began = Instant::now();
        loop {
            let peers: Vec<_> = self.peers().into_iter().filter(|peer| peer.version != 0).collect();
            if peers.len() >= count {
                return peers;
            }
            assert!(began.elapsed() < PATIENCE, "{} of {count} peers", peers.len());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn logged_count(&self, what: &str) -> usize {
        self.host.logged.lock().unwrap().iter().filter(|line| line.contains(what)).count()
    }
}

fn anywhere() -> Listen {
    Listen::at("127.0.0.1:0".parse().unwrap())
}

fn through(address: SocketAddr, isolates_streams: bool) -> Proxies {
    let proxy = Some(Proxy { address: ProxyAddress::Tcp(Endpoint::from(address)), isolates_streams });
    Proxies { ipv4: proxy.clone(), ipv6: proxy.clone(), onion: proxy.clone(), cjdns: None, name: proxy }
}

/// A request to the proxy: name, port, credentials.
type Asked = (String, u16, Option<String>);

/// A SOCKS5 proxy that follows RFC 1928 and 1929 to the letter and connects every client to `target`.
fn proxy(target: SocketAddr, wants_credentials: bool) -> (SocketAddr, Receiver<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (requests, asked) = sync_channel(64);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, requests) = (client.unwrap(), requests.clone());
            thread::spawn(move || {
                let request = negotiate(&mut client, wants_credentials)?;
                // If there is no receiver, the test is over.
                requests.send(request).ok()?;
                let server = TcpStream::connect(target).ok()?;
                support::join(client, server)
            });
        }
    });
    (address, asked)
}

fn negotiate(client: &mut TcpStream, wants_credentials: bool) -> Option<Asked> {
    fn bytes(client: &mut TcpStream, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        client.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }
    let text = |client: &mut TcpStream| {
        let size = bytes(client, 1)?[0];
        String::from_utf8(bytes(client, usize::from(size))?).ok()
    };
    let head = bytes(client, 2)?;
    let methods = bytes(client, usize::from(head[1]))?;
    assert_eq!(head[0], 5);
    let method = if wants_credentials { 2 } else { 0 };
    assert!(methods.contains(&method), "{methods:?}");
    client.write_all(&[5, method]).ok()?;
    let mut credentials = None;
    if wants_credentials {
        assert_eq!(bytes(client, 1)?, [1]);
        let (user, password) = (text(client)?, text(client)?);
        assert_eq!(user, password);
        credentials = Some(user);
        client.write_all(&[1, 0]).ok()?;
    }
    assert_eq!(bytes(client, 4)?, [5, 1, 0, 3], "a name to connect to");
    let name = text(client)?;
    let port = bytes(client, 2)?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).ok()?;
    Some((name, u16::from_be_bytes([port[0], port[1]]), credentials))
}

/// Names, addresses and onion services are sent to the proxy as names, each connection with its own credentials, and
/// the nodes become peers through it.
///
/// checklist: 84
#[test]
fn peers_are_reached_through_a_proxy() {
    let server = node("proxy-server", vec![anywhere()], ConnectSettings::default(), Whitelist::default());
    let (address, asked) = proxy(server.network.addresses()[0], true);
    let wishes = ConnectSettings {
        specified: vec!["peer.example".to_owned(), "9.1.2.3:7".to_owned(), format!("{ONION}:9")],
        proxies: through(address, true),
        has_name_proxy: true,
        ..ConnectSettings::default()
    };
    let client = node("proxy-client", Vec::new(), wishes, Whitelist::default());
    let peers = client.wait_for_peers(3);
    server.wait_for_peers(3);
    let mut asked: Vec<Asked> = (0..3).map(|_| asked.recv().unwrap()).collect();
    asked.sort();
    let targets: Vec<_> = asked.iter().map(|(name, port, _)| (name.as_str(), *port)).collect();
    assert_eq!(targets, [("9.1.2.3", 7), ("peer.example", 18444), (ONION, 9)]);
    let mut credentials: Vec<_> = asked.iter().map(|(_, _, credentials)| credentials.clone().unwrap()).collect();
    credentials.sort();
    let prefix = credentials[0].strip_suffix("-0").unwrap();
    assert_eq!(prefix.len(), 16);
    assert_eq!(credentials, [0, 1, 2].map(|number| format!("{prefix}-{number}")), "each its own circuit");
    let mut names: Vec<_> = peers.iter().map(|peer| peer.name.clone()).collect();
    names.sort();
    assert_eq!(names, ["9.1.2.3:7".to_owned(), "peer.example".to_owned(), format!("{ONION}:9")]);
    assert!(peers.iter().any(|peer| peer.endpoint == Endpoint::parse(&format!("{ONION}:9"), 0).unwrap()));
}

#[test]
fn without_isolation_there_are_no_credentials() {
    let server = node("proxy-plain", vec![anywhere()], ConnectSettings::default(), Whitelist::default());
    let (address, asked) = proxy(server.network.addresses()[0], false);
    let wishes = ConnectSettings {
        specified: vec!["peer.example:5".to_owned()],
        proxies: through(address, false),
        has_name_proxy: true,
        ..ConnectSettings::default()
    };
    let client = node("proxy-plain-client", Vec::new(), wishes, Whitelist::default());
    client.wait_for_peers(1);
    assert_eq!(asked.recv().unwrap(), ("peer.example".to_owned(), 5, None));
}

/// An unreachable proxy is logged once, does no harm, and is used as soon as it is reachable.
#[test]
fn a_proxy_that_cannot_be_reached() {
    // No other test takes this port.
    let address = SocketAddr::from(([127, 0, 0, 1], free_port().unwrap()));
    let wishes = ConnectSettings {
        specified: vec!["peer.example:5".to_owned()],
        proxies: through(address, false),
        has_name_proxy: true,
        ..ConnectSettings::default()
    };
    let client = node("proxy-lost", Vec::new(), wishes, Whitelist::default());
    let line = format!("Proxy {address} cannot be reached");
    let began = Instant::now();
    while client.logged_count("connecting to peer.example") < 2 {
        assert!(began.elapsed() < PATIENCE, "it is tried again: {:?}", client.host.logged.lock().unwrap());
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(client.logged_count(&line), 1, "{:?}", client.host.logged.lock().unwrap());
    assert!(client.peers().is_empty(), "the node still runs");
}

/// A peer gets the permissions of the listening address and of the ranges that contain its address, if their direction
/// matches.
#[test]
fn permissions_by_place_and_by_address() {
    let noban = Listen { permissions: Permissions::NO_BAN, ..anywhere() };
    let onion = Listen { is_onion: true, ..anywhere() };
    let ranges = |texts: &[&str]| Whitelist {
        ranges: texts.iter().map(|text| WhiteRange::parse(text, false).unwrap()).collect(),
        ..Whitelist::default()
    };
    let listen = vec![anywhere(), noban, onion];
    let server = node("places", listen, ConnectSettings::default(), ranges(&["addr@127.0.0.0/8", "out,all@0.0.0.0/0"]));
    let addresses = server.network.addresses();
    let specified = addresses.iter().map(ToString::to_string).collect();
    let wishes = ConnectSettings { specified, ..ConnectSettings::default() };
    let client = node("places-client", Vec::new(), wishes, ranges(&["out,mempool@127.0.0.1", "noban@127.0.0.1"]));
    client.wait_for_peers(3);
    assert!(client.peers().iter().all(|peer| peer.permissions == Permissions::MEMPOOL));
    let peers = server.wait_for_peers(3);
    let of = |address: &SocketAddr| {
        let peer = peers.iter().find(|peer| peer.bind == Endpoint::from(*address)).unwrap();
        peer.permissions.names().join(",")
    };
    assert_eq!(addresses.iter().map(of).collect::<Vec<_>>(), ["addr", "noban,download,addr", ""]);
}
