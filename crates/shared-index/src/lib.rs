//! The index of scripts in a distributed store: written by one node, read by any number of front ends without data.
//!
//! Input: the embedded index of a node. Output: the same answers, from a store that a driver puts behind [`Store`].
//!
//! **Values.** The pages of the embedded index's segments (a segment in the store is a *generation*), what each block
//! above them adds (a *delta*), the bytes of blocks if they are wanted, and one commit row that names generations,
//! deltas and blocks. All but the row are immutable, and their keys are never used for anything else; the commit row is
//! replaced by compare-and-set, after everything that it names was acknowledged by a quorum. So a reader that has a
//! commit row has one state of the index, whatever the writer, other writers and late messages do.
//!
//! [`Writer`] writes, [`SharedIndex`] reads. [`seal`] is the form of all values, [`commit`] the row, [`parts`] the
//! form of pages with long lists, [`blocks`] that of blocks, of which [`runs`] says where they are; [`block_upload`]
//! writes and [`stored`] reads them, and [`engine_blocks`] has them of an engine. [`plan`] decides what the next row
//! is, and [`upload`] writes a generation and removes one; [`fetch`] reads values when it is their turn ([`turns`]),
//! except those of pages of which [`filter`] says that they have nothing, and [`compare()`] compares all of them with
//! the embedded index. [`ahead`] finds out whether the row is further than the index. The tests have a store in memory
//! that does everything that [`Store`] does not rule out.
//!
//! Invariants: what a commit row names is not changed, and is removed an hour after no row names it; a page that is
//! missing is an error and never an empty answer; one writer commits at a time. No driver, no clock, no randomness.

#![forbid(unsafe_code)]

mod ahead;
mod block_upload;
mod blocks;
mod commit;
mod compare;
mod engine_blocks;
mod fetch;
mod filter;
pub mod limits;
mod parts;
mod plan;
mod reader;
mod runs;
mod seal;
mod store;
mod stored;
#[cfg(test)]
mod tests;
mod turns;
mod upload;
mod writer;

pub use ahead::{Ahead, block_hash};
pub use block_upload::BlockSource;
pub use commit::{Commit, Leftover, Retired, WriterId};
pub use compare::{Compared, compare};
pub use engine_blocks::{EngineBlocks, checked_block};
pub use lydian_index::Table;
pub use reader::{ReaderError, Refreshed, SharedIndex};
pub use runs::BlockRun;
pub use seal::{BLOCKS_FORMAT, SHARED_FORMAT};
pub use store::{
    BlockHeight, BlockKey, Bucket, CommitRead, DeltaHeight, DeltaKey, Key, Keyspace, PageKey, Partition, Replicas,
    Store, StoreError, StoredCommit, Swap,
};
pub use stored::stored_bytes;
pub use writer::{KEEP_SECONDS, Source, Step, Writer, WriterError};
