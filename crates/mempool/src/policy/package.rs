//! The shape of a package: Core's `IsWellFormedPackage`, `IsChildWithParents` and `GetPackageHash`
//! (policy/packages.cpp), and the arithmetic of `PackageRBFChecks` (validation.cpp).
//!
//! Input: the transactions of a package in their order. Output: the first broken rule. Pure. Cost: linear in the inputs
//! of all transactions.

use super::fee_rate::FeeRate;
use super::limits::{MAX_PACKAGE_COUNT, MAX_PACKAGE_WEIGHT, MAX_REPLACEMENT_CANDIDATES};
use super::rejection::Rejection;
use super::replacement::{ReplacementFees, clusters_message, fees_fault};
use super::rule::PolicyRule;
use lydian_consensus::{Check, first_broken};
use lydian_hash::sha256;
use lydian_primitives::{Amount, OutPoint, Tx, Txid, Wtxid};
use std::collections::{HashMap, HashSet};

/// The facts about a package that need nothing but its transactions.
#[derive(Clone, Copy, Debug)]
pub struct PackageFacts {
    pub count: usize,
    pub weight: usize,
    pub has_duplicate: bool,
    /// Whether no transaction spends an output of itself or of a later one.
    pub is_sorted: bool,
    /// Whether two transactions spend the same output, or one has no input.
    pub has_conflict: bool,
}

/// The checks of Core's `IsWellFormedPackage`, in Core's order.
pub const PACKAGE_CHECKS: &[Check<PackageFacts, PolicyRule>] = &[
    Check { rule: PolicyRule::PackageCount, holds: |package| package.count <= MAX_PACKAGE_COUNT },
    Check {
        rule: PolicyRule::PackageWeight,
        holds: |package| package.count <= 1 || package.weight <= MAX_PACKAGE_WEIGHT,
    },
    Check { rule: PolicyRule::PackageDuplicates, holds: |package| !package.has_duplicate },
    Check { rule: PolicyRule::PackageNotSorted, holds: |package| package.is_sorted },
    Check { rule: PolicyRule::PackageConflict, holds: |package| !package.has_conflict },
];

/// Checks a package by itself: Core's `IsWellFormedPackage`.
pub fn check_package(package: &[Tx<'_>]) -> Result<(), Rejection> {
    let broken = first_broken(PACKAGE_CHECKS, &package_facts(package));
    broken.map_or(Ok(()), |rule| Err(Rejection::of(rule)))
}

pub fn package_facts(package: &[Tx<'_>]) -> PackageFacts {
    let positions: HashMap<Txid, usize> = package.iter().map(Tx::txid).zip(0..).collect();
    let is_later = |txid: &Txid, index: usize| positions.get(txid).is_some_and(|position| *position >= index);
    let mut indexed = package.iter().enumerate();
    PackageFacts {
        count: package.len(),
        weight: package.iter().map(Tx::weight).sum(),
        has_duplicate: positions.len() < package.len(),
        is_sorted: indexed.all(|(index, tx)| !tx.inputs().any(|input| is_later(&input.prevout.txid, index))),
        has_conflict: has_conflict(package),
    }
}

/// A transaction that spends an output twice is no conflict: that breaks a consensus rule, which is reported instead.
fn has_conflict(package: &[Tx<'_>]) -> bool {
    let mut spent: HashMap<OutPoint, usize> = HashMap::new();
    package.iter().enumerate().any(|(index, tx)| {
        let mut inputs = tx.inputs();
        tx.input_count() == 0 || inputs.any(|input| *spent.entry(input.prevout).or_insert(index) != index)
    })
}

/// Whether all but the last transaction are parents of the last, of which there is at least one: Core's
/// `IsChildWithParents`.
pub fn is_child_with_parents(package: &[Tx<'_>]) -> bool {
    let Some((child, parents @ [_, ..])) = package.split_last() else { return false };
    let spent: HashSet<Txid> = child.inputs().map(|input| input.prevout.txid).collect();
    parents.iter().all(|parent| spent.contains(&parent.txid()))
}

/// Whether the package is a child with parents none of which spends another: Core's `IsChildWithParentsTree`.
pub fn is_child_with_parents_tree(package: &[Tx<'_>]) -> bool {
    let Some((_, parents)) = package.split_last() else { return false };
    let txids: HashSet<Txid> = parents.iter().map(Tx::txid).collect();
    let spends_parent = |tx: &Tx<'_>| tx.inputs().any(|input| txids.contains(&input.prevout.txid));
    is_child_with_parents(package) && !parents.iter().any(spends_parent)
}

/// The hash by which relay remembers a package: SHA-256 of the wtxids in ascending order, as they are displayed. The
/// order of the transactions does not matter. Core's `GetPackageHash`.
pub fn package_hash(wtxids: &[Wtxid]) -> [u8; 32] {
    let mut wtxids: Vec<[u8; 32]> = wtxids.iter().map(|wtxid| wtxid.0).collect();
    wtxids.sort_unstable_by(|a, b| a.iter().rev().cmp(b.iter().rev()));
    sha256(wtxids.as_flattened())
}

/// Checks a package that is submitted: by itself, and that it is one transaction or a child with its parents.
pub fn check_submitted_package(package: &[Tx<'_>]) -> Result<(), Rejection> {
    check_package(package)?;
    if package.len() > 1 && !is_child_with_parents(package) {
        return Err(Rejection::of(PolicyRule::PackageTopology));
    }
    Ok(())
}

/// The facts about a package that replaces transactions of the mempool.
#[derive(Clone, Copy, Debug)]
pub struct PackageReplacementFacts {
    /// Whether it is one parent and one child.
    pub is_parent_and_child: bool,
    pub has_mempool_parent: bool,
    /// Number of clusters with a transaction that is replaced directly.
    pub cluster_count: usize,
}

/// The checks of Core's `PackageRBFChecks` before the transactions to be replaced are gathered, in Core's order.
pub const PACKAGE_REPLACEMENT_CHECKS: &[Check<PackageReplacementFacts, PolicyRule>] = &[
    Check { rule: PolicyRule::PackageReplacementShape, holds: |package| package.is_parent_and_child },
    Check { rule: PolicyRule::PackageReplacementAncestors, holds: |package| !package.has_mempool_parent },
    Check {
        rule: PolicyRule::PackageReplacementClusters,
        holds: |package| package.cluster_count <= MAX_REPLACEMENT_CANDIDATES,
    },
];

/// Checks what kind of package replaces what. `child` is the last transaction.
pub fn check_package_replacement(facts: &PackageReplacementFacts, child: Txid) -> Result<(), Rejection> {
    let Some(rule) = first_broken(PACKAGE_REPLACEMENT_CHECKS, facts) else { return Ok(()) };
    let message = match rule {
        PolicyRule::PackageReplacementClusters => clusters_message(child, facts.cluster_count),
        _ => String::new(),
    };
    Err(Rejection::with_message(rule, message))
}

/// Checks the fees of a package that replaces transactions: those of replacement for the whole, and that the child pays
/// for more than its share. `parent_fee` is the parent's modified fee, for `parent_vsize` virtual bytes.
pub fn check_package_replacement_fees(
    fees: &ReplacementFees,
    child: Txid,
    parent_fee: Amount,
    parent_vsize: i64,
) -> Result<(), Rejection> {
    if let Some((_, message)) = fees_fault(fees, child) {
        return Err(Rejection::with_message(PolicyRule::PackageReplacementFees, message));
    }
    let parent = FeeRate::new(parent_fee.0, parent_vsize);
    let package = FeeRate::new(fees.replacement_fees.0, fees.vsize);
    if package <= parent {
        let message = format!("package feerate {package} <= parent feerate is {parent}");
        return Err(Rejection::with_message(PolicyRule::PackageReplacementFeerate, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of Core's `package_hash_tests` (test/txpackage_tests.cpp).
    #[test]
    fn the_hash_of_a_package_is_that_of_core() {
        let wtxids = [
            "85cd1a31eb38f74ed5742ec9cb546712ab5aaf747de28a9168b53e846cbda17f",
            "b4749f017444b051c44dfd2720e88f314ff94f3dd6d56d40ef65854fcd7fff6b",
            "e065bac15f62bb4e761d761db928ddee65a47296b2b776785abb912cdec474e3",
        ];
        let wtxids = wtxids.map(|text| text.parse::<Wtxid>().unwrap());
        let expected = wtxids.iter().flat_map(|wtxid| wtxid.0).collect::<Vec<_>>();
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
            assert_eq!(package_hash(&order.map(|index| wtxids[index])), sha256(&expected));
        }
    }
}
