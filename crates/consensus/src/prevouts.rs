//! Verifies a block without its chain: all rules that depend only on the block, its height and the coins it spends.
//!
//! Input: a block, optionally its height, and optionally the coin of every input. Output: the first violation, and the
//! rules that cannot be decided from this data, with the reason. Whatever depends on the missing ancestors is assumed
//! to be in the block's favour, so a reported violation is certain. Pure.

use crate::block::{CheckedBlock, check_block};
use crate::coins::{FundedBlock, fund};
use crate::params::{Deployment, Params};
use crate::rule::{RULES, Rule, Step, Violation};
use crate::scripts::{Mode, verify_scripts};
use crate::sequence::{SequenceLock, sequence_lock};
use crate::stats::Stats;
use crate::tx::is_final;
use crate::view::{Ancestor, Coin, CoinView, HeaderView};
use lydian_primitives::{Amount, Block, Height, OutPoint, Tx, Txid};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// A coin as read from a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpentCoin {
    pub value: Amount,
    pub script_pubkey: Box<[u8]>,
    /// Height of the block that created it and whether its coinbase did, if known.
    pub origin: Option<(Height, bool)>,
}

/// The result of a verification without the chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrevoutReport {
    pub violation: Option<Violation>,
    /// Rules that hold for certain, unless they come after the violation.
    pub decided: Vec<Rule>,
    /// Rules that this data does not decide, each with the missing data.
    pub undecided: Vec<(Rule, &'static str)>,
    pub stats: Stats,
}

/// The number of coins differs from the number of inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoinCountMismatch {
    pub inputs: usize,
    pub coins: usize,
}

impl fmt::Display for CoinCountMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the block spends {} outputs, but {} are given", self.inputs, self.coins)
    }
}

impl std::error::Error for CoinCountMismatch {}

const NEEDS_CHAIN: &str = "needs the chain before the block";
const NEEDS_TIMES: &str = "needs the median times of the chain before the block";
const NEEDS_ORIGINS: &str = "needs the heights at which the coins were created";
const NEEDS_COINS: &str = "needs the coins that the block spends";
const NEEDS_HEIGHT: &str = "needs the block's height";

/// Verifies a block with the coin of every input, in block order, without the coinbase's. `now` is in seconds since
/// 1970.
pub fn verify_with_prevouts(
    params: &Params,
    height: Height,
    block: Block,
    spent: Vec<SpentCoin>,
    now: u32,
    mode: Mode<'_>,
) -> Result<PrevoutReport, CoinCountMismatch> {
    let inputs = spends(&block).map(|tx| tx.input_count()).sum();
    if inputs != spent.len() {
        return Err(CoinCountMismatch { inputs, coins: spent.len() });
    }
    let undecided = undecided_with_coins(&block, height, &spent, params);
    let coins = GivenCoins::new(&block, spent);
    let funded = fund_without_chain(block, height, &coins, now, params);
    let mut stats = Stats::default();
    let violation = match funded {
        Err(violation) => Some(violation),
        Ok(funded) => {
            stats.add(&funded);
            let verified = verify_scripts(funded, mode);
            if let Ok(verified) = &verified {
                stats.add_checks(verified.checks());
            }
            verified.err()
        }
    };
    Ok(report(violation, undecided, stats))
}

/// Verifies a block without coins: with its height all rules that need no coins, otherwise only the rules about its
/// bytes.
pub fn verify_alone(params: &Params, height: Option<Height>, block: Block, now: u32) -> PrevoutReport {
    let later = |info: &crate::rule::RuleInfo| match info.step {
        Step::Header | Step::Block | Step::Transaction => None,
        Step::HeaderInChain | Step::BlockInChain if height.is_none() => Some((info.rule, NEEDS_HEIGHT)),
        Step::HeaderInChain => is_of_ancestors(info.rule).then_some((info.rule, NEEDS_CHAIN)),
        Step::BlockInChain => None,
        Step::Coins | Step::Scripts => Some((info.rule, NEEDS_COINS)),
    };
    let mut undecided: Vec<_> = RULES.iter().filter_map(later).collect();
    let stats = Stats { blocks: 1, transactions: block.tx_count() as u64, ..Stats::default() };
    let violation = match height {
        None => check_block(&block, params).err(),
        Some(height) => {
            if needs_median_time(&block, height, params) {
                undecided.push((Rule::TxNonfinal, NEEDS_TIMES));
            }
            let assumed = Assumed { parent: parent_of(height) };
            CheckedBlock::check_without_ancestors(block, height, &assumed, i64::from(now), params).err()
        }
    };
    report(violation, undecided, stats)
}

fn report(violation: Option<Violation>, mut undecided: Vec<(Rule, &'static str)>, stats: Stats) -> PrevoutReport {
    undecided.sort_by_key(|(rule, _)| *rule);
    let is_decided = |rule: &Rule| !undecided.iter().any(|(open, _)| open == rule);
    let decided = RULES.iter().map(|info| info.rule).filter(is_decided).collect();
    PrevoutReport { violation, decided, undecided, stats }
}

fn spends(block: &Block) -> impl Iterator<Item = Tx<'_>> {
    block.txs().filter(|tx| !tx.is_coinbase())
}

fn parent_of(height: Height) -> Height {
    Height(height.0.saturating_sub(1))
}

fn is_of_ancestors(rule: Rule) -> bool {
    use Rule::*;
    matches!(rule, PrevBlkNotFound | BadPrevblk | BadDiffbits | TimeTooOld | TimeTimewarpAttack)
}

fn fund_without_chain(
    block: Block,
    height: Height,
    coins: &GivenCoins,
    now: u32,
    params: &Params,
) -> Result<FundedBlock, Violation> {
    let assumed = Assumed { parent: parent_of(height) };
    let checked = CheckedBlock::check_without_ancestors(block, height, &assumed, i64::from(now), params)?;
    fund(checked, coins, &assumed, params)
}

fn undecided_with_coins(
    block: &Block,
    height: Height,
    spent: &[SpentCoin],
    params: &Params,
) -> Vec<(Rule, &'static str)> {
    let mut undecided: Vec<_> =
        RULES.iter().filter(|info| is_of_ancestors(info.rule)).map(|info| (info.rule, NEEDS_CHAIN)).collect();
    undecided.push((Rule::Bip30, NEEDS_CHAIN));
    undecided.push((
        Rule::TxInputsMissingorspent,
        "needs the coins before the block; the given ones are assumed to be unspent",
    ));
    if needs_median_time(block, height, params) {
        undecided.push((Rule::TxNonfinal, NEEDS_TIMES));
    }
    if spent.iter().any(|coin| coin.origin.is_none()) {
        undecided.push((Rule::TxPrematureSpendOfCoinbase, NEEDS_ORIGINS));
    }
    if let Some(why) = sequence_locks_need(block, height, spent, params) {
        undecided.push((Rule::TxSequenceLocks, why));
    }
    undecided
}

/// Whether a transaction is final or not depending on the median time past.
fn needs_median_time(block: &Block, height: Height, params: &Params) -> bool {
    let is_open = |tx: Tx<'_>| is_final(tx, height, i64::MAX) && !is_final(tx, height, 0);
    params.is_active(Deployment::Csv, height) && block.txs().any(is_open)
}

fn sequence_locks_need(block: &Block, height: Height, spent: &[SpentCoin], params: &Params) -> Option<&'static str> {
    if !params.is_active(Deployment::Csv, height) {
        return None;
    }
    let inputs = spends(block).flat_map(|tx| tx.inputs().map(move |input| (tx.version(), input.sequence)));
    let locked = inputs.zip(spent).filter(|((version, _), _)| *version >= 2);
    let mut need = None;
    for ((_, sequence), coin) in locked {
        match (sequence_lock(sequence, Height(0)), coin.origin) {
            (SequenceLock::Disabled, _) | (SequenceLock::Height(_), Some(_)) => {}
            (SequenceLock::Time { .. }, _) => return Some(NEEDS_TIMES),
            (SequenceLock::Height(_), None) => need = Some(NEEDS_ORIGINS),
        }
    }
    need
}

/// Unknown ancestors: no headers, and median times such that every lock has expired.
struct Assumed {
    parent: Height,
}

impl HeaderView for Assumed {
    fn ancestor(&self, _: Height) -> Option<Ancestor> {
        None
    }

    fn median_time_past(&self, height: Height) -> Option<i64> {
        const FAR_FUTURE: i64 = 1 << 40;
        Some(if height == self.parent { FAR_FUTURE } else { 0 })
    }
}

/// The given coins without those that the block itself creates, because the order of transactions within the block is a
/// rule.
struct GivenCoins(HashMap<OutPoint, Coin>);

impl GivenCoins {
    fn new(block: &Block, spent: Vec<SpentCoin>) -> GivenCoins {
        let own: HashSet<Txid> = block.txs().map(|tx| tx.txid()).collect();
        let prevouts = spends(block).flat_map(Tx::inputs).map(|input| input.prevout);
        let coin = |given: SpentCoin| {
            let (height, is_coinbase) = given.origin.unwrap_or((Height(0), false));
            Coin { value: given.value, script_pubkey: given.script_pubkey, height, is_coinbase }
        };
        let coins = prevouts.zip(spent).filter(|(prevout, _)| !own.contains(&prevout.txid));
        GivenCoins(coins.map(|(prevout, given)| (prevout, coin(given))).collect())
    }
}

impl CoinView for GivenCoins {
    fn coins(&self, outpoints: &[OutPoint]) -> Vec<Option<Coin>> {
        outpoints.iter().map(|outpoint| self.0.get(outpoint).cloned()).collect()
    }

    fn has_any(&self, _: &[OutPoint]) -> bool {
        false
    }
}
