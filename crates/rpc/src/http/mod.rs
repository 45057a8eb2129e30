//! The HTTP server: Core's httpserver.cpp and httprpc.cpp, on axum and hyper. Input: connections. Output: answers, each made by
//! [`crate::exec`] on a thread that may block.
//!
//! Order of refusals, Core's: an address that may not call (403), a method of HTTP that is none (405), a path that is not `/` (404), a queue that is
//! full (503), a method other than POST (405), no or wrong credentials (401, the latter after 250 ms). Invariants: at most
//! `-rpcthreads` calls run at once and `-rpcworkqueue` wait, calls that wait for the tip apart; a body is read only for
//! who may call; bodies, parameters and answers share budgets of bytes, see [`crate::limits`]; a connection on which
//! nothing happens ends, and so does one whose header takes longer than `-rpcservertimeout`. Cost: an idle connection
//! holds a buffer of 8 KiB and two tasks.

mod bind;
mod connection;
mod guesses;
mod places;
mod reply;
mod respond;
mod server;

pub use bind::{BindError, bind_addresses};
pub use server::{Server, ServerError, ServerSettings};
