//! The HTTP server: Core's httpserver.cpp and httprpc.cpp, based on axum and hyper.
//!
//! Input: connections. Output: answers, each produced by [`crate::exec`] on a thread that may block.
//!
//! Refusals, in this order: an address that is not allowed (403), a body that is too large by its `Content-Length`
//! (413), an unknown HTTP method (405), a path other than `/` (404), a method other than POST (405), missing or wrong
//! credentials (401, for wrong ones after 250 ms), a full queue (503). Invariants: at most `-rpcthreads` calls run at
//! once and at most `-rpcworkqueue` wait, not counting calls that wait for the tip; a body is only read for an
//! authenticated client; bodies, parameters and answers share byte budgets, see [`crate::limits`]; an idle connection
//! is closed, and so is one whose header takes longer than `-rpcservertimeout`. Cost: an idle connection holds a buffer
//! of 8 KiB and two tasks.

mod connection;
mod guesses;
mod places;
mod reply;
mod respond;
mod server;

pub use server::{Server, ServerError, ServerSettings};
