//! A network and its mask: Core's `CSubNet`, for bans, whitelists and access to the RPC server.
//!
//! Input: text (`1.2.3.0/24`, `1.2.3.0/255.255.255.0`, one address). Output: whether it contains an address, and its
//! text as printed by Core. Invariants: bits outside the mask are zero; onion, I2P and CJDNS subnets contain a single
//! address.

use super::{AddressError, NetAddr};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Core's `CSubNet`, valid ones only. Ordered as in Core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subnet {
    network: NetAddr,
    /// Length of the prefix in bits; 0 if the network has no mask.
    bits: u8,
}

/// Why text is not a subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubnetError {
    /// The text before the slash is not an address.
    Address(AddressError),
    /// The text after the slash is neither a number of bits nor a mask of the same kind of address.
    Mask,
}

impl fmt::Display for SubnetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubnetError::Address(error) => error.fmt(f),
            SubnetError::Mask => f.write_str("neither a number of bits nor a netmask after the slash"),
        }
    }
}

impl std::error::Error for SubnetError {}

impl Subnet {
    /// The subnet of the first `bits` bits of an IPv4 or IPv6 address.
    pub fn new(addr: NetAddr, bits: u8) -> Result<Subnet, SubnetError> {
        let network = match addr {
            NetAddr::Ipv4(ip) if bits <= 32 => {
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                NetAddr::Ipv4(Ipv4Addr::from_bits(ip.to_bits() & mask))
            }
            NetAddr::Ipv6(ip) if bits <= 128 => {
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                NetAddr::Ipv6(Ipv6Addr::from_bits(ip.to_bits() & mask))
            }
            _ => return Err(SubnetError::Mask),
        };
        Ok(Subnet { network, bits })
    }

    /// The subnet of a single address. `None` for names.
    pub fn single(addr: NetAddr) -> Option<Subnet> {
        match addr {
            NetAddr::Ipv4(_) => Some(Subnet { network: addr, bits: 32 }),
            NetAddr::Ipv6(_) => Some(Subnet { network: addr, bits: 128 }),
            NetAddr::TorV3(_) | NetAddr::I2p(_) | NetAddr::Cjdns(_) => Some(Subnet { network: addr, bits: 0 }),
            NetAddr::Internal(_) => None,
        }
    }

    /// Core's `CSubNet::Match`.
    pub fn contains(&self, addr: &NetAddr) -> bool {
        if !addr.is_valid() || addr.kind() != self.network.kind() {
            return false;
        }
        match addr {
            NetAddr::Ipv4(_) | NetAddr::Ipv6(_) => Subnet::new(*addr, self.bits) == Ok(*self),
            _ => *addr == self.network,
        }
    }

    /// Length of the prefix in bits; 0 for addresses without prefixes.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// The first address of the network.
    pub fn network(&self) -> NetAddr {
        self.network
    }

    /// Core's `LookupSubNet`. Set `with_cjdns` if that network can be reached.
    pub fn parse(text: &str, with_cjdns: bool) -> Result<Subnet, SubnetError> {
        let (addr, mask) = match text.rsplit_once('/') {
            Some((addr, mask)) => (addr, Some(mask)),
            None => (text, None),
        };
        let mut addr: NetAddr = addr.parse().map_err(SubnetError::Address)?;
        if with_cjdns {
            addr = addr.maybe_cjdns();
        }
        let Some(mask) = mask else {
            return Subnet::single(addr).ok_or(SubnetError::Mask);
        };
        if !mask.is_empty()
            && mask.bytes().all(|b| b.is_ascii_digit())
            && let Ok(bits) = mask.parse()
        {
            return Subnet::new(addr, bits);
        }
        let bits = match (addr, mask.parse::<NetAddr>()) {
            (NetAddr::Ipv4(_), Ok(NetAddr::Ipv4(mask))) => prefix_bits(u128::from(mask.to_bits()) << 96),
            (NetAddr::Ipv6(_), Ok(NetAddr::Ipv6(mask))) => prefix_bits(mask.to_bits()),
            _ => None,
        };
        Subnet::new(addr, bits.ok_or(SubnetError::Mask)?)
    }
}

/// The number of ones, if they all precede the zeros.
fn prefix_bits(mask: u128) -> Option<u8> {
    let ones = mask.leading_ones();
    (mask.checked_shl(ones).unwrap_or(0) == 0).then(|| u8::try_from(ones).ok()).flatten()
}

impl FromStr for Subnet {
    type Err = SubnetError;
    fn from_str(text: &str) -> Result<Subnet, SubnetError> {
        Subnet::parse(text, false)
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.network {
            NetAddr::Ipv4(_) | NetAddr::Ipv6(_) => write!(f, "{}/{}", self.network, self.bits),
            _ => self.network.fmt(f),
        }
    }
}
