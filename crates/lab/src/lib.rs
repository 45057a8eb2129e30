//! The lab: chains made to measure and to test nodes with, what this machine can do, and nodes against each other as processes.
//!
//! Input: a preset, a seed, a folder. Output: block files, expectations, statistics. Invariants: the same seed gives the same
//! bytes on every machine and with any number of threads. Must never: hold a rule of consensus that a node could lean on.

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
