//! Kinds of connections and what a peer is permitted. Data only; names and numbers are Core's.

/// Core's `ConnectionType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConnectionKind {
    /// The peer connected to us.
    Inbound,
    /// Blocks, addresses and transactions: what we open by default.
    OutboundFullRelay,
    /// Asked for by the operator (`-addnode`, `-connect`, `addnode`).
    Manual,
    /// Tests whether an address is alive, and ends.
    Feeler,
    /// Blocks only: no transactions and no addresses, so that nobody learns of the connection from them.
    BlockRelayOnly,
    /// Asks for addresses, and ends.
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

    /// Core's `ExpectServicesFromConn`: a peer that does not serve what we want is of no use.
    pub fn expects_services(self) -> bool {
        match self {
            ConnectionKind::Inbound | ConnectionKind::Manual | ConnectionKind::Feeler => false,
            ConnectionKind::OutboundFullRelay | ConnectionKind::BlockRelayOnly | ConnectionKind::AddrFetch => true,
        }
    }

    /// Whether addresses go over it.
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
    /// May set a bloom filter though we do not offer that.
    pub const BLOOM_FILTER: Permissions = Permissions(1 << 1);
    /// May send transactions in `-blocksonly` mode.
    pub const RELAY: Permissions = Permissions(1 << 3);
    /// Its transactions are relayed even if they are in the mempool already.
    pub const FORCE_RELAY: Permissions = Permissions(1 << 2 | 1 << 3);
    /// May ask for old blocks beyond `-maxuploadtarget`.
    pub const DOWNLOAD: Permissions = Permissions(1 << 6);
    /// Is not disconnected, discouraged or evicted for misbehaviour.
    pub const NO_BAN: Permissions = Permissions(1 << 4 | 1 << 6);
    /// May ask for the mempool.
    pub const MEMPOOL: Permissions = Permissions(1 << 5);
    /// Its addresses are not limited, and it gets ours anew each time.
    pub const ADDR: Permissions = Permissions(1 << 7);
    /// All of them.
    pub const ALL: Permissions = Permissions(0b1111_1110);
    /// Whoever gave permissions named none: only before [`crate::permissions::Whitelist`] says what that means.
    pub const IMPLICIT: Permissions = Permissions(1 << 31);

    /// Whether all of `other` are given.
    pub fn contains(self, other: Permissions) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and those.
    #[must_use]
    pub fn with(self, other: Permissions) -> Permissions {
        Permissions(self.0 | other.0)
    }

    pub(crate) fn without_implicit(self) -> Permissions {
        Permissions(self.0 & !Permissions::IMPLICIT.0)
    }

    /// Names in `getpeerinfo`, in Core's order.
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
