//! Bitcoin script: one interpreter, its signature hashes and templates.
//!
//! Input: scripts, witnesses, a transaction and the outputs it spends. Output: Core's verdict and script error. No I/O, no
//! clock; total on any bytes.

#![forbid(unsafe_code)]

pub mod iter;
pub mod sighash;

pub use iter::{BadPush, Op, Ops, ops};
pub use sighash::{LegacyCache, TaprootExt, TxContext};
