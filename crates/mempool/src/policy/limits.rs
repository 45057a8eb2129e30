//! The limits of policy, with Core's names and the files that define them. Constants only; what an option sets is in
//! [`settings`](super::settings).

use lydian_consensus::limits::{MAX_BLOCK_SIGOPS_COST, WITNESS_SCALE_FACTOR};

/// Lowest version of a standard transaction: `TX_MIN_STANDARD_VERSION` (policy/policy.h).
pub const TX_MIN_STANDARD_VERSION: u32 = 1;

/// Highest version of a standard transaction: `TX_MAX_STANDARD_VERSION` (policy/policy.h).
pub const TX_MAX_STANDARD_VERSION: u32 = 3;

/// Maximum weight of a standard transaction: `MAX_STANDARD_TX_WEIGHT` (policy/policy.h).
pub const MAX_STANDARD_TX_WEIGHT: usize = 400_000;

/// Minimum size of a transaction without its witness, in bytes: `MIN_STANDARD_TX_NONWITNESS_SIZE` (policy/policy.h).
/// One byte more than an inner node of the merkle tree (CVE-2017-12842).
pub const MIN_STANDARD_TX_NONWITNESS_SIZE: usize = 65;

/// Maximum size of a standard scriptSig in bytes: `MAX_STANDARD_SCRIPTSIG_SIZE` (policy/policy.h).
pub const MAX_STANDARD_SCRIPTSIG_SIZE: usize = 1650;

/// Maximum number of keys of a standard bare multisig (policy/policy.cpp, `IsStandard`).
pub const BARE_MULTISIG_KEYS_MAX: usize = 3;

/// Maximum number of dust outputs: `MAX_DUST_OUTPUTS_PER_TX` (policy/policy.h).
pub const MAX_DUST_OUTPUTS_PER_TX: usize = 1;

/// Maximum number of signature operations of a standard P2SH redeem script: `MAX_P2SH_SIGOPS` (policy/policy.h).
pub const MAX_P2SH_SIGOPS: usize = 15;

/// Maximum number of signature operations outside witnesses that a transaction may execute: `MAX_TX_LEGACY_SIGOPS`
/// (policy/policy.h, BIP-0054).
pub const MAX_TX_LEGACY_SIGOPS: usize = 2500;

/// Maximum signature operation cost of a transaction: `MAX_STANDARD_TX_SIGOPS_COST` (policy/policy.h).
pub const MAX_STANDARD_TX_SIGOPS_COST: usize = MAX_BLOCK_SIGOPS_COST / 5;

/// Maximum size of a standard witness script in bytes: `MAX_STANDARD_P2WSH_SCRIPT_SIZE` (policy/policy.h).
pub const MAX_STANDARD_P2WSH_SCRIPT_SIZE: usize = 3600;

/// Maximum number of stack elements before a witness script: `MAX_STANDARD_P2WSH_STACK_ITEMS` (policy/policy.h).
pub const MAX_STANDARD_P2WSH_STACK_ITEMS: usize = 100;

/// Maximum size of such an element in bytes: `MAX_STANDARD_P2WSH_STACK_ITEM_SIZE` (policy/policy.h).
pub const MAX_STANDARD_P2WSH_STACK_ITEM_SIZE: usize = 80;

/// Maximum size of a stack element of a tapscript in bytes: `MAX_STANDARD_TAPSCRIPT_STACK_ITEM_SIZE` (policy/policy.h).
pub const MAX_STANDARD_TAPSCRIPT_STACK_ITEM_SIZE: usize = 80;

/// Maximum number of an unconfirmed TRUC transaction and its ancestors: `TRUC_ANCESTOR_LIMIT` (policy/truc_policy.h).
pub const TRUC_ANCESTOR_LIMIT: usize = 2;

/// Maximum number of an unconfirmed TRUC transaction and its descendants: `TRUC_DESCENDANT_LIMIT`
/// (policy/truc_policy.h).
pub const TRUC_DESCENDANT_LIMIT: usize = 2;

/// Maximum virtual size of a TRUC transaction: `TRUC_MAX_VSIZE` (policy/truc_policy.h).
pub const TRUC_MAX_VSIZE: i64 = 10_000;

/// Maximum virtual size of a TRUC transaction with an unconfirmed parent: `TRUC_CHILD_MAX_VSIZE`
/// (policy/truc_policy.h).
pub const TRUC_CHILD_MAX_VSIZE: i64 = 1000;

/// Maximum number of transactions in a package: `MAX_PACKAGE_COUNT` (policy/packages.h).
pub const MAX_PACKAGE_COUNT: usize = 25;

/// Maximum weight of a package of several transactions: `MAX_PACKAGE_WEIGHT` (policy/packages.h).
pub const MAX_PACKAGE_WEIGHT: usize = 404_000;

/// Maximum number of clusters that a replacement conflicts with: `MAX_REPLACEMENT_CANDIDATES` (policy/rbf.h).
pub const MAX_REPLACEMENT_CANDIDATES: usize = 100;

const _: () = assert!(MAX_PACKAGE_WEIGHT >= MAX_STANDARD_TX_WEIGHT);
const _: () = assert!(TRUC_ANCESTOR_LIMIT == 2 && TRUC_DESCENDANT_LIMIT == 2, "the TRUC checks are made for these");
const _: () = assert!(MAX_STANDARD_TX_WEIGHT.is_multiple_of(WITNESS_SCALE_FACTOR));
