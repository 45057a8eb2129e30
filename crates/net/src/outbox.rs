//! The send queue of one peer.
//!
//! Input: messages of the manager, stored blocks. Output: items for the connection's task, in order. The queued bytes
//! are counted, so that the connection can stop reading from the peer until there are fewer; the memory they take is
//! charged to the peer's account. Blocks are read when they are next, not before.

use lydian_p2p::PeerMemory;
use lydian_p2p::memory::Charge;
use lydian_p2p::outgoing::Outgoing;
use lydian_primitives::BlockHash;
use lydian_stdx::lock;
use lydian_wire::Message;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// The send queue.
#[derive(Debug)]
pub(crate) struct Outbox {
    bytes_max: usize,
    queue: Mutex<Queue>,
    /// Notified when an item is added.
    pub(crate) changed: Notify,
}

#[derive(Debug)]
struct Queue {
    items: VecDeque<Item>,
    bytes: usize,
    is_ending: bool,
    /// The queue's share of the memory for peers.
    charge: Charge,
    memory_bytes: usize,
}

/// An item, or a run of blocks. A peer may request fifty thousand blocks in one message; the run should not take more
/// memory than the message.
#[derive(Debug)]
enum Item {
    One(Box<Outgoing>),
    /// `nonce` is for the compact blocks of the run, if it has any.
    Blocks {
        nonce: Option<u64>,
        blocks: VecDeque<Wanted>,
    },
}

/// A requested block and its form.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    hash: BlockHash,
    form: Form,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Whole,
    Stripped,
    Compact,
}

/// Bytes that a queued item counts in addition to its contents: most items are small, and a block is only read when it
/// is next.
const ITEM_BYTES: usize = 1_000;

/// Memory that an item takes in addition to what it refers to.
const ITEM_MEMORY_BYTES: usize = size_of::<Item>() + size_of::<Outgoing>();

impl Outbox {
    /// An empty queue, which is full above `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize, memory: &PeerMemory) -> Outbox {
        let (items, charge) = (VecDeque::new(), memory.charge_to_send(0));
        let queue = Queue { items, bytes: 0, is_ending: false, charge, memory_bytes: 0 };
        Outbox { bytes_max, queue: Mutex::new(queue), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    pub(crate) fn push(&self, item: Outgoing) {
        {
            let mut queue = self.lock();
            queue.bytes += weight(&item);
            queue.is_ending |= matches!(item, Outgoing::End { .. });
            queue.push(item);
            queue.settle();
        }
        self.changed.notify_one();
    }

    pub(crate) fn pop(&self) -> Option<Outgoing> {
        let mut queue = self.lock();
        let item = queue.pop()?;
        queue.bytes -= weight(&item);
        queue.settle();
        Some(item)
    }

    /// Returns the next item's block, if the next item needs a block.
    pub(crate) fn next_block(&self) -> Option<BlockHash> {
        match self.lock().items.front()? {
            Item::Blocks { blocks, .. } => blocks.front().map(|wanted| wanted.hash),
            Item::One(item) => item.block(),
        }
    }

    /// Returns whether the connection is to end after the queued items.
    pub(crate) fn is_ending(&self) -> bool {
        self.lock().is_ending
    }

    /// Returns the reason of the end and drops all queued items.
    pub(crate) fn take_end(&self) -> Option<String> {
        let mut queue = self.lock();
        let items = std::mem::take(&mut queue.items);
        (queue.bytes, queue.memory_bytes) = (0, 0);
        queue.settle();
        items.into_iter().find_map(|item| match item {
            Item::One(item) => match *item {
                Outgoing::End { reason } => Some(reason),
                _ => None,
            },
            Item::Blocks { .. } => None,
        })
    }

    /// Memory that the queue takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.lock().memory_bytes
    }

    /// Returns whether so much is queued that nothing more should be read.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().bytes > self.bytes_max
    }
}

impl Queue {
    fn push(&mut self, item: Outgoing) {
        let (wanted, own_nonce) = match item {
            Outgoing::Block { hash, with_witness: true } => (Wanted { hash, form: Form::Whole }, None),
            Outgoing::Block { hash, with_witness: false } => (Wanted { hash, form: Form::Stripped }, None),
            Outgoing::Compact { hash, nonce } => (Wanted { hash, form: Form::Compact }, Some(nonce)),
            item => {
                self.memory_bytes += ITEM_MEMORY_BYTES + weight(&item) - ITEM_BYTES;
                return self.items.push_back(Item::One(Box::new(item)));
            }
        };
        self.memory_bytes += size_of::<Wanted>();
        match self.items.back_mut() {
            Some(Item::Blocks { nonce, blocks }) => {
                *nonce = nonce.or(own_nonce);
                blocks.push_back(wanted);
            }
            _ => {
                self.memory_bytes += ITEM_MEMORY_BYTES;
                self.items.push_back(Item::Blocks { nonce: own_nonce, blocks: [wanted].into() });
            }
        }
    }

    fn pop(&mut self) -> Option<Outgoing> {
        let Some(Item::Blocks { nonce, blocks }) = self.items.front_mut() else {
            let Some(Item::One(item)) = self.items.pop_front() else { return None };
            self.memory_bytes -= ITEM_MEMORY_BYTES + weight(&item) - ITEM_BYTES;
            return Some(*item);
        };
        let nonce = *nonce;
        let wanted = blocks.pop_front();
        if blocks.is_empty() {
            self.items.pop_front();
            self.memory_bytes -= ITEM_MEMORY_BYTES;
        }
        let Wanted { hash, form } = wanted?;
        self.memory_bytes -= size_of::<Wanted>();
        Some(match form {
            Form::Whole => Outgoing::Block { hash, with_witness: true },
            Form::Stripped => Outgoing::Block { hash, with_witness: false },
            Form::Compact => Outgoing::Compact { hash, nonce: nonce.unwrap_or_default() },
        })
    }

    fn settle(&mut self) {
        self.charge.set(self.memory_bytes);
        if self.items.is_empty() && self.items.capacity() > 64 {
            self.items = VecDeque::new();
        }
    }
}

/// Approximate bytes of an item while it waits. Always the same for an item.
fn weight(item: &Outgoing) -> usize {
    let bytes = match item {
        Outgoing::Message(Message::Headers(headers)) => headers.len() * 81,
        Outgoing::Message(Message::Inv(items) | Message::NotFound(items) | Message::GetData(items)) => items.len() * 36,
        Outgoing::Message(Message::Addr(addresses) | Message::AddrV2(addresses)) => addresses.len() * 30,
        Outgoing::Message(Message::CmpctBlock(compact)) => {
            compact.short_ids.len() * 8 + compact.prefilled.iter().map(|prefilled| prefilled.tx.len()).sum::<usize>()
        }
        Outgoing::Message(Message::Tx(bytes)) => bytes.len(),
        Outgoing::Message(Message::BlockTxn(answer)) => answer.txs.iter().map(Vec::len).sum(),
        Outgoing::Transactions(request) => request.indexes.len() * size_of::<u16>(),
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
        let outbox = Outbox::new(SEND_BUFFER_BYTES, &PeerMemory::default());
        (0..SEND_BUFFER_BYTES / ITEM_BYTES).for_each(|_| outbox.push(Outgoing::Message(Message::Verack)));
        assert!(!outbox.is_full());
        outbox.push(Outgoing::Message(Message::Verack));
        assert!(outbox.is_full());
        assert!(outbox.pop().is_some() && !outbox.is_full());
        // One message of a megabyte fills it.
        while outbox.pop().is_some() {}
        let txs = vec![vec![0; SEND_BUFFER_BYTES]];
        let answer = BlockTransactions { block_hash: BlockHash([0; 32]), txs };
        outbox.push(Outgoing::Message(Message::BlockTxn(answer)));
        assert!(outbox.is_full());
        assert!(outbox.pop().is_some() && !outbox.is_full());
    }

    /// The largest `getdata` requests fifty thousand blocks in 1.8 MB. Each block used to be a separate item in the
    /// queue, which took ten times that for each of a hundred peers. Now they take as much as the message, and keep
    /// their order.
    #[test]
    fn fifty_thousand_blocks_take_no_more_than_their_question() {
        let memory = PeerMemory::default();
        let outbox = Outbox::new(SEND_BUFFER_BYTES, &memory);
        let hash = |number: u32| BlockHash(std::array::from_fn(|at| number.to_le_bytes()[at % 4]));
        outbox.push(Outgoing::Message(Message::Verack));
        for number in 0..50_000 {
            outbox.push(match number % 3 {
                0 => Outgoing::Block { hash: hash(number), with_witness: true },
                1 => Outgoing::Block { hash: hash(number), with_witness: false },
                _ => Outgoing::Compact { hash: hash(number), nonce: 7 },
            });
        }
        outbox.push(Outgoing::Message(Message::Verack));
        assert!(memory.used() > 1_600_000 && memory.used() < 50_000 * 36, "{}", memory.used());
        assert!(outbox.is_full() && outbox.next_block().is_none());
        assert!(matches!(outbox.pop(), Some(Outgoing::Message(Message::Verack))));
        for number in 0..50_000 {
            assert_eq!(outbox.next_block(), Some(hash(number)));
            let is_same = match (number % 3, outbox.pop().unwrap()) {
                (0, Outgoing::Block { hash: found, with_witness: true })
                | (1, Outgoing::Block { hash: found, with_witness: false })
                | (2, Outgoing::Compact { hash: found, nonce: 7 }) => found == hash(number),
                _ => false,
            };
            assert!(is_same, "{number}");
        }
        assert!(matches!(outbox.pop(), Some(Outgoing::Message(Message::Verack))));
        assert!(outbox.pop().is_none() && memory.used() == 0 && !outbox.is_full());
        outbox.push(Outgoing::Block { hash: hash(1), with_witness: true });
        outbox.push(Outgoing::End { reason: "enough".to_owned() });
        assert!(outbox.is_ending());
        assert_eq!(outbox.take_end().as_deref(), Some("enough"));
        assert_eq!(memory.used(), 0);
    }
}
