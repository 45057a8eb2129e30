//! Acceptance of several transactions: Core's `AcceptMultipleTransactions` and `AcceptPackage` (validation.cpp).
//!
//! Input: transactions in order, parents first. Output: a result for each that was reached, and one for the package. A
//! package that is submitted is one transaction or a child with its parents; each is first tried alone, and what fails
//! for its fee or for missing parents is tried together, with one feerate.

use super::accept::{Accepted, Candidate, Chain, How, Package, verify_scripts};
use super::store::Pool;
use crate::graph::{Level, TxRef};
use crate::policy::{
    FeeRate, Mode, PackageReplacementFacts, PolicyRule, Rejection, ReplacementFees, ValidationResult,
    check_ephemeral_spends, check_fee_rate, check_max_feerate, check_package, check_package_replacement,
    check_package_replacement_fees, check_package_truc, check_submitted_package, is_child_with_parents,
};
use lydian_consensus::HeaderView;
use lydian_primitives::{Amount, Transaction, Tx, Txid, Wtxid};
use std::collections::HashMap;
use std::sync::Arc;

/// The result for one transaction: Core's `MempoolAcceptResult`.
#[derive(Clone, Debug)]
pub enum TxResult {
    Accepted(Accepted),
    /// It is in the pool already.
    InPool {
        vsize: i64,
        fee: Amount,
    },
    /// One with the same txid is in the pool.
    OtherWitness(Wtxid),
    Rejected(Rejection),
}

/// The result for several transactions: Core's `PackageMempoolAcceptResult`.
#[derive(Clone, Debug, Default)]
pub struct PackageResult {
    /// Why the package is not accepted as a whole.
    pub rejection: Option<Rejection>,
    /// By wtxid. Some may be missing if the package was rejected early.
    pub results: HashMap<Wtxid, TxResult>,
}

impl PackageResult {
    fn rejected(rejection: Rejection) -> PackageResult {
        PackageResult { rejection: Some(rejection), results: HashMap::new() }
    }

    /// The package fails with one of its transactions.
    fn failed(wtxid: Wtxid, rejection: Rejection) -> PackageResult {
        let results = HashMap::from([(wtxid, TxResult::Rejected(rejection))]);
        PackageResult { rejection: Some(Rejection::of(PolicyRule::PackageTransaction)), results }
    }
}

fn views(txs: &[Arc<Transaction>]) -> Vec<Tx<'_>> {
    txs.iter().map(|tx| tx.view()).collect()
}

/// A rule about one transaction that rejects a package.
fn of_package(rejection: Rejection) -> Rejection {
    Rejection { result: ValidationResult::PackagePolicy, ..rejection }
}

impl Pool {
    /// Tries several transactions without changing the pool: `testmempoolaccept` with more than one.
    pub(crate) fn test_package<H: HeaderView>(
        &mut self,
        txs: &[Arc<Transaction>],
        now: i64,
        chain: &Chain<'_, H>,
    ) -> PackageResult {
        let how = How { mode: Mode::TEST_PACKAGE, is_test: true, ..How::single(now) };
        self.accept_several(txs, &how, chain)
    }

    /// Accepts a package as far as possible: Core's `AcceptPackage`.
    pub(crate) fn accept_package<H: HeaderView>(
        &mut self,
        txs: &[Arc<Transaction>],
        feerate_max: Option<FeeRate>,
        now: i64,
        chain: &Chain<'_, H>,
    ) -> PackageResult {
        if let Err(rejection) = check_submitted_package(&views(txs)) {
            return PackageResult::rejected(rejection);
        }
        let alone = How { is_package: true, feerate_max, ..How::single(now) };
        let mut package = PackageResult::default();
        let (mut is_over, mut together) = (false, Vec::new());
        for tx in txs {
            let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
            let result = match self.get(&txid) {
                Some(member) if member.entry.wtxid() == wtxid => {
                    TxResult::InPool { vsize: i64::from(member.entry.vsize), fee: member.entry.fee }
                }
                Some(member) => TxResult::OtherWitness(member.entry.wtxid()),
                None => match self.accept(tx, &alone, chain) {
                    Ok(accepted) => TxResult::Accepted(accepted),
                    Err(rejection) => {
                        let may_do_together = matches!(
                            rejection.result,
                            ValidationResult::Reconsiderable | ValidationResult::MissingInputs
                        );
                        if txs.len() > 1 && may_do_together {
                            together.push(Arc::clone(tx));
                        } else {
                            is_over = true;
                            package.rejection = Some(Rejection::of(PolicyRule::PackageTransaction));
                        }
                        TxResult::Rejected(rejection)
                    }
                },
            };
            package.results.insert(wtxid, result);
        }
        if !is_over && !together.is_empty() {
            let several = self.accept_together(&together, feerate_max, now, chain);
            package.rejection = several.rejection;
            package.results.extend(several.results);
        }
        self.limit(now);
        self.take_back_evicted(txs, &mut package);
        package
    }

    /// Tries what is left of a package after each transaction was tried alone: Core's `AcceptSubPackage`.
    fn accept_together<H: HeaderView>(
        &mut self,
        txs: &[Arc<Transaction>],
        feerate_max: Option<FeeRate>,
        now: i64,
        chain: &Chain<'_, H>,
    ) -> PackageResult {
        if let [tx] = txs {
            let how = How { is_package: true, feerate_max, ..How::single(now) };
            let wtxid = tx.view().wtxid();
            return match self.accept(tx, &how, chain) {
                Ok(accepted) => {
                    PackageResult { rejection: None, results: HashMap::from([(wtxid, TxResult::Accepted(accepted))]) }
                }
                Err(rejection) => PackageResult::failed(wtxid, rejection),
            };
        }
        let how = How { mode: Mode::PACKAGE, is_package: true, feerate_max, ..How::single(now) };
        self.accept_several(txs, &how, chain)
    }

    /// Transactions that were accepted, or were in the pool before, and that did not fit in the end.
    fn take_back_evicted(&self, txs: &[Arc<Transaction>], package: &mut PackageResult) {
        for tx in txs {
            let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
            let was_there = !matches!(package.results.get(&wtxid), None | Some(TxResult::Rejected(_)));
            if was_there && self.get(&txid).is_none() {
                let rejection = Rejection::of(PolicyRule::MempoolFull);
                let rejection = Rejection { result: ValidationResult::MempoolPolicy, ..rejection };
                package.results.insert(wtxid, TxResult::Rejected(rejection));
                package.rejection = Some(Rejection::of(PolicyRule::PackageTransaction));
            }
        }
    }

    /// Core's `AcceptMultipleTransactions`.
    fn accept_several<H: HeaderView>(
        &mut self,
        txs: &[Arc<Transaction>],
        how: &How,
        chain: &Chain<'_, H>,
    ) -> PackageResult {
        if let Err(rejection) = check_package(&views(txs)) {
            return PackageResult::rejected(rejection);
        }
        self.graph.start_staging();
        let result = self.try_several(txs, how, chain);
        // After an acceptance there is none.
        self.graph.abort_staging();
        result.unwrap_or_else(|result| *result)
    }

    fn try_several<H: HeaderView>(
        &mut self,
        txs: &[Arc<Transaction>],
        how: &How,
        chain: &Chain<'_, H>,
    ) -> Result<PackageResult, Box<PackageResult>> {
        let candidates = self.check_each(txs, how, chain)?;
        let rejected = |rejection| Box::new(PackageResult::rejected(rejection));
        let txs_of_package = views(txs);
        let vsize = candidates.iter().map(|candidate| candidate.vsize).sum();
        let fees = candidates.iter().fold(0_i64, |sum, candidate| sum.saturating_add(candidate.modified_fee.0));
        let (feerate, wtxids) =
            (FeeRate::new(fees, vsize), candidates.iter().map(Candidate::wtxid).collect::<Vec<_>>());
        if how.mode.package_feerates {
            let min_fee = self.min_fee(how.now);
            let last = candidates.last().map(Candidate::wtxid);
            check_fee_rate(vsize, Amount(fees), min_fee, self.settings.min_relay_fee).map_err(|rejection| {
                Box::new(last.map_or_else(PackageResult::default, |wtxid| PackageResult::failed(wtxid, rejection)))
            })?;
        }
        let is_replacement = candidates.iter().any(|candidate| !candidate.conflicts.is_empty());
        let replaced = match is_replacement {
            true => self.check_package_replacement(&candidates, vsize, fees).map_err(rejected)?,
            false => {
                self.depend(&candidates);
                Vec::new()
            }
        };
        if self.graph.is_oversized(Level::Staging) {
            return Err(rejected(of_package(Rejection::of(PolicyRule::ClusterLimit))));
        }
        if self.settings.require_standard {
            let parent = |txid: &Txid| self.get(txid).map(|member| member.entry.tx.view());
            check_ephemeral_spends(&txs_of_package, self.settings.dust_relay_fee, parent).map_err(
                |(index, rejection)| {
                    let unspent = Rejection::of(PolicyRule::PackageUnspentDust);
                    Box::new(PackageResult {
                        rejection: Some(unspent),
                        ..PackageResult::failed(wtxids[index], rejection)
                    })
                },
            )?;
        }
        let package_feerate = how.mode.package_feerates.then_some((feerate, &wtxids[..]));
        let mut results = verify_each(&candidates, package_feerate, how, chain)?;
        if how.is_test {
            return Ok(PackageResult { rejection: None, results });
        }
        let replaced = self.apply(&candidates, replaced, how);
        if let Some(TxResult::Accepted(first)) = wtxids.first().and_then(|wtxid| results.get_mut(wtxid)) {
            first.replaced = replaced;
        }
        for candidate in candidates {
            if let Some(entry) = self.get(&candidate.txid()).map(|member| Arc::clone(&member.entry)) {
                self.announce(entry, candidate.coins, false);
            }
        }
        Ok(PackageResult { rejection: None, results })
    }

    /// The checks of each transaction up to its scripts, and of TRUC in the package.
    fn check_each<H: HeaderView>(
        &mut self,
        txs: &[Arc<Transaction>],
        how: &How,
        chain: &Chain<'_, H>,
    ) -> Result<Vec<Candidate>, Box<PackageResult>> {
        let mut candidates: Vec<Candidate> = Vec::with_capacity(txs.len());
        let mut before = Package::new();
        for tx in txs {
            let failed = |rejection| Box::new(PackageResult::failed(tx.view().wtxid(), rejection));
            let candidate = self.check(tx, how, chain, &before).map_err(failed)?;
            check_max_feerate(candidate.modified_fee, candidate.vsize, how.feerate_max).map_err(failed)?;
            candidates.push(candidate);
            before.insert(tx.view().txid(), Arc::clone(tx));
        }
        let txs = views(txs);
        for (index, candidate) in candidates.iter().enumerate() {
            let parents = self.relatives(&candidate.parents);
            check_package_truc(&txs, index, candidate.vsize, &parents)
                .map_err(|rejection| Box::new(PackageResult::rejected(rejection)))?;
        }
        Ok(candidates)
    }

    /// Core's `PackageRBFChecks`. Returns what is replaced, which is removed from the staging copy.
    fn check_package_replacement(
        &mut self,
        candidates: &[Candidate],
        vsize: i64,
        fees: i64,
    ) -> Result<Vec<TxRef>, Rejection> {
        let (Some(parent), Some(child)) = (candidates.first(), candidates.last()) else { return Ok(Vec::new()) };
        let txs: Vec<Tx<'_>> = candidates.iter().map(|candidate| candidate.tx.view()).collect();
        let conflicts = candidates.iter().flat_map(|candidate| candidate.conflicts.iter().copied());
        let (direct, cluster_count) = self.replaced_with(conflicts);
        let facts = PackageReplacementFacts {
            is_parent_and_child: candidates.len() == 2 && is_child_with_parents(&txs),
            has_mempool_parent: candidates.iter().any(|candidate| !candidate.parents.is_empty()),
            cluster_count,
        };
        check_package_replacement(&facts, child.txid())?;
        let replaced = self.graph.descendants(&direct, Level::Main);
        self.graph.remove(&replaced);
        let fees = ReplacementFees {
            original_fees: self.fees_of(&replaced),
            replacement_fees: Amount(fees),
            vsize,
            incremental_relay_fee: self.settings.incremental_relay_fee,
        };
        check_package_replacement_fees(&fees, child.txid(), parent.modified_fee, parent.vsize)?;
        self.depend(candidates);
        if self.graph.is_oversized(Level::Staging) {
            return Err(of_package(Rejection::of(PolicyRule::ClusterLimit)));
        }
        match self.improves() {
            true => Ok(replaced),
            false => Err(Rejection::of(PolicyRule::PackageReplacementDiagram)),
        }
    }
}

/// Verifies the scripts of all. Returns the results of accepted transactions: with the feerate of the package and whose
/// it is, or with their own.
fn verify_each<H>(
    candidates: &[Candidate],
    package_feerate: Option<(FeeRate, &[Wtxid])>,
    how: &How,
    chain: &Chain<'_, H>,
) -> Result<HashMap<Wtxid, TxResult>, Box<PackageResult>> {
    let mut results = HashMap::new();
    for candidate in candidates {
        let wtxid = candidate.wtxid();
        if let Err(rejection) = verify_scripts(candidate, chain) {
            let mut result = PackageResult::failed(wtxid, rejection);
            if how.is_test {
                // As in Core, those before it keep their result.
                result.results.extend(results);
            }
            return Err(Box::new(result));
        }
        let (effective_feerate, effective_of) = match package_feerate {
            Some((feerate, wtxids)) => (feerate, wtxids.to_vec()),
            None => (candidate.feerate(), vec![wtxid]),
        };
        let accepted = Accepted {
            replaced: Vec::new(),
            vsize: candidate.vsize,
            fee: candidate.fee,
            effective_feerate,
            effective_of,
        };
        results.insert(wtxid, TxResult::Accepted(accepted));
    }
    Ok(results)
}
