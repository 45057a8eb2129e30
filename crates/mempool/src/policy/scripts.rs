//! Why scripts fail under the standard flags: Core's `PolicyScriptChecks` (validation.cpp).
//!
//! Input: a transaction with the outputs it spends, an input whose scripts fail. Output: the rejection, with Core's
//! texts. `crate::scripts` verifies the scripts.

use super::inputs::spends_witness_program;
use super::rejection::Rejection;
use super::rule::{PolicyRule, ValidationResult};
use lydian_consensus::input_message;
use lydian_script::{ScriptError, TxContext};

/// The rejection of a transaction, an input of which fails. If the witness may have been removed, relay must not
/// remember the txid as invalid ([`ValidationResult::WitnessStripped`]).
///
/// Panics if there is no such input.
pub fn script_rejection(context: &TxContext<'_>, input: usize, error: ScriptError) -> Rejection {
    let tx = context.tx();
    let is_stripped = !tx.has_witness() && spends_witness_program(context);
    let rejection = Rejection::with_message(PolicyRule::ScriptVerify, input_message(tx, input));
    let result = if is_stripped { ValidationResult::WitnessStripped } else { rejection.result };
    Rejection { result, script_error: Some(error), ..rejection }
}
