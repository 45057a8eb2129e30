//! The tables of the address index: transactions by txid and where they are; outputs by script and what spends them.
//!
//! Input: blocks, from the engine. Output: the places of the transactions of a txid: `-txindex`; the outputs of a
//! script, with their values or spenders: `-txospenderindex`. Transactions have numbers in the order of the chain
//! ([`places`]), and txids are kept as short keys only ([`numbers`]), so that every hit is compared with the
//! transaction. [`events`] is the table by script; a spent output gets its number from [`positions`]. Rows are in
//! pages ([`pages`]) of segments that never change ([`segment`]); those of the last blocks ([`rows`]) are in memory
//! and in a log ([`tail`]). [`index`] is the follower, [`state`] what it has, with its commit record; [`threads`]
//! write and merge segments; [`reader`] answers, and [`scripts`] joins the tables for it. [`txids`] has the txids by
//! number. [`export`] is what a copy in another store is made of, with segments that [`merged`] joins, and [`remote`]
//! reads such a copy.
//!
//! Invariants: every byte that is read is covered by a checksum; files follow from the chain and the salt, never from
//! the times of checkpoints; a crash at any moment leaves the state of a checkpoint or one below it.

pub(crate) mod bits;
mod commit;
mod events;
mod export;
mod index;
pub(crate) mod inspect;
mod merged;
mod moment;
mod numbers;
mod pages;
mod places;
mod positions;
mod reader;
mod remote;
mod rows;
mod scripts;
mod segment;
mod settled;
mod state;
mod tail;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod threads;
mod txids;

pub use commit::{Profile, TABLES_FORMAT};
pub use export::Export;
pub use index::TxIndex;
pub use merged::MergedPages;
pub use numbers::Salt;
pub use pages::{Facts, PAGES_FORMAT};
pub use places::Place;
pub use reader::{ScriptOutputs, TouchedScripts, TxIndexReader, TxidAt};
pub use remote::{Identity, RemoteContent, RemotePage, RemotePages, RemoteSegment, RemoteTables, SegmentFacts, Table};
pub use rows::ScriptHash;
pub use scripts::{OutputFate, ScriptOutput};

pub use segment::GROUP_BLOCKS;

use lydian_disk::{OwnFile, Proof};

/// The name in `getindexinfo`, as in Core.
pub const TXINDEX_NAME: &str = "txindex";

/// The name in `getindexinfo` of the same tables with those of scripts, as in Core.
pub const TXOSPENDERINDEX_NAME: &str = "txospenderindex";

/// The name in `getindexinfo` of the same tables when servers read them.
pub const ADDRESSINDEX_NAME: &str = "addressindex";

/// The directory, relative to the data directory of the chain.
pub const TABLES_DIR: &str = "indexes/tables";

/// The files in it.
pub const TABLES_FILES: &[OwnFile] = &[
    OwnFile { name: COMMIT_FILE, proof: Proof::Directory },
    OwnFile { name: "#.log", proof: Proof::Directory },
    OwnFile { name: "*.numbers", proof: Proof::Directory },
    OwnFile { name: "*.sizes", proof: Proof::Directory },
    OwnFile { name: "*.blocks", proof: Proof::Directory },
    OwnFile { name: "*.events", proof: Proof::Directory },
    OwnFile { name: "*.lists", proof: Proof::Directory },
    OwnFile { name: "*.positions", proof: Proof::Directory },
    OwnFile { name: "*.txids", proof: Proof::Directory },
];

const COMMIT_FILE: &str = "commit";

/// The last blocks of the chain are not sealed: more than any reorganisation, and what a pruned node keeps.
pub const UNSEALED_BLOCKS: u32 = 1_088;
