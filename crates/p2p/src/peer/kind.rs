//! Connection types and permissions. Data only; names and numbers are Core's.

/// Core's `ConnectionType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConnectionKind {
    /// The peer connected to us.
    Inbound,
    /// Relays blocks, addresses and transactions: the default for outbound connections.
    OutboundFullRelay,
    /// Requested by the operator (`-addnode`, `-connect`, `addnode`).
    Manual,
    /// Tests whether an address works, then disconnects.
    Feeler,
    /// Relays only blocks: no transactions and no addresses, which would reveal the connection.
    BlockRelayOnly,
    /// Requests addresses, then disconnects.
    AddrFetch,
}

impl ConnectionKind {
    /// The name in `getpeerinfo`: Core's `ConnectionTypeAsString`.
    pub fn name(self) -> &'static str {
        match self {
            ConnectionKind::Inbound => "inbound",
            ConnectionKind::OutboundFullRelay => "outbound-full-relay",
            ConnectionKind::Manual => "manual",
            ConnectionKind::Feeler => "feeler",
            ConnectionKind::BlockRelayOnly => "block-relay-only",
            ConnectionKind::AddrFetch => "addr-fetch",
        }
    }

    /// Core's `ExpectServicesFromConn`: a peer without the wanted services is of no use.
    pub fn expects_services(self) -> bool {
        match self {
            ConnectionKind::Inbound | ConnectionKind::Manual | ConnectionKind::Feeler => false,
            ConnectionKind::OutboundFullRelay | ConnectionKind::BlockRelayOnly | ConnectionKind::AddrFetch => true,
        }
    }

    /// Returns whether addresses are relayed over the connection.
    pub fn relays_addresses(self) -> bool {
        !matches!(self, ConnectionKind::BlockRelayOnly | ConnectionKind::Feeler)
    }

    pub fn is_inbound(self) -> bool {
        self == ConnectionKind::Inbound
    }
}

/// Core's `NetPermissionFlags`, by their bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions(pub u32);

impl Permissions {
    pub const NONE: Permissions = Permissions(0);
    /// May set a bloom filter although we do not offer that service.
    pub const BLOOM_FILTER: Permissions = Permissions(1 << 1);
    /// May send transactions in `-blocksonly` mode.
    pub const RELAY: Permissions = Permissions(1 << 3);
    /// Its transactions are relayed even if they are already in the mempool.
    pub const FORCE_RELAY: Permissions = Permissions(1 << 2 | 1 << 3);
    /// May request old blocks beyond `-maxuploadtarget`.
    pub const DOWNLOAD: Permissions = Permissions(1 << 6);
    /// Is not disconnected, discouraged or evicted for misbehavior.
    pub const NO_BAN: Permissions = Permissions(1 << 4 | 1 << 6);
    /// May request the mempool.
    pub const MEMPOOL: Permissions = Permissions(1 << 5);
    /// Its addresses are not rate-limited, and each of its requests gets a new selection of ours.
    pub const ADDR: Permissions = Permissions(1 << 7);
    /// All permissions.
    pub const ALL: Permissions = Permissions(0b1111_1110);
    /// Permissions were granted without names. Used only until [`crate::permissions::Whitelist`] resolves what that
    /// means.
    pub const IMPLICIT: Permissions = Permissions(1 << 31);

    /// Returns whether all of `other` are granted.
    pub fn contains(self, other: Permissions) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both.
    #[must_use]
    pub fn with(self, other: Permissions) -> Permissions {
        Permissions(self.0 | other.0)
    }

    pub(crate) fn without_implicit(self) -> Permissions {
        Permissions(self.0 & !Permissions::IMPLICIT.0)
    }

    /// Returns the names in `getpeerinfo`, in Core's order.
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            (Permissions::BLOOM_FILTER, "bloomfilter"),
            (Permissions::NO_BAN, "noban"),
            (Permissions::FORCE_RELAY, "forcerelay"),
            (Permissions::RELAY, "relay"),
            (Permissions::MEMPOOL, "mempool"),
            (Permissions::DOWNLOAD, "download"),
            (Permissions::ADDR, "addr"),
        ];
        all.into_iter().filter(|(flag, _)| self.contains(*flag)).map(|(_, name)| name).collect()
    }
}
