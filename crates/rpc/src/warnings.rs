//! [`Warnings`]: the current warnings of the node: Core's `node::Warnings`.
//!
//! Input: conditions that start and end. Output: messages, as `getblockchaininfo` and others return them; whether one
//! is new, for `-alertnotify`. One value for the whole node.

use lydian_stdx::lock;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// Possible warnings, in the order of Core's answers: its `kernel::Warning`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Warning {
    UnknownNewRulesActivated,
    LargeWorkInvalidChain,
    /// One of Core's `node::Warning`.
    ClockOutOfSync,
    /// One of Lydian's: the code of Bitcoin Core rejects a block of the chain.
    SecondOpinion,
    /// One of Lydian's: a signature engine was wrong.
    SignatureEngine,
    /// One of Lydian's: a disk of the node has little free space.
    DiskNearlyFull,
    /// One of Lydian's: an index failed, or could not be opened.
    IndexFailed,
    /// One of Lydian's: the index is not written to its store.
    SharedIndex,
    /// One of Lydian's: blocks are not written to the store of the index any more.
    SharedBlocks,
}

/// The active warnings.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<BTreeMap<Warning, String>>);

impl Warnings {
    /// Sets a warning. Returns false if it was already set; then its message stays unchanged.
    pub fn set(&self, id: Warning, message: &str) -> bool {
        let mut warnings = self.lock();
        let is_new = !warnings.contains_key(&id);
        if is_new {
            warnings.insert(id, message.to_owned());
        }
        is_new
    }

    /// Sets a warning, or changes its message. Returns false if it has this message already.
    pub fn replace(&self, id: Warning, message: &str) -> bool {
        self.lock().insert(id, message.to_owned()).is_none_or(|old| old != message)
    }

    /// Clears a warning. Returns false if it was not set.
    pub fn unset(&self, id: Warning) -> bool {
        self.lock().remove(&id).is_some()
    }

    /// Whether a warning is set.
    pub fn has(&self, id: Warning) -> bool {
        self.lock().contains_key(&id)
    }

    /// Returns the messages.
    pub fn messages(&self) -> Vec<String> {
        self.lock().values().cloned().collect()
    }

    /// Returns the warnings with their messages.
    pub fn current(&self) -> Vec<(Warning, String)> {
        self.lock().iter().map(|(id, message)| (*id, message.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Warning, String>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in Core, a warning is new only once, whatever its later messages, and is new again after it was cleared.
    #[test]
    fn a_warning_begins_once() {
        let warnings = Warnings::default();
        assert!(warnings.set(Warning::LargeWorkInvalidChain, "second"));
        assert!(warnings.set(Warning::UnknownNewRulesActivated, "first"));
        assert!(!warnings.set(Warning::UnknownNewRulesActivated, "other words"));
        assert_eq!(warnings.messages(), ["first", "second"]);
        assert!(warnings.has(Warning::LargeWorkInvalidChain) && !warnings.has(Warning::ClockOutOfSync));
        assert!(
            warnings.unset(Warning::UnknownNewRulesActivated) && !warnings.unset(Warning::UnknownNewRulesActivated)
        );
        assert!(warnings.set(Warning::UnknownNewRulesActivated, "other words"));
        assert_eq!(warnings.messages(), ["other words", "second"]);
    }

    /// A warning whose message changes is new again, so that `-alertnotify` runs.
    #[test]
    fn a_message_is_replaced() {
        let warnings = Warnings::default();
        assert!(warnings.replace(Warning::IndexFailed, "one"));
        assert!(!warnings.replace(Warning::IndexFailed, "one"));
        assert!(warnings.replace(Warning::IndexFailed, "one and two"));
        assert_eq!(warnings.current(), [(Warning::IndexFailed, "one and two".to_owned())]);
    }
}
