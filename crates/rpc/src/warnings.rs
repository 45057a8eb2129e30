//! [`Warnings`]: what the node warns of as long as it lasts: Core's `node::Warnings`. Input: conditions that begin and
//! end. Output: sentences, as `getblockchaininfo` and others return them; whether one is new, for `-alertnotify`. One
//! value for the whole node.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What may be warned of, in the order of Core's answers: its `kernel::Warning`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Warning {
    UnknownNewRulesActivated,
    LargeWorkInvalidChain,
    /// Of the node: Core's `node::Warning`.
    ClockOutOfSync,
}

/// The warnings that hold now.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<BTreeMap<Warning, String>>);

impl Warnings {
    /// Begins a warning; false if it had begun before, and then its words stay.
    pub fn set(&self, id: Warning, message: &str) -> bool {
        let mut warnings = self.lock();
        let is_new = !warnings.contains_key(&id);
        if is_new {
            warnings.insert(id, message.to_owned());
        }
        is_new
    }

    /// Ends a warning; false if there was none.
    pub fn unset(&self, id: Warning) -> bool {
        self.lock().remove(&id).is_some()
    }

    /// The sentences.
    pub fn messages(&self) -> Vec<String> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Warning, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in Core, a warning begins once, whatever words come later, and is new again after it ended.
    #[test]
    fn a_warning_begins_once() {
        let warnings = Warnings::default();
        assert!(warnings.set(Warning::LargeWorkInvalidChain, "second"));
        assert!(warnings.set(Warning::UnknownNewRulesActivated, "first"));
        assert!(!warnings.set(Warning::UnknownNewRulesActivated, "other words"));
        assert_eq!(warnings.messages(), ["first", "second"]);
        assert!(
            warnings.unset(Warning::UnknownNewRulesActivated) && !warnings.unset(Warning::UnknownNewRulesActivated)
        );
        assert!(warnings.set(Warning::UnknownNewRulesActivated, "other words"));
        assert_eq!(warnings.messages(), ["other words", "second"]);
    }
}
