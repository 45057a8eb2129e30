//! Limits of what peers, files and operators may make us keep, each with the name it has in Bitcoin Core where it has one. Constants only.

use std::time::Duration;

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

/// Added nodes that are connected at a time: Core's `MAX_ADDNODE_CONNECTIONS`.
pub const ADDED_NODES_CONNECTED_MAX: usize = 8;

/// Addresses that are taken from one DNS seed.
pub const DNS_SEED_ADDRESSES_MAX: usize = 32;

/// Headers of one message: Core's `MAX_HEADERS_RESULTS`.
pub const HEADERS_COUNT_MAX: usize = 2000;

/// Blocks of the path that are looked at at once, whatever their bytes.
pub const DOWNLOAD_WINDOW_BLOCKS_MAX: usize = 16_384;

/// Blocks asked of one peer at once. Blocks of the first years are so small that fewer leave the link idle.
pub const BLOCKS_IN_FLIGHT_PER_PEER_MAX: usize = 512;

/// Peers asked for the same block at once: Core's `MAX_CMPCTBLOCKS_INFLIGHT_PER_BLOCK`.
pub const REQUESTS_PER_BLOCK_MAX: usize = 3;

/// Blocks that a peer may be asked for before a compact one of it is not begun: Core's `MAX_BLOCKS_IN_TRANSIT_PER_PEER`. No more are asked of a peer
/// beside the path of the download.
pub const COMPACT_BLOCKS_PER_PEER_MAX: usize = 16;

/// Peers that may send compact blocks unasked: three, says BIP-0152.
pub const HIGH_BANDWIDTH_PEERS_MAX: usize = 3;

/// Blocks on their way, from the lowest, that are looked at for being late.
pub const RESCUES_LOOKED_AT: usize = 256;

/// Blocks at the end of its chain that a limited peer has: Core's `NODE_NETWORK_LIMITED_MIN_BLOCKS`.
pub const LIMITED_PEER_BLOCKS: u32 = 288;

/// A peer that sends nothing for so long, though it was asked and others send, is given up. Core gives it 2 s, but only once the window is blocked,
/// which late blocks that are asked of others prevent here.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the time stops doubling: Core's `BLOCK_STALLING_TIMEOUT_MAX`.
pub const STALL_TIMEOUT_MAX: Duration = Duration::from_secs(64);

/// For one block, whatever trickles in: Core's `BLOCK_DOWNLOAD_TIMEOUT_BASE` block intervals.
pub const BLOCK_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Blocks that are remembered as brought by nobody; the oldest is forgotten for one more.
pub const WITHHELD_MAX: usize = 64;

/// Bytes of memory that all peers together may take, unless there are so many connections that their shares would be
/// below [`PEER_SHARE_MIN`].
pub const PEER_MEMORY_BYTES: usize = 300_000_000;

/// Bytes of a connection's own share, at least: more than the largest message that is sent unasked in the ordinary way,
/// 2,000 headers.
pub const PEER_SHARE_MIN: usize = 200_000;

/// Bytes of a connection's own share, at most: Core's default of `-maxreceivebuffer`.
pub const PEER_SHARE_MAX: usize = 5_000_000;

/// Bytes of answers that may wait for a peer to take them while memory is short, before one more is made.
pub const ANSWER_BYTES: usize = 40_000;

/// Bytes that a connection costs beside its share: its state, its read buffer, one read, and the answers above with one
/// more, 2,000 headers.
pub const PEER_FIXED_BYTES: usize = 400_000;

/// Peers that are asked for blocks at a time, each with room for one message beside its share.
pub const BLOCK_ROOMS_MAX: usize = 16;

/// Bytes of that room: the largest message.
pub const BLOCK_ROOM_BYTES: usize = 4_000_000;

/// Blocks that are read from the disk for peers at a time.
pub const BLOCK_READS_MAX: usize = 4;

/// Bytes that peers may take beyond what is their own, as long as there is room.
pub const COMMON_BYTES: usize = 48_000_000;

/// Of them, bytes that messages received may fill; the rest is for blocks that are sent.
pub const RECEIVE_COMMON_BYTES: usize = 16_000_000;
