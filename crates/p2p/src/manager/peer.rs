//! The state of one peer beyond its connection: its chain, the outstanding requests, the announcements. Data and
//! queries.

mod chain;
pub(super) mod info;
mod talk;

use super::blocks::PeerBlocks;
use super::connections::Link;
use super::headers::PeerSync;
use super::transactions::PeerTransactions;
use crate::memory::PeerMemory;
pub use crate::peer::PeerId;
use crate::peer::{ConnectionKind, Peer, Permissions};
use crate::time::UnixTime;
use crate::traffic::Traffic;
use lydian_chain::HeaderId;
use lydian_primitives::BlockHash;
use lydian_wire::Services;
use std::sync::Arc;

/// A peer.
#[derive(Debug)]
pub(super) struct PeerState {
    pub(super) id: PeerId,
    /// The connection and its negotiated properties.
    pub(super) talk: Peer,
    /// How the connection was created.
    pub(super) link: Link,
    /// It is being disconnected; nothing more is read from it.
    pub(super) is_leaving: bool,
    pub(super) should_discourage: bool,

    /// Its headers, what it was asked for and what is announced to it.
    pub(super) sync: PeerSync,
    /// The header with the most work that it is known to have.
    pub(super) best_known: Option<HeaderId>,
    /// The last block it announced that is unknown here.
    pub(super) last_unknown: Option<BlockHash>,
    pub(super) last_block_announcement: UnixTime,

    /// The blocks requested from it, and what it did with such requests.
    pub(super) blocks: PeerBlocks,
    /// The last common block, as far as known: Core's `pindexLastCommonBlock`.
    pub(super) last_common: Option<HeaderId>,
    /// The transactions that it sent and requested.
    pub(super) txs: PeerTransactions,
    pub(super) traffic: Arc<Traffic>,
    /// The account of its memory.
    pub(super) memory: PeerMemory,
}

impl PeerState {
    pub(super) fn new(id: PeerId, talk: Peer, (traffic, memory): (Arc<Traffic>, PeerMemory), link: Link) -> PeerState {
        PeerState {
            id,
            talk,
            link,
            is_leaving: false,
            should_discourage: false,
            sync: PeerSync::default(),
            best_known: None,
            last_unknown: None,
            last_block_announcement: UnixTime::NEVER,
            blocks: PeerBlocks::new(&memory),
            last_common: None,
            txs: PeerTransactions::new(&memory),
            traffic,
            memory,
        }
    }

    pub(super) fn kind(&self) -> ConnectionKind {
        self.talk.connection.kind
    }

    pub(super) fn may(&self, permission: Permissions) -> bool {
        self.talk.connection.permissions.contains(permission)
    }

    /// The handshake is complete and the connection is not being closed.
    pub(super) fn is_ready(&self) -> bool {
        self.talk.is_connected() && !self.is_leaving
    }

    /// Core's `IsOutboundOrBlockRelayConn`: an automatic connection that may be dropped because of its chain.
    pub(super) fn is_chosen(&self) -> bool {
        matches!(self.kind(), ConnectionKind::OutboundFullRelay | ConnectionKind::BlockRelayOnly)
    }

    /// Core's `CanServeBlocks`.
    pub(super) fn serves_blocks(&self) -> bool {
        self.talk.services.contains(Services::NETWORK) || self.talk.services.contains(Services::NETWORK_LIMITED)
    }

    /// Blocks with and without witnesses may be requested from it.
    pub(super) fn serves_all(&self) -> bool {
        self.serves_blocks() && self.serves_witnesses()
    }

    /// Core's `IsLimitedPeer`: it serves only the last blocks.
    pub(super) fn is_limited(&self) -> bool {
        !self.talk.services.contains(Services::NETWORK) && self.talk.services.contains(Services::NETWORK_LIMITED)
    }

    pub(super) fn serves_witnesses(&self) -> bool {
        self.talk.services.contains(Services::WITNESS)
    }

    /// Core's `fPreferredDownload`.
    pub(super) fn is_preferred(&self) -> bool {
        (!self.kind().is_inbound() || self.may(Permissions::NO_BAN))
            && self.kind() != ConnectionKind::AddrFetch
            && self.serves_blocks()
    }
}
