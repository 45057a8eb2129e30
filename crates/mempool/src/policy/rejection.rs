//! Why a transaction or a package is not accepted: the first broken rule, with Core's texts.
//!
//! Input: a rule and what its message names. Output: Core's reject reason, debug message and `ToString`
//! (`TxValidationState`, consensus/validation.h). No decision depends on a text. Cost: one string per rejection.

use super::rule::{PolicyRule, ValidationResult};
use lydian_consensus::Rule;
use lydian_script::ScriptError;
use std::fmt;

/// The rule that decided.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BrokenRule {
    /// The transaction is invalid: `CheckTransaction` or `CheckTxInputs`.
    Consensus(Rule),
    Policy(PolicyRule),
}

/// A transaction or a package that is not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    pub rule: BrokenRule,
    /// What relay does with it. For the rules of policy usually that of the table.
    pub result: ValidationResult,
    /// Why the script failed ([`PolicyRule::ScriptVerify`]).
    pub script_error: Option<ScriptError>,
    /// Whether a sibling was to be replaced: Core adds that to the reasons of replacement.
    pub is_sibling_eviction: bool,
    /// Core's debug message; often empty.
    pub debug_message: String,
}

impl Rejection {
    pub fn of(rule: PolicyRule) -> Rejection {
        Rejection::with_message(rule, String::new())
    }

    pub fn with_message(rule: PolicyRule, debug_message: String) -> Rejection {
        let result = rule.info().result;
        let rule = BrokenRule::Policy(rule);
        Rejection { rule, result, script_error: None, is_sibling_eviction: false, debug_message }
    }

    /// A broken rule of `CheckTransaction` or `CheckTxInputs`.
    pub fn of_consensus(rule: Rule, debug_message: String) -> Rejection {
        let result = match rule {
            Rule::TxInputsMissingorspent => ValidationResult::MissingInputs,
            Rule::TxPrematureSpendOfCoinbase => ValidationResult::PrematureSpend,
            _ => ValidationResult::Consensus,
        };
        let rule = BrokenRule::Consensus(rule);
        Rejection { rule, result, script_error: None, is_sibling_eviction: false, debug_message }
    }

    /// Core's `GetRejectReason`.
    pub fn reject_reason(&self) -> String {
        let reason = match self.rule {
            BrokenRule::Consensus(rule) => rule.info().reject_reason,
            BrokenRule::Policy(rule) => rule.info().reject_reason,
        };
        match self.script_error {
            Some(error) => format!("{reason} ({})", error.text()),
            None if self.is_sibling_eviction => format!("{reason} (including sibling eviction)"),
            None => reason.to_owned(),
        }
    }

    /// Core's `ToString`: the reason and the debug message.
    pub fn state(&self) -> String {
        match &self.debug_message[..] {
            "" => self.reject_reason(),
            message => format!("{}, {message}", self.reject_reason()),
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.state())
    }
}

impl std::error::Error for Rejection {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_put_together_as_in_core() {
        assert_eq!(Rejection::of(PolicyRule::TxSize).state(), "tx-size");
        let fee = Rejection::with_message(PolicyRule::ReplacementFee, "1 < 2".to_owned());
        assert_eq!(fee.state(), "insufficient fee, 1 < 2");
        let sibling = Rejection { is_sibling_eviction: true, ..fee };
        assert_eq!(sibling.to_string(), "insufficient fee (including sibling eviction), 1 < 2");
        let script =
            Rejection { script_error: Some(ScriptError::MinimalIf), ..Rejection::of(PolicyRule::ScriptVerify) };
        assert_eq!(script.state(), "mempool-script-verify-flag-failed (OP_IF/NOTIF argument must be minimal)");
    }

    #[test]
    fn consensus_rules_have_cores_results() {
        let result = |rule| Rejection::of_consensus(rule, String::new()).result;
        assert_eq!(result(Rule::TxInputsMissingorspent), ValidationResult::MissingInputs);
        assert_eq!(result(Rule::TxPrematureSpendOfCoinbase), ValidationResult::PrematureSpend);
        assert_eq!(result(Rule::TxInBelowout), ValidationResult::Consensus);
    }
}
