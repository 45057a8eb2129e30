//! [`Whitelist`]: the methods that each user may call, as Core's httprpc.cpp reads them.
//!
//! Input: the values of `-rpcwhitelist` and `-rpcwhitelistdefault`. Output: whether a user may call a method.

use std::collections::{BTreeMap, BTreeSet};

/// The methods that users may call: `-rpcwhitelist` and `-rpcwhitelistdefault`.
#[derive(Clone, Debug, Default)]
pub struct Whitelist {
    by_user: BTreeMap<String, BTreeSet<String>>,
    /// A user without a list may call nothing.
    is_default: bool,
}

impl Whitelist {
    /// `lists` are strings `USER:METHOD,METHOD`. Several lists for one user are intersected.
    pub fn new(lists: &[String], default: Option<bool>) -> Whitelist {
        let mut by_user: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for list in lists {
            let (user, methods) = match list.split_once(':') {
                Some((user, methods)) => (user, Some(methods)),
                None => (&list[..], None),
            };
            let Some(methods) = methods else {
                by_user.entry(user.to_owned()).or_default();
                continue;
            };
            let methods: BTreeSet<String> = methods.split([',', ' ']).map(str::to_owned).collect();
            match by_user.get_mut(user) {
                Some(known) => known.retain(|method| methods.contains(method)),
                None => {
                    by_user.insert(user.to_owned(), methods);
                }
            }
        }
        Whitelist { by_user, is_default: default.unwrap_or(!lists.is_empty()) }
    }

    /// Returns whether the user has a list.
    pub fn has(&self, user: &str) -> bool {
        self.by_user.contains_key(user)
    }

    /// Returns whether the user may call no method at all.
    pub fn is_shut_out(&self, user: &str) -> bool {
        self.is_default && !self.has(user)
    }

    pub fn allows(&self, user: &str, method: &str) -> bool {
        self.by_user.get(user).is_none_or(|methods| methods.contains(method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitelists_as_core_reads_them() {
        let list = |lists: &[&str], default| {
            Whitelist::new(&lists.iter().map(|list| (*list).to_owned()).collect::<Vec<_>>(), default)
        };
        let none = list(&[], None);
        assert!(none.allows("a", "x") && !none.is_shut_out("a"));
        assert!(list(&[], Some(true)).is_shut_out("a"));
        let some = list(&["a:x,y", "b:x, z", "c", "a:y,z"], None);
        assert!(some.is_shut_out("d") && !some.is_shut_out("c"));
        assert!(!some.allows("a", "x") && some.allows("a", "y") && !some.allows("a", "z"));
        assert!(some.allows("b", "z") && !some.allows("c", "x"));
        assert!(!list(&["a:x"], Some(false)).is_shut_out("d"));
    }
}
