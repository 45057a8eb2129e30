//! Exit codes of the node. Constants only; help and `docs/config.md` tell them.

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
