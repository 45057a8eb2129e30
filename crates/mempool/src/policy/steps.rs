//! The order in which a transaction is checked before its scripts: Core's `MemPoolAccept::PreChecks` (validation.cpp).
//!
//! Input: a transaction, the next block it could be in, the settings, and the pool through [`PoolView`]. Output: what
//! the pool needs of it ([`PreChecked`]), or the first broken rule. Each step is also a function by itself, so that a
//! pool can look up the coins of many transactions at once. Invariant: the steps ask for nothing that an earlier rule
//! makes unnecessary, and none verifies a signature. Cost: linear in the transaction.
//!
//! After these checks, Core's `AcceptSingleTransactionInternal` goes on with: replacement
//! ([`check_replacement_clusters`](super::check_replacement_clusters),
//! [`check_replacement_fees`](super::check_replacement_fees), the limits of clusters, the diagram), the limits of
//! clusters, [`check_ancestors_disjoint`](super::check_ancestors_disjoint), the sender's maximum fee rate
//! ([`check_max_feerate`]), [`check_ephemeral_spends`](super::check_ephemeral_spends), the scripts. The pool's graph
//! knows the clusters, and `crate::scripts` verifies the scripts.

use super::dust::dust_outputs;
use super::fee::{FeeFacts, check_fee, check_fee_rate};
use super::fee_rate::FeeRate;
use super::inputs::check_inputs_standard;
use super::limits::MIN_STANDARD_TX_NONWITNESS_SIZE;
use super::rejection::Rejection;
use super::rule::PolicyRule;
use super::settings::Settings;
use super::size::{adjusted_weight, virtual_size};
use super::standard::{STANDARD_CHECKS, standard_facts};
use super::truc::{PoolEntry, TrucTx, check_truc};
use super::witness::check_witness_standard;
use lydian_consensus::sequence::{SequenceLocks, sequence_locks};
use lydian_consensus::spend::{check_spend, sigops_cost};
use lydian_consensus::tx::{check_transaction, is_final};
use lydian_consensus::{Check, Coin, HeaderView, first_broken, spend_message};
use lydian_primitives::{Amount, Height, OutPoint, Output, Tx, Txid, Wtxid};
use lydian_script::{Flags, TxContext};
use std::collections::BTreeSet;

/// The block after the tip, which a transaction must be able to be in.
#[derive(Debug)]
pub struct NextBlock<'a, H> {
    /// One above the tip's height.
    pub height: Height,
    /// The chain that ends with the tip.
    pub headers: &'a H,
}

impl<H: HeaderView> NextBlock<'_, H> {
    /// Median time past of the tip in seconds; nothing is final if it is unknown.
    pub fn time(&self) -> i64 {
        let tip = self.height.0.checked_sub(1);
        tip.and_then(|tip| self.headers.median_time_past(Height(tip))).unwrap_or(i64::MIN)
    }
}

/// The pool and the coins, as far as these steps ask.
pub trait PoolView {
    /// A transaction of the mempool; often a reference into it.
    type Entry<'p>: PoolEntry
    where
        Self: 'p;

    fn has_wtxid(&self, wtxid: &Wtxid) -> bool;

    /// The transaction of the mempool with this txid.
    fn entry(&self, txid: &Txid) -> Option<Self::Entry<'_>>;

    /// The transaction of the mempool that spends this output.
    fn spender(&self, prevout: &OutPoint) -> Option<Txid>;

    /// The coin of each outpoint, spent by the mempool or not: those of the chain, of the mempool, and of the package
    /// being checked. The last two have the height of the next block and are no coinbases.
    fn coins(&self, outpoints: &[OutPoint]) -> Vec<Option<Coin>>;

    /// Whether any of the outpoints is unspent in the chain. Core asks its cache only (`HaveCoinInCache`).
    fn has_any_in_chain(&self, outpoints: &[OutPoint]) -> bool;

    /// The change of the fee by `prioritisetransaction`.
    fn fee_delta(&self, txid: &Txid) -> Amount;

    /// The minimum fee rate of the mempool: Core's `GetMinFee`.
    fn min_fee(&self) -> FeeRate;
}

/// How a transaction comes to the pool: the part of Core's `ATMPArgs` that these checks depend on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode {
    /// A transaction of a disconnected block: no minimum fee and no TRUC rules apply.
    pub bypass_limits: bool,
    /// Whether it may replace transactions.
    pub allow_replacement: bool,
    /// Whether a TRUC transaction may evict its sibling.
    pub allow_sibling_eviction: bool,
    /// Whether the minimum fees are checked for the package later.
    pub package_feerates: bool,
}

impl Mode {
    /// One transaction: from a peer, from RPC, or alone from a package.
    pub const SINGLE: Mode =
        Mode { bypass_limits: false, allow_replacement: true, allow_sibling_eviction: true, package_feerates: false };
    /// A transaction that returns from a disconnected block.
    pub const DISCONNECTED: Mode = Mode { bypass_limits: true, ..Mode::SINGLE };
    /// Several transactions in `testmempoolaccept`.
    pub const TEST_PACKAGE: Mode =
        Mode { bypass_limits: false, allow_replacement: false, allow_sibling_eviction: false, package_feerates: false };
    /// A child with its parents, which pay together.
    pub const PACKAGE: Mode =
        Mode { bypass_limits: false, allow_replacement: true, allow_sibling_eviction: false, package_feerates: true };
}

/// Facts computed from the coins that a transaction spends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spending {
    /// Inputs less outputs.
    pub base_fee: Amount,
    /// Signature operation cost under [`Flags::STANDARD`].
    pub sigops_cost: usize,
    /// Weight, or that of the signature operations if it is more: what clusters are limited by.
    pub adjusted_weight: i64,
    /// The adjusted weight in virtual bytes.
    pub vsize: i64,
    /// Whether it must be checked again after a reorganisation, because a coinbase may be too young then.
    pub spends_coinbase: bool,
    /// When the relative locks have passed.
    pub locks: SequenceLocks,
    /// Height of the last block with a coin of it; zero if all are unconfirmed. The locks are valid as long as this
    /// block is in the chain.
    pub last_coin_height: Height,
}

/// A transaction that breaks none of these rules.
#[derive(Debug)]
pub struct PreChecked<E> {
    pub spending: Spending,
    /// The coins of its inputs, in their order.
    pub coins: Vec<Coin>,
    /// The base fee with the change by `prioritisetransaction`.
    pub modified_fee: Amount,
    /// Its parents in the mempool, each once, in the order of txids.
    pub parents: Vec<E>,
    /// The transactions of the mempool that it replaces directly. If there are any, the rules of replacement apply.
    pub conflicts: BTreeSet<Txid>,
    /// Whether one of them is the sibling of a TRUC transaction.
    pub is_sibling_eviction: bool,
}

/// Checks a transaction up to its scripts: Core's `PreChecks`.
pub fn pre_checks<'p, H: HeaderView, P: PoolView>(
    tx: Tx<'_>,
    mode: Mode,
    next: &NextBlock<'_, H>,
    settings: &Settings,
    pool: &'p P,
) -> Result<PreChecked<P::Entry<'p>>, Rejection> {
    check_alone(tx, next, settings)?;
    let mut conflicts = check_unknown(tx, mode, pool)?;
    let coins = find_coins(tx, pool)?;
    let spending = check_coins(tx, &coins, next, settings)?;
    let modified_fee = Amount(spending.base_fee.0.saturating_add(pool.fee_delta(&tx.txid()).0));
    check_payment(tx, &spending, modified_fee, settings)?;
    if !mode.bypass_limits && !mode.package_feerates {
        check_fee_rate(spending.vsize, modified_fee, pool.min_fee(), settings.min_relay_fee)?;
    }
    let parents = parents(tx, pool);
    let sibling = if mode.bypass_limits {
        None
    } else {
        check_relatives(&TrucTx::new(tx, spending.vsize), mode, &parents, &conflicts)?
    };
    conflicts.extend(sibling);
    Ok(PreChecked { spending, coins, modified_fee, parents, conflicts, is_sibling_eviction: sibling.is_some() })
}

/// The facts about a transaction alone, besides those of consensus and of [`STANDARD_CHECKS`].
#[derive(Clone, Copy, Debug)]
pub struct AloneFacts {
    /// Size in bytes without the witness.
    pub base_size: usize,
    /// Whether the lock time allows the transaction in the next block.
    pub is_final: bool,
}

/// The checks of Core's `PreChecks` after `IsStandardTx`, in Core's order.
pub const ALONE_CHECKS: &[Check<AloneFacts, PolicyRule>] = &[
    Check { rule: PolicyRule::TxSizeSmall, holds: |tx| tx.base_size >= MIN_STANDARD_TX_NONWITNESS_SIZE },
    Check { rule: PolicyRule::NonFinal, holds: |tx| tx.is_final },
];

/// Step 1: the transaction alone. Nothing is looked up but the time of the tip.
pub fn check_alone<H: HeaderView>(tx: Tx<'_>, next: &NextBlock<'_, H>, settings: &Settings) -> Result<(), Rejection> {
    check_transaction(tx).map_err(|rule| Rejection::of_consensus(rule, String::new()))?;
    if tx.is_coinbase() {
        return Err(Rejection::of(PolicyRule::Coinbase));
    }
    if settings.require_standard
        && let Some(rule) = first_broken(STANDARD_CHECKS, &standard_facts(tx, settings))
    {
        return Err(Rejection::of(rule));
    }
    let facts = AloneFacts { base_size: tx.base_size(), is_final: is_final(tx, next.height, next.time()) };
    first_broken(ALONE_CHECKS, &facts).map_or(Ok(()), |rule| Err(Rejection::of(rule)))
}

/// Step 2: the transaction is not in the mempool. Returns the transactions that it replaces directly.
pub fn check_unknown(tx: Tx<'_>, mode: Mode, pool: &impl PoolView) -> Result<BTreeSet<Txid>, Rejection> {
    if pool.has_wtxid(&tx.wtxid()) {
        return Err(Rejection::of(PolicyRule::AlreadyInMempool));
    }
    if pool.entry(&tx.txid()).is_some() {
        return Err(Rejection::of(PolicyRule::SameNonwitnessData));
    }
    let conflicts: BTreeSet<Txid> = tx.inputs().filter_map(|input| pool.spender(&input.prevout)).collect();
    if !conflicts.is_empty() && !mode.allow_replacement {
        return Err(Rejection::of(PolicyRule::ReplacementDisallowed));
    }
    Ok(conflicts)
}

/// Step 3: the coins of all inputs.
pub fn find_coins(tx: Tx<'_>, pool: &impl PoolView) -> Result<Vec<Coin>, Rejection> {
    let prevouts: Vec<OutPoint> = tx.inputs().map(|input| input.prevout).collect();
    let coins: Option<Vec<Coin>> = pool.coins(&prevouts).into_iter().collect();
    match coins {
        Some(coins) if coins.len() == prevouts.len() => Ok(coins),
        _ => {
            let txid = tx.txid();
            let own: Vec<OutPoint> = (0..).zip(tx.outputs()).map(|(vout, _)| OutPoint { txid, vout }).collect();
            let is_known = pool.has_any_in_chain(&own);
            Err(Rejection::of(if is_known { PolicyRule::AlreadyKnown } else { PolicyRule::MissingInputs }))
        }
    }
}

/// Step 4: the transaction with its coins, in the order of its inputs. Coins that are unconfirmed have the height of
/// the next block.
pub fn check_coins<H: HeaderView>(
    tx: Tx<'_>,
    coins: &[Coin],
    next: &NextBlock<'_, H>,
    settings: &Settings,
) -> Result<Spending, Rejection> {
    let spent: Vec<Output<'_>> = coins.iter().map(Coin::output).collect();
    let Some(context) = TxContext::new(tx, &spent) else { return Err(Rejection::of(PolicyRule::MissingInputs)) };
    // The mempool has BIP-0068, whatever the height at which it is active.
    let locks = sequence_locks(tx, coins.iter().map(|coin| coin.height), next.headers);
    let Some(locks) = locks.filter(|locks| locks.are_met(next.height, next.headers)) else {
        return Err(Rejection::of(PolicyRule::NonBip68Final));
    };
    let values = check_spend(tx, coins, next.height)
        .map_err(|broken| Rejection::of_consensus(broken.rule, spend_message(broken.rule, broken.detail)))?;
    if settings.require_standard {
        check_inputs_standard(&context)?;
        check_witness_standard(&context)?;
    }
    let sigops_cost = sigops_cost(tx, coins, Flags::STANDARD);
    let confirmed = coins.iter().map(|coin| coin.height).filter(|height| *height != next.height);
    Ok(Spending {
        base_fee: values.fee(),
        sigops_cost,
        adjusted_weight: adjusted_weight(tx.weight(), sigops_cost, settings.bytes_per_sigop),
        vsize: virtual_size(tx.weight(), sigops_cost, settings.bytes_per_sigop),
        spends_coinbase: coins.iter().any(|coin| coin.is_coinbase),
        locks,
        last_coin_height: confirmed.max().unwrap_or_default(),
    })
}

/// Step 5: dust pays no fee, and the signature operations are within their limit. The minimum fees follow
/// ([`check_fee_rate`]), for the transaction or for its package.
pub fn check_payment(
    tx: Tx<'_>,
    spending: &Spending,
    modified_fee: Amount,
    settings: &Settings,
) -> Result<(), Rejection> {
    let &Spending { base_fee, sigops_cost, .. } = spending;
    let has_dust = settings.require_standard && dust_outputs(tx, settings.dust_relay_fee).next().is_some();
    check_fee(&FeeFacts { has_dust, base_fee, modified_fee, sigops_cost })
}

/// Step 6: TRUC. Returns the sibling to be evicted, if the mode allows that.
pub fn check_relatives<E: PoolEntry>(
    tx: &TrucTx,
    mode: Mode,
    parents: &[E],
    conflicts: &BTreeSet<Txid>,
) -> Result<Option<Txid>, Rejection> {
    match check_truc(tx, parents, conflicts) {
        Ok(()) => Ok(None),
        Err(violation) if mode.allow_sibling_eviction && violation.sibling.is_some() => Ok(violation.sibling),
        Err(violation) => Err(violation.rejection),
    }
}

/// A transaction's parents in the mempool, each once, in the order of txids: Core's `GetParents`. TRUC names the first
/// with a fault.
pub fn parents<'p, P: PoolView>(tx: Tx<'_>, pool: &'p P) -> Vec<P::Entry<'p>> {
    let txids: BTreeSet<Txid> = tx.inputs().map(|input| input.prevout.txid).collect();
    txids.iter().filter_map(|txid| pool.entry(txid)).collect()
}

/// Checks the maximum fee rate that the sender of a package allows; `None` is any.
pub fn check_max_feerate(modified_fee: Amount, vsize: i64, max: Option<FeeRate>) -> Result<(), Rejection> {
    if max.is_some_and(|max| FeeRate::new(modified_fee.0, vsize) > max) {
        return Err(Rejection::of(PolicyRule::MaxFeerate));
    }
    Ok(())
}
