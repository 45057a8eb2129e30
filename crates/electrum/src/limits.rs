//! Limits of the Electrum server. Each has a test at the limit and above it.

/// Maximum bytes of a line from a client. A package of transactions has at most 404,000 weight units, so 808,000
/// characters.
pub const LINE_SIZE_MAX: usize = 2 << 20;

/// Maximum bytes of all lines above 16 KiB that are being received.
pub const LINES_SIZE_MAX: usize = 64 << 20;

/// Maximum JSON values in a line, counted by the characters between them.
pub const VALUES_MAX: usize = 100_000;

/// Maximum requests in a batch.
pub const BATCH_MAX: usize = 5_000;

/// Maximum bytes of all answers that clients have not read yet. A larger answer is sent alone.
pub const ANSWERS_SIZE_MAX: usize = 128 << 20;

/// Maximum subscriptions of all clients, fewer than 200 bytes each.
pub const SUBSCRIPTIONS_MAX: usize = 1_000_000;

/// Maximum subscriptions of one client that is not on this machine.
pub const SUBSCRIPTIONS_PER_SESSION_MAX: usize = 100_000;

/// Subnets whose costs are kept, about 150 bytes each. Further ones share a sum.
pub const ACCOUNTS_MAX: usize = 65_536;

/// Characters of a client's name that are kept.
pub const CLIENT_NAME_MAX: usize = 64;

/// Headers in an answer: clients require at least 2,016.
pub const HEADERS_MAX: usize = 2_016;

/// Maximum characters that a client may ask for in the answer to a ping.
pub const PONG_SIZE_MAX: usize = 65_536;
