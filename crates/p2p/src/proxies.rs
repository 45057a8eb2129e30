//! The SOCKS5 proxies that peers are reached through: `-proxy` and `-onion`. [`Target`]: where a connection leads to.
//!
//! This module has only the data and the selection; the handshake with a proxy is in the crate `net`. A network without
//! a proxy is reached directly, except onion services, which need a proxy. Names are sent to a separate name proxy that
//! resolves them, so that no DNS server sees them.

use lydian_wire::{Endpoint, NetAddr, Network};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The address of a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyAddress {
    Tcp(Endpoint),
    /// A Unix domain socket: `unix:PATH`.
    Unix(PathBuf),
}

impl fmt::Display for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProxyAddress::Tcp(endpoint) => endpoint.fmt(f),
            ProxyAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    pub address: ProxyAddress,
    /// `-proxyrandomize`: each connection uses different credentials, so that Tor gives it a separate circuit.
    pub isolates_streams: bool,
}

/// The proxies of all networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    pub ipv4: Option<Proxy>,
    pub ipv6: Option<Proxy>,
    pub onion: Option<Proxy>,
    pub cjdns: Option<Proxy>,
    /// The proxy for host names.
    pub name: Option<Proxy>,
}

/// The target of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Endpoint(Endpoint),
    /// For a proxy that resolves names.
    Name {
        host: String,
        port: u16,
    },
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Endpoint(endpoint) => endpoint.fmt(f),
            Target::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// How to reach a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way<'a> {
    Direct(SocketAddr),
    Proxy(&'a Proxy),
    /// The target cannot be reached without a proxy.
    None,
}

impl Proxies {
    /// Core's `GetProxy`: addresses of local networks have no proxy.
    pub fn of(&self, network: Network) -> Option<&Proxy> {
        match network {
            Network::Ipv4 => self.ipv4.as_ref(),
            Network::Ipv6 => self.ipv6.as_ref(),
            Network::TorV3 => self.onion.as_ref(),
            Network::Cjdns => self.cjdns.as_ref(),
            Network::I2p | Network::Unroutable | Network::Internal => None,
        }
    }

    /// Returns how to reach a target. Core's `ConnectNode`.
    pub fn way(&self, target: &Target) -> Way<'_> {
        match target {
            Target::Name { .. } => self.name.as_ref().map_or(Way::None, Way::Proxy),
            Target::Endpoint(endpoint) => match (self.of(endpoint.addr.network()), endpoint.socket_addr()) {
                (Some(proxy), _) => Way::Proxy(proxy),
                (None, Some(address)) => Way::Direct(address),
                (None, None) => Way::None,
            },
        }
    }

    /// Core's `IsProxy`: a peer at this address is connected through a proxy, and the address is not its own.
    pub fn is_proxy(&self, addr: &NetAddr) -> bool {
        let all = [&self.ipv4, &self.ipv6, &self.onion, &self.cjdns];
        all.into_iter().flatten().any(|proxy| matches!(&proxy.address, ProxyAddress::Tcp(at) if at.addr == *addr))
    }
}
