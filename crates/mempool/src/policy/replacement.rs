//! The arithmetic of replacement: Core's `GetEntriesForConflicts`, `PaysForRBF` and `EntriesAndTxidsDisjoint`
//! (policy/rbf.cpp). The cluster graph compares feerate diagrams and limits clusters.
//!
//! Input: counts and fees that the pool gathers. Output: the first broken rule. Pure.

use super::fee_rate::FeeRate;
use super::limits::MAX_REPLACEMENT_CANDIDATES;
use super::rejection::Rejection;
use super::rule::PolicyRule;
use lydian_consensus::{Check, first_broken, format_money};
use lydian_primitives::{Amount, Tx, Txid};
use std::collections::BTreeSet;

/// The highest sequence that signals replaceability: `MAX_BIP125_RBF_SEQUENCE` (util/rbf.h).
pub const SEQUENCE_SIGNALLING_MAX: u32 = 0xffff_fffd;

/// Whether a transaction signals replaceability (BIP-0125). RPC reports that of a transaction and its ancestors; every
/// transaction can be replaced, whatever it signals. Core's `SignalsOptInRBF` (util/rbf.cpp).
pub fn signals_opt_in_rbf(tx: Tx<'_>) -> bool {
    tx.inputs().any(|input| input.sequence <= SEQUENCE_SIGNALLING_MAX)
}

/// The fees of a replacement, which may be a package.
#[derive(Clone, Copy, Debug)]
pub struct ReplacementFees {
    /// Sum of the modified fees of everything that is removed.
    pub original_fees: Amount,
    /// Sum of the modified fees of the replacement.
    pub replacement_fees: Amount,
    /// Virtual size of the replacement.
    pub vsize: i64,
    /// `-incrementalrelayfee`.
    pub incremental_relay_fee: FeeRate,
}

impl ReplacementFees {
    fn additional(&self) -> Amount {
        Amount(self.replacement_fees.0.saturating_sub(self.original_fees.0))
    }

    fn required(&self) -> Amount {
        Amount(self.incremental_relay_fee.fee(self.vsize))
    }
}

/// The checks of Core's `PaysForRBF`: rules 3 and 4 of BIP-0125.
pub const REPLACEMENT_FEE_CHECKS: &[Check<ReplacementFees, PolicyRule>] = &[
    Check { rule: PolicyRule::ReplacementFee, holds: |fees| fees.replacement_fees >= fees.original_fees },
    Check { rule: PolicyRule::ReplacementRelayFee, holds: |fees| fees.additional() >= fees.required() },
];

/// Checks that a replacement conflicts with at most 100 clusters: rule 5 of BIP-0125, as Core has it since clusters.
/// `cluster_count` counts the clusters of the transactions that it replaces directly.
pub fn check_replacement_clusters(
    cluster_count: usize,
    replacement: Txid,
    is_sibling_eviction: bool,
) -> Result<(), Rejection> {
    if cluster_count <= MAX_REPLACEMENT_CANDIDATES {
        return Ok(());
    }
    let message = clusters_message(replacement, cluster_count);
    let rejection = Rejection::with_message(PolicyRule::ReplacementClusters, message);
    Err(Rejection { is_sibling_eviction, ..rejection })
}

pub(super) fn clusters_message(replacement: Txid, count: usize) -> String {
    format!(
        "rejecting replacement {replacement}; too many conflicting clusters ({count} > {MAX_REPLACEMENT_CANDIDATES})"
    )
}

/// Checks that a replacement pays for what it removes and for its own relay.
pub fn check_replacement_fees(
    fees: &ReplacementFees,
    replacement: Txid,
    is_sibling_eviction: bool,
) -> Result<(), Rejection> {
    match fees_fault(fees, replacement) {
        None => Ok(()),
        Some((rule, message)) => Err(Rejection { is_sibling_eviction, ..Rejection::with_message(rule, message) }),
    }
}

/// The rule that the fees break, with Core's message.
pub(super) fn fees_fault(fees: &ReplacementFees, replacement: Txid) -> Option<(PolicyRule, String)> {
    let rule = first_broken(REPLACEMENT_FEE_CHECKS, fees)?;
    let (what, paid, wanted) = match rule {
        PolicyRule::ReplacementFee => ("less fees than conflicting txs", fees.replacement_fees, fees.original_fees),
        _ => ("not enough additional fees to relay", fees.additional(), fees.required()),
    };
    let (paid, wanted) = (format_money(paid), format_money(wanted));
    Some((rule, format!("rejecting replacement {replacement}, {what}; {paid} < {wanted}")))
}

/// Checks that a replacement does not depend on what it replaces. `ancestors` are its unconfirmed ancestors. Of several
/// that it would replace, the one with the least txid is named, as in Core, whose ancestors are a set.
pub fn check_ancestors_disjoint(
    ancestors: impl IntoIterator<Item = Txid>,
    direct_conflicts: &BTreeSet<Txid>,
    replacement: Txid,
) -> Result<(), Rejection> {
    match ancestors.into_iter().filter(|ancestor| direct_conflicts.contains(ancestor)).min() {
        None => Ok(()),
        Some(ancestor) => {
            let message = format!("{replacement} spends conflicting transaction {ancestor}");
            Err(Rejection::with_message(PolicyRule::SpendsConflicting, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::OutPoint;
    use lydian_primitives::build::{MutInput, MutOutput, MutTx};

    /// The random stories found it after 33,900 steps: of two ancestors that a transaction would replace, we named the
    /// first in the order of the cluster, and Core the first in that of txids.
    #[test]
    fn the_least_txid_of_the_conflicting_ancestors_is_named() {
        let [least, other, replacement] = [[1; 32], [2; 32], [3; 32]].map(Txid);
        for ancestors in [[least, other], [other, least]] {
            let rejection = check_ancestors_disjoint(ancestors, &BTreeSet::from(ancestors), replacement).unwrap_err();
            assert_eq!(rejection.debug_message, format!("{replacement} spends conflicting transaction {least}"));
        }
        let rejection = check_ancestors_disjoint([least, other], &BTreeSet::from([other]), replacement).unwrap_err();
        assert_eq!(rejection.debug_message, format!("{replacement} spends conflicting transaction {other}"));
        assert_eq!(check_ancestors_disjoint([least, other], &BTreeSet::new(), replacement), Ok(()));
    }

    #[test]
    fn one_low_sequence_signals() {
        let signals = |sequences: &[u32]| {
            let input = |sequence: &u32| MutInput {
                prevout: OutPoint::NULL,
                script_sig: Vec::new(),
                sequence: *sequence,
                witness: Vec::new(),
            };
            let outputs = vec![MutOutput { value: Amount(0), script_pubkey: Vec::new() }];
            let inputs = sequences.iter().map(input).collect();
            signals_opt_in_rbf(MutTx { version: 2, inputs, outputs, lock_time: 0 }.to_transaction().unwrap().view())
        };
        assert!(signals(&[0xffff_fffd]) && signals(&[0xffff_ffff, 0]));
        assert!(!signals(&[0xffff_fffe, 0xffff_ffff]));
    }

    /// The conflict is found among the ancestors only.
    #[test]
    fn a_replacement_is_no_descendant_of_what_it_replaces() {
        let (a, b) = (Txid([1; 32]), Txid([2; 32]));
        let conflicts = BTreeSet::from([b]);
        assert_eq!(check_ancestors_disjoint([a], &conflicts, a), Ok(()));
        let rejection = check_ancestors_disjoint([a, b], &conflicts, a).unwrap_err();
        assert_eq!(rejection.debug_message, format!("{a} spends conflicting transaction {b}"));
    }
}
