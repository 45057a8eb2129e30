//! Bitcoin script: one interpreter, its signature hashes and templates.
//!
//! Input: scripts, witnesses, a transaction and the outputs it spends. Output: Core's verdict and script error. No I/O,
//! no clock; total on any bytes.

#![forbid(unsafe_code)]

pub mod builder;
mod checker;
mod encoding;
mod error;
mod find_and_delete;
mod flags;
mod hashes;
mod interpreter;
pub mod iter;
pub mod limits;
pub mod num;
mod obligations;
pub mod opcodes;
mod pattern;
mod redeem;
pub mod sighash;
mod signature_ops;
mod signing;
mod sigops;
mod spend;
mod stack;
mod templates;
mod verify;

pub use builder::ScriptBuilder;
pub use checker::{Capture, CheckCounts, Checker, Inline};
pub use encoding::is_strict_der;
pub use error::ScriptError;
pub use find_and_delete::{find_and_delete, push_header};
pub use flags::Flags;
pub use iter::{BadPush, Op, Ops, ops};
/// Settles obligations. Re-exported so that the layers above need not depend on `curve`.
pub use lydian_curve::Engine;
/// Decompresses a public key. Re-exported for the compressed form of pay-to-public-key scripts.
pub use lydian_curve::{are_x_only, uncompressed_key};
pub use obligations::{Obligation, ObligationLists, Obligations, Pair, Settled};
pub use pattern::{
    WitnessProgram, has_valid_ops, is_minimal_push, is_p2sh, is_push_only, is_unspendable, witness_program,
};
pub use redeem::redeem_script;
pub use sighash::{LegacyCache, TaprootExt, TxContext};
pub use signing::InputChecks;
pub use sigops::{legacy_sigop_count, p2sh_sigop_count, transaction_legacy_sigop_count, witness_sigop_count};
pub use templates::verify_by_template;
pub use verify::{
    Captured, Scripts, capture_input, capture_input_interpreted, verify_input, verify_input_by_capture,
    verify_input_counting, verify_input_with, verify_script, verify_script_with,
};
