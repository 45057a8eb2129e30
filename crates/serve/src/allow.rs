//! [`Subnet`]: addresses that may use a server.
//!
//! Input: Core's formats (an address, optionally with a netmask or a prefix length). Output: whether an address is in
//! the subnet.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// The network bits, with IPv4 mapped into IPv6.
    network: u128,
    mask: u128,
    is_v4: bool,
}

/// A string that is not a subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSubnet(pub String);

impl fmt::Display for BadSubnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an address, or an address with a netmask or a prefix length: {}", self.0)
    }
}

impl std::error::Error for BadSubnet {}

/// IPv4 addresses are the low 32 bits of this prefix.
const MAPPED: u128 = 0xffff << 32;

fn bits(address: IpAddr) -> (u128, bool) {
    match address.to_canonical() {
        IpAddr::V4(address) => (MAPPED | u128::from(u32::from(address)), true),
        IpAddr::V6(address) => (u128::from(address), false),
    }
}

/// First byte of every CJDNS address.
const CJDNS_PREFIX: u128 = 0xfc;

impl Subnet {
    /// Core's `LookupSubNet`.
    ///
    /// `with_cjdns`: CJDNS is reachable, so `fc00::/8` are CJDNS addresses, not IPv6. A single CJDNS address is its own
    /// subnet, which contains no client, since clients connect over IP. With a mask it is invalid.
    pub fn parse(text: &str, with_cjdns: bool) -> Result<Subnet, BadSubnet> {
        let bad = || BadSubnet(text.to_owned());
        let (address, mask) = match text.split_once('/') {
            Some((address, mask)) => (address, Some(mask)),
            None => (text, None),
        };
        let address: IpAddr = address.trim_start_matches('[').trim_end_matches(']').parse().map_err(|_| bad())?;
        let (network, is_v4) = bits(address);
        if with_cjdns && !is_v4 && network >> 120 == CJDNS_PREFIX {
            // No client has this address: an address with bits outside its mask is in no subnet.
            return if mask.is_none() { Ok(Subnet { network, mask: 0, is_v4 }) } else { Err(bad()) };
        }
        let size = if is_v4 { 32 } else { 128 };
        let mask = match mask {
            None => u128::MAX,
            Some(mask) => match mask.parse::<u32>() {
                Ok(ones) if ones <= size => u128::MAX.checked_shl(size - ones).unwrap_or(0),
                Ok(_) => return Err(bad()),
                Err(_) => netmask(mask, is_v4).ok_or_else(bad)?,
            },
        };
        Ok(Subnet { network: network & mask, mask, is_v4 })
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let (address, is_v4) = bits(address);
        is_v4 == self.is_v4 && address & self.mask == self.network
    }

    /// The addresses of this machine, which every server allows.
    pub fn loopback() -> [Subnet; 2] {
        let v4 = u128::from(u32::from(Ipv4Addr::new(127, 0, 0, 0)));
        [
            Subnet { network: MAPPED | v4, mask: u128::MAX << 24, is_v4: true },
            Subnet { network: u128::from(Ipv6Addr::LOCALHOST), mask: u128::MAX, is_v4: false },
        ]
    }
}

/// Core's `CSubNet::ToString`: the address, and the prefix length unless it is a CJDNS address.
impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Ipv6Addr::from(self.network);
        let ones = self.mask.leading_ones();
        match self.is_v4 {
            true => write!(f, "{}/{}", IpAddr::V6(address).to_canonical(), ones.saturating_sub(96)),
            false if self.network & !self.mask != 0 => write!(f, "{address}"),
            false => write!(f, "{address}/{ones}"),
        }
    }
}

/// `255.255.0.0`: ones followed by zeros.
fn netmask(text: &str, is_v4: bool) -> Option<u128> {
    let (mask, mask_is_v4) = bits(text.parse().ok()?);
    if mask_is_v4 != is_v4 {
        return None;
    }
    let mask = if is_v4 { mask | !u128::from(u32::MAX) } else { mask };
    (mask.leading_ones() + mask.trailing_zeros() == 128 || mask == u128::MAX).then_some(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subnets_are_printed_as_core_does() {
        for (text, printed) in [
            ("1.2.3.4", "1.2.3.4/32"),
            ("1.2.3.4/255.255.0.0", "1.2.0.0/16"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("::/0", "::/0"),
            ("2001:db8::1", "2001:db8::1/128"),
            ("fc00::1", "fc00::1"),
        ] {
            assert_eq!(Subnet::parse(text, true).unwrap().to_string(), printed, "{text}");
        }
        assert_eq!(Subnet::loopback().map(|subnet| subnet.to_string()), ["127.0.0.0/8", "::1/128"]);
        assert!(!Subnet::parse("fc00::1", true).unwrap().contains("fc00::1".parse().unwrap()));
    }

    #[test]
    fn subnets_in_all_their_forms() {
        for (text, inside, outside) in [
            ("1.2.3.4", &["1.2.3.4", "::ffff:1.2.3.4"][..], &["1.2.3.5", "::1"][..]),
            ("1.2.3.4/24", &["1.2.3.0", "1.2.3.255"], &["1.2.4.0"]),
            ("1.2.3.4/255.255.0.0", &["1.2.9.9"], &["1.3.0.0"]),
            ("0.0.0.0/0", &["9.9.9.9"], &["::2"]),
            ("::/0", &["::2", "2001::1"], &["9.9.9.9"]),
            ("2001:db8::/32", &["2001:db8:1::"], &["2001:db9::"]),
        ] {
            let subnet = Subnet::parse(text, true).unwrap();
            assert!(inside.iter().all(|address| subnet.contains(address.parse().unwrap())), "{text}");
            assert!(!outside.iter().any(|address| subnet.contains(address.parse().unwrap())), "{text}");
        }
        for text in ["", "1.2.3", "1.2.3.4/33", "::/129", "1.2.3.4/255.0.255.0", "1.2.3.4/ffff::", "host", "1.2.3.4/-1"]
        {
            assert_eq!(Subnet::parse(text, false), Err(BadSubnet(text.to_owned())));
        }
        // If CJDNS is reachable, its addresses are not IPv6: Core's message ends with that. A subnet of them used to be
        // accepted anyway.
        let ours = "fc00::1".parse().unwrap();
        assert!(Subnet::parse("fc00::/80", false).unwrap().contains(ours));
        assert_eq!(Subnet::parse("fc00::/80", true), Err(BadSubnet("fc00::/80".to_owned())));
        assert!(Subnet::parse("fc00::1", false).unwrap().contains(ours));
        assert!(!Subnet::parse("fc00::1", true).unwrap().contains(ours));
        assert!(Subnet::parse("fd00::/80", true).unwrap().contains("fd00::1".parse().unwrap()));
        let [v4, v6] = Subnet::loopback();
        assert!(v4.contains("127.9.9.9".parse().unwrap()) && !v4.contains("128.0.0.1".parse().unwrap()));
        assert!(v6.contains("::1".parse().unwrap()) && !v6.contains("::2".parse().unwrap()));
    }
}
