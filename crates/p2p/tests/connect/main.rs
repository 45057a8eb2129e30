//! The connections of the manager in a node without sockets: automatic and manual connections, inbound peers,
//! evictions, saved files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chosen;
mod inbound;
mod operator;
mod ways;
mod world;
