//! [`Listening`]: the addresses at which the servers of this process answer, for the page.
//!
//! Input: each server, once it has started. Output: a [`Place`] for each address, and who reaches it. An address that
//! could not be bound is missing. Nothing is removed: the servers end with the process.

use crate::host::interfaces;
use lydian_serve::TlsIdentity;
use lydian_stdx::{Current, lock};
use lydian_wire::NetAddr;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;

/// A server of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Service {
    P2p,
    Rpc,
    Electrum,
    Esplora,
    Feed,
}

/// How bytes reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Messages of the Bitcoin protocol, and those of an onion service.
    Peers,
    Onion,
    Http,
    Tcp,
    Tls,
    Ws,
    Wss,
}

impl Transport {
    /// The first part of a URL; `None` if there is none.
    pub(crate) fn scheme(self) -> Option<&'static str> {
        match self {
            Transport::Peers | Transport::Onion => None,
            Transport::Http => Some("http"),
            Transport::Tcp => Some("tcp"),
            Transport::Tls => Some("ssl"),
            Transport::Ws => Some("ws"),
            Transport::Wss => Some("wss"),
        }
    }
}

/// An address that a server listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) service: Service,
    pub(crate) transport: Transport,
    pub(crate) address: SocketAddr,
}

/// From where an address can be reached, if no firewall is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    Machine,
    /// The networks of this machine, which routers do not connect to others.
    Network,
    Internet,
}

impl Reach {
    pub(crate) fn of(ip: IpAddr) -> Reach {
        let address = NetAddr::from(ip);
        match (ip.to_canonical().is_loopback(), address.is_routable()) {
            (true, _) => Reach::Machine,
            (false, true) => Reach::Internet,
            (false, false) => Reach::Network,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Reach::Machine => "machine",
            Reach::Network => "network",
            Reach::Internet => "internet",
        }
    }
}

impl Place {
    /// The addresses under which clients reach it, those from farthest first: those of all interfaces if it listens on
    /// all.
    pub(crate) fn reached_at(&self, interfaces: &[IpAddr]) -> Vec<(SocketAddr, Reach)> {
        let ip = self.address.ip();
        let is_of_kind = |other: &&IpAddr| other.is_ipv4() == ip.is_ipv4();
        let mut ips: Vec<IpAddr> = match ip.is_unspecified() {
            true => interfaces.iter().filter(is_of_kind).copied().chain([loopback(ip)]).collect(),
            false => vec![ip],
        };
        ips.sort_by_key(|ip| std::cmp::Reverse(Reach::of(*ip)));
        ips.into_iter().map(|ip| (SocketAddr::new(ip, self.address.port()), Reach::of(ip))).collect()
    }
}

fn loopback(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
    }
}

/// The addresses of this machine that others may reach: no link-local ones, which need a zone.
pub(crate) fn addresses_of_machine() -> Vec<IpAddr> {
    let ip = |address: NetAddr| match address {
        NetAddr::Ipv4(ip) if !ip.is_link_local() => Some(ip.into()),
        NetAddr::Ipv6(ip) if !ip.is_unicast_link_local() => Some(ip.into()),
        _ => None,
    };
    interfaces().into_iter().filter_map(ip).collect()
}

/// What listens in this process.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    places: Mutex<Vec<Place>>,
    /// The certificate of the Electrum server, which can change while it runs.
    certificate: Mutex<Option<Current<TlsIdentity>>>,
}

impl Listening {
    /// A server listens there from now on.
    pub(crate) fn add(&self, service: Service, transport: Transport, address: SocketAddr) {
        lock(&self.places).push(Place { service, transport, address });
    }

    pub(crate) fn has_certificate(&self, identity: &Current<TlsIdentity>) {
        *lock(&self.certificate) = Some(identity.clone());
    }

    /// In the order in which the servers started.
    pub(crate) fn places(&self) -> Vec<Place> {
        lock(&self.places).clone()
    }

    /// The SHA-256 of the certificate that clients of the Electrum server see.
    pub(crate) fn fingerprint(&self) -> Option<String> {
        lock(&self.certificate).as_ref().map(|identity| identity.get().fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn reach_by_kind_of_address() {
        let reach = |text: &str| Reach::of(text.parse().unwrap());
        for (text, expected) in [
            ("127.0.0.1", Reach::Machine),
            ("::1", Reach::Machine),
            ("::ffff:127.0.0.1", Reach::Machine),
            ("192.168.1.7", Reach::Network),
            ("10.1.2.3", Reach::Network),
            ("100.64.0.1", Reach::Network),
            ("fd12::1", Reach::Network),
            ("fe80::1", Reach::Network),
            ("8.8.8.8", Reach::Internet),
            ("2a01:4f8::1", Reach::Internet),
        ] {
            assert_eq!(reach(text), expected, "{text}");
        }
    }

    #[test]
    fn an_unspecified_address_is_every_interface() {
        let place = |text: &str| Place {
            service: Service::Electrum,
            transport: Transport::Tls,
            address: text.parse().unwrap(),
        };
        let machine = ips(&["192.168.1.7", "8.8.8.8", "2a01:4f8::1"]);
        let reached = |text: &str| {
            let all = place(text).reached_at(&machine);
            all.iter().map(|(address, reach)| format!("{address} {}", reach.name())).collect::<Vec<_>>()
        };
        assert_eq!(reached("0.0.0.0:5"), ["8.8.8.8:5 internet", "192.168.1.7:5 network", "127.0.0.1:5 machine"]);
        assert_eq!(reached("[::]:5"), ["[2a01:4f8::1]:5 internet", "[::1]:5 machine"]);
        assert_eq!(reached("127.0.0.1:5"), ["127.0.0.1:5 machine"]);
        assert_eq!(reached("192.168.1.7:5"), ["192.168.1.7:5 network"]);
    }
}
