//! JSON of blocks, transactions and scripts, written directly as text for speed: these are the main queries of block
//! explorers.
//!
//! Input: parsed bytes. Output: Core's fields in Core's order (core_io.cpp, rpc/blockchain.cpp), appended.

pub(crate) mod address;
mod bech32;
mod block;
mod descriptor;
pub(crate) mod expression;
mod hex;
mod script;
mod solver;
mod transaction;

pub(crate) use block::{HeaderAnswer, difficulty, shown_work, target, write_block};
pub(crate) use descriptor::write_inferred;
pub(crate) use hex::push_hex;
pub(crate) use script::{write_asm, write_script};
pub(crate) use solver::{Kind as ScriptKind, solve};
pub(crate) use transaction::Detail;
