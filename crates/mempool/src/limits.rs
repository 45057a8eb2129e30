//! The bounds of the mempool that no option sets. Each has a test at the bound and one above it.

/// The most transactions in a cluster, whatever `-limitclustercount` says: sets within a cluster are the bits of a
/// `u64`. Core's `MAX_CLUSTER_COUNT_LIMIT`.
pub const CLUSTER_COUNT_MAX: usize = 64;

/// Transactions that are verified a second time in a second.
pub const SECOND_CHECK_MAX: usize = 500;

/// Changes of the pool that are kept for readers: more than a full block removes and brings.
pub const FEED_CHANGES_MAX: usize = 20_000;

/// Bytes of the transactions of these changes, with the coins that they spend.
pub const FEED_BYTES_MAX: usize = 32 << 20;

/// Core's usage of the transactions of disconnected blocks that wait for the end of a reorganisation, in bytes:
/// `MAX_DISCONNECTED_TX_POOL_BYTES`.
pub const DISCONNECTED_BYTES_MAX: u64 = 20_000_000;

/// Transactions and calls that wait for the accepting thread.
pub const QUEUE_MAX: usize = 5_000;

/// Bytes of the transactions of peers among them.
pub const QUEUE_BYTES_MAX: usize = 32 << 20;

/// Transactions that are decided together.
pub const BATCH_MAX: usize = 256;

/// Rejected transactions that are kept for the page.
pub const REJECTS_MAX: usize = 1_000;

/// Replacements that are kept for the page.
pub const REPLACEMENTS_MAX: usize = 1_000;

/// Replaced transactions that a replacement names: there may be 6,400.
pub const REPLACED_MAX: usize = 16;

/// Blocks that wait to be compared with what was expected of them.
pub const BLOCKS_MAX: usize = 6;
