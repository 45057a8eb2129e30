//! The page of the node in a real browser: how it looks, what it costs, what happens on it, and attacks.
//!
//! Without Chromium the tests say that they are not run; with `LYDIAN_REQUIRE_BROWSER=1` they fail.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "a test fails by panicking, measures and prints its own time, and compares rounded values"
)]

mod attacks;
mod axe;
mod beyond;
mod blocks;
mod busy;
mod explorer;
mod facts;
#[path = "../rpc/http.rs"]
#[allow(dead_code, reason = "the tests of RPC use all of it")]
mod http;
mod looks;
mod numbers;
mod peers;
mod pool;
#[path = "../rpc/server.rs"]
#[allow(dead_code, reason = "the tests of RPC use all of it")]
mod server;
mod stage;
mod story;
mod sync;
mod texts;
mod warnings;
mod weight;
