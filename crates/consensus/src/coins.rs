//! From [`CheckedBlock`] to [`FundedBlock`]: finds the output that every input spends.
//!
//! Input: a checked block, and views of the coins ([`CoinView`]) and of its ancestors. Output: the block with its spent
//! coins (its undo data), or the first violation. One pass over the inputs gathers facts, and [`SPEND_CHECKS`] is
//! applied to them. Core's `ConnectBlock` without scripts, `CheckTxInputs`, `SequenceLocks`, `GetTransactionSigOpCost`.
//! Pure.

use crate::block::CheckedBlock;
use crate::debug_message::Detail;
use crate::deployment::is_bip30_checked;
use crate::limits::{COINBASE_MATURITY, MAX_BLOCK_SIGOPS_COST, WITNESS_SCALE_FACTOR};
use crate::params::{Deployment, Params};
use crate::rule::{Check, Rule, Violation, first_broken};
use crate::sequence::{SequenceLock, sequence_lock};
use crate::subsidy::block_subsidy;
use crate::tx::value_out;
use crate::view::{Coin, CoinView, HeaderView};
use lydian_primitives::{Amount, Height, OutPoint, Tx, Txid};
use lydian_script::{Flags, is_unspendable, p2sh_sigop_count, transaction_legacy_sigop_count, witness_sigop_count};
use std::collections::{HashMap, HashSet};

/// A block in which every input has its coin and no rule about coins is broken. Owns its undo data.
#[derive(Clone, Debug)]
pub struct FundedBlock {
    checked: CheckedBlock,
    /// Spent coins in the order of the inputs, without the coinbase's.
    spent: Vec<Coin>,
    fees: Amount,
    sigops_cost: usize,
}

impl FundedBlock {
    pub fn checked(&self) -> &CheckedBlock {
        &self.checked
    }

    /// Spent coins in the order of the inputs, without the coinbase's.
    pub fn spent(&self) -> &[Coin] {
        &self.spent
    }

    pub fn fees(&self) -> Amount {
        self.fees
    }

    pub fn sigops_cost(&self) -> usize {
        self.sigops_cost
    }

    pub(crate) fn into_parts(self) -> (CheckedBlock, Vec<Coin>) {
        (self.checked, self.spent)
    }
}

/// The facts about one transaction once its coins are found, and about the block so far.
#[derive(Clone, Copy, Debug)]
pub struct SpendFacts {
    /// Index of the first input without a coin.
    pub missing_input: Option<usize>,
    /// Index and fault of the first input with a fault.
    pub input_fault: Option<(usize, InputFault)>,
    pub value_in: Amount,
    pub value_out: Amount,
    /// Fees of the block up to and including this transaction.
    pub block_fees: Amount,
    pub are_sequence_locks_met: bool,
    /// Signature operation cost of the block up to and including this transaction.
    pub block_sigops_cost: usize,
}

/// A fault of an input that has its coin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputFault {
    Immature,
    ValueOutOfRange,
}

/// The checks that Core's `ConnectBlock` makes for each transaction, in Core's order.
///
/// Core's `bad-txns-fee-outofrange` is left out: a comment in Core proves that it is unreachable.
pub const SPEND_CHECKS: &[Check<SpendFacts>] = &[
    Check { rule: Rule::TxInputsMissingorspent, holds: |tx| tx.missing_input.is_none() },
    Check { rule: Rule::TxPrematureSpendOfCoinbase, holds: |tx| fault(tx) != Some(InputFault::Immature) },
    Check { rule: Rule::TxInputvaluesOutofrange, holds: |tx| fault(tx) != Some(InputFault::ValueOutOfRange) },
    Check { rule: Rule::TxInBelowout, holds: |tx| tx.value_in >= tx.value_out },
    Check { rule: Rule::AccumulatedFeeOutofrange, holds: |tx| tx.block_fees.is_in_money_range() },
    Check { rule: Rule::TxSequenceLocks, holds: |tx| tx.are_sequence_locks_met },
    Check { rule: Rule::BlockSigopsCost, holds: |tx| tx.block_sigops_cost <= MAX_BLOCK_SIGOPS_COST },
];

fn fault(tx: &SpendFacts) -> Option<InputFault> {
    tx.input_fault.map(|(_, fault)| fault)
}

/// The coins that a block spends, as a store found them. [`check_inputs`] relies on them; the store guarantees that
/// they are correct.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// For each input in block order, without the coinbase's: the coin it spends, if that coin exists at this point and
    /// is unspent. Outputs of earlier transactions of the block count. If several inputs spend one coin, only the first
    /// gets it.
    pub coins: Vec<Option<Coin>>,
    /// Index of the first transaction with the txid of a transaction that still has an unspent output. Needed only if
    /// BIP-0030 is checked ([`is_bip30_checked`]).
    pub repeated_tx: Option<usize>,
}

/// Finds every coin that the block spends and checks the rules about coins.
pub fn fund(
    checked: CheckedBlock,
    coins: &impl CoinView,
    headers: &impl HeaderView,
    params: &Params,
) -> Result<FundedBlock, Violation> {
    let is_bip30_checked = is_bip30_checked(checked.height(), &checked.block().hash(), headers, params);
    let repeated_tx = if is_bip30_checked { repeated_tx(&checked, coins) } else { None };
    let coins = Purse::open(&checked, coins).take_all();
    check_inputs(checked, Found { coins, repeated_tx }, headers, params)
}

/// Checks the rules about coins, given the coins that were found.
pub fn check_inputs(
    checked: CheckedBlock,
    found: Found,
    headers: &impl HeaderView,
    params: &Params,
) -> Result<FundedBlock, Violation> {
    if let Some(tx) = found.repeated_tx {
        return Err(Violation::in_tx(Rule::Bip30, tx));
    }
    let mut spender = Spender { checked: &checked, found: found.coins.into_iter(), spent: Vec::new() };
    spender.spent.reserve_exact(spender.found.len());
    let mut totals = Totals::default();
    for (index, tx) in checked.block().txs().enumerate() {
        let facts = spender.spend(tx, &mut totals, headers, params);
        if let Some(rule) = first_broken(SPEND_CHECKS, &facts) {
            let input = match rule {
                Rule::TxInputsMissingorspent => facts.missing_input,
                Rule::TxPrematureSpendOfCoinbase | Rule::TxInputvaluesOutofrange => facts.input_fault.map(|(i, _)| i),
                _ => None,
            };
            let detail = match rule {
                Rule::TxPrematureSpendOfCoinbase => input.and_then(|input| spender.depth(tx, input)),
                Rule::TxInBelowout => Some(Detail::Values { value_in: facts.value_in, value_out: facts.value_out }),
                _ => None,
            };
            return Err(Violation { input, detail, ..Violation::in_tx(rule, index) });
        }
    }
    let limit = Amount(totals.fees.0 + block_subsidy(checked.height(), params).0);
    let actual = value_out(checked.block().tx(0));
    if actual > limit {
        let detail = Some(Detail::Pays { actual, limit });
        return Err(Violation { detail, ..Violation::in_tx(Rule::BadCbAmount, 0) });
    }
    assert_eq!(spender.found.len(), 0, "one answer for each input");
    let spent = spender.spent;
    Ok(FundedBlock { checked, spent, fees: totals.fees, sigops_cost: totals.sigops_cost })
}

/// The first transaction with an output that was already unspent before the block. One query for all outputs of a
/// transaction.
fn repeated_tx(checked: &CheckedBlock, coins: &impl CoinView) -> Option<usize> {
    checked.block().txs().position(|tx| {
        let outpoints: Vec<_> = (0..tx.output_count()).map(|vout| outpoint(tx.txid(), vout)).collect();
        coins.has_any(&outpoints)
    })
}

/// The outpoint of a transaction's output. The index fits: an output takes at least nine bytes of at most 32 MB.
pub(crate) fn outpoint(txid: Txid, vout: usize) -> OutPoint {
    OutPoint { txid, vout: u32::try_from(vout).unwrap_or(u32::MAX) }
}

#[derive(Default)]
struct Totals {
    fees: Amount,
    sigops_cost: usize,
}

/// The coins that a block may spend at its current transaction: the coins from before the block and the outputs of its
/// earlier transactions, without those already spent.
struct Purse<'a> {
    checked: &'a CheckedBlock,
    before: HashMap<OutPoint, Coin>,
    /// Index of each earlier transaction of the block.
    earlier: HashMap<Txid, usize>,
    gone: HashSet<OutPoint>,
}

impl<'a> Purse<'a> {
    /// Looks up all prevouts of the block at once, including the block's own outputs, which the view does not have.
    fn open(checked: &'a CheckedBlock, coins: &impl CoinView) -> Purse<'a> {
        let block = checked.block();
        let prevouts: Vec<OutPoint> =
            block.txs().filter(|tx| !tx.is_coinbase()).flat_map(Tx::inputs).map(|input| input.prevout).collect();
        let found = coins.coins(&prevouts);
        assert_eq!(found.len(), prevouts.len(), "a view answers every question");
        let before = prevouts.into_iter().zip(found).filter_map(|(prevout, coin)| Some((prevout, coin?))).collect();
        Purse { checked, before, earlier: HashMap::new(), gone: HashSet::new() }
    }

    /// The coin of every input, in block order.
    fn take_all(mut self) -> Vec<Option<Coin>> {
        let mut found = Vec::new();
        for (index, tx) in self.checked.block().txs().enumerate() {
            if !tx.is_coinbase() {
                found.extend(tx.inputs().map(|input| self.take(&input.prevout)));
            }
            self.earlier.insert(tx.txid(), index);
        }
        found
    }

    /// Removes a coin. The outputs of the block's own transactions take precedence, because they may overwrite older
    /// coins.
    fn take(&mut self, prevout: &OutPoint) -> Option<Coin> {
        if self.gone.contains(prevout) {
            return None;
        }
        let coin = self.own(prevout).or_else(|| self.before.remove(prevout))?;
        self.gone.insert(*prevout);
        Some(coin)
    }

    fn own(&self, prevout: &OutPoint) -> Option<Coin> {
        let index = *self.earlier.get(&prevout.txid)?;
        let tx = self.checked.block().tx(index);
        let output = tx.outputs().nth(prevout.vout as usize)?;
        (!is_unspendable(output.script_pubkey)).then(|| Coin::new(output, self.checked.height(), tx.is_coinbase()))
    }
}

/// Assigns the found coins to the transactions, in block order.
struct Spender<'a> {
    checked: &'a CheckedBlock,
    found: std::vec::IntoIter<Option<Coin>>,
    spent: Vec<Coin>,
}

impl Spender<'_> {
    /// Number of blocks between the coin of an input of the current transaction and this block.
    fn depth(&self, tx: Tx<'_>, input: usize) -> Option<Detail> {
        let first = self.spent.len().checked_sub(tx.input_count())?;
        let coin = self.spent.get(first + input)?;
        Some(Detail::Depth(i64::from(self.checked.height().0) - i64::from(coin.height.0)))
    }

    fn spend(&mut self, tx: Tx<'_>, totals: &mut Totals, headers: &impl HeaderView, params: &Params) -> SpendFacts {
        let mut facts = SpendFacts {
            missing_input: None,
            input_fault: None,
            value_in: Amount(0),
            value_out: Amount(0),
            block_fees: totals.fees,
            are_sequence_locks_met: true,
            block_sigops_cost: totals.sigops_cost,
        };
        let first = self.spent.len();
        if !tx.is_coinbase() {
            facts.missing_input = self.take(tx.input_count());
            if facts.missing_input.is_some() {
                return facts;
            }
            let coins = &self.spent[first..];
            (facts.value_in, facts.input_fault) = sum_inputs(coins, self.checked.height());
            facts.value_out = value_out(tx);
            facts.block_fees = Amount(totals.fees.0 + facts.value_in.0 - facts.value_out.0);
            facts.are_sequence_locks_met = are_sequence_locks_met(tx, coins, self.checked.height(), headers, params);
        }
        facts.block_sigops_cost += sigops_cost(tx, &self.spent[first..], self.checked.flags());
        *totals = Totals { fees: facts.block_fees, sigops_cost: facts.block_sigops_cost };
        facts
    }

    /// Moves the coins of the next inputs to `spent`, or returns the first input without a coin.
    fn take(&mut self, count: usize) -> Option<usize> {
        for index in 0..count {
            match self.found.next() {
                Some(Some(coin)) => self.spent.push(coin),
                Some(None) => return Some(index),
                None => panic!("one answer for each input"),
            }
        }
        None
    }
}

/// Sum of the coins up to the first that is immature or makes a value out of range: Core's loop in `CheckTxInputs`.
fn sum_inputs(coins: &[Coin], height: Height) -> (Amount, Option<(usize, InputFault)>) {
    let mut total = Amount(0);
    for (index, coin) in coins.iter().enumerate() {
        let depth = i64::from(height.0) - i64::from(coin.height.0);
        if coin.is_coinbase && depth < i64::from(COINBASE_MATURITY) {
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

/// BIP-0068 for one transaction. If the view does not know a median time, the lock counts as not met.
fn are_sequence_locks_met(
    tx: Tx<'_>,
    coins: &[Coin],
    height: Height,
    headers: &impl HeaderView,
    params: &Params,
) -> bool {
    if tx.version() < 2 || !params.is_active(Deployment::Csv, height) {
        return true;
    }
    tx.inputs().zip(coins).all(|(input, coin)| match sequence_lock(input.sequence, coin.height) {
        SequenceLock::Disabled => true,
        SequenceLock::Height(last) => last < i64::from(height.0),
        SequenceLock::Time { seconds, since } => {
            let start = headers.median_time_past(since);
            let now = height.0.checked_sub(1).and_then(|parent| headers.median_time_past(Height(parent)));
            start.zip(now).is_some_and(|(start, now)| start + seconds - 1 < now)
        }
    })
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
