//! Peer addresses: Bitcoin Core's `CNetAddr`, `CService`, `CAddress` and `ServiceFlags`.
//!
//! Input: bytes from the network or a file, or text. Output: values with their network, whether they are reachable from
//! the internet, and their network group. Invariants: every decoder is total; an address that Core decodes to an
//! invalid one becomes an invalid one here too (`::`), so that the addresses after it are still read; order and
//! equality are Core's. The scope of a link-local address is dropped. Cost: 33 bytes per address, no heap. Must never
//! resolve a name: text is an address or an error.

mod base32;
mod codec;
mod services;
mod sha3;
mod subnet;
mod text;

pub use codec::{Encoding, TimedAddress};
pub use services::Services;
pub use subnet::{Subnet, SubnetError};
pub use text::{AddressError, split_host_port};

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Core's `Network`, with its numbers, which are part of [`NetAddr::netgroup`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Network {
    /// Not reachable from the internet, whatever the kind of address.
    Unroutable = 0,
    Ipv4 = 1,
    Ipv6 = 2,
    TorV3 = 3,
    I2p = 4,
    Cjdns = 5,
    /// Represents a name; in the address manager only.
    Internal = 6,
}

impl Network {
    /// Every network, in the order of their numbers.
    pub const ALL: [Network; 7] = [
        Network::Unroutable,
        Network::Ipv4,
        Network::Ipv6,
        Network::TorV3,
        Network::I2p,
        Network::Cjdns,
        Network::Internal,
    ];

    /// The name used in settings and RPC results: Core's `GetNetworkName`.
    pub fn name(self) -> &'static str {
        match self {
            Network::Unroutable => "not_publicly_routable",
            Network::Ipv4 => "ipv4",
            Network::Ipv6 => "ipv6",
            Network::TorV3 => "onion",
            Network::I2p => "i2p",
            Network::Cjdns => "cjdns",
            Network::Internal => "internal",
        }
    }

    /// Parses the network of a setting such as `-onlynet`, ignoring case: Core's `ParseNetwork`.
    pub fn from_name(name: &str) -> Option<Network> {
        let known = [Network::Ipv4, Network::Ipv6, Network::TorV3, Network::I2p, Network::Cjdns];
        known.into_iter().find(|network| network.name().eq_ignore_ascii_case(name))
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Core's `CNetAddr`. Create it `from` an [`IpAddr`] if the bytes are untrusted: that recognises addresses embedded in
/// IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NetAddr {
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    /// The public key of the onion service.
    TorV3([u8; 32]),
    /// SHA-256 of the destination.
    I2p([u8; 32]),
    Cjdns(Ipv6Addr),
    /// The first bytes of the SHA-256 of a name.
    Internal([u8; 10]),
}

/// Prefix of an IPv6 address that represents a TORv2 address, which can no longer be reached.
const TORV2_IN_IPV6_PREFIX: [u8; 6] = [0xfd, 0x87, 0xd8, 0x7e, 0xeb, 0x43];
/// Prefix of an IPv6 address that represents a name: `0xfd` and the first bytes of the SHA-256 of "bitcoin".
const INTERNAL_IN_IPV6_PREFIX: [u8; 6] = [0xfd, 0x6b, 0x88, 0xc0, 0x87, 0x24];
/// The first byte of every CJDNS address.
const CJDNS_PREFIX: u8 = 0xfc;

impl NetAddr {
    /// `::`, which is not valid; the result of Core's default constructor.
    pub const UNSPECIFIED: NetAddr = NetAddr::Ipv6(Ipv6Addr::UNSPECIFIED);

    /// Converts 16 bytes that may embed another kind of address: Core's `SetLegacyIPv6`.
    pub fn from_legacy_ipv6(bytes: [u8; 16]) -> NetAddr {
        let ip = Ipv6Addr::from(bytes);
        if let Some(ipv4) = ip.to_ipv4_mapped() {
            NetAddr::Ipv4(ipv4)
        } else if bytes.starts_with(&TORV2_IN_IPV6_PREFIX) {
            NetAddr::UNSPECIFIED
        } else if let Some(rest) = bytes.strip_prefix(&INTERNAL_IN_IPV6_PREFIX) {
            let mut name = [0; 10];
            name.copy_from_slice(rest);
            NetAddr::Internal(name)
        } else {
            NetAddr::Ipv6(ip)
        }
    }

    /// The address that represents a name (a DNS seed): Core's `SetInternal`. `None` for the empty name.
    pub fn internal(name: &str) -> Option<NetAddr> {
        let hash = lydian_hash::sha256(name.as_bytes());
        let mut short = [0; 10];
        short.copy_from_slice(&hash[..10]);
        (!name.is_empty()).then_some(NetAddr::Internal(short))
    }

    /// Whether a name belongs to a network whose addresses are not in the DNS, such as a misspelled onion service. A
    /// DNS query would reveal it to others (RFC 7686).
    pub fn is_private_name(host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        [".onion", ".i2p"].iter().any(|suffix| host.ends_with(suffix))
    }

    /// The same address, but CJDNS if it is IPv6 with the CJDNS prefix: Core's `MaybeFlipIPv6toCJDNS`. For callers that
    /// can reach that network.
    pub fn maybe_cjdns(self) -> NetAddr {
        match self {
            NetAddr::Ipv6(ip) if ip.octets()[0] == CJDNS_PREFIX => NetAddr::Cjdns(ip),
            other => other,
        }
    }

    /// The kind of address, routable or not (Core's `m_net`).
    pub fn kind(&self) -> Network {
        match self {
            NetAddr::Ipv4(_) => Network::Ipv4,
            NetAddr::Ipv6(_) => Network::Ipv6,
            NetAddr::TorV3(_) => Network::TorV3,
            NetAddr::I2p(_) => Network::I2p,
            NetAddr::Cjdns(_) => Network::Cjdns,
            NetAddr::Internal(_) => Network::Internal,
        }
    }

    /// Core's `GetNetwork`: the kind, but `Unroutable` if the address is not routable.
    pub fn network(&self) -> Network {
        match self.kind() {
            Network::Internal => Network::Internal,
            _ if !self.is_routable() => Network::Unroutable,
            kind => kind,
        }
    }

    /// Core's `GetNetClass`: like [`NetAddr::network`], but `Ipv4` for IPv6 addresses that lead to an IPv4 address.
    pub fn net_class(&self) -> Network {
        match self.network() {
            Network::Ipv6 if self.linked_ipv4().is_some() => Network::Ipv4,
            network => network,
        }
    }

    pub fn is_ipv4(&self) -> bool {
        matches!(self, NetAddr::Ipv4(_))
    }

    pub fn is_ipv6(&self) -> bool {
        matches!(self, NetAddr::Ipv6(_))
    }

    pub fn is_tor(&self) -> bool {
        matches!(self, NetAddr::TorV3(_))
    }

    pub fn is_i2p(&self) -> bool {
        matches!(self, NetAddr::I2p(_))
    }

    pub fn is_cjdns(&self) -> bool {
        matches!(self, NetAddr::Cjdns(_))
    }

    pub fn is_internal(&self) -> bool {
        matches!(self, NetAddr::Internal(_))
    }

    /// Core's `IsPrivacyNet`.
    pub fn is_privacy_net(&self) -> bool {
        self.is_tor() || self.is_i2p()
    }

    /// `0.0.0.0` or `::`.
    pub fn is_bind_any(&self) -> bool {
        self.ip().is_some_and(|ip| !self.is_cjdns() && ip.is_unspecified())
    }

    fn ipv4_octets(&self) -> Option<[u8; 4]> {
        if let NetAddr::Ipv4(ip) = self { Some(ip.octets()) } else { None }
    }

    fn ipv6_starts_with(&self, prefix: &[u8]) -> bool {
        matches!(self, NetAddr::Ipv6(ip) if ip.octets().starts_with(prefix))
    }

    /// IPv4 private networks (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16).
    pub fn is_rfc1918(&self) -> bool {
        matches!(self.ipv4_octets(), Some([10, ..] | [192, 168, ..] | [172, 16..=31, ..]))
    }

    /// IPv4 inter-network benchmarks (198.18.0.0/15).
    pub fn is_rfc2544(&self) -> bool {
        matches!(self.ipv4_octets(), Some([198, 18 | 19, ..]))
    }

    /// IPv4 autoconfiguration (169.254.0.0/16).
    pub fn is_rfc3927(&self) -> bool {
        matches!(self.ipv4_octets(), Some([169, 254, ..]))
    }

    /// IPv4 carrier-grade NAT (100.64.0.0/10).
    pub fn is_rfc6598(&self) -> bool {
        matches!(self.ipv4_octets(), Some([100, 64..=127, ..]))
    }

    /// IPv4 documentation addresses (192.0.2.0/24, 198.51.100.0/24, 203.0.113.0/24).
    pub fn is_rfc5737(&self) -> bool {
        matches!(self.ipv4_octets(), Some([192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _]))
    }

    /// IPv6 documentation addresses (2001:db8::/32).
    pub fn is_rfc3849(&self) -> bool {
        self.ipv6_starts_with(&[0x20, 0x01, 0x0d, 0xb8])
    }

    /// IPv6 tunnel 6to4 (2002::/16).
    pub fn is_rfc3964(&self) -> bool {
        self.ipv6_starts_with(&[0x20, 0x02])
    }

    /// IPv6 with an embedded IPv4 address (64:ff9b::/96).
    pub fn is_rfc6052(&self) -> bool {
        self.ipv6_starts_with(&[0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    /// IPv6 tunnel Teredo (2001::/32).
    pub fn is_rfc4380(&self) -> bool {
        self.ipv6_starts_with(&[0x20, 0x01, 0, 0])
    }

    /// IPv6 autoconfiguration (fe80::/64).
    pub fn is_rfc4862(&self) -> bool {
        self.ipv6_starts_with(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0])
    }

    /// IPv6 unique local (fc00::/7).
    pub fn is_rfc4193(&self) -> bool {
        matches!(self, NetAddr::Ipv6(ip) if ip.octets()[0] & 0xfe == 0xfc)
    }

    /// IPv6 with a translated IPv4 address (::ffff:0:0:0/96).
    pub fn is_rfc6145(&self) -> bool {
        self.ipv6_starts_with(&[0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0])
    }

    /// IPv6 ORCHID (2001:10::/28).
    pub fn is_rfc4843(&self) -> bool {
        matches!(self, NetAddr::Ipv6(ip) if matches!(ip.octets(), [0x20, 0x01, 0x00, last, ..] if last & 0xf0 == 0x10))
    }

    /// IPv6 ORCHIDv2 (2001:20::/28).
    pub fn is_rfc7343(&self) -> bool {
        matches!(self, NetAddr::Ipv6(ip) if matches!(ip.octets(), [0x20, 0x01, 0x00, last, ..] if last & 0xf0 == 0x20))
    }

    /// IPv6 of Hurricane Electric (2001:470::/32).
    pub fn is_he_net(&self) -> bool {
        self.ipv6_starts_with(&[0x20, 0x01, 0x04, 0x70])
    }

    /// Loopback, and `0.0.0.0/8`.
    pub fn is_local(&self) -> bool {
        match self {
            NetAddr::Ipv4(ip) => matches!(ip.octets()[0], 127 | 0),
            NetAddr::Ipv6(ip) => ip.is_loopback(),
            _ => false,
        }
    }

    /// Core's `IsValid`: whether it can be the address of a host.
    pub fn is_valid(&self) -> bool {
        match self {
            NetAddr::Ipv4(ip) => !ip.is_unspecified() && !ip.is_broadcast(),
            NetAddr::Ipv6(ip) => !ip.is_unspecified() && !self.is_rfc3849(),
            NetAddr::Cjdns(ip) => ip.octets()[0] == CJDNS_PREFIX,
            NetAddr::TorV3(_) | NetAddr::I2p(_) => true,
            NetAddr::Internal(_) => false,
        }
    }

    /// Core's `IsRoutable`: whether it can be reached from the internet.
    pub fn is_routable(&self) -> bool {
        self.is_valid()
            && !(self.is_rfc1918()
                || self.is_rfc2544()
                || self.is_rfc3927()
                || self.is_rfc4862()
                || self.is_rfc6598()
                || self.is_rfc5737()
                || self.is_rfc4193()
                || self.is_rfc4843()
                || self.is_rfc7343()
                || self.is_local()
                || self.is_internal())
    }

    /// Core's `IsRelayable`: whether it may be relayed to other peers.
    pub fn is_relayable(&self) -> bool {
        !self.is_internal()
    }

    /// Core's `IsAddrV1Compatible`: whether the old encoding can represent it.
    pub fn is_addr_v1_compatible(&self) -> bool {
        matches!(self, NetAddr::Ipv4(_) | NetAddr::Ipv6(_) | NetAddr::Internal(_))
    }

    /// The IPv4 address that packets to this address reach, if it is routable and there is one (Core's `HasLinkedIPv4`,
    /// `GetLinkedIPv4`).
    pub fn linked_ipv4(&self) -> Option<Ipv4Addr> {
        if !self.is_routable() {
            return None;
        }
        match self {
            NetAddr::Ipv4(ip) => Some(*ip),
            NetAddr::Ipv6(ip) => {
                let [_, _, a, b, c, d, .., w, x, y, z] = ip.octets();
                if self.is_rfc6052() || self.is_rfc6145() {
                    Some(Ipv4Addr::new(w, x, y, z))
                } else if self.is_rfc3964() {
                    Some(Ipv4Addr::new(a, b, c, d))
                } else if self.is_rfc4380() {
                    Some(Ipv4Addr::new(!w, !x, !y, !z))
                } else {
                    None
                }
            }
            _ => None,
        }
    }

    /// The 16 bytes of the old encoding; zeros if it cannot represent the address.
    pub fn to_legacy_ipv6(&self) -> [u8; 16] {
        match self {
            NetAddr::Ipv4(ip) => ip.to_ipv6_mapped().octets(),
            NetAddr::Ipv6(ip) => ip.octets(),
            NetAddr::Internal(name) => {
                let mut bytes = [0; 16];
                bytes[..6].copy_from_slice(&INTERNAL_IN_IPV6_PREFIX);
                bytes[6..].copy_from_slice(name);
                bytes
            }
            NetAddr::TorV3(_) | NetAddr::I2p(_) | NetAddr::Cjdns(_) => [0; 16],
        }
    }

    /// Core's `GetAddrBytes`: the old encoding if it can represent the address, otherwise its own bytes.
    pub fn addr_bytes(&self) -> Vec<u8> {
        match self {
            NetAddr::TorV3(bytes) | NetAddr::I2p(bytes) => bytes.to_vec(),
            NetAddr::Cjdns(ip) => ip.octets().to_vec(),
            _ => self.to_legacy_ipv6().to_vec(),
        }
    }

    /// The network group, by which peers are diversified: Core's `NetGroupManager::GetGroup` without an asmap.
    pub fn netgroup(&self) -> Vec<u8> {
        let mut group = vec![self.net_class() as u8];
        let (start, bits) = if self.is_local() {
            (0, 0)
        } else if self.is_internal() {
            (INTERNAL_IN_IPV6_PREFIX.len(), 80)
        } else if !self.is_routable() {
            (0, 0)
        } else if let Some(ipv4) = self.linked_ipv4() {
            group.extend_from_slice(&ipv4.octets()[..2]);
            return group;
        } else if self.is_privacy_net() {
            (0, 4)
        } else if self.is_cjdns() {
            (0, 12)
        } else if self.is_he_net() {
            (0, 36)
        } else {
            (0, 32)
        };
        let bytes = self.addr_bytes();
        let whole = start + bits / 8;
        group.extend_from_slice(&bytes[start..whole]);
        if bits % 8 > 0 {
            group.push(bytes[whole] | (0xff >> (bits % 8)));
        }
        group
    }

    /// Core's `GetReachabilityFrom`: how well the address is reachable from `partner`. Larger is better; 0 is
    /// unreachable.
    pub fn reachability_from(&self, partner: &NetAddr) -> u8 {
        const DEFAULT: u8 = 1;
        const TEREDO: u8 = 2;
        const IPV6_WEAK: u8 = 3;
        const IPV4: u8 = 4;
        const IPV6_STRONG: u8 = 5;
        const PRIVATE: u8 = 6;
        if !self.is_routable() {
            return 0;
        }
        let tunnel = self.is_rfc3964() || self.is_rfc6052() || self.is_rfc6145();
        let (ours, teredo) = (self.network(), self.is_rfc4380());
        if partner.is_rfc4380() {
            return match ours {
                _ if teredo => TEREDO,
                Network::Ipv6 => IPV6_WEAK,
                Network::Ipv4 => IPV4,
                _ => DEFAULT,
            };
        }
        match (partner.network(), ours) {
            (Network::Ipv4, Network::Ipv4) => IPV4,
            (Network::Ipv6, _) if teredo => TEREDO,
            (Network::Ipv6, Network::Ipv4) => IPV4,
            (Network::Ipv6, Network::Ipv6) => {
                if tunnel {
                    IPV6_WEAK
                } else {
                    IPV6_STRONG
                }
            }
            (Network::TorV3, Network::Ipv4) => IPV4,
            (Network::TorV3, Network::TorV3) | (Network::I2p, Network::I2p) | (Network::Cjdns, Network::Cjdns) => {
                PRIVATE
            }
            (Network::Unroutable | Network::Internal, _) if teredo => TEREDO,
            (Network::Unroutable | Network::Internal, Network::Ipv6) => IPV6_WEAK,
            (Network::Unroutable | Network::Internal, Network::Ipv4) => IPV4,
            (Network::Unroutable | Network::Internal, Network::TorV3) => PRIVATE,
            _ => DEFAULT,
        }
    }

    /// The IP address, if it is one (including CJDNS, whose addresses are dialled as IPv6).
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            NetAddr::Ipv4(ip) => Some(IpAddr::V4(*ip)),
            NetAddr::Ipv6(ip) | NetAddr::Cjdns(ip) => Some(IpAddr::V6(*ip)),
            _ => None,
        }
    }
}

impl Default for NetAddr {
    fn default() -> Self {
        NetAddr::UNSPECIFIED
    }
}

impl From<IpAddr> for NetAddr {
    fn from(ip: IpAddr) -> NetAddr {
        match ip {
            IpAddr::V4(ip) => NetAddr::Ipv4(ip),
            IpAddr::V6(ip) => NetAddr::from_legacy_ipv6(ip.octets()),
        }
    }
}

/// An address and a port: Core's `CService`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    pub addr: NetAddr,
    pub port: u16,
}

impl Endpoint {
    pub fn new(addr: impl Into<NetAddr>, port: u16) -> Endpoint {
        Endpoint { addr: addr.into(), port }
    }

    /// Core's `GetKey`: bytes that identify it, for keyed hashes.
    pub fn key(&self) -> Vec<u8> {
        let mut key = self.addr.addr_bytes();
        key.extend_from_slice(&self.port.to_be_bytes());
        key
    }

    /// The address a socket can connect to; `None` for onion and I2P.
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        self.addr.ip().map(|ip| SocketAddr::new(ip, self.port))
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(socket: SocketAddr) -> Endpoint {
        Endpoint::new(socket.ip(), socket.port())
    }
}

#[cfg(test)]
mod tests;
