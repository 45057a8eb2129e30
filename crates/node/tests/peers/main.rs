//! Real peers on loopback, each a process: btcd in `make test`, Knots in `make test-peers`, and the lab's sync over them. Each takes the whole chain from the
//! other, follows it through reorganisations of 10 and 150 blocks, and takes the blocks that the other finds.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking, and starts processes")]

mod btcd;
mod knots;
mod lab;
mod process;
mod validity;
