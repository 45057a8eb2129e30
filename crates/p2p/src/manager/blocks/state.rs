//! The part of a peer's state that belongs to its blocks: what was requested from it, and what it sent.
//!
//! Data and queries. Only the modules of `blocks` change it, except that a peer that leaves is asked for nothing.

use super::compact::Partial;
use crate::memory::{Charge, PeerMemory};
use crate::time::UnixTime;
use lydian_chain::HeaderId;
use lydian_primitives::BlockHash;
use std::collections::{HashMap, HashSet};

/// The block requests of one peer.
#[derive(Debug)]
pub(in crate::manager) struct PeerBlocks {
    /// Blocks requested from it and not received.
    pub(super) in_flight: HashSet<BlockHash>,
    /// The number of blocks that were requested from it for readers, and not received.
    pub(super) ordered: usize,
    /// Compact blocks that it sent, of the requested blocks.
    pub(super) partials: HashMap<BlockHash, Partial>,
    pub(super) last_block_time: UnixTime,
    /// The end of a branch of which it did not send a block: nothing more of that branch is requested from it until it
    /// announces a chain.
    pub(super) failed_branch: Option<HeaderId>,
    /// Whether its account is set to outstanding block requests.
    pub(super) is_asked: bool,
    /// What the manager holds for it except compact blocks: buffered headers.
    pub(super) held: Charge,
    /// When the peer requests this block, the tip is announced to it: an answer to `getblocks` ended here at the limit.
    pub(super) continuation: Option<BlockHash>,
}

impl PeerBlocks {
    pub(in crate::manager) fn new(memory: &PeerMemory) -> PeerBlocks {
        PeerBlocks {
            in_flight: HashSet::new(),
            ordered: 0,
            partials: HashMap::new(),
            last_block_time: UnixTime::NEVER,
            failed_branch: None,
            is_asked: false,
            held: memory.charge_received(0),
            continuation: None,
        }
    }

    /// The peer leaves: nothing is expected from it any more.
    pub(in crate::manager) fn forget_requests(&mut self) {
        (self.in_flight, self.partials, self.ordered) = Default::default();
    }

    /// It may send a block that was requested from it.
    pub(super) fn is_sending(&self) -> bool {
        !self.in_flight.is_empty() || self.ordered > 0
    }

    /// No block is requested from it, except for readers.
    pub(in crate::manager) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Blocks requested from it and not received.
    pub(in crate::manager) fn in_flight(&self) -> &HashSet<BlockHash> {
        &self.in_flight
    }

    /// When it last sent a new block that was stored.
    pub(in crate::manager) fn last_block_time(&self) -> UnixTime {
        self.last_block_time
    }
}
