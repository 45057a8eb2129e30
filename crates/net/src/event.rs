//! Events for the manager's thread, sent by the other threads and by tasks. Data only.

use crate::handle::Asked;
use crate::outbox::Outbox;
use lydian_p2p::manager::{AttemptFailure, AttemptId, LookupId, NewPeer, PeerId, StoreOutcome};
use lydian_p2p::memory::Charge;
use lydian_primitives::BlockHash;
use lydian_wire::{Command, NetAddr};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event {
    Connected {
        new: NewPeer,
        outbox: Arc<Outbox>,
    },
    /// The permit is released when the message has been processed.
    Message {
        from: PeerId,
        command: Command,
        payload: Vec<u8>,
        _permit: OwnedSemaphorePermit,
        /// The bytes count as the peer's until then.
        _charge: Charge,
    },
    /// The peer requested transactions that are not in the block.
    BadTransactionsRequest {
        from: PeerId,
    },
    /// `bytes` more bytes of an incomplete message have arrived.
    Progress {
        from: PeerId,
        bytes: u64,
    },
    /// `wants_v1`: the connection ended before v2 was established, and v1 may work.
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
        outcome: StoreOutcome,
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
