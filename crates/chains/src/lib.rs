//! Generated chains for the tests of every crate and for measurements, with their statistics and expected answers.
//!
//! Input: a preset, a seed, a directory; or a directory of block files. Output: block files, expectations, statistics;
//! the facts about a chain and the answers that follow from its blocks. Invariants: the same seed gives the same bytes
//! on every machine and with any number of threads. It must never contain a consensus rule that a node could rely on,
//! start a process or read a clock.

#![forbid(unsafe_code)]

mod answer;
pub mod assemble;
pub mod chain_files;
pub mod error;
pub mod expected;
pub mod files;
pub mod limits;
pub mod parallel;
pub mod plan;
pub mod presets;
pub mod regtest;
pub mod rng;
pub mod stats;
pub mod targets;
pub mod walk;
pub mod wallet;

pub use error::ChainsError;
