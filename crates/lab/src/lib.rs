//! The lab: makes chains for testing and measuring nodes, measures this machine, and compares nodes as processes.
//!
//! Input: a preset, a seed, a directory. Output: block files, expectations, statistics. Invariants: the same seed gives
//! the same bytes on every machine and with any number of threads. It must never contain a consensus rule that a node
//! could rely on.

#![forbid(unsafe_code)]

pub mod assemble;
pub mod compare;
pub mod electrum;
pub mod engine_times;
pub mod error;
pub mod files;
pub mod history;
pub mod lab_toml;
pub mod limits;
pub mod limits_cmd;
mod limits_io;
#[cfg(test)]
mod made_up;
pub mod parallel;
pub mod peers;
pub mod plan;
pub mod presets;
pub mod project;
pub mod regtest;
pub mod report;
pub mod rng;
pub mod runs;
pub mod stats;
pub mod sync;
pub mod thin;
pub mod validity;
pub mod wallet;

pub use error::LabError;
