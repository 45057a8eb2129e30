//! From [`CheckedBlock`] to [`FundedBlock`]: finds the output that every input spends.
//!
//! Input: a checked block, and views of the coins ([`CoinView`]) and of its ancestors. Output: the block with its spent
//! coins (its undo data), or the first violation. Each transaction is checked with its coins ([`check_spend`]), then
//! the sums of the block ([`BLOCK_SPEND_CHECKS`]). Core's `ConnectBlock` without scripts. Pure.

use crate::block::CheckedBlock;
use crate::debug_message::Detail;
use crate::deployment::is_bip30_checked;
use crate::limits::MAX_BLOCK_SIGOPS_COST;
use crate::params::{Deployment, Params};
use crate::rule::{Check, Rule, Violation, first_broken};
use crate::sequence::sequence_locks;
use crate::spend::{BrokenSpend, check_spend, sigops_cost};
use crate::subsidy::block_subsidy;
use crate::tx::value_out;
use crate::view::{Coin, CoinView, HeaderView};
use lydian_primitives::{Amount, OutPoint, Tx, Txid};
use lydian_script::is_unspendable;
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

/// The facts about a block up to and including one of its transactions, whose coins are checked.
#[derive(Clone, Copy, Debug)]
pub struct BlockSpendFacts {
    pub fees: Amount,
    /// The relative locks of this transaction.
    pub are_sequence_locks_met: bool,
    pub sigops_cost: usize,
}

/// The checks that Core's `ConnectBlock` makes for each transaction after those of [`SPEND_CHECKS`], in Core's order.
///
/// [`SPEND_CHECKS`]: crate::spend::SPEND_CHECKS
pub const BLOCK_SPEND_CHECKS: &[Check<BlockSpendFacts>] = &[
    Check { rule: Rule::AccumulatedFeeOutofrange, holds: |block| block.fees.is_in_money_range() },
    Check { rule: Rule::TxSequenceLocks, holds: |block| block.are_sequence_locks_met },
    Check { rule: Rule::BlockSigopsCost, holds: |block| block.sigops_cost <= MAX_BLOCK_SIGOPS_COST },
];

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
        let broken = |BrokenSpend { rule, input, detail }| Violation { input, detail, ..Violation::in_tx(rule, index) };
        let facts = spender.spend(tx, &totals, headers, params).map_err(broken)?;
        if let Some(rule) = first_broken(BLOCK_SPEND_CHECKS, &facts) {
            return Err(Violation::in_tx(rule, index));
        }
        totals = Totals { fees: facts.fees, sigops_cost: facts.sigops_cost };
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
    fn spend(
        &mut self,
        tx: Tx<'_>,
        totals: &Totals,
        headers: &impl HeaderView,
        params: &Params,
    ) -> Result<BlockSpendFacts, BrokenSpend> {
        let (height, flags) = (self.checked.height(), self.checked.flags());
        let (mut fees, mut are_sequence_locks_met) = (totals.fees, true);
        let first = self.spent.len();
        if !tx.is_coinbase() {
            self.take(tx.input_count());
            let coins = &self.spent[first..];
            fees = Amount(fees.0 + check_spend(tx, coins, height)?.fee().0);
            are_sequence_locks_met = !params.is_active(Deployment::Csv, height)
                || sequence_locks(tx, coins.iter().map(|coin| coin.height), headers)
                    .is_some_and(|locks| locks.are_met(height, headers));
        }
        let sigops_cost = totals.sigops_cost + sigops_cost(tx, &self.spent[first..], flags);
        Ok(BlockSpendFacts { fees, are_sequence_locks_met, sigops_cost })
    }

    /// Moves the coins of the next inputs to `spent`, up to the first input that has none.
    fn take(&mut self, count: usize) {
        for _ in 0..count {
            match self.found.next() {
                Some(Some(coin)) => self.spent.push(coin),
                Some(None) => return,
                None => panic!("one answer for each input"),
            }
        }
    }
}
