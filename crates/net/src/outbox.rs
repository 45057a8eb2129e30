//! What waits to be sent to one peer. Input: messages of the manager, stored blocks. Output: items for the connection's task, in order. The bytes that wait
//! are counted, so that whoever reads from the peer can wait until they are fewer.

use crate::limits::SEND_BUFFER_BYTES;
use lydian_primitives::BlockHash;
use lydian_wire::Message;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// Something to send.
#[derive(Debug)]
pub(crate) enum Outgoing {
    Message(Message),
    Block {
        hash: BlockHash,
        with_witness: bool,
    },
    /// Nothing more: the connection ends once everything before is sent.
    End {
        reason: String,
    },
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: Mutex<VecDeque<Outgoing>>,
    /// Something was put in, or taken out.
    pub(crate) changed: Notify,
}

/// What a queued item counts for: most are small, and a block is read only when its turn comes.
const ITEM_BYTES: usize = 1_000;

impl Outbox {
    pub(crate) fn push(&self, item: Outgoing) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(item);
        self.changed.notify_one();
    }

    pub(crate) fn pop(&self) -> Option<Outgoing> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Whether so much waits that nothing more should be read.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).len() * ITEM_BYTES > SEND_BUFFER_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// limit: SEND_BUFFER_BYTES at
    /// limit: SEND_BUFFER_BYTES above
    #[test]
    fn nothing_is_read_while_too_much_waits() {
        let outbox = Outbox::default();
        (0..SEND_BUFFER_BYTES / ITEM_BYTES).for_each(|_| outbox.push(Outgoing::Message(Message::Verack)));
        assert!(!outbox.is_full());
        outbox.push(Outgoing::Message(Message::Verack));
        assert!(outbox.is_full());
        assert!(outbox.pop().is_some() && !outbox.is_full());
    }
}
