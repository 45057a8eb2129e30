//! [`Event`]: what one part of the manager reports to the others.
//!
//! Data only. The manager takes the events after each call of a part and passes each to the parts that it concerns.

use super::PeerId;

/// Something that happened in one part and that another part must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A peer is being disconnected.
    Left(PeerId),
}
