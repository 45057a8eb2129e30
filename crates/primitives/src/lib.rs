//! Bitcoin's basic types: hashes, amounts, header, transaction, block.
//!
//! Input: untrusted bytes. Output: views into one owned buffer, with ids computed once. Parsing is total: any bytes
//! give a value or a [`ParseError`] with the offset, never a panic, and never an allocation sized by an unchecked
//! length. No I/O, no clock, no consensus rules.

#![forbid(unsafe_code)]

pub mod block;
pub mod build;
mod header;
mod hex;
mod ids;
pub mod limits;
mod reader;
mod table;
pub mod transaction;

pub use block::{Block, RawBlock, WitnessCommitment};
pub use header::{HEADER_SIZE, HashedHeader, Header, difficulty};
pub use hex::{push_hex, push_hex_reversed};
pub use ids::{Amount, BlockHash, Height, HexError, OutPoint, Txid, Wtxid, hex, to_hex};
pub use reader::{ParseError, ParseErrorKind, Reader, compact_size_len, write_compact_size};
pub use transaction::{Input, Output, Transaction, Tx, Witness, WitnessIter};
