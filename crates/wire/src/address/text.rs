//! Addresses as text: the forms that Core prints, and those that it reads without a name server.
//!
//! Input: untrusted text. Output: an address, or the reason why it is not one. IPv4 is parsed like in the C library
//! (`127.1`, `0x7f.1`); names are errors. Total.

use super::{Endpoint, NetAddr, base32, sha3::sha3_256};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Why text is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// Neither an IP address nor an onion or I2P address.
    NotAnAddress,
    /// The text after the colon is not a port from 1 to 65535.
    NotAPort,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressError::NotAnAddress => "neither an IP address nor an onion or I2P address",
            AddressError::NotAPort => "not a port from 1 to 65535",
        })
    }
}

impl std::error::Error for AddressError {}

/// Core's `SplitHostPort`: the host without its brackets, the port (`default` if it is missing), and whether the port
/// is valid.
pub fn split_host_port(text: &str, default: u16) -> (&str, u16, bool) {
    let (mut host, mut port, mut is_valid) = (text, default, true);
    if let Some((front, back)) = text.rsplit_once(':') {
        let bracketed = front.starts_with('[') && front.ends_with(']');
        if front.is_empty() || bracketed || !front.contains(':') {
            let digits = !back.is_empty() && back.bytes().all(|b| b.is_ascii_digit());
            match back.parse() {
                Ok(number) if digits => (host, port, is_valid) = (front, number, number != 0),
                _ => is_valid = false,
            }
        }
    }
    (unbracketed(host), port, is_valid)
}

fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

impl Endpoint {
    /// Parses an address with or without a port: Core's `Lookup` without name resolution.
    pub fn parse(text: &str, port_default: u16) -> Result<Endpoint, AddressError> {
        let (host, port, is_valid) = split_host_port(text, port_default);
        if !is_valid {
            return Err(AddressError::NotAPort);
        }
        Ok(Endpoint { addr: host.parse()?, port })
    }
}

impl FromStr for NetAddr {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<NetAddr, AddressError> {
        let text = unbracketed(text);
        let special = onion(text).or_else(|| i2p(text));
        let ip = || text.parse::<Ipv6Addr>().ok().map(|ip| NetAddr::from_legacy_ipv6(ip.octets()));
        let found = special.or_else(|| inet_aton(text).map(NetAddr::Ipv4)).or_else(ip);
        found.filter(|addr| !addr.is_internal()).ok_or(AddressError::NotAnAddress)
    }
}

/// Core's `CNetAddr::SetTor`.
fn onion(text: &str) -> Option<NetAddr> {
    let bytes: [u8; 35] = base32::decode(text.strip_suffix(".onion")?)?;
    let mut key = [0; 32];
    key.copy_from_slice(&bytes[..32]);
    (bytes[32..] == onion_tail(&key)).then_some(NetAddr::TorV3(key))
}

/// Checksum and version of an onion address.
fn onion_tail(key: &[u8; 32]) -> [u8; 3] {
    const VERSION: u8 = 3;
    let hash = sha3_256(&[b".onion checksum", key, &[VERSION]]);
    [hash[0], hash[1], VERSION]
}

/// Core's `CNetAddr::SetI2P`.
fn i2p(text: &str) -> Option<NetAddr> {
    let (name, suffix) = text.split_at_checked(52)?;
    if !suffix.eq_ignore_ascii_case(".b32.i2p") {
        return None;
    }
    base32::decode(name).map(NetAddr::I2p)
}

/// Parses IPv4 as one to four numbers, decimal, octal (`0`) or hexadecimal (`0x`). The last number fills the remaining
/// bytes.
fn inet_aton(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<&str> = text.split('.').collect();
    let (last, front) = parts.split_last()?;
    let rest_bits = match front.len() {
        count @ 0..=3 => 32 - 8 * u32::try_from(count).ok()?,
        _ => return None,
    };
    let mut address = 0u64;
    for part in front {
        address = address << 8 | u64::from(u8::try_from(inet_number(part)?).ok()?);
    }
    let number = u64::from(inet_number(last)?);
    if number >> rest_bits != 0 {
        return None;
    }
    u32::try_from(address << rest_bits | number).ok().map(Ipv4Addr::from)
}

fn inet_number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain { u32::from_str_radix(digits, radix).ok() } else { None }
}

impl fmt::Display for NetAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetAddr::Ipv4(ip) => ip.fmt(f),
            NetAddr::Ipv6(ip) | NetAddr::Cjdns(ip) => ipv6(ip, f),
            NetAddr::TorV3(key) => {
                let bytes = [key.as_slice(), &onion_tail(key)].concat();
                write!(f, "{}.onion", base32::encode(&bytes))
            }
            NetAddr::I2p(hash) => write!(f, "{}.b32.i2p", base32::encode(hash)),
            NetAddr::Internal(name) => write!(f, "{}.internal", base32::encode(name)),
        }
    }
}

/// RFC 5952 without the dotted form that the standard library prints for mapped addresses.
fn ipv6(ip: &Ipv6Addr, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let groups = ip.segments();
    // The longest run of zeros, or the first of several.
    let (mut start, mut count, mut run) = (0, 0, 0);
    for (index, group) in groups.iter().enumerate() {
        run = if *group == 0 { run + 1 } else { 0 };
        if run > count {
            (start, count) = (index + 1 - run, run);
        }
    }
    let join = |groups: &[u16]| groups.iter().map(|group| format!("{group:x}")).collect::<Vec<_>>().join(":");
    if count < 2 {
        return f.write_str(&join(&groups));
    }
    write!(f, "{}::{}", join(&groups[..start]), join(&groups[start + count..]))
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.addr {
            NetAddr::Ipv6(_) | NetAddr::Cjdns(_) => write!(f, "[{}]:{}", self.addr, self.port),
            _ => write!(f, "{}:{}", self.addr, self.port),
        }
    }
}
