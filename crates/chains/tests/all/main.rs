//! The tests of the crate in one binary: the presets against the plain validator and Bitcoin Core.

mod judge;
mod mainnet_mix;
mod plain;
mod reuse;
