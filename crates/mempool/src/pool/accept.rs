//! Acceptance of one transaction: Core's `MemPoolAccept::AcceptSingleTransaction` (validation.cpp).
//!
//! Input: a transaction, its coins of the chain, the next block, and how it comes. Output: the pool with it, or the
//! first broken rule and the pool as it was. The rules are those of [`crate::policy`]; this module gathers what they
//! ask for and tries the change in the staging copy of the graph. Packages are in `package`.

use super::entry::{Entry, LockPoints};
use super::feed::RemovalReason;
use super::store::Pool;
use super::tables::Member;
use crate::graph::{Level, TxRef};
use crate::policy::{
    FeeRate, Mode, NextBlock, PolicyRule, PoolEntry, PoolView, PreChecked, Rejection, ReplacementFees,
    check_ancestors_disjoint, check_ephemeral_spends, check_max_feerate, check_replacement_clusters,
    check_replacement_fees, pre_checks, script_rejection,
};
use crate::scripts::{InputFailure, Spend};
use lydian_consensus::{Coin, HeaderView};
use lydian_primitives::{Amount, BlockHash, Height, OutPoint, Output, Transaction, Tx, Txid, Wtxid};
use lydian_script::TxContext;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Coins of the chain that were looked up, with those that do not exist.
pub(crate) type ChainCoins = HashMap<OutPoint, Option<Coin>>;

/// Transactions by txid.
pub(crate) type Package = HashMap<Txid, Arc<Transaction>>;

/// The chain as far as acceptance needs it.
pub(crate) struct Chain<'a, H> {
    pub(crate) next: NextBlock<'a, H>,
    /// The coins of every input; for a transaction of which an input has none, also those of its own outputs.
    pub(crate) coins: &'a ChainCoins,
    /// Verifies the scripts of all inputs under the standard flags.
    pub(crate) scripts: &'a dyn Fn(&Spend) -> Result<(), InputFailure>,
}

/// How a transaction comes to the pool: Core's `ATMPArgs`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) mode: Mode,
    /// The pool stays as it is.
    pub(crate) is_test: bool,
    /// The pool is limited by the caller, after all transactions of the package.
    pub(crate) is_package: bool,
    pub(crate) feerate_max: Option<FeeRate>,
    /// The chain is current, so that its fee counts: Core's `IsCurrentForFeeEstimation`.
    pub(crate) is_chain_current: bool,
    /// Only to see what will be asked for.
    pub(crate) is_ahead: bool,
    /// When it came, in seconds since 1970: the time of its entry.
    pub(crate) time: i64,
    pub(crate) now: i64,
}

impl How {
    pub(crate) fn single(now: i64) -> How {
        How {
            mode: Mode::SINGLE,
            is_test: false,
            is_package: false,
            feerate_max: None,
            is_chain_current: false,
            is_ahead: false,
            time: now,
            now,
        }
    }
}

/// An accepted transaction.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The transactions that it replaced. Of a package, with the first of its transactions only.
    pub replaced: Vec<Arc<Entry>>,
    /// Virtual bytes.
    pub vsize: i64,
    /// The fee without any delta.
    pub fee: Amount,
    /// The feerate that was compared with the minimum, and of which transactions it is: Core's `m_effective_feerate`.
    pub effective_feerate: FeeRate,
    pub effective_of: Vec<Wtxid>,
}

/// A transaction on its way into the pool: Core's `Workspace`.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) tx: Arc<Transaction>,
    pub(super) coins: Arc<[Coin]>,
    pub(super) fee: Amount,
    pub(super) modified_fee: Amount,
    pub(super) vsize: i64,
    adjusted_weight: i32,
    sigops_cost: usize,
    spends_coinbase: bool,
    locks: LockPoints,
    /// The pool's sequence number before anything changed.
    sequence: u64,
    pub(super) parents: Vec<TxRef>,
    pub(super) conflicts: BTreeSet<Txid>,
    pub(super) is_sibling_eviction: bool,
    pub(super) node: TxRef,
}

impl Candidate {
    pub(super) fn txid(&self) -> Txid {
        self.tx.view().txid()
    }

    pub(super) fn wtxid(&self) -> Wtxid {
        self.tx.view().wtxid()
    }

    pub(super) fn feerate(&self) -> FeeRate {
        FeeRate::new(self.modified_fee.0, self.vsize)
    }

    fn entry(&self, how: &How, tip: Height) -> Entry {
        Entry {
            usage: Entry::usage_of(&self.tx),
            tx: Arc::clone(&self.tx),
            fee: self.fee,
            sigops_cost: u32::try_from(self.sigops_cost).unwrap_or(u32::MAX),
            vsize: i32::try_from(self.vsize).unwrap_or(i32::MAX),
            adjusted_weight: self.adjusted_weight,
            time: how.time,
            height: tip,
            sequence: if how.mode.bypass_limits { 0 } else { self.sequence },
            spends_coinbase: self.spends_coinbase,
            locks: self.locks,
        }
    }
}

/// The pool, the coins of the chain and those of a package, for the policy's steps.
pub(super) struct View<'a, H> {
    pub(super) pool: &'a Pool,
    pub(super) chain: &'a Chain<'a, H>,
    /// Transactions that come with it, whose outputs it may spend.
    pub(super) package: &'a Package,
    pub(super) now: i64,
    /// The question is not one of Core's.
    pub(super) is_ahead: bool,
}

/// A transaction of the pool, for the rules about TRUC.
pub(super) struct Relative<'a> {
    pool: &'a Pool,
    member: &'a Member,
}

impl PoolEntry for Relative<'_> {
    fn txid(&self) -> Txid {
        self.member.entry.txid()
    }

    fn wtxid(&self) -> Wtxid {
        self.member.entry.wtxid()
    }

    fn version(&self) -> u32 {
        self.member.entry.tx.view().version()
    }

    fn ancestor_count(&self) -> usize {
        self.pool.graph.ancestors(&[self.member.node], Level::Main).len()
    }

    fn descendant_count(&self) -> usize {
        self.pool.graph.descendants(&[self.member.node], Level::Main).len()
    }

    fn descendants(&self) -> Vec<Self> {
        let nodes = self.pool.graph.descendants(&[self.member.node], Level::Main);
        let others = nodes.into_iter().filter(|node| *node != self.member.node);
        let member = |node| self.pool.tables.at_node(node);
        others.filter_map(member).map(|member| Relative { pool: self.pool, member }).collect()
    }
}

impl<H: HeaderView> PoolView for View<'_, H> {
    type Entry<'p>
        = Relative<'p>
    where
        Self: 'p;

    fn has_wtxid(&self, wtxid: &Wtxid) -> bool {
        self.pool.tables.get_by_wtxid(wtxid).is_some()
    }

    fn entry(&self, txid: &Txid) -> Option<Relative<'_>> {
        self.pool.get(txid).map(|member| Relative { pool: self.pool, member })
    }

    fn spender(&self, prevout: &OutPoint) -> Option<Txid> {
        self.pool.tables.spender(prevout).map(|spender| spender.entry.txid())
    }

    fn coins(&self, outpoints: &[OutPoint]) -> Vec<Option<Coin>> {
        let unconfirmed = |tx: Tx<'_>, vout: u32| {
            let vout = vout as usize;
            (vout < tx.output_count()).then(|| Coin::new(tx.output(vout), self.chain.next.height, false))
        };
        let coin = |outpoint: &OutPoint| {
            if let Some(tx) = self.package.get(&outpoint.txid) {
                return unconfirmed(tx.view(), outpoint.vout);
            }
            match self.pool.get(&outpoint.txid) {
                Some(member) => unconfirmed(member.entry.tx.view(), outpoint.vout),
                None => self.chain.coins.get(outpoint).cloned().flatten(),
            }
        };
        outpoints.iter().map(coin).collect()
    }

    fn has_any_in_chain(&self, outpoints: &[OutPoint]) -> bool {
        outpoints.iter().any(|outpoint| matches!(self.chain.coins.get(outpoint), Some(Some(_))))
    }

    fn fee_delta(&self, txid: &Txid) -> Amount {
        Amount(self.pool.delta(txid))
    }

    fn min_fee(&self) -> FeeRate {
        if self.is_ahead { self.pool.min_fee_seen(self.now) } else { self.pool.min_fee(self.now) }
    }
}

impl Pool {
    /// The transaction with its coins, if it would be accepted now but for its scripts. It may spend outputs of
    /// `package`, whose transactions are not in the pool yet. The pool stays as it is.
    pub(crate) fn look_ahead<H: HeaderView>(
        &mut self,
        tx: &Arc<Transaction>,
        how: &How,
        chain: &Chain<'_, H>,
        package: &Package,
    ) -> Option<Spend> {
        let how = &How { is_ahead: true, ..*how };
        self.graph.start_staging();
        let candidate = self.check(tx, how, chain, package).and_then(|candidate| {
            if candidate.conflicts.is_empty() {
                self.depend(std::slice::from_ref(&candidate));
            } else {
                self.check_replacement(&candidate)?;
            }
            Ok(candidate)
        });
        let is_oversized = self.graph.is_oversized(Level::Staging);
        self.graph.abort_staging();
        let candidate = candidate.ok().filter(|_| !is_oversized)?;
        Spend::new(candidate.tx, candidate.coins)
    }

    /// Accepts a transaction, or says why not.
    pub(crate) fn accept<H: HeaderView>(
        &mut self,
        tx: &Arc<Transaction>,
        how: &How,
        chain: &Chain<'_, H>,
    ) -> Result<Accepted, Rejection> {
        self.graph.start_staging();
        let accepted = self.try_accept(tx, how, chain);
        // After an acceptance there is none.
        self.graph.abort_staging();
        accepted
    }

    fn try_accept<H: HeaderView>(
        &mut self,
        tx: &Arc<Transaction>,
        how: &How,
        chain: &Chain<'_, H>,
    ) -> Result<Accepted, Rejection> {
        let candidate = self.check(tx, how, chain, &Package::new())?;
        let replaced = if candidate.conflicts.is_empty() {
            self.depend(std::slice::from_ref(&candidate));
            Vec::new()
        } else {
            self.check_replacement(&candidate)?
        };
        if self.graph.is_oversized(Level::Staging) {
            return Err(Rejection::of(PolicyRule::ClusterLimit));
        }
        if !candidate.conflicts.is_empty() {
            let ancestors = self.graph.ancestors(&candidate.parents, Level::Main);
            let ancestors = ancestors.iter().filter_map(|node| self.entry_of(*node)).map(|entry| entry.txid());
            check_ancestors_disjoint(ancestors, &candidate.conflicts, candidate.txid())?;
        }
        check_max_feerate(candidate.modified_fee, candidate.vsize, how.feerate_max)?;
        if !how.mode.bypass_limits && self.settings.require_standard {
            let parent = |txid: &Txid| self.get(txid).map(|member| member.entry.tx.view());
            check_ephemeral_spends(&[tx.view()], self.settings.dust_relay_fee, parent)
                .map_err(|(_, rejection)| rejection)?;
        }
        verify_scripts(&candidate, chain)?;
        let (feerate, wtxid) = (candidate.feerate(), candidate.wtxid());
        let mut accepted = Accepted {
            replaced: Vec::new(),
            vsize: candidate.vsize,
            fee: candidate.fee,
            effective_feerate: feerate,
            effective_of: vec![wtxid],
        };
        if how.is_test {
            return Ok(accepted);
        }
        accepted.replaced = self.apply(std::slice::from_ref(&candidate), replaced, how);
        if !how.is_package && !how.mode.bypass_limits {
            self.limit(how.now);
        }
        match self.get(&candidate.txid()) {
            None => Err(Rejection::of(PolicyRule::MempoolFull)),
            Some(member) => {
                let entry = Arc::clone(&member.entry);
                let counts = how.is_chain_current && !how.is_package && !how.mode.bypass_limits;
                self.announce(entry, Arc::clone(&candidate.coins), counts);
                Ok(accepted)
            }
        }
    }

    /// Checks a transaction up to its scripts and adds it to the staging copy of the graph, without its dependencies.
    pub(super) fn check<H: HeaderView>(
        &mut self,
        tx: &Arc<Transaction>,
        how: &How,
        chain: &Chain<'_, H>,
        package: &Package,
    ) -> Result<Candidate, Rejection> {
        let view = View { pool: self, chain, package, now: how.now, is_ahead: how.is_ahead };
        let checked = pre_checks(tx.view(), how.mode, &chain.next, &self.settings, &view)?;
        let PreChecked { spending, coins, modified_fee, parents, conflicts, is_sibling_eviction } = checked;
        let parents = parents.iter().map(|parent| parent.member.node).collect();
        let highest = spending.last_coin_height;
        let hash = chain.next.headers.ancestor(highest).map_or(BlockHash::ZERO, |ancestor| ancestor.hash);
        let adjusted_weight = i32::try_from(spending.adjusted_weight).unwrap_or(i32::MAX);
        let sequence = self.sequence();
        let node = self.stage(tx.view().txid(), adjusted_weight, modified_fee.0);
        Ok(Candidate {
            tx: Arc::clone(tx),
            coins: coins.into(),
            fee: spending.base_fee,
            modified_fee,
            vsize: spending.vsize,
            adjusted_weight,
            sigops_cost: spending.sigops_cost,
            spends_coinbase: spending.spends_coinbase,
            locks: LockPoints { locks: spending.locks, highest: (highest, hash) },
            sequence,
            parents,
            conflicts,
            is_sibling_eviction,
            node,
        })
    }

    /// Adds the dependencies of candidates on the pool and on each other to the staging copy.
    pub(super) fn depend(&mut self, candidates: &[Candidate]) {
        let mut pairs: Vec<(TxRef, TxRef)> = Vec::new();
        for candidate in candidates {
            let is_parent = |other: &&Candidate| {
                let txid = other.txid();
                candidate.tx.view().inputs().any(|input| input.prevout.txid == txid)
            };
            let in_package = candidates.iter().filter(is_parent).map(|parent| parent.node);
            let in_pool = candidate.parents.iter().copied().filter(|node| self.graph.contains(*node, Level::Staging));
            pairs.extend(in_pool.chain(in_package).map(|parent| (parent, candidate.node)));
        }
        if !pairs.is_empty() {
            self.graph.add_dependencies(&pairs);
        }
    }

    /// Transactions of the pool, for the rules about TRUC.
    pub(super) fn relatives(&self, nodes: &[TxRef]) -> Vec<Relative<'_>> {
        let member = |node: &TxRef| self.tables.at_node(*node);
        nodes.iter().filter_map(member).map(|member| Relative { pool: self, member }).collect()
    }

    /// Everything that is replaced with these transactions, and their clusters: Core's `GetEntriesForConflicts`.
    pub(super) fn replaced_with(&self, conflicts: impl Iterator<Item = Txid>) -> (Vec<TxRef>, usize) {
        let direct: Vec<TxRef> = conflicts.filter_map(|txid| self.get(&txid)).map(|member| member.node).collect();
        let clusters = self.graph.count_clusters(&direct, Level::Main);
        (direct, clusters)
    }

    /// The sum of the modified fees of transactions.
    pub(super) fn fees_of(&self, nodes: &[TxRef]) -> Amount {
        let fee = |node: &TxRef| self.tables.at_node(*node).map(Member::modified_fee);
        Amount(nodes.iter().filter_map(fee).fold(0, i64::saturating_add))
    }

    /// Core's `ReplacementChecks`. Returns what is replaced, which is removed from the staging copy.
    fn check_replacement(&mut self, candidate: &Candidate) -> Result<Vec<TxRef>, Rejection> {
        let (txid, is_sibling_eviction) = (candidate.txid(), candidate.is_sibling_eviction);
        let (direct, clusters) = self.replaced_with(candidate.conflicts.iter().copied());
        check_replacement_clusters(clusters, txid, is_sibling_eviction)?;
        let replaced = self.graph.descendants(&direct, Level::Main);
        let fees = ReplacementFees {
            original_fees: self.fees_of(&replaced),
            replacement_fees: candidate.modified_fee,
            vsize: candidate.vsize,
            incremental_relay_fee: self.settings.incremental_relay_fee,
        };
        check_replacement_fees(&fees, txid, is_sibling_eviction)?;
        self.graph.remove(&replaced);
        self.depend(std::slice::from_ref(candidate));
        if self.graph.is_oversized(Level::Staging) {
            return Err(Rejection::of(PolicyRule::ClusterLimit));
        }
        match self.improves() {
            true => Ok(replaced),
            false => {
                let message = "insufficient feerate: does not improve feerate diagram".to_owned();
                Err(Rejection::with_message(PolicyRule::ReplacementDiagram, message))
            }
        }
    }

    /// Whether the staging copy has a better feerate diagram than main: Core's `ImprovesFeerateDiagram`.
    pub(super) fn improves(&mut self) -> bool {
        self.graph.diagrams().is_some_and(|(main, staging)| staging.compare(&main) == Some(std::cmp::Ordering::Greater))
    }

    /// Makes the staging copy the pool: removes what is replaced and adds the candidates. Returns what was replaced.
    pub(super) fn apply(&mut self, candidates: &[Candidate], mut replaced: Vec<TxRef>, how: &How) -> Vec<Arc<Entry>> {
        // As in Core, in the order of txids.
        self.sort_by_txid(&mut replaced);
        let entries = replaced.iter().filter_map(|node| self.entry_of(*node)).map(Arc::clone).collect();
        self.touch(&replaced);
        for candidate in candidates {
            self.touch(&candidate.parents);
        }
        self.graph.commit_staging();
        self.forget(&replaced, RemovalReason::Replaced);
        for candidate in candidates {
            self.add(candidate.entry(how, self.tip.height), candidate.node);
        }
        entries
    }
}

/// Core's `PolicyScriptChecks`.
pub(super) fn verify_scripts<H>(candidate: &Candidate, chain: &Chain<'_, H>) -> Result<(), Rejection> {
    let Some(spend) = Spend::new(Arc::clone(&candidate.tx), Arc::clone(&candidate.coins)) else {
        return Err(Rejection::of(PolicyRule::MissingInputs));
    };
    (chain.scripts)(&spend).map_err(|failure| {
        let outputs: Vec<Output<'_>> = candidate.coins.iter().map(Coin::output).collect();
        match TxContext::new(candidate.tx.view(), &outputs) {
            Some(context) => script_rejection(&context, failure.input, failure.error),
            None => Rejection::of(PolicyRule::MissingInputs),
        }
    })
}
