//! What the threads and tasks tell the thread of the manager. Data only.

use crate::handle::Asked;
use crate::outbox::Outbox;
use lydian_p2p::manager::{AttemptFailure, AttemptId, BlockFate, LookupId, NewPeer, PeerId};
use lydian_p2p::memory::Charge;
use lydian_primitives::BlockHash;
use lydian_wire::{Command, NetAddr};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// Something happened.
#[derive(Debug)]
pub(crate) enum Event {
    Connected {
        new: NewPeer,
        outbox: Arc<Outbox>,
    },
    /// The permit is given back when the message is dealt with.
    Message {
        from: PeerId,
        command: Command,
        payload: Vec<u8>,
        _permit: OwnedSemaphorePermit,
        /// The bytes count as the peer's until then.
        _charge: Charge,
    },
    /// It asked for transactions that a block does not have.
    BadTransactionsRequest {
        from: PeerId,
    },
    /// So many bytes came of a message that is not complete.
    Progress {
        from: PeerId,
        bytes: u64,
    },
    /// `wants_v1`: it ended before v2 was spoken, and v1 may do.
    Disconnected {
        peer: PeerId,
        wants_v1: bool,
    },
    AttemptFailed {
        attempt: AttemptId,
        failure: AttemptFailure,
    },
    Resolved {
        lookup: LookupId,
        addresses: Vec<NetAddr>,
    },
    Stored {
        from: PeerId,
        hash: BlockHash,
        fate: BlockFate,
    },
    Invalid {
        hash: BlockHash,
        reason: String,
    },
    NotReadable {
        hash: BlockHash,
    },
    Ask(Asked),
    ChainChanged,
    Tick,
}
