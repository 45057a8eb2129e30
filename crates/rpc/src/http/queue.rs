//! [`Queue`]: the threads that answer calls, and the calls that wait for one (Core's work queue).
//!
//! Input: calls. Output: a place in the queue, or a refusal; later a thread. Invariants: at most `-rpcworkqueue` calls
//! wait; `stop` has a thread of its own, so that it is answered when all others are busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The threads that answer a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadPool {
    Threads,
    Stop,
}

#[derive(Debug)]
pub(super) struct Queue {
    threads: Arc<Semaphore>,
    stop_thread: Arc<Semaphore>,
    /// The number of calls that wait for a thread, and its maximum.
    waiting: AtomicUsize,
    depth: usize,
}

/// A call in the queue, until this is dropped.
#[derive(Debug)]
pub(super) struct Queued(Arc<Queue>);

impl Queue {
    pub(super) fn new(threads: usize, depth: usize) -> Queue {
        Queue {
            threads: Arc::new(Semaphore::new(threads)),
            stop_thread: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
            depth,
        }
    }

    /// Returns whether no call can take a place now.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) >= self.depth
    }

    /// Takes a place in the queue. Returns `None` if it is full.
    pub(super) fn enter(self: &Arc<Queue>) -> Option<Queued> {
        let count = self.waiting.fetch_add(1, Ordering::SeqCst);
        let queued = Queued(Arc::clone(self));
        (count < self.depth).then_some(queued)
    }

    /// Waits for a thread.
    pub(super) async fn thread(&self, pool: ThreadPool) -> Option<OwnedSemaphorePermit> {
        let threads = if pool == ThreadPool::Stop { &self.stop_thread } else { &self.threads };
        Arc::clone(threads).acquire_owned().await.ok()
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
