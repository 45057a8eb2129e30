//! JSON of blocks, transactions and scripts, written straight to text: what a block explorer asks for all day. Input: parsed bytes. Output: Core's
//! fields in Core's order (core_io.cpp, rpc/blockchain.cpp), appended.

mod address;
mod block;
mod descriptor;
mod hex;
mod script;
mod solver;
mod transaction;

pub(crate) use block::{HeaderAnswer, difficulty, shown_work, target, write_block};
pub(crate) use hex::push_hex;
pub(crate) use script::write_script;
pub(crate) use transaction::Detail;
