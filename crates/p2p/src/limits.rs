//! Limits of what peers, files and operators may make us keep, each with the name it has in Bitcoin Core where it has one. Constants only.

/// Places that one address may have in the new table: Core's `ADDRMAN_NEW_BUCKETS_PER_ADDRESS`.
pub const NEW_BUCKETS_PER_ADDRESS_MAX: usize = 8;

/// Addresses that may wait for a place in the tried table: Core's `ADDRMAN_SET_TRIED_COLLISION_SIZE`.
pub const TRIED_COLLISIONS_MAX: usize = 10;

/// Bytes of a `peers.dat` that is read: full tables of the longest addresses and 5 times that.
pub const PEERS_FILE_SIZE_MAX: usize = 32 << 20;

/// Bytes of a `banlist.json` that is read: some 400,000 bans.
pub const BANLIST_FILE_SIZE_MAX: usize = 64 << 20;

/// Bytes of an `anchors.dat` that is read.
pub const ANCHORS_FILE_SIZE_MAX: usize = 64 << 10;

/// Peers that are kept as anchors: Core's `MAX_BLOCK_RELAY_ONLY_ANCHORS`.
pub const ANCHORS_MAX: usize = 2;

/// Addresses that are remembered as discouraged; older ones are forgotten.
pub const DISCOURAGED_MAX: u32 = 50_000;

/// Addresses of a peer that are looked at in one burst; then one in ten seconds: Core's `MAX_ADDR_PROCESSING_TOKEN_BUCKET`.
pub const ADDR_TOKENS_MAX: u32 = 1000;

/// Addresses that wait to be told to a peer: Core's `MAX_ADDR_TO_SEND`.
pub const ADDRESSES_TO_SEND_MAX: usize = 1000;

/// Answers to `getaddr` that are kept, each for one network and one address of ours.
pub const ANSWER_CACHES_MAX: usize = 64;

/// Full-relay peers that we connect to: Core's `MAX_OUTBOUND_FULL_RELAY_CONNECTIONS`.
pub const FULL_RELAY_PEERS_MAX: usize = 8;

/// Block-relay-only peers that we connect to: Core's `MAX_BLOCK_RELAY_ONLY_CONNECTIONS`.
pub const BLOCK_RELAY_PEERS_MAX: usize = 2;

/// Addresses that are taken from one DNS seed.
pub const DNS_SEED_ADDRESSES_MAX: usize = 32;
