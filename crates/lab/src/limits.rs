//! Limits of the lab. Constants only.

/// Samples kept of one run; when the limit is reached, every second one is dropped.
pub const SAMPLES_MAX: usize = 2_400;

/// A longer line of a node's log is cut.
pub const LOG_LINE_BYTES_MAX: u64 = 4_096;

/// An answer of a node's RPC server.
pub const RPC_ANSWER_BYTES_MAX: u64 = 1 << 20;

/// A line of an Electrum server, or a body of Esplora's REST API: a history of 47,000 transactions takes 5 MB, and
/// Esplora's list of 48,000 coins 12 MB.
pub const ELECTRUM_LINE_BYTES_MAX: usize = 32 << 20;

/// The header of an answer of Esplora's REST API: it has a few hundred.
pub const REST_HEAD_BYTES_MAX: usize = 16_384;

/// Bytes read at once of a node's log, while it is written, to determine the node's height.
pub const TAIL_BYTES_MAX: u64 = 64 << 10;

/// Bytes of a `lab.toml`.
pub const LAB_TOML_BYTES_MAX: u64 = 1 << 20;

/// A node's answer to one broken block; the rest is cut off.
pub const SAID_CHARS_MAX: usize = 1_000;

/// Connections through the balancer at the same time, with two threads each.
pub const BALANCED_CONNECTIONS_MAX: usize = 600;

/// The first line of a server's answer to a check of the balancer.
pub const CHECK_BYTES_MAX: usize = 4_096;

/// The figures of a front end at `/metrics`.
pub const METRICS_BYTES_MAX: u64 = 1 << 20;
