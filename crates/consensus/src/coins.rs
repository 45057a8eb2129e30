//! From [`CheckedBlock`] to [`FundedBlock`]: every input meets the output it spends.
//!
//! Input: a checked block, the questions to the coins ([`CoinView`]) and to its ancestors. Output: the block with its spent
//! coins (which are its undo data), or the first violation. One pass over the inputs; [`SPEND_CHECKS`] judges what it
//! found. Core's `ConnectBlock` without scripts, `CheckTxInputs`, `SequenceLocks`, `GetTransactionSigOpCost`. Pure.

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

/// A block whose every input has its coin and breaks no rule of coins. Owns its undo data.
#[derive(Clone, Debug)]
pub struct FundedBlock {
    checked: CheckedBlock,
    /// Coins spent, in the order of the inputs, the coinbase's left out.
    spent: Vec<Coin>,
    fees: Amount,
    sigops_cost: usize,
}

impl FundedBlock {
    pub fn checked(&self) -> &CheckedBlock {
        &self.checked
    }

    /// Coins spent, in the order of the inputs, the coinbase's left out.
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

/// What is known when one transaction has met its coins: of itself, and of the block so far.
#[derive(Clone, Copy, Debug)]
pub struct SpendFacts {
    /// Index of the first input without a coin.
    pub missing_input: Option<usize>,
    /// What is wrong with the first input that has something wrong.
    pub input_fault: Option<(usize, InputFault)>,
    pub value_in: Amount,
    pub value_out: Amount,
    /// Fees of the block up to and with this transaction.
    pub block_fees: Amount,
    pub are_sequence_locks_met: bool,
    /// Cost of the signature operations of the block up to and with this transaction.
    pub block_sigops_cost: usize,
}

/// What can be wrong with an input that has its coin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputFault {
    Immature,
    ValueOutOfRange,
}

/// The part of Core's `ConnectBlock` that looks at one transaction, in its order.
///
/// Core's `bad-txns-fee-outofrange` is not here: its own comment proves that nothing can reach it.
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

/// The coins that a block meets, as a store found them. [`judge`] believes it; that it is true is the store's promise.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// For each input in block order, the coinbase's left out: the coin it spends, if one exists before it and is unspent.
    /// Outputs of the block's own earlier transactions count, and a coin is there for the first that spends it.
    pub coins: Vec<Option<Coin>>,
    /// Index of the first transaction that repeats the txid of one with an unspent output. Only asked for where BIP-0030 is
    /// checked ([`is_bip30_checked`]).
    pub repeated_tx: Option<usize>,
}

/// Finds every coin that the block spends and checks what coins decide.
pub fn fund(
    checked: CheckedBlock,
    coins: &impl CoinView,
    headers: &impl HeaderView,
    params: &Params,
) -> Result<FundedBlock, Violation> {
    let is_bip30_checked = is_bip30_checked(checked.height(), &checked.block().hash(), headers, params);
    let repeated_tx = if is_bip30_checked { repeated_tx(&checked, coins) } else { None };
    let coins = Purse::open(&checked, coins).take_all();
    judge(checked, Found { coins, repeated_tx }, headers, params)
}

/// Checks what coins decide, once they are found.
pub fn judge(
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

/// The first transaction of which an output is unspent before the block. One question for all outputs of a transaction.
fn repeated_tx(checked: &CheckedBlock, coins: &impl CoinView) -> Option<usize> {
    checked.block().txs().position(|tx| {
        let outpoints: Vec<_> = (0..tx.output_count()).map(|vout| outpoint(tx.txid(), vout)).collect();
        coins.has_any(&outpoints)
    })
}

/// The outpoint of an output by its index. Indices fit: an output takes nine bytes of at most 32 MB.
pub(crate) fn outpoint(txid: Txid, vout: usize) -> OutPoint {
    OutPoint { txid, vout: u32::try_from(vout).unwrap_or(u32::MAX) }
}

#[derive(Default)]
struct Totals {
    fees: Amount,
    sigops_cost: usize,
}

/// The coins a block may spend at the transaction it has come to: those of before, those of its earlier transactions, less
/// those spent already.
struct Purse<'a> {
    checked: &'a CheckedBlock,
    before: HashMap<OutPoint, Coin>,
    /// Index of each transaction that comes earlier in the block.
    earlier: HashMap<Txid, usize>,
    gone: HashSet<OutPoint>,
}

impl<'a> Purse<'a> {
    /// Asks for all prevouts of the block at once. Those of the block's own outputs are asked for in vain.
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

    /// Takes a coin out. The outputs of the block's own transactions come first: they may overwrite what was before.
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

/// Gives the found coins to the transactions, in block order.
struct Spender<'a> {
    checked: &'a CheckedBlock,
    found: std::vec::IntoIter<Option<Coin>>,
    spent: Vec<Coin>,
}

impl Spender<'_> {
    /// Blocks from the coin of an input of the last transaction to this block.
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

    /// Moves the coins of the next inputs to `spent`, or names the first input that has none.
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

/// Sum of the coins up to the first that is immature or brings a value out of range: Core's loop in `CheckTxInputs`.
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

/// BIP-0068 for one transaction. A median time that the view does not know counts as not passed.
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

/// Core's `GetTransactionSigOpCost`. A coinbase counts the legacy way only.
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
