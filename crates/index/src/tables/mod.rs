//! The tables of the address index: transactions by txid, and where they are.
//!
//! Input: blocks, from the engine. Output: the places of the transactions of a txid: `-txindex`. Transactions have
//! numbers in the order of the chain ([`places`]), and txids are kept as short keys only ([`numbers`]), so that every
//! hit is compared with the transaction. Rows are in pages ([`pages`]) of segments that never change ([`segment`]);
//! those of the last blocks are in memory and in a log ([`tail`]). [`index`] is the follower with its commit record.
//!
//! Invariants: every byte that is read is covered by a checksum; files follow from the chain and the salt, never from
//! the times of checkpoints; a crash at any moment leaves the state of a checkpoint or one below it.

mod bits;
mod commit;
mod index;
mod numbers;
mod pages;
mod places;
mod segment;
mod tail;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use index::{TABLES_DIR, TABLES_FILES, TXINDEX_NAME, TxIndex, TxIndexReader, UNSEALED_BLOCKS};
pub use places::Place;
