//! The properties of a connection that decide how transactions are relayed over it.
//!
//! Data and rules of Bitcoin Core's net_processing.cpp; no state. Input: a peer after its handshake. Output: what it is
//! sent and what is taken from it.

use crate::peer::{ConnectionKind, Peer, Permissions};

/// The first protocol version with `feefilter` (BIP-0133): Core's `FEEFILTER_VERSION`.
const FEEFILTER_VERSION: i32 = 70_013;

/// A connection whose handshake is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayPeer {
    pub kind: ConnectionKind,
    pub permissions: Permissions,
    /// The protocol version that both sides understand.
    pub common_version: i32,
    /// Transactions are announced by wtxid, in both directions (BIP-0339).
    pub wtxid_relay: bool,
    /// The peer asked for announcements of transactions in its `version` message.
    pub wants_transactions: bool,
    /// Core's `fPreferredDownload`.
    pub is_preferred: bool,
    /// A hash of the network and of our address that the peer connected to. Inbound peers with equal keys are sent
    /// announcements at the same times: Core's `m_network_key`.
    pub network_key: u64,
}

impl RelayPeer {
    pub fn new(peer: &Peer, is_preferred: bool, network_key: u64) -> RelayPeer {
        RelayPeer {
            kind: peer.connection.kind,
            permissions: peer.connection.permissions,
            common_version: peer.common_version,
            wtxid_relay: peer.wtxid_relay,
            wants_transactions: peer.relays_transactions,
            is_preferred,
            network_key,
        }
    }

    /// Returns whether the peer is sent announcements, and transactions on request: Core's condition for a
    /// `Peer::TxRelay`, for a node that does not offer `NODE_BLOOM`.
    pub fn is_announced_to(&self) -> bool {
        self.wants_transactions && !matches!(self.kind, ConnectionKind::BlockRelayOnly | ConnectionKind::Feeler)
    }

    /// Returns whether announcements to the peer are not delayed.
    pub fn is_announced_to_at_once(&self) -> bool {
        self.permissions.contains(Permissions::NO_BAN)
    }

    /// Returns whether the peer may announce any number of transactions, and is never overloaded.
    pub fn has_relay_permission(&self) -> bool {
        self.permissions.contains(Permissions::RELAY)
    }

    /// Returns whether transactions of the peer that are already in the mempool are announced again.
    pub fn has_force_relay_permission(&self) -> bool {
        self.permissions.contains(Permissions::FORCE_RELAY)
    }

    /// Returns whether the peer is sent our `feefilter`. `ignores_transactions`: this node runs with `-blocksonly`.
    pub fn is_sent_fee_filter(&self, ignores_transactions: bool) -> bool {
        !ignores_transactions
            && self.common_version >= FEEFILTER_VERSION
            && !self.has_force_relay_permission()
            && self.kind != ConnectionKind::BlockRelayOnly
    }
}

#[cfg(test)]
impl RelayPeer {
    /// An inbound peer without permissions that relays by wtxid.
    pub(super) fn sample() -> RelayPeer {
        RelayPeer {
            kind: ConnectionKind::Inbound,
            permissions: Permissions::NONE,
            common_version: 70_016,
            wtxid_relay: true,
            wants_transactions: true,
            is_preferred: false,
            network_key: 1,
        }
    }

    pub(super) fn outbound() -> RelayPeer {
        RelayPeer { kind: ConnectionKind::OutboundFullRelay, is_preferred: true, ..RelayPeer::sample() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_relay_only_peers_are_sent_nothing() {
        let peer = RelayPeer::outbound();
        assert!(peer.is_announced_to() && peer.is_sent_fee_filter(false));
        let blocks = RelayPeer { kind: ConnectionKind::BlockRelayOnly, ..peer };
        assert!(!blocks.is_announced_to() && !blocks.is_sent_fee_filter(false));
        let feeler = RelayPeer { kind: ConnectionKind::Feeler, ..peer };
        assert!(!feeler.is_announced_to());
        assert!(!RelayPeer { wants_transactions: false, ..peer }.is_announced_to());
    }

    #[test]
    fn fee_filters_are_sent_to_peers_that_may_filter() {
        let peer = RelayPeer::sample();
        assert!(peer.is_sent_fee_filter(false) && !peer.is_sent_fee_filter(true));
        assert!(RelayPeer { common_version: 70_013, ..peer }.is_sent_fee_filter(false));
        assert!(!RelayPeer { common_version: 70_012, ..peer }.is_sent_fee_filter(false));
        assert!(!RelayPeer { permissions: Permissions::FORCE_RELAY, ..peer }.is_sent_fee_filter(false));
        // `forcerelay` includes `relay`, not the other way around.
        let relay = RelayPeer { permissions: Permissions::RELAY, ..peer };
        assert!(relay.is_sent_fee_filter(false) && relay.has_relay_permission());
        assert!(!relay.has_force_relay_permission() && !peer.has_relay_permission());
        assert!(RelayPeer { permissions: Permissions::FORCE_RELAY, ..peer }.has_relay_permission());
    }
}
