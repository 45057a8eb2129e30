//! Questions and requests to the manager's thread, which RPC uses.
//!
//! Input: a question. Output: whether it will be answered, to its reply.

use crate::Events;
use lydian_p2p::driver::Event;
use lydian_p2p::manager::Question;

/// A handle to the manager. It can be shared freely, and can be kept after the network has ended.
#[derive(Clone, Debug)]
pub struct Handle {
    events: Events,
}

impl Handle {
    pub(crate) fn new(events: Events) -> Handle {
        Handle { events }
    }

    /// Has the manager's thread answer the question soon. Returns false if the network has ended.
    ///
    /// A question that still waits when the network ends is dropped. Blocks while the event queue is full, so a thread
    /// that drives sockets must not call it.
    pub fn ask(&self, question: Question) -> bool {
        self.events.blocking_send(Event::Ask(question).into()).is_ok()
    }
}
