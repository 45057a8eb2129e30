//! Limits of feeds and front ends. Each has a test at the limit and above it.

use std::time::Duration;

/// A stream without a message for this long is given up.
pub const SILENCE_MAX: Duration = Duration::from_secs(3);

/// How often a node sends [`crate::message::State`] at least.
pub const STATE_EVERY: Duration = Duration::from_millis(500);

/// Maximum bytes of a message in a stream, with its kind. A transaction of a block's size with its spent outputs has
/// fewer.
pub const FRAME_SIZE_MAX: usize = 8 << 20;

/// Maximum places or heights of one question.
pub const PLACES_MAX: usize = 10_000;

/// Maximum headers that one question asks for.
pub const HEADERS_MAX: u32 = 10_000;

/// Maximum hashes of blocks that one question asks for.
pub const HASHES_MAX: u32 = 100_000;

/// Maximum bytes of the body of a question: the places of [`PLACES_MAX`].
pub const QUESTION_SIZE_MAX: usize = 1 << 20;

/// Maximum bytes of transactions in one answer, after which it ends. The last transaction may pass it.
pub const TRANSACTIONS_SIZE_MAX: usize = 8 << 20;

/// Maximum bytes of an answer that a client reads. The scripts that a block spends may have most of them.
pub const ANSWER_SIZE_MAX: usize = 256 << 20;

/// Maximum transactions of a block: each weighs 240 at least, as in Core's `MIN_TRANSACTION_WEIGHT`.
pub const BLOCK_TXS_MAX: usize = 4_000_000 / 240;

/// Maximum inputs of a block: each has 41 bytes, which weigh 164.
pub const BLOCK_INPUTS_MAX: usize = 4_000_000 / 164;

/// Maximum connections for questions and calls to a node.
pub const CONNECTIONS_MAX: usize = 8;

/// Maximum bytes of a text in which a node says why it refuses a request or has no answer. Of a longer text in an
/// answer, the first ones are used.
pub const REASON_SIZE_MAX: usize = 1 << 10;

/// Maximum memory of a copy of a mempool, and of what waits to be applied to it: more than any mempool of Core's
/// default size takes.
pub const POOL_BYTES_MAX: usize = 4 << 30;

/// Maximum headers that are kept: about 250 bytes each.
pub const KEPT_HEADERS_MAX: usize = 65_536;

/// Maximum txids of blocks that are kept: those of about 500 full blocks.
pub const KEPT_TXIDS_MAX: usize = 2 << 20;

/// Maximum bytes of blocks that are kept of those that nodes have left for another branch: a block takes about a third
/// more than its bytes.
pub const KEPT_LEFT_MAX: usize = 64 << 20;

/// Maximum streams of a node.
pub const STREAMS_MAX: usize = 64;

/// Maximum bytes of changes that a node keeps for streams which have not read them. A stream that is further behind is
/// closed.
pub const STREAM_WAITING_MAX: usize = 64 << 20;

/// Maximum bytes of all answers of a node that clients have not read yet. A larger answer is sent alone.
pub const ANSWERS_SIZE_MAX: usize = 128 << 20;
