//! The tests of the crate in one binary: the real disk, the simulated one, and records.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod many;
mod real;
mod record;
mod sim;
mod twins;
