//! The pool as a plain list of transactions, and our verdict on one more: the steps of policy in Core's order.
//!
//! Relatives are found by walking the list. The diagram is left out: the replacements that get so far improve it.

use super::world::{TIP, World};
use lydian_consensus::Coin;
use lydian_mempool::policy::{
    FeeRate, Mode, NextBlock, PolicyRule, PoolEntry, PoolView, PreChecked, Rejection, ReplacementFees, Settings,
    check_ancestors_disjoint, check_ephemeral_spends, check_replacement_clusters, check_replacement_fees, pre_checks,
    script_rejection,
};
use lydian_primitives::{Amount, Height, OutPoint, Output, Transaction, Tx, Txid, Wtxid};
use lydian_script::{Flags, LegacyCache, TxContext, verify_input_with};
use std::collections::{BTreeMap, BTreeSet};

pub struct Model<'w> {
    pub world: &'w World,
    pub settings: Settings,
    /// The transactions with their modified fees and adjusted weights.
    pub pool: BTreeMap<Txid, (Transaction, Amount, i64)>,
    /// The transactions of the package being checked that were checked already.
    pub package: Vec<Transaction>,
    pub deltas: BTreeMap<Txid, Amount>,
    pub min_fee: FeeRate,
}

/// What Core returns for a transaction that it would accept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accepted {
    pub base_fee: Amount,
    pub modified_fee: Amount,
    pub vsize: i64,
    pub adjusted_weight: i64,
    /// All transactions that would leave.
    pub removed: BTreeSet<Txid>,
}

impl<'w> Model<'w> {
    pub fn new(world: &'w World, settings: Settings) -> Model<'w> {
        let (pool, package, deltas) = Default::default();
        Model { world, settings, pool, package, deltas, min_fee: FeeRate::ZERO }
    }

    pub fn pre_checks(&self, tx: Tx<'_>, mode: Mode) -> Result<PreChecked<Relative<'_>>, Rejection> {
        let next = NextBlock { height: Height(TIP + 1), headers: self.world };
        pre_checks(tx, mode, &next, &self.settings, self)
    }

    /// Our verdict on a single transaction.
    pub fn check(&self, tx: Tx<'_>) -> Result<Accepted, Rejection> {
        let checked = self.pre_checks(tx, Mode::SINGLE)?;
        let mut removed = BTreeSet::new();
        if !checked.conflicts.is_empty() {
            removed = self.replacement(tx, &checked)?;
        }
        self.cluster_limits(&checked, &removed)?;
        let ancestors = checked.parents.iter().flat_map(|parent| self.ancestors(&parent.txid));
        check_ancestors_disjoint(ancestors, &checked.conflicts, tx.txid())?;
        if self.settings.require_standard {
            self.ephemeral_spends(&[tx]).map_err(|(_, rejection)| rejection)?;
        }
        scripts(tx, &checked.coins)?;
        let PreChecked { spending, modified_fee, .. } = checked;
        let (base_fee, vsize, adjusted_weight) = (spending.base_fee, spending.vsize, spending.adjusted_weight);
        Ok(Accepted { base_fee, modified_fee, vsize, adjusted_weight, removed })
    }

    fn replacement(&self, tx: Tx<'_>, checked: &PreChecked<Relative<'_>>) -> Result<BTreeSet<Txid>, Rejection> {
        let clusters: BTreeSet<BTreeSet<Txid>> = checked.conflicts.iter().map(|txid| self.cluster(txid)).collect();
        check_replacement_clusters(clusters.len(), tx.txid(), checked.is_sibling_eviction)?;
        let removed: BTreeSet<Txid> = checked.conflicts.iter().flat_map(|txid| self.descendants(txid)).collect();
        let fees = ReplacementFees {
            original_fees: Amount(removed.iter().map(|txid| self.pool[txid].1.0).sum()),
            replacement_fees: checked.modified_fee,
            vsize: checked.spending.vsize,
            incremental_relay_fee: self.settings.incremental_relay_fee,
        };
        check_replacement_fees(&fees, tx.txid(), checked.is_sibling_eviction)?;
        Ok(removed)
    }

    /// The limits of the cluster that the transaction would be in.
    fn cluster_limits(&self, checked: &PreChecked<Relative<'_>>, removed: &BTreeSet<Txid>) -> Result<(), Rejection> {
        let relatives: BTreeSet<Txid> = checked.parents.iter().flat_map(|parent| self.cluster(&parent.txid)).collect();
        let others = relatives.difference(removed);
        let weight: i64 = others.clone().map(|txid| self.pool[txid].2).sum();
        let (count, weight) = (others.count() + 1, weight + checked.spending.adjusted_weight);
        let Settings { cluster_count_max, cluster_vbytes_max, .. } = self.settings;
        let is_small = count <= cluster_count_max as usize && weight <= 4 * cluster_vbytes_max;
        if is_small { Ok(()) } else { Err(Rejection::of(PolicyRule::ClusterLimit)) }
    }

    pub fn ephemeral_spends(&self, package: &[Tx<'_>]) -> Result<(), (usize, Rejection)> {
        let parent = |txid: &Txid| self.pool.get(txid).map(|(tx, ..)| tx.view());
        check_ephemeral_spends(package, self.settings.dust_relay_fee, parent)
    }

    /// Puts an accepted transaction into the pool.
    pub fn submit(&mut self, tx: Transaction, accepted: &Accepted) {
        self.pool.retain(|txid, _| !accepted.removed.contains(txid));
        self.pool.insert(tx.view().txid(), (tx, accepted.modified_fee, accepted.adjusted_weight));
    }

    fn children(&self, txid: &Txid) -> Vec<Txid> {
        let spends = |tx: &Transaction| tx.view().inputs().any(|input| input.prevout.txid == *txid);
        self.pool.iter().filter(|(_, (tx, ..))| spends(tx)).map(|(child, _)| *child).collect()
    }

    fn parents(&self, txid: &Txid) -> Vec<Txid> {
        let prevouts = self.pool[txid].0.view().inputs().map(|input| input.prevout.txid);
        prevouts.filter(|parent| self.pool.contains_key(parent)).collect()
    }

    fn walk(&self, from: &Txid, next: impl Fn(&Txid) -> Vec<Txid>) -> BTreeSet<Txid> {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![*from]);
        while let Some(txid) = todo.pop() {
            if seen.insert(txid) {
                todo.extend(next(&txid));
            }
        }
        seen
    }

    fn descendants(&self, txid: &Txid) -> BTreeSet<Txid> {
        self.walk(txid, |txid| self.children(txid))
    }

    fn ancestors(&self, txid: &Txid) -> BTreeSet<Txid> {
        self.walk(txid, |txid| self.parents(txid))
    }

    fn cluster(&self, txid: &Txid) -> BTreeSet<Txid> {
        self.walk(txid, |txid| [self.children(txid), self.parents(txid)].concat())
    }
}

/// The verdict on the scripts under the standard flags.
pub fn scripts(tx: Tx<'_>, coins: &[Coin]) -> Result<(), Rejection> {
    let spent: Vec<Output<'_>> = coins.iter().map(Coin::output).collect();
    let (context, mut cache) = (TxContext::new(tx, &spent).unwrap(), LegacyCache::new());
    for input in 0..tx.input_count() {
        verify_input_with(&context, input, Flags::STANDARD, &mut cache)
            .map_err(|error| script_rejection(&context, input, error))?;
    }
    Ok(())
}

/// A transaction of the model's pool.
pub struct Relative<'m> {
    model: &'m Model<'m>,
    pub txid: Txid,
}

impl PoolEntry for Relative<'_> {
    fn txid(&self) -> Txid {
        self.txid
    }

    fn wtxid(&self) -> Wtxid {
        self.model.pool[&self.txid].0.view().wtxid()
    }

    fn version(&self) -> u32 {
        self.model.pool[&self.txid].0.view().version()
    }

    fn ancestor_count(&self) -> usize {
        self.model.ancestors(&self.txid).len()
    }

    fn descendant_count(&self) -> usize {
        self.model.descendants(&self.txid).len()
    }

    fn descendants(&self) -> Vec<Self> {
        let all = self.model.descendants(&self.txid).into_iter().filter(|txid| *txid != self.txid);
        all.map(|txid| Relative { model: self.model, txid }).collect()
    }
}

impl PoolView for Model<'_> {
    type Entry<'p>
        = Relative<'p>
    where
        Self: 'p;

    fn has_wtxid(&self, wtxid: &Wtxid) -> bool {
        self.pool.values().any(|(tx, ..)| tx.view().wtxid() == *wtxid)
    }

    fn entry(&self, txid: &Txid) -> Option<Relative<'_>> {
        self.pool.contains_key(txid).then_some(Relative { model: self, txid: *txid })
    }

    fn spender(&self, prevout: &OutPoint) -> Option<Txid> {
        let spends = |tx: &Transaction| tx.view().inputs().any(|input| input.prevout == *prevout);
        self.pool.iter().find(|(_, (tx, ..))| spends(tx)).map(|(txid, _)| *txid)
    }

    fn coins(&self, outpoints: &[OutPoint]) -> Vec<Option<Coin>> {
        let unconfirmed = |outpoint: &OutPoint| {
            let of_package = self.package.iter().find(|tx| tx.view().txid() == outpoint.txid);
            let tx = of_package.or_else(|| self.pool.get(&outpoint.txid).map(|(tx, ..)| tx))?;
            let output = tx.view().outputs().nth(outpoint.vout as usize)?;
            Some(Coin::new(output, Height(TIP + 1), false))
        };
        let coin = |outpoint: &OutPoint| self.world.coins.get(outpoint).cloned().or_else(|| unconfirmed(outpoint));
        outpoints.iter().map(coin).collect()
    }

    fn has_any_in_chain(&self, outpoints: &[OutPoint]) -> bool {
        outpoints.iter().any(|outpoint| self.world.coins.contains_key(outpoint))
    }

    fn fee_delta(&self, txid: &Txid) -> Amount {
        self.deltas.get(txid).copied().unwrap_or_default()
    }

    fn min_fee(&self) -> FeeRate {
        self.min_fee
    }
}
