//! Peer management: which peers to connect to, which to disconnect, and what to request from them.
//!
//! Input: messages, opened and closed connections, the time. Output: messages to send, peers to connect to and to
//! disconnect.
//!
//! Everything here is a state machine without I/O: time and randomness are arguments, and the caller owns sockets and
//! files. A simulator with a seed therefore runs the shipped code, and every run can be repeated. Bytes from peers and
//! from files may be anything: they give a value or an error, never a panic, and no allocation is sized by an unchecked
//! length. This crate must never punish a peer for a policy rejection, and it contains no consensus rule: the engine
//! provides the verdicts.

#![forbid(unsafe_code)]

pub mod address_relay;
pub mod addrman;
pub mod anchors;
pub mod bans;
pub mod chain_view;
pub mod channel;
pub mod datafile;
pub mod discourage;
pub mod download;
mod draw;
pub mod driver;
pub mod eviction;
pub mod files;
pub mod filters;
pub mod fixed_seeds;
pub mod headers;
pub mod limits;
pub mod local_address;
pub mod manager;
pub mod memory;
pub mod order;
pub mod outbound;
pub mod outgoing;
pub mod pace;
pub mod peer;
pub mod permissions;
pub mod proxies;
pub mod seeding;
mod sent_blocks;
pub mod submission;
mod time;
mod time_offsets;
pub mod traffic;
pub mod txs;
pub mod upload;

pub use addrman::AddrMan;
pub use bans::Bans;
pub use memory::{MemoryBudget, MemoryPlan, PeerMemory};
pub use peer::Peer;
pub use sent_blocks::{SentBlock, SentBlocks};
pub use time::{Moment, UnixTime};
pub use traffic::{Traffic, TrafficTotals, message_names};
