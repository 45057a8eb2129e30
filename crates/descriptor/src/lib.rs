//! Addresses, output descriptors, and the kinds of output scripts, between text and scripts.
//!
//! Input: text, or an output script; the chain. Output: scripts, or text, as Core converts them; for bad text, Core's
//! error message.
//!
//! [`address`]: addresses. [`Descriptors`]: descriptors and miniscript. [`solve`]: the kind of a script.
//! [`write_inferred`]: the descriptor of a script alone. [`write_asm`]: its operations by name.
//!
//! Invariants: no input causes a panic; private keys in a descriptor are in no text that this crate writes. No I/O, no
//! clock, no chain state.

#![forbid(unsafe_code)]

pub mod address;
mod asm;
mod bech32;
mod checksum;
pub mod expression;
mod infer;
pub mod limits;
mod solver;

pub use asm::write_asm;
pub use expression::{Descriptors, Output};
pub use infer::write_inferred;
pub use solver::{TxoutType, solve};
