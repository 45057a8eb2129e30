//! A package in one pool, and its transactions one by one in another: whatever is accepted alone is accepted with the
//! package, and what is refused leaves the pool as it was.
//!
//! The comparison is that of `drawn_packages_are_accepted_as_one_by_one_where_that_is_possible` in the crate `mempool`,
//! with the fuzzer's bytes as the choices. The chain is made once.
#![no_main]
#![allow(dead_code, reason = "the tests of the crate use the rest")]

use libfuzzer_sys::fuzz_target;
use lydian_oracle::generate::Random;
use std::sync::LazyLock;

#[path = "../../crates/mempool/tests/all/drawn/acceptance.rs"]
mod acceptance;
#[path = "../../crates/mempool/tests/all/pool/world.rs"]
mod world;

static WORLD: LazyLock<world::Fixed> = LazyLock::new(world::Fixed::new);

fuzz_target!(|bytes: &[u8]| {
    acceptance::check(&WORLD, &mut Random::from_bytes(bytes));
});
