//! Unconfirmed transactions: whether one is accepted, how they depend on each other, and in which order a miner would
//! take them.
//!
//! [`policy`] decides about one transaction, [`graph`] about the order of many and knows nothing of Bitcoin.

#![forbid(unsafe_code)]

pub mod graph;
pub mod limits;
pub mod policy;
