//! The tests of the crate in one binary: every rule, real blocks, vectors of other projects, reorganisations.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod fullblocktests;
#[allow(dead_code, reason = "the tests of each crate use a part")]
#[path = "../../../../testdata/locate.rs"]
mod locate;
mod parts;
mod real_blocks;
mod reorg;
mod rules;
mod tx_vectors;
mod worst;
