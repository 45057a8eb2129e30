//! The presets: the kinds of chains.

pub mod deep;
pub mod empty;
pub mod invalid;
pub mod ledger;
pub mod mainnet_mix;
pub mod maker;
pub mod mempool_mix;
pub mod reorg;
pub mod reuse;
pub mod scale;
pub mod validity;
pub mod worst;
