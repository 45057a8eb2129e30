//! JSON of blocks, transactions and scripts, written directly as text for speed: these are the main queries of block
//! explorers.
//!
//! Input: parsed bytes. Output: Core's fields in Core's order (core_io.cpp, rpc/blockchain.cpp), appended.

mod block;
mod script;
mod transaction;

pub(crate) use block::{HeaderAnswer, difficulty, shown_work, target, write_block};
pub(crate) use script::write_script;
pub(crate) use transaction::Detail;
