//! The presets: what kinds of chains there are.

pub mod mainnet_mix;
