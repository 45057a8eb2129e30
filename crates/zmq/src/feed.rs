//! The way in: what happens to the chain and the mempool becomes items of the queue.
//!
//! Input: events and blocks of the engine, transactions of the mempool. Output: items in the order of the calls. Cost:
//! a copy of what the notifiers need; a call waits if the queue is full.

use crate::follower::ZmqFollower;
use crate::queue::Item;
use crate::shared::Shared;
use crate::topic::Topic;
use bytes::Bytes;
use lydian_engine::{Event, Follower};
use lydian_primitives::{Tx, Txid};
use lydian_stdx::lock;
use std::sync::Arc;

/// Takes what happens in the engine and the mempool. Copies feed the same publisher.
#[derive(Clone, Debug)]
pub struct Feed(pub(crate) Arc<Shared>);

impl Feed {
    /// The follower of the chain. There must be one only.
    pub fn follower(&self) -> Box<dyn Follower> {
        Box::new(ZmqFollower::new(Arc::clone(&self.0)))
    }

    /// Takes an event of the engine. Every event must be passed on: a block is published when it is settled.
    pub fn event(&self, event: &Event<'_>) {
        match event {
            Event::Settled { tip, .. } => self.0.queue.settled(tip.hash),
            Event::Reorganisation { disconnected, target, .. } => {
                lock(&self.0.tip_rule).reorganises(*disconnected, *target);
            }
            _ => {}
        }
    }

    /// A transaction was accepted to the mempool. To be called in the order of the mempool's changes, and after the
    /// blocks that were connected before; waits if much is queued.
    pub fn transaction_added(&self, tx: Tx<'_>, mempool_sequence: u64) {
        if !self.0.topics.iter().any(|topic| matches!(topic, Topic::HashTx | Topic::RawTx | Topic::Sequence)) {
            return;
        }
        let bytes = if self.0.has(Topic::RawTx) { Bytes::copy_from_slice(tx.bytes()) } else { Bytes::new() };
        self.0.push(Item::Added { txid: tx.txid(), bytes, mempool_sequence }, None);
    }

    /// A transaction left the mempool for any reason but a block that contains it. As [`Feed::transaction_added`].
    pub fn transaction_removed(&self, txid: Txid, mempool_sequence: u64) {
        if self.0.has(Topic::Sequence) {
            self.0.push(Item::Removed { txid, mempool_sequence }, None);
        }
    }
}
