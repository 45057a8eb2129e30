//! The tests of the crate in one binary: the block store, its formats, and what is recovered after a crash.

mod common;
mod core_undo;
mod crash;
mod formats;
mod index_log;
mod scan;
mod store;
mod total;
