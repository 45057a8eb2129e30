//! Whether a transaction's inputs are standard: Core's `ValidateInputsStandardness`, `CheckSigopsBIP54` and
//! `SpendsNonAnchorWitnessProg` (policy/policy.cpp). Witnesses are in [`witness`](super::witness).
//!
//! Input: a transaction with the outputs it spends. Output: the first broken rule. One pass gathers [`InputFacts`], to
//! which [`INPUT_CHECKS`] is applied. Pure. Cost: a scriptSig that spends P2SH is run; no signature is checked.

use super::limits::{MAX_P2SH_SIGOPS, MAX_TX_LEGACY_SIGOPS};
use super::rejection::Rejection;
use super::rule::PolicyRule;
use lydian_consensus::{Check, first_broken};
use lydian_descriptor::{TxoutType, solve};
use lydian_script::{
    ScriptError, TxContext, is_p2sh, legacy_sigop_count, p2sh_sigop_count, redeem_script, witness_program,
};

/// The facts about the inputs of a transaction and the outputs they spend.
#[derive(Clone, Copy, Debug)]
pub struct InputFacts {
    /// Signature operations that may be executed outside witnesses (BIP-0054).
    pub legacy_sigops: usize,
    /// Index and fault of the first input with a fault.
    pub fault: Option<(usize, InputFault)>,
}

/// A fault of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputFault {
    ScriptUnknown,
    WitnessUndefined,
    ScriptsigMalformed(ScriptError),
    RedeemScriptMissing,
    /// The number of signature operations of the redeem script.
    RedeemScriptSigops(usize),
}

/// The checks of Core's `ValidateInputsStandardness`, in Core's order.
pub const INPUT_CHECKS: &[Check<InputFacts, PolicyRule>] = &[
    Check { rule: PolicyRule::InputLegacySigops, holds: |tx| tx.legacy_sigops <= MAX_TX_LEGACY_SIGOPS },
    Check {
        rule: PolicyRule::InputScriptUnknown,
        holds: |tx| !matches!(tx.fault, Some((_, InputFault::ScriptUnknown))),
    },
    Check {
        rule: PolicyRule::InputWitnessUndefined,
        holds: |tx| !matches!(tx.fault, Some((_, InputFault::WitnessUndefined))),
    },
    Check {
        rule: PolicyRule::InputScriptsigMalformed,
        holds: |tx| !matches!(tx.fault, Some((_, InputFault::ScriptsigMalformed(_)))),
    },
    Check {
        rule: PolicyRule::InputRedeemScriptMissing,
        holds: |tx| !matches!(tx.fault, Some((_, InputFault::RedeemScriptMissing))),
    },
    Check {
        rule: PolicyRule::InputRedeemScriptSigops,
        holds: |tx| !matches!(tx.fault, Some((_, InputFault::RedeemScriptSigops(_)))),
    },
];

/// Checks the inputs of a transaction that is standard by itself.
pub fn check_inputs_standard(context: &TxContext<'_>) -> Result<(), Rejection> {
    let facts = input_facts(context);
    let Some(rule) = first_broken(INPUT_CHECKS, &facts) else { return Ok(()) };
    let message = match facts.fault {
        _ if rule == PolicyRule::InputLegacySigops => "non-witness sigops exceed bip54 limit".to_owned(),
        Some((input, InputFault::ScriptUnknown)) => format!("input {input} script unknown"),
        Some((input, InputFault::WitnessUndefined)) => format!("input {input} witness program is undefined"),
        Some((input, InputFault::ScriptsigMalformed(error))) => {
            format!("p2sh scriptsig malformed (input {input}: {})", error.text())
        }
        Some((input, InputFault::RedeemScriptMissing)) => format!("input {input} P2SH redeemscript missing"),
        Some((input, InputFault::RedeemScriptSigops(count))) => {
            format!("p2sh redeemscript sigops exceed limit (input {input}: {count} > {MAX_P2SH_SIGOPS})")
        }
        None => String::new(),
    };
    Err(Rejection::with_message(rule, message))
}

/// Makes one pass over the inputs.
pub fn input_facts(context: &TxContext<'_>) -> InputFacts {
    let (mut legacy_sigops, mut fault) = (0, None);
    for (index, input) in context.tx().inputs().enumerate() {
        let spent = context.spent(index).script_pubkey;
        legacy_sigops += legacy_sigop_count(input.script_sig, true);
        legacy_sigops +=
            if is_p2sh(spent) { p2sh_sigop_count(input.script_sig, spent) } else { legacy_sigop_count(spent, true) };
        fault = fault.or_else(|| input_fault(context, index).map(|fault| (index, fault)));
    }
    InputFacts { legacy_sigops, fault }
}

fn input_fault(context: &TxContext<'_>, index: usize) -> Option<InputFault> {
    match solve(context.spent(index).script_pubkey) {
        TxoutType::Nonstandard => Some(InputFault::ScriptUnknown),
        TxoutType::WitnessUnknown { .. } => Some(InputFault::WitnessUndefined),
        TxoutType::ScriptHash(_) => match redeem_script(context, index) {
            Err(error) => Some(InputFault::ScriptsigMalformed(error)),
            Ok(None) => Some(InputFault::RedeemScriptMissing),
            Ok(Some(script)) => {
                let count = legacy_sigop_count(&script, true);
                (count > MAX_P2SH_SIGOPS).then_some(InputFault::RedeemScriptSigops(count))
            }
        },
        _ => None,
    }
}

/// Whether an input spends a witness program, native or in P2SH, other than pay-to-anchor: without a witness, its
/// scripts may fail because the witness was removed. Core's `SpendsNonAnchorWitnessProg`.
pub fn spends_witness_program(context: &TxContext<'_>) -> bool {
    (0..context.tx().input_count()).any(|index| {
        let spent = context.spent(index).script_pubkey;
        match witness_program(spent) {
            Some(program) => !program.is_pay_to_anchor(),
            None if is_p2sh(spent) => {
                let script = redeem_script(context, index).ok().flatten();
                script.is_some_and(|script| witness_program(&script).is_some())
            }
            None => false,
        }
    })
}
