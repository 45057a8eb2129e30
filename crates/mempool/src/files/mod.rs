//! `mempool.dat`: the mempool across restarts, in Core's format.
//!
//! Input: a [`Dump`], or a file. Output: bytes, or the [`Record`]s of a file one by one.
//!
//! The file is a version (8 bytes); from version 2 on a key of 8 bytes behind its length; the number of transactions (8
//! bytes); each transaction with its time and its fee delta (8 bytes each); a map of fee deltas of transactions that
//! are not in the mempool; the set of transactions that no peer has requested yet. Everything behind the key is
//! combined with it by XOR, at the offset in the file modulo 8. Numbers are little-endian. `docs/formats/mempool.md`.
//!
//! Invariants: a file is replaced whole or not at all; foreign bytes never panic, and reading holds one transaction of
//! at most [`limits::FILE_TRANSACTION_SIZE_MAX`] bytes and a buffer, whatever counts the file states. Cost: linear in
//! the bytes.
//!
//! The rules are those of Core's `node/mempool_persist.cpp`.

mod key;
pub mod limits;
mod load;
mod save;

pub use key::Key;
pub use load::{LoadError, LoadProblem, Loader, Record};
pub use save::{Dump, DumpedTx, MEMPOOL_FILE, MEMPOOL_FILES};

use lydian_disk::format::{Format, MOVE_AWAY, NumberPlace};

/// Core's `MEMPOOL_DUMP_VERSION_NO_XOR_KEY` and `MEMPOOL_DUMP_VERSION`.
const VERSION_WITHOUT_KEY: u64 = 1;
const VERSION: u64 = MEMPOOL_FORMAT.number as u64;

/// The format of the file.
pub const MEMPOOL_FORMAT: Format = Format { number: 2, oldest: 1, place: NumberPlace::First, otherwise: MOVE_AWAY };

#[cfg(test)]
mod tests;
