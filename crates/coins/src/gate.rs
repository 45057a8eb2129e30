//! [`Gate`]: a lock that one holder takes again and again without starving the others.
//!
//! Input: a value. Output: a guard. A checkpoint takes the lock of a partition for each shard and releases it in
//! between. The operating system's lock is not fair: the checkpoint would usually get it again before a thread that
//! waits is awake. So callers are counted when they arrive and when they are served, and
//! [`Gate::lock_after_others`] waits for those that have arrived. Invariant: a caller of [`Gate::lock`] waits for at
//! most one such holder. Cost: two counters.

use lydian_stdx::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

#[derive(Debug, Default)]
pub(crate) struct Gate<T> {
    arrived: AtomicU64,
    served: AtomicU64,
    value: Mutex<T>,
}

impl<T> Gate<T> {
    pub(crate) fn new(value: T) -> Gate<T> {
        Gate { arrived: AtomicU64::new(0), served: AtomicU64::new(0), value: Mutex::new(value) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        let guard = lock(&self.value);
        self.served.fetch_add(1, Ordering::SeqCst);
        guard
    }

    /// Takes the lock after all callers that are waiting now. For one thread that takes it again and again.
    pub(crate) fn lock_after_others(&self) -> MutexGuard<'_, T> {
        let arrived = self.arrived.load(Ordering::SeqCst);
        while self.served.load(Ordering::SeqCst) < arrived {
            std::thread::yield_now();
        }
        lock(&self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_that_wait_come_before_the_next_turn() {
        for callers in [1, 2, 5] {
            let gate = Gate::new(0);
            std::thread::scope(|scope| {
                for turn in 1..100 {
                    let guard = gate.lock_after_others();
                    (0..callers).for_each(|_| drop(scope.spawn(|| *gate.lock() += 1)));
                    while gate.arrived.load(Ordering::SeqCst) < turn * callers {
                        std::thread::yield_now();
                    }
                    drop(guard);
                    assert_eq!(*gate.lock_after_others(), turn * callers);
                }
            });
        }
    }
}
