//! Answers about random chains against a naive model, which has nothing but a list of blocks and a list of mempool
//! transactions: the engine, the index, the mempool and the query layer are the real ones.
//!
//! * `LYDIAN_QUERY_SECONDS`: the running time of the random stories (by default a few seconds);
//! * `LYDIAN_QUERY_GROUPS`: sealed groups of 256 blocks in the long stories; eight are merged;
//! * `LYDIAN_QUERY_SEED`: only this story; `LYDIAN_QUERY_FIRST_SEED`: the first one.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and says what it did")]
#![allow(unreachable_pub, reason = "the modules of one test")]

mod compare;
mod details;
mod draft;
mod long;
mod model;
mod overwritten;
mod stories;
mod world;
