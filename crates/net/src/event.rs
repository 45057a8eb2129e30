//! Events for the manager's thread, sent by the other threads and by tasks. Data only.

use crate::outbox::Outbox;
use lydian_p2p::driver;
use lydian_p2p::manager::NewPeer;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// An event for the driver, with what only the thread needs.
#[derive(Debug)]
pub(crate) enum Event {
    /// A connection was established; its send queue.
    Connected { new: NewPeer, outbox: Arc<Outbox> },
    /// A message was received. The permit is released when the actions that follow from it are carried out.
    Message { event: driver::Event, permit: OwnedSemaphorePermit },
    /// Any other event.
    Other(driver::Event),
}

impl From<driver::Event> for Event {
    fn from(event: driver::Event) -> Event {
        Event::Other(event)
    }
}
