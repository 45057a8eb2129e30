//! Limits of JSON-RPC; those of the server itself are in [`lydian_serve::limits`]. Each has a test at the limit and
//! above it.

/// Maximum nesting of arrays and objects: Core's `MAX_JSON_DEPTH` (univalue_read.cpp).
pub const JSON_DEPTH_MAX: usize = 512;

/// Maximum values in a request or in a member of a batch. Core has no such limit: there, 32 MB of parameters take more
/// than a gigabyte.
pub const JSON_VALUES_MAX: usize = 1 << 18;

/// Maximum bytes of all requests that are parsed at once, not counting small ones.
pub const PARSED_SIZE_MAX: usize = 64 << 20;

/// Maximum bytes of all answers until the clients have read them, not counting small ones.
pub const ANSWERS_SIZE_MAX: usize = 128 << 20;

/// The answer to a batch is sent in chunks while it is produced, without `Content-Length`, once it exceeds this size.
pub const ANSWER_BUFFERED_SIZE_MAX: usize = 32 << 20;

/// Maximum bytes of the body of a request over REST. Fifteen outpoints in hex take 1,082; Core reads 32 MB, of clients
/// without a login too.
pub const REST_BODY_SIZE_MAX: usize = 16 << 10;

/// Maximum headers, or filter headers, of a request over REST: Core's `MAX_REST_HEADERS_RESULTS`.
pub const REST_HEADERS_MAX: u32 = 2_000;

/// Maximum outpoints of a request over REST: Core's `MAX_GETUTXOS_OUTPOINTS`.
pub const REST_OUTPOINTS_MAX: usize = 15;

/// Maximum transactions of the block in a merkle proof: Core's `MAX_BLOCK_WEIGHT / MIN_TRANSACTION_WEIGHT`.
pub const PROOF_TRANSACTIONS_MAX: usize = 4_000_000 / 240;
