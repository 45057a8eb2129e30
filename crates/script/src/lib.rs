//! Bitcoin script: one interpreter, its signature hashes and templates.
//!
//! Input: scripts, witnesses, a transaction and the outputs it spends. Output: Core's verdict and script error. No I/O, no
//! clock; total on any bytes.

#![forbid(unsafe_code)]

pub mod builder;
mod error;
mod find_and_delete;
mod flags;
pub mod iter;
pub mod limits;
pub mod num;
pub mod opcodes;
mod pattern;
pub mod sighash;

pub use builder::ScriptBuilder;
pub use error::ScriptError;
pub use find_and_delete::{find_and_delete, push_header};
pub use flags::Flags;
pub use iter::{BadPush, Op, Ops, ops};
pub use pattern::{WitnessProgram, is_minimal_push, is_p2sh, is_push_only, witness_program};
pub use sighash::{LegacyCache, TaprootExt, TxContext};
