//! A world for the node: time, disk and peers are made from a seed, the node is the one that ships. Tests only.
//!
//! Input: a seed. Output: whether the node came through: memory bounded, the honest chain reached in time, nobody punished who did nothing, everybody
//! punished whom Core punishes. What runs is the shipped code: the manager of peers, the engine on a disk in memory, the transports v1 and v2. What
//! `lydian_net` does with sockets and threads is done here in virtual time. Invariant: a seed does the same again, byte for byte. Cost: some tens of
//! milliseconds a seed. Must never: read a clock.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "the whole crate is a test, and a test may fail by panicking")]

pub mod actor;
pub mod cast;
pub mod chain;
pub mod check;
pub mod ground;
pub mod heavy;
pub mod link;
pub mod natures;
pub mod node;
pub mod world;

pub use check::{Met, Report, run};
pub use ground::ground;
