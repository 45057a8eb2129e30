//! Passes the changes of the mempool on to the notifications over ZeroMQ, in their order among the blocks.
//!
//! Input: the mempool's feed, the blocks of the engine. Output: calls of `lydian_zmq::Feed`. As in Core, what leaves
//! the mempool because a block conflicts with it is published before the block, and what enters it after the block
//! follows the block. So one follower of the engine gives each block to the mempool, then passes on the changes, then
//! gives the block to the notifications; between blocks, a thread passes the changes on. Unlike in Core, this includes
//! the transactions that return after a reorganisation: they follow the new blocks, which Core publishes after them.
//!
//! Invariants: no change overtakes another; the mempool never waits for the notifications. If they are so slow that
//! changes are no longer kept, the gap is logged, and subscribers see it by the missing sequence numbers.

use crate::log::Log;
use lydian_engine::{ConnectedBlock, Follower, FollowerError, Left, Rows, Tip};
use lydian_mempool::Mempool;
use lydian_mempool::pool::{Change, ChangeKind, RemovalReason};
use lydian_stdx::lock;
use lydian_zmq::Feed;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Changes that are taken at once.
const CHANGES: usize = 256;

/// How long to wait for a change before looking whether the node ends.
const WAIT: Duration = Duration::from_millis(100);

/// The changes that are not passed on yet.
#[derive(Debug)]
struct Changes {
    mempool: Arc<Mempool>,
    feed: Feed,
    log: Arc<Log>,
    /// The number of the next change to be passed on.
    next: Mutex<u64>,
}

impl Changes {
    /// Passes on everything that has happened so far.
    fn pass_on(&self) {
        let mut next = lock(&self.next);
        loop {
            match self.mempool.feed().read(*next, CHANGES) {
                Ok(changes) if changes.is_empty() => return,
                Ok(changes) => {
                    *next += changes.len() as u64;
                    changes.iter().for_each(|change| self.publish(change));
                }
                Err(_) => {
                    let from = *next;
                    *next = self.mempool.feed().next();
                    self.log.warning(format!(
                        "ZMQ: mempool changes {from} to {} were not published: notifications could not keep up",
                        next.saturating_sub(1)
                    ));
                }
            }
        }
    }

    fn publish(&self, change: &Change) {
        let tx = change.entry.tx().view();
        match change.kind {
            ChangeKind::Added { .. } => self.feed.transaction_added(tx, change.sequence),
            ChangeKind::Removed { reason: RemovalReason::Block } => {}
            ChangeKind::Removed { .. } => self.feed.transaction_removed(tx.txid(), change.sequence),
        }
    }
}

/// The follower of the chain for the mempool and, if there is a `feed`, for the notifications; and the thread that
/// passes on the changes between blocks.
pub(super) fn follow(
    mempool: &Arc<Mempool>,
    feed: Option<&Feed>,
    log: &Arc<Log>,
) -> io::Result<(Box<dyn Follower>, Option<PassingOn>)> {
    let Some(feed) = feed else { return Ok((mempool.follower(), None)) };
    let next = Mutex::new(mempool.feed().next());
    let changes = Arc::new(Changes { mempool: Arc::clone(mempool), feed: feed.clone(), log: Arc::clone(log), next });
    let is_ended = Arc::new(AtomicBool::new(false));
    let (passed, is_over) = (Arc::clone(&changes), Arc::clone(&is_ended));
    let pass_on = move || {
        while !is_over.load(Ordering::Relaxed) {
            let next = *lock(&passed.next);
            passed.mempool.feed().wait(next, WAIT);
            passed.pass_on();
        }
    };
    let thread = Builder::new().name("zmqmempool".to_owned()).spawn(pass_on)?;
    let follower = InOrder { mempool: mempool.follower(), changes, notifications: feed.follower() };
    Ok((Box::new(follower), Some(PassingOn { is_ended, thread: Some(thread) })))
}

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct PassingOn {
    is_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for PassingOn {
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic was printed by then.
            let _ = thread.join();
        }
    }
}

/// Gives each block to the mempool, then to the notifications.
#[derive(Debug)]
struct InOrder {
    mempool: Box<dyn Follower>,
    changes: Arc<Changes>,
    notifications: Box<dyn Follower>,
}

impl Follower for InOrder {
    fn name(&self) -> &str {
        "mempool and ZMQ"
    }

    fn has_files(&self) -> bool {
        false
    }

    fn durable_tip(&self) -> Option<Tip> {
        None
    }

    fn connect(&mut self, block: &ConnectedBlock<'_>, _: Option<Rows>) -> Result<(), FollowerError> {
        self.mempool.connect(block, None)?;
        self.changes.pass_on();
        self.notifications.connect(block, None)
    }

    fn disconnect(&mut self, block: &ConnectedBlock<'_>) -> Result<Left, FollowerError> {
        let left = self.mempool.disconnect(block)?;
        self.changes.pass_on();
        self.notifications.disconnect(block)?;
        Ok(left)
    }

    fn checkpoint(&mut self, tip: Tip) -> Result<(), FollowerError> {
        self.mempool.checkpoint(tip)?;
        self.notifications.checkpoint(tip)
    }

    fn clear(&mut self) -> Result<(), FollowerError> {
        self.mempool.clear()?;
        self.notifications.clear()
    }
}
