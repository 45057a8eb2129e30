//! Locks that ignore poisoning. Input: a mutex, or the result of a lock or a wait. Output: the guard.
//!
//! A lock is poisoned if a thread panics while holding it. These functions must be used only for data that is
//! consistent whenever the lock is free, also after a panic.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Locks a mutex.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().ignore_poison()
}

/// For the other operations that report poisoning: `RwLock`, `Condvar`, `into_inner`.
pub trait IgnorePoison {
    /// The guard or the value.
    type Inner;

    fn ignore_poison(self) -> Self::Inner;
}

impl<T> IgnorePoison for LockResult<T> {
    type Inner = T;

    fn ignore_poison(self) -> T {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the process if its thread panics, after the message: without one of its main threads, a program would only
/// seem to run. Core ends in the same way at a failed assertion, such as that of `-checkaddrman`.
#[derive(Debug)]
pub struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        // An assertion that fails during a panic aborts.
        assert!(!std::thread::panicking(), "the program cannot run without this thread");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, RwLock};

    #[test]
    fn data_stays_accessible_after_a_panic() {
        let shared = Arc::new((Mutex::new(1), RwLock::new(2)));
        let other = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let _guards = (other.0.lock().unwrap(), other.1.write().unwrap());
            panic!("poisons both");
        });
        assert!(thread.join().is_err() && shared.0.is_poisoned() && shared.1.is_poisoned());
        *lock(&shared.0) += 1;
        assert_eq!((*lock(&shared.0), *shared.1.read().ignore_poison()), (2, 2));
    }
}
