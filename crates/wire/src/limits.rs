//! Limits of messages and packets, each with its name in Bitcoin Core. Constants only.

/// Bytes of the payload of any message: Core's `MAX_PROTOCOL_MESSAGE_LENGTH`. More ends the connection.
pub const MESSAGE_SIZE_MAX: usize = 4_000_000;

/// Bytes of a BIP-0155 address of any network, known or not: Core's `MAX_ADDRV2_SIZE`.
pub const ADDRV2_SIZE_MAX: usize = 512;

/// Addresses of one `addr` or `addrv2`: Core's `MAX_ADDR_TO_SEND`.
pub const ADDR_COUNT_MAX: usize = 1000;

/// Entries of one `inv` or `getdata`: Core's `MAX_INV_SZ`.
pub const INV_COUNT_MAX: usize = 50_000;

/// Entries of one `notfound` that are looked at: Core's `MAX_PEER_TX_ANNOUNCEMENTS` and `MAX_BLOCKS_IN_TRANSIT_PER_PEER` together.
pub const NOTFOUND_COUNT_MAX: usize = 5016;

/// Headers of one `headers`: Core's `MAX_HEADERS_RESULTS`.
pub const HEADERS_COUNT_MAX: usize = 2000;

/// Hashes of one locator: Core's `MAX_LOCATOR_SZ`.
pub const LOCATOR_COUNT_MAX: usize = 101;

/// Bytes of the user agent: Core's `MAX_SUBVERSION_LENGTH`.
pub const USER_AGENT_SIZE_MAX: usize = 256;

/// Bytes of the name of a feature (BIP-0434): Core's `MAX_FEATUREID_LENGTH`.
pub const FEATURE_ID_SIZE_MAX: usize = 80;

/// Fewest bytes of such a name.
pub const FEATURE_ID_SIZE_MIN: usize = 4;

/// Bytes of what is said of a feature: Core's `MAX_FEATUREDATA_LENGTH`.
pub const FEATURE_DATA_SIZE_MAX: usize = 512;

/// Bytes of a bloom filter (BIP-0037): Core's `MAX_BLOOM_FILTER_SIZE`.
pub const BLOOM_FILTER_SIZE_MAX: usize = 36_000;

/// Hash functions of a bloom filter: Core's `MAX_HASH_FUNCS`.
pub const BLOOM_HASH_FUNCS_MAX: u32 = 50;

/// Bytes of one element added to a bloom filter: Core's `MAX_SCRIPT_ELEMENT_SIZE`.
pub const FILTERADD_SIZE_MAX: usize = 520;

/// Transactions of a compact block: what 16 bits count. Core's other limit, `MAX_BLOCK_WEIGHT / MIN_SERIALIZABLE_TRANSACTION_WEIGHT`, is above it.
pub const COMPACT_TX_COUNT_MAX: usize = 65_535;

/// Bytes of garbage before the terminator in the v2 handshake: Core's `MAX_GARBAGE_LEN`.
pub const GARBAGE_SIZE_MAX: usize = 4095;

/// Bytes of the contents of one v2 packet: the longest name of a message and the largest payload. Core's `MAX_CONTENTS_LEN`.
pub const PACKET_CONTENTS_SIZE_MAX: usize = 1 + 12 + MESSAGE_SIZE_MAX;
