//! The table of methods. Dispatch, `help` and `docs/rpc.md` walk it. A method is added to the list of its module.

use crate::method::Method;
use crate::methods;
use std::collections::HashMap;
use std::sync::OnceLock;

/// All methods, by module.
pub const METHODS: &[&[Method]] = &[
    methods::blockchain::METHODS,
    methods::block::METHODS,
    methods::waiting::METHODS,
    methods::mempool::METHODS,
    methods::submit::METHODS,
    methods::mining::METHODS,
    methods::net::METHODS,
    methods::net_addresses::METHODS,
    methods::net_bans::METHODS,
    methods::net_peers::METHODS,
    methods::address::METHODS,
    methods::descriptor::METHODS,
    methods::scan::METHODS,
    methods::control::METHODS,
];

/// The method of a name.
pub fn find(name: &str) -> Option<&'static Method> {
    static BY_NAME: OnceLock<HashMap<&'static str, &'static Method>> = OnceLock::new();
    let by_name =
        BY_NAME.get_or_init(|| METHODS.iter().copied().flatten().map(|method| (method.name, method)).collect());
    by_name.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_stands_once() {
        let mut names: Vec<&str> = METHODS.iter().copied().flatten().map(|method| method.name).collect();
        assert!(names.iter().all(|name| find(name).is_some_and(|method| method.name == *name)));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(find("getinfo").is_none(), "programs ask for it to see that it is gone");
    }
}
