//! The tests of the crate in one binary, with Bitcoin Core as the judge: policy, the pool, and its file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it did"
)]

mod drawn;
mod files;
mod interrupted;
mod policy;
mod pool;
