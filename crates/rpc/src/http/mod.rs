//! The HTTP server: Core's httprpc.cpp and the queue of its httpserver.cpp, on the library `serve`.
//!
//! Input: requests. Output: answers, each produced by [`crate::exec`] on a thread that may block.
//!
//! Refusals, in this order, after those of [`lydian_serve::http`]: a path other than `/` (404), a full queue (503), a
//! method other than POST (405), missing or wrong credentials (401, for wrong ones after 250 ms), a queue that has
//! become full (503). A request takes its place in the queue after its password was found to be right, so guesses take
//! none; `stop` needs none.
//!
//! With `-rest`, the paths of [`crate::rest`] are served from the same queue, without a login, whichever the method.
//!
//! Invariants: at most `-rpcthreads` calls run at once and at most `-rpcworkqueue` wait, not counting calls that wait
//! for the tip; a body is only read for an authenticated client, except for a short one while the queue is full, which
//! may be `stop`, and for a short one over REST; bodies, parameters and answers share byte budgets, see
//! [`crate::limits`].

mod log;
mod queue;
mod respond;
mod server;

pub use server::{Counts, Server, ServerError, ServerSettings};
