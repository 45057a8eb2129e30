//! Limits of what requests can make us hold. Constants only.

/// The memory of pruned blocks that were fetched from peers and are kept for further requests, in bytes: about 40 full
/// blocks.
pub const FETCHED_BYTES_MAX: usize = 64 << 20;

/// The maximum number of pruned blocks that are fetched at a time: as many as `p2p` takes orders for.
pub const FETCHES_MAX: usize = 8;

/// The maximum number of requests that wait for pruned blocks: a quarter of the threads of one server, so that others
/// are answered meanwhile.
pub const FETCH_WAITS_MAX: usize = 16;

/// The maximum number of pruned blocks that one request waits for: more than the scripts of most wallets have, and no
/// more than 1 GB.
pub const FETCHES_PER_REQUEST_MAX: usize = 256;

/// The maximum number of scripts whose sums of spent outputs are kept: about 150 bytes each.
pub const SUMS_MAX: usize = 16_384;

/// The maximum number of scripts whose status is kept up to the last block: about 300 bytes each.
pub const STATUSES_MAX: usize = 65_536;

/// The memory of undo data that are kept for pages of transactions, in bytes: those of about 250 full blocks.
pub const UNDO_BYTES_MAX: usize = 64 << 20;

/// The maximum number of scripts, transactions and outputs of the mempool's changes that wait for the Electrum server:
/// about 60 bytes each. Above it, all subscriptions are looked at.
pub const TOUCHED_MAX: usize = 262_144;
