//! Questions of others to the thread of the manager, and orders: what RPC does to peers. Input: a closure. Output: whether it will be called. Whoever
//! wants an answer gives the closure a channel.

use crate::Events;
use crate::event::Event;
use lydian_p2p::manager::Question;
use std::fmt;

/// A way to the manager that everybody may hold, beyond the end of the network too.
#[derive(Clone, Debug)]
pub struct Handle {
    events: Events,
}

/// A question on its way.
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

    /// Has the closure called by the thread of the manager, soon; false if the network has ended. One that waits when it ends is dropped. Blocks while many
    /// events wait, so it must not be called by a thread that drives sockets.
    pub fn ask(&self, question: Question) -> bool {
        self.events.blocking_send(Event::Ask(Asked(question))).is_ok()
    }
}
