//! Any list of transactions: whether it is a well-formed package, a child with its parents, and its hash as Bitcoin
//! Core says.
//!
//! The comparison is that of `drawn_packages_have_the_shape_that_core_finds` in the crate `mempool`, with the fuzzer's
//! bytes as the choices.
#![no_main]
#![allow(dead_code, reason = "the test of the crate uses the rest")]

use libfuzzer_sys::fuzz_target;
use lydian_oracle::Judge;
use lydian_oracle::generate::Random;
use std::sync::{LazyLock, Mutex};

#[path = "../../crates/mempool/tests/all/drawn/package.rs"]
mod package;

/// One judge for all inputs.
static JUDGE: LazyLock<Mutex<Judge>> =
    LazyLock::new(|| Mutex::new(Judge::start().unwrap_or_else(|error| panic!("{error}"))));

fuzz_target!(|bytes: &[u8]| {
    let mut judge = JUDGE.lock().unwrap_or_else(|error| panic!("{error}"));
    package::check(&mut judge, &mut Random::from_bytes(bytes));
});
