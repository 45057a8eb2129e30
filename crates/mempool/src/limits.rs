//! Limits of the mempool. Constants only.

/// The most transactions in a cluster, whatever `-limitclustercount` says: sets within a cluster are the bits of a
/// `u64`. Core's `MAX_CLUSTER_COUNT_LIMIT`.
pub const CLUSTER_COUNT_MAX: usize = 64;
