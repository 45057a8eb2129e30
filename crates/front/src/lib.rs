//! Front ends: what a node sends to processes without data, and what such a process answers from.
//!
//! A node has a [feed](message): a stream of its mempool and its tip, answers about its chain, and some of its RPC
//! methods, over HTTP. A front end ([`Front`]) has the index of scripts from a store that the node writes
//! (`lydian_shared_index`), a copy of the mempool from the feed of one node, and blocks and transactions from the
//! store, if it has them, or from any of its nodes. What it answers equals what the node answers on the same block.
//!
//! No validation: a front end believes its nodes and its store.

#![forbid(unsafe_code)]

mod calls;
mod chain;
mod client;
mod copy;
mod follow;
mod front;
pub mod limits;
pub mod message;
mod pool;
mod recent;
pub mod server;
mod store;
mod stored;
pub mod timing;
pub mod wire;

pub use client::{BadNodeAddress, NodeAddress};
pub use front::{Figures, Front, FrontError, FrontEvent, FrontLog, FrontSettings, Health, NodeFigures};
