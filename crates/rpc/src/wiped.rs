//! What requests bring is overwritten when it is freed, because it may hold private keys.
//!
//! Input: requests. Output: none; [`lydian_disk::WipingAllocator`] does the work. Overwritten are the body and the
//! parameters of every request, whatever its method: a misspelt name belongs to no method, but its keys are keys. Of
//! methods that take private keys, everything that is freed during the call is overwritten as well, and then the stack
//! below it. Cost: writing zeros over the body and the parameters.

use lydian_disk::wiping;
use lydian_stdx::wipe_stack;

/// The methods that take private keys, or descriptors that may contain some. `createmultisig` refuses them, and quotes
/// them as Core does. Methods that search for descriptors use [`with_keys`] for these alone.
const METHODS_WITH_KEYS: [&str; 7] = [
    "createmultisig",
    "deriveaddresses",
    "descriptorprocesspsbt",
    "getdescriptorinfo",
    "signmessagewithprivkey",
    "signrawtransactionwithkey",
    "utxoupdatepsbt",
];

/// Runs a part of a call of this method.
pub(crate) fn during_call<T>(method: &str, work: impl FnOnce() -> T) -> T {
    if METHODS_WITH_KEYS.contains(&method) { with_keys(work) } else { work() }
}

/// Runs work with private keys: what it frees and its stack are overwritten.
pub(crate) fn with_keys<T>(work: impl FnOnce() -> T) -> T {
    let done = wiped(work);
    wipe_stack();
    done
}

/// Overwrites what `work` frees.
pub(crate) fn wiped<T>(work: impl FnOnce() -> T) -> T {
    wiping(usize::MAX, work)
}

/// A value that is overwritten when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Wiped<T: Default>(pub(crate) T);

impl<T: Default> Drop for Wiped<T> {
    fn drop(&mut self) {
        wiped(|| drop(std::mem::take(&mut self.0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::METHODS;

    #[test]
    fn the_methods_exist() {
        for name in METHODS_WITH_KEYS {
            assert!(METHODS.find(name).is_some(), "{name}");
        }
        assert!(METHODS_WITH_KEYS.is_sorted());
        assert_eq!(during_call("getblockcount", || 5), during_call("createmultisig", || 5));
    }
}
