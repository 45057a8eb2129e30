//! Any transaction with any outputs that it spends: whether it is standard, its dust and its size as Bitcoin Core says.
//!
//! The comparison is that of `drawn_transactions_have_the_policy_of_core` in the crate `mempool`, with the fuzzer's
//! bytes as the choices.
#![no_main]
#![allow(dead_code, reason = "the test of the crate uses the rest")]

use libfuzzer_sys::fuzz_target;
use lydian_oracle::Judge;
use lydian_oracle::generate::Random;
use std::sync::{LazyLock, Mutex};

#[path = "../../crates/mempool/tests/all/drawn/standard.rs"]
mod standard;

/// One judge for all inputs.
static JUDGE: LazyLock<Mutex<Judge>> =
    LazyLock::new(|| Mutex::new(Judge::start().unwrap_or_else(|error| panic!("{error}"))));

fuzz_target!(|bytes: &[u8]| {
    let mut judge = JUDGE.lock().unwrap_or_else(|error| panic!("{error}"));
    standard::check(&mut judge, &mut Random::from_bytes(bytes));
});
