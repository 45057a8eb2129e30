//! [`lock`]: the way in which the engine locks a mutex.
//!
//! Input: a mutex, poisoned or not. Output: its guard. It must be used only for data that is consistent whenever the
//! mutex is free.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex and ignores poisoning: the data behind these locks is consistent whenever they are free, also after a
/// panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
