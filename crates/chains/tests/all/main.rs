//! The tests of the crate in one binary: the presets against the plain validator and Bitcoin Core.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod judge;
mod mainnet_mix;
mod plain;
mod reuse;
