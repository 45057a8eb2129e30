//! Permissions of peers: `-whitebind` and `-whitelist`.
//!
//! Input: the values of these options, the address of a peer and the bind it connected to. Output: [`Permissions`].
//!
//! Core's `NetPermissions` (net_permissions.cpp), with the same error texts. A value without permission names
//! (`-whitelist=10.0.0.1`) grants what `-whitelistrelay` and `-whitelistforcerelay` select, `mempool` and `noban`. A
//! peer gets the permissions of its bind and of every range that contains its address. Ranges apply to inbound peers,
//! with `out` to peers that the operator added, and never to automatic connections. Cost: one check of each range per
//! connection.

use crate::peer::Permissions;
use lydian_wire::{Endpoint, NetAddr, Subnet};
use std::fmt;

/// The permission names and what they grant.
const NAMES: [(&str, Permissions); 9] = [
    ("bloomfilter", Permissions::BLOOM_FILTER),
    ("bloom", Permissions::BLOOM_FILTER),
    ("noban", Permissions::NO_BAN),
    ("forcerelay", Permissions::FORCE_RELAY),
    ("mempool", Permissions::MEMPOOL),
    ("download", Permissions::DOWNLOAD),
    ("all", Permissions::ALL),
    ("relay", Permissions::RELAY),
    ("addr", Permissions::ADDR),
];

/// A listening address whose peers get permissions: Core's `NetWhitebindPermissions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhiteBind {
    pub endpoint: Endpoint,
    pub permissions: Permissions,
}

/// An address range whose peers get permissions: Core's `NetWhitelistPermissions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhiteRange {
    pub subnet: Subnet,
    pub permissions: Permissions,
    pub is_inbound: bool,
    pub is_outbound: bool,
}

/// The reason why a value is refused. The texts are Core's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PermissionError {
    OutOnWhitebind,
    Unknown { name: String },
    OnlyDirection { text: String },
    BadAddress { text: String },
    NoPort { text: String },
    BadSubnet { text: String },
}

impl fmt::Display for PermissionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOnWhitebind => {
                f.write_str("whitebind may only be used for incoming connections (\"out\" was passed)")
            }
            Self::Unknown { name } => write!(f, "Invalid P2P permission: '{name}'"),
            Self::OnlyDirection { text } => write!(f, "Only direction was set, no permissions: '{text}'"),
            Self::BadAddress { text } => write!(f, "Cannot resolve -whitebind address: '{text}'"),
            Self::NoPort { text } => write!(f, "Need to specify a port with -whitebind: '{text}'"),
            Self::BadSubnet { text } => write!(f, "Invalid netmask specified in -whitelist: '{text}'"),
        }
    }
}

impl std::error::Error for PermissionError {}

impl WhiteBind {
    /// Parses `[permissions@]address:port`; `with_cjdns` says whether CJDNS is reachable.
    pub fn parse(text: &str, with_cjdns: bool) -> Result<WhiteBind, PermissionError> {
        let (grant, rest) = Grant::parse(text, false)?;
        let bad = || PermissionError::BadAddress { text: rest.to_owned() };
        let (host, port, _) = lydian_wire::split_host_port(rest, 0);
        let addr: NetAddr = host.parse().map_err(|_| bad())?;
        if port == 0 {
            return Err(PermissionError::NoPort { text: rest.to_owned() });
        }
        let addr = if with_cjdns { addr.maybe_cjdns() } else { addr };
        Ok(WhiteBind { endpoint: Endpoint { addr, port }, permissions: grant.permissions })
    }
}

impl WhiteRange {
    /// Parses `[permissions@]address` or `[permissions@]network/bits`; `with_cjdns` says whether CJDNS is reachable.
    pub fn parse(text: &str, with_cjdns: bool) -> Result<WhiteRange, PermissionError> {
        let (grant, rest) = Grant::parse(text, true)?;
        let subnet = Subnet::parse(rest, with_cjdns);
        let subnet = subnet.map_err(|_| PermissionError::BadSubnet { text: rest.to_owned() })?;
        Ok(WhiteRange {
            subnet,
            permissions: grant.permissions,
            // Without a direction, the range applies to inbound peers.
            is_inbound: grant.is_in || !grant.is_out,
            is_outbound: grant.is_out,
        })
    }
}

/// The part before the `@`.
struct Grant {
    permissions: Permissions,
    is_in: bool,
    is_out: bool,
}

impl Grant {
    /// Returns the grant and the text after it.
    fn parse(text: &str, may_be_out: bool) -> Result<(Grant, &str), PermissionError> {
        let mut grant = Grant { permissions: Permissions::NONE, is_in: false, is_out: false };
        let Some((names, rest)) = text.split_once('@') else {
            grant.permissions = Permissions::IMPLICIT;
            return Ok((grant, text));
        };
        for name in names.split(',') {
            match NAMES.iter().find(|(known, _)| *known == name) {
                Some((_, permissions)) => grant.permissions = grant.permissions.with(*permissions),
                None if name == "in" => grant.is_in = true,
                None if name == "out" && may_be_out => grant.is_out = true,
                None if name == "out" => return Err(PermissionError::OutOnWhitebind),
                None if name.is_empty() => {}
                None => return Err(PermissionError::Unknown { name: name.to_owned() }),
            }
        }
        if (grant.is_in || grant.is_out) && grant.permissions == Permissions::NONE {
            return Err(PermissionError::OnlyDirection { text: text.to_owned() });
        }
        Ok((grant, rest))
    }
}

/// All ranges, and what permissions without names mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whitelist {
    pub ranges: Vec<WhiteRange>,
    /// `-whitelistrelay`.
    pub relay: bool,
    /// `-whitelistforcerelay`.
    pub force_relay: bool,
}

impl Default for Whitelist {
    fn default() -> Self {
        Whitelist { ranges: Vec::new(), relay: true, force_relay: false }
    }
}

impl Whitelist {
    /// Returns the permissions of an inbound peer. `bind` are those of the bind it connected to. Without an address (a
    /// connection through the onion service) no range applies.
    pub fn inbound(&self, bind: Permissions, addr: Option<&NetAddr>) -> Permissions {
        self.sum(bind, addr, |range| range.is_inbound)
    }

    /// Returns the permissions of a peer that the operator added.
    pub fn manual(&self, addr: &NetAddr) -> Permissions {
        self.sum(Permissions::NONE, Some(addr), |range| range.is_outbound)
    }

    /// Core's `AddWhitelistPermissionFlags`.
    fn sum(&self, first: Permissions, addr: Option<&NetAddr>, counts: impl Fn(&&WhiteRange) -> bool) -> Permissions {
        let ranges = self.ranges.iter().filter(counts);
        let given = ranges.filter(|range| addr.is_some_and(|addr| range.subnet.contains(addr)));
        let sum = given.fold(first, |sum, range| sum.with(range.permissions));
        if !sum.contains(Permissions::IMPLICIT) {
            return sum;
        }
        let mut sum = sum.without_implicit().with(Permissions::MEMPOOL).with(Permissions::NO_BAN);
        if self.force_relay {
            sum = sum.with(Permissions::FORCE_RELAY);
        }
        if self.relay {
            sum = sum.with(Permissions::RELAY);
        }
        sum
    }
}

#[cfg(test)]
mod tests;
