//! The limits of this crate, each a named constant.
//!
//! Invariant: [`MAX_FRAME_BYTES`] is the number of the same name in `judge.cpp`; `tests/judge.rs` asks at the limit and
//! one above. Must never hold anything computed at run time.

use std::time::Duration;

/// Bytes of one request or answer on the judge's pipe. A block's 4 MB of transactions with all prevouts fit many times.
pub const MAX_FRAME_BYTES: usize = 64 << 20;
/// Bytes of the body of one RPC request; Core refuses more (`MAX_BODY_SIZE` in `httpserver.h`).
pub const MAX_RPC_REQUEST_BYTES: usize = 32 << 20;
/// Calls in one JSON-RPC batch.
pub const MAX_RPC_BATCH: usize = 256;
/// Bytes of a JSON-RPC batch above which it gets no further call; one call may be longer.
pub const MAX_RPC_BATCH_BYTES: usize = 16 << 20;
/// Bytes of the body of one RPC answer. `getblock` with all details of a full block stays below.
pub const MAX_RPC_ANSWER_BYTES: usize = 256 << 20;
/// Bytes of one line of an HTTP head.
pub const MAX_HTTP_LINE_BYTES: usize = 8 << 10;
/// Lines of an HTTP head.
pub const MAX_HTTP_LINES: usize = 64;
/// How often a daemon is asked whether it is up, or gone.
pub const POLL: Duration = Duration::from_millis(20);
/// Polls until a starting daemon counts as broken (60 s).
pub const MAX_START_POLLS: usize = 3_000;
/// Polls until a stopping daemon is killed (60 s).
pub const MAX_STOP_POLLS: usize = 3_000;
/// Starts with fresh ports, should another process take the port between choosing and binding it.
pub const MAX_START_TRIES: usize = 3;
/// Lines of a failed build that are shown.
pub const MAX_SHOWN_LINES: usize = 30;
