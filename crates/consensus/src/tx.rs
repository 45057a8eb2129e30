//! Rules about a single transaction. Input: a transaction view. Output: the first rule it breaks.
//!
//! One pass gathers [`TxFacts`], to which a table of checks is applied. Core's `CheckTransaction`
//! (consensus/tx_check.cpp).

use crate::limits::{
    COINBASE_SCRIPT_SIG_SIZE_MAX, COINBASE_SCRIPT_SIG_SIZE_MIN, LOCKTIME_THRESHOLD, MAX_BLOCK_WEIGHT,
    WITNESS_SCALE_FACTOR,
};
use crate::rule::{Check, Rule, first_broken};
use lydian_primitives::{Amount, Height, OutPoint, Tx};

/// The facts that one pass over a transaction gathers.
#[derive(Clone, Copy, Debug)]
pub struct TxFacts {
    pub input_count: usize,
    pub output_count: usize,
    pub base_size: usize,
    /// The fault of the first output with a fault; Core stops there.
    pub output_fault: Option<OutputFault>,
    pub has_duplicate_input: bool,
    pub has_null_prevout: bool,
    /// Size of the scriptSig in bytes if the transaction is a coinbase.
    pub coinbase_script_sig_size: Option<usize>,
}

/// A fault of an output's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputFault {
    Negative,
    TooLarge,
    TotalTooLarge,
}

/// The checks of Core's `CheckTransaction`, in Core's order.
pub const TX_CHECKS: &[Check<TxFacts>] = &[
    Check { rule: Rule::TxVinEmpty, holds: |tx| tx.input_count != 0 },
    Check { rule: Rule::TxVoutEmpty, holds: |tx| tx.output_count != 0 },
    Check { rule: Rule::TxOversize, holds: |tx| tx.base_size * WITNESS_SCALE_FACTOR <= MAX_BLOCK_WEIGHT },
    Check { rule: Rule::TxVoutNegative, holds: |tx| tx.output_fault != Some(OutputFault::Negative) },
    Check { rule: Rule::TxVoutToolarge, holds: |tx| tx.output_fault != Some(OutputFault::TooLarge) },
    Check { rule: Rule::TxTxouttotalToolarge, holds: |tx| tx.output_fault != Some(OutputFault::TotalTooLarge) },
    Check { rule: Rule::TxInputsDuplicate, holds: |tx| !tx.has_duplicate_input },
    Check { rule: Rule::TxCbLength, holds: |tx| tx.coinbase_script_sig_size.is_none_or(is_coinbase_script_sig_size) },
    Check { rule: Rule::TxPrevoutNull, holds: |tx| tx.coinbase_script_sig_size.is_some() || !tx.has_null_prevout },
];

fn is_coinbase_script_sig_size(size: usize) -> bool {
    (COINBASE_SCRIPT_SIG_SIZE_MIN..=COINBASE_SCRIPT_SIG_SIZE_MAX).contains(&size)
}

/// Checks one transaction by itself.
pub fn check_transaction(tx: Tx<'_>) -> Result<(), Rule> {
    first_broken(TX_CHECKS, &tx_facts(tx)).map_or(Ok(()), Err)
}

/// Makes one pass over the inputs and one over the outputs. The search for duplicates sorts the prevouts (n log n).
pub fn tx_facts(tx: Tx<'_>) -> TxFacts {
    let has_null_prevout = tx.inputs().any(|input| input.prevout.is_null());
    TxFacts {
        input_count: tx.input_count(),
        output_count: tx.output_count(),
        base_size: tx.base_size(),
        output_fault: first_output_fault(tx),
        has_duplicate_input: has_duplicate_input(tx),
        has_null_prevout,
        coinbase_script_sig_size: tx.is_coinbase().then(|| tx.input(0).script_sig.len()),
    }
}

fn first_output_fault(tx: Tx<'_>) -> Option<OutputFault> {
    let mut total = Amount(0);
    for output in tx.outputs() {
        if output.value < Amount(0) {
            return Some(OutputFault::Negative);
        }
        if output.value > Amount::MAX_MONEY {
            return Some(OutputFault::TooLarge);
        }
        // Both terms are at most MAX_MONEY, far below half of the maximum, so the sum does not overflow.
        total = Amount(total.0 + output.value.0);
        if !total.is_in_money_range() {
            return Some(OutputFault::TotalTooLarge);
        }
    }
    None
}

fn has_duplicate_input(tx: Tx<'_>) -> bool {
    if tx.input_count() < 2 {
        return false;
    }
    let mut prevouts: Vec<OutPoint> = tx.inputs().map(|input| input.prevout).collect();
    prevouts.sort_unstable();
    prevouts.windows(2).any(|pair| pair[0] == pair[1])
}

/// Sum of the outputs of a transaction that has passed [`check_transaction`], which ensures that the sum is in range.
pub fn value_out(tx: Tx<'_>) -> Amount {
    Amount(tx.outputs().map(|output| output.value.0).sum())
}

/// Whether a block at `height` may have the transaction, as far as its lock time decides that. `time` is the parent's
/// median time past once BIP-0113 is active, before that the block's own time. Core's `IsFinalTx`.
pub fn is_final(tx: Tx<'_>, height: Height, time: i64) -> bool {
    let lock_time = tx.lock_time();
    let limit = if lock_time < LOCKTIME_THRESHOLD { i64::from(height.0) } else { time };
    lock_time == 0 || i64::from(lock_time) < limit || tx.inputs().all(|input| input.sequence == u32::MAX)
}
