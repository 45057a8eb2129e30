//! Through which SOCKS5 proxies peers are reached: `-proxy` and `-onion`. Data, and questions to it; the handshake with a proxy is the crate `net`'s.
//!
//! A network without a proxy is connected to directly, but onion services, which nobody can. Names go to a proxy of their own, which resolves
//! them: nobody else learns them.

use crate::manager::Target;
use lydian_wire::{Endpoint, NetAddr, Network};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a proxy listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyAddress {
    Tcp(Endpoint),
    /// A socket in the file system: `unix:PATH`.
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
    /// `-proxyrandomize`: each connection brings other credentials, so that Tor gives it a circuit of its own.
    pub isolates_streams: bool,
}

/// The proxies of all networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    pub ipv4: Option<Proxy>,
    pub ipv6: Option<Proxy>,
    pub onion: Option<Proxy>,
    pub cjdns: Option<Proxy>,
    /// For names.
    pub name: Option<Proxy>,
}

/// How a target is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way<'a> {
    Direct(SocketAddr),
    Proxy(&'a Proxy),
    /// Without a proxy it cannot be reached.
    None,
}

impl Proxies {
    /// Core's `GetProxy`: addresses of local networks are connected to directly.
    pub fn of(&self, network: Network) -> Option<&Proxy> {
        match network {
            Network::Ipv4 => self.ipv4.as_ref(),
            Network::Ipv6 => self.ipv6.as_ref(),
            Network::TorV3 => self.onion.as_ref(),
            Network::Cjdns => self.cjdns.as_ref(),
            Network::I2p | Network::Unroutable | Network::Internal => None,
        }
    }

    /// How a target is reached. Core's `ConnectNode`.
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

    /// Core's `IsProxy`: a peer at such an address is a proxy, and its address is not the peer's.
    pub fn is_proxy(&self, addr: &NetAddr) -> bool {
        let all = [&self.ipv4, &self.ipv6, &self.onion, &self.cjdns];
        all.into_iter().flatten().any(|proxy| matches!(&proxy.address, ProxyAddress::Tcp(at) if at.addr == *addr))
    }
}
