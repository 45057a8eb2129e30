//! [`Budget`]: a number of bytes that several threads share.
//!
//! Input: the number of bytes that a thread needs. Output: [`Room`] for them until it is dropped. A thread waits until
//! others return room, for at most [`WAIT_MAX`]; meanwhile the server is asked to free some. Amounts up to
//! [`FREE_BYTES`] are not counted. An amount above the whole budget gets the whole budget. Threads that serve sockets
//! must never wait for it.

use lydian_stdx::lock;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// Amounts up to this are not counted: the number of connections and threads limits their sum.
pub const FREE_BYTES: usize = 16 << 10;

/// Maximum time that a thread waits for room.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Interval at which it asks again for bytes to be freed.
const WAIT_STEP: Duration = Duration::from_millis(100);

/// Frees this number of bytes if possible, given how long a thread has waited for them.
type Relief = Box<dyn Fn(usize, Duration) + Send + Sync>;

/// The shared bytes.
pub struct Budget {
    size: usize,
    free: Mutex<usize>,
    freed: Condvar,
    relief: OnceLock<Relief>,
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("size", &self.size).field("free", &*self.lock()).finish_non_exhaustive()
    }
}

impl Budget {
    pub fn new(size: usize) -> Arc<Budget> {
        Arc::new(Budget { size, free: Mutex::new(size), freed: Condvar::new(), relief: OnceLock::new() })
    }

    /// Sets the function that frees bytes while a thread waits for them. Only the first call has an effect.
    pub fn set_relief(&self, relief: impl Fn(usize, Duration) + Send + Sync + 'static) {
        let _ = self.relief.set(Box::new(relief));
    }

    /// An empty room.
    pub fn room(self: &Arc<Budget>) -> Room {
        Room { budget: Arc::clone(self), counted: 0 }
    }

    /// Room for bytes, once others have returned theirs if need be. `None` if that takes too long.
    pub fn room_for(self: &Arc<Budget>, bytes: usize) -> Option<Room> {
        let mut room = self.room();
        room.grow(bytes).then_some(room)
    }

    /// Counted bytes that are free.
    #[cfg(test)]
    fn free(&self) -> usize {
        *self.lock()
    }

    fn counted(&self, bytes: usize) -> usize {
        if bytes <= FREE_BYTES { 0 } else { bytes.min(self.size) }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        lock(&self.free)
    }
}

/// Bytes of a budget, returned when dropped.
pub struct Room {
    budget: Arc<Budget>,
    counted: usize,
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").field("counted", &self.counted).finish_non_exhaustive()
    }
}

impl Room {
    /// Grows to `bytes` if they are free now. Never shrinks.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        let wanted = self.budget.counted(bytes).saturating_sub(self.counted);
        let mut free = self.budget.lock();
        let is_there = *free >= wanted;
        if is_there {
            *free -= wanted;
            self.counted += wanted;
        }
        is_there
    }

    /// Grows to `bytes`, waiting until they are free. Returns false if that takes too long. Never shrinks.
    #[allow(clippy::disallowed_methods, reason = "how long a thread waits for other threads; no answer depends on it")]
    pub fn grow(&mut self, bytes: usize) -> bool {
        let began = Instant::now();
        loop {
            if self.try_grow(bytes) {
                return true;
            }
            let waited = began.elapsed();
            if waited >= WAIT_MAX {
                return false;
            }
            if let Some(relief) = self.budget.relief.get() {
                relief(self.budget.counted(bytes).saturating_sub(self.counted), waited);
            }
            let wanted = self.budget.counted(bytes).saturating_sub(self.counted);
            let free = self.budget.lock();
            if *free < wanted {
                // The condition is checked again in either case.
                let _ = self.budget.freed.wait_timeout(free, WAIT_STEP);
            }
        }
    }

    /// Returns everything above `bytes` to the budget.
    pub fn shrink(&mut self, bytes: usize) {
        let left = self.budget.counted(bytes).min(self.counted);
        let given_back = self.counted - left;
        if given_back > 0 {
            self.counted = left;
            *self.budget.lock() += given_back;
            self.budget.freed.notify_all();
        }
    }

    /// Moves some of it, as far as there is, into a new room.
    pub fn split(&mut self, bytes: usize) -> Room {
        let counted = bytes.min(self.counted);
        self.counted -= counted;
        Room { budget: Arc::clone(&self.budget), counted }
    }

    /// Moves all of it into a new room; this one is empty afterwards.
    pub fn take(&mut self) -> Room {
        Room { budget: Arc::clone(&self.budget), counted: std::mem::take(&mut self.counted) }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const MB: usize = 1 << 20;

    #[test]
    fn bytes_come_back() {
        let budget = Budget::new(4 * MB);
        let mut room = budget.room();
        assert!(room.grow(FREE_BYTES) && budget.free() == 4 * MB, "small amounts are not counted");
        assert!(room.grow(3 * MB) && budget.free() == MB);
        assert!(!budget.room().try_grow(2 * MB) && budget.free() == MB);
        room.shrink(MB);
        assert_eq!(budget.free(), 3 * MB);
        let mut two = budget.room();
        assert!(two.grow(2 * MB) && budget.free() == MB);
        drop((two.split(MB), two.split(2 * MB), two.split(1)));
        assert!(two.counted == 0 && budget.free() == 3 * MB, "each part comes back once");
        let whole = room.take();
        drop(room);
        assert_eq!(budget.free(), 3 * MB);
        drop(whole);
        assert_eq!(budget.free(), 4 * MB);
        let mut all = budget.room();
        assert!(all.grow(100 * MB) && budget.free() == 0, "more than the budget gets all of it");
    }

    /// A waiting thread continues as soon as another one returns its bytes, and the server is asked to free some.
    #[test]
    fn a_thread_waits_for_bytes() {
        let budget = Budget::new(4 * MB);
        let mut room = budget.room();
        assert!(room.grow(3 * MB));
        let held = Arc::new(Mutex::new(Some(room)));
        let freed = Arc::clone(&held);
        budget.set_relief(move |bytes, _| {
            assert_eq!(bytes, 2 * MB);
            drop(freed.lock().unwrap().take());
        });
        let waiting = Arc::clone(&budget);
        let grown = thread::spawn(move || waiting.room().grow(2 * MB)).join().unwrap();
        assert!(grown && held.lock().unwrap().is_none());
    }
}
