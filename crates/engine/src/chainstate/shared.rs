//! [`EngineShared`]: the state with its locks, shared by callers and the review thread.
//!
//! Input: a change or a read, as a closure. Output: its result. Invariants: one change of the active chain at a time; a
//! block is stored once; after an error or a panic of a change, every further one fails.

use super::manager::ChainstateManager;
use super::turns::Turns;
use crate::error::EngineError;
use lydian_stdx::lock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// The state shared by callers and the review thread.
#[derive(Debug)]
pub(crate) struct EngineShared {
    pub(crate) chainstate: ChainstateManager,
    /// Held during any change of the active chain.
    writer: Mutex<()>,
    /// Held while a block is stored, so that none is stored twice.
    storing: Mutex<()>,
    /// The first error; all changes are refused after it.
    failed: Mutex<Option<String>>,
    /// The number of changes so far, for [`crate::Settings::check_tree_every`].
    changes: AtomicU32,
}

impl EngineShared {
    pub(crate) fn new(chainstate: ChainstateManager) -> EngineShared {
        EngineShared {
            chainstate,
            writer: Mutex::default(),
            storing: Mutex::default(),
            failed: Mutex::default(),
            changes: AtomicU32::new(0),
        }
    }

    /// Runs a change of the active chain. After an error or a panic every further change fails: the coins may contain
    /// half a block.
    pub(crate) fn write<T>(
        &self,
        change: impl FnOnce(&ChainstateManager) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let _writer = self.writer();
        self.change(change)
    }

    /// Like [`EngineShared::write`], but returns `None` at once if another change is in progress.
    pub(crate) fn try_write<T>(
        &self,
        change: impl FnOnce(&ChainstateManager) -> Result<T, EngineError>,
    ) -> Option<Result<T, EngineError>> {
        let _writer = self.try_writer()?;
        Some(self.change(change))
    }

    fn change<T>(&self, change: impl FnOnce(&ChainstateManager) -> Result<T, EngineError>) -> Result<T, EngineError> {
        self.attempt(|chainstate| {
            let result = change(chainstate)?;
            self.check_tree(chainstate)?;
            Ok(result)
        })
    }

    fn writer(&self) -> Writer<'_> {
        Writer { guard: Some(lock(&self.writer)), turns: &self.chainstate.turns }
    }

    fn try_writer(&self) -> Option<Writer<'_>> {
        let guard = match self.writer.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Writer { guard: Some(guard), turns: &self.chainstate.turns })
    }

    /// Core's `CheckBlockIndex`, once in the number of changes that the settings give.
    fn check_tree(&self, chainstate: &ChainstateManager) -> Result<(), EngineError> {
        let every = chainstate.settings.check_tree_every;
        if every == 0 || !self.changes.fetch_add(1, Ordering::Relaxed).is_multiple_of(every) {
            return Ok(());
        }
        chainstate.tree().check().map_err(EngineError::Tree)
    }

    /// Runs a change that stores blocks. It does not change the active chain, so that it can run during a validation,
    /// which finds the blocks in the tree.
    pub(crate) fn store<T>(
        &self,
        change: impl FnOnce(&ChainstateManager) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let _storing = lock(&self.storing);
        self.attempt(change)
    }

    /// Runs a change that stores blocks and needs an active chain that stays.
    pub(crate) fn write_and_store<T>(
        &self,
        change: impl FnOnce(&ChainstateManager) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let _storing = lock(&self.storing);
        self.write(change)
    }

    /// Runs `look` while nothing changes the active chain; `None` if something does at the moment.
    pub(crate) fn while_idle<T>(&self, look: impl FnOnce(&ChainstateManager) -> T) -> Option<T> {
        let _writer = self.try_writer()?;
        Some(look(&self.chainstate))
    }

    /// Refuses all changes from now on.
    pub(crate) fn fail(&self, error: &EngineError) {
        lock(&self.failed).get_or_insert(error.to_string());
    }

    /// Reads while the active chain stays.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&ChainstateManager) -> T) -> T {
        let _writer = self.writer();
        look(&self.chainstate)
    }

    fn attempt<T>(&self, change: impl FnOnce(&ChainstateManager) -> Result<T, EngineError>) -> Result<T, EngineError> {
        if let Some(reason) = lock(&self.failed).as_ref() {
            return Err(EngineError::Poisoned { reason: reason.clone() });
        }
        let mut attempt = Attempt { failed: &self.failed, reason: Some("a change of the chain panicked".to_owned()) };
        let result = change(&self.chainstate);
        attempt.reason = result.as_ref().err().map(EngineError::to_string);
        result
    }
}

/// The writer's lock. Who waits for the end of a turn is woken when it is free.
struct Writer<'a> {
    guard: Option<MutexGuard<'a, ()>>,
    turns: &'a Turns,
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        drop(self.guard.take());
        self.turns.released();
    }
}

/// A change in progress: however it ends, its error is recorded.
struct Attempt<'a> {
    failed: &'a Mutex<Option<String>>,
    reason: Option<String>,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(reason) = self.reason.take() {
            lock(self.failed).get_or_insert(reason);
        }
    }
}
