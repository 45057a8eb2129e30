//! [`Event`]: what one part of the manager reports to the others.
//!
//! Data only. The manager takes the events after each call of a part and passes each to the parts that it concerns.

use super::PeerId;
use lydian_chain::HeaderId;
use lydian_primitives::Header;

/// Something that happened in one part and that another part must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A peer is being disconnected.
    Left(PeerId),
    /// A peer sent headers up to this one, which are in the tree now.
    Headers { id: PeerId, last: HeaderId },
    /// A peer sent a compact block that is too far above the tip to be reconstructed: only its header is processed.
    HeaderOfCompact { id: PeerId, header: Header },
}
