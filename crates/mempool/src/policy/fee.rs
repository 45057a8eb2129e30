//! What a transaction must pay: Core's `PreCheckEphemeralTx` (policy/ephemeral_policy.cpp), the limit of signature
//! operations in `PreChecks`, and `CheckFeeRate` (validation.cpp).
//!
//! Input: [`FeeFacts`] of a transaction, or the size and fee of a package. Output: the first broken rule. Pure.

use super::fee_rate::FeeRate;
use super::limits::MAX_STANDARD_TX_SIGOPS_COST;
use super::rejection::Rejection;
use super::rule::PolicyRule;
use lydian_consensus::{Check, first_broken};
use lydian_primitives::Amount;

/// The facts about a transaction's fee and signature operations.
#[derive(Clone, Copy, Debug)]
pub struct FeeFacts {
    /// Whether an output is dust. False if nonstandard transactions are accepted.
    pub has_dust: bool,
    /// Inputs less outputs.
    pub base_fee: Amount,
    /// The base fee with the change by `prioritisetransaction`.
    pub modified_fee: Amount,
    pub sigops_cost: usize,
}

/// The checks of Core's `PreChecks` between those of the coins and `CheckFeeRate`, in Core's order.
pub const FEE_CHECKS: &[Check<FeeFacts, PolicyRule>] = &[
    Check {
        rule: PolicyRule::DustFee,
        holds: |tx| !tx.has_dust || (tx.base_fee == Amount(0) && tx.modified_fee == Amount(0)),
    },
    Check { rule: PolicyRule::TooManySigops, holds: |tx| tx.sigops_cost <= MAX_STANDARD_TX_SIGOPS_COST },
];

/// Checks the fee of dust and the cost of signature operations.
pub fn check_fee(facts: &FeeFacts) -> Result<(), Rejection> {
    let Some(rule) = first_broken(FEE_CHECKS, facts) else { return Ok(()) };
    let message = match rule {
        PolicyRule::DustFee => "tx with dust output must be 0-fee".to_owned(),
        _ => facts.sigops_cost.to_string(),
    };
    Err(Rejection::with_message(rule, message))
}

/// The facts about the fee rate of a transaction or a package. All in satoshi.
#[derive(Clone, Copy, Debug)]
pub struct FeeRateFacts {
    pub modified_fee: i64,
    /// What the mempool's minimum fee requires; nothing if it is zero.
    pub mempool_min_fee: i64,
    /// What `-minrelaytxfee` requires.
    pub min_relay_fee: i64,
}

/// The checks of Core's `CheckFeeRate`, in Core's order.
pub const FEE_RATE_CHECKS: &[Check<FeeRateFacts, PolicyRule>] = &[
    Check {
        rule: PolicyRule::MempoolMinFee,
        holds: |fee| fee.mempool_min_fee <= 0 || fee.modified_fee >= fee.mempool_min_fee,
    },
    Check { rule: PolicyRule::MinRelayFee, holds: |fee| fee.modified_fee >= fee.min_relay_fee },
];

/// Checks the modified fee of `vsize` virtual bytes, of one transaction or a package: Core's `CheckFeeRate`.
pub fn check_fee_rate(
    vsize: i64,
    modified_fee: Amount,
    mempool_min_fee: FeeRate,
    min_relay_fee: FeeRate,
) -> Result<(), Rejection> {
    let facts = FeeRateFacts {
        modified_fee: modified_fee.0,
        mempool_min_fee: mempool_min_fee.fee(vsize),
        min_relay_fee: min_relay_fee.fee(vsize),
    };
    let Some(rule) = first_broken(FEE_RATE_CHECKS, &facts) else { return Ok(()) };
    let required = if rule == PolicyRule::MempoolMinFee { facts.mempool_min_fee } else { facts.min_relay_fee };
    Err(Rejection::with_message(rule, format!("{} < {required}", facts.modified_fee)))
}
