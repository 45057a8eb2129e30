//! Real peers on loopback, each a process: btcd in `make test`, Knots in `make test-peers`, and the lab's sync over
//! them. Each downloads the whole chain from the other, follows it through reorganizations of 10 and 150 blocks, and
//! accepts the blocks and the transactions of the other.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking, and starts processes")]

mod btcd;
mod external;
mod knots;
mod lab;
mod process;
mod relay;
mod validity;
