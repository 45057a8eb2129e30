//! Unconfirmed transactions: whether one is accepted, how they depend on each other, and in which order a miner would
//! take them.
//!
//! [`policy`] decides about one transaction, [`graph`] about the order of many and knows nothing of Bitcoin.
//! [`scripts`] verifies and remembers, [`files`] reads and writes `mempool.dat`. [`pool`] keeps the transactions, and
//! [`Mempool`] is the pool at work in a node.

#![forbid(unsafe_code)]

pub mod files;
pub mod graph;
pub mod limits;
pub mod policy;
pub mod pool;
pub mod scripts;
mod service;

pub use service::{
    Clock, FeeSource, ImportError, ImportOptions, Imported, Mempool, Mined, Records, Reject, Replacement, Report,
    Secrets, StepwiseDisconnect, SubmitError, dump, load,
};
