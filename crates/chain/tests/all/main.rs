//! The tests of the crate in one binary: the block store, its formats, and what is recovered after a crash.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod core_undo;
mod crash;
mod formats;
mod index_log;
mod scan;
mod store;
mod total;
