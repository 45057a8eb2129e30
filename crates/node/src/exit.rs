//! Exit codes, as listed in the help and in `docs/config.md`. Those below are for `import`, `utxohash`, `info`,
//! `index`, `verify` and `doctor`; the daemon and `serve` use Bitcoin Core's.

/// Done, or stopped on request.
pub(crate) const DONE: u8 = 0;

/// A block is invalid; the chain stays at the best valid one. Or an index is not equal to its rebuild.
pub(crate) const INVALID: u8 = 1;

/// Wrong option, setting or command.
pub(crate) const SETTINGS: u8 = 2;

/// The data directory is missing, locked, or belongs to another network or a newer version.
pub(crate) const DIRECTORY: u8 = 3;

/// Disk full, damaged or failing.
pub(crate) const DISK: u8 = 4;

/// `lydian doctor` has a warning.
pub(crate) const DOCTOR_WARNING: u8 = 1;

/// `lydian doctor` found something bad.
pub(crate) const DOCTOR_BAD: u8 = 2;

/// `lydian index verify` was stopped before it had a result: that of a shell for SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// A bug in this program: the exit code of a Rust program that panics.
pub(crate) const PANIC: u8 = 101;

/// The exit code of the daemon: 0 or 1, as in Core. An invalid block is not a failure of the node.
pub(crate) fn of_daemon(code: u8) -> u8 {
    match code {
        DONE | INVALID => DONE,
        PANIC => PANIC,
        _ => FAILURE,
    }
}

/// Core's `EXIT_FAILURE`.
const FAILURE: u8 = 1;
