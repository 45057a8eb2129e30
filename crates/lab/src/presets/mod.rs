//! The presets: what kinds of chains there are.

pub mod empty;
pub mod invalid;
pub mod ledger;
pub mod mainnet_mix;
pub mod maker;
pub mod reorg;
pub mod reuse;
pub mod validity;
pub mod worst;
