//! What is known of one peer beyond its connection: the chain it has, what it was asked for, what it was told. Data, and questions to it.

use super::compact::Partial;
use super::connect::Link;
use crate::headers::PeerHeaders;
use crate::memory::{Charge, PeerMemory};
use crate::peer::{ConnectionKind, Peer, Permissions};
use crate::time::UnixTime;
use crate::traffic::Traffic;
use lydian_chain::NodeId;
use lydian_primitives::{Amount, BlockHash};
use lydian_wire::Services;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// A connection, numbered from 0 in the order in which they came: Core's `NodeId`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PeerId(pub u64);

impl std::fmt::Display for PeerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// How long an outbound peer may be behind: Core's `ChainSyncTimeoutState`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChainSync {
    /// `None` while nothing is wanted of it.
    pub(super) deadline: Option<Duration>,
    /// It has to show a chain with as much work as this one's.
    pub(super) work_header: Option<NodeId>,
    pub(super) sent_getheaders: bool,
    pub(super) is_protected: bool,
}

/// A peer.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) id: PeerId,
    /// The connection and what is agreed about it.
    pub(super) talk: Peer,
    /// How it came to be.
    pub(super) link: Link,
    /// Told to go; nothing is read from it any more.
    pub(super) is_leaving: bool,
    pub(super) should_discourage: bool,

    pub(super) sync_started: bool,
    pub(super) headers: PeerHeaders,
    pub(super) headers_deadline: Option<Duration>,
    pub(super) inv_triggered_getheaders: bool,
    /// The header with most work that it is known to have.
    pub(super) best_known: Option<NodeId>,
    /// The last block it told of that is not known here.
    pub(super) last_unknown: Option<BlockHash>,
    pub(super) best_header_sent: Option<NodeId>,
    /// New blocks of the active chain, lowest first, to be announced: Core's `m_blocks_for_headers_relay`.
    pub(super) announcements: Vec<NodeId>,
    pub(super) last_block_announcement: UnixTime,
    pub(super) chain_sync: ChainSync,

    /// Blocks it was asked for and has not sent.
    pub(super) in_flight: HashSet<BlockHash>,
    /// Compact blocks it sent, of those it was asked for.
    pub(super) partials: HashMap<BlockHash, Partial>,
    pub(super) last_block_time: UnixTime,
    /// The last block that both have, as far as is known: Core's `pindexLastCommonBlock`.
    pub(super) last_common: Option<NodeId>,
    /// The end of a branch of which it did not send a block: nothing more of that branch is requested from it without
    /// an announcement.
    pub(super) failed_branch: Option<NodeId>,
    /// What a transaction must pay for the peer to want it.
    pub(super) fee_filter: Amount,
    pub(super) traffic: Arc<Traffic>,
    /// The account of its memory, and what the manager holds for it beside compact blocks: headers that wait.
    pub(super) memory: PeerMemory,
    pub(super) held: Charge,
    /// Whether its account says that it was asked for blocks.
    pub(super) is_asked: bool,
    /// When this block is asked for, the peer wants to know of what follows: an answer to `getblocks` was cut.
    pub(super) continuation: Option<BlockHash>,
}

impl Known {
    pub(super) fn new(id: PeerId, talk: Peer, (traffic, memory): (Arc<Traffic>, PeerMemory), link: Link) -> Known {
        Known {
            id,
            talk,
            link,
            is_leaving: false,
            should_discourage: false,
            sync_started: false,
            headers: PeerHeaders::new(),
            headers_deadline: None,
            inv_triggered_getheaders: false,
            best_known: None,
            last_unknown: None,
            best_header_sent: None,
            announcements: Vec::new(),
            last_block_announcement: UnixTime::NEVER,
            chain_sync: ChainSync::default(),
            in_flight: HashSet::new(),
            partials: HashMap::new(),
            last_block_time: UnixTime::NEVER,
            last_common: None,
            failed_branch: None,
            fee_filter: Amount(0),
            traffic,
            held: memory.charge(0),
            is_asked: false,
            memory,
            continuation: None,
        }
    }

    pub(super) fn kind(&self) -> ConnectionKind {
        self.talk.connection.kind
    }

    pub(super) fn may(&self, permission: Permissions) -> bool {
        self.talk.connection.permissions.contains(permission)
    }

    /// The handshake is over, and the connection is not.
    pub(super) fn is_ready(&self) -> bool {
        self.talk.is_connected() && !self.is_leaving
    }

    /// Core's `IsOutboundOrBlockRelayConn`: what this node chose by itself and may drop for a bad chain.
    pub(super) fn is_chosen(&self) -> bool {
        matches!(self.kind(), ConnectionKind::OutboundFullRelay | ConnectionKind::BlockRelayOnly)
    }

    /// Core's `CanServeBlocks`.
    pub(super) fn serves_blocks(&self) -> bool {
        self.talk.services.contains(Services::NETWORK) || self.talk.services.contains(Services::NETWORK_LIMITED)
    }

    /// Blocks of any kind may be requested from it.
    pub(super) fn serves_all(&self) -> bool {
        self.serves_blocks() && self.serves_witnesses()
    }

    /// Core's `IsLimitedPeer`: it serves the last blocks only.
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
