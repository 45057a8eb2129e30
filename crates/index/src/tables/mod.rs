//! The tables of the address index: transactions by txid and where they are; outputs by script and what spends them.
//!
//! Input: blocks, from the engine. Output: the places of the transactions of a txid: `-txindex`; the outputs of a
//! script, with their values or spenders: `-txospenderindex`. Transactions have numbers in the order of the chain
//! ([`places`]), and txids are kept as short keys only ([`numbers`]), so that every hit is compared with the
//! transaction. [`events`] is the table by script; a spent output gets its number from [`positions`]. Rows are in pages
//! ([`pages`]) of segments that never change ([`segment`]); those of the last blocks ([`rows`]) are in memory and in a
//! log ([`tail`]). [`index`] is the follower with its commit record; [`scripts`] joins the tables for an answer.
//!
//! Invariants: every byte that is read is covered by a checksum; files follow from the chain and the salt, never from
//! the times of checkpoints; a crash at any moment leaves the state of a checkpoint or one below it.

pub(crate) mod bits;
mod commit;
mod events;
mod index;
mod numbers;
mod pages;
mod places;
mod positions;
mod rows;
mod scripts;
mod segment;
mod settled;
mod tail;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use commit::Profile;
pub use index::{
    ADDRESSINDEX_NAME, ScriptOutputs, TABLES_DIR, TABLES_FILES, TXINDEX_NAME, TXOSPENDERINDEX_NAME, TouchedScripts,
    TxIndex, TxIndexReader, UNSEALED_BLOCKS,
};
pub use places::Place;
pub use rows::ScriptHash;
pub use scripts::{OutputFate, ScriptOutput};
