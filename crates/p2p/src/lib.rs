//! Peers: whom to connect to, whom to drop, what to ask them for. Input: messages, connections that came and went, the time. Output: what to send, whom to
//! connect, whom to disconnect.
//!
//! Everything here is a state machine without I/O: time and randomness are arguments, sockets and files belong to whoever drives it. So a simulator
//! with a seed runs the shipped code, and what it did once it does again. What comes from peers and from files may be any bytes: it gives a value or an
//! error, never a panic, and no allocation is sized by a length that was not checked. It must never punish a peer for what policy refuses, and it knows
//! no rule of consensus: verdicts come from the engine.

#![forbid(unsafe_code)]

pub mod address_relay;
pub mod addrman;
pub mod anchors;
pub mod bans;
pub mod datafile;
pub mod discourage;
pub mod download;
mod draw;
pub mod eviction;
pub mod files;
pub mod fixed_seeds;
pub mod headers;
pub mod limits;
pub mod local_address;
pub mod manager;
pub mod memory;
pub mod outbound;
pub mod peer;
pub mod permissions;
pub mod proxies;
pub mod seeding;
mod time;
mod time_offsets;
pub mod traffic;
pub mod upload;

pub use addrman::AddrMan;
pub use bans::Bans;
pub use memory::{MemoryBudget, MemoryPlan, PeerMemory};
pub use peer::Peer;
pub use time::{Moment, UnixTime};
pub use traffic::{Traffic, TrafficTotals};
