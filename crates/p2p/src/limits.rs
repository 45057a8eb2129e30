//! Limits of what peers, files and operators can make us store. Constants only.
//!
//! Each has Bitcoin Core's name in its comment if there is one.

use std::time::Duration;

/// The maximum number of positions of one address in the new table: Core's `ADDRMAN_NEW_BUCKETS_PER_ADDRESS`.
pub const NEW_BUCKETS_PER_ADDRESS_MAX: usize = 8;

/// The maximum number of addresses that wait for a position in the tried table: Core's
/// `ADDRMAN_SET_TRIED_COLLISION_SIZE`.
pub const TRIED_COLLISIONS_MAX: usize = 10;

/// The maximum size of `peers.dat` in bytes: more than 5 times that of full tables with the longest addresses.
pub const PEERS_FILE_SIZE_MAX: usize = 32 << 20;

/// The maximum size of `banlist.json` in bytes: about 400,000 bans.
pub const BANLIST_FILE_SIZE_MAX: usize = 64 << 20;

/// The maximum size of `anchors.dat` in bytes.
pub const ANCHORS_FILE_SIZE_MAX: usize = 64 << 10;

/// The maximum number of anchors: Core's `MAX_BLOCK_RELAY_ONLY_ANCHORS`.
pub const ANCHORS_MAX: usize = 2;

/// The number of addresses that are remembered as discouraged; older ones are forgotten.
pub const DISCOURAGED_MAX: u32 = 50_000;

/// The number of addresses of a peer that are processed in one burst; after that, one in ten seconds: Core's
/// `MAX_ADDR_PROCESSING_TOKEN_BUCKET`.
pub const ADDR_TOKENS_MAX: u32 = 1000;

/// The maximum number of addresses queued for a peer: Core's `MAX_ADDR_TO_SEND`.
pub const ADDRESSES_TO_SEND_MAX: usize = 1000;

/// The maximum number of cached answers to `getaddr`, each for one network and one of our addresses.
pub const ANSWER_CACHES_MAX: usize = 64;

/// The number of outbound full-relay peers: Core's `MAX_OUTBOUND_FULL_RELAY_CONNECTIONS`.
pub const FULL_RELAY_PEERS_MAX: usize = 8;

/// The number of outbound block-relay-only peers: Core's `MAX_BLOCK_RELAY_ONLY_CONNECTIONS`.
pub const BLOCK_RELAY_PEERS_MAX: usize = 2;

/// The maximum number of connections to added nodes: Core's `MAX_ADDNODE_CONNECTIONS`.
pub const ADDED_NODES_CONNECTED_MAX: usize = 8;

/// The maximum number of addresses used from one DNS seed.
pub const DNS_SEED_ADDRESSES_MAX: usize = 32;

/// The maximum number of headers in one message: Core's `MAX_HEADERS_RESULTS`.
pub const HEADERS_COUNT_MAX: usize = 2000;

/// The maximum number of blocks of the path that are considered at once, whatever their size.
pub const DOWNLOAD_WINDOW_BLOCKS_MAX: usize = 16_384;

/// The maximum number of blocks in flight from one peer. The blocks of the first years are so small that fewer would
/// leave the link idle.
pub const BLOCKS_IN_FLIGHT_PER_PEER_MAX: usize = 512;

/// The maximum number of unrequested blocks that wait to be looked into: as many as Core accepts above its tip, several
/// times. Further ones are ignored, so that they do not fill the queue of the requested ones.
pub const UNREQUESTED_BLOCKS_MAX: usize = 1024;

/// The maximum number of peers asked for the same block at the same time: Core's `MAX_CMPCTBLOCKS_INFLIGHT_PER_BLOCK`.
pub const REQUESTS_PER_BLOCK_MAX: usize = 3;

/// The number of blocks in flight from a peer from which on none of its compact blocks is reconstructed: Core's
/// `MAX_BLOCKS_IN_TRANSIT_PER_PEER`. Also the maximum number of blocks requested from a peer outside the path of the
/// download.
pub const COMPACT_BLOCKS_PER_PEER_MAX: usize = 16;

/// The maximum number of peers that may send compact blocks unrequested: three, according to BIP-0152.
pub const HIGH_BANDWIDTH_PEERS_MAX: usize = 3;

/// The number of blocks in flight, from the lowest, that are checked for being late.
pub const RESCUES_LOOKED_AT: usize = 256;

/// The number of blocks at the end of its chain that a limited peer has: Core's `NODE_NETWORK_LIMITED_MIN_BLOCKS`.
pub const LIMITED_PEER_BLOCKS: u32 = 288;

/// A peer with outstanding requests that sends nothing for this time, while others send, is disconnected. Core's limit
/// is 2 s, but only once the window is blocked, which does not happen here because late blocks are requested from
/// others.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum after doubling the timeout: Core's `BLOCK_STALLING_TIMEOUT_MAX`.
pub const STALL_TIMEOUT_MAX: Duration = Duration::from_secs(64);

/// The time limit for one block, even if it arrives slowly: Core's `BLOCK_DOWNLOAD_TIMEOUT_BASE` block intervals.
pub const BLOCK_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The maximum number of orders of readers that are not answered: blocks that a pruned node fetches at a time.
pub const ORDERS_MAX: usize = 8;

/// The time limit for an order of a reader.
pub const ORDER_TIMEOUT: Duration = Duration::from_secs(30);

/// A peer that has not sent an ordered block after this time is not the only one that is asked.
pub const ORDER_PATIENCE: Duration = Duration::from_secs(10);

/// The maximum number of blocks remembered as not delivered by any peer; adding another one drops the oldest.
pub const WITHHELD_MAX: usize = 64;

/// The maximum memory for all peers together, in bytes. It is more if there are so many connections that their shares
/// would be below [`PEER_SHARE_MIN`].
pub const PEER_MEMORY_BYTES: usize = 300_000_000;

/// The minimum share of a connection in bytes: more than the largest message that is normally sent unrequested, 2,000
/// headers.
pub const PEER_SHARE_MIN: usize = 200_000;

/// The maximum share of a connection in bytes: Core's default of `-maxreceivebuffer`.
pub const PEER_SHARE_MAX: usize = 5_000_000;

/// The number of bytes of answers that may be queued for a peer before another one is made while memory is short.
pub const ANSWER_BYTES: usize = 40_000;

/// The maximum size of an answer other than blocks, in bytes, with the memory of its message: 2,000 headers.
pub const ANSWER_BYTES_MAX: usize = 165_000;

/// The cost of a connection beyond its share, in bytes: its state, its read buffer, one read, and the queued answers
/// above plus one more, 2,000 headers.
pub const PEER_FIXED_BYTES: usize = 400_000;

/// The maximum number of peers that are asked for blocks at a time, each with room for one message beyond its share.
pub const BLOCK_ROOMS_MAX: usize = 16;

/// The size of that room in bytes: the largest message.
pub const BLOCK_ROOM_BYTES: usize = 4_000_000;

/// The maximum number of blocks that are read from disk for peers at a time.
pub const BLOCK_READS_MAX: usize = 4;

/// The number of bytes that peers may use beyond their own limits, as long as there is room.
pub const COMMON_BYTES: usize = 48_000_000;

/// The part of them that received messages may use; the rest is reserved for blocks to be sent.
pub const RECEIVE_COMMON_BYTES: usize = 16_000_000;

/// The number of messages that are processed for a peer per second, apart from blocks and parts of blocks that it
/// sends: Core's nodes send a few per second.
pub const MESSAGES_PER_SECOND: u32 = 200;

/// The number of messages that may be processed at once after a silence.
pub const MESSAGES_BURST: u32 = 2_000;

/// A message counts as one, plus one for each part of this size; of headers that were requested only one counts. Core's
/// nodes send much less than 200 kB per second apart from blocks and such headers.
pub const MESSAGE_UNIT_BYTES: u64 = 1_000;

/// A peer that sends more than this pace for so long, without a pause in which half of the burst becomes available
/// again, is disconnected: its end would not be seen behind the messages that wait.
pub const FLOOD_TIME_MAX: Duration = Duration::from_secs(30);

/// The number of additional messages for each block that was sent to the peer.
pub const MESSAGES_PER_BLOCK: u32 = 4;

/// The number of requests for transactions in flight from a peer from which on it counts as overloaded: Core's
/// `MAX_PEER_TX_REQUEST_IN_FLIGHT`.
pub const TX_REQUESTS_IN_FLIGHT_MAX: usize = 100;

/// The maximum number of tracked announcements of transactions of a peer without `relay` permission: Core's
/// `MAX_PEER_TX_ANNOUNCEMENTS`.
pub const PEER_ANNOUNCEMENTS_MAX: usize = 5000;

/// The time limit for an answer to a request for a transaction: Core's `GETDATA_TX_INTERVAL`.
pub const TX_REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The maximum weight of an orphan: Core's `MAX_STANDARD_TX_WEIGHT`.
pub const ORPHAN_WEIGHT_MAX: usize = 400_000;

/// The weight that is reserved in the orphanage for each peer with orphans: Core's
/// `DEFAULT_RESERVED_ORPHAN_WEIGHT_PER_PEER`.
pub const ORPHAN_WEIGHT_PER_PEER: u64 = 404_000;

/// The maximum latency score of the orphanage: Core's `DEFAULT_MAX_ORPHANAGE_LATENCY_SCORE`.
pub const ORPHANAGE_LATENCY_MAX: u64 = 3000;

/// The number of rejected transactions that are remembered, once for those rejected for good and once for those that
/// may be accepted in a package.
pub const REJECTS_MAX: u32 = 120_000;

/// The number of ids of confirmed transactions that are remembered, two for each transaction with a witness.
pub const CONFIRMED_MAX: u32 = 48_000;

/// The number of transactions that a peer is remembered to know: Core's `m_tx_inventory_known_filter`.
pub const KNOWN_TXS_MAX: u32 = 50_000;

/// The maximum number of transactions that wait for their announcement to a peer. Core has no such limit.
pub const ANNOUNCEMENT_QUEUE_MAX: usize = 100_000;

/// The number of transactions that remain in the queue of a peer after announcements were sent to it: those that are
/// mined first, so that cheap ones cannot fill the queue. Core has no such limit.
pub const ANNOUNCEMENT_QUEUE_KEPT_MAX: usize = 80_000;

/// The maximum number of transactions in one request: Core's `MAX_GETDATA_SZ`.
pub const GETDATA_COUNT_MAX: usize = 1000;

/// The maximum number of transactions of a peer that the mempool is asked to decide about at a time; further ones wait,
/// charged to the peer, so that a peer that sends many delays those of others by this number only.
pub const PEER_SUBMISSIONS_MAX: usize = 256;

/// The number of bytes of these transactions from which on further ones wait.
pub const PEER_SUBMITTED_BYTES_MAX: usize = 400_000;

/// The size, as Core counts memory, from which on a rejected transaction is not kept to put compact blocks together.
pub const EXTRA_TX_USAGE_MAX: u64 = 100_000;

/// The maximum number of networks of inbound peers with an announcement timer of their own; the peers of further ones
/// share one.
pub const INBOUND_TIMERS_MAX: usize = 64;

/// The latest blocks whose senders are kept for a display: those of a difficulty period.
pub const SENT_BLOCKS_MAX: usize = 2_016;

/// The latest of them whose further copies are counted: peers send copies within minutes.
pub const SENT_BLOCKS_SEARCHED: usize = 64;
