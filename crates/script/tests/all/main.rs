//! The tests of the crate in one binary: vectors of other projects, rules and limits of the interpreter, templates and
//! capture mode.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod capture;
mod common;
mod encodings;
mod limits;
#[allow(dead_code, reason = "the tests of each crate use a part")]
#[path = "../../../../testdata/locate.rs"]
mod locate;
mod real_transactions;
mod regressions;
mod rules;
mod script_assets;
mod script_vectors;
mod sighash_vectors;
mod support;
mod taproot_rules;
mod templates;
mod tx_vectors;
