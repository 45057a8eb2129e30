//! What the threads and tasks tell the thread of the manager. Data only.

use crate::handle::Asked;
use crate::outbox::Outbox;
use lydian_p2p::manager::{BlockFate, NewPeer, PeerId};
use lydian_primitives::BlockHash;
use lydian_wire::Command;
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
    },
    Disconnected {
        peer: PeerId,
        reason: String,
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
