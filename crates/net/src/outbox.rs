//! What waits to be sent to one peer. Input: messages of the manager, stored blocks. Output: items for the connection's task, in order. The bytes that wait
//! are counted, so that whoever reads from the peer can wait until they are fewer.

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
    Compact {
        hash: BlockHash,
        nonce: u64,
    },
    /// Nothing more: the connection ends once everything before is sent.
    End {
        reason: String,
    },
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Outbox {
    bytes_max: usize,
    queue: Mutex<Queue>,
    /// Something was put in, or taken out.
    pub(crate) changed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    items: VecDeque<Outgoing>,
    bytes: usize,
    is_ending: bool,
}

/// What a queued item counts for beside its bytes: most are small, and a block is read only when its turn comes.
const ITEM_BYTES: usize = 1_000;

impl Outbox {
    /// Nothing waits; above so many bytes it is full.
    pub(crate) fn new(bytes_max: usize) -> Outbox {
        Outbox { bytes_max, queue: Mutex::default(), changed: Notify::new() }
    }

    pub(crate) fn push(&self, item: Outgoing) {
        {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.bytes += weight(&item);
            queue.is_ending |= matches!(item, Outgoing::End { .. });
            queue.items.push_back(item);
        }
        self.changed.notify_one();
    }

    pub(crate) fn pop(&self) -> Option<Outgoing> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let item = queue.items.pop_front()?;
        queue.bytes -= weight(&item);
        Some(item)
    }

    /// Whether the connection is to end, however much waits before that.
    pub(crate) fn is_ending(&self) -> bool {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).is_ending
    }

    /// Why it ends; what waits before that is dropped.
    pub(crate) fn take_end(&self) -> Option<String> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let items = std::mem::take(&mut queue.items);
        queue.bytes = 0;
        items.into_iter().find_map(|item| match item {
            Outgoing::End { reason } => Some(reason),
            _ => None,
        })
    }

    /// Whether so much waits that nothing more should be read.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).bytes > self.bytes_max
    }
}

/// What an item takes while it waits, by and large. The same whenever it is asked.
fn weight(item: &Outgoing) -> usize {
    let bytes = match item {
        Outgoing::Message(Message::Headers(headers)) => headers.len() * 81,
        Outgoing::Message(Message::Inv(items) | Message::NotFound(items) | Message::GetData(items)) => items.len() * 36,
        Outgoing::Message(Message::Addr(addresses) | Message::AddrV2(addresses)) => addresses.len() * 30,
        Outgoing::Message(Message::CmpctBlock(compact)) => {
            compact.short_ids.len() * 8 + compact.prefilled.iter().map(|prefilled| prefilled.tx.len()).sum::<usize>()
        }
        Outgoing::Message(Message::BlockTxn(answer)) => answer.txs.iter().map(Vec::len).sum(),
        _ => 0,
    };
    ITEM_BYTES + bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::SEND_BUFFER_BYTES;
    use lydian_wire::BlockTransactions;

    /// limit: SEND_BUFFER_BYTES at
    /// limit: SEND_BUFFER_BYTES above
    #[test]
    fn nothing_is_read_while_too_much_waits() {
        let outbox = Outbox::new(SEND_BUFFER_BYTES);
        (0..SEND_BUFFER_BYTES / ITEM_BYTES).for_each(|_| outbox.push(Outgoing::Message(Message::Verack)));
        assert!(!outbox.is_full());
        outbox.push(Outgoing::Message(Message::Verack));
        assert!(outbox.is_full());
        assert!(outbox.pop().is_some() && !outbox.is_full());
        // A message of a megabyte alone fills it.
        while outbox.pop().is_some() {}
        let txs = vec![vec![0; SEND_BUFFER_BYTES]];
        let answer = BlockTransactions { block_hash: BlockHash([0; 32]), txs };
        outbox.push(Outgoing::Message(Message::BlockTxn(answer)));
        assert!(outbox.is_full());
        assert!(outbox.pop().is_some() && !outbox.is_full());
    }
}
