//! Questions and commands to the manager's thread, which RPC uses.
//!
//! Input: a closure. Output: whether it will be called. A caller that needs an answer gives the closure a channel.

use crate::Events;
use crate::event::Event;
use lydian_p2p::manager::Question;
use std::fmt;

/// A handle to the manager. It can be shared freely, and can be kept after the network has ended.
#[derive(Clone, Debug)]
pub struct Handle {
    events: Events,
}

/// A question that waits for the manager.
pub(crate) struct Asked(pub(crate) Question);

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked")
    }
}

impl Handle {
    pub(crate) fn new(events: Events) -> Handle {
        Handle { events }
    }

    /// Has the manager's thread call the closure soon. Returns false if the network has ended.
    ///
    /// A closure that still waits when the network ends is dropped. Blocks while the event queue is full, so a thread
    /// that drives sockets must not call it.
    pub fn ask(&self, question: Question) -> bool {
        self.events.blocking_send(Event::Ask(Asked(question))).is_ok()
    }
}
