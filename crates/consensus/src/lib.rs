//! The consensus rules as tables of pure functions, and the plain validator, which is their specification.
//!
//! Input: parsed blocks, implementations of [`HeaderView`] and [`CoinView`] for the data that the rules look up, and
//! the current time as a value. Output: a type per step (`Block` -> [`CheckedBlock`] -> [`FundedBlock`] ->
//! [`VerifiedBlock`]) or the first [`Violation`]. No I/O, clock or threads. [`RULES`] lists every rule with a
//! one-sentence description and its source.

#![forbid(unsafe_code)]

pub mod block;
pub mod codec;
pub mod coins;
mod debug_message;
pub mod deployment;
pub mod header;
mod header_run;
pub mod limits;
pub mod params;
mod plain;
pub mod pow;
pub mod prevouts;
pub mod rule;
pub mod scripts;
pub mod sequence;
pub mod signet;
pub mod spend;
pub mod stats;
mod subsidy;
pub mod tx;
mod u256;
pub mod utxo_hash;
mod view;

pub use block::{CheckedBlock, MerkleRoot, Parent, check_block, is_block_mutated};
pub use coins::{Found, FundedBlock, check_inputs, fund};
pub use debug_message::{Detail, format_money, input_message, spend_message};
pub use header::{check_header, check_header_in_chain};
pub use header_run::HeaderRun;
pub use params::{Chain, Deployment, DeploymentError, Params, VersionBits};
pub use plain::{Accepted, PlainValidator, Rejected};
pub use prevouts::{CoinCountMismatch, PrevoutReport, SpentCoin, verify_alone, verify_with_prevouts};
pub use rule::{Check, RULES, Rule, RuleInfo, Step, Violation, first_broken};
pub use scripts::{
    Batch, KnownParts, KnownScripts, Mode, Part, PartVerdict, Tally, VerifiedBlock, parts, parts_besides,
    trust_scripts, verify_exactly, verify_scripts,
};
pub use stats::Stats;
pub use subsidy::block_subsidy;
pub use u256::U256;
pub use view::{Ancestor, Coin, CoinRef, CoinView, HeaderView};
