//! What happened to the chain and the mempool, and is not published yet.
//!
//! Input: [`Item`]s in their order, from the engine and the mempool; the reports of the engine that a block is settled.
//! Output: the items in the same order, for the thread of the publisher. A block is *released* when it is settled: the
//! engine's snapshots, and so RPC, then have it. What follows it in the queue waits for it.
//!
//! Invariants: no item is lost or overtakes another. The bytes of released items are bounded by [`QUEUE_BYTES_MAX`]
//! (one item is always accepted): [`Queue::push`] waits for room. Items that are not released are bounded by the
//! engine, which settles a block before its pipeline is full; to wait for them here would wait for ever.

use crate::limits::QUEUE_BYTES_MAX;
use bytes::Bytes;
use lydian_primitives::{BlockHash, Txid};
use lydian_stdx::{IgnorePoison, lock};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Condvar, Mutex};
use tokio::sync::Notify;

/// Something that is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Block(BlockItem),
    /// A transaction was accepted to the mempool.
    Added {
        txid: Txid,
        /// The serialised transaction; empty if no notifier wants it.
        bytes: Bytes,
        mempool_sequence: u64,
    },
    /// A transaction left the mempool for another reason than a block that contains it.
    Removed {
        txid: Txid,
        mempool_sequence: u64,
    },
}

/// A block that joined or left the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockItem {
    pub(crate) hash: BlockHash,
    pub(crate) is_connected: bool,
    /// Whether it is a new tip.
    pub(crate) is_tip: bool,
    /// The serialised block; empty if no notifier wants it.
    pub(crate) bytes: Bytes,
    /// Its transactions, each with its place in the block; empty if no notifier wants them.
    pub(crate) txs: Vec<(Txid, Range<usize>)>,
}

impl Item {
    /// Bytes in memory.
    fn cost(&self) -> usize {
        let content = match self {
            Item::Block(block) => block.bytes.len() + size_of_val(block.txs.as_slice()),
            Item::Added { bytes, .. } => bytes.len(),
            Item::Removed { .. } => 0,
        };
        size_of::<Entry>() + content
    }
}

#[derive(Debug)]
struct Entry {
    item: Item,
    cost: usize,
    /// The tip after a change of the chain, at which the item is released.
    tip: Option<BlockHash>,
}

/// The queue. For use from any thread.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    has_room: Condvar,
    has_items: Notify,
}

#[derive(Debug, Default)]
struct State {
    entries: VecDeque<Entry>,
    /// This many entries from the front are released.
    released: usize,
    released_bytes: usize,
    is_ended: bool,
    /// Whether a caller has waited since the queue was last empty.
    is_slow: bool,
}

impl State {
    /// Releases the first `count` entries, and those behind them that wait for no block.
    fn release(&mut self, count: usize) {
        let mut count = count.max(self.released);
        while self.entries.get(count).is_some_and(|entry| entry.tip.is_none()) {
            count += 1;
        }
        self.released_bytes += self.entries.range(self.released..count).map(|entry| entry.cost).sum::<usize>();
        self.released = count;
    }

    fn is_full(&self) -> bool {
        self.released_bytes > QUEUE_BYTES_MAX
    }
}

impl Queue {
    /// Queues an item, as soon as there is room. With `tip`, it is released when the engine settles this block. Returns
    /// true if the caller had to wait, and is the first since the queue was empty.
    pub(crate) fn push(&self, item: Item, tip: Option<BlockHash>) -> bool {
        let cost = item.cost();
        let mut state = lock(&self.state);
        let has_waited = state.is_full() && !state.is_ended;
        while state.is_full() && !state.is_ended {
            state = self.has_room.wait(state).ignore_poison();
        }
        if state.is_ended {
            return false;
        }
        state.entries.push_back(Entry { item, cost, tip });
        state.release(0);
        let is_first = has_waited && !state.is_slow;
        state.is_slow |= has_waited;
        drop(state);
        self.has_items.notify_one();
        is_first
    }

    /// The engine has settled a block: the changes that led to it are released.
    pub(crate) fn settled(&self, tip: BlockHash) {
        let mut state = lock(&self.state);
        let from = state.released;
        let found = state.entries.range(from..).position(|entry| entry.tip == Some(tip));
        if let Some(index) = found {
            state.release(from + index + 1);
            drop(state);
            self.has_items.notify_one();
        }
    }

    /// Waits for the next item that is released; `None` at the end, when all of them are taken.
    pub(crate) async fn next(&self) -> Option<Item> {
        loop {
            {
                let mut state = lock(&self.state);
                if state.released > 0
                    && let Some(entry) = state.entries.pop_front()
                {
                    state.released -= 1;
                    state.released_bytes -= entry.cost;
                    state.is_slow &= !state.entries.is_empty();
                    drop(state);
                    self.has_room.notify_all();
                    return Some(entry.item);
                }
                if state.is_ended {
                    return None;
                }
            }
            self.has_items.notified().await;
        }
    }

    /// Ends the queue: nothing is accepted any longer.
    pub(crate) fn end(&self) {
        lock(&self.state).is_ended = true;
        self.has_room.notify_all();
        self.has_items.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    fn hash(name: u8) -> BlockHash {
        BlockHash([name; 32])
    }

    fn block(name: u8, bytes: usize) -> Item {
        let bytes = vec![name; bytes].into();
        Item::Block(BlockItem { hash: hash(name), is_connected: true, is_tip: true, bytes, txs: Vec::new() })
    }

    fn removed(sequence: u64) -> Item {
        Item::Removed { txid: Txid([0; 32]), mempool_sequence: sequence }
    }

    fn ready(queue: &Queue) -> Vec<Item> {
        let mut found = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            while lock(&queue.state).released > 0 {
                found.extend(queue.next().await);
            }
        });
        found
    }

    #[test]
    fn a_block_waits_until_it_is_settled_and_so_does_what_follows() {
        let queue = Queue::default();
        queue.push(removed(1), None);
        queue.push(block(1, 1), Some(hash(1)));
        queue.push(removed(2), None);
        queue.push(block(2, 1), Some(hash(2)));
        assert_eq!(ready(&queue), [removed(1)]);
        queue.settled(hash(9));
        assert_eq!(ready(&queue), []);
        queue.settled(hash(1));
        assert_eq!(ready(&queue), [block(1, 1), removed(2)]);
        queue.push(removed(3), None);
        assert_eq!(ready(&queue), []);
        queue.settled(hash(2));
        assert_eq!(ready(&queue), [block(2, 1), removed(3)]);
    }

    /// The engine reports the last of several changes only.
    #[test]
    fn a_settled_block_releases_all_before_it() {
        let queue = Queue::default();
        for name in 1..=3 {
            queue.push(block(name, 1), Some(hash(name)));
        }
        queue.settled(hash(2));
        assert_eq!(ready(&queue).len(), 2);
        queue.end();
        assert_eq!(ready(&queue).len(), 0, "what is not settled is not published at the end");
    }

    /// limit: QUEUE_BYTES_MAX at
    /// limit: QUEUE_BYTES_MAX above
    #[test]
    fn a_full_queue_makes_its_callers_wait_and_loses_nothing() {
        let queue = Arc::new(Queue::default());
        let overhead = block(1, 0).cost();
        queue.push(block(1, QUEUE_BYTES_MAX - overhead), Some(hash(1)));
        queue.settled(hash(1));
        assert!(!lock(&queue.state).is_full(), "exactly the limit");
        assert!(!queue.push(removed(1), None), "one more is accepted");
        assert!(lock(&queue.state).is_full());
        let (other, (sender, receiver)) = (Arc::clone(&queue), std::sync::mpsc::sync_channel(1));
        let pushing = thread::spawn(move || {
            let has_waited = other.push(removed(2), None);
            sender.send(has_waited).unwrap();
        });
        assert!(receiver.recv_timeout(std::time::Duration::from_millis(50)).is_err(), "it waits");
        assert_eq!(ready(&queue)[..2], [block(1, QUEUE_BYTES_MAX - overhead), removed(1)]);
        assert!(receiver.recv().unwrap(), "it has waited");
        pushing.join().unwrap();
        assert!(ready(&queue).len() <= 1);
    }

    /// A block that is not settled must never stop the engine from settling it.
    #[test]
    fn what_is_not_released_makes_no_caller_wait() {
        let queue = Queue::default();
        for name in 1..4 {
            queue.push(block(name, QUEUE_BYTES_MAX), Some(hash(name)));
        }
        assert_eq!(lock(&queue.state).entries.len(), 3);
    }

    #[test]
    fn at_the_end_no_caller_waits() {
        let queue = Arc::new(Queue::default());
        queue.push(block(1, 2 * QUEUE_BYTES_MAX), None);
        let other = Arc::clone(&queue);
        let pushing = thread::spawn(move || other.push(removed(1), None));
        queue.end();
        assert!(!pushing.join().unwrap());
        assert_eq!(ready(&queue).len(), 1, "what was released before is still published");
    }
}
