//! A simulated world for the node: time, disk and peers are derived from a seed; the node is the one that ships. Tests
//! only.
//!
//! Input: a seed. Output: whether the node survived: its memory stayed bounded, it reached the honest chain in time, it
//! punished no honest peer, and it punished every peer that Core would punish. The shipped code runs: the peer manager,
//! the engine on an in-memory disk, the v1 and v2 transports. What `lydian_net` does with sockets and threads is done
//! here in virtual time. Invariant: the same seed gives the same run, byte for byte. Cost: some tens of milliseconds
//! per seed. Must never: read a clock.

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
