//! Indexes: followers of the chain that answer queries, and keep files of their own.
//!
//! Input: the blocks of the active chain, from the engine. Output: answers, for servers. Each index is a
//! [`lydian_engine::Follower`] with a reader; the reader may be used from any thread while the index is fed.
//!
//! Invariants: an index is never ahead of the coins; its files are append-only logs and small records that are replaced
//! as a whole, so that a crash at any moment leaves the state of a checkpoint; a file of a later format is refused by
//! name, and only damage asks for a file to be deleted. It must never decide whether a block is valid.

#![forbid(unsafe_code)]

mod coinstats;
mod error;
#[cfg(test)]
mod faults;
mod files;
mod filters;
mod head;
mod inspect;
pub mod limits;
mod rebuild;
mod tables;

pub use coinstats::{
    COINSTATS_DIR, COINSTATS_FILES, COINSTATS_FORMAT, COINSTATS_NAME, CoinStats, CoinStatsIndex, CoinStatsReader,
};
pub use error::IndexError;
pub use files::{Advance, Comparison, Difference, FileSizes, Report};
pub use filters::{
    FILTERS_DIR, FILTERS_FILES, FILTERS_FORMAT, FILTERS_NAME, FilterEntry, FilterError, FilterIndex, FilterReader,
    basic_filter, filter_hash, filter_header, match_any,
};
pub use inspect::{IndexKind, SCRATCH_DIR, check, compare, hash_at, inspect, rebuild, remove, remove_scratch, sample};
pub use rebuild::{Rebuild, RebuildProgress};
pub use tables::{
    ADDRESSINDEX_NAME, Export, Facts, GROUP_BLOCKS, Identity, MergedPages, OutputFate, PAGES_FORMAT, Place, Profile,
    RemoteContent, RemotePage, RemotePages, RemoteSegment, RemoteTables, Salt, ScriptHash, ScriptOutput, ScriptOutputs,
    SegmentFacts, TABLES_DIR, TABLES_FILES, TABLES_FORMAT, TXINDEX_NAME, TXOSPENDERINDEX_NAME, Table, TouchedScripts,
    TxIndex, TxIndexReader, TxidAt, UNSEALED_BLOCKS,
};
