//! Whether a transaction is standard by itself: Core's `IsStandardTx` and `IsStandard` (policy/policy.cpp).
//!
//! Input: a transaction and the settings. Output: the first broken rule. One pass over inputs and outputs gathers
//! [`StandardFacts`], to which [`STANDARD_CHECKS`] is applied. Core stops at the first input or output with a fault, so
//! the fact is that fault. Pure; cost linear in the transaction's size.

use super::dust::dust_outputs;
use super::limits::{
    BARE_MULTISIG_KEYS_MAX, MAX_DUST_OUTPUTS_PER_TX, MAX_STANDARD_SCRIPTSIG_SIZE, MAX_STANDARD_TX_WEIGHT,
    TX_MAX_STANDARD_VERSION, TX_MIN_STANDARD_VERSION,
};
use super::rule::PolicyRule;
use super::settings::Settings;
use lydian_consensus::Check;
use lydian_descriptor::{TxoutType, solve};
use lydian_primitives::Tx;
use lydian_script::is_push_only;

/// The facts about a transaction alone.
#[derive(Clone, Copy, Debug)]
pub struct StandardFacts {
    pub version: u32,
    pub weight: usize,
    /// The fault of the first input with a fault.
    pub input_fault: Option<InputFault>,
    /// The fault of the first output with a fault.
    pub output_fault: Option<OutputFault>,
    pub dust_count: usize,
}

/// A fault of a scriptSig.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputFault {
    Size,
    NotPushOnly,
}

/// A fault of an output's script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputFault {
    UnknownType,
    MultisigKeys,
    Datacarrier,
    BareMultisig,
}

/// The checks of Core's `IsStandardTx`, in Core's order.
pub const STANDARD_CHECKS: &[Check<StandardFacts, PolicyRule>] = &[
    Check {
        rule: PolicyRule::Version,
        holds: |tx| (TX_MIN_STANDARD_VERSION..=TX_MAX_STANDARD_VERSION).contains(&tx.version),
    },
    Check { rule: PolicyRule::TxSize, holds: |tx| tx.weight <= MAX_STANDARD_TX_WEIGHT },
    Check { rule: PolicyRule::ScriptsigSize, holds: |tx| tx.input_fault != Some(InputFault::Size) },
    Check { rule: PolicyRule::ScriptsigNotPushonly, holds: |tx| tx.input_fault != Some(InputFault::NotPushOnly) },
    Check { rule: PolicyRule::Scriptpubkey, holds: |tx| tx.output_fault != Some(OutputFault::UnknownType) },
    Check { rule: PolicyRule::MultisigKeys, holds: |tx| tx.output_fault != Some(OutputFault::MultisigKeys) },
    Check { rule: PolicyRule::Datacarrier, holds: |tx| tx.output_fault != Some(OutputFault::Datacarrier) },
    Check { rule: PolicyRule::BareMultisig, holds: |tx| tx.output_fault != Some(OutputFault::BareMultisig) },
    Check { rule: PolicyRule::DustOutputs, holds: |tx| tx.dust_count <= MAX_DUST_OUTPUTS_PER_TX },
];

/// Makes one pass over the inputs and one over the outputs.
pub fn standard_facts(tx: Tx<'_>, settings: &Settings) -> StandardFacts {
    StandardFacts {
        version: tx.version(),
        weight: tx.weight(),
        input_fault: tx.inputs().find_map(|input| script_sig_fault(input.script_sig)),
        output_fault: first_output_fault(tx, settings),
        dust_count: dust_outputs(tx, settings.dust_relay_fee).count(),
    }
}

fn script_sig_fault(script_sig: &[u8]) -> Option<InputFault> {
    if script_sig.len() > MAX_STANDARD_SCRIPTSIG_SIZE {
        Some(InputFault::Size)
    } else if !is_push_only(script_sig) {
        Some(InputFault::NotPushOnly)
    } else {
        None
    }
}

fn first_output_fault(tx: Tx<'_>, settings: &Settings) -> Option<OutputFault> {
    let mut datacarrier_bytes_left = settings.datacarrier_bytes_max.map_or(0, |max| max as usize);
    tx.outputs().find_map(|output| match solve(output.script_pubkey) {
        TxoutType::Nonstandard => Some(OutputFault::UnknownType),
        TxoutType::Multisig { keys, .. } if keys.len() > BARE_MULTISIG_KEYS_MAX => Some(OutputFault::MultisigKeys),
        TxoutType::Multisig { .. } => (!settings.permit_bare_multisig).then_some(OutputFault::BareMultisig),
        TxoutType::NullData => match datacarrier_bytes_left.checked_sub(output.script_pubkey.len()) {
            Some(left) => {
                datacarrier_bytes_left = left;
                None
            }
            None => Some(OutputFault::Datacarrier),
        },
        _ => None,
    })
}
