//! The tests of the crate in one binary: the store against a model, crashes, damage, sizes, the format.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod crash;
mod damage;
mod format;
mod model;
mod pinned;
mod reads;
mod sizes;
