//! Policy: which valid transactions are accepted and relayed. Core's `policy/` and the checks of `MemPoolAccept`
//! (validation.cpp).
//!
//! Input: transactions with the coins they spend, [`Settings`], and what the pool answers ([`PoolView`],
//! [`PoolEntry`]). Output: a [`Rejection`], the first broken rule in Core's order with Core's texts, or the values that
//! the pool keeps ([`PreChecked`]). No I/O, clock or threads; nothing here holds transactions. [`POLICY_RULES`] lists
//! every rule with a one-sentence description, its source and Core's reject reason.
//!
//! As in `consensus`, one pass gathers facts, and a table of [`Check`](lydian_consensus::Check)s decides. The flags of
//! scripts are [`Flags::STANDARD`](lydian_script::Flags::STANDARD), of which
//! [`Flags::MANDATORY`](lydian_script::Flags::MANDATORY) are those of consensus.

pub mod dust;
pub mod fee;
pub mod fee_rate;
pub mod inputs;
pub mod limits;
pub mod package;
pub mod rejection;
pub mod replacement;
pub mod rule;
pub mod scripts;
pub mod settings;
pub mod size;
pub mod standard;
pub mod steps;
pub mod truc;
pub mod witness;

pub use dust::{check_ephemeral_spends, dust_outputs, dust_threshold, is_dust};
pub use fee::check_fee_rate;
pub use fee_rate::FeeRate;
pub use package::{
    PackageReplacementFacts, check_package, check_package_replacement, check_package_replacement_fees,
    check_submitted_package, is_child_with_parents, is_child_with_parents_tree, package_hash,
};
pub use rejection::{BrokenRule, Rejection};
pub use replacement::{
    ReplacementFees, SEQUENCE_SIGNALLING_MAX, check_ancestors_disjoint, check_replacement_clusters,
    check_replacement_fees, signals_opt_in_rbf,
};
pub use rule::{POLICY_RULES, PolicyRule, PolicyRuleInfo, PolicyStep, ValidationResult};
pub use scripts::script_rejection;
pub use settings::{BLOCKSONLY_MEMPOOL_BYTES, Settings};
pub use size::{adjusted_weight, virtual_size};
pub use steps::{Mode, NextBlock, PoolView, PreChecked, Spending, check_max_feerate, pre_checks};
pub use truc::{PoolEntry, TRUC_VERSION, TrucTx, TrucViolation, check_package_truc, check_truc};
