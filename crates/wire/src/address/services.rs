//! Core's `ServiceFlags`: the services that a peer advertises. Input: 64 bits. Output: names. Unknown bits are kept.

use std::fmt;
use std::ops::{BitAnd, BitOr};

/// Service bits; combine them with `|`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Services(pub u64);

impl Services {
    pub const NONE: Services = Services(0);
    /// Serves the whole chain.
    pub const NETWORK: Services = Services(1 << 0);
    /// Serves bloom-filtered connections (BIP-0111).
    pub const BLOOM: Services = Services(1 << 2);
    /// Serves witnesses (BIP-0144).
    pub const WITNESS: Services = Services(1 << 3);
    /// Serves block filters (BIP-0157).
    pub const COMPACT_FILTERS: Services = Services(1 << 6);
    /// Serves the last 288 blocks (BIP-0159).
    pub const NETWORK_LIMITED: Services = Services(1 << 10);
    /// Supports the v2 transport (BIP-0324).
    pub const P2P_V2: Services = Services(1 << 11);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Services) -> bool {
        self.0 & other.0 == other.0
    }

    /// Core's `MayHaveUsefulAddressDB`.
    pub fn may_have_useful_address_db(self) -> bool {
        self.contains(Services::NETWORK) || self.contains(Services::NETWORK_LIMITED)
    }

    /// Names of the set bits: Core's `serviceFlagsToStr`.
    pub fn names(self) -> Vec<String> {
        let set = (0..64).filter(|bit| self.0 >> bit & 1 == 1);
        set.map(|bit| match Services(1 << bit) {
            Services::NETWORK => "NETWORK".into(),
            Services::BLOOM => "BLOOM".into(),
            Services::WITNESS => "WITNESS".into(),
            Services::COMPACT_FILTERS => "COMPACT_FILTERS".into(),
            Services::NETWORK_LIMITED => "NETWORK_LIMITED".into(),
            Services::P2P_V2 => "P2P_V2".into(),
            _ => format!("UNKNOWN[2^{bit}]"),
        })
        .collect()
    }
}

impl BitOr for Services {
    type Output = Services;
    fn bitor(self, other: Services) -> Services {
        Services(self.0 | other.0)
    }
}

impl BitAnd for Services {
    type Output = Services;
    fn bitand(self, other: Services) -> Services {
        Services(self.0 & other.0)
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Services({})", self.names().join("|"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cores() {
        let services = Services::NETWORK | Services::WITNESS | Services(1 << 24);
        assert_eq!(services.names(), ["NETWORK", "WITNESS", "UNKNOWN[2^24]"]);
        assert!(services.contains(Services::NETWORK | Services::WITNESS));
        assert!(!services.contains(Services::NETWORK | Services::BLOOM));
        assert!(
            !Services::BLOOM.may_have_useful_address_db() && Services::NETWORK_LIMITED.may_have_useful_address_db()
        );
    }
}
