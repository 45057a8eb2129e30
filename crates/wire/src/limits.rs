//! Limits of messages and packets, each with its name in Bitcoin Core. Constants only.

/// Maximum payload size of any message in bytes: Core's `MAX_PROTOCOL_MESSAGE_LENGTH`. A larger one ends the
/// connection.
pub const MESSAGE_SIZE_MAX: usize = 4_000_000;

/// Maximum size in bytes of a BIP-0155 address of any network, known or unknown: Core's `MAX_ADDRV2_SIZE`.
pub const ADDRV2_SIZE_MAX: usize = 512;

/// Maximum number of addresses in one `addr` or `addrv2`: Core's `MAX_ADDR_TO_SEND`.
pub const ADDR_COUNT_MAX: usize = 1000;

/// Maximum number of entries in one `inv` or `getdata`: Core's `MAX_INV_SZ`.
pub const INV_COUNT_MAX: usize = 50_000;

/// Maximum number of entries in one `notfound` that is processed: the sum of Core's `MAX_PEER_TX_ANNOUNCEMENTS` and
/// `MAX_BLOCKS_IN_TRANSIT_PER_PEER`.
pub const NOTFOUND_COUNT_MAX: usize = 5016;

/// Maximum number of headers in one `headers`: Core's `MAX_HEADERS_RESULTS`.
pub const HEADERS_COUNT_MAX: usize = 2000;

/// Maximum number of hashes in one locator: Core's `MAX_LOCATOR_SZ`.
pub const LOCATOR_COUNT_MAX: usize = 101;

/// Maximum size of the user agent in bytes: Core's `MAX_SUBVERSION_LENGTH`.
pub const USER_AGENT_SIZE_MAX: usize = 256;

/// Maximum size of a feature name in bytes (BIP-0434): Core's `MAX_FEATUREID_LENGTH`.
pub const FEATURE_ID_SIZE_MAX: usize = 80;

/// Minimum size of a feature name in bytes.
pub const FEATURE_ID_SIZE_MIN: usize = 4;

/// Maximum size of a feature's data in bytes: Core's `MAX_FEATUREDATA_LENGTH`.
pub const FEATURE_DATA_SIZE_MAX: usize = 512;

/// Maximum size of a bloom filter in bytes (BIP-0037): Core's `MAX_BLOOM_FILTER_SIZE`.
pub const BLOOM_FILTER_SIZE_MAX: usize = 36_000;

/// Maximum number of hash functions of a bloom filter: Core's `MAX_HASH_FUNCS`.
pub const BLOOM_HASH_FUNCS_MAX: u32 = 50;

/// Maximum size in bytes of one element added to a bloom filter: Core's `MAX_SCRIPT_ELEMENT_SIZE`.
pub const FILTERADD_SIZE_MAX: usize = 520;

/// Maximum number of transactions in a compact block: the range of 16 bits. Core's other limit is higher
/// (`MAX_BLOCK_WEIGHT / MIN_SERIALIZABLE_TRANSACTION_WEIGHT`).
pub const COMPACT_TX_COUNT_MAX: usize = 65_535;

/// Maximum size in bytes of the garbage before the terminator in the v2 handshake: Core's `MAX_GARBAGE_LEN`.
pub const GARBAGE_SIZE_MAX: usize = 4095;

/// Maximum size in bytes of the contents of one v2 packet: the longest message name and the largest payload. Core's
/// `MAX_CONTENTS_LEN`.
pub const PACKET_CONTENTS_SIZE_MAX: usize = 1 + 12 + MESSAGE_SIZE_MAX;
