//! The limits of this crate, each a named constant.
//!
//! Invariant: [`MAX_FRAME_BYTES`] equals the constant of the same name in `judge.cpp`; `tests/judge.rs` sends requests
//! at the limit and one byte above. Must never contain anything computed at run time.

use std::time::Duration;

/// Size of one request or answer on the judge's pipe. The 4 MB of a block's transactions with all prevouts fit many
/// times.
pub const MAX_FRAME_BYTES: usize = 64 << 20;
/// Size of the body of one RPC request; Core refuses larger ones (`MAX_BODY_SIZE` in `httpserver.h`).
pub const MAX_RPC_REQUEST_BYTES: usize = 32 << 20;
/// Number of calls in one JSON-RPC batch.
pub const MAX_RPC_BATCH: usize = 256;
/// Size of a JSON-RPC batch above which no further call is added. A single call may be longer.
pub const MAX_RPC_BATCH_BYTES: usize = 16 << 20;
/// Size of the body of one RPC response. `getblock` with all details of a full block is smaller.
pub const MAX_RPC_ANSWER_BYTES: usize = 256 << 20;
/// Size of one line of an HTTP header.
pub const MAX_HTTP_LINE_BYTES: usize = 8 << 10;
/// Number of lines of an HTTP header.
pub const MAX_HTTP_LINES: usize = 64;
/// Interval at which a daemon is polled while it starts or stops.
pub const POLL: Duration = Duration::from_millis(20);
/// Number of polls after which a starting daemon counts as broken (60 s).
pub const MAX_START_POLLS: usize = 3_000;
/// Number of polls after which a stopping daemon is killed (60 s).
pub const MAX_STOP_POLLS: usize = 3_000;
/// Number of starts with fresh ports, in case another process takes the port between choosing and binding it.
pub const MAX_START_TRIES: usize = 3;
/// Number of lines shown of a failed build.
pub const MAX_SHOWN_LINES: usize = 30;
