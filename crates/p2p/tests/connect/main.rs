//! The manager's connections, as a node without sockets makes them: whom it dials and when, whom it lets in, whom it drops, what it keeps.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chosen;
mod inbound;
mod operator;
mod ways;
mod world;
