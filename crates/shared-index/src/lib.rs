//! The index of scripts in a distributed store: written by one node, read by any number of front ends without data.
//!
//! Input: the embedded index of a node. Output: the same answers, from a store that a driver puts behind [`Store`].
//!
//! **Values.** The pages of the embedded index's segments (a segment in the store is a *generation*), what each block
//! above them adds (a *delta*), and one commit row that names generations and deltas. Pages and deltas are immutable,
//! and their keys are never used for anything else; the commit row is replaced by compare-and-set, after everything
//! that it names was acknowledged by a quorum. So a reader that has a commit row has one state of the index, whatever
//! the writer, other writers and late messages do.
//!
//! Invariants: what a commit row names is not changed, and is removed an hour after no row names it; a page that is
//! missing is an error and never an empty answer; one writer commits at a time. No driver, no clock, no randomness.

#![forbid(unsafe_code)]

pub mod limits;
mod store;

pub use store::{
    Bucket, CommitRead, DeltaHeight, DeltaKey, Key, Keyspace, PageKey, Partition, Replicas, Store, StoreError,
    StoredCommit, Swap, Table,
};
