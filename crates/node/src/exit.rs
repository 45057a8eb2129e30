//! Exit codes. Help and `docs/config.md` list them: those below are of `import`, `utxohash`, `info` and `verify`; the
//! daemon has Bitcoin Core's.

/// Done, or stopped as asked.
pub(crate) const DONE: u8 = 0;

/// A block is invalid; the chain stays at the best valid one.
pub(crate) const INVALID: u8 = 1;

/// Wrong option, setting or command.
pub(crate) const SETTINGS: u8 = 2;

/// The data directory is missing, locked, another network's or a newer version's.
pub(crate) const DIRECTORY: u8 = 3;

/// Disk full, damaged or failing.
pub(crate) const DISK: u8 = 4;

/// Our mistake: what a Rust program that panics ends with.
pub(crate) const PANIC: u8 = 101;

/// The exit code of the daemon, 0 or 1 as Core's. A block that is invalid is no fault of the node.
pub(crate) fn of_daemon(code: u8) -> u8 {
    match code {
        DONE | INVALID => DONE,
        PANIC => PANIC,
        _ => FAILURE,
    }
}

/// Core's `EXIT_FAILURE`.
const FAILURE: u8 = 1;
