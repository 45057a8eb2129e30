//! The HTTP server: Core's httpserver.cpp and httprpc.cpp, on axum and hyper. Input: connections. Output: answers, each made by
//! [`crate::exec`] on a thread that may block.
//!
//! Order of refusals, Core's: an address that may not call (403), a method of HTTP that is none (405), a path that is not `/` (404), a queue that is
//! full (503), a method other than POST (405), no or wrong credentials (401, the latter after 250 ms). Invariants: at most
//! `-rpcthreads` calls run at once and `-rpcworkqueue` wait; a body is read only for who may call; what is buffered of one request has a
//! limit; a connection on which nothing happens ends. Cost: an idle connection holds a buffer of 8 KiB and two tasks.

mod bind;
mod idle;
mod server;

pub use bind::{BindError, bind_addresses};
pub use server::{Server, ServerError, ServerSettings};
