//! The pool against Bitcoin Core: the same transactions, packages, blocks and reorganisations, in one run; and against
//! itself, one transaction at a time.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it did"
)]

mod batches;
mod compare;
mod maker;
mod story;
mod world;
