//! The text that Bitcoin Core appends to a reject reason in its log: the debug message of a `BlockValidationState`.
//!
//! Input: a violation and the block that breaks the rule. Output: Core's text. No decision depends on it.

use crate::plain::Rejected;
use crate::rule::{Rule, Violation};
use lydian_primitives::{Amount, Block, BlockHash, Tx};

/// Details of a violation that cannot be derived from the block alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// Number of blocks between a coinbase and the block that spends it.
    Depth(i64),
    /// Total input and output values of a transaction.
    Values { value_in: Amount, value_out: Amount },
    /// The value that a coinbase pays and the maximum it may pay.
    Pays { actual: Amount, limit: Amount },
}

impl Violation {
    /// Core's `GetDebugMessage`. Header rules need no block.
    pub fn debug_message(&self, block: Option<&Block>) -> String {
        let tx = self.tx.zip(block).filter(|(index, block)| *index < block.tx_count());
        let tx = tx.map(|(index, block)| block.tx(index));
        let txid = || tx.map(|tx| tx.txid().to_string()).unwrap_or_default();
        match self.rule {
            Rule::HighHash => "proof of work failed".to_owned(),
            Rule::BadSignetBlksig => "signet block signature validation failure".to_owned(),
            Rule::BadTxnmrklroot => "hashMerkleRoot mismatch".to_owned(),
            Rule::BadTxnsDuplicate => "duplicate transaction".to_owned(),
            Rule::BlockEmpty | Rule::BlockTxCount | Rule::BlockBaseSize => "size limits failed".to_owned(),
            Rule::BadCbMissing => "first tx is not coinbase".to_owned(),
            Rule::BadCbMultiple => "more than one coinbase".to_owned(),
            Rule::TxVinEmpty
            | Rule::TxVoutEmpty
            | Rule::TxOversize
            | Rule::TxVoutNegative
            | Rule::TxVoutToolarge
            | Rule::TxTxouttotalToolarge
            | Rule::TxInputsDuplicate
            | Rule::TxCbLength
            | Rule::TxPrevoutNull => format!("Transaction check failed (tx hash {}) ", txid()),
            Rule::BlockLegacySigops => "out-of-bounds SigOpCount".to_owned(),
            Rule::PrevBlkNotFound | Rule::BadPrevblk => String::new(),
            Rule::BadDiffbits => "incorrect proof of work".to_owned(),
            Rule::TimeTooOld => "block's timestamp is too early".to_owned(),
            Rule::TimeTimewarpAttack => "block's timestamp is too early on diff adjustment block".to_owned(),
            Rule::TimeTooNew => "block timestamp too far in the future".to_owned(),
            Rule::BadVersion => format!("rejected nVersion=0x{:08x} block", self.version.unwrap_or(0)),
            Rule::TxNonfinal => "non-final transaction".to_owned(),
            Rule::BadCbHeight => "block height mismatch in coinbase".to_owned(),
            Rule::BadWitnessNonceSize => "CheckWitnessMalleation : invalid witness reserved value size".to_owned(),
            Rule::BadWitnessMerkleMatch => "CheckWitnessMalleation : witness merkle commitment mismatch".to_owned(),
            Rule::UnexpectedWitness => "CheckWitnessMalleation : unexpected witness data found".to_owned(),
            Rule::BadBlkWeight => "ContextualCheckBlock : weight limit failed".to_owned(),
            Rule::Bip30 => "tried to overwrite transaction".to_owned(),
            Rule::TxInputsMissingorspent
            | Rule::TxPrematureSpendOfCoinbase
            | Rule::TxInputvaluesOutofrange
            | Rule::TxInBelowout => format!("{} in transaction {}", spend_message(self.rule, self.detail), txid()),
            Rule::AccumulatedFeeOutofrange => "accumulated fee in the block out of range".to_owned(),
            Rule::TxSequenceLocks => format!("contains a non-BIP68-final transaction {}", txid()),
            Rule::BlockSigopsCost => "too many sigops".to_owned(),
            Rule::BadCbAmount => {
                let (actual, limit) = match self.detail {
                    Some(Detail::Pays { actual, limit }) => (actual.0, limit.0),
                    _ => Default::default(),
                };
                format!("coinbase pays too much (actual={actual} vs limit={limit})")
            }
            Rule::ScriptVerify => {
                let input = self.input.unwrap_or(0);
                let tx = tx.filter(|tx| input < tx.input_count());
                tx.map_or_else(|| format!("input {input}"), |tx| input_message(tx, input))
            }
        }
    }

    /// Core's `ValidationState::ToString`.
    pub fn state(&self, block: Option<&Block>) -> String {
        let (reason, message) = (self.reject_reason(), self.debug_message(block));
        if message.is_empty() { reason } else { format!("{reason}, {message}") }
    }
}

impl Rejected {
    /// Core's `ValidationState::ToString` for a block or a header with this hash.
    pub fn state(&self, hash: &BlockHash, block: Option<&Block>) -> String {
        match self {
            Rejected::DuplicateInvalid => {
                format!("{}, block {hash} was previously marked invalid", self.reason())
            }
            Rejected::Duplicate => self.reason(),
            Rejected::Violation(violation) => violation.state(block),
        }
    }
}

/// Core's debug message for a broken rule of [`SPEND_CHECKS`](crate::spend::SPEND_CHECKS) (`CheckTxInputs`). Empty for
/// other rules.
pub fn spend_message(rule: Rule, detail: Option<Detail>) -> String {
    match (rule, detail) {
        (Rule::TxInputsMissingorspent, _) => "CheckTxInputs: inputs missing/spent".to_owned(),
        (Rule::TxPrematureSpendOfCoinbase, Some(Detail::Depth(depth))) => {
            format!("tried to spend coinbase at depth {depth}")
        }
        (Rule::TxInBelowout, Some(Detail::Values { value_in, value_out })) => {
            format!("value in ({}) < value out ({})", format_money(value_in), format_money(value_out))
        }
        _ => String::new(),
    }
}

/// Core's debug message for an input whose scripts fail (`CScriptCheck`).
///
/// Panics if there is no such input.
pub fn input_message(tx: Tx<'_>, input: usize) -> String {
    let prevout = tx.input(input).prevout;
    format!("input {input} of {} (wtxid {}), spending {prevout}", tx.txid(), tx.wtxid())
}

/// Core's `FormatMoney`: at least two decimals.
pub fn format_money(amount: Amount) -> String {
    let (unit, sign) = (Amount::COIN.0.unsigned_abs(), if amount.0 < 0 { "-" } else { "" });
    let value = amount.0.unsigned_abs();
    let decimals = format!("{:08}", value % unit);
    let kept = decimals.trim_end_matches('0').len().max(2);
    format!("{sign}{}.{}", value / unit, &decimals[..kept])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_as_core_does() {
        let shown = [0, 1, 50, 100_000_000, 150_000_000, 2_100_000_012_345_670, -20_000_000];
        let expected = ["0.00", "0.00000001", "0.0000005", "1.00", "1.50", "21000000.1234567", "-0.20"];
        assert_eq!(shown.map(|amount| format_money(Amount(amount))), expected);
    }

    #[test]
    fn a_state_is_the_reason_and_the_message() {
        let version = Violation { version: Some(2), ..Violation::of(Rule::BadVersion) };
        assert_eq!(version.state(None), "bad-version(0x00000002), rejected nVersion=0x00000002 block");
        assert_eq!(Violation::of(Rule::BadPrevblk).state(None), "bad-prevblk");
        let hash = BlockHash::ZERO;
        let known = format!("duplicate-invalid, block {hash} was previously marked invalid");
        assert_eq!(Rejected::DuplicateInvalid.state(&hash, None), known);
    }
}
