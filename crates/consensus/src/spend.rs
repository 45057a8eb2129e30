//! The rules about one transaction and the coins it spends, shared by blocks and a mempool.
//!
//! Input: a transaction, its coins in the order of its inputs, and the height of the block that has or may have it.
//! Output: its values, or the first rule it breaks; its cost in signature operations. Core's `CheckTxInputs` and
//! `GetTransactionSigOpCost` (consensus/tx_verify.cpp). Relative locks are in [`crate::sequence`], absolute ones in
//! [`crate::tx::is_final`]. Pure.

use crate::debug_message::Detail;
use crate::limits::{COINBASE_MATURITY, WITNESS_SCALE_FACTOR};
use crate::rule::{Check, Rule, first_broken};
use crate::tx::value_out;
use crate::view::Coin;
use lydian_primitives::{Amount, Height, Tx};
use lydian_script::{Flags, p2sh_sigop_count, transaction_legacy_sigop_count, witness_sigop_count};

/// The facts about a transaction and its coins.
#[derive(Clone, Copy, Debug)]
pub struct SpendFacts {
    /// Index of the first input without a coin.
    pub missing_input: Option<usize>,
    /// Index and fault of the first input with a fault.
    pub input_fault: Option<(usize, InputFault)>,
    pub value_in: Amount,
    pub value_out: Amount,
}

/// A fault of an input that has its coin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputFault {
    Immature,
    ValueOutOfRange,
}

/// The checks of Core's `CheckTxInputs`, in Core's order.
///
/// Core's `bad-txns-fee-outofrange` is left out: a comment in Core proves that it is unreachable.
pub const SPEND_CHECKS: &[Check<SpendFacts>] = &[
    Check { rule: Rule::TxInputsMissingorspent, holds: |tx| tx.missing_input.is_none() },
    Check { rule: Rule::TxPrematureSpendOfCoinbase, holds: |tx| fault(tx) != Some(InputFault::Immature) },
    Check { rule: Rule::TxInputvaluesOutofrange, holds: |tx| fault(tx) != Some(InputFault::ValueOutOfRange) },
    Check { rule: Rule::TxInBelowout, holds: |tx| tx.value_in >= tx.value_out },
];

fn fault(tx: &SpendFacts) -> Option<InputFault> {
    tx.input_fault.map(|(_, fault)| fault)
}

/// The values of a transaction that breaks none of [`SPEND_CHECKS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpentValues {
    pub value_in: Amount,
    pub value_out: Amount,
}

impl SpentValues {
    pub fn fee(self) -> Amount {
        Amount(self.value_in.0 - self.value_out.0)
    }
}

/// The rule that a transaction breaks with its coins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BrokenSpend {
    pub rule: Rule,
    /// Index of the input at fault, if it is one.
    pub input: Option<usize>,
    /// For Core's debug message.
    pub detail: Option<Detail>,
}

/// Checks a transaction that is not a coinbase and has passed [`crate::tx::check_transaction`]. `coins` has those of
/// its inputs up to the first that has none; `height` is that of the block. Core's `CheckTxInputs`.
pub fn check_spend(tx: Tx<'_>, coins: &[Coin], height: Height) -> Result<SpentValues, BrokenSpend> {
    let facts = spend_facts(tx, coins, height);
    let SpendFacts { value_in, value_out, .. } = facts;
    let Some(rule) = first_broken(SPEND_CHECKS, &facts) else { return Ok(SpentValues { value_in, value_out }) };
    let input = match rule {
        Rule::TxInputsMissingorspent => facts.missing_input,
        Rule::TxPrematureSpendOfCoinbase | Rule::TxInputvaluesOutofrange => facts.input_fault.map(|(input, _)| input),
        _ => None,
    };
    let detail = match rule {
        Rule::TxPrematureSpendOfCoinbase => {
            input.and_then(|input| coins.get(input)).map(|coin| Detail::Depth(depth(coin, height)))
        }
        Rule::TxInBelowout => Some(Detail::Values { value_in, value_out }),
        _ => None,
    };
    Err(BrokenSpend { rule, input, detail })
}

fn spend_facts(tx: Tx<'_>, coins: &[Coin], height: Height) -> SpendFacts {
    let missing_input = (coins.len() < tx.input_count()).then_some(coins.len());
    let (value_in, input_fault) = sum_inputs(coins, height);
    SpendFacts { missing_input, input_fault, value_in, value_out: value_out(tx) }
}

/// Number of blocks between a coin and the block that spends it.
fn depth(coin: &Coin, height: Height) -> i64 {
    i64::from(height.0) - i64::from(coin.height.0)
}

/// Sum of the coins up to the first that is immature or makes a value out of range: Core's loop in `CheckTxInputs`.
fn sum_inputs(coins: &[Coin], height: Height) -> (Amount, Option<(usize, InputFault)>) {
    let mut total = Amount(0);
    for (index, coin) in coins.iter().enumerate() {
        if coin.is_coinbase && depth(coin, height) < i64::from(COINBASE_MATURITY) {
            return (total, Some((index, InputFault::Immature)));
        }
        let sum = coin.value.is_in_money_range().then(|| Amount(total.0 + coin.value.0));
        match sum.filter(|sum| sum.is_in_money_range()) {
            Some(sum) => total = sum,
            None => return (total, Some((index, InputFault::ValueOutOfRange))),
        }
    }
    (total, None)
}

/// Core's `GetTransactionSigOpCost`. For a coinbase only legacy operations count.
pub fn sigops_cost(tx: Tx<'_>, coins: &[Coin], flags: Flags) -> usize {
    let mut cost = transaction_legacy_sigop_count(tx) * WITNESS_SCALE_FACTOR;
    for (input, coin) in tx.inputs().zip(coins) {
        if flags.contains(Flags::P2SH) {
            cost += p2sh_sigop_count(input.script_sig, &coin.script_pubkey) * WITNESS_SCALE_FACTOR;
        }
        cost += witness_sigop_count(input.script_sig, &coin.script_pubkey, &input.witness, flags);
    }
    cost
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::build::{MutInput, MutOutput, MutTx};
    use lydian_primitives::{OutPoint, Transaction, Txid};

    fn transaction(inputs: u32, value_out: i64) -> Transaction {
        let input = |vout| MutInput {
            prevout: OutPoint { txid: Txid([1; 32]), vout },
            script_sig: Vec::new(),
            sequence: 0,
            witness: Vec::new(),
        };
        let outputs = vec![MutOutput { value: Amount(value_out), script_pubkey: Vec::new() }];
        MutTx { version: 2, inputs: (0..inputs).map(input).collect(), outputs, lock_time: 0 }.to_transaction().unwrap()
    }

    fn coin(value: i64, height: u32, is_coinbase: bool) -> Coin {
        Coin { value: Amount(value), script_pubkey: Box::default(), height: Height(height), is_coinbase }
    }

    fn broken(inputs: u32, value_out: i64, coins: &[Coin]) -> Option<(Rule, Option<usize>)> {
        let tx = transaction(inputs, value_out);
        check_spend(tx.view(), coins, Height(200)).err().map(|broken| (broken.rule, broken.input))
    }

    #[test]
    fn the_first_rule_that_is_broken_is_named_with_its_input() {
        let (max, young) = (Amount::MAX_MONEY.0, coin(5, 101, true));
        let good = coin(5, 100, true);
        assert_eq!(broken(2, 10, &[good.clone(), coin(5, 199, false)]), None);
        // Maturity: 100 blocks.
        let premature = broken(2, 99, &[good.clone(), young.clone()]);
        assert_eq!(premature, Some((Rule::TxPrematureSpendOfCoinbase, Some(1))));
        let missing = broken(2, 10, &[young]);
        assert_eq!(missing, Some((Rule::TxInputsMissingorspent, Some(1))), "Core looks for all coins first");
        let range = broken(3, 1, &[good.clone(), coin(max, 1, false), coin(-1, 1, false)]);
        assert_eq!(range, Some((Rule::TxInputvaluesOutofrange, Some(1))), "5 + MAX_MONEY");
        assert_eq!(broken(1, 6, &[good]), Some((Rule::TxInBelowout, None)));
    }

    #[test]
    fn values_and_details() {
        let tx = transaction(2, 7);
        let coins = [coin(5, 1, false), coin(6, 1, false)];
        let values = check_spend(tx.view(), &coins, Height(2)).unwrap();
        assert_eq!((values.value_in, values.value_out, values.fee()), (Amount(11), Amount(7), Amount(4)));
        let detail = check_spend(tx.view(), &[coin(5, 150, true), coin(6, 1, false)], Height(249)).unwrap_err().detail;
        assert_eq!(detail, Some(Detail::Depth(99)));
        let detail = check_spend(tx.view(), &[coin(3, 1, false), coin(3, 1, false)], Height(2)).unwrap_err().detail;
        assert_eq!(detail, Some(Detail::Values { value_in: Amount(6), value_out: Amount(7) }));
    }
}
