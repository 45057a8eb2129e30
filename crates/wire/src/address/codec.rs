//! Addresses as bytes: the old encoding (16 bytes, IPv6), that of BIP-0155, and Core's form for files.
//!
//! Input: a [`Reader`]. Output: an address, or a [`DecodeError`]. Invariants: under BIP-0155, an address of an unknown
//! network and an IPv4 or TORv2 address embedded in IPv6 are read as `::`, which is not valid; an address of a known
//! network with a wrong length is an error. No allocation.

use super::{Endpoint, INTERNAL_IN_IPV6_PREFIX, NetAddr, Services, TORV2_IN_IPV6_PREFIX};
use crate::error::DecodeError;
use crate::limits::ADDRV2_SIZE_MAX;
use lydian_primitives::{Reader, write_compact_size};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The encoding of addresses in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// 16-byte addresses, services as 8 bytes (`addr`, `version`).
    V1,
    /// BIP-0155 (`addrv2`).
    V2,
}

/// An address with the time and services announced for it: Core's `CAddress`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedAddress {
    /// When it was last seen according to the sender, in seconds since 1970.
    pub time: u32,
    pub services: Services,
    pub endpoint: Endpoint,
}

const IPV4: u8 = 1;
const IPV6: u8 = 2;
const TORV3: u8 = 4;
const I2P: u8 = 5;
const CJDNS: u8 = 6;

impl NetAddr {
    pub fn decode(reader: &mut Reader<'_>, encoding: Encoding) -> Result<NetAddr, DecodeError> {
        match encoding {
            Encoding::V1 => Ok(NetAddr::from_legacy_ipv6(reader.array()?)),
            Encoding::V2 => decode_v2(reader),
        }
    }

    pub fn encode(&self, out: &mut Vec<u8>, encoding: Encoding) {
        match (encoding, self) {
            (Encoding::V1, _) => out.extend_from_slice(&self.to_legacy_ipv6()),
            (Encoding::V2, NetAddr::Ipv4(ip)) => encode_v2(out, IPV4, &ip.octets()),
            (Encoding::V2, NetAddr::Ipv6(_) | NetAddr::Internal(_)) => encode_v2(out, IPV6, &self.to_legacy_ipv6()),
            (Encoding::V2, NetAddr::TorV3(key)) => encode_v2(out, TORV3, key),
            (Encoding::V2, NetAddr::I2p(hash)) => encode_v2(out, I2P, hash),
            (Encoding::V2, NetAddr::Cjdns(ip)) => encode_v2(out, CJDNS, &ip.octets()),
        }
    }
}

fn encode_v2(out: &mut Vec<u8>, network: u8, bytes: &[u8]) {
    out.push(network);
    write_compact_size(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn decode_v2(reader: &mut Reader<'_>) -> Result<NetAddr, DecodeError> {
    let network = reader.u8()?;
    let size = reader.compact_size()?;
    if size > ADDRV2_SIZE_MAX {
        return Err(DecodeError::AddressTooLong { size });
    }
    let expected = match network {
        IPV4 => 4,
        IPV6 | CJDNS => 16,
        TORV3 | I2P => 32,
        _ => {
            reader.take(size)?;
            return Ok(NetAddr::UNSPECIFIED);
        }
    };
    if size != expected {
        return Err(DecodeError::AddressSize { network, size, expected });
    }
    Ok(match network {
        IPV4 => NetAddr::Ipv4(Ipv4Addr::from(reader.array::<4>()?)),
        TORV3 => NetAddr::TorV3(reader.array()?),
        I2P => NetAddr::I2p(reader.array()?),
        CJDNS => NetAddr::Cjdns(Ipv6Addr::from(reader.array::<16>()?)),
        _ => {
            let bytes: [u8; 16] = reader.array()?;
            if bytes.starts_with(&INTERNAL_IN_IPV6_PREFIX) {
                NetAddr::from_legacy_ipv6(bytes)
            } else if bytes.starts_with(&TORV2_IN_IPV6_PREFIX) || Ipv6Addr::from(bytes).to_ipv4_mapped().is_some() {
                NetAddr::UNSPECIFIED
            } else {
                NetAddr::Ipv6(Ipv6Addr::from(bytes))
            }
        }
    })
}

impl Endpoint {
    pub fn decode(reader: &mut Reader<'_>, encoding: Encoding) -> Result<Endpoint, DecodeError> {
        let addr = NetAddr::decode(reader, encoding)?;
        Ok(Endpoint { addr, port: u16::from_be_bytes(reader.array()?) })
    }

    pub fn encode(&self, out: &mut Vec<u8>, encoding: Encoding) {
        self.addr.encode(out, encoding);
        out.extend_from_slice(&self.port.to_be_bytes());
    }
}

impl TimedAddress {
    pub fn decode(reader: &mut Reader<'_>, encoding: Encoding) -> Result<TimedAddress, DecodeError> {
        let time = reader.u32()?;
        let services = match encoding {
            Encoding::V1 => u64::from_le_bytes(reader.array()?),
            Encoding::V2 => crate::codec::compact_u64(reader)?,
        };
        Ok(TimedAddress { time, services: Services(services), endpoint: Endpoint::decode(reader, encoding)? })
    }

    pub fn encode(&self, out: &mut Vec<u8>, encoding: Encoding) {
        out.extend_from_slice(&self.time.to_le_bytes());
        match encoding {
            Encoding::V1 => out.extend_from_slice(&self.services.0.to_le_bytes()),
            Encoding::V2 => crate::codec::write_compact_u64(out, self.services.0),
        }
        self.endpoint.encode(out, encoding);
    }

    /// Reads the form of `peers.dat` and `anchors.dat`, which declares its own encoding. If `permitted` is V1, BIP-0155
    /// is refused.
    pub fn decode_disk(reader: &mut Reader<'_>, permitted: Encoding) -> Result<TimedAddress, DecodeError> {
        let version = reader.u32()?;
        let encoding = match (version & !DISK_VERSION_IGNORE_MASK, permitted) {
            (0, _) => Encoding::V1,
            (DISK_VERSION_ADDRV2, Encoding::V2) => Encoding::V2,
            _ => return Err(DecodeError::AddressFormat { version }),
        };
        TimedAddress::decode(reader, encoding)
    }

    pub fn encode_disk(&self, out: &mut Vec<u8>, encoding: Encoding) {
        let flag = if encoding == Encoding::V2 { DISK_VERSION_ADDRV2 } else { 0 };
        out.extend_from_slice(&(DISK_VERSION_INIT | flag).to_le_bytes());
        self.encode(out, encoding);
    }
}

const DISK_VERSION_INIT: u32 = 220_000;
const DISK_VERSION_IGNORE_MASK: u32 = 0x0007_ffff;
const DISK_VERSION_ADDRV2: u32 = 1 << 29;
