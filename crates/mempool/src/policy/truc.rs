//! The topology of TRUC transactions, those of version 3 (BIP-0431): Core's `SingleTRUCChecks` and `PackageTRUCChecks`
//! (policy/truc_policy.cpp).
//!
//! Input: a transaction, its parents in the mempool, which answer through [`PoolEntry`], and the package it comes with.
//! Output: the first broken rule, and the sibling that may be evicted instead. Pure. Cost: linear in parents; for a
//! package linear in its inputs for each of at most 25 transactions.

use super::limits::{TRUC_ANCESTOR_LIMIT, TRUC_CHILD_MAX_VSIZE, TRUC_DESCENDANT_LIMIT, TRUC_MAX_VSIZE};
use super::rejection::Rejection;
use super::rule::{PolicyRule, ValidationResult};
use lydian_consensus::{Check, first_broken};
use lydian_primitives::{Tx, Txid, Wtxid};
use std::collections::{BTreeSet, HashSet};

/// The version of TRUC transactions.
pub const TRUC_VERSION: u32 = 3;

/// A transaction of the mempool, as far as TRUC asks.
pub trait PoolEntry: Sized {
    fn txid(&self) -> Txid;
    fn wtxid(&self) -> Wtxid;
    fn version(&self) -> u32;
    /// Number of its unconfirmed ancestors, itself included.
    fn ancestor_count(&self) -> usize;
    /// Number of its unconfirmed descendants, itself included.
    fn descendant_count(&self) -> usize;
    /// Its descendants without itself. Asked only of a TRUC transaction that passes the other checks, which has one
    /// unless a reorganisation left it more.
    fn descendants(&self) -> Vec<Self>;
}

/// What the checks name of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct TrucTx {
    pub txid: Txid,
    pub wtxid: Wtxid,
    pub version: u32,
    /// Adjusted for signature operations.
    pub vsize: i64,
}

impl TrucTx {
    pub fn new(tx: Tx<'_>, vsize: i64) -> TrucTx {
        TrucTx { txid: tx.txid(), wtxid: tx.wtxid(), version: tx.version(), vsize }
    }

    fn is_truc(&self) -> bool {
        self.version == TRUC_VERSION
    }
}

/// The result of [`check_truc`] where a rule is broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrucViolation {
    pub rejection: Rejection,
    /// The only other child of the parent. If it is evicted under the rules of replacement, the transaction may be
    /// accepted.
    pub sibling: Option<Txid>,
}

/// The facts about a TRUC transaction and its unconfirmed relatives.
#[derive(Clone, Copy, Debug)]
pub struct TrucFacts {
    pub vsize: i64,
    /// Number of unconfirmed ancestors, the transaction itself included, as far as they matter: its parents, or the
    /// ancestors of the first parent.
    pub ancestor_count: usize,
    pub has_parent: bool,
    /// Number of descendants of the parent, with the parent and this transaction, without those to be replaced.
    pub parent_descendant_count: usize,
}

/// The checks of Core's `SingleTRUCChecks` on a TRUC transaction, after that of its parents' versions.
pub const TRUC_CHECKS: &[Check<TrucFacts, PolicyRule>] = &[
    Check { rule: PolicyRule::TrucSize, holds: |tx| tx.vsize <= TRUC_MAX_VSIZE },
    Check { rule: PolicyRule::TrucAncestors, holds: |tx| tx.ancestor_count <= TRUC_ANCESTOR_LIMIT },
    Check { rule: PolicyRule::TrucChildSize, holds: |tx| !tx.has_parent || tx.vsize <= TRUC_CHILD_MAX_VSIZE },
    Check { rule: PolicyRule::TrucDescendants, holds: |tx| tx.parent_descendant_count <= TRUC_DESCENDANT_LIMIT },
];

/// Checks a transaction with its parents in the mempool. `direct_conflicts` are the transactions of the mempool that it
/// replaces. Must be called for every transaction, whatever its version.
pub fn check_truc<E: PoolEntry>(
    tx: &TrucTx,
    parents: &[E],
    direct_conflicts: &BTreeSet<Txid>,
) -> Result<(), TrucViolation> {
    let broken = |rule, message, sibling| {
        let rejection = Rejection::with_message(rule, message);
        Err(TrucViolation { rejection, sibling })
    };
    if let Some(parent) = parents.iter().find(|parent| (parent.version() == TRUC_VERSION) != tx.is_truc()) {
        return broken(PolicyRule::TrucParent, parent_message(tx, parent.txid(), parent.wtxid()), None);
    }
    if !tx.is_truc() {
        return Ok(());
    }
    let parent = parents.first();
    let of_parent = parent.map_or(0, PoolEntry::ancestor_count);
    let mut facts = TrucFacts {
        vsize: tx.vsize,
        ancestor_count: (parents.len() + 1).max(of_parent + 1),
        has_parent: parent.is_some(),
        parent_descendant_count: 0,
    };
    let mut sibling = None;
    let parent_descendant_count = parent.map_or(0, PoolEntry::descendant_count);
    // A second child: only then, and only if everything else holds, are the descendants looked at.
    if let Some(parent) = parent
        && parent_descendant_count + 1 > TRUC_DESCENDANT_LIMIT
        && first_broken(TRUC_CHECKS, &facts).is_none()
    {
        let children = parent.descendants();
        let is_replaced = children.iter().any(|child| direct_conflicts.contains(&child.txid()));
        facts.parent_descendant_count = if is_replaced { 0 } else { parent_descendant_count + 1 };
        let lonely = |child: &&E| parent_descendant_count == 2 && child.ancestor_count() == 2;
        sibling = children.first().filter(lonely).map(PoolEntry::txid);
    }
    match (first_broken(TRUC_CHECKS, &facts), parent) {
        (None, _) => Ok(()),
        (Some(PolicyRule::TrucDescendants), Some(parent)) => {
            broken(PolicyRule::TrucDescendants, descendants_message(parent.txid(), parent.wtxid()), sibling)
        }
        (Some(rule), _) => broken(rule, own_message(rule, tx), None),
    }
}

fn parent_message(tx: &TrucTx, parent: Txid, parent_wtxid: Wtxid) -> String {
    let (child, other) = if tx.is_truc() { ("", "non-") } else { ("non-", "") };
    let (txid, wtxid) = (tx.txid, tx.wtxid);
    format!(
        "{child}version=3 tx {txid} (wtxid={wtxid}) cannot spend from {other}version=3 tx {parent} \
         (wtxid={parent_wtxid})"
    )
}

fn ancestors_message(txid: Txid, wtxid: Wtxid) -> String {
    format!("tx {txid} (wtxid={wtxid}) would have too many ancestors")
}

fn descendants_message(txid: Txid, wtxid: Wtxid) -> String {
    format!("tx {txid} (wtxid={wtxid}) would exceed descendant count limit")
}

/// The message of a rule that names the transaction itself.
fn own_message(rule: PolicyRule, tx: &TrucTx) -> String {
    let TrucTx { txid, wtxid, vsize, .. } = *tx;
    let too_big = |kind: &str, max: i64| {
        format!("version=3 {kind}tx {txid} (wtxid={wtxid}) is too big: {vsize} > {max} virtual bytes")
    };
    match rule {
        PolicyRule::TrucSize => too_big("", TRUC_MAX_VSIZE),
        PolicyRule::TrucChildSize => too_big("child ", TRUC_CHILD_MAX_VSIZE),
        _ => ancestors_message(txid, wtxid),
    }
}

/// Checks the transaction at `index` of a package, which is sorted, after every transaction passed [`check_truc`].
/// `parents` are those in the mempool. The package is rejected, not the transaction: Core's `PackageTRUCChecks`.
///
/// Panics if there is no such transaction.
pub fn check_package_truc<E: PoolEntry>(
    package: &[Tx<'_>],
    index: usize,
    vsize: i64,
    parents: &[E],
) -> Result<(), Rejection> {
    let tx = TrucTx::new(package[index], vsize);
    let prevouts: HashSet<Txid> = package[index].inputs().map(|input| input.prevout.txid).collect();
    let in_package: Vec<Tx<'_>> =
        package[..index].iter().copied().filter(|parent| prevouts.contains(&parent.txid())).collect();
    let broken = |rule, message| {
        let rejection = Rejection::with_message(rule, message);
        Err(Rejection { result: ValidationResult::PackagePolicy, ..rejection })
    };
    if !tx.is_truc() {
        let of_pool = parents.iter().map(|parent| (parent.txid(), parent.wtxid(), parent.version()));
        let of_package = in_package.iter().map(|parent| (parent.txid(), parent.wtxid(), parent.version()));
        return match of_pool.chain(of_package).find(|(_, _, version)| *version == TRUC_VERSION) {
            Some((txid, wtxid, _)) => broken(PolicyRule::TrucParent, parent_message(&tx, txid, wtxid)),
            None => Ok(()),
        };
    }
    if vsize > TRUC_MAX_VSIZE {
        return broken(PolicyRule::TrucSize, own_message(PolicyRule::TrucSize, &tx));
    }
    let above = parents.first().map_or(0, PoolEntry::ancestor_count);
    if (parents.len() + in_package.len() + 1).max(above + in_package.len() + 1) > TRUC_ANCESTOR_LIMIT {
        return broken(PolicyRule::TrucAncestors, ancestors_message(tx.txid, tx.wtxid));
    }
    let of_pool = parents.first().map(|parent| (parent.txid(), parent.wtxid(), parent.version()));
    let of_package = in_package.first().map(|parent| (parent.txid(), parent.wtxid(), parent.version()));
    let Some((parent, parent_wtxid, version)) = of_pool.or(of_package) else { return Ok(()) };
    if vsize > TRUC_CHILD_MAX_VSIZE {
        return broken(PolicyRule::TrucChildSize, own_message(PolicyRule::TrucChildSize, &tx));
    }
    if version != TRUC_VERSION {
        return broken(PolicyRule::TrucParent, parent_message(&tx, parent, parent_wtxid));
    }
    let others = package.iter().enumerate().filter(|(other, _)| *other != index);
    let spent = others.flat_map(|(_, other)| other.inputs().map(move |input| (other, input.prevout.txid)));
    for (other, spent) in spent {
        if spent == parent {
            return broken(PolicyRule::TrucDescendants, descendants_message(parent, parent_wtxid));
        }
        if spent == tx.txid {
            return broken(PolicyRule::TrucAncestors, ancestors_message(other.txid(), other.wtxid()));
        }
    }
    if parents.first().is_some_and(|parent| parent.descendant_count() > 1) {
        return broken(PolicyRule::TrucDescendants, descendants_message(parent, parent_wtxid));
    }
    Ok(())
}
