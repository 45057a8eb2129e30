//! The scripts of a transaction under the standard flags, in exact mode: Core's `PolicyScriptChecks` (validation.cpp).
//!
//! Input: a transaction with the outputs it spends. Output: the first input whose scripts fail, with Core's texts. A
//! pool that settles signatures in batches calls this for the transactions that a batch did not prove, to get the
//! reason. The flags are [`Flags::STANDARD`]; [`Flags::MANDATORY`] are those of consensus. Cost: every signature.

use super::inputs::spends_witness_program;
use super::rejection::Rejection;
use super::rule::{PolicyRule, ValidationResult};
use lydian_consensus::input_message;
use lydian_script::{Flags, LegacyCache, ScriptError, TxContext, verify_input_with};

/// Verifies the scripts of all inputs under [`Flags::STANDARD`].
pub fn check_scripts(context: &TxContext<'_>) -> Result<(), Rejection> {
    let mut cache = LegacyCache::new();
    for input in 0..context.tx().input_count() {
        verify_input_with(context, input, Flags::STANDARD, &mut cache)
            .map_err(|error| script_rejection(context, input, error))?;
    }
    Ok(())
}

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
