//! Whether a transaction's witnesses are standard: Core's `IsWitnessStandard` (policy/policy.cpp).
//!
//! Input: a transaction with the outputs it spends. Output: the first broken rule, which is that of the first input
//! with a fault. Pure. Cost: one pass over the elements; a scriptSig that spends P2SH is run. No script is verified.

use super::limits::{
    MAX_STANDARD_P2WSH_SCRIPT_SIZE, MAX_STANDARD_P2WSH_STACK_ITEM_SIZE, MAX_STANDARD_P2WSH_STACK_ITEMS,
    MAX_STANDARD_TAPSCRIPT_STACK_ITEM_SIZE,
};
use super::rejection::Rejection;
use super::rule::PolicyRule;
use lydian_consensus::{Check, first_broken};
use lydian_primitives::Witness;
use lydian_script::{TxContext, WitnessProgram, is_p2sh, redeem_script, witness_program};

/// First byte of an annex (BIP-0341).
const ANNEX_TAG: u8 = 0x50;
/// The bits of a control block's first byte that hold the leaf version (BIP-0341).
const LEAF_MASK: u8 = 0xfe;
/// The leaf version of tapscript (BIP-0342).
const LEAF_TAPSCRIPT: u8 = 0xc0;

/// The fault of the first input whose witness has one.
#[derive(Clone, Copy, Debug)]
pub struct WitnessFacts {
    pub fault: Option<WitnessFault>,
}

/// A fault of a witness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WitnessFault {
    Anchor,
    NoProgram,
    ScriptSize,
    Items,
    ItemSize,
    Annex,
    ControlEmpty,
    TapscriptItemSize,
}

/// The checks of Core's `IsWitnessStandard`. At most one fails.
pub const WITNESS_CHECKS: &[Check<WitnessFacts, PolicyRule>] = &[
    Check { rule: PolicyRule::WitnessAnchor, holds: |tx| tx.fault != Some(WitnessFault::Anchor) },
    Check { rule: PolicyRule::WitnessUnexpected, holds: |tx| tx.fault != Some(WitnessFault::NoProgram) },
    Check { rule: PolicyRule::WitnessScriptSize, holds: |tx| tx.fault != Some(WitnessFault::ScriptSize) },
    Check { rule: PolicyRule::WitnessItems, holds: |tx| tx.fault != Some(WitnessFault::Items) },
    Check { rule: PolicyRule::WitnessItemSize, holds: |tx| tx.fault != Some(WitnessFault::ItemSize) },
    Check { rule: PolicyRule::WitnessAnnex, holds: |tx| tx.fault != Some(WitnessFault::Annex) },
    Check { rule: PolicyRule::WitnessControlEmpty, holds: |tx| tx.fault != Some(WitnessFault::ControlEmpty) },
    Check { rule: PolicyRule::WitnessTapscriptItemSize, holds: |tx| tx.fault != Some(WitnessFault::TapscriptItemSize) },
];

/// Checks the witnesses of a transaction whose inputs are standard.
pub fn check_witness_standard(context: &TxContext<'_>) -> Result<(), Rejection> {
    let broken = first_broken(WITNESS_CHECKS, &witness_facts(context));
    broken.map_or(Ok(()), |rule| Err(Rejection::of(rule)))
}

pub fn witness_facts(context: &TxContext<'_>) -> WitnessFacts {
    let mut inputs = context.tx().inputs().enumerate().filter(|(_, input)| !input.witness.is_empty());
    WitnessFacts { fault: inputs.find_map(|(index, input)| witness_fault(context, index, &input.witness)) }
}

/// The fault of a witness that has an element.
fn witness_fault(context: &TxContext<'_>, index: usize, witness: &Witness<'_>) -> Option<WitnessFault> {
    let spent = context.spent(index).script_pubkey;
    if is_p2sh(spent) {
        // A scriptSig with an error or without a redeem script is not standard in the first place.
        let script = redeem_script(context, index).ok().flatten().unwrap_or_default();
        let Some(program) = witness_program(&script) else { return Some(WitnessFault::NoProgram) };
        return if is_p2wsh(&program) { p2wsh_fault(witness) } else { None };
    }
    match witness_program(spent) {
        None => Some(WitnessFault::NoProgram),
        Some(program) if program.is_pay_to_anchor() => Some(WitnessFault::Anchor),
        Some(program) if is_p2wsh(&program) => p2wsh_fault(witness),
        Some(program) if program.version == 1 && program.program.len() == 32 => taproot_fault(witness),
        Some(_) => None,
    }
}

fn is_p2wsh(program: &WitnessProgram<'_>) -> bool {
    program.version == 0 && program.program.len() == 32
}

fn p2wsh_fault(witness: &Witness<'_>) -> Option<WitnessFault> {
    let item_count = witness.len().saturating_sub(1);
    if witness.iter().last().is_some_and(|script| script.len() > MAX_STANDARD_P2WSH_SCRIPT_SIZE) {
        Some(WitnessFault::ScriptSize)
    } else if item_count > MAX_STANDARD_P2WSH_STACK_ITEMS {
        Some(WitnessFault::Items)
    } else {
        let mut items = witness.iter().take(item_count);
        items.any(|item| item.len() > MAX_STANDARD_P2WSH_STACK_ITEM_SIZE).then_some(WitnessFault::ItemSize)
    }
}

fn taproot_fault(witness: &Witness<'_>) -> Option<WitnessFault> {
    // With one element the key is spent, to which no rule applies.
    let item_count = witness.len().checked_sub(2)?;
    let last = witness.iter().last()?;
    match last.first() {
        Some(&ANNEX_TAG) => Some(WitnessFault::Annex),
        None => Some(WitnessFault::ControlEmpty),
        Some(version) if version & LEAF_MASK == LEAF_TAPSCRIPT => {
            let mut items = witness.iter().take(item_count);
            let is_long = |item: &[u8]| item.len() > MAX_STANDARD_TAPSCRIPT_STACK_ITEM_SIZE;
            items.any(is_long).then_some(WitnessFault::TapscriptItemSize)
        }
        Some(_) => None,
    }
}
