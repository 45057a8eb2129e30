//! Every policy rule by name, with a one-sentence description, its source and Core's reject reason. Checks, tests,
//! `lydian explain` and the documentation all use this table, as they use
//! [`lydian_consensus::RULES`] for consensus.
//!
//! Invariant: the variants of [`PolicyRule`] and [`POLICY_RULES`] are in the order of checking, which is that of Core's
//! `MemPoolAccept` (validation.cpp): the transaction alone, the pool, its coins, its fee, TRUC, replacement, dust of
//! parents, scripts. Consensus rules are checked in between: `CheckTransaction` first, `CheckTxInputs` after
//! [`PolicyRule::NonBip68Final`]. The rules of a package come last in the table.

use std::fmt;

/// The step at which a rule is checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PolicyStep {
    /// The transaction alone: Core's `IsStandardTx` and its neighbours in `PreChecks`.
    Alone,
    /// The transaction against the pool and the coins that exist: `PreChecks`.
    Pool,
    /// The transaction and the coins it spends: `ValidateInputsStandardness` and `IsWitnessStandard`.
    Coins,
    /// What the transaction pays: `PreCheckEphemeralTx`, `CheckFeeRate`.
    Fee,
    /// Topology of TRUC transactions (BIP-0431): `SingleTRUCChecks` and `PackageTRUCChecks`.
    Truc,
    /// Replacement and the limits of clusters: `ReplacementChecks` and `AcceptSingleTransactionInternal`.
    Replacement,
    /// The scripts of all inputs: `PolicyScriptChecks`.
    Scripts,
    /// The size of the mempool, after the transaction is in it: `LimitMempoolSize`.
    Limit,
    /// A package of transactions: `IsWellFormedPackage`, `AcceptPackage`, `PackageRBFChecks`.
    Package,
}

impl PolicyStep {
    pub fn name(self) -> &'static str {
        match self {
            PolicyStep::Alone => "standard transaction",
            PolicyStep::Pool => "mempool",
            PolicyStep::Coins => "standard inputs",
            PolicyStep::Fee => "fee",
            PolicyStep::Truc => "TRUC",
            PolicyStep::Replacement => "replacement",
            PolicyStep::Scripts => "standard scripts",
            PolicyStep::Limit => "mempool limit",
            PolicyStep::Package => "package",
        }
    }
}

/// The kind of a rejection, which decides what relay does with it: Core's `TxValidationResult`
/// (consensus/validation.h) and, for a package, `PackageValidationResult` (policy/packages.h).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ValidationResult {
    /// `TX_CONSENSUS`: invalid by consensus rules.
    Consensus,
    /// `TX_INPUTS_NOT_STANDARD`: what the txid covers of the inputs breaks policy.
    InputsNotStandard,
    /// `TX_NOT_STANDARD`: other policy about the transaction.
    NotStandard,
    /// `TX_MISSING_INPUTS`: an input has no coin; the parent may be unknown.
    MissingInputs,
    /// `TX_PREMATURE_SPEND`: a coinbase or a lock time is too young.
    PrematureSpend,
    /// `TX_WITNESS_MUTATED`: the witness breaks policy; the same txid may be accepted with another.
    WitnessMutated,
    /// `TX_WITNESS_STRIPPED`: the witness is missing.
    WitnessStripped,
    /// `TX_CONFLICT`: known already, in the mempool or in the chain.
    Conflict,
    /// `TX_MEMPOOL_POLICY`: the mempool's limits and rules.
    MempoolPolicy,
    /// `TX_RECONSIDERABLE`: the fee is too low, but may do in a package.
    Reconsiderable,
    /// `PCKG_POLICY`: the package itself breaks policy.
    PackagePolicy,
    /// `PCKG_TX`: a transaction of the package is rejected.
    PackageTx,
}

impl ValidationResult {
    /// Core's name.
    pub fn name(self) -> &'static str {
        match self {
            ValidationResult::Consensus => "TX_CONSENSUS",
            ValidationResult::InputsNotStandard => "TX_INPUTS_NOT_STANDARD",
            ValidationResult::NotStandard => "TX_NOT_STANDARD",
            ValidationResult::MissingInputs => "TX_MISSING_INPUTS",
            ValidationResult::PrematureSpend => "TX_PREMATURE_SPEND",
            ValidationResult::WitnessMutated => "TX_WITNESS_MUTATED",
            ValidationResult::WitnessStripped => "TX_WITNESS_STRIPPED",
            ValidationResult::Conflict => "TX_CONFLICT",
            ValidationResult::MempoolPolicy => "TX_MEMPOOL_POLICY",
            ValidationResult::Reconsiderable => "TX_RECONSIDERABLE",
            ValidationResult::PackagePolicy => "PCKG_POLICY",
            ValidationResult::PackageTx => "PCKG_TX",
        }
    }
}

/// The description of a rule.
#[derive(Clone, Copy, Debug)]
pub struct PolicyRuleInfo {
    pub rule: PolicyRule,
    pub step: PolicyStep,
    /// Our own unique name, because Core uses one reject reason for several rules.
    pub name: &'static str,
    /// Core's reject reason. Scripts and sibling eviction add to it, see
    /// [`Rejection::reject_reason`](super::Rejection::reject_reason).
    pub reject_reason: &'static str,
    pub result: ValidationResult,
    /// The rule in one sentence.
    pub must: &'static str,
    /// The BIP and the Core function that checks the rule.
    pub source: &'static str,
}

macro_rules! rules {
    ($($rule:ident $step:ident $name:literal $reason:literal $result:ident $must:literal $source:literal)*) => {
        /// A rule of policy. The variants are in checking order.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum PolicyRule {
            $(#[doc = $must] $rule,)*
        }

        /// All rules of policy in checking order.
        pub const POLICY_RULES: &[PolicyRuleInfo] = &[$(PolicyRuleInfo {
            rule: PolicyRule::$rule,
            step: PolicyStep::$step,
            name: $name,
            reject_reason: $reason,
            result: ValidationResult::$result,
            must: $must,
            source: $source,
        },)*];
    };
}

rules! {
    Coinbase Alone "coinbase" "coinbase" Consensus
        "A transaction outside a block MUST NOT be a coinbase."
        "PreChecks (validation.cpp)"
    Version Alone "version" "version" NotStandard
        "A transaction's version MUST be 1, 2 or 3."
        "IsStandardTx (policy/policy.cpp), TX_MAX_STANDARD_VERSION"
    TxSize Alone "tx-size" "tx-size" NotStandard
        "A transaction's weight MUST NOT exceed 400,000."
        "IsStandardTx (policy/policy.cpp), MAX_STANDARD_TX_WEIGHT"
    ScriptsigSize Alone "scriptsig-size" "scriptsig-size" NotStandard
        "A scriptSig MUST NOT exceed 1,650 bytes."
        "IsStandardTx (policy/policy.cpp), MAX_STANDARD_SCRIPTSIG_SIZE"
    ScriptsigNotPushonly Alone "scriptsig-not-pushonly" "scriptsig-not-pushonly" NotStandard
        "A scriptSig MUST only push data."
        "IsStandardTx (policy/policy.cpp)"
    Scriptpubkey Alone "scriptpubkey" "scriptpubkey" NotStandard
        "An output's script MUST be of a known type."
        "IsStandardTx, IsStandard (policy/policy.cpp), Solver (script/solver.cpp)"
    MultisigKeys Alone "multisig-keys" "scriptpubkey" NotStandard
        "A bare multisig MUST NOT have more than 3 keys."
        "IsStandardTx, IsStandard (policy/policy.cpp)"
    Datacarrier Alone "datacarrier" "datacarrier" NotStandard
        "A transaction's data-carrying outputs MUST NOT exceed -datacarriersize together."
        "IsStandardTx (policy/policy.cpp)"
    BareMultisig Alone "bare-multisig" "bare-multisig" NotStandard
        "With -permitbaremultisig=0, an output MUST NOT be a bare multisig."
        "IsStandardTx (policy/policy.cpp)"
    DustOutputs Alone "dust-outputs" "dust" NotStandard
        "A transaction MUST NOT have more than one dust output."
        "IsStandardTx, GetDust (policy/policy.cpp), MAX_DUST_OUTPUTS_PER_TX"
    TxSizeSmall Alone "tx-size-small" "tx-size-small" NotStandard
        "A transaction without its witness MUST have at least 65 bytes (CVE-2017-12842)."
        "PreChecks (validation.cpp), MIN_STANDARD_TX_NONWITNESS_SIZE"
    NonFinal Alone "non-final" "non-final" PrematureSpend
        "A transaction's lock time MUST allow it in the next block."
        "BIP-0113; PreChecks, CheckFinalTxAtTip (validation.cpp)"
    AlreadyInMempool Pool "txn-already-in-mempool" "txn-already-in-mempool" Conflict
        "A transaction MUST NOT be in the mempool already."
        "PreChecks (validation.cpp)"
    SameNonwitnessData Pool "txn-same-nonwitness-data-in-mempool" "txn-same-nonwitness-data-in-mempool" Conflict
        "The mempool MUST NOT contain the same transaction with a different witness."
        "PreChecks (validation.cpp)"
    ReplacementDisallowed Pool "bip125-replacement-disallowed" "bip125-replacement-disallowed" MempoolPolicy
        "A transaction MUST NOT conflict with the mempool if replacement is not allowed (testmempoolaccept with several transactions)."
        "PreChecks (validation.cpp)"
    AlreadyKnown Pool "txn-already-known" "txn-already-known" Conflict
        "A transaction with missing inputs MUST NOT be confirmed already: none of its outputs is unspent in the chain."
        "PreChecks (validation.cpp)"
    MissingInputs Pool "missing-inputs" "bad-txns-inputs-missingorspent" MissingInputs
        "An input MUST spend an output that is unspent in the chain, or exists in the mempool."
        "PreChecks (validation.cpp)"
    NonBip68Final Coins "non-BIP68-final" "non-BIP68-final" PrematureSpend
        "A transaction's relative lock times MUST allow it in the next block."
        "BIP-0068; PreChecks, CheckSequenceLocksAtTip (validation.cpp)"
    InputLegacySigops Coins "input-legacy-sigops" "bad-txns-nonstandard-inputs" InputsNotStandard
        "The scriptSigs, the outputs they spend and the P2SH redeem scripts MUST NOT have more than 2,500 signature operations together."
        "BIP-0054; ValidateInputsStandardness, CheckSigopsBIP54 (policy/policy.cpp), MAX_TX_LEGACY_SIGOPS"
    InputScriptUnknown Coins "input-script-unknown" "bad-txns-nonstandard-inputs" InputsNotStandard
        "An input MUST spend an output of a known type."
        "ValidateInputsStandardness (policy/policy.cpp)"
    InputWitnessUndefined Coins "input-witness-undefined" "bad-txns-nonstandard-inputs" InputsNotStandard
        "An input MUST NOT spend a witness program that is reserved for soft forks."
        "ValidateInputsStandardness (policy/policy.cpp)"
    InputScriptsigMalformed Coins "input-scriptsig-malformed" "bad-txns-nonstandard-inputs" InputsNotStandard
        "The scriptSig of a P2SH input MUST run without an error."
        "ValidateInputsStandardness (policy/policy.cpp)"
    InputRedeemScriptMissing Coins "input-redeem-script-missing" "bad-txns-nonstandard-inputs" InputsNotStandard
        "The scriptSig of a P2SH input MUST push the redeem script."
        "ValidateInputsStandardness (policy/policy.cpp)"
    InputRedeemScriptSigops Coins "input-redeem-script-sigops" "bad-txns-nonstandard-inputs" InputsNotStandard
        "A P2SH redeem script MUST NOT have more than 15 signature operations."
        "ValidateInputsStandardness (policy/policy.cpp), MAX_P2SH_SIGOPS"
    WitnessAnchor Coins "witness-anchor" "bad-witness-nonstandard" WitnessMutated
        "An input that spends a pay-to-anchor output MUST NOT have a witness."
        "IsWitnessStandard (policy/policy.cpp)"
    WitnessUnexpected Coins "witness-without-program" "bad-witness-nonstandard" WitnessMutated
        "An input MUST NOT have a witness unless it spends a witness program, native or in P2SH."
        "IsWitnessStandard (policy/policy.cpp)"
    WitnessScriptSize Coins "witness-script-size" "bad-witness-nonstandard" WitnessMutated
        "A P2WSH witness script MUST NOT exceed 3,600 bytes."
        "IsWitnessStandard (policy/policy.cpp), MAX_STANDARD_P2WSH_SCRIPT_SIZE"
    WitnessItems Coins "witness-items" "bad-witness-nonstandard" WitnessMutated
        "A P2WSH witness MUST NOT have more than 100 elements before its script."
        "IsWitnessStandard (policy/policy.cpp), MAX_STANDARD_P2WSH_STACK_ITEMS"
    WitnessItemSize Coins "witness-item-size" "bad-witness-nonstandard" WitnessMutated
        "An element before a P2WSH witness script MUST NOT exceed 80 bytes."
        "IsWitnessStandard (policy/policy.cpp), MAX_STANDARD_P2WSH_STACK_ITEM_SIZE"
    WitnessAnnex Coins "witness-annex" "bad-witness-nonstandard" WitnessMutated
        "A taproot witness MUST NOT have an annex."
        "IsWitnessStandard (policy/policy.cpp)"
    WitnessControlEmpty Coins "witness-control-empty" "bad-witness-nonstandard" WitnessMutated
        "The control block of a taproot witness MUST NOT be empty."
        "IsWitnessStandard (policy/policy.cpp)"
    WitnessTapscriptItemSize Coins "witness-tapscript-item-size" "bad-witness-nonstandard" WitnessMutated
        "An element before a tapscript MUST NOT exceed 80 bytes."
        "IsWitnessStandard (policy/policy.cpp), MAX_STANDARD_TAPSCRIPT_STACK_ITEM_SIZE"
    DustFee Fee "dust-fee" "dust" NotStandard
        "A transaction with a dust output MUST NOT pay a fee, before and after prioritisation."
        "PreCheckEphemeralTx (policy/ephemeral_policy.cpp)"
    TooManySigops Fee "bad-txns-too-many-sigops" "bad-txns-too-many-sigops" NotStandard
        "A transaction's signature operation cost MUST NOT exceed 16,000."
        "PreChecks (validation.cpp), MAX_STANDARD_TX_SIGOPS_COST"
    MempoolMinFee Fee "mempool-min-fee" "mempool min fee not met" Reconsiderable
        "A transaction or package MUST pay the minimum fee of the mempool, which rises when the mempool is full."
        "CheckFeeRate (validation.cpp), GetMinFee (txmempool.cpp)"
    MinRelayFee Fee "min-relay-fee" "min relay fee not met" Reconsiderable
        "A transaction or package MUST pay the minimum relay fee (-minrelaytxfee)."
        "CheckFeeRate (validation.cpp)"
    TrucParent Truc "truc-parent" "TRUC-violation" MempoolPolicy
        "The unconfirmed parents of a version 3 transaction MUST have version 3; those of any other transaction MUST NOT."
        "BIP-0431; SingleTRUCChecks, PackageTRUCChecks (policy/truc_policy.cpp)"
    TrucSize Truc "truc-size" "TRUC-violation" MempoolPolicy
        "A version 3 transaction MUST NOT exceed 10,000 virtual bytes."
        "BIP-0431; SingleTRUCChecks (policy/truc_policy.cpp), TRUC_MAX_VSIZE"
    TrucAncestors Truc "truc-ancestors" "TRUC-violation" MempoolPolicy
        "A version 3 transaction MUST NOT have more than one unconfirmed ancestor."
        "BIP-0431; SingleTRUCChecks, PackageTRUCChecks (policy/truc_policy.cpp), TRUC_ANCESTOR_LIMIT"
    TrucChildSize Truc "truc-child-size" "TRUC-violation" MempoolPolicy
        "A version 3 transaction with an unconfirmed parent MUST NOT exceed 1,000 virtual bytes."
        "BIP-0431; SingleTRUCChecks, PackageTRUCChecks (policy/truc_policy.cpp), TRUC_CHILD_MAX_VSIZE"
    TrucDescendants Truc "truc-descendants" "TRUC-violation" MempoolPolicy
        "A version 3 transaction MUST NOT have more than one unconfirmed descendant; a sibling may be replaced."
        "BIP-0431; SingleTRUCChecks, PackageTRUCChecks (policy/truc_policy.cpp), TRUC_DESCENDANT_LIMIT"
    ReplacementClusters Replacement "replacement-clusters" "too many potential replacements" MempoolPolicy
        "A replacement MUST NOT conflict with transactions of more than 100 clusters."
        "ReplacementChecks (validation.cpp), GetEntriesForConflicts (policy/rbf.cpp), MAX_REPLACEMENT_CANDIDATES"
    ReplacementFee Replacement "replacement-fee" "insufficient fee" Reconsiderable
        "A replacement MUST pay at least the fees of everything that it removes."
        "BIP-0125 rule 3; ReplacementChecks (validation.cpp), PaysForRBF (policy/rbf.cpp)"
    ReplacementRelayFee Replacement "replacement-relay-fee" "insufficient fee" Reconsiderable
        "A replacement MUST pay for its own relay on top, at -incrementalrelayfee."
        "BIP-0125 rule 4; ReplacementChecks (validation.cpp), PaysForRBF (policy/rbf.cpp)"
    ClusterLimit Replacement "too-large-cluster" "too-large-cluster" MempoolPolicy
        "A cluster MUST NOT exceed -limitclustercount transactions and -limitclustersize."
        "AcceptSingleTransactionInternal, ReplacementChecks (validation.cpp), CheckMemPoolPolicyLimits (txmempool.cpp)"
    ReplacementDiagram Replacement "replacement-failed" "replacement-failed" Reconsiderable
        "A replacement MUST improve the feerate diagram of the clusters that it changes."
        "ReplacementChecks (validation.cpp), ImprovesFeerateDiagram (policy/rbf.cpp)"
    SpendsConflicting Replacement "bad-txns-spends-conflicting-tx" "bad-txns-spends-conflicting-tx" Consensus
        "A replacement MUST NOT depend on a transaction that it replaces."
        "AcceptSingleTransactionInternal (validation.cpp), EntriesAndTxidsDisjoint (policy/rbf.cpp)"
    MaxFeerate Replacement "max-feerate" "max feerate exceeded" MempoolPolicy
        "A transaction's fee rate MUST NOT exceed what its sender allows (maxfeerate of submitpackage)."
        "AcceptSingleTransactionInternal (validation.cpp)"
    MissingEphemeralSpends Replacement "missing-ephemeral-spends" "missing-ephemeral-spends" MempoolPolicy
        "A transaction MUST spend all dust of each unconfirmed parent."
        "CheckEphemeralSpends (policy/ephemeral_policy.cpp)"
    ScriptVerify Scripts "mempool-script-verify-flag-failed" "mempool-script-verify-flag-failed" NotStandard
        "Every input's scripts MUST succeed under the standard flags."
        "PolicyScriptChecks (validation.cpp), STANDARD_SCRIPT_VERIFY_FLAGS (policy/policy.h)"
    MempoolFull Limit "mempool-full" "mempool full" Reconsiderable
        "A transaction MUST NOT be among the worst when the mempool is full (-maxmempool)."
        "AcceptSingleTransactionInternal (validation.cpp), LimitMempoolSize"
    PackageCount Package "package-too-many-transactions" "package-too-many-transactions" PackagePolicy
        "A package MUST NOT have more than 25 transactions."
        "IsWellFormedPackage (policy/packages.cpp), MAX_PACKAGE_COUNT"
    PackageWeight Package "package-too-large" "package-too-large" PackagePolicy
        "A package of several transactions MUST NOT weigh more than 404,000."
        "IsWellFormedPackage (policy/packages.cpp), MAX_PACKAGE_WEIGHT"
    PackageDuplicates Package "package-contains-duplicates" "package-contains-duplicates" PackagePolicy
        "A package MUST NOT contain a txid twice."
        "IsWellFormedPackage (policy/packages.cpp)"
    PackageNotSorted Package "package-not-sorted" "package-not-sorted" PackagePolicy
        "A package's parents MUST come before their children."
        "IsWellFormedPackage, IsTopoSortedPackage (policy/packages.cpp)"
    PackageConflict Package "conflict-in-package" "conflict-in-package" PackagePolicy
        "Transactions of a package MUST NOT spend the same output, and each MUST have an input."
        "IsWellFormedPackage, IsConsistentPackage (policy/packages.cpp)"
    PackageTopology Package "package-not-child-with-parents" "package-not-child-with-parents" PackagePolicy
        "A submitted package MUST be one transaction, alone or with parents of it."
        "AcceptPackage (validation.cpp), IsChildWithParents (policy/packages.cpp)"
    PackageReplacementShape Package "package-replacement-shape" "package RBF failed: package must be 1-parent-1-child" PackagePolicy
        "A package that replaces transactions MUST be one parent and one child."
        "PackageRBFChecks (validation.cpp)"
    PackageReplacementAncestors Package "package-replacement-ancestors" "package RBF failed: new transaction cannot have mempool ancestors" PackagePolicy
        "A package that replaces transactions MUST NOT have ancestors in the mempool."
        "PackageRBFChecks (validation.cpp)"
    PackageReplacementClusters Package "package-replacement-clusters" "package RBF failed: too many potential replacements" PackagePolicy
        "A package MUST NOT conflict with transactions of more than 100 clusters."
        "PackageRBFChecks (validation.cpp), GetEntriesForConflicts (policy/rbf.cpp)"
    PackageReplacementFees Package "package-replacement-fees" "package RBF failed: insufficient anti-DoS fees" PackagePolicy
        "A package MUST pay the fees of everything that it removes, and its own relay on top."
        "PackageRBFChecks (validation.cpp), PaysForRBF (policy/rbf.cpp)"
    PackageReplacementFeerate Package "package-replacement-feerate" "package RBF failed: package feerate is less than or equal to parent feerate" PackagePolicy
        "A package that replaces transactions MUST have a higher fee rate than its parent alone."
        "PackageRBFChecks (validation.cpp)"
    PackageReplacementDiagram Package "package-replacement-diagram" "package RBF failed: insufficient feerate: does not improve feerate diagram" PackagePolicy
        "A package that replaces transactions MUST improve the feerate diagram."
        "PackageRBFChecks (validation.cpp), ImprovesFeerateDiagram (policy/rbf.cpp)"
    PackageUnspentDust Package "unspent-dust" "unspent-dust" PackageTx
        "The transactions of a package MUST spend all dust of their unconfirmed parents."
        "AcceptMultipleTransactionsInternal (validation.cpp), CheckEphemeralSpends (policy/ephemeral_policy.cpp)"
    PackageTransaction Package "transaction-failed" "transaction failed" PackageTx
        "Every transaction of a package MUST be acceptable, by itself or with the package's fee rate."
        "AcceptPackage (validation.cpp)"
}

impl PolicyRule {
    pub fn info(self) -> &'static PolicyRuleInfo {
        &POLICY_RULES[self as usize]
    }
}

/// Prints the rule's own name.
impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_table_is_one_with_the_enum() {
        let mut names: HashSet<_> = lydian_consensus::RULES.iter().map(|info| info.name).collect();
        for (index, info) in POLICY_RULES.iter().enumerate() {
            assert_eq!(info.rule as usize, index);
            assert_eq!(info.rule.to_string(), info.name);
            assert!(names.insert(info.name), "{} twice, or also a consensus rule", info.name);
            assert!(info.must.contains("MUST"), "{}", info.name);
            assert!(info.source.len() > 5 && !info.reject_reason.is_empty());
        }
    }

    #[test]
    fn the_rules_of_a_package_have_its_results() {
        for info in POLICY_RULES {
            let is_packages = matches!(info.result, ValidationResult::PackagePolicy | ValidationResult::PackageTx);
            assert_eq!(info.step == PolicyStep::Package, is_packages, "{}", info.name);
            assert!(info.result.name().starts_with(if is_packages { "PCKG_" } else { "TX_" }));
        }
    }
}
