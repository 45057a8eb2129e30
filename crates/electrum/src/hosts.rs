//! [`Host`]: the address under which a server is announced to clients: this server, or another one.
//!
//! Input: the texts of options, such as `ssl://example.com:50002`. Output: the `hosts` of `server.features`, the list
//! of `server.peers.subscribe`. Nothing is resolved, and no other server is asked whether it answers.

use crate::version::{MIN, Version};
use serde_json::{Map, Value, json};
use std::fmt;
use std::net::Ipv6Addr;

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    Tcp,
    Ssl,
    Ws,
    Wss,
}

/// A service, its name in texts and in `server.features`, its letter in lists of peers, and how far its port is from
/// the first of a server.
type Row = (Service, &'static str, &'static str, Option<char>, u16);

const SERVICES: [Row; 4] = [
    (Service::Tcp, "tcp", "tcp_port", Some('t'), 0),
    (Service::Ssl, "ssl", "ssl_port", Some('s'), 1),
    (Service::Ws, "ws", "ws_port", None, 2),
    (Service::Wss, "wss", "wss_port", None, 3),
];

/// Maximum characters of a name: that of the DNS.
const NAME_MAX: usize = 253;

/// One service of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    service: Service,
    name: String,
    port: u16,
    /// The newest version of the protocol that it speaks.
    version: Version,
}

fn name_of(text: &str) -> Option<&str> {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    match text.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').filter(|text| text.parse::<Ipv6Addr>().is_ok()),
        None => Some(text).filter(|text| !text.is_empty() && text.len() <= NAME_MAX && text.bytes().all(is_of_name)),
    }
}

impl Host {
    /// Reads `service://host[:port]`, with services tcp, ssl, ws and wss. `first_port`: the port of tcp, if none is
    /// given.
    pub fn of_this_server(text: &str, first_port: u16) -> Option<Host> {
        let (service, rest) = text.split_once("://")?;
        let (service, _, _, _, offset) = SERVICES.into_iter().find(|(_, name, ..)| *name == service)?;
        let (name, port) = match rest.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
            Some((name, port)) => (name, port.parse().ok().filter(|port| *port > 0)?),
            None => (rest, first_port.checked_add(offset)?),
        };
        Some(Host { service, name: name_of(name)?.to_owned(), port, version: MIN })
    }

    /// Reads `service://host[:port][/version]`, with services tcp and ssl: lists of peers know no others.
    pub fn of_peer(text: &str, first_port: u16) -> Option<Host> {
        let (_, rest) = text.split_once("://")?;
        let (host, version) = match rest.split_once('/') {
            Some((_, version)) => (text.strip_suffix(version)?.strip_suffix('/')?, Version::parse(version)?),
            None => (text, MIN),
        };
        let host = Host { version, ..Host::of_this_server(host, first_port)? };
        host.letter().map(|_| host)
    }

    fn row(&self) -> Option<Row> {
        SERVICES.into_iter().find(|(service, ..)| *service == self.service)
    }

    fn letter(&self) -> Option<char> {
        self.row().and_then(|(_, _, _, letter, _)| letter)
    }
}

/// The form that [`Host::of_this_server`] reads, always with a port.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.row().map_or("", |(_, scheme, ..)| scheme);
        match self.name.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.name, self.port),
            false => write!(f, "{scheme}://{}:{}", self.name, self.port),
        }
    }
}

/// The `hosts` of `server.features`.
pub(crate) fn features(hosts: &[Host]) -> Value {
    let mut all = Map::new();
    for host in hosts {
        let Some((_, _, key, _, _)) = host.row() else { continue };
        all.entry(&host.name).or_insert_with(|| json!({}))[key] = host.port.into();
    }
    Value::Object(all)
}

/// The list of `server.peers.subscribe`: for each name its address, which is not looked up, and what it offers.
pub(crate) fn peers(hosts: &[Host]) -> Value {
    let mut all: Vec<(&str, Version, Vec<String>)> = Vec::new();
    for host in hosts {
        let Some(letter) = host.letter() else { continue };
        let offer = format!("{letter}{}", host.port);
        match all.iter_mut().find(|(name, ..)| *name == host.name) {
            Some((_, version, offers)) => {
                *version = host.version.max(*version);
                offers.push(offer);
            }
            None => all.push((&host.name, host.version, vec![offer])),
        }
    }
    let peer = |(name, version, offers): (&str, Version, Vec<String>)| {
        let offers: Vec<String> = [format!("v{version}")].into_iter().chain(offers).collect();
        json!([name, name, offers])
    };
    all.into_iter().map(peer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_this_server_are_announced() {
        let texts = ["ssl://a.example", "tcp://a.example:7", "wss://a.example:443", "ws://[2001:db8::1]"];
        let hosts: Vec<Host> = texts.iter().map(|text| Host::of_this_server(text, 50_001).unwrap()).collect();
        let expected = json!({
            "a.example": {"ssl_port": 50_002, "tcp_port": 7, "wss_port": 443}, "2001:db8::1": {"ws_port": 50_003}
        });
        assert_eq!(features(&hosts), expected);
        assert_eq!(features(&[]), json!({}));
        let shown: Vec<String> = hosts.iter().map(Host::to_string).collect();
        let expected =
            ["ssl://a.example:50002", "tcp://a.example:7", "wss://a.example:443", "ws://[2001:db8::1]:50003"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn peers_are_listed_by_name() {
        let texts = ["ssl://b.example:50002/1.6", "ssl://a.onion/1.4.2", "tcp://b.example", "tcp://[::1]:5"];
        let hosts: Vec<Host> = texts.iter().map(|text| Host::of_peer(text, 50_001).unwrap()).collect();
        let expected = json!([
            ["b.example", "b.example", ["v1.6", "s50002", "t50001"]],
            ["a.onion", "a.onion", ["v1.4.2", "s50002"]],
            ["::1", "::1", ["v1.4", "t5"]]
        ]);
        assert_eq!(peers(&hosts), expected);
        assert_eq!(peers(&[]), json!([]));
    }

    #[test]
    fn wrong_hosts_are_refused() {
        let long = format!("tcp://{}", "a".repeat(NAME_MAX + 1));
        let wrong = ["", "a.example", "http://a", "tcp://", "tcp://:5", "tcp://a:0", "tcp://a:65536", "tcp://a b"];
        for text in wrong.into_iter().chain(["tcp://[::1", "tcp://[a]", "tcp://::1", "tcp://a:", &long]) {
            assert_eq!(Host::of_this_server(text, 50_001), None, "{text}");
            assert_eq!(Host::of_peer(text, 50_001), None, "{text}");
        }
        assert!(Host::of_this_server(&long[..long.len() - 1], 50_001).is_some());
        assert_eq!(Host::of_this_server("tcp://a/1.4", 50_001), None);
        for text in ["ws://a", "wss://a:5", "ssl://a/", "ssl://a/x", "ssl://a/1.4/1.4"] {
            assert_eq!(Host::of_peer(text, 50_001), None, "{text}");
        }
    }
}
