//! Answers about blocks, transactions and scripts. They borrow the parsed bytes and are written directly as text for
//! speed: these are the main queries of block explorers.
//!
//! Input: parsed bytes. Output: Core's fields in Core's order (core_io.cpp, rpc/blockchain.cpp).

mod block;
mod hashes;
mod script;
mod transaction;

pub(crate) use block::{BlockAnswer, HeaderAnswer, SerializedBlock, Transactions, TxIds, target};
pub(crate) use hashes::Hex;
pub(crate) use script::{Asm, OwnedScript, ScriptAnswer};
pub(crate) use transaction::{DecodedTransaction, Detail, IndexedTransaction, OwnedTransaction, PlainTransaction};
