//! The data that the manager and the owner of the sockets exchange: settings, connections, actions, results.
//!
//! Data only. Invariant: every [`Action`] is carried out once, in order.

use super::{AttemptId, ConnectSettings, LookupId, PeerId, SavedFile};
use crate::outgoing::Outgoing;
use crate::peer::{ConnectionKind, Local, Permissions};
use crate::proxies::Target;
use crate::submission::Submission;
use crate::{PeerMemory, Traffic};
use lydian_consensus::{Params, U256};
use lydian_engine::{InitialDownload, LogLine};
use lydian_primitives::{BlockHash, HEADER_SIZE, Header};
use lydian_wire::{Endpoint, Network, PartialBlock};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The data about the node that the manager needs.
#[derive(Clone, Debug)]
pub struct ManagerSettings {
    pub params: Params,
    /// `-minimumchainwork`.
    pub minimum_chain_work: U256,
    /// The node's only instance.
    pub initial_download: Arc<InitialDownload>,
    /// `-blocksonly`: whole blocks are requested and compact ones ignored, because there will never be transactions to
    /// build blocks from.
    pub blocks_only: bool,
    /// What this node announces about itself.
    pub local: Local,
    /// Networks that we can connect to.
    pub reachable: BTreeSet<Network>,
    /// The maximum number of bytes of blocks in flight.
    pub download_bytes: u64,
    pub seed: [u8; 32],
    pub connect: ConnectSettings,
}

/// An established connection on which nothing was sent yet.
#[derive(Clone, Debug)]
pub struct NewPeer {
    pub id: PeerId,
    pub kind: ConnectionKind,
    pub endpoint: Endpoint,
    pub permissions: Permissions,
    /// It connected through the onion service: its address is meaningless.
    pub is_onion: bool,
    /// The attempt that succeeded; `None` for inbound peers.
    pub attempt: Option<AttemptId>,
    /// Our side of the connection.
    pub local: Endpoint,
    /// Whether the v2 transport is tried first.
    pub v2: bool,
    /// The byte counters of the connection.
    pub traffic: Arc<Traffic>,
    /// The memory account of the connection.
    pub memory: PeerMemory,
}

/// An action for [`crate::driver`].
#[derive(Debug)]
pub enum Action {
    /// Add an item to the send queue of a peer.
    Send { to: PeerId, item: Outgoing },
    /// A block was received: it is parsed, checked and stored as `intake` says, and [`PeerManager::block_stored`]
    /// reports the result.
    /// `is_next`: the block extends the tip, and [`PeerManager::block_extends_tip`] gets it too.
    Store { from: PeerId, hash: BlockHash, block: ReceivedBlock, intake: Intake, is_next: bool },
    /// Submit transactions to the mempool; the answer is [`PeerManager::decided`].
    Submit(Submission),
    /// Open a connection; the answer is [`PeerManager::connected`] or [`PeerManager::attempt_failed`].
    Connect { attempt: AttemptId, kind: ConnectionKind, target: Target, v2: bool },
    /// Ask the system for the addresses of a name; the answer is [`PeerManager::resolved`].
    Resolve { lookup: LookupId, host: String, count_max: usize },
    /// Replace a file with these bytes. A failure is only logged.
    Save { file: SavedFile, bytes: Vec<u8> },
    /// Log this line.
    Log(LogLine),
}

/// A block as it arrived: nothing beyond its header was looked at.
#[derive(Debug)]
pub enum ReceivedBlock {
    /// Its bytes, and any that follow it.
    Whole(Vec<u8>),
    /// A compact block, and the transactions for its empty places.
    Parts(Box<PartialBlock>, Vec<Vec<u8>>),
}

impl ReceivedBlock {
    /// The hash of its parent; `None` if there is not even a header.
    pub fn parent(&self) -> Option<BlockHash> {
        match self {
            ReceivedBlock::Whole(bytes) => Some(Header::parse(bytes.first_chunk::<HEADER_SIZE>()?).prev_block),
            ReceivedBlock::Parts(partial, _) => Some(partial.header().prev_block),
        }
    }

    /// The memory that it uses, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            ReceivedBlock::Whole(bytes) => bytes.capacity(),
            ReceivedBlock::Parts(partial, txs) => {
                partial.memory_bytes() + txs.iter().map(|tx| size_of::<Vec<u8>>() + tx.capacity()).sum::<usize>()
            }
        }
    }
}

/// How a block was received, which decides what is done with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intake {
    /// As a whole, and a peer was asked for it: it is stored.
    Requested,
    /// As a whole, and no peer was asked for it: it is stored unless it is mutated.
    Unrequested,
    /// The same, but it is not needed: it is only checked whether it is mutated.
    Unneeded,
    /// As a compact block: it is stored unless it is mutated.
    Compact,
    /// As a whole, and a peer was asked for it for a reader ([`crate::order`]): it is compared with its header, and not
    /// stored.
    Ordered,
}

/// The result for a block that a peer sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreOutcome {
    /// It is stored; its scripts are checked later.
    Stored,
    /// It was already here.
    Known,
    /// It breaks a rule. `is_mutated`: the bytes do not match the hash, so the real block may still arrive.
    Invalid { reason: String, is_mutated: bool },
    /// The bytes do not match the header, which was found before anything else was checked: Core's `IsBlockMutated`. A
    /// requested block is [`StoreOutcome::Invalid`] instead.
    Mutated,
    /// It is not mutated, and was not to be stored ([`Intake::Unneeded`]).
    Unneeded { header: Header },
    /// It is what its header commits to, and was not to be stored ([`Intake::Ordered`]).
    Intact,
    /// It was already known to break a rule.
    KnownInvalid { reason: String },
    /// The bytes are not a block.
    Malformed { reason: String },
    /// Its time is too far ahead of this node's clock, or there was no room for it: it may be sent again.
    TooEarly,
}
